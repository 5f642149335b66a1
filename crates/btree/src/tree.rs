//! The tree: what it is made of, and how it is read.

use crate::cursor::Cursor;
use crate::directory::Directory;
use crate::home::Home;
use crate::keys::{KeyList, KeyShape, TreeKey, lent};
use crate::leaf::{Leaf, LeafShape};
use crate::leaf_page;
use crate::memory::LeafMemory;
use crate::published::Published;
use crate::records::RecordShape;
use crate::slots::{Place, ReadLatch, SlotIndex, Slots};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, RwLock};
use crate::{Error, Result};
use sinter_codec::{KEYS_MAX, KeyCodec};
use sinter_storage::{CommitNumber, Store};
use std::fmt;
use std::ops::{Bound, ControlFlow, RangeBounds};

/// How a tree keeps its keys and records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeOptions {
    /// How keys that are integers are written in leaves; bytes are written without what each shares with the one before.
    pub codec: KeyCodec,
    /// Keys of a full block, 2 to [`KEYS_MAX`]. The paper (section 4.3.2) has 128 for BP128 and 256 for the others.
    pub block_len: usize,
    /// What the records look like.
    pub records: RecordShape,
    /// Bytes of a full leaf as a page, from 1 to 16 KiB.
    pub leaf_bytes: usize,
}

/// Bytes of a page that are not a leaf's keys and records, or what bounds it: the page's header, and the leaf's.
const PAGE_BYTES_BESIDE: usize = sinter_storage::page::HEADER_BYTES + leaf_page::HEADER_BYTES;

/// A record takes this part of a leaf at most.
const RECORD_DIVISOR: usize = 4;

/// A key takes this part of a leaf at most: two bound it, and two must be in it before it can be divided.
const KEY_DIVISOR: usize = 8;

impl TreeOptions {
    /// 16 KiB leaves of these records, with integers in this codec.
    pub fn new(codec: KeyCodec, records: RecordShape) -> TreeOptions {
        let block_len = match codec {
            KeyCodec::Bp128D1 | KeyCodec::Bp128D4 | KeyCodec::Bp128Transposed => 128,
            _ => KEYS_MAX,
        };
        TreeOptions { codec, block_len, records, leaf_bytes: 16 << 10 }
    }

    /// What is wrong with them, if anything is.
    pub fn flaw(&self) -> Option<String> {
        let TreeOptions { codec: _, block_len, records, leaf_bytes } = *self;
        if !(1 << 10..=16 << 10).contains(&leaf_bytes) {
            return Some(format!("leaves of {leaf_bytes} bytes; there are those of 1024 to 16384"));
        }
        if !(2..=KEYS_MAX).contains(&block_len) {
            return Some(format!("blocks of {block_len} keys; there are those of 2 to {KEYS_MAX}"));
        }
        let record_bytes_max = self.shape().size_max / RECORD_DIVISOR;
        match records {
            RecordShape::Fixed(width) if width > record_bytes_max => {
                Some(format!("records of {width} bytes; a leaf has place for those of {record_bytes_max}"))
            }
            _ => None,
        }
    }

    fn shape(&self) -> LeafShape {
        let keys = KeyShape { codec: self.codec, block_len: self.block_len };
        LeafShape { keys, records: self.records, size_max: self.leaf_bytes.saturating_sub(PAGE_BYTES_BESIDE) }
    }
}

/// An ordered map from keys to records, of which every state that somebody may still see can be read.
///
/// Thread-safe: any number of threads read and change it at once. Locks are taken in the order `removal`, latches in the
/// order of keys, `structure`, free slots and their latches, `sparse`, what the tree knows of its pages, the store's; readers
/// have one latch at a time, of a tree. What it has reserved of memory is behind all of them.
pub struct Tree<K: TreeKey + ?Sized> {
    pub(crate) options: TreeOptions,
    pub(crate) shape: LeafShape,
    pub(crate) slots: Slots<K>,
    pub(crate) directory: Published<Directory<K>>,
    /// Held by whoever makes the next directory.
    pub(crate) structure: Mutex<()>,
    /// Held alone by whoever takes a leaf out, and shared by whoever latches several: so a slot cannot get another leaf,
    /// out of the order of keys, between the look at the directory and the latch. Within: how many walk over all leaves
    /// for so long that they cannot hold it, and want none taken out.
    pub(crate) removal: RwLock<usize>,
    /// The least keys of leaves that became nearly empty, each with the commit that made it so: once nobody has need of
    /// what was before that, somebody merges them. And whether there are any.
    pub(crate) sparse: Mutex<Vec<(CommitNumber, K::Owned)>>,
    pub(crate) has_sparse: AtomicBool,
    next_stamp: AtomicU64,
    /// `None` where it is in memory only.
    pub(crate) home: Option<Home>,
    /// `None` where nobody counts what it takes.
    pub(crate) memory: Option<LeafMemory>,
    /// Its pages go with it.
    pub(crate) is_abandoned: AtomicBool,
}

impl<K: TreeKey + ?Sized> Tree<K> {
    /// A tree without keys, which is in memory only, and of which nobody counts what it takes.
    ///
    /// # Panics
    /// When options are out of their ranges.
    pub fn new(options: TreeOptions) -> Tree<K> {
        Tree::empty(options, None, None)
    }

    /// A tree without keys, whose leaves go to pages of the store, if that is not in memory itself: at checkpoints
    /// ([`Tree::write`]), or when memory can do without them. What they take is of the store's budget.
    ///
    /// # Panics
    /// When options are out of their ranges.
    pub fn create(options: TreeOptions, store: Arc<Store>) -> Arc<Tree<K>> {
        let memory = LeafMemory::new(&store);
        let home = (!store.is_in_memory()).then(|| Home::new(store));
        Tree::empty(options, home, Some(memory)).shared()
    }

    pub(crate) fn empty(options: TreeOptions, home: Option<Home>, memory: Option<LeafMemory>) -> Tree<K> {
        if let Some(flaw) = options.flaw() {
            panic!("{flaw}");
        }
        let slots = Slots::new();
        let leaf = Leaf::new(&options.shape());
        let memory_bytes = leaf.memory_bytes();
        let directory = Directory::new(slots.add(Place::Resident(Box::new(leaf))).0);
        let tree = Tree::of_parts(options, slots, directory, home, memory);
        tree.note_memory(0, memory_bytes);
        tree.note_leaves(1);
        tree
    }

    /// The tree, which others can have memory back from.
    pub(crate) fn shared(self) -> Arc<Tree<K>> {
        let tree = Arc::new(self);
        if let Some(home) = &tree.home {
            let reclaim = Arc::downgrade(&tree);
            home.store().budget().add_reclaim(reclaim);
        }
        tree
    }

    /// A tree with these leaves.
    pub(crate) fn of_parts(
        options: TreeOptions,
        slots: Slots<K>,
        directory: Directory<K>,
        home: Option<Home>,
        memory: Option<LeafMemory>,
    ) -> Tree<K> {
        let directory = Published::new(directory);
        let shape = options.shape();
        let (structure, removal, sparse) = (Mutex::new(()), RwLock::new(0), Mutex::default());
        let (has_sparse, next_stamp, is_abandoned) =
            (AtomicBool::new(false), AtomicU64::new(1), AtomicBool::new(false));
        Tree {
            options,
            shape,
            slots,
            directory,
            structure,
            removal,
            sparse,
            has_sparse,
            next_stamp,
            home,
            memory,
            is_abandoned,
        }
    }

    /// A number for a leaf that no other has or had.
    pub(crate) fn stamp(&self) -> u64 {
        self.next_stamp.fetch_add(1, Ordering::Relaxed)
    }

    /// How it keeps its keys and records.
    pub fn options(&self) -> &TreeOptions {
        &self.options
    }

    /// The longest record that a leaf takes in.
    pub fn record_bytes_max(&self) -> usize {
        self.shape.size_max / RECORD_DIVISOR
    }

    /// The longest key that a leaf takes in.
    pub fn key_bytes_max(&self) -> usize {
        self.shape.size_max / KEY_DIVISOR
    }

    /// Shows the key's record to `use_it`, as it is after the commit that `at` names; it is asked once the leaf is latched,
    /// so that who wants the newest of what is visible need not announce himself before.
    ///
    /// # Errors
    /// The leaf cannot be read.
    #[inline]
    pub fn get<R>(
        &self,
        key: &K,
        at: impl FnOnce() -> CommitNumber,
        use_it: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R> {
        loop {
            let latch = self.latch(|directory| directory.leaf_of(key))?;
            if let Some(leaf) = latch.leaf().filter(|leaf| leaf.covers(key)) {
                return Ok(use_it(leaf.get(key, at())));
            }
        }
    }

    /// How many keys there are after commit `at`.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub fn len(&self, at: CommitNumber) -> Result<u64> {
        let mut len = 0;
        self.for_each_leaf(&.., &mut |leaf, seen| {
            let leaf = leaf.state_at(at);
            len += (leaf.len() - seen.map_or(0, |seen| leaf.keys().position(seen).index)) as u64;
            ControlFlow::Continue(())
        })?;
        Ok(len)
    }

    /// Shows each leaf that may have keys of a range, in the order of keys, as it is when its turn comes; and the key before
    /// which all was shown already, since a leaf may have taken in the one that was shown before it. It ends where `visit` breaks
    /// off.
    pub(crate) fn for_each_leaf(
        &self,
        range: &impl RangeBounds<K>,
        visit: &mut impl FnMut(&Leaf<K>, Option<&K>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut next = match range.start_bound() {
            Bound::Included(start) | Bound::Excluded(start) => Some(start.to_owned()),
            Bound::Unbounded => None,
        };
        loop {
            let from = next.as_ref().map(lent::<K>);
            let latch = self.latch(|directory| directory.leaf_from(from))?;
            let Some(leaf) = latch.leaf().filter(|leaf| leaf.begins_before(from)) else { continue };
            if visit(leaf, from).is_break() {
                return Ok(());
            }
            let is_over = |high: &K| match range.end_bound() {
                Bound::Included(end) => high > end,
                Bound::Excluded(end) => high >= end,
                Bound::Unbounded => false,
            };
            match leaf.high().filter(|high| !is_over(lent(*high))).cloned() {
                Some(high) => next = Some(high),
                None => return Ok(()),
            }
        }
    }

    /// A cursor over what is there after commit `at`, on no entry yet.
    pub fn cursor(&self, at: CommitNumber) -> Cursor<&Tree<K>, K> {
        Cursor::new(self, at)
    }

    /// What the tree consists of just now, as far as it is in memory.
    pub fn shape(&self) -> TreeShape {
        let directory = Arc::clone(&self.directory.read());
        let mut shape = TreeShape { height: directory.height() + 1, ..TreeShape::default() };
        directory.for_each_leaf(&mut |slot| match &*self.slots.look(slot) {
            Place::Nowhere => {}
            Place::Paged(_) => shape.leaves += 1,
            Place::Resident(leaf) => {
                shape.leaves += 1;
                shape.resident_leaves += 1;
                shape.keys += leaf.len() as u64;
                shape.key_bytes += leaf.keys().size() as u64;
                shape.record_bytes += leaf.records().size() as u64;
                shape.undo += leaf.undo_len() as u64;
            }
        });
        shape
    }

    /// Latches the leaf that `find` finds in the directory, for whoever sees for himself whether it is the right one.
    ///
    /// # Errors
    /// It cannot be read.
    #[inline]
    pub(crate) fn latch(&self, find: impl Fn(&Directory<K>) -> SlotIndex) -> Result<ReadLatch<'_, K>> {
        loop {
            let slot = find(&self.directory.read());
            let latch = self.slots.read(slot);
            if !matches!(&*latch, Place::Paged(_)) {
                return Ok(latch);
            }
            drop(latch);
            self.load(slot, &mut self.slots.write(slot))?;
        }
    }

    /// What trees in memory do not have.
    pub(crate) fn home(&self) -> Result<&Home> {
        self.home.as_ref().ok_or(Error::InMemory)
    }
}

impl<K: TreeKey + ?Sized> fmt::Debug for Tree<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("options", &self.options).finish_non_exhaustive()
    }
}

/// What a tree consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeShape {
    /// Levels, with that of the leaves.
    pub height: usize,
    /// Leaves.
    pub leaves: u64,
    /// Those of them that are in memory; the rest counts only these.
    pub resident_leaves: u64,
    /// Keys, of all states.
    pub keys: u64,
    /// Bytes of keys, with what is beside blocks.
    pub key_bytes: u64,
    /// Bytes of records.
    pub record_bytes: u64,
    /// Keys of which it is remembered what they were before.
    pub undo: u64,
}
