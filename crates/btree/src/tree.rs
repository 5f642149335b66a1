//! The tree: from a key to its leaf, and changes that are committed.

use crate::cursor::Cursor;
use crate::directory::Directory;
use crate::keys::{IntegerBlock, IntegerKey, KeyList, KeyShape, LEN_MAX, NoRoom, TreeKey, lent};
use crate::leaf::{Leaf, LeafShape};
use crate::published::Published;
use crate::records::RecordShape;
use crate::slots::{ReadLatch, SlotIndex, Slots, WriteLatch};
use crate::sync::{Arc, Mutex, PoisonError, RwLock};
use sinter_codec::{KEYS_MAX, KeyCodec};
use sinter_storage::CommitNumber;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, RangeBounds};

/// A full leaf is vacuumed before it is split, where that gains this part of it.
const VACUUM_DIVISOR: usize = 16;

/// A leaf is merged with its neighbour where it has this part of what it could, and both together three quarters.
const NEARLY_EMPTY_DIVISOR: usize = 8;

/// How a tree keeps its keys and records.
#[derive(Clone, Copy, Debug)]
pub struct TreeOptions {
    /// How keys that are integers are written in leaves; bytes are written without what each shares with the one before.
    pub codec: KeyCodec,
    /// Keys of a full block, 2 to [`KEYS_MAX`]. The paper (section 4.3.2) has 128 for BP128 and 256 for the others.
    pub block_len: usize,
    /// What the records look like.
    pub records: RecordShape,
    /// Bytes of a full leaf, from 1 to 16 KiB.
    pub leaf_bytes: usize,
}

impl TreeOptions {
    /// 16 KiB leaves of these records, with integers in this codec.
    pub fn new(codec: KeyCodec, records: RecordShape) -> TreeOptions {
        let block_len = match codec {
            KeyCodec::Bp128D1 | KeyCodec::Bp128D4 | KeyCodec::Bp128Transposed => 128,
            _ => KEYS_MAX,
        };
        TreeOptions { codec, block_len, records, leaf_bytes: 16 << 10 }
    }
}

/// What a transaction does to a tree: by key a record, or none where the key goes.
pub type Changes<K> = BTreeMap<<K as ToOwned>::Owned, Option<Box<[u8]>>>;

/// The place of a commit among all, and up to which one nobody will ask for what was before.
#[derive(Clone, Copy, Debug)]
pub struct Numbered {
    /// The number.
    pub commit: CommitNumber,
    /// Everybody who reads, now or later, sees all commits up to this one. It may be `commit` itself.
    pub horizon: CommitNumber,
}

/// An ordered map from keys to records, of which every state that somebody may still see can be read.
///
/// Thread-safe: any number of threads read and change it at once. Locks are taken in the order `removal`, latches in the order
/// of keys, `structure`, free slots; readers have one latch at a time.
pub struct Tree<K: TreeKey + ?Sized> {
    shape: LeafShape,
    slots: Slots<K>,
    directory: Published<Directory<K>>,
    /// Held by whoever makes the next directory.
    structure: Mutex<()>,
    /// Held alone by whoever takes a leaf out, and shared by whoever latches several: so a slot cannot get another leaf,
    /// out of the order of keys, between the look at the directory and the latch.
    removal: RwLock<()>,
}

impl<K: TreeKey + ?Sized> Tree<K> {
    /// A tree without keys.
    ///
    /// # Panics
    /// When options are out of their ranges.
    pub fn new(options: TreeOptions) -> Tree<K> {
        let TreeOptions { codec, block_len, records, leaf_bytes } = options;
        assert!((1 << 10..=16 << 10).contains(&leaf_bytes), "leaves of {leaf_bytes} bytes");
        let shape = LeafShape { keys: KeyShape { codec, block_len }, records, size_max: leaf_bytes };
        let slots = Slots::new();
        let directory = Published::new(Directory::new(slots.add(Leaf::new(&shape))));
        Tree { shape, slots, directory, structure: Mutex::new(()), removal: RwLock::new(()) }
    }

    /// The longest record that a leaf takes in.
    pub fn record_bytes_max(&self) -> usize {
        self.shape.size_max / 4
    }

    /// Shows the key's record to `use_it`, as it is after the commit that `at` names; it is asked once the leaf is latched,
    /// so that who wants the newest of what is visible need not announce himself before.
    #[inline]
    pub fn get<R>(&self, key: &K, at: impl FnOnce() -> CommitNumber, use_it: impl FnOnce(Option<&[u8]>) -> R) -> R {
        loop {
            let directory = self.directory.read();
            let latch = self.slots.read(directory.leaf_of(key));
            if let Some(leaf) = latch.as_ref().filter(|leaf| leaf.covers(key)) {
                return use_it(leaf.get(key, at()));
            }
        }
    }

    /// Changes one key, in a commit of its own: gives it this record, or takes it away, if `condition` holds. Returns
    /// whether it did. Conditions are asked of what is committed, whether it is visible yet or not: whoever goes on from
    /// there becomes durable no sooner than what he saw.
    ///
    /// # Errors
    /// Those of `number`: nothing was changed.
    ///
    /// # Panics
    /// When the record is longer than [`Tree::record_bytes_max`], or of another length than all.
    pub fn change<E>(
        &self,
        key: &K,
        record: Option<&[u8]>,
        condition: Condition<'_>,
        number: impl FnOnce() -> Result<Numbered, E>,
    ) -> Result<bool, E> {
        self.check(record);
        loop {
            let directory = self.directory.read();
            let mut latch = self.slots.write(directory.leaf_of(key));
            let Some(leaf) = latch.as_mut().filter(|leaf| leaf.covers(key)) else { continue };
            if !condition.holds(|| leaf.newest(key)) {
                return Ok(false);
            }
            let mut work = Work::new(leaf);
            self.apply(&mut work, key, record);
            let numbered = number();
            let sparse = self.settle(work, numbered.as_ref().ok());
            drop(latch);
            drop(directory);
            if let Some(low) = sparse {
                self.merge(lent(&low));
            }
            return numbered.map(|_| true);
        }
    }

    /// Commits changes of many keys: all their leaves are latched when `number` is asked for the commit's place.
    ///
    /// # Errors
    /// Those of `number`: nothing was changed.
    ///
    /// # Panics
    /// As [`Tree::change`].
    pub fn commit<E>(&self, changes: &Changes<K>, number: impl FnOnce() -> Result<Numbered, E>) -> Result<Numbered, E> {
        changes.values().for_each(|record| self.check(record.as_deref()));
        loop {
            let Some(mut latches) = self.latch_all(changes) else { continue };
            let mut work: Vec<Work<'_, K>> = latches.iter_mut().filter_map(Work::of).collect();
            let mut changes = changes.iter().peekable();
            for work in &mut work {
                let end = work.leaf.high().cloned();
                while let Some((key, record)) = changes.next_if(|(key, _)| end.as_ref().is_none_or(|end| *key < end)) {
                    self.apply(work, lent(key), record.as_deref());
                }
            }
            let numbered = number();
            let committed = numbered.as_ref().ok();
            let sparse: Vec<K::Owned> = work.into_iter().filter_map(|work| self.settle(work, committed)).collect();
            drop(latches);
            // From behind: who merges takes in what follows.
            sparse.into_iter().rev().for_each(|low| self.merge(lent(&low)));
            return numbered;
        }
    }

    /// How many keys there are after commit `at`.
    pub fn len(&self, at: CommitNumber) -> u64 {
        let mut len = 0;
        self.for_each_leaf(&.., &mut |leaf, seen| {
            let leaf = leaf.state_at(at);
            len += (leaf.len() - seen.map_or(0, |seen| leaf.keys().position(seen).index)) as u64;
        });
        len
    }

    /// Whether a commit after `at` changed any key of the range: what was read there then does not hold any more. To be
    /// asked by who sees to it that what was before those commits is still remembered ([`Numbered::horizon`]).
    pub fn was_changed(&self, range: impl RangeBounds<K>, at: CommitNumber) -> bool {
        let mut was_changed = false;
        self.for_each_leaf(&range, &mut |leaf, _| was_changed |= leaf.was_changed(&range, at));
        was_changed
    }

    /// Shows each leaf that may have keys of a range, in the order of keys, as it is when its turn comes; and the key before
    /// which all was shown already, since a leaf may have taken in the one that was shown before it.
    fn for_each_leaf(&self, range: &impl RangeBounds<K>, visit: &mut impl FnMut(&Leaf<K>, Option<&K>)) {
        let mut next = match range.start_bound() {
            Bound::Included(start) | Bound::Excluded(start) => Some(start.to_owned()),
            Bound::Unbounded => None,
        };
        loop {
            let from = next.as_ref().map(lent::<K>);
            let latch = self.latch(|directory| directory.leaf_from(from));
            let Some(leaf) = latch.as_ref().filter(|leaf| leaf.begins_before(from)) else { continue };
            visit(leaf, from);
            let is_over = |high: &K| match range.end_bound() {
                Bound::Included(end) => high > end,
                Bound::Excluded(end) => high >= end,
                Bound::Unbounded => false,
            };
            match leaf.high().filter(|high| !is_over(lent(*high))).cloned() {
                Some(high) => next = Some(high),
                None => return,
            }
        }
    }

    /// A cursor over what is there after commit `at`, on no entry yet.
    pub fn cursor(&self, at: CommitNumber) -> Cursor<'_, K> {
        Cursor::new(self, at)
    }

    /// What the tree consists of just now.
    pub fn shape(&self) -> TreeShape {
        let directory = Arc::clone(&self.directory.read());
        let mut shape = TreeShape { height: directory.height() + 1, ..TreeShape::default() };
        directory.for_each_leaf(&mut |slot| {
            if let Some(leaf) = self.slots.read(slot).as_ref() {
                shape.leaves += 1;
                shape.keys += leaf.len() as u64;
                shape.key_bytes += leaf.keys().size() as u64;
                shape.record_bytes += (leaf.size() - leaf.keys().size()) as u64;
                shape.undo += leaf.undo_len() as u64;
            }
        });
        shape
    }

    /// Latches the leaf that `find` finds in the directory, for whoever sees for himself whether it is the right one.
    pub(crate) fn latch(&self, find: impl FnOnce(&Directory<K>) -> SlotIndex) -> ReadLatch<'_, K> {
        self.slots.read(find(&self.directory.read()))
    }

    /// Latches the leaves of all these keys, in their order; `None` where the directory is too old for them.
    fn latch_all(&self, changes: &Changes<K>) -> Option<Vec<WriteLatch<'_, K>>> {
        let _no_removal = self.removal.read().unwrap_or_else(PoisonError::into_inner);
        let directory = Arc::clone(&self.directory.read());
        let mut latches: Vec<WriteLatch<'_, K>> = Vec::new();
        let mut last = None;
        for key in changes.keys().map(lent::<K>) {
            let is_covered = |latch: &WriteLatch<'_, K>| latch.as_ref().is_some_and(|leaf| leaf.covers(key));
            if !latches.last().is_some_and(is_covered) {
                let slot = directory.leaf_of(key);
                // A leaf that was split since is latched already, and has not this key any more.
                if last == Some(slot) {
                    return None;
                }
                let latch = self.slots.write(slot);
                if !is_covered(&latch) {
                    return None;
                }
                latches.push(latch);
                last = Some(slot);
            }
        }
        Some(latches)
    }

    fn check(&self, record: Option<&[u8]>) {
        let Some(record) = record else { return };
        assert!(record.len() <= self.record_bytes_max(), "a record of {} bytes", record.len());
        if let RecordShape::Fixed(width) = self.shape.records {
            assert!(record.len() == width, "a record of {} bytes, where all have {width}", record.len());
        }
    }

    /// Changes a key in a latched leaf, or in the leaves that were split off it since.
    fn apply(&self, work: &mut Work<'_, K>, key: &K, record: Option<&[u8]>) {
        work.has_removed |= record.is_none();
        loop {
            let leaf = work.leaf_of(key);
            let applied = match record {
                Some(record) => leaf.put(key, record, self.shape.size_max),
                None => leaf.remove(key, self.shape.size_max).map(drop),
            };
            let Err(NoRoom) = applied else { return };
            if !leaf.vacuum(self.shape.size_max / VACUUM_DIVISOR) {
                let upper = leaf.split(key);
                let index = work.uppers.partition_point(|(separator, _)| *separator < upper.0);
                work.uppers.insert(index, upper);
            }
        }
    }

    /// Ends a change of a leaf: for good, or as if it had not been. What was split off stays so in either case, and others
    /// find it. Returns the least key of a leaf that became nearly empty.
    fn settle(&self, work: Work<'_, K>, numbered: Option<&Numbered>) -> Option<K::Owned> {
        let Work { leaf, has_removed, mut uppers } = work;
        for leaf in std::iter::once(&mut *leaf).chain(uppers.iter_mut().map(|(_, upper)| upper)) {
            match numbered {
                Some(Numbered { commit, horizon }) => leaf.commit(*commit, *horizon),
                None => leaf.roll_back(),
            }
        }
        if !uppers.is_empty() {
            let _structure = self.structure.lock().unwrap_or_else(PoisonError::into_inner);
            let mut directory = Directory::clone(&self.directory.read());
            for (separator, upper) in uppers {
                directory = directory.with(separator, self.slots.add(upper));
            }
            self.directory.replace(directory);
            return None;
        }
        leaf.low().filter(|_| has_removed && leaf.size() < self.shape.size_max / NEARLY_EMPTY_DIVISOR).cloned()
    }

    /// Gives the keys of a leaf to the one before it, if both fit well into one and nobody needs what they were. Whether or
    /// not is no matter: another delete may try again.
    fn merge(&self, low: &K) {
        let _removal = self.removal.write().unwrap_or_else(PoisonError::into_inner);
        let (before, slot) = {
            let directory = self.directory.read();
            (directory.leaf_before(Some(low)), directory.leaf_of(low))
        };
        if before == slot {
            return;
        }
        let (mut lower, mut upper) = (self.slots.write(before), self.slots.write(slot));
        let (Some(leaf), Some(other)) = (lower.as_mut(), upper.as_mut()) else { return };
        let are_neighbours =
            [leaf.high(), other.low()].iter().all(|bound| bound.is_some_and(|bound| lent::<K>(bound) == low));
        let fit = leaf.size() + other.size() <= self.shape.size_max / 4 * 3 && leaf.len() + other.len() <= LEN_MAX;
        if !are_neighbours || !fit || leaf.has_undo() || other.has_undo() {
            return;
        }
        let _structure = self.structure.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(next) = self.directory.read().without(low) else { return };
        leaf.absorb(other);
        *upper = None;
        self.directory.replace(next);
        self.slots.give_back(slot);
    }
}

impl<K: IntegerKey> Tree<K> {
    /// Shows the keys of a range to `visit`, as many at a time as are in a block, after commit `at`. To be quick: writers
    /// of the leaf wait.
    pub fn for_each_block(&self, range: impl RangeBounds<K>, at: CommitNumber, visit: &mut impl FnMut(&[K])) {
        let mut block = IntegerBlock::default();
        self.for_each_leaf(&range, &mut |leaf, seen| {
            let leaf = leaf.state_at(at);
            let keys = leaf.keys();
            let indices = keys.indices_in(&range);
            let mut index = seen.map_or(0, |seen| keys.position(seen).index).max(indices.start);
            while index < indices.end {
                let block_index = keys.block_of(index);
                let of_block = keys.indices_of(block_index);
                keys.decode(block_index, &mut block);
                visit(&block.keys()[index - of_block.start..of_block.end.min(indices.end) - of_block.start]);
                index = of_block.end;
            }
        });
    }
}

impl<K: TreeKey + ?Sized> fmt::Debug for Tree<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// When a change is to be made.
#[derive(Clone, Copy, Debug)]
pub enum Condition<'a> {
    /// Whatever is there.
    Always,
    /// Where the key has no record.
    Absent,
    /// Where it has one.
    Present,
    /// Where it has just this one.
    Equals(&'a [u8]),
}

impl Condition<'_> {
    fn holds<'l>(&self, newest: impl FnOnce() -> Option<&'l [u8]>) -> bool {
        match self {
            Condition::Always => true,
            Condition::Absent => newest().is_none(),
            Condition::Present => newest().is_some(),
            Condition::Equals(record) => newest() == Some(record),
        }
    }
}

/// What a tree consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeShape {
    /// Levels, with that of the leaves.
    pub height: usize,
    /// Leaves.
    pub leaves: u64,
    /// Keys, of all states.
    pub keys: u64,
    /// Bytes of keys, with what is beside blocks.
    pub key_bytes: u64,
    /// Bytes of records.
    pub record_bytes: u64,
    /// Keys of which it is remembered what they were before.
    pub undo: u64,
}

/// A leaf that is being changed, and what was split off it meanwhile, in the order of keys: nobody knows of that yet.
struct Work<'l, K: TreeKey + ?Sized> {
    leaf: &'l mut Leaf<K>,
    /// Whether it may have become nearly empty.
    has_removed: bool,
    uppers: Vec<(K::Owned, Leaf<K>)>,
}

impl<'l, K: TreeKey + ?Sized> Work<'l, K> {
    fn of(latch: &'l mut WriteLatch<'_, K>) -> Option<Work<'l, K>> {
        latch.as_mut().map(Work::new)
    }

    fn new(leaf: &'l mut Leaf<K>) -> Work<'l, K> {
        Work { leaf, has_removed: false, uppers: Vec::new() }
    }

    fn leaf_of(&mut self, key: &K) -> &mut Leaf<K> {
        match self.uppers.partition_point(|(separator, _)| lent::<K>(separator) <= key).checked_sub(1) {
            Some(index) => &mut self.uppers[index].1,
            None => self.leaf,
        }
    }
}
