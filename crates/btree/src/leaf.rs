//! A leaf: the keys of a range with their records, and what they were before commits that somebody must not see.

use crate::input::Damage;
use crate::keys::{DecodedKeys, KeyList, KeyShape, NoRoom, TreeKey, lent};
use crate::records::{RecordShape, Records};
use sinter_storage::{CommitNumber, PageId};
use std::ops::{Deref, Range, RangeBounds};

/// Whoever changes a leaf has no number yet; nobody reads it before he has one, or has taken back what he did.
const UNCOMMITTED: CommitNumber = CommitNumber(u64::MAX);

/// How leaves are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafShape {
    pub(crate) keys: KeyShape,
    pub(crate) records: RecordShape,
    /// Bytes of a full leaf, keys and records together. The border between them is wherever they meet.
    pub(crate) size_max: usize,
}

/// The keys from `low` on and before `high`.
///
/// Not thread-safe: its slot's latch guards it. Invariant: as many records as keys; `undo` is in the order of commits.
#[derive(Debug)]
pub(crate) struct Leaf<K: TreeKey + ?Sized> {
    keys: K::List,
    records: Records,
    /// `None` where no leaf is before this one.
    low: Option<K::Owned>,
    /// `None` where no leaf follows.
    high: Option<K::Owned>,
    /// The last commit that changed it.
    changed_by: CommitNumber,
    undo: Vec<Undo<K::Owned>>,
    /// Bytes that `undo` has allocated beside itself.
    undo_bytes: usize,
    /// A page that has just what is here. `None` from the first change on.
    page: Option<PageId>,
    /// Given anew by the tree whenever a leaf comes to memory, is divided, or takes another in; never twice.
    stamp: u64,
}

/// A leaf after some commit.
#[derive(Debug)]
pub(crate) enum State<'l, K: TreeKey + ?Sized> {
    Newest(&'l Leaf<K>),
    Past(Box<Leaf<K>>),
}

impl<K: TreeKey + ?Sized> Deref for State<'_, K> {
    type Target = Leaf<K>;

    fn deref(&self) -> &Leaf<K> {
        match self {
            State::Newest(leaf) => leaf,
            State::Past(leaf) => leaf,
        }
    }
}

/// What a key's record was before a commit.
#[derive(Clone, Debug)]
struct Undo<K> {
    key: K,
    commit: CommitNumber,
    /// `None` where the key was not there.
    before: Option<Box<[u8]>>,
}

impl<K: TreeKey + ?Sized> Leaf<K> {
    /// A leaf of everything, without keys.
    pub(crate) fn new(shape: &LeafShape) -> Leaf<K> {
        Leaf {
            keys: K::List::new(&shape.keys),
            records: Records::new(shape.records),
            low: None,
            high: None,
            changed_by: CommitNumber(0),
            undo: Vec::new(),
            undo_bytes: 0,
            page: None,
            stamp: 0,
        }
    }

    /// A leaf of these keys and as many records.
    ///
    /// # Errors
    /// A key is out of the bounds.
    pub(crate) fn of_parts(
        keys: K::List,
        records: Records,
        low: Option<K::Owned>,
        high: Option<K::Owned>,
    ) -> Result<Leaf<K>, Damage> {
        let (changed_by, undo) = (CommitNumber(0), Vec::new());
        let leaf = Leaf::<K> { keys, records, low, high, changed_by, undo, undo_bytes: 0, page: None, stamp: 0 };
        let bounds_cross = leaf.low().zip(leaf.high()).is_some_and(|(low, high)| low >= high);
        let is_covered = |index: usize| leaf.covers(lent::<K>(&leaf.keys.get(index)));
        if bounds_cross || (leaf.len() > 0 && !(is_covered(0) && is_covered(leaf.len() - 1))) {
            return Err("keys are out of the leaf's bounds".to_owned());
        }
        Ok(leaf)
    }

    /// How many keys there are, whoever may see them.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes that it has allocated, itself among them.
    pub(crate) fn memory_bytes(&self) -> usize {
        let bounds = self.low().map_or(0, Self::bound_size) + self.high().map_or(0, Self::bound_size);
        let undo = self.undo.capacity() * size_of::<Undo<K::Owned>>() + self.undo_bytes;
        size_of::<Leaf<K>>() + self.keys.memory_bytes() + self.records.memory_bytes() + bounds + undo
    }

    /// Bytes of keys and records.
    pub(crate) fn size(&self) -> usize {
        self.keys.size() + self.records.size()
    }

    pub(crate) fn keys(&self) -> &K::List {
        &self.keys
    }

    pub(crate) fn records(&self) -> &Records {
        &self.records
    }

    pub(crate) fn low(&self) -> Option<&K::Owned> {
        self.low.as_ref()
    }

    pub(crate) fn high(&self) -> Option<&K::Owned> {
        self.high.as_ref()
    }

    /// Bytes of a page that say where it begins and ends. Where there is no end yet, as many as one will take, or so.
    pub(crate) fn bounds_size(&self) -> usize {
        let low = self.low().map_or(0, Self::bound_size);
        low + self.high().map_or_else(|| K::List::NEXT_KEY_SIZE.max(low), Self::bound_size)
    }

    fn bound_size(bound: &K::Owned) -> usize {
        K::List::key_size(lent(bound))
    }

    /// A page that has just what is here, if there is one.
    pub(crate) fn page(&self) -> Option<PageId> {
        self.page
    }

    /// This page has just what is here.
    pub(crate) fn set_page(&mut self, page: PageId) {
        self.page = Some(page);
    }

    /// The leaf is going to be changed: no page has it any more. Returns the one that did.
    pub(crate) fn leave_page(&mut self) -> Option<PageId> {
        self.page.take()
    }

    /// See the field.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    pub(crate) fn set_stamp(&mut self, stamp: u64) {
        self.stamp = stamp;
    }

    /// Whether the key belongs here.
    #[inline]
    pub(crate) fn covers(&self, key: &K) -> bool {
        self.low().is_none_or(|low| lent::<K>(low) <= key) && self.high().is_none_or(|high| key < lent(high))
    }

    /// Whether the key belongs here, or the first of all for `None`.
    pub(crate) fn begins_before(&self, key: Option<&K>) -> bool {
        key.map_or(self.low.is_none(), |key| self.covers(key))
    }

    /// Whether the last key before this one belongs here, or the last of all for `None`.
    pub(crate) fn ends_before(&self, key: Option<&K>) -> bool {
        let Some(key) = key else { return self.high.is_none() };
        self.low().is_none_or(|low| lent::<K>(low) < key) && self.high().is_none_or(|high| key <= lent(high))
    }

    /// Whether all that is here belongs to the state after commit `at`.
    #[inline]
    pub(crate) fn is_of(&self, at: CommitNumber) -> bool {
        self.changed_by <= at
    }

    /// The key's record after commit `at`.
    #[inline]
    pub(crate) fn get(&self, key: &K, at: CommitNumber) -> Option<&[u8]> {
        if !self.is_of(at)
            && let Some(undo) = self.undo.iter().find(|undo| undo.commit > at && lent::<K>(&undo.key) == key)
        {
            return undo.before.as_deref();
        }
        self.newest(key)
    }

    /// The key's record after all commits, visible or not.
    pub(crate) fn newest(&self, key: &K) -> Option<&[u8]> {
        let position = self.keys.position(key);
        position.is_found.then(|| self.records.get(position.index))
    }

    /// The record at `index`.
    ///
    /// # Panics
    /// When there are not so many.
    pub(crate) fn record(&self, index: usize) -> &[u8] {
        self.records.get(index)
    }

    /// Whether a commit after `at` changed any key of the range.
    pub(crate) fn was_changed(&self, range: &impl RangeBounds<K>, at: CommitNumber) -> bool {
        self.has_changed(at, |key| range.contains(lent::<K>(key)))
    }

    /// Whether a commit after `at` changed any of these keys.
    pub(crate) fn has_changed(&self, at: CommitNumber, is_asked: impl Fn(&K::Owned) -> bool) -> bool {
        !self.is_of(at) && self.undo.iter().any(|undo| undo.commit > at && is_asked(&undo.key))
    }

    /// The leaf after commit `at`: itself, if nothing came later.
    pub(crate) fn state_at(&self, at: CommitNumber) -> State<'_, K> {
        if self.is_of(at) { State::Newest(self) } else { State::Past(Box::new(self.as_of(at))) }
    }

    /// What is here, whoever may see it.
    fn without_undo(&self) -> Leaf<K> {
        Leaf {
            keys: self.keys.clone(),
            records: self.records.clone(),
            low: self.low.clone(),
            high: self.high.clone(),
            changed_by: self.changed_by,
            undo: Vec::new(),
            undo_bytes: 0,
            page: None,
            stamp: self.stamp,
        }
    }

    /// The leaf as it was after commit `at`. It may be larger than a full one.
    fn as_of(&self, at: CommitNumber) -> Leaf<K> {
        let mut leaf = self.without_undo();
        for undo in self.undo.iter().rev().take_while(|undo| undo.commit > at) {
            leaf.set(lent(&undo.key), undo.before.as_deref());
        }
        leaf.changed_by = leaf.changed_by.min(at);
        leaf
    }

    /// Gives the key this record, if the leaf takes `size_max` bytes at most then. It is to be committed or rolled back.
    ///
    /// # Errors
    /// [`NoRoom`]: nothing was changed.
    pub(crate) fn put(&mut self, key: &K, record: &[u8], size_max: usize) -> Result<(), NoRoom> {
        let size_of_others = self.records.size() + self.records.size_of(record);
        let position = match size_max.checked_sub(size_of_others) {
            Some(keys_size_max) => self.keys.insert(key, keys_size_max)?,
            // Even so the record may be of no more bytes than the one before.
            None => Some(self.keys.position(key)).filter(|position| position.is_found).ok_or(NoRoom)?,
        };
        if !position.is_found {
            self.records.insert(position.index, record);
            self.remember(key, None);
            return Ok(());
        }
        let before = self.records.get(position.index);
        if self.size() - before.len() + record.len() > size_max && record.len() > before.len() {
            return Err(NoRoom);
        }
        let before = before.into();
        self.remember(key, Some(before));
        self.records.replace(position.index, record);
        Ok(())
    }

    /// Puts some of these keys behind all that are here, which are less, with their records, if the leaf takes `size_max`
    /// bytes at most then. Nobody knows of the leaf yet: nothing is remembered.
    ///
    /// # Errors
    /// [`NoRoom`]: nothing was changed.
    pub(crate) fn append(
        &mut self,
        keys: &[K::Owned],
        records: &Records,
        indices: Range<usize>,
        size_max: usize,
    ) -> Result<(), NoRoom> {
        let records_size = self.records.size() + records.size_of_range(indices.clone());
        self.keys.append(&keys[indices.clone()], size_max.checked_sub(records_size).ok_or(NoRoom)?)?;
        self.records.append(records, indices);
        Ok(())
    }

    /// Lets go of memory that is allocated and not used.
    pub(crate) fn shrink(&mut self) {
        self.keys.shrink();
        self.records.shrink();
    }

    /// Takes the key away, and says whether it was there; to be committed or rolled back. The keys that stay may take more
    /// bytes than with it, in codecs that are not delete-stable.
    ///
    /// # Errors
    /// [`NoRoom`]: nothing was changed.
    pub(crate) fn remove(&mut self, key: &K, size_max: usize) -> Result<bool, NoRoom> {
        let position = self.keys.position(key);
        if !position.is_found {
            return Ok(false);
        }
        let before: Box<[u8]> = self.records.get(position.index).into();
        let records_size = self.records.size() - self.records.size_of(&before);
        // What is too large already, since something was rolled back, may stay so.
        let keys_size_max = size_max.saturating_sub(records_size).max(self.keys.size());
        self.keys.remove(position.index, keys_size_max)?;
        self.records.remove(position.index);
        self.remember(key, Some(before));
        Ok(true)
    }

    /// What the key's record was before a change that has no number yet.
    fn remember(&mut self, key: &K, before: Option<Box<[u8]>>) {
        let undo = Undo { key: key.to_owned(), commit: UNCOMMITTED, before };
        self.undo_bytes += Self::undo_bytes_of(&undo);
        self.undo.push(undo);
    }

    fn undo_bytes_of(undo: &Undo<K::Owned>) -> usize {
        Self::bound_size(&undo.key) + undo.before.as_ref().map_or(0, |before| before.len())
    }

    /// What was put and removed since the last call is of this commit. Of what was before, only those have need who read
    /// states before `horizon`.
    pub(crate) fn commit(&mut self, commit: CommitNumber, horizon: CommitNumber) {
        for undo in self.undo.iter_mut().rev().take_while(|undo| undo.commit == UNCOMMITTED) {
            undo.commit = commit;
        }
        self.changed_by = commit;
        self.forget(horizon);
    }

    /// Forgets what was before commits up to `horizon`, which all who read now and later see.
    pub(crate) fn forget(&mut self, horizon: CommitNumber) {
        let old = self.undo.partition_point(|undo| undo.commit <= horizon);
        if old == self.undo.len() {
            (self.undo, self.undo_bytes) = (Vec::new(), 0);
        } else {
            self.undo_bytes -= self.undo.drain(..old).map(|undo| Self::undo_bytes_of(&undo)).sum::<usize>();
        }
    }

    /// Takes back what was put and removed since the last commit.
    pub(crate) fn roll_back(&mut self) {
        while let Some(undo) = self.undo.pop_if(|undo| undo.commit == UNCOMMITTED) {
            self.undo_bytes -= Self::undo_bytes_of(&undo);
            self.set(lent(&undo.key), undo.before.as_deref());
        }
    }

    /// The last commit that changed it.
    pub(crate) fn changed_by(&self) -> CommitNumber {
        self.changed_by
    }

    /// Whether anything is remembered of what was before.
    pub(crate) fn has_undo(&self) -> bool {
        !self.undo.is_empty()
    }

    /// How many keys and commits it is remembered of.
    pub(crate) fn undo_len(&self) -> usize {
        self.undo.len()
    }

    /// Makes room without a split, if enough is to be gained: half-empty blocks become full ones.
    pub(crate) fn vacuum(&mut self, gain_min: usize) -> bool {
        self.keys.vacuum(gain_min)
    }

    /// Divides a leaf that has no room for `key`: what is returned has the upper part, from the key on that is returned
    /// with it. Where keys come in order, what is there stays together, but for what has no room in `size_max` bytes beside
    /// the leaf's new end.
    pub(crate) fn split(&mut self, key: &K, size_max: usize) -> (K::Owned, Leaf<K>) {
        let len = self.len();
        let between = |before: &K::Owned, from: &K::Owned| K::List::separator(lent(before), lent(from));
        let index = match len.checked_sub(1) {
            Some(last) if self.keys.is_after_all(key) => {
                let end = between(&self.keys.get(last), &key.to_owned());
                let bounds = [self.low.as_ref(), Some(&end)];
                let size_wanted = self.size() + bounds.into_iter().flatten().map(Self::bound_size).sum::<usize>();
                let excess = size_wanted.saturating_sub(size_max);
                len - (excess * len).div_ceil(self.size().max(1)).min(last)
            }
            Some(_) => self.records.middle(len),
            None => 0,
        };
        let from = if index == len { key.to_owned() } else { self.keys.get(index) };
        let separator = match index.checked_sub(1) {
            Some(before) => between(&self.keys.get(before), &from),
            None => from,
        };
        let (upper_undo, undo): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.undo).into_iter().partition(|undo| undo.key >= separator);
        let upper_undo_bytes = upper_undo.iter().map(Self::undo_bytes_of).sum();
        self.undo_bytes -= upper_undo_bytes;
        self.undo = undo;
        let upper = Leaf {
            keys: self.keys.split_off(index),
            records: self.records.split_off(index),
            low: Some(separator.clone()),
            high: self.high.replace(separator.clone()),
            changed_by: self.changed_by,
            undo: upper_undo,
            undo_bytes: upper_undo_bytes,
            page: None,
            stamp: self.stamp,
        };
        (separator, upper)
    }

    /// Takes in the leaf that follows, which has no undo, as this one has none.
    pub(crate) fn absorb(&mut self, upper: &Leaf<K>) {
        let mut block = <K::List as KeyList<K>>::Block::default();
        for block_index in 0..upper.keys.block_count() {
            upper.keys.decode(block_index, &mut block);
            for (within, index) in upper.keys.indices_of(block_index).enumerate() {
                self.set(block.key(within), Some(upper.record(index)));
            }
        }
        self.high.clone_from(&upper.high);
        self.changed_by = self.changed_by.max(upper.changed_by);
    }

    /// Gives the key this record, or none, whatever the leaf takes then.
    fn set(&mut self, key: &K, record: Option<&[u8]>) {
        let Some(record) = record else {
            let position = self.keys.position(key);
            if position.is_found {
                self.keys.remove(position.index, usize::MAX).expect("there is no limit");
                self.records.remove(position.index);
            }
            return;
        };
        let position = self.keys.insert(key, usize::MAX).expect("there is no limit");
        if position.is_found {
            self.records.replace(position.index, record);
        } else {
            self.records.insert(position.index, record);
        }
    }
}
