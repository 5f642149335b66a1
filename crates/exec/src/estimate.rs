//! What is known of a pipeline's rows before it runs.

use crate::flow::Layout;
use crate::scan::{Claims, ScanPlan, Scanner, Shared};
use crate::{Aggregate, AggregateFunction, Error, Expr, LogicalType, Output, Pipeline, Result, ScanColumn, Source};
use sinter_codec::{Physical, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a group beside its keys and states: two slots and a number.
pub(crate) const GROUP_BYTES: usize = 24;

/// Bytes of a sorted row beside its values: its head, and its place.
const SORTED_ROW_BYTES: usize = 20;

/// Bytes of a text among keys, and of a number of it, where nothing is known of its length.
const TEXT_BYTES: usize = 56;

/// What it costs to decode a value where the table does not say, in nanoseconds: a number, and a text.
const NUMBER_DECODED: f64 = 0.5;
const TEXT_DECODED: f64 = 10.0;

/// What it costs to fetch a compressed byte from memory, in nanoseconds: a core reads 12 GB/s.
const BYTE_FETCHED: f64 = 1.0 / 12.0;

impl Pipeline {
    /// About how long it takes to unpack these columns, in nanoseconds a row: the processor's part in decompression (Westmann et
    /// al., section 4.2), by what the schemes of the row group with the most rows were measured to take
    /// ([`TableSource::decode_nanos`]): how a few rows are stored says little of the others. What joins and groups brought is
    /// unpacked already. How much is read does not count, as no order of joins reads a segment twice; where a plan would,
    /// [`Pipeline::scanning_cost`] says what that costs.
    ///
    /// [`TableSource::decode_nanos`]: crate::TableSource::decode_nanos
    pub fn unpacking_cost(&self, columns: impl IntoIterator<Item = usize>) -> f64 {
        let (Source::Table(table), types) = (&self.source, self.scan_types()) else { return 0.0 };
        // The first of several that have as many: planning asks the same one again.
        let largest = (0..table.group_count()).rev().max_by_key(|&group| table.group_rows(group));
        let cost = |column: usize| match self.columns[column] {
            ScanColumn::Table(number) => table.decode_nanos(largest?, number),
            ScanColumn::Length(_) | ScanColumn::RowId => None,
        };
        let is_text = |column: usize| types[column].physical() == Some(Physical::Bytes);
        let unknown = |column: usize| if is_text(column) { TEXT_DECODED } else { NUMBER_DECODED };
        let packed = columns.into_iter().filter(|&column| column < self.columns.len());
        packed.map(|column| cost(column).unwrap_or_else(|| unknown(column))).sum()
    }

    /// About how long it takes to scan all of these columns, in nanoseconds: to fetch what is compressed of them, and to unpack it
    /// (Westmann et al., section 4.2). They are taken to lie in memory, where the pool and the system keep what was read
    /// before.
    pub fn scanning_cost(&self, columns: &BTreeSet<usize>) -> f64 {
        let Source::Table(table) = &self.source else { return 0.0 };
        let scanned = columns.iter().filter_map(|&column| self.columns.get(column)?.table_column());
        let fetched = |column| (0..table.group_count()).filter_map(move |group| table.segment_bytes(group, column));
        let bytes: usize = scanned.flat_map(fetched).sum();
        bytes as f64 * BYTE_FETCHED + self.source_rows_estimate() as f64 * self.unpacking_cost(columns.iter().copied())
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
            Output::Groups { keys, .. } => self.different(keys).groups(keys),
            Output::GroupingSets { keys, sets, .. } => {
                let different = self.different(keys);
                let groups = sets.iter().map(|set| different.groups(set.keys.iter().map(|&key| &keys[key])));
                groups.fold(0, usize::saturating_add)
            }
        }
    }

    /// About how many different values there are of what these expressions read.
    pub(crate) fn different<'a>(&self, exprs: impl IntoIterator<Item = &'a Expr>) -> Different {
        let rows = self.source_rows_estimate();
        let columns: BTreeSet<usize> = exprs.into_iter().flat_map(Expr::columns).collect();
        let values = |column| (column, self.distinct_estimate(column).unwrap_or(rows));
        Different { rows, columns: columns.into_iter().map(values).collect() }
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
        let types = self.column_types();
        let value_bytes = |expr: &Expr| value_bytes(expr, &types);
        match &self.output {
            Output::Rows(_) | Output::Aggregate(_) => 0,
            Output::Groups { keys, aggregates } => {
                let all: Vec<usize> = (0..keys.len()).collect();
                self.groups_bytes_estimate(keys, [&all[..]], aggregates)
            }
            Output::GroupingSets { keys, sets, aggregates, .. } => {
                self.groups_bytes_estimate(keys, sets.iter().map(|set| &set.keys[..]), aggregates)
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

    /// Bytes of groups by each of these sets of keys.
    fn groups_bytes_estimate<'a>(
        &self,
        keys: &[Expr],
        sets: impl IntoIterator<Item = &'a [usize]>,
        aggregates: &[Aggregate],
    ) -> usize {
        let types = self.column_types();
        let key_bytes: Vec<usize> = keys.iter().map(|key| value_bytes(key, &types)).collect();
        let distinct = |aggregate: &Aggregate| match aggregate.function {
            AggregateFunction::Distinct(_) => aggregate.argument.clone(),
            _ => None,
        };
        let distinct: Vec<Option<Expr>> = aggregates.iter().map(distinct).collect();
        let different = self.different(keys.iter().chain(distinct.iter().flatten()));
        let bytes = sets.into_iter().map(|set| {
            let groups = different.groups(set.iter().map(|&key| &keys[key]));
            let bytes: usize = set.iter().map(|&key| key_bytes[key]).sum();
            let own = groups.saturating_mul(bytes + aggregates.len() * 2 * size_of::<u64>() + GROUP_BYTES);
            let others =
                aggregates.iter().zip(&distinct).map(|(aggregate, argument)| match (&aggregate.function, argument) {
                    (AggregateFunction::Foreign(call), _) => call.function.bytes_estimate(groups, different.rows),
                    (_, Some(argument)) => {
                        let pair_bytes = value_bytes(argument, &types) + GROUP_BYTES;
                        different.pairs(groups, argument).saturating_mul(pair_bytes)
                    }
                    _ => 0,
                });
            others.fold(own, usize::saturating_add)
        });
        bytes.fold(0, usize::saturating_add)
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
        let (claims, next_announced, cancelled) =
            (Claims::new(self, Some(&**table), None), Default::default(), Default::default());
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
        // No more lengths than texts.
        let origin = match self.columns.get(column) {
            Some(ScanColumn::Length(text)) => self.source.origin(*text),
            _ => self.origin(column),
        };
        let (source, column) = origin?;
        let distinct = |group| {
            let stats = source.zone(group, column)?;
            let is_known = stats.distinct_estimate > 0 || stats.null_count == stats.value_count;
            is_known.then_some(stats.distinct_estimate + usize::from(stats.null_count > 0))
        };
        let all: Option<usize> = (0..source.group_count()).map(distinct).sum();
        all.map(|all| spanned.map_or(all, |spanned| all.min(spanned)))
    }
}

/// About how many different values columns have.
#[derive(Debug)]
pub(crate) struct Different {
    /// Of the source.
    rows: usize,
    /// By the number of the column.
    columns: BTreeMap<usize, usize>,
}

impl Different {
    fn values(&self, column: usize) -> usize {
        self.columns.get(&column).copied().unwrap_or(self.rows)
    }

    /// About how many groups rows make by these keys at most.
    pub(crate) fn groups<'a>(&self, keys: impl IntoIterator<Item = &'a Expr>) -> usize {
        let mut keys = keys.into_iter().peekable();
        if keys.peek().is_none() {
            return 1;
        }
        let columns: BTreeSet<usize> = keys.flat_map(Expr::columns).collect();
        columns.into_iter().map(|column| self.values(column)).fold(1, usize::saturating_mul).min(self.rows)
    }

    /// About how many pairs of one of so many groups and a value of an expression there are at most.
    pub(crate) fn pairs(&self, groups: usize, expr: &Expr) -> usize {
        let values = match expr {
            Expr::Column(column) => self.values(*column),
            _ => self.rows,
        };
        groups.saturating_mul(values).min(self.rows)
    }
}

/// Bytes of a value that is kept, of an expression over columns of these types.
fn value_bytes(expr: &Expr, types: &[LogicalType]) -> usize {
    match expr.type_over(types).physical() {
        Some(Physical::Bytes) | None => TEXT_BYTES,
        Some(_) => size_of::<i128>(),
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
