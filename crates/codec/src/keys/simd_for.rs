//! `simd_for`: the distance of each key from the first, packed in lanes at the width of the greatest (section 2.5).
//!
//! The block is its frames of 128 keys and nothing else: the width is that of the last key's distance, which the descriptor
//! has. So a key is had by itself. Delete-stable: without a key there are fewer distances, and none is greater.

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::KeyChange;
use super::coding::{Coding, Keys};
use super::key::{Key, Word};
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
        for (number, out) in out.as_chunks_mut::<FRAME_LEN>().0[..count.div_ceil(FRAME_LEN)].iter_mut().enumerate() {
            let frame = frame(block, number);
            add_to_first(frame.packed, frame.width, frame.len, first, out);
        }
    }

    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K {
        let frame = frame(block, index / FRAME_LEN);
        block.descriptor.first.add(number_at(frame.packed, frame.width, index % FRAME_LEN))
    }

    fn lower_bound<K: Key>(block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
        let KeyDescriptor { first, count, .. } = block.descriptor;
        let (mut this, mut from, distance) = (frame(block, 0), 0, key.sub(first));
        if count > FRAME_LEN && number_at::<K>(this.packed, this.width, FRAME_LEN - 1) < distance {
            (this, from) = (frame(block, 1), FRAME_LEN);
        }
        let within = find(this.packed, this.width, this.len, distance).min(this.len - 1);
        (from + within, first.add(number_at(this.packed, this.width, within)))
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

/// A frame that has keys.
#[inline]
fn frame<'a, K: Key>(block: &KeyBlock<'a, K>, number: usize) -> Frame<'a> {
    let width = width(&block.descriptor);
    let bytes = packed_bytes(FRAME_LEN, width);
    let packed = &block.bytes[number * bytes..];
    let len = (block.descriptor.count - number * FRAME_LEN).min(FRAME_LEN);
    Frame { from: number * FRAME_LEN, width, len, packed: &packed[..bytes.min(packed.len())] }
}

/// Bytes of so many keys.
#[inline]
fn size(count: usize, width: u32) -> usize {
    count / FRAME_LEN * packed_bytes(FRAME_LEN, width) + packed_bytes(count % FRAME_LEN, width)
}

each_isa! {
    /// Writes the keys of a frame of `len`, and unspecified ones behind them.
    fn add_to_first<K: Key>(packed: &[u8], width: u32, len: usize, first: K, out: &mut [K; FRAME_LEN])
        = decode_body, proof;
    /// The first of the `len` numbers of a frame that is not less than `distance`, or `len`.
    fn find<K: Key>(packed: &[u8], width: u32, len: usize, distance: K) -> usize = find_body, proof;
}

#[inline(always)]
fn decode_body<P: HasRows, K: Word>(
    proof: P,
    packed: &[u8],
    width: u32,
    len: usize,
    first: K,
    out: &mut [K; FRAME_LEN],
) {
    let (out, _) = out.as_chunks_mut::<LANES>();
    let first = proof.row([first; LANES]);
    each_row(proof, packed, len.div_ceil(LANES), width, |row, numbers: P::Row<K>| {
        numbers.add(first).store(&mut out[row]);
        true
    });
}

#[inline(always)]
fn find_body<P: HasRows, K: Word>(proof: P, packed: &[u8], width: u32, len: usize, distance: K) -> usize {
    let (sought, mut found) = (proof.row([distance; LANES]), len);
    each_row(proof, packed, len.div_ceil(LANES), width, |row, numbers: P::Row<K>| {
        let lane = numbers.first_not_less(sought);
        if lane < LANES {
            found = row * LANES + lane;
        }
        lane == LANES
    });
    found
}
