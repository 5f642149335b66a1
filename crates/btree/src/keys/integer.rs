//! Keys that are integers: compressed blocks, one behind the other, and beside them what is needed to find a key's block.
//!
//! ```text
//!  firsts   | first | first | first |             searched
//!  places   | last, start, offset | ...           `start` keys and `offset` bytes are before the block
//!  bytes    | block | block  | block |
//! ```
//!
//! The paper's key list (section 3.2, figure 5) keeps its index and its blocks in one piece of memory, with gaps behind
//! blocks that may grow. Ours moves what is behind a block whenever that grows: of a leaf's keys that is a few kilobytes
//! at most, and no space lies idle. What it calls *vacuumize* is left to do for blocks that lost keys:
//! [`IntegerKeys::vacuum`] writes all into full ones.

use super::{NoRoom, Position};
use sinter_codec::{KEYS_MAX, Key, KeyBlock, KeyBlockMut, KeyChange, KeyCodec, KeyDescriptor};
use std::ops::{Bound, Range, RangeBounds};

/// The most keys of a leaf. Were there more, places would be larger; 16 kB hold as many in no codec.
pub(crate) const LEN_MAX: usize = u16::MAX as usize;

/// Neighbours are joined where both together have this part of a full block at most: so deletes leave no crumbs, and what
/// was joined is not soon divided again.
const JOIN_DIVISOR: usize = 2;

/// Keys in order, none of them twice, at most [`LEN_MAX`].
#[derive(Clone, Debug)]
pub(crate) struct IntegerKeys<K> {
    codec: KeyCodec,
    /// Keys of a full block.
    block_len: usize,
    firsts: Vec<K>,
    places: Vec<Place<K>>,
    bytes: Vec<u8>,
    len: usize,
}

/// What is known of a block beside its first key. Its length, in keys and in bytes, is what the next one's numbers say.
#[derive(Clone, Copy, Debug)]
struct Place<K> {
    last: K,
    /// Keys before it.
    start: u16,
    /// Bytes before it.
    offset: u16,
}

impl<K: Key> IntegerKeys<K> {
    /// What a block takes beside its bytes.
    const BESIDE_SIZE: usize = size_of::<K>() + size_of::<Place<K>>();

    /// No keys, to be written in this codec, `block_len` of them in a block.
    ///
    /// # Panics
    /// When a block cannot hold so many, or only one.
    pub(crate) fn new(codec: KeyCodec, block_len: usize) -> IntegerKeys<K> {
        assert!((2..=KEYS_MAX).contains(&block_len), "blocks of {block_len} keys");
        IntegerKeys { codec, block_len, firsts: Vec::new(), places: Vec::new(), bytes: Vec::new(), len: 0 }
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many blocks there are.
    pub(crate) fn block_count(&self) -> usize {
        self.firsts.len()
    }

    /// Bytes that the keys take, with what is beside the blocks.
    pub(crate) fn size(&self) -> usize {
        self.firsts.len() * Self::BESIDE_SIZE + self.bytes.len()
    }

    /// The last key.
    pub(crate) fn last(&self) -> Option<K> {
        self.places.last().map(|place| place.last)
    }

    /// Where `key` is.
    #[inline]
    pub(crate) fn position(&self, key: K) -> Position {
        let following = self.firsts.partition_point(|first| *first <= key);
        let Some(block_index) = following.checked_sub(1) else { return Position { index: 0, is_found: false } };
        match self.block(block_index).lower_bound(key) {
            Some((index, found)) => Position { index: self.start(block_index) + index, is_found: found == key },
            None => Position { index: self.start(following), is_found: false },
        }
    }

    /// The indices of the keys in a range.
    pub(crate) fn indices_in(&self, range: &impl RangeBounds<K>) -> Range<usize> {
        let start = match range.start_bound() {
            Bound::Included(start) => self.position(*start).index,
            Bound::Excluded(start) => self.first_after(*start),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(end) => self.first_after(*end),
            Bound::Excluded(end) => self.position(*end).index,
            Bound::Unbounded => self.len,
        };
        start..end
    }

    /// How many keys are not greater than `key`.
    pub(crate) fn first_after(&self, key: K) -> usize {
        let position = self.position(key);
        position.index + usize::from(position.is_found)
    }

    /// The key at `index`.
    ///
    /// # Panics
    /// When there are not so many.
    pub(crate) fn get(&self, index: usize) -> K {
        let block_index = self.block_of(index);
        self.block(block_index).select(index - self.start(block_index))
    }

    /// Writes the keys of a block to the front of `out`, and returns them.
    #[inline]
    pub(crate) fn decode_block<'o>(&self, block_index: usize, out: &'o mut [K; KEYS_MAX]) -> &'o [K] {
        self.block(block_index).decode(out)
    }

    /// Which of the leaf's keys a block has.
    pub(crate) fn indices_of(&self, block_index: usize) -> Range<usize> {
        self.start(block_index)..self.start(block_index + 1)
    }

    /// The block that has the key at `index`.
    ///
    /// # Panics
    /// When there are no keys.
    pub(crate) fn block_of(&self, index: usize) -> usize {
        self.places.partition_point(|place| usize::from(place.start) <= index) - 1
    }

    /// Adds a key, unless it is there, if then all take `size_max` bytes at most. Returns where it is, and whether it was
    /// there before.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub(crate) fn insert(&mut self, key: K, size_max: usize) -> Result<Position, NoRoom> {
        let following = self.firsts.partition_point(|first| *first <= key);
        let mut block_index = following.saturating_sub(1);
        if block_index < self.block_count() && self.count(block_index) == self.block_len {
            // Where keys come in order, from either end, full blocks stay full.
            if key < self.firsts[block_index] {
                return self.insert_block(block_index, key, size_max);
            }
            if key > self.places[block_index].last && following == self.block_count() {
                return self.insert_block(following, key, size_max);
            }
            let position = self.position(key);
            if position.is_found {
                return Ok(position);
            }
            self.divide(block_index, size_max)?;
            block_index += usize::from(key >= self.firsts[block_index + 1]);
        }
        if self.firsts.is_empty() {
            return self.insert_block(0, key, size_max);
        }
        if self.len == LEN_MAX {
            let position = self.position(key);
            return if position.is_found { Ok(position) } else { Err(NoRoom) };
        }
        let start = self.start(block_index);
        let change = self.change(block_index, size_max, |block| block.insert(key))?;
        match change {
            KeyChange::Present(index) => Ok(Position { index: start + index, is_found: true }),
            KeyChange::Done(index) => Ok(Position { index: start + index, is_found: false }),
            KeyChange::Full | KeyChange::NoRoom(_) => unreachable!("full blocks are divided, and room was made"),
        }
    }

    /// Takes away the key at `index`, if then all take `size_max` bytes at most: where the codec is not delete-stable
    /// (section 2), the others may need more.
    ///
    /// # Errors
    /// [`NoRoom`].
    ///
    /// # Panics
    /// When there are not so many.
    pub(crate) fn remove(&mut self, index: usize, size_max: usize) -> Result<(), NoRoom> {
        let block_index = self.block_of(index);
        let start = self.start(block_index);
        self.change(block_index, size_max, |block| block.delete(index - start))?;
        let before = block_index.saturating_sub(1);
        for first in before..=block_index {
            if first + 1 < self.block_count() {
                let both = self.start(first + 2) - self.start(first);
                if both <= self.block_len / JOIN_DIVISOR {
                    // Where that takes more, they stay as they are.
                    let _ = self.write_again(first..first + 2, both, size_max);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Takes away the keys from `index` on, and returns them.
    pub(crate) fn split_off(&mut self, index: usize) -> IntegerKeys<K> {
        let mut upper = IntegerKeys::new(self.codec, self.block_len);
        if index >= self.len {
            return upper;
        }
        let block_index = self.block_of(index);
        let (start, end) = (self.start(block_index), self.start(block_index + 1));
        let whole = if index == start { block_index } else { block_index + 1 };
        let mut keys = [K::default(); KEYS_MAX];
        let keys = &self.block(block_index).decode(&mut keys)[index - start..];
        if whole > block_index {
            upper.append_block(keys);
        }
        let (keys_before, bytes_before) = (if whole == block_index { start } else { end }, self.offset(whole));
        for (first, place) in self.firsts[whole..].iter().zip(&self.places[whole..]) {
            upper.firsts.push(*first);
            upper.places.push(Place {
                last: place.last,
                start: (usize::from(place.start) - keys_before + upper.len) as u16,
                offset: (usize::from(place.offset) - bytes_before + upper.bytes.len()) as u16,
            });
        }
        upper.bytes.extend_from_slice(&self.bytes[bytes_before..]);
        upper.len = self.len - index;
        self.truncate(index);
        upper
    }

    /// Writes all keys into full blocks, if that gains `gain_min` bytes or more. Returns whether it did.
    pub(crate) fn vacuum(&mut self, gain_min: usize) -> bool {
        let blocks_needed = self.len.div_ceil(self.block_len);
        if (self.block_count() - blocks_needed) * Self::BESIDE_SIZE < gain_min {
            return false;
        }
        let size_max = self.size().saturating_sub(gain_min);
        self.write_again(0..self.block_count(), self.block_len, size_max).is_ok()
    }

    /// All keys.
    #[cfg(test)]
    pub(crate) fn to_vec(&self) -> Vec<K> {
        let mut all = Vec::with_capacity(self.len);
        let mut keys = [K::default(); KEYS_MAX];
        for block_index in 0..self.block_count() {
            all.extend_from_slice(self.decode_block(block_index, &mut keys));
        }
        all
    }

    fn count(&self, block_index: usize) -> usize {
        self.start(block_index + 1) - self.start(block_index)
    }

    /// Keys before the block; all, for the block after the last.
    #[inline]
    fn start(&self, block_index: usize) -> usize {
        self.places.get(block_index).map_or(self.len, |place| usize::from(place.start))
    }

    /// Bytes before the block; all, for the block after the last.
    #[inline]
    fn offset(&self, block_index: usize) -> usize {
        self.places.get(block_index).map_or(self.bytes.len(), |place| usize::from(place.offset))
    }

    #[inline]
    fn descriptor(&self, block_index: usize) -> KeyDescriptor<K> {
        KeyDescriptor {
            first: self.firsts[block_index],
            last: self.places[block_index].last,
            count: self.count(block_index),
            byte_len: self.offset(block_index + 1) - self.offset(block_index),
        }
    }

    #[inline]
    fn block(&self, block_index: usize) -> KeyBlock<'_, K> {
        let bytes = &self.bytes[self.offset(block_index)..];
        KeyBlock::open(self.codec, self.descriptor(block_index), bytes)
            .expect("blocks are written here, or were checked")
    }

    /// A block of its own for a key that is not there.
    fn insert_block(&mut self, block_index: usize, key: K, size_max: usize) -> Result<Position, NoRoom> {
        if self.len == LEN_MAX {
            return Err(NoRoom);
        }
        self.write(block_index..block_index, &[key], 1, size_max)?;
        Ok(Position { index: self.start(block_index), is_found: false })
    }

    /// Makes two blocks of one.
    fn divide(&mut self, block_index: usize, size_max: usize) -> Result<(), NoRoom> {
        let half = self.count(block_index).div_ceil(2);
        self.write_again(block_index..block_index + 1, half, size_max)
    }

    /// Writes the keys of these blocks once more, `block_len` of them in a block.
    fn write_again(&mut self, blocks: Range<usize>, block_len: usize, size_max: usize) -> Result<(), NoRoom> {
        let mut keys = Vec::with_capacity(self.start(blocks.end) - self.start(blocks.start));
        let mut decoded = [K::default(); KEYS_MAX];
        for block_index in blocks.clone() {
            keys.extend_from_slice(self.decode_block(block_index, &mut decoded));
        }
        self.write(blocks, &keys, block_len, size_max)
    }

    /// Puts blocks with these keys, `block_len` in each but the last, in the place of `blocks`.
    fn write(&mut self, blocks: Range<usize>, keys: &[K], block_len: usize, size_max: usize) -> Result<(), NoRoom> {
        let (start, end) = (self.start(blocks.start), self.start(blocks.end));
        let old_bytes = self.offset(blocks.start)..self.offset(blocks.end);
        let (mut firsts, mut places, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for keys in keys.chunks(block_len) {
            let offset = (old_bytes.start + bytes.len()) as u16;
            let descriptor = self.codec.encode(keys, &mut bytes).expect("keys of blocks are in order, and few enough");
            let start = (start + firsts.len() * block_len) as u16;
            firsts.push(descriptor.first);
            places.push(Place { last: descriptor.last, start, offset });
        }
        let count = self.block_count() - blocks.len() + firsts.len();
        if count * Self::BESIDE_SIZE + self.bytes.len() - old_bytes.len() + bytes.len() > size_max {
            return Err(NoRoom);
        }
        let (keys_more, bytes_more) = (keys.len().wrapping_sub(end - start), bytes.len().wrapping_sub(old_bytes.len()));
        self.move_places(blocks.end, keys_more, bytes_more);
        self.firsts.splice(blocks.clone(), firsts);
        self.places.splice(blocks, places);
        self.bytes.splice(old_bytes, bytes);
        Ok(())
    }

    /// Adds a block behind the last, for keys that are greater. The caller sees to its size.
    fn append_block(&mut self, keys: &[K]) {
        let place = Place { last: K::default(), start: self.len as u16, offset: self.bytes.len() as u16 };
        let descriptor =
            self.codec.encode(keys, &mut self.bytes).expect("keys of a block are in order, and few enough");
        self.firsts.push(descriptor.first);
        self.places.push(Place { last: descriptor.last, ..place });
        self.len += keys.len();
    }

    /// Keeps the first `len` keys, at least.
    fn truncate(&mut self, len: usize) {
        let block_index = self.block_of(len);
        let rest = len - self.start(block_index);
        let mut keys = [K::default(); KEYS_MAX];
        let keys = &self.block(block_index).decode(&mut keys)[..rest];
        self.bytes.truncate(self.offset(block_index));
        self.firsts.truncate(block_index);
        self.places.truncate(block_index);
        self.len = len - rest;
        if rest > 0 {
            self.append_block(keys);
        }
    }

    /// Changes a block where it lies, with as many bytes as it asks for.
    fn change(
        &mut self,
        block_index: usize,
        size_max: usize,
        change: impl Fn(&mut KeyBlockMut<'_, K>) -> KeyChange,
    ) -> Result<KeyChange, NoRoom> {
        let offset = self.offset(block_index);
        let mut descriptor = self.descriptor(block_index);
        let (count, byte_len) = (descriptor.count, descriptor.byte_len);
        let mut room = byte_len;
        let done = loop {
            let bytes = &mut self.bytes[offset..offset + room];
            let mut block = KeyBlockMut::open(self.codec, &mut descriptor, bytes).expect("blocks were checked");
            let done = change(&mut block);
            let KeyChange::NoRoom(needed) = done else { break done };
            if self.size() - room + needed > size_max {
                self.resize_room(offset, room, byte_len);
                return Err(NoRoom);
            }
            self.resize_room(offset, room, needed);
            room = needed;
        };
        self.resize_room(offset, room, descriptor.byte_len);
        let keys_more = descriptor.count.wrapping_sub(count);
        self.move_places(block_index + 1, keys_more, descriptor.byte_len.wrapping_sub(byte_len));
        if descriptor.count == 0 {
            self.firsts.remove(block_index);
            self.places.remove(block_index);
        } else {
            self.firsts[block_index] = descriptor.first;
            self.places[block_index].last = descriptor.last;
        }
        Ok(done)
    }

    /// Moves what is behind a block's room, so that the room has `new` bytes.
    fn resize_room(&mut self, offset: usize, old: usize, new: usize) {
        let end = self.bytes.len();
        if new > old {
            grow(&mut self.bytes, new - old);
            self.bytes.copy_within(offset + old..end, offset + new);
        } else if new < old {
            self.bytes.copy_within(offset + old..end, offset + new);
            self.bytes.truncate(end - (old - new));
        }
    }

    /// There are so many more keys and bytes, or fewer, before the blocks from this one on.
    fn move_places(&mut self, block_index: usize, keys_more: usize, bytes_more: usize) {
        self.len = self.len.wrapping_add(keys_more);
        for place in &mut self.places[block_index..] {
            place.start = place.start.wrapping_add(keys_more as u16);
            place.offset = place.offset.wrapping_add(bytes_more as u16);
        }
    }
}

/// Puts zeros behind, in memory that grows in small steps: there are many leaves, and each has what it does not use.
pub(crate) fn grow(bytes: &mut Vec<u8>, more: usize) {
    if bytes.capacity() - bytes.len() < more {
        bytes.reserve_exact(more + bytes.len() / 16 + 32);
    }
    bytes.resize(bytes.len() + more, 0);
}
