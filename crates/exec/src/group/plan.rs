//! Keys and aggregates compiled: one program for all of them, whichever sets of keys rows are grouped by.

use super::distinct;
use super::index::IndexPlan;
use super::partners::PartnerKeys;
use super::states::State;
use crate::aggregate::{Part, parts};
use crate::estimate::{Different, GROUP_BYTES, bounds};
use crate::expr::{Operand, Program, compile};
use crate::{Aggregate, Error, Expr, GroupingSet, LogicalType, Pipeline, Result};

/// What a run's workers share.
#[derive(Debug)]
pub(crate) struct GroupPlan {
    /// Its outputs are the keys, then the aggregates' arguments.
    pub(super) program: Program,
    pub(super) key_types: Vec<LogicalType>,
    /// One, or those of GROUPING SETS, which all take the same rows.
    pub(super) sets: Vec<SetPlan>,
    /// Of the numbers of sets, of GROUPING SETS.
    pub(super) number_type: Option<LogicalType>,
    /// Where one join brings all keys, and one of them is a text.
    pub(super) partner_keys: Option<PartnerKeys>,
    pub(super) parts: Vec<Part>,
    /// Which state has each part's result: sum and average of the same values have one.
    pub(super) state_of: Vec<usize>,
    /// The first part of each state.
    pub(super) states: Vec<usize>,
}

/// By what one set of groups is found.
#[derive(Debug)]
pub(super) struct SetPlan {
    /// Which of the plan's keys.
    pub(super) keys: Vec<usize>,
    /// What the set's groups say of it.
    pub(super) number: i128,
    pub(super) index: IndexPlan,
    /// How different values of each part are numbered, where they are.
    pub(super) pairs: Vec<Option<IndexPlan>>,
}

impl GroupPlan {
    /// Of a pipeline that groups by all keys, or by several sets of them, whose numbers are of a type.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for nested keys, and for what has no order or no sum.
    pub(crate) fn new(
        keys: &[Expr],
        sets: Option<(&[GroupingSet], &LogicalType)>,
        aggregates: &[Aggregate],
        types: &[LogicalType],
        pipeline: &Pipeline,
    ) -> Result<GroupPlan> {
        let mut exprs = keys.to_vec();
        let parts = parts(aggregates, types, &mut exprs)?;
        let mut program = compile(&exprs.iter().collect::<Vec<_>>(), types)?;
        program.narrow_decimals();
        let known = Known::new(&exprs, keys.len(), &parts, types, pipeline);
        let all = [GroupingSet { keys: (0..keys.len()).collect(), number: 0 }];
        let of_sets = sets.map_or(&all[..], |(sets, _)| sets);
        let partner_keys = match sets {
            Some(_) => None,
            None => {
                let arguments = compile(&exprs[keys.len()..].iter().collect::<Vec<_>>(), types)?.columns;
                PartnerKeys::new(keys, types, arguments, pipeline)
            }
        };
        let mut plan = GroupPlan {
            program,
            sets: of_sets.iter().map(|set| SetPlan::new(set, &exprs, &parts, &known)).collect::<Result<_>>()?,
            key_types: known.key_types,
            number_type: sets.map(|(_, number_type)| number_type.clone()),
            partner_keys,
            parts,
            state_of: Vec::new(),
            states: Vec::new(),
        };
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

/// What is known of keys and arguments, whichever set they are for.
struct Known {
    key_types: Vec<LogicalType>,
    key_bounds: Vec<Option<(i128, i128)>>,
    /// Of the argument of each part of which different values count.
    value_bounds: Vec<Option<(i128, i128)>>,
    different: Different,
}

impl Known {
    /// Of keys and arguments of these parts, the keys first.
    fn new(exprs: &[Expr], key_count: usize, parts: &[Part], types: &[LogicalType], pipeline: &Pipeline) -> Known {
        let keys = &exprs[..key_count];
        let value = |part: &Part| part.distinct_output().map(|output| &exprs[output]);
        Known {
            key_types: keys.iter().map(|key| key.type_over(types)).collect(),
            key_bounds: keys.iter().map(|key| bounds(key, pipeline)).collect(),
            value_bounds: parts.iter().map(|part| bounds(value(part)?, pipeline)).collect(),
            different: pipeline.different(keys.iter().chain(parts.iter().filter_map(value))),
        }
    }
}

impl SetPlan {
    fn new(set: &GroupingSet, exprs: &[Expr], parts: &[Part], known: &Known) -> Result<SetPlan> {
        let keys = set.keys.clone();
        let key_types = keys.iter().map(|&key| known.key_types[key].clone()).collect();
        let key_bounds: Vec<_> = keys.iter().map(|&key| known.key_bounds[key]).collect();
        let groups = known.different.groups(keys.iter().map(|&key| &exprs[key]));
        // No more places than what the estimate of a group's bytes has for them.
        let places_max = |groups: usize| groups.saturating_mul(GROUP_BYTES / size_of::<u32>());
        let index = IndexPlan::new(key_types, &key_bounds, places_max(groups));
        let index = index.ok_or_else(|| Error::Unsupported("groups by nested values".into()))?;
        let pairs = parts.iter().zip(&known.value_bounds).map(|(part, value_bounds)| {
            let Some(output) = part.distinct_output() else { return Ok(None) };
            let places_max = places_max(known.different.pairs(groups, &exprs[output]));
            let plan = distinct::plan(&part.argument_type, *value_bounds, places_max, !keys.is_empty());
            plan.map(Some).ok_or_else(|| Error::Unsupported("different nested values".into()))
        });
        let pairs = pairs.collect::<Result<_>>()?;
        Ok(SetPlan { keys, number: set.number, index, pairs })
    }
}
