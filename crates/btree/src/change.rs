//! Changes that are committed: of one key under a condition, and of many.

use crate::keys::{LEN_MAX, TreeKey, lent};
use crate::prepared::Reads;
use crate::records::RecordShape;
use crate::slots::Place;
use crate::sync::atomic::Ordering;
use crate::sync::{MutexGuard, PoisonError};
use crate::tree::Tree;
use crate::work::Work;
use crate::{Error, Result};
use sinter_storage::{CommitNumber, Numbered};
use std::collections::BTreeMap;
use std::fmt;

/// What is remembered of a change, beside key and record.
const UNDO_BYTES: usize = 48;

/// What a transaction does to a tree: by key a record, or none where the key goes.
pub type Changes<K> = BTreeMap<<K as ToOwned>::Owned, Option<Box<[u8]>>>;

/// When a change is to be made.
#[derive(Clone, Copy)]
pub enum Condition<'a> {
    /// Whatever is there.
    Always,
    /// Where the key has no record.
    Absent,
    /// Where it has one.
    Present,
    /// Where it has just this one.
    Equals(&'a [u8]),
    /// Where this says so of its record. It is to be quick: the key's leaf is latched.
    Where(&'a (dyn Fn(Option<&[u8]>) -> bool + Sync)),
}

impl Condition<'_> {
    /// Whether it does, where `newest` tells the key's record.
    pub fn holds<'l>(&self, newest: impl FnOnce() -> Option<&'l [u8]>) -> bool {
        match self {
            Condition::Always => true,
            Condition::Absent => newest().is_none(),
            Condition::Present => newest().is_some(),
            Condition::Equals(record) => newest() == Some(record),
            Condition::Where(holds) => holds(newest()),
        }
    }
}

impl fmt::Debug for Condition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Condition::Always => "Always",
            Condition::Absent => "Absent",
            Condition::Present => "Present",
            Condition::Equals(_) => "Equals",
            Condition::Where(_) => "Where",
        })
    }
}

impl<K: TreeKey + ?Sized> Tree<K> {
    /// Changes one key, in a commit of its own: gives it this record, or takes it away, if `condition` holds. Returns
    /// whether it did. Conditions are asked of what is committed, whether it is visible yet or not: whoever goes on from
    /// there becomes durable no sooner than what he saw.
    ///
    /// # Errors
    /// Those of `number`, of reading the leaf, and of want of memory: nothing was changed.
    ///
    /// # Panics
    /// When the key is longer than [`Tree::key_bytes_max`], or the record than [`Tree::record_bytes_max`] or of another
    /// length than all.
    pub fn change<E: From<Error>>(
        &self,
        key: &K,
        record: Option<&[u8]>,
        condition: Condition<'_>,
        number: impl FnOnce() -> Result<Numbered, E>,
    ) -> Result<bool, E> {
        self.make_room(self.check(key, record))?;
        loop {
            let directory = self.directory.read();
            let slot = directory.leaf_of(key);
            let mut latch = self.slots.write(slot);
            self.load(slot, &mut latch)?;
            let Some(leaf) = latch.leaf().filter(|leaf| leaf.covers(key)) else { continue };
            if !condition.holds(|| leaf.newest(key)) {
                return Ok(false);
            }
            let mut work = Work::new(self, latch);
            self.apply(&mut work, key, record);
            let numbered = number();
            self.settle(work, numbered.as_ref().ok());
            drop(directory);
            return numbered.map(|numbered| {
                self.merge_sparse(numbered.horizon);
                true
            });
        }
    }

    /// Commits changes of many keys: all their leaves are latched when `number` is asked for the commit's place.
    ///
    /// # Errors
    /// Those of `number`, of reading the leaves, and of want of memory: nothing was changed.
    ///
    /// # Panics
    /// As [`Tree::change`].
    pub fn commit<E: From<Error>>(
        &self,
        changes: &Changes<K>,
        number: impl FnOnce() -> Result<Numbered, E>,
    ) -> Result<Numbered, E> {
        let prepared = self.prepare(changes, &Reads::none())?;
        let prepared = prepared.expect("what was not read has not changed");
        let numbered = number()?;
        prepared.settle(&numbered);
        self.merge_sparse(numbered.horizon);
        Ok(numbered)
    }

    /// About how many bytes of memory the change takes.
    ///
    /// # Panics
    /// As [`Tree::change`].
    pub(crate) fn check(&self, key: &K, record: Option<&[u8]>) -> usize {
        let key_bytes = key.byte_len();
        assert!(key_bytes <= self.key_bytes_max(), "a key of {key_bytes} bytes");
        // The key and a record stay, and both are remembered.
        let mut bytes = 2 * key_bytes + UNDO_BYTES;
        if let Some(record) = record {
            assert!(record.len() <= self.record_bytes_max(), "a record of {} bytes", record.len());
            if let RecordShape::Fixed(width) = self.shape.records {
                assert!(record.len() == width, "a record of {} bytes, where all have {width}", record.len());
            }
            bytes += 2 * record.len();
        }
        bytes
    }

    /// Until the same number of [`Tree::release_leaves`] no leaf is taken out.
    pub(crate) fn hold_leaves(&self) {
        *self.removal.write().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    pub(crate) fn release_leaves(&self) {
        *self.removal.write().unwrap_or_else(PoisonError::into_inner) -= 1;
    }

    pub(crate) fn sparse(&self) -> MutexGuard<'_, Vec<(CommitNumber, K::Owned)>> {
        self.sparse.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Merges leaves that became nearly empty by commits up to `horizon`, so that nobody has need of what was before. To be
    /// called with nothing latched, in this tree or another: whoever latches here may wait for that.
    pub fn merge_sparse(&self, horizon: CommitNumber) {
        if !self.has_sparse.load(Ordering::Acquire) {
            return;
        }
        if *self.removal.read().unwrap_or_else(PoisonError::into_inner) > 0 {
            return;
        }
        let mut lows = {
            let mut sparse = self.sparse();
            let lows: Vec<_> = sparse.extract_if(.., |(commit, _)| *commit <= horizon).map(|(_, low)| low).collect();
            self.has_sparse.store(!sparse.is_empty(), Ordering::Release);
            lows
        };
        // From behind: who merges takes in what follows.
        lows.sort_unstable();
        lows.dedup();
        for low in lows.into_iter().rev() {
            // Where keys only grow, no other delete would come back to it.
            if let Some(high) = self.merge(lent(&low), horizon) {
                self.merge(lent(&high), horizon);
            }
        }
    }

    /// Gives the keys of a leaf to the one before it, if both fit well into one; once nobody needs what they were. Where they do
    /// not fit, returns where the leaf ends.
    fn merge(&self, low: &K, horizon: CommitNumber) -> Option<K::Owned> {
        let walks = self.removal.write().unwrap_or_else(PoisonError::into_inner);
        if *walks > 0 {
            drop(walks);
            // When the walk is over.
            self.sparse().push((horizon, low.to_owned()));
            self.has_sparse.store(true, Ordering::Release);
            return None;
        }
        let (before, slot) = {
            let directory = self.directory.read();
            (directory.leaf_before(Some(low)), directory.leaf_of(low))
        };
        if before == slot {
            return None;
        }
        let (mut lower, mut upper) = (self.slots.write(before), self.slots.write(slot));
        if self.load(before, &mut lower).is_err() || self.load(slot, &mut upper).is_err() {
            return None;
        }
        let (Some(leaf), Some(other)) = (lower.leaf_mut(), upper.leaf_mut()) else { return None };
        let are_neighbours =
            [leaf.high(), other.low()].iter().all(|bound| bound.is_some_and(|bound| lent::<K>(bound) == low));
        // An empty one adds its bound. The last one would soon be there again.
        let bytes_of = |bound: Option<&K::Owned>| bound.map(|bound| lent::<K>(bound).byte_len());
        let size_max = match bytes_of(other.high()).filter(|_| other.len() == 0) {
            Some(bound_bytes) => self.shape.size_max.saturating_sub(bound_bytes),
            None => self.shape.size_max / 4 * 3,
        };
        let fit = leaf.size() + other.size() <= size_max && leaf.len() + other.len() <= LEN_MAX;
        if !are_neighbours || !fit {
            return other.high().filter(|_| are_neighbours).cloned();
        }
        let before = leaf.memory_bytes() + other.memory_bytes();
        leaf.forget(horizon);
        other.forget(horizon);
        if leaf.has_undo() || other.has_undo() {
            self.note_memory(before, leaf.memory_bytes() + other.memory_bytes());
            // When nobody needs that any more.
            self.sparse().push((leaf.changed_by().max(other.changed_by()), low.to_owned()));
            self.has_sparse.store(true, Ordering::Release);
            return None;
        }
        let _structure = self.structure.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.directory.read().without(low)?;
        leaf.absorb(other);
        leaf.set_stamp(self.stamp());
        let pages = [leaf.leave_page(), other.leave_page()];
        self.note_memory(before, leaf.memory_bytes());
        self.note_leaves(-1);
        *upper = Place::Nowhere;
        self.directory.replace(next);
        self.slots.give_back(slot);
        pages.into_iter().for_each(|page| self.give_up(page));
        None
    }
}
