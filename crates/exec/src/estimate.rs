//! What is known of a pipeline's rows before it runs.

use crate::flow::Layout;
use crate::scan::{Claims, ScanPlan, Scanner, Shared};
use crate::{AggregateFunction, Error, Expr, Output, Pipeline, Result, ScanColumn, Source};
use sinter_codec::{Physical, Scalar};
use std::collections::BTreeSet;

/// Bytes of a group beside its keys and states: two slots and a number.
pub(crate) const GROUP_BYTES: usize = 24;

/// Bytes of a sorted row beside its values: its head, and its place.
const SORTED_ROW_BYTES: usize = 20;

/// Bytes of a text among keys, and of a number of it, where nothing is known of its length.
const TEXT_BYTES: usize = 56;

/// What it costs to unpack a value, in nanoseconds: a number; a text, and each byte that it takes packed.
const NUMBER_UNPACKED: f64 = 0.5;
const TEXT_UNPACKED: f64 = 5.0;
const TEXT_BYTE_UNPACKED: f64 = 0.8;

/// Bytes of a packed text of which nothing is known.
const PACKED_TEXT_BYTES: f64 = 8.0;

impl Pipeline {
    /// About how long it takes to unpack these columns, in nanoseconds a row: the processor's part in decompression (Westmann et
    /// al., section 4.2). It follows from how many bytes values take and not from a measurement, so that the same data has the
    /// same plan. What joins and groups brought is unpacked already. How much is read does not count, as no order of joins reads
    /// a segment twice.
    pub fn unpacking_cost(&self, columns: impl IntoIterator<Item = usize>) -> f64 {
        let (Source::Table(table), types) = (&self.source, self.scan_types()) else { return 0.0 };
        let bytes = |column: usize| -> Option<f64> {
            let packed = |group| table.segment_bytes(group, column);
            let bytes: usize = (0..table.group_count()).map(packed).sum::<Option<usize>>()?;
            Some(bytes as f64 / self.source_rows_estimate().max(1) as f64)
        };
        let cost = |column: usize| match self.columns.get(column)? {
            ScanColumn::Table(number) if types[column].physical() == Some(Physical::Bytes) => {
                Some(TEXT_UNPACKED + TEXT_BYTE_UNPACKED * bytes(*number).unwrap_or(PACKED_TEXT_BYTES))
            }
            _ => Some(NUMBER_UNPACKED),
        };
        columns.into_iter().filter_map(cost).sum()
    }

    /// About how many rows come out, as the table's statistics tell: what is filtered is not known, and groups are no
    /// more than the different values of the columns in their keys may make.
    pub fn rows_estimate(&self) -> usize {
        let rows = self.source_rows_estimate();
        match &self.output {
            Output::Windows { .. } => rows,
            Output::Rows(_) => self.limit.map_or(rows, |limit| rows.min(limit)),
            Output::Sorted { order, .. } => order.fetch.map_or(rows, |fetch| rows.min(fetch)),
            Output::Aggregate(_) => 1,
            Output::Groups { keys, .. } if keys.is_empty() => 1,
            Output::Groups { keys, .. } => {
                let columns: BTreeSet<usize> = keys.iter().flat_map(Expr::columns).collect();
                let values = columns.into_iter().map(|column| self.distinct_estimate(column).unwrap_or(rows));
                values.fold(1, usize::saturating_mul).min(rows)
            }
        }
    }

    /// About how many rows the source has; of a table it is exact.
    pub fn source_rows_estimate(&self) -> usize {
        match &self.source {
            Source::Table(table) => (0..table.group_count()).map(|group| table.group_rows(group)).sum(),
            Source::Gathered(inner) => inner.rows_estimate(),
            Source::Union(all) => all.iter().map(Pipeline::rows_estimate).fold(0, usize::saturating_add),
        }
    }

    /// About how many bytes a worker's groups, or all sorted rows, take at most; 0 where there are none.
    pub fn gathered_bytes_estimate(&self) -> usize {
        let value_bytes = |expr: &Expr| match self.type_of(expr).physical() {
            Some(Physical::Bytes) | None => TEXT_BYTES,
            Some(_) => size_of::<i128>(),
        };
        match &self.output {
            Output::Rows(_) | Output::Aggregate(_) => 0,
            Output::Groups { keys, aggregates } => {
                let bytes: usize = keys.iter().map(value_bytes).sum();
                let (groups, rows) = (self.rows_estimate(), self.source_rows_estimate());
                let own = groups.saturating_mul(bytes + aggregates.len() * 2 * size_of::<u64>() + GROUP_BYTES);
                let others = aggregates.iter().map(|aggregate| match (&aggregate.function, &aggregate.argument) {
                    (AggregateFunction::Foreign(call), _) => call.function.bytes_estimate(groups, rows),
                    (AggregateFunction::Distinct(_), Some(argument)) => {
                        self.pairs_estimate(argument).saturating_mul(value_bytes(argument) + GROUP_BYTES)
                    }
                    _ => 0,
                });
                others.fold(own, usize::saturating_add)
            }
            Output::Sorted { rows, order } => {
                let kept = rows.iter().chain(order.keys.iter().map(|key| &key.expr));
                let bytes: usize = kept.map(value_bytes).sum();
                let count = self.source_rows_estimate().min(order.row_count().unwrap_or(usize::MAX));
                count.saturating_mul(bytes + SORTED_ROW_BYTES)
            }
            Output::Windows { rows, window } => {
                let keys = window.partition.iter().chain(window.order.iter().map(|key| &key.expr));
                let arguments = window.functions.iter().filter_map(|function| function.argument.as_ref());
                // Keys and arguments are there twice for a while, and results are as wide as arguments.
                let hidden: usize = keys.chain(arguments).map(value_bytes).sum();
                let bytes = rows.iter().map(value_bytes).sum::<usize>() + 3 * hidden + 16 * window.functions.len();
                self.source_rows_estimate().saturating_mul(bytes + SORTED_ROW_BYTES)
            }
        }
    }

    /// About how many pairs of a group and a value of an expression there are at most.
    pub(crate) fn pairs_estimate(&self, expr: &Expr) -> usize {
        let rows = self.source_rows_estimate();
        let values = match expr {
            Expr::Column(column) => self.distinct_estimate(*column).unwrap_or(rows),
            _ => rows,
        };
        self.rows_estimate().saturating_mul(values).min(rows)
    }

    /// Which share of the scan's rows passes the filter, by a sample of vectors; deleted rows do not pass. Steps and
    /// output are not looked at. 1 for a table without rows, and never quite 0.
    ///
    /// # Errors
    /// What reading and evaluating bring about.
    pub fn sample_share(&self) -> Result<f64> {
        let Source::Table(table) = &self.source else {
            return Err(Error::Unsupported("a sample of groups that are not there yet".into()));
        };
        let scan = ScanPlan::new(self)?;
        let (claims, next_announced, cancelled) = (Claims::new(self), Default::default(), Default::default());
        let shared = Shared {
            plan: &scan,
            layout: Layout { scan_columns: self.columns.len(), scan_types: scan.types(), payload: &[], tables: &[] },
            source: &**table,
            claims: &claims,
            next_announced: &next_announced,
            is_limited: true,
            cancelled: &cancelled,
            on_damage: &self.on_damage,
        };
        Scanner::default().sample(&shared)
    }

    /// At most so many different values has a column, if what its row groups estimate is right: no more than all of
    /// them together, and of integers no more than lie between the least and the greatest. `None` where a group does
    /// not know.
    pub fn distinct_estimate(&self, column: usize) -> Option<usize> {
        let span = |(min, max): (i128, i128)| max.checked_sub(min)?.checked_add(2);
        let spanned = bounds(&Expr::Column(column), self).and_then(span).and_then(|span| usize::try_from(span).ok());
        let (source, column) = self.origin(column)?;
        let distinct = |group| {
            let stats = source.zone(group, column)?;
            let is_known = stats.distinct_estimate > 0 || stats.null_count == stats.value_count;
            is_known.then_some(stats.distinct_estimate + usize::from(stats.null_count > 0))
        };
        let all: Option<usize> = (0..source.group_count()).map(distinct).sum();
        all.map(|all| spanned.map_or(all, |spanned| all.min(spanned)))
    }
}

/// Between which integers all values of a key are, as the statistics of its row groups tell.
pub(crate) fn bounds(key: &Expr, pipeline: &Pipeline) -> Option<(i128, i128)> {
    let Expr::Column(column) = key else { return None };
    let (source, column) = pipeline.origin(*column)?;
    let mut all: Option<(i128, i128)> = None;
    for group in 0..source.group_count() {
        let stats = source.zone(group, column)?;
        if stats.null_count == stats.value_count {
            continue;
        }
        let (Scalar::Int(min), Scalar::Int(max)) = (&stats.min, &stats.max) else { return None };
        all = Some(all.map_or((*min, *max), |(low, high)| (low.min(*min), high.max(*max))));
    }
    all
}
