//! Ranges of keys in one state of a tree, leaf by leaf: what scans, sums and counts are made of.

use crate::Result;
use crate::keys::{DecodedKeys, IntegerBlock, IntegerKey, KeyList, TreeKey};
use crate::leaf::Leaf;
use crate::tree::Tree;
use sinter_storage::CommitNumber;
use std::fmt;
use std::ops::{ControlFlow, Range, RangeBounds};

/// Keys of one leaf that are in a range, with their records. The leaf is latched as long as somebody looks at them.
pub struct Entries<'l, K: TreeKey + ?Sized> {
    leaf: &'l Leaf<K>,
    /// At least one.
    indices: Range<usize>,
}

impl<'l, K: TreeKey + ?Sized> Entries<'l, K> {
    /// How many there are, one at least.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// The least key.
    pub fn first(&self) -> K::Owned {
        self.leaf.keys().get(self.indices.start)
    }

    /// The greatest key.
    pub fn last(&self) -> K::Owned {
        self.leaf.keys().get(self.indices.end - 1)
    }

    /// Where a key is among these, if it is.
    pub fn index_of(&self, key: &K) -> Option<usize> {
        let position = self.leaf.keys().position(key);
        (position.is_found && self.indices.contains(&position.index)).then(|| position.index - self.indices.start)
    }

    /// Shows the keys in order; each block is decoded once.
    pub fn for_each_key(&self, visit: &mut impl FnMut(&K)) {
        let mut block = <K::List as KeyList<K>>::Block::default();
        self.for_all_parts(&mut |block_index, within| {
            self.leaf.keys().decode(block_index, &mut block);
            within.for_each(|index| visit(block.key(index)));
        });
    }

    /// The records, in the order of their keys.
    pub fn records(&self) -> impl Iterator<Item = &'l [u8]> {
        let leaf = self.leaf;
        self.indices.clone().map(move |index| leaf.record(index))
    }

    /// Shows each block that has some of the keys, and which of its keys these are, until `visit` breaks off.
    fn for_each_part(&self, visit: &mut impl FnMut(usize, Range<usize>) -> ControlFlow<()>) -> ControlFlow<()> {
        let keys = self.leaf.keys();
        let mut index = self.indices.start;
        while index < self.indices.end {
            let block_index = keys.block_of(index);
            let of_block = keys.indices_of(block_index);
            let end = of_block.end.min(self.indices.end);
            visit(block_index, index - of_block.start..end - of_block.start)?;
            index = end;
        }
        ControlFlow::Continue(())
    }

    /// The same, of all of them.
    fn for_all_parts(&self, visit: &mut impl FnMut(usize, Range<usize>)) {
        let _ = self.for_each_part(&mut |block_index, within| {
            visit(block_index, within);
            ControlFlow::Continue(())
        });
    }
}

impl<K: IntegerKey> Entries<'_, K> {
    /// Shows the keys in order, as many at a time as are in a block.
    pub fn for_each_block(&self, visit: &mut impl FnMut(&[K])) {
        let mut block = IntegerBlock::default();
        self.for_all_parts(&mut |block_index, within| {
            self.leaf.keys().decode(block_index, &mut block);
            visit(&block.keys()[within]);
        });
    }
}

impl<K: TreeKey + ?Sized> fmt::Debug for Entries<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entries").field("indices", &self.indices).finish_non_exhaustive()
    }
}

/// What the keys and records of a tree take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeSizes {
    /// Keys.
    pub keys: u64,
    /// Bytes of the keys, with what is beside blocks.
    pub key_bytes: u64,
    /// Bytes of the keys as they are.
    pub plain_key_bytes: u64,
    /// Bytes of the records, with where they end.
    pub record_bytes: u64,
}

impl TreeSizes {
    /// Bytes of keys and records.
    pub fn bytes(&self) -> u64 {
        self.key_bytes + self.record_bytes
    }
}

/// Some keys that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece<K> {
    /// The least of them.
    pub first: K,
    /// The greatest of them.
    pub last: K,
    /// How many there are.
    pub len: usize,
    /// In how many leaves they are.
    pub leaves: usize,
}

impl<K: TreeKey + ?Sized> Tree<K> {
    /// Shows the keys of a range after commit `at` to `visit`, those of one leaf at a time, in order. To be quick: writers of
    /// the leaf wait.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub fn for_each_entries(
        &self,
        range: impl RangeBounds<K>,
        at: CommitNumber,
        visit: &mut impl FnMut(Entries<'_, K>),
    ) -> Result<()> {
        self.for_each_entries_while(range, at, &mut |entries| {
            visit(entries);
            ControlFlow::Continue(())
        })
    }

    /// Shows each key of a range with its record after commit `at`, in order, until `visit` breaks off. To be quick: writers of
    /// the leaf wait.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub fn for_each_entry(
        &self,
        range: impl RangeBounds<K>,
        at: CommitNumber,
        visit: &mut impl FnMut(&K, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut block = <K::List as KeyList<K>>::Block::default();
        self.for_each_entries_while(range, at, &mut |entries| {
            entries.for_each_part(&mut |block_index, within| {
                entries.leaf.keys().decode(block_index, &mut block);
                let first = entries.leaf.keys().indices_of(block_index).start;
                within.into_iter().try_for_each(|index| visit(block.key(index), entries.leaf.record(first + index)))
            })
        })
    }

    fn for_each_entries_while(
        &self,
        range: impl RangeBounds<K>,
        at: CommitNumber,
        visit: &mut impl FnMut(Entries<'_, K>) -> ControlFlow<()>,
    ) -> Result<()> {
        self.for_each_leaf(&range, &mut |leaf, seen| {
            let leaf = leaf.state_at(at);
            let mut indices = leaf.keys().indices_in(&range);
            if let Some(seen) = seen {
                indices.start = indices.start.max(leaf.keys().position(seen).index);
            }
            if indices.is_empty() { ControlFlow::Continue(()) } else { visit(Entries { leaf: &leaf, indices }) }
        })
    }

    /// What is there after commit `at`, in all leaves, of which those that are in pages are read for it.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub fn sizes(&self, at: CommitNumber) -> Result<TreeSizes> {
        let mut sizes = TreeSizes::default();
        self.for_each_entries(.., at, &mut |entries| {
            sizes.keys += entries.len() as u64;
            sizes.key_bytes += entries.leaf.keys().size() as u64;
            sizes.record_bytes += entries.leaf.records().size() as u64;
            entries.for_each_key(&mut |key| sizes.plain_key_bytes += key.byte_len() as u64);
        })?;
        Ok(sizes)
    }

    /// The keys of a range after commit `at`, in pieces: each of so many leaves as have `len_wanted` keys together, and of
    /// `leaves_max` at most.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub fn pieces(
        &self,
        range: impl RangeBounds<K>,
        at: CommitNumber,
        len_wanted: usize,
        leaves_max: usize,
    ) -> Result<Vec<Piece<K::Owned>>> {
        let mut pieces: Vec<Piece<K::Owned>> = Vec::new();
        self.for_each_entries(range, at, &mut |entries| match pieces.last_mut() {
            Some(piece) if piece.len < len_wanted && piece.leaves < leaves_max => {
                piece.last = entries.last();
                piece.len += entries.len();
                piece.leaves += 1;
            }
            _ => pieces.push(Piece { first: entries.first(), last: entries.last(), len: entries.len(), leaves: 1 }),
        })?;
        Ok(pieces)
    }
}

impl<K: IntegerKey> Tree<K> {
    /// Shows the keys of a range to `visit`, as many at a time as are in a block, after commit `at`. To be quick: writers
    /// of the leaf wait.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub fn for_each_block(
        &self,
        range: impl RangeBounds<K>,
        at: CommitNumber,
        visit: &mut impl FnMut(&[K]),
    ) -> Result<()> {
        self.for_each_entries(range, at, &mut |entries| entries.for_each_block(visit))
    }
}
