//! `simd_for`: the distance of each key from the first, packed in lanes at the width of the greatest (section 2.5).
//!
//! The block is its frames of 128 keys and nothing else: the width is that of the last key's distance, which the
//! descriptor has. So a key is had by itself. Delete-stable: without a key there are fewer distances, and none is
//! greater.

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::KeyChange;
use super::coding::{Coding, Keys};
use super::key::Key;
use super::lanes::{FRAME_LEN, LANES, each_row, number_at, packed_bytes, push};
use super::packed_frames::{Frame, pack_frame};
use super::rows::{HasRows, Row};
use crate::isa::each_isa;

/// See the module.
pub(super) struct SimdFor;

impl Coding for SimdFor {
    const IS_DELETE_STABLE: bool = true;

    fn size<K: Key>(keys: &[K]) -> usize {
        size(keys.len(), keys[keys.len() - 1].sub(keys[0]).width())
    }

    fn write<K: Key>(keys: &[K], out: &mut [u8]) {
        let (first, last) = (keys[0], keys[keys.len() - 1]);
        let width = last.sub(first).width();
        let mut out = out;
        for keys in keys.chunks(FRAME_LEN) {
            let mut numbers = [K::default(); FRAME_LEN];
            numbers.iter_mut().zip(keys).for_each(|(number, key)| *number = key.sub(first));
            let (packed, rest) = out.split_at_mut(packed_bytes(keys.len(), width));
            pack_frame(&numbers, width, packed);
            out = rest;
        }
    }

    #[inline]
    fn fits<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> bool {
        bytes.len() == size(descriptor.count, width(descriptor))
    }

    fn decode<K: Key>(block: &KeyBlock<'_, K>, out: &mut Keys<K>) {
        let KeyDescriptor { first, count, .. } = block.descriptor;
        decode(block.bytes, width(&block.descriptor), count, first, out);
    }

    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K {
        let frame = frame(block.bytes, width(&block.descriptor), block.descriptor.count, index / FRAME_LEN);
        block.descriptor.first.add(number_at(frame.packed, frame.width, index % FRAME_LEN))
    }

    fn lower_bound<K: Key>(block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
        let KeyDescriptor { first, count, .. } = block.descriptor;
        let (index, distance) = find(block.bytes, width(&block.descriptor), count, key.sub(first));
        (index, first.add(distance))
    }

    fn append<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        let KeyDescriptor { first, count, .. } = *descriptor;
        let width = width(descriptor);
        if key.sub(first).width() > width {
            return None;
        }
        let needed = size(count + 1, width);
        if needed > room.len() {
            return Some(KeyChange::NoRoom(needed));
        }
        let start = count / FRAME_LEN * packed_bytes(FRAME_LEN, width);
        push(&mut room[start..needed], width, count % FRAME_LEN, key.sub(first));
        (descriptor.last, descriptor.count, descriptor.byte_len) = (key, count + 1, needed);
        Some(KeyChange::Done(count))
    }
}

/// The width of the distances.
#[inline]
pub(super) fn width<K: Key>(descriptor: &KeyDescriptor<K>) -> u32 {
    descriptor.last.sub(descriptor.first).width()
}

/// The frame of this number, which has keys, of `count` in all.
#[inline(always)]
fn frame(bytes: &[u8], width: u32, count: usize, number: usize) -> Frame<'_> {
    let (from, frame_bytes) = (number * FRAME_LEN, packed_bytes(FRAME_LEN, width));
    let packed = &bytes[number * frame_bytes..];
    Frame { from, width, len: (count - from).min(FRAME_LEN), packed: &packed[..frame_bytes.min(packed.len())] }
}

/// Bytes of so many keys.
#[inline]
fn size(count: usize, width: u32) -> usize {
    count / FRAME_LEN * packed_bytes(FRAME_LEN, width) + packed_bytes(count % FRAME_LEN, width)
}

each_isa! {
    /// Writes the keys of a block, and unspecified ones behind them.
    fn decode<K: Key>(bytes: &[u8], width: u32, count: usize, first: K, out: &mut Keys<K>) = decode_body, proof;
    /// The first of the numbers of a block that is not less than `sought`, and its index; the first is, and the last is
    /// not.
    fn find<K: Key>(bytes: &[u8], width: u32, count: usize, sought: K) -> (usize, K) = find_body, proof;
}

#[inline(always)]
fn decode_body<P: HasRows, K: Key>(proof: P, bytes: &[u8], width: u32, count: usize, first: K, out: &mut Keys<K>) {
    let (out, _) = out.as_chunks_mut::<LANES>();
    let first = proof.row([first; LANES]);
    for number in 0..count.div_ceil(FRAME_LEN) {
        let frame = frame(bytes, width, count, number);
        let out = &mut out[frame.from / LANES..];
        each_row(proof, frame.packed, frame.rows(), width, |row, numbers: P::Row<K>| {
            numbers.add(first).store(&mut out[row]);
            true
        });
    }
}

#[inline(always)]
fn find_body<P: HasRows, K: Key>(proof: P, bytes: &[u8], width: u32, count: usize, sought: K) -> (usize, K) {
    let mut this = frame(bytes, width, count, 0);
    if count > FRAME_LEN && number_at::<K>(this.packed, width, FRAME_LEN - 1) < sought {
        this = frame(bytes, width, count, 1);
    }
    let (in_lanes, mut found) = (proof.row([sought; LANES]), (count - 1, sought));
    each_row(proof, this.packed, this.rows(), width, |row, numbers: P::Row<K>| {
        let lane = numbers.first_not_less(in_lanes);
        if lane < LANES {
            let mut lanes = [K::default(); LANES];
            numbers.store(&mut lanes);
            found = ((this.from + row * LANES + lane).min(count - 1), lanes[lane]);
        }
        lane == LANES
    });
    found
}
