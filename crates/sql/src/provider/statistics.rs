//! What the optimizer is told about a table.

use crate::lower::to_datafusion;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Statistics};
use sinter_codec::{BlockStats, Scalar};
use sinter_column::ColumnTable;
use sinter_exec::{LogicalType, TableSource};
use std::cmp::Ordering;

/// Statistics of a table from its zone maps. `exact` says that every row will come out; it is kept only when no row
/// is deleted, since zone maps do not know of deletes.
pub(crate) fn of_table(
    table: &ColumnTable,
    schema: &SchemaRef,
    projection: Option<&[usize]>,
    exact: bool,
) -> Statistics {
    let rows = usize::try_from(table.live_rows()).unwrap_or(usize::MAX);
    let untouched = table.groups().iter().all(|entry| entry.deleted.is_none());
    let all: Vec<usize> = (0..schema.fields().len()).collect();
    let mut statistics = Statistics::new_unknown(schema);
    statistics.num_rows = if exact { Precision::Exact(rows) } else { Precision::Inexact(rows) };
    statistics.column_statistics = projection
        .unwrap_or(&all)
        .iter()
        .map(|&column| {
            let column = column_statistics(table, column);
            if exact && untouched { column } else { column.to_inexact() }
        })
        .collect();
    statistics
}

fn column_statistics(table: &ColumnTable, column: usize) -> ColumnStatistics {
    let mut statistics = ColumnStatistics::new_unknown();
    let Some(ty) = table.column_types().get(column) else { return statistics };
    let mut nulls = 0;
    let mut distinct = 0;
    let mut bounds: Option<(Scalar, Scalar)> = None;
    // Every group with values has bounds.
    let mut bounded = true;
    let mut exact = true;
    for group in 0..table.group_count() {
        let Some(zone) = table.zone(group, column) else { return statistics };
        nulls += zone.null_count;
        distinct = distinct.max(zone.distinct_estimate);
        if zone.null_count == zone.value_count {
            continue;
        }
        exact &= zone.bounds_exact && !zone.has_nan;
        bounds = match (known_bounds(zone), bounds) {
            (None, _) => {
                bounded = false;
                None
            }
            (known, None) => known,
            (Some((min, max)), Some((old_min, old_max))) => Some((least(old_min, min), greatest(old_max, max))),
        };
    }
    statistics.null_count = Precision::Exact(nulls);
    if distinct > 0 {
        statistics.distinct_count = Precision::Inexact(distinct);
    }
    if let Some((min, max)) = bounds.filter(|_| bounded) {
        let precision = |value: &Scalar, ty: &LogicalType| match to_datafusion(value, ty) {
            Some(value) if exact => Precision::Exact(value),
            Some(value) if !matches!(ty, LogicalType::Utf8 | LogicalType::Binary) => Precision::Inexact(value),
            _ => Precision::Absent,
        };
        statistics.min_value = precision(&min, ty);
        statistics.max_value = precision(&max, ty);
    }
    statistics
}

fn known_bounds(zone: &BlockStats) -> Option<(Scalar, Scalar)> {
    (!zone.min.is_null() && !zone.max.is_null()).then(|| (zone.min.clone(), zone.max.clone()))
}

fn order(left: &Scalar, right: &Scalar) -> Ordering {
    match (left, right) {
        (Scalar::Int(left), Scalar::Int(right)) => left.cmp(right),
        (Scalar::Float(left), Scalar::Float(right)) => left.total_cmp(right),
        (Scalar::Bytes(left), Scalar::Bytes(right)) => left.cmp(right),
        _ => Ordering::Equal,
    }
}

fn least(left: Scalar, right: Scalar) -> Scalar {
    if order(&left, &right).is_le() { left } else { right }
}

fn greatest(left: Scalar, right: Scalar) -> Scalar {
    if order(&left, &right).is_ge() { left } else { right }
}
