//! An accumulator for each group, for functions that know nothing of groups.
//!
//! DataFusion's own way to do that looks at each group there is for each batch of rows. Here only those are looked at
//! that have rows in it, since our batches are a vector long, and groups may be many.

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::compute::take_arrays;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use std::sync::Arc;

/// What takes rows of one group.
type Take = fn(&mut dyn Accumulator, &[ArrayRef]) -> Result<()>;

/// Accumulators by group.
#[derive(Debug)]
pub(super) struct EachGroup {
    function: Arc<AggregateFunctionExpr>,
    accumulators: Vec<Box<dyn Accumulator>>,
    /// The group of each row that counts, and behind it the row.
    order: Vec<u64>,
}

impl EachGroup {
    /// With so many groups.
    pub(super) fn new(function: &Arc<AggregateFunctionExpr>, groups: usize) -> Result<EachGroup> {
        let mut new = EachGroup { function: Arc::clone(function), accumulators: Vec::new(), order: Vec::new() };
        new.resize(groups)?;
        Ok(new)
    }

    pub(super) fn len(&self) -> usize {
        self.accumulators.len()
    }

    /// Bytes that all accumulators take.
    pub(super) fn bytes(&self) -> usize {
        let pointers = self.accumulators.capacity() * size_of::<Box<dyn Accumulator>>();
        pointers + self.accumulators.iter().map(|accumulator| accumulator.size()).sum::<usize>()
    }

    /// Takes rows that pass the filter, each of its group.
    pub(super) fn update(
        &mut self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: &[u32],
        group_count: usize,
    ) -> Result<()> {
        let is_in = |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        self.take(values, is_in, groups, group_count, |accumulator, values| accumulator.update_batch(values))
    }

    /// Adds the accumulators of another worker; its groups are `map`ped to ours.
    pub(super) fn merge(&mut self, other: EachGroup, map: &[u32], group_count: usize) -> Result<()> {
        let old_count = self.len();
        self.resize(group_count)?;
        let mut shared = Vec::new();
        let mut states: Vec<Vec<ScalarValue>> = Vec::new();
        for (mut accumulator, &group) in other.accumulators.into_iter().zip(map) {
            if group as usize >= old_count {
                // Nobody else has rows of it.
                self.accumulators[group as usize] = accumulator;
                continue;
            }
            let state = accumulator.state()?;
            states.resize_with(state.len(), Vec::new);
            states.iter_mut().zip(state).for_each(|(column, value)| column.push(value));
            shared.push(group);
        }
        if shared.is_empty() {
            return Ok(());
        }
        let columns = states.into_iter().map(ScalarValue::iter_to_array).collect::<Result<Vec<_>>>()?;
        self.take(&columns, |_| true, &shared, group_count, |accumulator, rows| accumulator.merge_batch(rows))
    }

    /// The result of each group.
    pub(super) fn results(&mut self) -> Result<ArrayRef> {
        let accumulators = std::mem::take(&mut self.accumulators).into_iter();
        let results = accumulators.map(|mut accumulator| accumulator.evaluate());
        ScalarValue::iter_to_array(results.collect::<Result<Vec<_>>>()?)
    }

    fn resize(&mut self, group_count: usize) -> Result<()> {
        while self.accumulators.len() < group_count {
            self.accumulators.push(self.function.create_accumulator()?);
        }
        Ok(())
    }

    /// Hands each group its rows, in their order.
    fn take(
        &mut self,
        values: &[ArrayRef],
        is_in: impl Fn(usize) -> bool,
        groups: &[u32],
        group_count: usize,
        take: Take,
    ) -> Result<()> {
        self.resize(group_count)?;
        self.order.clear();
        let rows = groups.iter().enumerate().filter(|(row, _)| is_in(*row));
        self.order.extend(rows.map(|(row, &group)| u64::from(group) << 32 | row as u64));
        let group_of = |place: u64| (place >> 32) as usize;
        let Some(&first) = self.order.first() else { return Ok(()) };
        let are_one_groups = self.order.iter().all(|&place| group_of(place) == group_of(first));
        if are_one_groups && self.order.len() == groups.len() {
            return take(&mut *self.accumulators[group_of(first)], values);
        }
        self.order.sort_unstable();
        let rows: UInt32Array = self.order.iter().map(|&place| place as u32).collect::<Vec<_>>().into();
        let values = take_arrays(values, &rows, None)?;
        let mut from = 0;
        for run in self.order.chunk_by(|&one, &next| group_of(one) == group_of(next)) {
            let values: Vec<ArrayRef> = values.iter().map(|values| values.slice(from, run.len())).collect();
            take(&mut *self.accumulators[group_of(run[0])], &values)?;
            from += run.len();
        }
        Ok(())
    }
}
