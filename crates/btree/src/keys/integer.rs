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

use super::{DecodedKeys, KeyList, KeyShape, LEN_MAX, Listed, NoRoom, Position, check_place};
use crate::input::{Damage, Input};
use sinter_codec::{KEYS_MAX, Key, KeyBlock, KeyBlockMut, KeyChange, KeyCodec, KeyDescriptor};
use std::ops::Range;

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

/// A number as its bytes.
pub(crate) trait LittleEndian: Sized {
    fn append_to(&self, out: &mut Vec<u8>);

    /// # Panics
    /// When these are not as many bytes as the number has.
    fn of_le_bytes(bytes: &[u8]) -> Self;
}

macro_rules! little_endian {
    ($($number:ty),*) => {$(
        impl LittleEndian for $number {
            fn append_to(&self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }

            fn of_le_bytes(bytes: &[u8]) -> $number {
                <$number>::from_le_bytes(bytes.try_into().expect("as many bytes as the number has"))
            }
        }
    )*};
}

little_endian!(u32, u64);

/// Keys of a block, as they are.
#[derive(Debug)]
pub(crate) struct IntegerBlock<K> {
    keys: [K; KEYS_MAX],
    len: usize,
}

impl<K: Key + Listed + ToOwned<Owned = K> + LittleEndian> KeyList<K> for IntegerKeys<K> {
    type Block = IntegerBlock<K>;

    const KIND: u8 = size_of::<K>() as u8;

    const NEXT_KEY_SIZE: usize = size_of::<K>();

    fn separator(_before: &K, from: &K) -> K {
        *from
    }

    fn key_size(_key: &K) -> usize {
        size_of::<K>()
    }

    fn write_key(key: &K, out: &mut Vec<u8>) {
        key.append_to(out);
    }

    fn read_key(input: &mut Input<'_>) -> Result<K, Damage> {
        Ok(K::of_le_bytes(input.bytes(size_of::<K>())?))
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.firsts.iter().for_each(|first| first.append_to(out));
        self.places.iter().for_each(|place| place.last.append_to(out));
        self.places.iter().for_each(|place| out.extend(place.start.to_le_bytes()));
        self.places.iter().for_each(|place| out.extend(place.offset.to_le_bytes()));
        out.extend_from_slice(&self.bytes);
    }

    fn read(shape: &KeyShape, counts: [usize; 3], input: &mut Input<'_>) -> Result<IntegerKeys<K>, Damage> {
        let KeyShape { codec, block_len } = *shape;
        if !(2..=KEYS_MAX).contains(&block_len) {
            return Err(format!("blocks of {block_len} keys"));
        }
        let [block_count, len, byte_len] = counts;
        let mut numbers = || (0..block_count).map(|_| Self::read_key(input)).collect::<Result<Vec<K>, Damage>>();
        let (firsts, lasts) = (numbers()?, numbers()?);
        let mut shorts = || (0..block_count).map(|_| input.u16()).collect::<Result<Vec<u16>, Damage>>();
        let (starts, offsets) = (shorts()?, shorts()?);
        let bytes = input.bytes(byte_len)?.to_vec();
        let places = lasts.into_iter().zip(starts).zip(offsets);
        let places = places.map(|((last, start), offset)| Place { last, start, offset }).collect();
        IntegerKeys { codec, block_len, firsts, places, bytes, len }.checked()
    }

    fn shape(&self) -> KeyShape {
        KeyShape { codec: self.codec, block_len: self.block_len }
    }

    fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    fn new(shape: &KeyShape) -> IntegerKeys<K> {
        let KeyShape { codec, block_len } = *shape;
        assert!((2..=KEYS_MAX).contains(&block_len), "blocks of {block_len} keys");
        IntegerKeys { codec, block_len, firsts: Vec::new(), places: Vec::new(), bytes: Vec::new(), len: 0 }
    }

    fn len(&self) -> usize {
        self.len
    }

    fn size(&self) -> usize {
        self.whole_size()
    }

    fn memory_bytes(&self) -> usize {
        let places_bytes = self.places.capacity() * size_of::<Place<K>>();
        self.firsts.capacity() * size_of::<K>() + places_bytes + self.bytes.capacity()
    }

    fn block_count(&self) -> usize {
        self.firsts.len()
    }

    fn indices_of(&self, block_index: usize) -> Range<usize> {
        self.start(block_index)..self.start(block_index + 1)
    }

    fn block_of(&self, index: usize) -> usize {
        self.block_index_of(index)
    }

    fn decode(&self, block_index: usize, block: &mut IntegerBlock<K>) {
        block.len = self.block(block_index).decode(&mut block.keys).len();
    }

    #[inline]
    fn position(&self, key: &K) -> Position {
        self.position_of(*key)
    }

    fn get(&self, index: usize) -> K {
        let block_index = self.block_index_of(index);
        self.block(block_index).select(index - self.start(block_index))
    }

    fn insert(&mut self, key: &K, size_max: usize) -> Result<Position, NoRoom> {
        let key = *key;
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
            let position = self.position_of(key);
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
            let position = self.position_of(key);
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

    fn append(&mut self, keys: &[K], size_max: usize) -> Result<(), NoRoom> {
        if self.len + keys.len() > LEN_MAX {
            return Err(NoRoom);
        }
        let (block_count, byte_len, len) = (self.block_count(), self.bytes.len(), self.len);
        keys.chunks(self.block_len).for_each(|keys| self.append_block(keys));
        if self.whole_size() > size_max {
            self.firsts.truncate(block_count);
            self.places.truncate(block_count);
            self.bytes.truncate(byte_len);
            self.len = len;
            return Err(NoRoom);
        }
        Ok(())
    }

    fn shrink(&mut self) {
        self.firsts.shrink_to_fit();
        self.places.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }

    fn remove(&mut self, index: usize, size_max: usize) -> Result<(), NoRoom> {
        let block_index = self.block_index_of(index);
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

    fn split_off(&mut self, index: usize) -> IntegerKeys<K> {
        let mut upper = self.emptied();
        if index >= self.len {
            return upper;
        }
        let block_index = self.block_index_of(index);
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

    fn vacuum(&mut self, gain_min: usize) -> bool {
        let blocks_needed = self.len.div_ceil(self.block_len);
        if (self.block_count() - blocks_needed) * Self::BESIDE_SIZE < gain_min {
            return false;
        }
        let size_max = self.whole_size().saturating_sub(gain_min);
        self.write_again(0..self.block_count(), self.block_len, size_max).is_ok()
    }
}

impl<K: Key> Default for IntegerBlock<K> {
    fn default() -> IntegerBlock<K> {
        IntegerBlock { keys: [K::default(); KEYS_MAX], len: 0 }
    }
}

impl<K: Key> DecodedKeys<K> for IntegerBlock<K> {
    fn len(&self) -> usize {
        self.len
    }

    fn key(&self, index: usize) -> &K {
        &self.keys[..self.len][index]
    }
}

impl<K> IntegerBlock<K> {
    /// All of them.
    pub(crate) fn keys(&self) -> &[K] {
        &self.keys[..self.len]
    }
}

impl<K: Key> IntegerKeys<K> {
    /// What a block takes beside its bytes.
    const BESIDE_SIZE: usize = size_of::<K>() + size_of::<Place<K>>();

    fn whole_size(&self) -> usize {
        self.firsts.len() * Self::BESIDE_SIZE + self.bytes.len()
    }

    #[inline]
    fn position_of(&self, key: K) -> Position {
        let following = self.firsts.partition_point(|first| *first <= key);
        let Some(block_index) = following.checked_sub(1) else { return Position { index: 0, is_found: false } };
        match self.block(block_index).lower_bound(key) {
            Some((index, found)) => Position { index: self.start(block_index) + index, is_found: found == key },
            None => Position { index: self.start(following), is_found: false },
        }
    }

    /// The same keys, written anew, if these are blocks of as many as they say, in order. What a codec does not look at when
    /// it opens a block could be anything, and would come to light when a block is changed where it lies.
    fn checked(&self) -> Result<IntegerKeys<K>, Damage> {
        let mut checked = self.emptied();
        let mut decoded = [K::default(); KEYS_MAX];
        for block_index in 0..self.firsts.len() {
            let wrong = |what: &str| format!("block {block_index}: {what}");
            let starts = [self.start(block_index), self.start(block_index + 1)];
            let offsets = [self.offset(block_index), self.offset(block_index + 1)];
            check_place(block_index, starts, offsets, self.block_len)?;
            let descriptor = self.descriptor(block_index);
            let bytes = self.bytes.get(offsets[0]..).ok_or_else(|| wrong("it begins behind the end"))?;
            let block = KeyBlock::open(self.codec, descriptor, bytes).map_err(|error| wrong(&error.to_string()))?;
            let keys = block.decode(&mut decoded);
            let last = checked.places.last().map(|place| place.last);
            let is_sorted = keys.is_sorted_by(|one, other| one < other) && last.is_none_or(|last| last < keys[0]);
            if !is_sorted || (keys[0], keys[keys.len() - 1]) != (descriptor.first, descriptor.last) {
                return Err(wrong("its keys are not in order, or not from its first to its last"));
            }
            checked.append_block(keys);
        }
        match checked.len == self.len && (self.len > 0 || self.bytes.is_empty()) {
            true => Ok(checked),
            false => Err(format!("{} keys of {}", checked.len, self.len)),
        }
    }

    /// No keys, to be written as these.
    fn emptied(&self) -> IntegerKeys<K> {
        IntegerKeys { firsts: Vec::new(), places: Vec::new(), bytes: Vec::new(), len: 0, ..*self }
    }

    fn block_index_of(&self, index: usize) -> usize {
        self.places.partition_point(|place| usize::from(place.start) <= index) - 1
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
            keys.extend_from_slice(self.block(block_index).decode(&mut decoded));
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
        let count = self.firsts.len() - blocks.len() + firsts.len();
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
        let block_index = self.block_index_of(len);
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
            if self.whole_size() - room + needed > size_max {
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
