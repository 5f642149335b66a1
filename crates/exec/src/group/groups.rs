//! The groups that one worker found, how they are merged with those of the others, and how they come out as rows.

use super::either_index::EitherIndex;
use super::merge::Merging;
use super::parted;
use super::plan::GroupPlan;
use super::set::GroupSet;
use super::states::State;
use crate::join::JoinTable;
use crate::memory::Held;
use crate::parallel::threads_for;
use crate::{Batch, Error, Memory, Result};
use sinter_codec::VECTOR_LEN;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The groups of one worker, or of all of them.
#[derive(Debug)]
pub struct Groups {
    pub(super) plan: Arc<GroupPlan>,
    /// The plan's, in its order; of all workers' groups a set is here in as many parts as there were threads to merge it.
    pub(super) sets: Vec<GroupSet>,
    pub(super) memory: Held,
}

impl Groups {
    /// Of a run with these tables of joins.
    ///
    /// # Errors
    /// Those of foreign aggregates.
    pub(crate) fn new(plan: &Arc<GroupPlan>, tables: &[Arc<JoinTable>], memory: &Arc<dyn Memory>) -> Result<Groups> {
        let set = |(index, set)| GroupSet::new(plan, index, EitherIndex::new(plan, set, tables));
        let sets = plan.sets.iter().enumerate().map(set).collect::<Result<_>>()?;
        Ok(Groups { plan: Arc::clone(plan), sets, memory: Held::new(memory) })
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.sets.iter().map(|set| set.index.len()).sum()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The groups that all workers found; so many threads are free.
    ///
    /// # Errors
    /// Those of aggregates, what memory says when it has no more, and [`crate::Error::Cancelled`].
    pub(crate) fn merged(groups: Vec<Groups>, threads: usize, cancelled: &AtomicBool) -> Result<Groups> {
        let mut groups = groups.into_iter();
        let first = groups.next().ok_or_else(|| Error::Unsupported("groups of no thread".into()))?;
        let Groups { plan, sets, mut memory } = first;
        let mut of_sets: Vec<Vec<GroupSet>> = sets.into_iter().map(|set| vec![set]).collect();
        for Groups { sets, memory: more, .. } in groups {
            memory.take_over(more);
            of_sets.iter_mut().zip(sets).for_each(|(workers, set)| workers.push(set));
        }
        let mut merged = Groups { plan, sets: Vec::new(), memory };
        let mut waiting: usize = of_sets.iter().flatten().map(GroupSet::bytes).sum();
        for workers in of_sets {
            waiting -= workers.iter().map(GroupSet::bytes).sum::<usize>();
            merged.add_set(workers, waiting, threads, cancelled)?;
        }
        Ok(merged)
    }

    /// Adds a set of which these are the groups that workers found; so many bytes are of sets that come after it.
    fn add_set(
        &mut self,
        workers: Vec<GroupSet>,
        waiting: usize,
        threads: usize,
        cancelled: &AtomicBool,
    ) -> Result<()> {
        let lens = workers.iter().map(|worker| worker.index.len());
        let parts = threads_for(lens.clone().sum::<usize>() - lens.max().unwrap_or(0), threads);
        let by_group = workers.iter().flat_map(|worker| &worker.states).all(State::merges_by_group);
        let parted = match parts >= parted::PARTS_MIN && by_group {
            true => parted::merged(&self.plan, &workers, parts, &self.memory, cancelled).map(Some),
            false => Ok(None),
        };
        match parted {
            Ok(Some((sets, memory))) => {
                drop(workers);
                self.sets.extend(sets);
                self.memory.take_over(memory);
            }
            // There may be room for one after the other: each is given back once it is merged.
            Ok(None) | Err(Error::OutOfMemory(_)) => self.add_in_turn(workers, waiting, threads, cancelled)?,
            Err(error) => return Err(error),
        }
        let bytes = self.bytes() + waiting;
        self.memory.keep(bytes);
        self.memory.need(bytes)
    }

    /// The same, by looking the groups of one worker up among those of another one.
    fn add_in_turn(
        &mut self,
        workers: Vec<GroupSet>,
        waiting: usize,
        threads: usize,
        cancelled: &AtomicBool,
    ) -> Result<()> {
        let (done, mut workers) = (self.bytes() + waiting, workers.into_iter());
        let Some(mut merged) = workers.next() else { return Ok(()) };
        while let Some(other) = workers.next() {
            let (mut more, fewer) =
                if merged.index.len() < other.index.len() { (other, merged) } else { (merged, other) };
            let there =
                |all: &GroupSet| done + all.bytes() + workers.as_slice().iter().map(GroupSet::bytes).sum::<usize>();
            // What tells which are whose takes four bytes for each of the other's groups, keys and pairs, which take 16 and more.
            self.memory.need(there(&more) + fewer.bytes() + fewer.bytes() / 4)?;
            let is_last = workers.as_slice().is_empty();
            more.merge(fewer, &self.plan, Merging { threads, is_last, cancelled })?;
            let bytes = there(&more);
            self.memory.keep(bytes);
            self.memory.need(bytes)?;
            merged = more;
        }
        merged.finish(&self.plan, cancelled)?;
        self.sets.push(merged);
        Ok(())
    }

    /// Writes groups over `batch`, a vector's worth at most: keys, of GROUPING SETS the number of the set, then
    /// aggregates. `first` is a multiple of [`VECTOR_LEN`]; the groups of each set, and each part of them, begin at the next
    /// one. False when none is left.
    ///
    /// # Errors
    /// [`crate::Error::Overflow`] where a result does not fit its type.
    pub fn read(&self, first: usize, batch: &mut Batch) -> Result<bool> {
        let mut first = first;
        for set in &self.sets {
            let len = set.index.len();
            if first < len {
                let groups = first..len.min(first + VECTOR_LEN);
                batch.rows = groups.len();
                set.read(&self.plan, groups, batch)?;
                return Ok(true);
            }
            match first.checked_sub(len.next_multiple_of(VECTOR_LEN)) {
                Some(beyond) => first = beyond,
                None => break,
            }
        }
        batch.rows = 0;
        Ok(false)
    }

    /// Bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        self.sets.iter().map(GroupSet::bytes).sum()
    }
}
