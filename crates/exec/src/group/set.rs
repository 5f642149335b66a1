//! The groups by one set of keys: how they are found, and what is kept of them.

use super::either_index::EitherIndex;
use super::merge::{GROUPS_MIN, Merging};
use super::plan::GroupPlan;
use super::states::{Counts, State};
use crate::parallel::deal;
use crate::{Batch, Result, Vector};
use sinter_codec::Scalar;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// The groups by one set of keys, or a part of them.
#[derive(Debug)]
pub(super) struct GroupSet {
    /// Which of the plan's.
    pub(super) set_index: usize,
    /// Which group a row is of.
    pub(super) index: EitherIndex,
    /// How many rows each group has.
    pub(super) rows: Counts,
    /// Of the aggregates, in the order of the plan's states.
    pub(super) states: Vec<State>,
}

impl GroupSet {
    /// With what groups are found by, of which there are none yet.
    pub(super) fn new(plan: &GroupPlan, set_index: usize, index: EitherIndex) -> Result<GroupSet> {
        let set = &plan.sets[set_index];
        let has_keys = !set.keys.is_empty();
        let state = |&part: &usize| State::new(&plan.parts[part], set.pairs[part].as_ref(), has_keys);
        let states = plan.states.iter().map(state).collect::<Result<_>>()?;
        Ok(GroupSet { set_index, index, rows: Counts::default(), states })
    }

    /// Takes over the groups of another worker.
    pub(super) fn merge(&mut self, other: GroupSet, plan: &GroupPlan, merging: Merging<'_>) -> Result<()> {
        let GroupSet { mut index, rows, states, .. } = other;
        let map = self.index.merge(&mut index, plan.sets[self.set_index].keys.len(), merging)?;
        let group_count = self.index.len();
        drop(index);
        let GroupSet { rows: counts, states: own_states, .. } = self;
        let pairs = map.iter().map(|&ours| ours as usize).enumerate();
        let merge_rows = || -> Result<()> {
            counts.merge(&rows, pairs, group_count);
            Ok(())
        };
        let merge_states = || -> Result<()> {
            let mut both = own_states.iter_mut().zip(states);
            both.try_for_each(|(state, other)| state.merge(other, &map, group_count, merging))
        };
        // Side by side, where that is worth a thread.
        let pieces: Vec<Box<dyn FnOnce() -> Result<()> + Send + '_>> =
            vec![Box::new(merge_rows), Box::new(merge_states)];
        let threads = if map.len() >= GROUPS_MIN { merging.threads } else { 1 };
        deal(pieces, threads, |piece| piece()).into_iter().collect()
    }

    /// Makes what can only be made once no more rows come.
    ///
    /// # Errors
    /// As [`Groups::merged`](super::Groups::merged).
    pub(super) fn finish(&mut self, plan: &GroupPlan, cancelled: &AtomicBool) -> Result<()> {
        if let (true, EitherIndex::Keys(index)) = (plan.sets[self.set_index].keys.is_empty(), &mut self.index) {
            // All rows are one group, even where there are none.
            index.number(&[], 1, &mut Vec::new())?;
        }
        let group_count = self.index.len();
        for (state, &part) in self.states.iter_mut().zip(&plan.states) {
            state.finish(&plan.parts[part], group_count, cancelled)?;
        }
        self.index.settle();
        Ok(())
    }

    /// Writes some groups, as [`Groups::read`](super::Groups::read) says.
    pub(super) fn read(&self, plan: &GroupPlan, groups: Range<usize>, batch: &mut Batch) -> Result<()> {
        let (set, key_count) = (&plan.sets[self.set_index], plan.key_types.len());
        let number_count = usize::from(plan.number_type.is_some());
        batch.columns.resize_with(key_count + number_count + plan.parts.len(), Vector::default);
        let (keys, others) = batch.columns.split_at_mut(key_count);
        let (number, results) = others.split_at_mut(number_count);
        match (&plan.number_type, number) {
            (Some(number_type), [number]) => {
                let mut present = vec![Vector::default(); set.keys.len()];
                self.index.keys(groups.clone(), &mut present);
                for (key, (out, ty)) in keys.iter_mut().zip(&plan.key_types).enumerate() {
                    *out = match set.keys.iter().position(|&own| own == key) {
                        Some(place) => std::mem::take(&mut present[place]),
                        None => Vector::of_nulls(ty, groups.len())?,
                    };
                }
                *number = Vector::of_equal(&Scalar::Int(set.number), number_type)?;
            }
            _ => self.index.keys(groups.clone(), keys),
        }
        for ((part, &state), out) in plan.parts.iter().zip(&plan.state_of).zip(results) {
            self.states[state].results(part, &self.rows, groups.clone(), out)?;
        }
        Ok(())
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.index.bytes() + self.rows.bytes() + self.states.iter().map(State::bytes).sum::<usize>()
    }
}
