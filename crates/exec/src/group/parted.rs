//! Many groups of several workers, merged by parts: equal keys are of one part, whoever met them. So each thread makes the
//! groups of a part from those of all workers, and once all groups have a part, nobody waits for anybody. A text that is a
//! key beside others may come to stand in several parts.

use super::plan::GroupPlan;
use super::sink::GroupSet;
use crate::Result;
use crate::error::check_cancelled;
use crate::memory::Held;
use crate::parallel::each;
use foldhash::fast::RandomState;
use sinter_codec::VECTOR_LEN;
use std::sync::atomic::AtomicBool;

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
    let parted = each(workers.iter().collect(), |worker: &GroupSet| worker.parts(part_count, &hasher, cancelled))?;
    let emptied = (0..part_count).map(|_| workers[0].emptied(plan)).collect::<Result<Vec<_>>>()?;
    let made = each(emptied.into_iter().enumerate().collect(), |(part, mut merged): (usize, GroupSet)| {
        let mut held = memory.other();
        for (worker, parts) in workers.iter().zip(&parted) {
            merged.merge_some(worker, &parts[part], plan, &mut held, cancelled)?;
        }
        merged.finish(plan, cancelled)?;
        held.need(merged.bytes())?;
        Ok((merged, held))
    })?;
    let (mut sets, mut held) = (Vec::with_capacity(part_count), memory.other());
    for (set, more) in made {
        sets.push(set);
        held.take_over(more);
    }
    Ok((sets, held))
}

impl GroupSet {
    /// Which groups are of each part.
    fn parts(&self, part_count: usize, hasher: &RandomState, cancelled: &AtomicBool) -> Result<Vec<Vec<u32>>> {
        let mut parts = vec![Vec::new(); part_count];
        let (len, mut hashes) = (self.index.len(), Vec::new());
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
        GroupSet::new(plan, self.number, self.index.emptied(plan, &plan.sets[self.number])?)
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
        let key_count = plan.sets[self.number].keys.len();
        let map = self.index.merge_some(&other.index, groups.iter().copied(), key_count, cancelled)?;
        let group_count = self.index.len();
        let pairs = groups.iter().zip(&map).map(|(&theirs, &ours)| (theirs as usize, ours as usize));
        self.rows.merge(&other.rows, pairs.clone(), group_count);
        let mut both = self.states.iter_mut().zip(&other.states);
        both.try_for_each(|(state, other)| state.merge_groups(other, pairs.clone(), group_count))?;
        memory.need(self.bytes())
    }
}
