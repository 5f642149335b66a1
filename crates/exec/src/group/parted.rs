//! Many groups of several workers, merged by parts: equal keys are of one part, whoever met them. So each thread makes the
//! groups of a part from those of all workers, and once all groups have a part, nobody waits for anybody. A text that is a
//! key beside others may come to stand in several parts.

use super::plan::GroupPlan;
use super::set::GroupSet;
use crate::Result;
use crate::error::check_cancelled;
use crate::memory::Held;
use crate::parallel::try_on_each;
use foldhash::fast::RandomState;
use sinter_codec::VECTOR_LEN;
use std::sync::atomic::{AtomicBool, Ordering};

/// With fewer threads, groups of one worker are looked up among those of another one in less time.
pub(super) const PARTS_MIN: usize = 3;

/// The groups of all workers by one set of keys, of which there are some, in so many parts, each made by a thread; and what
/// they hold of the same memory as `memory`. Workers keep what they have.
///
/// # Errors
/// Those of aggregates, what memory says when it has no more, and [`crate::Error::Cancelled`].
pub(super) fn merged(
    plan: &GroupPlan,
    workers: &[GroupSet],
    part_count: usize,
    memory: &Held,
    cancelled: &AtomicBool,
) -> Result<(Vec<GroupSet>, Held)> {
    let mut lists = memory.other();
    lists.need(workers.iter().map(|worker| worker.index.len() * size_of::<u32>()).sum())?;
    let hasher = RandomState::default();
    let parted =
        try_on_each(workers.iter().collect(), |worker: &GroupSet| worker.parts(part_count, &hasher, cancelled))?;
    // What comes of them is about as large as what the worker with most has, at least.
    let largest = workers.iter().map(GroupSet::bytes).max().unwrap_or(0) / part_count;
    let emptied = |_| -> Result<(GroupSet, Held)> {
        let mut held = memory.other();
        held.need(largest)?;
        Ok((workers[0].emptied(plan)?, held))
    };
    let emptied = (0..part_count).map(emptied).collect::<Result<Vec<_>>>()?;
    let is_given_up = AtomicBool::new(false);
    let made = try_on_each(emptied.into_iter().enumerate().collect(), |(part, (mut merged, mut held))| {
        let mut make = || -> Result<bool> {
            for (worker, parts) in workers.iter().zip(&parted) {
                if is_given_up.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                merged.merge_some(worker, &parts[part], plan, &mut held, cancelled)?;
            }
            merged.finish(plan, cancelled)?;
            held.need(merged.bytes())?;
            Ok(true)
        };
        let is_whole = make().inspect_err(|_| is_given_up.store(true, Ordering::Relaxed))?;
        Ok(is_whole.then_some((merged, held)))
    })?;
    let (mut sets, mut held) = (Vec::with_capacity(part_count), memory.other());
    // Where a part is not whole, there was an error.
    for (set, more) in made.into_iter().flatten() {
        sets.push(set);
        held.take_over(more);
    }
    Ok((sets, held))
}

impl GroupSet {
    /// Which groups are of each part.
    fn parts(&self, part_count: usize, hasher: &RandomState, cancelled: &AtomicBool) -> Result<Vec<Vec<u32>>> {
        let (len, mut hashes) = (self.index.len(), Vec::new());
        // An eighth more than each has on average, as hashes are.
        let mut parts = (0..part_count).map(|_| Vec::with_capacity(len / part_count * 9 / 8)).collect::<Vec<_>>();
        for first in (0..len).step_by(VECTOR_LEN) {
            check_cancelled(cancelled)?;
            let groups = first..len.min(first + VECTOR_LEN);
            self.index.hashes(groups.clone(), hasher, &mut hashes);
            for (group, &hash) in groups.zip(&hashes) {
                let part = (u128::from(hash) * part_count as u128) >> u64::BITS;
                parts[part as usize].push(group as u32);
            }
        }
        Ok(parts)
    }

    /// No group yet, of a part of the same keys.
    fn emptied(&self, plan: &GroupPlan) -> Result<GroupSet> {
        GroupSet::new(plan, self.set_index, self.index.emptied(plan, &plan.sets[self.set_index])?)
    }

    /// Takes over some groups of a worker.
    fn merge_some(
        &mut self,
        other: &GroupSet,
        groups: &[u32],
        plan: &GroupPlan,
        memory: &mut Held,
        cancelled: &AtomicBool,
    ) -> Result<()> {
        // Theirs, and which of ours they are.
        let theirs = (other.bytes() as u128 * groups.len() as u128 / other.index.len().max(1) as u128) as usize;
        memory.need(self.bytes() + theirs + size_of_val(groups))?;
        let key_count = plan.sets[self.set_index].keys.len();
        let map = self.index.merge_some(&other.index, groups.iter().copied(), key_count, cancelled)?;
        let group_count = self.index.len();
        let pairs = groups.iter().zip(&map).map(|(&theirs, &ours)| (theirs as usize, ours as usize));
        self.rows.merge(&other.rows, pairs.clone(), group_count);
        let mut both = self.states.iter_mut().zip(&other.states);
        both.try_for_each(|(state, other)| state.merge_groups(other, pairs.clone(), group_count))?;
        memory.need(self.bytes())
    }
}
