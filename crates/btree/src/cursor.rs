//! Cursors: one entry after the other, in both directions, of one state of a tree.

use crate::Result;
use crate::keys::{DecodedKeys, KeyList, TreeKey, lent};
use crate::leaf::Leaf;
use crate::records::Records;
use crate::tree::Tree;
use sinter_storage::CommitNumber;
use std::fmt;
use std::ops::{Bound, Deref};

/// Which entry is looked for, beside a key that need not be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// The last one with a lesser key.
    Less,
    /// The one with this key, or the last one with a lesser.
    LessEqual,
    /// The one with this key.
    Equal,
    /// The one with this key, or the first one with a greater.
    GreaterEqual,
    /// The first one with a greater key.
    Greater,
}

/// A place in one state of a tree, on an entry or on none. `T` leads to the tree: a reference, or a handle.
///
/// It holds the block of keys that it is in, with their records, as they are in that state (section 4.3.1 of the paper,
/// *cursor*: a block is decoded once). So it stays where it is whatever others do, and latches a leaf only to go on to
/// another block.
pub struct Cursor<T, K: TreeKey + ?Sized> {
    tree: T,
    at: CommitNumber,
    block: Box<Block<K>>,
    /// The entry in the block that it is on; the count for none.
    index: usize,
}

/// A block of no entries, and a place in it.
const NO_ENTRY: (usize, usize) = (0, 0);

/// Entries that follow each other.
struct Block<K: TreeKey + ?Sized> {
    keys: <K::List as KeyList<K>>::Block,
    count: usize,
    records: Records,
}

impl<T: Deref<Target = Tree<K>>, K: TreeKey + ?Sized> Cursor<T, K> {
    /// A cursor over what is in the tree after commit `at`, on no entry yet.
    pub fn new(tree: T, at: CommitNumber) -> Cursor<T, K> {
        let records = Records::new(tree.shape.records);
        let block = Block { keys: Default::default(), count: 0, records };
        Cursor { tree, at, block: Box::new(block), index: 0 }
    }

    /// The entry that it is on, if it is on one.
    pub fn entry(&self) -> Option<(&K, &[u8])> {
        (self.index < self.block.count).then(|| (self.block.keys.key(self.index), self.block.records.get(self.index)))
    }

    /// Goes to the first entry, and returns it.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub fn first(&mut self) -> Result<Option<(&K, &[u8])>> {
        self.load_from(Bound::Unbounded)?;
        Ok(self.entry())
    }

    /// Goes to the last entry, and returns it.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub fn last(&mut self) -> Result<Option<(&K, &[u8])>> {
        self.load_before(None)?;
        Ok(self.entry())
    }

    /// Goes to the entry that is looked for, and returns it; to none where there is no such entry.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub fn seek(&mut self, find: Find, key: &K) -> Result<Option<(&K, &[u8])>> {
        match find {
            Find::Less => self.load_before(Some(key))?,
            Find::Equal | Find::LessEqual | Find::GreaterEqual => self.load_from(Bound::Included(key))?,
            Find::Greater => self.load_from(Bound::Excluded(key))?,
        }
        let is_there = self.entry().is_some_and(|(found, _)| found == key);
        match find {
            Find::Equal if !is_there => (self.block.count, self.index) = NO_ENTRY,
            Find::LessEqual if !is_there => self.load_before(Some(key))?,
            _ => {}
        }
        Ok(self.entry())
    }

    /// Goes to the next entry, and returns it; from none to none.
    ///
    /// # Errors
    /// A leaf cannot be read.
    #[expect(clippy::should_implement_trait, reason = "what it returns is lent")]
    pub fn next(&mut self) -> Result<Option<(&K, &[u8])>> {
        if self.index + 1 < self.block.count {
            self.index += 1;
        } else if self.index < self.block.count {
            let last = self.block.keys.key(self.index).to_owned();
            self.load_from(Bound::Excluded(lent(&last)))?;
        }
        Ok(self.entry())
    }

    /// Goes to the entry before, and returns it; from none to none.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub fn previous(&mut self) -> Result<Option<(&K, &[u8])>> {
        if self.index < self.block.count {
            match self.index.checked_sub(1) {
                Some(index) => self.index = index,
                None => {
                    let first = self.block.keys.key(0).to_owned();
                    self.load_before(Some(lent(&first)))?;
                }
            }
        }
        Ok(self.entry())
    }

    /// Goes to the first entry from `start` on.
    fn load_from(&mut self, start: Bound<&K>) -> Result<()> {
        let mut next = match start {
            Bound::Included(key) | Bound::Excluded(key) => Some(key.to_owned()),
            Bound::Unbounded => None,
        };
        loop {
            let from = next.as_ref().map(lent::<K>);
            let latch = self.tree.latch(|directory| directory.leaf_from(from))?;
            let Some(leaf) = latch.leaf().filter(|leaf| leaf.begins_before(from)) else { continue };
            let state = leaf.state_at(self.at);
            let index = state.keys().indices_in(&(start, Bound::Unbounded)).start;
            if index < state.len() {
                fill(&mut self.block, &mut self.index, &state, index);
                return Ok(());
            }
            match leaf.high().cloned() {
                Some(high) => next = Some(high),
                None => {
                    (self.block.count, self.index) = NO_ENTRY;
                    return Ok(());
                }
            }
        }
    }

    /// Goes to the last entry before `end`.
    fn load_before(&mut self, end: Option<&K>) -> Result<()> {
        let mut end = end.map(ToOwned::to_owned);
        loop {
            let until = end.as_ref().map(lent::<K>);
            let latch = self.tree.latch(|directory| directory.leaf_before(until))?;
            let Some(leaf) = latch.leaf().filter(|leaf| leaf.ends_before(until)) else { continue };
            let state = leaf.state_at(self.at);
            let index = until.map_or(state.len(), |key| state.keys().position(key).index);
            if let Some(index) = index.checked_sub(1) {
                fill(&mut self.block, &mut self.index, &state, index);
                return Ok(());
            }
            match leaf.low().cloned() {
                Some(low) => end = Some(low),
                None => {
                    (self.block.count, self.index) = NO_ENTRY;
                    return Ok(());
                }
            }
        }
    }
}

/// Takes the block that has the entry at `index`, and goes there.
fn fill<K: TreeKey + ?Sized>(block: &mut Block<K>, at: &mut usize, leaf: &Leaf<K>, index: usize) {
    let block_index = leaf.keys().block_of(index);
    let indices = leaf.keys().indices_of(block_index);
    leaf.keys().decode(block_index, &mut block.keys);
    block.count = block.keys.len();
    block.records.clear();
    *at = index - indices.start;
    block.records.append(leaf.records(), indices);
}

impl<T, K: TreeKey + ?Sized> fmt::Debug for Cursor<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("at", &self.at).finish_non_exhaustive()
    }
}
