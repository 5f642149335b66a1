//! Keys and aggregates compiled: one program for all of them.

use super::distinct;
use super::index::IndexPlan;
use super::partners::PartnerKeys;
use super::states::State;
use crate::aggregate::{Part, parts};
use crate::estimate::{GROUP_BYTES, bounds};
use crate::expr::{Operand, Program, compile};
use crate::{Aggregate, AggregateFunction, Error, Expr, LogicalType, Pipeline, Result};

/// What a run's workers share.
#[derive(Debug)]
pub(crate) struct GroupPlan {
    /// Its outputs are the keys, then the aggregates' arguments.
    pub(super) program: Program,
    pub(super) index: IndexPlan,
    pub(super) key_count: usize,
    /// Where one join brings all keys, and one of them is a text.
    pub(super) partner_keys: Option<PartnerKeys>,
    pub(super) parts: Vec<Part>,
    /// How different values of each part are numbered, where they are.
    pub(super) pairs: Vec<Option<IndexPlan>>,
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
        let key_bounds: Vec<_> = keys.iter().map(|key| bounds(key, pipeline)).collect();
        // No more places than what the estimate of a group's bytes has for them.
        let places_max = |groups: usize| groups.saturating_mul(GROUP_BYTES / size_of::<u32>());
        let index = IndexPlan::new(key_types, &key_bounds, places_max(pipeline.rows_estimate()));
        let index = index.ok_or_else(|| Error::Unsupported("groups by nested values".into()))?;
        let pairs = parts.iter().map(|part| match (&part.function, part.output) {
            (AggregateFunction::Distinct(_), Some(output)) => {
                let value = &exprs[output];
                let places_max = places_max(pipeline.pairs_estimate(value));
                let value_bounds = bounds(value, pipeline);
                let plan = distinct::plan(&part.argument_type, value_bounds, places_max, !keys.is_empty());
                plan.map(Some).ok_or_else(|| Error::Unsupported("different nested values".into()))
            }
            _ => Ok(None),
        });
        let pairs = pairs.collect::<Result<_>>()?;
        let arguments = compile(&exprs[keys.len()..].iter().collect::<Vec<_>>(), types)?.columns;
        let partner_keys = PartnerKeys::new(keys, types, arguments, pipeline);
        let (state_of, states) = (Vec::new(), Vec::new());
        let mut plan =
            GroupPlan { program, index, key_count: keys.len(), partner_keys, parts, pairs, state_of, states };
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
