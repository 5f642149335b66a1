//! `vbyte`: the difference of each key but the first from the one before, seven bits a byte, the lowest first; the high
//! bit says that another byte follows (section 2.1, where bytes and bits are the same).
//!
//! What stands in front of a change and behind it stays as it is, so keys come and go in place by moving bytes (section
//! 3.3). Delete-stable: the sum of two differences needs at most a byte more than the greater, and so never more than
//! both.
//!
//! Walking steps over eight differences at once where each has one byte.

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::{KeyChange, move_tail};
use super::coding::{Coding, Keys};
use super::key::{Key, Word};

/// See the module.
pub(super) struct Vbyte;

impl Coding for Vbyte {
    const IS_DELETE_STABLE: bool = true;

    fn size<K: Key>(keys: &[K]) -> usize {
        keys.windows(2).map(|pair| step_len(pair[1].sub(pair[0]))).sum()
    }

    fn write<K: Key>(keys: &[K], out: &mut [u8]) {
        let mut at = 0;
        for pair in keys.windows(2) {
            at = put(pair[1].sub(pair[0]), out, at);
        }
    }

    #[inline]
    fn fits<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> bool {
        let steps = descriptor.count - 1;
        (steps..=steps * step_len(K::MAX)).contains(&bytes.len())
    }

    fn decode<K: Key>(block: &KeyBlock<'_, K>, out: &mut Keys<K>) {
        let (mut key, mut at) = (block.descriptor.first, 0);
        out[0] = key;
        for out in &mut out[1..block.descriptor.count] {
            let (step, end) = get::<K>(block.bytes, at);
            (key, at) = (key.add(step), end);
            *out = key;
        }
    }

    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K {
        let place = walk_to_index(block.bytes, block.descriptor.first, index);
        place.before.add(place.step)
    }

    fn lower_bound<K: Key>(block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
        if key <= block.descriptor.first {
            return (0, block.descriptor.first);
        }
        let place = walk_to_key(block.bytes, &block.descriptor, key);
        (place.index, place.before.add(place.step))
    }

    fn append<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        let step = key.sub(descriptor.last);
        let needed = descriptor.byte_len + step_len(step);
        if needed > room.len() {
            return Some(KeyChange::NoRoom(needed));
        }
        put(step, room, descriptor.byte_len);
        *descriptor =
            KeyDescriptor { last: key, count: descriptor.count + 1, byte_len: needed, first: descriptor.first };
        Some(KeyChange::Done(descriptor.count - 1))
    }

    fn insert<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        Some(insert(descriptor, room, key, walk_to_key))
    }

    fn delete<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], index: usize) -> Option<KeyChange> {
        Some(delete(descriptor, room, index, walk_to_index))
    }
}

/// A difference in the bytes: that of the key at `index`, which is at least 1, from the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<K> {
    pub(super) index: usize,
    /// The key before.
    pub(super) before: K,
    pub(super) step: K,
    /// Where the difference begins, and where it ends.
    pub(super) at: usize,
    pub(super) end: usize,
}

/// [`Coding::insert`] for all that write these bytes; `walk` finds the place.
pub(super) fn insert<K: Key>(
    descriptor: &mut KeyDescriptor<K>,
    room: &mut [u8],
    key: K,
    walk: impl Fn(&[u8], &KeyDescriptor<K>, K) -> Place<K>,
) -> KeyChange {
    let first = descriptor.first;
    if key == first {
        return KeyChange::Present(0);
    }
    if key < first {
        let end = step_len(first.sub(key));
        let needed = descriptor.byte_len + end;
        if needed > room.len() {
            return KeyChange::NoRoom(needed);
        }
        move_tail(descriptor, room, 0, end);
        put(first.sub(key), room, 0);
        (descriptor.first, descriptor.count) = (key, descriptor.count + 1);
        return KeyChange::Done(0);
    }
    let Place { index, before, step, at, end } = walk(&room[..descriptor.byte_len], descriptor, key);
    let next = before.add(step);
    if next == key {
        return KeyChange::Present(index);
    }
    let (to, from) = (key.sub(before), next.sub(key));
    let middle = at + step_len(to);
    let new_end = middle + step_len(from);
    let needed = descriptor.byte_len - end + new_end;
    if needed > room.len() {
        return KeyChange::NoRoom(needed);
    }
    move_tail(descriptor, room, end, new_end);
    put(to, room, at);
    put(from, room, middle);
    descriptor.count += 1;
    KeyChange::Done(index)
}

/// [`Coding::delete`] for all that write these bytes; `walk` finds the place.
pub(super) fn delete<K: Key>(
    descriptor: &mut KeyDescriptor<K>,
    room: &mut [u8],
    index: usize,
    walk: impl Fn(&[u8], K, usize) -> Place<K>,
) -> KeyChange {
    let bytes = &room[..descriptor.byte_len];
    if index == 0 {
        let (step, end) = get::<K>(bytes, 0);
        move_tail(descriptor, room, end, 0);
        descriptor.first = descriptor.first.add(step);
    } else {
        let Place { before, step, at, end, .. } = walk(bytes, descriptor.first, index);
        if index + 1 == descriptor.count {
            descriptor.byte_len = at;
            descriptor.last = before;
        } else {
            let (next, next_end) = get::<K>(bytes, end);
            let step = step.add(next);
            // Where a damaged block is in the way, its bytes do not need to be kept.
            let new_end = (at + step_len(step)).min(next_end);
            move_tail(descriptor, room, next_end, new_end);
            put(step, &mut room[..new_end], at);
        }
    }
    descriptor.count -= 1;
    if descriptor.count == 1 {
        // What a damaged block had besides is forgotten with it.
        (descriptor.last, descriptor.byte_len) = (descriptor.first, 0);
    }
    KeyChange::Done(index)
}

/// The place of the key at `index`, which is at least 1.
fn walk_to_index<K: Key>(bytes: &[u8], first: K, index: usize) -> Place<K> {
    let (mut before, mut at, mut left) = (first, 0, index);
    while left > 8
        && let Some(sum) = sum_of_eight(bytes, at)
    {
        (before, at, left) = (before.add(K::from_delta(sum)), at + 8, left - 8);
    }
    loop {
        let (step, end) = get(bytes, at);
        if left <= 1 {
            return Place { index, before, step, at, end };
        }
        (before, at, left) = (before.add(step), end, left - 1);
    }
}

/// The place of the first key that is not less than `key`, which is greater than the first. Without one, the last
/// place.
fn walk_to_key<K: Key>(bytes: &[u8], descriptor: &KeyDescriptor<K>, key: K) -> Place<K> {
    let (mut before, mut at, mut index) = (descriptor.first, 0, 1);
    while index + 8 < descriptor.count
        && let Some(sum) = sum_of_eight(bytes, at)
        && before.add(K::from_delta(sum)) < key
    {
        (before, at, index) = (before.add(K::from_delta(sum)), at + 8, index + 8);
    }
    finish_walk(bytes, descriptor.count, key, Place { index, before, step: K::default(), at, end: at })
}

/// The place of the first key from `start` on that is not less than `key`, one difference after the other.
pub(super) fn finish_walk<K: Key>(bytes: &[u8], count: usize, key: K, start: Place<K>) -> Place<K> {
    let Place { mut index, mut before, mut at, .. } = start;
    loop {
        let (step, end) = get(bytes, at);
        if before.add(step) >= key || index + 1 >= count {
            return Place { index, before, step, at, end };
        }
        (before, at, index) = (before.add(step), end, index + 1);
    }
}

/// The sum of the next eight differences, if each has one byte.
#[inline]
fn sum_of_eight(bytes: &[u8], at: usize) -> Option<u64> {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    let word = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
    let pairs = (word & EVEN) + (word >> 8 & EVEN);
    (word & HIGH == 0).then_some(pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48)
}

/// Bytes of a difference.
#[inline]
pub(super) fn step_len<K: Word>(step: K) -> usize {
    (step.width().max(1) as usize).div_ceil(7)
}

/// Writes a difference at `at`, if there is room, and returns where it ends.
#[inline]
fn put<K: Word>(step: K, out: &mut [u8], mut at: usize) -> usize {
    let mut rest = step.to_delta();
    while rest >= 0x80 {
        if let Some(out) = out.get_mut(at) {
            *out = rest as u8 | 0x80;
        }
        (rest, at) = (rest >> 7, at + 1);
    }
    if let Some(out) = out.get_mut(at) {
        *out = rest as u8;
    }
    at + 1
}

/// The difference at `at`, and where it ends: at the end of the bytes at the latest.
#[inline]
pub(super) fn get<K: Word>(bytes: &[u8], at: usize) -> (K, usize) {
    let Some(rest) = bytes.get(at..) else { return (K::default(), at) };
    let (mut step, mut shift) = (0, 0);
    for (len, byte) in rest.iter().enumerate() {
        step |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 || shift >= K::BITS {
            return (K::from_delta(step), at + len + 1);
        }
    }
    (K::from_delta(step), bytes.len())
}
