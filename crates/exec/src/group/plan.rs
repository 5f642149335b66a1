//! Keys and aggregates compiled: one program for all of them.

use super::index::IndexPlan;
use super::states::State;
use crate::aggregate::{Part, parts};
use crate::expr::{Operand, Program, compile};
use crate::{Aggregate, Error, Expr, LogicalType, Output, Pipeline, Result, Source};
use sinter_codec::{Physical, Scalar};
use std::collections::BTreeSet;

/// What a run's workers share.
#[derive(Debug)]
pub(crate) struct GroupPlan {
    /// Its outputs are the keys, then the aggregates' arguments.
    pub(super) program: Program,
    pub(super) index: IndexPlan,
    pub(super) key_count: usize,
    pub(super) parts: Vec<Part>,
    /// Which state has each part's result: sum and average of the same values have one.
    pub(super) state_of: Vec<usize>,
    /// The first part of each state.
    pub(super) states: Vec<usize>,
}

impl GroupPlan {
    /// # Errors
    /// [`Error::Unsupported`] for nested keys, and for what has no order or no sum.
    pub(crate) fn new(
        keys: &[Expr],
        aggregates: &[Aggregate],
        types: &[LogicalType],
        pipeline: &Pipeline,
    ) -> Result<GroupPlan> {
        let mut exprs = keys.to_vec();
        let parts = parts(aggregates, types, &mut exprs)?;
        let mut program = compile(&exprs.iter().collect::<Vec<_>>(), types)?;
        program.narrow_decimals();
        let key_types: Vec<LogicalType> = keys.iter().map(|key| key.type_over(types)).collect();
        let bounds: Vec<_> = keys.iter().map(|key| bounds(key, pipeline)).collect();
        // No more places than what the estimate of a group's bytes has for them.
        let places_max = pipeline.rows_estimate().saturating_mul(GROUP_BYTES / size_of::<u32>());
        let index = IndexPlan::new(key_types, &bounds, places_max);
        let index = index.ok_or_else(|| Error::Unsupported("groups by nested values".into()))?;
        let mut plan =
            GroupPlan { program, index, key_count: keys.len(), parts, state_of: Vec::new(), states: Vec::new() };
        plan.share_states();
        Ok(plan)
    }

    fn share_states(&mut self) {
        for (number, part) in self.parts.iter().enumerate() {
            let same = |&state: &usize| {
                let other = &self.parts[state];
                self.operand(other) == self.operand(part) && State::is_shared(other, part)
            };
            let state = self.states.iter().position(same).unwrap_or(self.states.len());
            self.state_of.push(state);
            if state == self.states.len() {
                self.states.push(number);
            }
        }
    }

    /// The columns that keys and arguments read.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.program.columns
    }

    pub(super) fn key_operand(&self, key: usize) -> Operand {
        self.program.outputs[key].0
    }

    pub(super) fn operand(&self, part: &Part) -> Option<Operand> {
        part.output.map(|output| self.program.outputs[output].0)
    }
}

/// Bytes of a group beside its keys and states: two slots and a number.
const GROUP_BYTES: usize = 24;

/// Bytes of a row in the index of a join, while it is made.
const INDEX_BYTES: usize = 12;

/// Bytes of a text among keys, and of a number of it, where nothing is known of its length.
const TEXT_BYTES: usize = 56;

impl Pipeline {
    /// About how many rows come out, as the table's statistics tell: what is filtered is not known, and groups are no
    /// more than the different values of the columns in their keys may make.
    pub fn rows_estimate(&self) -> usize {
        let rows = self.source_rows_estimate();
        match &self.output {
            Output::Rows(_) => self.limit.map_or(rows, |limit| rows.min(limit)),
            Output::Aggregate(_) => 1,
            Output::Groups { keys, .. } => {
                let columns: BTreeSet<usize> = keys.iter().flat_map(Expr::columns).collect();
                let values = columns.into_iter().map(|column| self.distinct_estimate(column).unwrap_or(rows));
                values.fold(1, usize::saturating_mul).min(rows)
            }
        }
    }

    /// About how many rows the source has; of a table it is exact.
    fn source_rows_estimate(&self) -> usize {
        match &self.source {
            Source::Table(table) => (0..table.group_count()).map(|group| table.group_rows(group)).sum(),
            Source::Groups(inner) => inner.rows_estimate(),
        }
    }

    /// About how many bytes a worker's groups take at most; 0 where there are none.
    pub fn group_bytes_estimate(&self) -> usize {
        let Output::Groups { keys, aggregates } = &self.output else { return 0 };
        let key_bytes = |key: &Expr| match self.type_of(key).physical() {
            Some(Physical::Bytes) | None => TEXT_BYTES,
            Some(_) => size_of::<i128>(),
        };
        let bytes: usize = keys.iter().map(key_bytes).sum();
        self.rows_estimate().saturating_mul(bytes + aggregates.len() * 2 * size_of::<u64>() + GROUP_BYTES)
    }

    /// About how many bytes it keeps at most: groups, build sides of joins, and what the pipelines within it keep.
    pub fn kept_bytes_estimate(&self) -> usize {
        let bytes = self.joins().map(|join| {
            let types = join.build_exprs().iter().map(|expr| join.build.type_of(expr));
            let row: usize = types.map(|ty| ty.physical().and_then(Physical::value_bytes).unwrap_or(TEXT_BYTES)).sum();
            let own = join.build.rows_estimate().saturating_mul(row + INDEX_BYTES);
            own.saturating_add(join.build.kept_bytes_estimate())
        });
        let within = match &self.source {
            Source::Table(_) => 0,
            Source::Groups(inner) => inner.kept_bytes_estimate(),
        };
        bytes.fold(self.group_bytes_estimate().saturating_add(within), usize::saturating_add)
    }

    /// At most so many different values has a column, if what its row groups estimate is right: no more than all of
    /// them together, and of integers no more than lie between the least and the greatest. `None` where a group does
    /// not know.
    pub fn distinct_estimate(&self, column: usize) -> Option<usize> {
        let spanned = bounds(&Expr::Column(column), self).and_then(|(min, max)| usize::try_from(max - min + 2).ok());
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
