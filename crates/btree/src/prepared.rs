//! A commit of many keys, from the latches to the number: what a transaction changes in a tree, and what it has read there.
//!
//! All leaves that have something of either are latched in the order of keys, so that two who do that at once come to no
//! standstill; those that are only read from are shared. Then it shows whether what was read still holds, and nothing
//! changes any more until the commit is settled. A transaction that changes several trees prepares one after the other, in
//! an order that is the same for all.

use crate::Result;
use crate::change::Changes;
use crate::keys::{TreeKey, lent};
use crate::slots::{Place, ReadLatch, WriteLatch};
use crate::sync::{Arc, PoisonError};
use crate::tree::Tree;
use crate::work::Work;
use sinter_storage::{CommitNumber, Numbered};
use std::fmt;
use std::ops::Bound;

/// Keys from here to there.
pub type KeyRange<K> = (Bound<<K as ToOwned>::Owned>, Bound<<K as ToOwned>::Owned>);

/// What was read of a tree, in the state after one commit.
pub struct Reads<K: TreeKey + ?Sized> {
    at: CommitNumber,
    /// In the order of where they begin; none overlap.
    ranges: Vec<KeyRange<K>>,
    /// The keys that are changed were read, too.
    has_changed_keys: bool,
}

impl<K: TreeKey + ?Sized> Reads<K> {
    /// Nothing.
    pub fn none() -> Reads<K> {
        Reads { at: CommitNumber(0), ranges: Vec::new(), has_changed_keys: false }
    }

    /// All keys of these ranges, there or not. What commits after `at` have changed is to be remembered until the reads are
    /// validated ([`Numbered::horizon`]).
    pub fn new(at: CommitNumber, mut ranges: Vec<KeyRange<K>>) -> Reads<K> {
        let order =
            |start: &Bound<K::Owned>| (key_of::<K>(start).map(ToOwned::to_owned), matches!(start, Bound::Excluded(_)));
        ranges.sort_by_cached_key(|(start, _)| order(start));
        let mut apart: Vec<KeyRange<K>> = Vec::new();
        for (start, end) in ranges {
            let touches = |last: &Bound<K::Owned>| match (key_of::<K>(last), key_of::<K>(&start)) {
                (Some(last), Some(start)) => start <= last,
                _ => true,
            };
            match apart.last_mut() {
                Some((_, last)) if touches(last) => {
                    let is_further = match (key_of::<K>(last), key_of::<K>(&end)) {
                        (None, _) => false,
                        (Some(_), None) => true,
                        (Some(last), Some(key)) => last < key || (last == key && matches!(end, Bound::Included(_))),
                    };
                    if is_further {
                        *last = end;
                    }
                }
                _ => apart.push((start, end)),
            }
        }
        Reads { at, ranges: apart, has_changed_keys: false }
    }

    /// The same, and each key that is changed.
    #[must_use]
    pub fn and_changed_keys(self) -> Reads<K> {
        Reads { has_changed_keys: true, ..self }
    }

    /// The ranges, in the order of where they begin; none overlap.
    pub fn into_ranges(self) -> Vec<KeyRange<K>> {
        self.ranges
    }

    /// Whether a later commit changed any of that in this leaf, of which `changes` are to be made.
    fn were_changed(&self, place: &Place<K>, changes: &Changes<K>) -> bool {
        // Of a leaf that is in a page only nothing is remembered, so nothing was changed.
        let Some(leaf) = place.leaf().filter(|leaf| !leaf.is_of(self.at)) else { return false };
        let lent_range =
            |(start, end): &KeyRange<K>| leaf.was_changed(&(lent_bound::<K>(start), lent_bound::<K>(end)), self.at);
        self.ranges.iter().any(lent_range)
            || (self.has_changed_keys && leaf.has_changed(self.at, |key| changes.contains_key::<K::Owned>(key)))
    }
}

impl<K: TreeKey + ?Sized> fmt::Debug for Reads<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reads").field("at", &self.at).field("ranges", &self.ranges).finish()
    }
}

fn key_of<K: TreeKey + ?Sized>(bound: &Bound<K::Owned>) -> Option<&K> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(lent(key)),
        Bound::Unbounded => None,
    }
}

fn lent_bound<K: TreeKey + ?Sized>(bound: &Bound<K::Owned>) -> Bound<&K> {
    bound.as_ref().map(lent::<K>)
}

/// Changes of a tree that want nothing but a number. Dropped without, they have never been.
pub struct Prepared<'t, K: TreeKey + ?Sized> {
    tree: &'t Tree<K>,
    work: Vec<Work<'t, K>>,
    _reading: Vec<ReadLatch<'t, K>>,
}

impl<K: TreeKey + ?Sized> Prepared<'_, K> {
    /// They are of this commit. Once all trees of the transaction have settled theirs, and nothing is latched any more,
    /// [`Tree::merge_sparse`] may find something to do.
    pub fn settle(mut self, numbered: &Numbered) {
        std::mem::take(&mut self.work).into_iter().for_each(|work| self.tree.settle(work, Some(numbered)));
    }
}

impl<K: TreeKey + ?Sized> Drop for Prepared<'_, K> {
    fn drop(&mut self) {
        std::mem::take(&mut self.work).into_iter().for_each(|work| self.tree.settle(work, None));
    }
}

impl<K: TreeKey + ?Sized> fmt::Debug for Prepared<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("leaves", &self.work.len()).finish_non_exhaustive()
    }
}

/// Leaves in the order of keys.
struct Latched<'t, K: TreeKey + ?Sized> {
    changing: Vec<WriteLatch<'t, K>>,
    reading: Vec<ReadLatch<'t, K>>,
}

impl<K: TreeKey + ?Sized> Tree<K> {
    /// Makes changes that wait for a commit's number, with all leaves latched that they are in, and all that `reads` are
    /// of. `None`: some of that has changed since it was read.
    ///
    /// # Errors
    /// A leaf cannot be read, or memory is wanting; nothing was changed.
    ///
    /// # Panics
    /// As [`Tree::change`].
    pub fn prepare(&self, changes: &Changes<K>, reads: &Reads<K>) -> Result<Option<Prepared<'_, K>>> {
        self.make_room(changes.iter().map(|(key, record)| self.check(lent(key), record.as_deref())).sum())?;
        loop {
            let Some(Latched { changing, reading }) = self.latch_all(changes, reads)? else { continue };
            if changing.iter().any(|latch| reads.were_changed(latch, changes))
                || reading.iter().any(|latch| reads.were_changed(latch, changes))
            {
                return Ok(None);
            }
            let mut work: Vec<Work<'_, K>> = changing.into_iter().map(|latch| Work::new(self, latch)).collect();
            let mut changes = changes.iter().peekable();
            for work in &mut work {
                let end = work.end();
                while let Some((key, record)) = changes.next_if(|(key, _)| end.as_ref().is_none_or(|end| *key < end)) {
                    self.apply(work, lent(key), record.as_deref());
                }
            }
            return Ok(Some(Prepared { tree: self, work, _reading: reading }));
        }
    }

    /// Latches the leaves of all these keys and ranges, in their order; `None` where the directory is too old for them.
    fn latch_all(&self, changes: &Changes<K>, reads: &Reads<K>) -> Result<Option<Latched<'_, K>>> {
        let _no_removal = self.removal.read().unwrap_or_else(PoisonError::into_inner);
        let directory = Arc::clone(&self.directory.read());
        let mut latched = Latched { changing: Vec::new(), reading: Vec::new() };
        let mut keys = changes.keys().map(lent::<K>).peekable();
        let mut ranges = reads.ranges.iter().map(|(start, end)| (key_of::<K>(start), key_of::<K>(end))).peekable();
        // All before this key is latched; nothing, where there is none.
        let (mut covered, mut last): (Option<K::Owned>, _) = (None, None);
        loop {
            let from = covered.as_ref().map(lent::<K>);
            while keys.next_if(|key| from.is_some_and(|from| *key < from)).is_some() {}
            while ranges.next_if(|(_, end)| from.zip(*end).is_some_and(|(from, end)| end < from)).is_some() {}
            let key = keys.peek().copied();
            let range = ranges.peek().map(|(start, _)| (*start).max(from));
            let next = match (key, range) {
                (None, None) => return Ok(Some(latched)),
                (Some(key), None) => Some(key),
                (None, Some(start)) => start,
                (Some(key), Some(start)) => start.min(Some(key)),
            };
            let (slot, end) = directory.leaf_and_end(next);
            // A leaf that was split since is latched already, and has not this key any more.
            if last == Some(slot) {
                return Ok(None);
            }
            last = Some(slot);
            let is_changed = key.is_some_and(|key| end.is_none_or(|end| key < lent::<K>(end)));
            let high = match is_changed {
                true => {
                    let mut latch = self.slots.write(slot);
                    self.load(slot, &mut latch)?;
                    let Some(leaf) = latch.leaf().filter(|leaf| leaf.begins_before(next)) else { return Ok(None) };
                    let high = leaf.high().cloned();
                    latched.changing.push(latch);
                    high
                }
                false => {
                    let latch = self.slots.read(slot);
                    let newest = self.directory.read();
                    let high = match &*latch {
                        Place::Resident(leaf) if leaf.begins_before(next) => leaf.high(),
                        Place::Paged(_) => match newest.leaf_and_end(next) {
                            (found, high) if found == slot => high,
                            _ => return Ok(None),
                        },
                        Place::Nowhere | Place::Resident(_) => return Ok(None),
                    };
                    let high = high.cloned();
                    latched.reading.push(latch);
                    high
                }
            };
            match high {
                Some(high) => covered = Some(high),
                None => return Ok(Some(latched)),
            }
        }
    }
}
