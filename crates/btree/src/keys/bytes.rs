//! Keys that are bytes: each without the beginning that it shares with the one before it.
//!
//! ```text
//!  places   | start, offset | ...      `start` keys and `offset` bytes are before the block
//!  bytes    | block | block | ...
//!  block    | entry | entry | ...      the first shares nothing
//!  entry    | shared, rest: four bits each, 15 for more | more of shared | more of rest | the rest's bytes |
//! ```
//!
//! A key is looked for without putting any together: how much of it agrees with the last one that was less is enough to
//! compare the next (Bell, Witten, Moffat, *Managing gigabytes*, on front coding). For the same reason a key comes or goes
//! by changing no more than its own entry and the one behind it.

use crate::input::{Damage, Input};

use sinter_codec::KeyCodec;

use super::{DecodedKeys, KeyList, KeyShape, LEN_MAX, NoRoom, Position, check_place, grow};
use std::cmp::Ordering;
use std::ops::Range;

/// Neighbours are joined where both together have this part of a full block at most.
const JOIN_DIVISOR: usize = 2;

/// Four bits for a length that is not greater than this less one; then the rest follows.
const MORE: usize = 15;

/// Keys in order, none of them twice.
#[derive(Clone, Debug)]
pub(crate) struct BytesKeys {
    /// Keys of a full block.
    block_len: usize,
    places: Vec<Place>,
    bytes: Vec<u8>,
    len: usize,
}

/// Where a block begins.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Keys before it.
    start: u16,
    /// Bytes before it.
    offset: u16,
}

/// An entry of a block, as it is written.
#[derive(Clone, Copy, Debug)]
struct Entry<'a> {
    /// Bytes that the key has in common with the one before.
    shared: usize,
    /// The bytes behind.
    rest: &'a [u8],
    /// Bytes that the entry takes.
    size: usize,
}

/// Where in a block a key belongs.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// Keys of the block that are less.
    index: usize,
    /// Bytes of the block before the first that is not.
    offset: usize,
    /// Bytes that the key has in common with the last that is less.
    shared: usize,
    is_found: bool,
}

/// Keys, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct BytesBlock {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyList<[u8]> for BytesKeys {
    type Block = BytesBlock;

    const KIND: u8 = 16;

    const NEXT_KEY_SIZE: usize = 64;

    fn separator(before: &[u8], from: &[u8]) -> Vec<u8> {
        from[..common(before, from) + 1].to_vec()
    }

    fn key_size(key: &[u8]) -> usize {
        size_of::<u32>() + key.len()
    }

    fn write_key(key: &[u8], out: &mut Vec<u8>) {
        out.extend((key.len() as u32).to_le_bytes());
        out.extend_from_slice(key);
    }

    fn read_key(input: &mut Input<'_>) -> Result<Vec<u8>, Damage> {
        let len = input.u32()? as usize;
        Ok(input.bytes(len)?.to_vec())
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.places.iter().for_each(|place| out.extend(place.start.to_le_bytes()));
        self.places.iter().for_each(|place| out.extend(place.offset.to_le_bytes()));
        out.extend_from_slice(&self.bytes);
    }

    fn read(shape: &KeyShape, counts: [usize; 3], input: &mut Input<'_>) -> Result<BytesKeys, Damage> {
        if shape.block_len < 2 {
            return Err(format!("blocks of {} keys", shape.block_len));
        }
        let [block_count, len, byte_len] = counts;
        let mut shorts = || (0..block_count).map(|_| input.u16()).collect::<Result<Vec<u16>, Damage>>();
        let (starts, offsets) = (shorts()?, shorts()?);
        let places = starts.into_iter().zip(offsets).map(|(start, offset)| Place { start, offset }).collect();
        let bytes = input.bytes(byte_len)?.to_vec();
        let keys = BytesKeys { block_len: shape.block_len, places, bytes, len };
        keys.check()?;
        Ok(keys)
    }

    fn shape(&self) -> KeyShape {
        KeyShape { codec: KeyCodec::None, block_len: self.block_len }
    }

    fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    fn new(shape: &KeyShape) -> BytesKeys {
        assert!(shape.block_len >= 2, "blocks of {} keys", shape.block_len);
        BytesKeys { block_len: shape.block_len, places: Vec::new(), bytes: Vec::new(), len: 0 }
    }

    fn len(&self) -> usize {
        self.len
    }

    fn size(&self) -> usize {
        self.places.len() * size_of::<Place>() + self.bytes.len()
    }

    fn memory_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place>() + self.bytes.capacity()
    }

    fn block_count(&self) -> usize {
        self.places.len()
    }

    fn indices_of(&self, block_index: usize) -> Range<usize> {
        self.start(block_index)..self.start(block_index + 1)
    }

    fn block_of(&self, index: usize) -> usize {
        self.places.partition_point(|place| usize::from(place.start) <= index) - 1
    }

    fn decode(&self, block_index: usize, block: &mut BytesBlock) {
        block.bytes.clear();
        block.ends.clear();
        let mut start = 0;
        for entry in self.entries(block_index) {
            let end = block.bytes.len();
            block.bytes.extend_from_within(start..start + entry.shared);
            block.bytes.extend_from_slice(entry.rest);
            block.ends.push(block.bytes.len());
            start = end;
        }
    }

    #[inline]
    fn position(&self, key: &[u8]) -> Position {
        let Some(block_index) = self.block_for(key) else { return Position { index: 0, is_found: false } };
        let Search { index, is_found, .. } = self.search(block_index, key);
        Position { index: self.start(block_index) + index, is_found }
    }

    fn get(&self, index: usize) -> Vec<u8> {
        let block_index = self.block_of(index);
        self.key_in(block_index, index - self.start(block_index)).0
    }

    fn insert(&mut self, key: &[u8], size_max: usize) -> Result<Position, NoRoom> {
        let Some(mut block_index) = self.block_for(key).or((self.len > 0).then_some(0)) else {
            return self.insert_block(0, key, size_max);
        };
        let mut search = self.search(block_index, key);
        let position = |list: &BytesKeys, block_index, search: Search| Position {
            index: list.start(block_index) + search.index,
            is_found: search.is_found,
        };
        if search.is_found {
            return Ok(position(self, block_index, search));
        }
        if self.len == LEN_MAX {
            return Err(NoRoom);
        }
        let count = self.indices_of(block_index).len();
        if count == self.block_len {
            // Where keys come in order, from either end, full blocks stay full.
            if search.index == 0 {
                return self.insert_block(block_index, key, size_max);
            }
            if search.index == count && block_index + 1 == self.block_count() {
                return self.insert_block(block_index + 1, key, size_max);
            }
            let half = count.div_ceil(2);
            self.divide(block_index, half, size_max)?;
            block_index += usize::from(search.index > half);
            search = self.search(block_index, key);
        }
        let start = self.offset(block_index) + search.offset;
        let mut new = Vec::with_capacity(key.len() + 8);
        push_entry(search.shared, &key[search.shared..], &mut new);
        let mut end = start;
        if start < self.offset(block_index + 1) {
            // What follows may have more in common with this key than with the one before.
            let next = entry_at(&self.bytes[start..]);
            if next.shared == search.shared {
                let more = common(next.rest, &key[search.shared..]);
                push_entry(next.shared + more, &next.rest[more..], &mut new);
                end += next.size;
            }
        }
        self.replace(block_index, start..end, &new, 1, size_max)?;
        Ok(position(self, block_index, search))
    }

    fn append(&mut self, keys: &[Vec<u8>], size_max: usize) -> Result<(), NoRoom> {
        if self.len + keys.len() > LEN_MAX {
            return Err(NoRoom);
        }
        let (block_count, byte_len, len) = (self.block_count(), self.bytes.len(), self.len);
        for keys in keys.chunks(self.block_len) {
            self.places.push(Place { start: self.len as u16, offset: self.bytes.len() as u16 });
            let mut before: &[u8] = &[];
            for key in keys {
                let shared = common(before, key);
                push_entry(shared, &key[shared..], &mut self.bytes);
                before = key;
            }
            self.len += keys.len();
            if self.size() > size_max {
                self.places.truncate(block_count);
                self.bytes.truncate(byte_len);
                self.len = len;
                return Err(NoRoom);
            }
        }
        Ok(())
    }

    fn shrink(&mut self) {
        self.places.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }

    fn remove(&mut self, index: usize, _size_max: usize) -> Result<(), NoRoom> {
        let block_index = self.block_of(index);
        let indices = self.indices_of(block_index);
        let start = self.offset(block_index) + self.offset_in(block_index, index - indices.start);
        let entry = entry_at(&self.bytes[start..]);
        let (mut end, mut new) = (start + entry.size, Vec::new());
        if index + 1 < indices.end {
            // What the next one has in common with this, and this not with the one before, goes to the next.
            let next = entry_at(&self.bytes[end..]);
            if next.shared > entry.shared {
                let rest = [&entry.rest[..next.shared - entry.shared], next.rest].concat();
                push_entry(entry.shared, &rest, &mut new);
                end += next.size;
            }
        }
        self.replace(block_index, start..end, &new, usize::MAX, usize::MAX)?;
        if indices.len() == 1 {
            self.places.remove(block_index);
        }
        for first in block_index.saturating_sub(1)..=block_index {
            if first + 1 < self.block_count()
                && self.start(first + 2) - self.start(first) <= self.block_len / JOIN_DIVISOR
            {
                self.join(first);
                break;
            }
        }
        Ok(())
    }

    fn split_off(&mut self, index: usize) -> BytesKeys {
        let mut upper = self.emptied();
        if index >= self.len {
            return upper;
        }
        let mut block_index = self.block_of(index);
        if self.start(block_index) < index {
            self.divide(block_index, index - self.start(block_index), usize::MAX).expect("there is no limit");
            block_index += 1;
        }
        let offset = self.offset(block_index);
        upper.bytes = self.bytes.split_off(offset);
        upper.len = self.len - index;
        upper.places = self.places.split_off(block_index);
        for place in &mut upper.places {
            *place = Place { start: place.start - index as u16, offset: place.offset - offset as u16 };
        }
        self.len = index;
        self.bytes.shrink_to_fit();
        upper
    }

    fn vacuum(&mut self, gain_min: usize) -> bool {
        let blocks_needed = self.len.div_ceil(self.block_len);
        if (self.block_count() - blocks_needed) * size_of::<Place>() * 4 < gain_min {
            return false;
        }
        let mut whole = self.emptied();
        let mut block = BytesBlock::default();
        for block_index in 0..self.block_count() {
            self.decode(block_index, &mut block);
            for index in 0..block.len() {
                whole.insert(block.key(index), usize::MAX).expect("there is no limit");
            }
        }
        let gains = whole.size() + gain_min <= self.size();
        if gains {
            *self = whole;
        }
        gains
    }
}

impl BytesKeys {
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

    /// No keys, in blocks of as many.
    fn emptied(&self) -> BytesKeys {
        BytesKeys { places: Vec::new(), bytes: Vec::new(), len: 0, ..*self }
    }

    /// Whether these are blocks of as many keys as they say, in order.
    fn check(&self) -> Result<(), Damage> {
        if self.places.is_empty() {
            return if self.len == 0 && self.bytes.is_empty() { Ok(()) } else { Err("keys without blocks".to_owned()) };
        }
        let mut before: Option<Vec<u8>> = None;
        for block_index in 0..self.places.len() {
            let wrong = |what: &str| format!("block {block_index}: {what}");
            let starts = [self.start(block_index), self.start(block_index + 1)];
            let offsets = [self.offset(block_index), self.offset(block_index + 1)];
            check_place(block_index, starts, offsets, self.block_len)?;
            let mut bytes = self.bytes.get(offsets[0]..offsets[1]).ok_or_else(|| wrong("it ends behind the end"))?;
            let mut key = Vec::new();
            for index in 0..starts[1] - starts[0] {
                let entry = checked_entry(bytes).ok_or_else(|| wrong("an entry ends behind it"))?;
                if entry.shared > key.len() || (index == 0 && entry.shared > 0) {
                    return Err(wrong("a key shares more than there is"));
                }
                key.truncate(entry.shared);
                key.extend_from_slice(entry.rest);
                if before
                    .as_ref()
                    .is_some_and(|before| *before >= key || common(before, &key) != entry.shared && index > 0)
                {
                    return Err(wrong("its keys are not in order, or share more than they say"));
                }
                before = Some(key.clone());
                bytes = &bytes[entry.size..];
            }
            if !bytes.is_empty() {
                return Err(wrong("bytes are behind its last key"));
            }
        }
        Ok(())
    }

    /// The last block whose first key is not greater.
    #[inline]
    fn block_for(&self, key: &[u8]) -> Option<usize> {
        let first = |place: &Place| entry_at(&self.bytes[usize::from(place.offset)..]).rest;
        self.places.partition_point(|place| first(place) <= key).checked_sub(1)
    }

    fn entries(&self, block_index: usize) -> impl Iterator<Item = Entry<'_>> {
        let mut bytes = &self.bytes[self.offset(block_index)..self.offset(block_index + 1)];
        std::iter::from_fn(move || {
            let entry = (!bytes.is_empty()).then(|| entry_at(bytes))?;
            bytes = &bytes[entry.size..];
            Some(entry)
        })
    }

    /// Where `key` belongs in a block, at its beginning if it is less than all there.
    #[inline]
    fn search(&self, block_index: usize, key: &[u8]) -> Search {
        let mut search = Search { index: 0, offset: 0, shared: 0, is_found: false };
        for entry in self.entries(block_index) {
            // With less in common with its predecessor than the key has, it is greater than both; with more, it is as the
            // predecessor is to the key, which is less.
            match entry.shared.cmp(&search.shared) {
                Ordering::Less => break,
                Ordering::Greater => {}
                Ordering::Equal => {
                    let rest = &key[search.shared..];
                    let more = common(entry.rest, rest);
                    match entry.rest[more..].first().cmp(&rest[more..].first()) {
                        Ordering::Less => search.shared += more,
                        Ordering::Greater => break,
                        Ordering::Equal => {
                            search.is_found = true;
                            break;
                        }
                    }
                }
            }
            search.index += 1;
            search.offset += entry.size;
        }
        search
    }

    /// A key of a block, and the bytes of the block before its entry.
    fn key_in(&self, block_index: usize, index: usize) -> (Vec<u8>, usize) {
        let (mut key, mut offset) = (Vec::new(), 0);
        for (at, entry) in self.entries(block_index).enumerate() {
            key.truncate(entry.shared);
            key.extend_from_slice(entry.rest);
            if at == index {
                return (key, offset);
            }
            offset += entry.size;
        }
        panic!("key {index} of a block of {}", self.indices_of(block_index).len())
    }

    fn offset_in(&self, block_index: usize, index: usize) -> usize {
        self.entries(block_index).take(index).map(|entry| entry.size).sum()
    }

    /// A block of its own for a key that is not there.
    fn insert_block(&mut self, block_index: usize, key: &[u8], size_max: usize) -> Result<Position, NoRoom> {
        let mut new = Vec::with_capacity(key.len() + 8);
        push_entry(0, key, &mut new);
        if self.size() + size_of::<Place>() + new.len() > size_max || self.len == LEN_MAX {
            return Err(NoRoom);
        }
        let (start, offset) = (self.start(block_index), self.offset(block_index));
        self.places.insert(block_index, Place { start: start as u16, offset: offset as u16 });
        self.replace(block_index, offset..offset, &new, 1, usize::MAX)?;
        Ok(Position { index: start, is_found: false })
    }

    /// Makes two blocks of one, of which the first keeps `count` keys: the next key is written whole.
    fn divide(&mut self, block_index: usize, count: usize, size_max: usize) -> Result<(), NoRoom> {
        let (key, offset) = self.key_in(block_index, count);
        let start = self.offset(block_index) + offset;
        let entry = entry_at(&self.bytes[start..]);
        let mut new = Vec::with_capacity(key.len() + 8);
        push_entry(0, &key, &mut new);
        self.replace(block_index, start..start + entry.size, &new, 0, size_max.saturating_sub(size_of::<Place>()))?;
        let keys_before = self.start(block_index) + count;
        self.places.insert(block_index + 1, Place { start: keys_before as u16, offset: start as u16 });
        Ok(())
    }

    /// Makes one block of this and the next. The first key there shares something again.
    fn join(&mut self, block_index: usize) {
        let count = self.indices_of(block_index).len();
        let (last, _) = self.key_in(block_index, count - 1);
        let start = self.offset(block_index + 1);
        let entry = entry_at(&self.bytes[start..]);
        let shared = common(&last, entry.rest);
        let mut new = Vec::with_capacity(entry.size);
        push_entry(shared, &entry.rest[shared..], &mut new);
        let old = start..start + entry.size;
        self.places.remove(block_index + 1);
        self.replace(block_index, old, &new, 0, usize::MAX).expect("there is no limit");
    }

    /// Puts bytes of a block in the place of others, by which it gets so many keys more.
    fn replace(
        &mut self,
        block_index: usize,
        old: Range<usize>,
        new: &[u8],
        keys_more: usize,
        size_max: usize,
    ) -> Result<(), NoRoom> {
        if self.size() - old.len() + new.len() > size_max {
            return Err(NoRoom);
        }
        let end = self.bytes.len();
        if new.len() > old.len() {
            grow(&mut self.bytes, new.len() - old.len());
        }
        self.bytes.copy_within(old.end..end, old.start + new.len());
        self.bytes.truncate(end - old.len() + new.len());
        self.bytes[old.start..old.start + new.len()].copy_from_slice(new);
        self.len = self.len.wrapping_add(keys_more);
        let bytes_more = new.len().wrapping_sub(old.len());
        for place in &mut self.places[block_index + 1..] {
            place.start = place.start.wrapping_add(keys_more as u16);
            place.offset = place.offset.wrapping_add(bytes_more as u16);
        }
        Ok(())
    }
}

impl DecodedKeys<[u8]> for BytesBlock {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn key(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }
}

/// How many bytes are the same at the beginning of both.
#[inline]
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

fn push_entry(shared: usize, rest: &[u8], out: &mut Vec<u8>) {
    out.push((shared.min(MORE) << 4 | rest.len().min(MORE)) as u8);
    for length in [shared, rest.len()] {
        if let Some(mut more) = length.checked_sub(MORE) {
            while more >= 1 << 7 {
                out.push(more as u8 | 1 << 7);
                more >>= 7;
            }
            out.push(more as u8);
        }
    }
    out.extend_from_slice(rest);
}

/// The entry that begins these bytes, whatever they are.
#[inline]
fn checked_entry(bytes: &[u8]) -> Option<Entry<'_>> {
    let mut at = 1;
    let mut length = |bits: u8| {
        let mut length = usize::from(bits);
        if length == MORE {
            let mut shift = 0;
            loop {
                let byte = *bytes.get(at)?;
                at += 1;
                length += usize::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 21)?;
                shift += 7;
                if byte < 1 << 7 {
                    break;
                }
            }
        }
        Some(length)
    };
    let head = *bytes.first()?;
    let (shared, rest) = (length(head >> 4)?, length(head & 0xf)?);
    let rest = bytes.get(at..at.checked_add(rest)?)?;
    Some(Entry { shared, rest, size: at + rest.len() })
}

/// The entry that begins these bytes, which were written here or checked.
#[inline]
fn entry_at(bytes: &[u8]) -> Entry<'_> {
    checked_entry(bytes).expect("entries are written here, or were checked")
}
