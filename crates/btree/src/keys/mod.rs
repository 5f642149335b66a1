//! The keys of a leaf, in blocks.
//!
//! [`IntegerKeys`] has them in the codecs of the paper, [`BytesKeys`] without the beginnings that they share. A leaf knows
//! both as a [`KeyList`].

mod bytes;
mod integer;
#[cfg(test)]
mod tests;

pub(crate) use bytes::BytesKeys;
use integer::LittleEndian;
pub(crate) use integer::{IntegerBlock, IntegerKeys, grow};

use crate::input::{Damage, Input};
use sinter_codec::{Key, KeyCodec};
use std::borrow::Borrow;
use std::fmt::Debug;
use std::ops::{Bound, Range, RangeBounds};

/// The most keys of a leaf. Were there more, places would be larger; 16 kB hold as many in no codec.
pub(crate) const LEN_MAX: usize = u16::MAX as usize;

/// What may be a key of a tree: `u32`, `u64`, or bytes, which are ordered as numbers without sign.
#[expect(private_bounds, reason = "sealed: for other types there is no list")]
pub trait TreeKey: Listed + Ord + Debug {
    /// Bytes of the key as it is.
    fn byte_len(&self) -> usize {
        size_of_val(self)
    }
}

impl TreeKey for u32 {}
impl TreeKey for u64 {}
impl TreeKey for [u8] {}

/// A key whose blocks are those of the codecs: `u32` or `u64`.
#[expect(private_bounds, reason = "sealed: the codecs know just these two types")]
pub trait IntegerKey: TreeKey + Key + LittleEndian + Listed<List = IntegerKeys<Self>> + ToOwned<Owned = Self> {}

impl IntegerKey for u32 {}
impl IntegerKey for u64 {}

/// How a leaf keeps such keys.
pub(crate) trait Listed: ToOwned<Owned: Clone + Debug + Ord + Send + Sync> + 'static {
    type List: KeyList<Self>;
}

impl Listed for u32 {
    type List = IntegerKeys<u32>;
}

impl Listed for u64 {
    type List = IntegerKeys<u64>;
}

impl Listed for [u8] {
    type List = BytesKeys;
}

/// How keys are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyShape {
    /// Of integers.
    pub(crate) codec: KeyCodec,
    /// Keys of a full block.
    pub(crate) block_len: usize,
}

/// Where a key is in a leaf, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// How many keys of the leaf are less.
    pub(crate) index: usize,
    /// Whether the key at that index is the one that was asked for.
    pub(crate) is_found: bool,
}

/// The keys would take more bytes than they may. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// Keys in order, none of them twice, at most [`LEN_MAX`].
pub(crate) trait KeyList<K: Listed + ?Sized>: Clone + Debug + Send + Sync {
    /// Keys of a block, decoded.
    type Block: DecodedKeys<K>;

    /// What pages call this list.
    const KIND: u8;

    /// No keys.
    fn new(shape: &KeyShape) -> Self;

    /// How many bytes the bound of a leaf is thought to take that is not known yet.
    const NEXT_KEY_SIZE: usize;

    /// A key that is greater than `before` and not greater than `from`, which is; the shorter, the better.
    fn separator(before: &K, from: &K) -> K::Owned;

    /// Bytes that [`KeyList::write_key`] appends.
    fn key_size(key: &K) -> usize;

    /// Appends one key as pages and the log have it by itself.
    fn write_key(key: &K, out: &mut Vec<u8>);

    /// Reads what [`KeyList::write_key`] wrote.
    fn read_key(input: &mut Input<'_>) -> Result<K::Owned, Damage>;

    /// Appends what is beside the blocks, and the blocks.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads what [`KeyList::write`] wrote: `blocks`, `keys` and `bytes` of them, as [`KeyList::block_count`],
    /// [`KeyList::len`] and [`KeyList::byte_len`] said.
    fn read(shape: &KeyShape, counts: [usize; 3], input: &mut Input<'_>) -> Result<Self, Damage>;

    /// How they are written.
    fn shape(&self) -> KeyShape;

    /// Bytes of the blocks alone.
    fn byte_len(&self) -> usize;

    /// How many keys there are.
    fn len(&self) -> usize;

    /// Bytes that the keys take, with what is beside the blocks.
    fn size(&self) -> usize;

    /// Bytes that are allocated for them.
    fn memory_bytes(&self) -> usize;

    /// How many blocks there are.
    fn block_count(&self) -> usize;

    /// Which of the leaf's keys a block has.
    fn indices_of(&self, block_index: usize) -> Range<usize>;

    /// The block that has the key at `index`.
    ///
    /// # Panics
    /// When there are no keys.
    fn block_of(&self, index: usize) -> usize;

    /// Makes the keys of a block those of `block`.
    fn decode(&self, block_index: usize, block: &mut Self::Block);

    /// Where `key` is.
    fn position(&self, key: &K) -> Position;

    /// The key at `index`.
    ///
    /// # Panics
    /// When there are not so many.
    fn get(&self, index: usize) -> K::Owned;

    /// Adds a key, unless it is there, if then all take `size_max` bytes at most. Returns where it is, and whether it was
    /// there before.
    ///
    /// # Errors
    /// [`NoRoom`].
    fn insert(&mut self, key: &K, size_max: usize) -> Result<Position, NoRoom>;

    /// Puts keys behind all that are there, which are less, in blocks of their own, if then all take `size_max` bytes at most.
    ///
    /// # Errors
    /// [`NoRoom`].
    fn append(&mut self, keys: &[K::Owned], size_max: usize) -> Result<(), NoRoom>;

    /// Lets go of memory that is allocated and not used.
    fn shrink(&mut self);

    /// Takes away the key at `index`, if then all take `size_max` bytes at most: where a codec is not delete-stable
    /// (section 2), the others may need more.
    ///
    /// # Errors
    /// [`NoRoom`].
    ///
    /// # Panics
    /// When there are not so many.
    fn remove(&mut self, index: usize, size_max: usize) -> Result<(), NoRoom>;

    /// Takes away the keys from `index` on, and returns them. Those that stay take no more bytes than before.
    fn split_off(&mut self, index: usize) -> Self;

    /// Writes all keys into full blocks, if that gains `gain_min` bytes or more. Returns whether it did.
    fn vacuum(&mut self, gain_min: usize) -> bool;

    /// How many keys are not greater than `key`.
    fn first_after(&self, key: &K) -> usize {
        let position = self.position(key);
        position.index + usize::from(position.is_found)
    }

    /// The indices of the keys in a range.
    fn indices_in(&self, range: &impl RangeBounds<K>) -> Range<usize> {
        let start = match range.start_bound() {
            Bound::Included(start) => self.position(start).index,
            Bound::Excluded(start) => self.first_after(start),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(end) => self.first_after(end),
            Bound::Excluded(end) => self.position(end).index,
            Bound::Unbounded => self.len(),
        };
        start..end
    }

    /// Whether `key` is greater than all.
    fn is_after_all(&self, key: &K) -> bool {
        self.first_after(key) == self.len() && !self.position(key).is_found
    }
}

/// Keys of a block, to be looked at.
pub(crate) trait DecodedKeys<K: ?Sized>: Default + Debug {
    /// How many there are.
    fn len(&self) -> usize;

    /// The key at `index`, counted from the first of the block.
    ///
    /// # Panics
    /// When there are not so many.
    fn key(&self, index: usize) -> &K;
}

/// Whether a block's place and that of the next, keys and bytes before each, are such as could be.
fn check_place(index: usize, starts: [usize; 2], offsets: [usize; 2], block_len: usize) -> Result<(), Damage> {
    if index == 0 && (starts[0], offsets[0]) != (0, 0) {
        return Err("something is before the first block".to_owned());
    }
    if starts[0] >= starts[1] || starts[1] - starts[0] > block_len || offsets[0] > offsets[1] {
        return Err(format!("block {index}: its place and the next one's contradict each other"));
    }
    Ok(())
}

/// The owned key, lent.
pub(crate) fn lent<K: Listed + ?Sized>(key: &K::Owned) -> &K {
    key.borrow()
}
