//! `bp128_d1` and `bp128_d4`: differences, packed in frames of 128 at the width of the greatest of the frame (section 2.4).
//!
//! D1 takes the difference from the key before, the smallest there is; to undo it, each register of 16 differences is summed
//! up with four additions of itself, shifted. D4 takes that from the fourth key before: about two bits more, but two
//! additions do. The first keys of a block take their difference from the first key, which thus is zero.
//!
//! One key is had by adding up the differences before it, lane by lane and without a running sum.
//!
//! Not delete-stable: without the second key, 1, 2, 3, 4, ... has a difference of 2, which needs two bits where all others
//! need one. A frame is written anew as soon as a key is appended whose difference is wider than it, or inserted, or deleted.

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::KeyChange;
use super::coding::{Coding, Keys};
use super::key::{Key, Word};
use super::lanes::{FRAME_LEN, LANES, each_row};
use super::packed_frames::{self, frames};
use super::rows::{HasRows, Row};
use crate::isa::each_isa;

/// Differences from the key before.
pub(super) struct D1;

/// Differences from the fourth key before.
pub(super) struct D4;

impl Coding for D1 {
    const IS_DELETE_STABLE: bool = false;

    fn size<K: Key>(keys: &[K]) -> usize {
        packed_frames::size(keys, steps_d1)
    }

    fn write<K: Key>(keys: &[K], out: &mut [u8]) {
        packed_frames::write(keys, out, steps_d1);
    }

    #[inline]
    fn fits<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> bool {
        packed_frames::fits(descriptor, bytes)
    }

    fn decode<K: Key>(block: &KeyBlock<'_, K>, out: &mut Keys<K>) {
        let mut before = block.descriptor.first;
        for (frame, out) in frames(block).zip(out.as_chunks_mut::<FRAME_LEN>().0) {
            decode_d1(frame.packed, frame.width, frame.len, before, out);
            before = out[frame.len - 1];
        }
    }

    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K {
        let (mut key, mut left) = (block.descriptor.first, index + 1);
        for frame in frames(block) {
            let len = left.min(frame.len);
            key = key.add(sum_d1(frame.packed, frame.width, len));
            left -= len;
            if left == 0 {
                break;
            }
        }
        key
    }

    fn lower_bound<K: Key>(block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
        let (mut before, mut from) = (block.descriptor.first, 0);
        for frame in frames(block) {
            let (index, found) = find_d1(frame.packed, frame.width, frame.len, before, key);
            if index < frame.len {
                return (from + index, found);
            }
            (before, from) = (found, from + frame.len);
        }
        (from - 1, before)
    }

    fn append<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        packed_frames::append(descriptor, room, key, key.sub(descriptor.last))
    }
}

impl Coding for D4 {
    const IS_DELETE_STABLE: bool = false;

    fn size<K: Key>(keys: &[K]) -> usize {
        packed_frames::size(keys, steps_d4)
    }

    fn write<K: Key>(keys: &[K], out: &mut [u8]) {
        packed_frames::write(keys, out, steps_d4);
    }

    #[inline]
    fn fits<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> bool {
        packed_frames::fits(descriptor, bytes)
    }

    fn decode<K: Key>(block: &KeyBlock<'_, K>, out: &mut Keys<K>) {
        let mut before = [block.descriptor.first; 4];
        for (frame, out) in frames(block).zip(out.as_chunks_mut::<FRAME_LEN>().0) {
            decode_d4(frame.packed, frame.width, frame.len, before, out);
            if let Some(last) = out.last_chunk() {
                before = *last;
            }
        }
    }

    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K {
        let (mut key, mut left) = (block.descriptor.first, index + 1);
        for frame in frames(block) {
            let len = left.min(frame.len);
            left -= len;
            // Of a frame before the last, the lanes that end in the fourth key before, and so on.
            let len = if left == 0 { len } else { FRAME_LEN - 3 + index % 4 };
            key = key.add(sum_d4(frame.packed, frame.width, len));
            if left == 0 {
                break;
            }
        }
        key
    }

    fn lower_bound<K: Key>(block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
        let (mut before, mut from) = ([block.descriptor.first; 4], 0);
        for frame in frames(block) {
            let (index, found, last) = find_d4(frame.packed, frame.width, frame.len, before, key);
            if index < frame.len {
                return (from + index, found);
            }
            (before, from) = (last, from + frame.len);
        }
        (from - 1, before[3])
    }

    fn append<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        let bytes = &room[..descriptor.byte_len];
        let block = KeyBlock { codec: super::KeyCodec::Bp128D4, descriptor: *descriptor, bytes };
        let fourth_before = match descriptor.count.checked_sub(4) {
            Some(index) => D4::select(&block, index),
            None => descriptor.first,
        };
        packed_frames::append(descriptor, room, key, key.sub(fourth_before))
    }
}

each_isa! {
    /// The differences of the keys of a frame, zero behind them, and the width of the greatest.
    pub(super) fn steps_d1<K: Key>(keys: &[K], before: [K; 4], out: &mut [K; FRAME_LEN]) -> u32 = steps_d1_body;
    /// The same from the fourth key before.
    fn steps_d4<K: Key>(keys: &[K], before: [K; 4], out: &mut [K; FRAME_LEN]) -> u32 = steps_d4_body;
    /// Writes the keys of a frame of `len`, and unspecified ones behind them.
    pub(super) fn decode_d1<K: Key>(packed: &[u8], width: u32, len: usize, before: K, out: &mut [K; FRAME_LEN])
        = decode_d1_body, proof;
    fn decode_d4<K: Key>(packed: &[u8], width: u32, len: usize, before: [K; 4], out: &mut [K; FRAME_LEN])
        = decode_d4_body, proof;
    /// The first of the `len` keys of a frame that is not less than `key`, and its index. Without one `len`, and the last key.
    pub(super) fn find_d1<K: Key>(packed: &[u8], width: u32, len: usize, before: K, key: K) -> (usize, K)
        = find_d1_body, proof;
    /// The same, and the keys before the next frame, if this one is full.
    fn find_d4<K: Key>(packed: &[u8], width: u32, len: usize, before: [K; 4], key: K) -> (usize, K, [K; 4])
        = find_d4_body, proof;
    /// The sum of the first `len` numbers, at least one.
    pub(super) fn sum_d1<K: Key>(packed: &[u8], width: u32, len: usize) -> K = sum_d1_body, proof;
    /// The sum of every fourth number that ends in the last of the first `len`, at least one.
    fn sum_d4<K: Key>(packed: &[u8], width: u32, len: usize) -> K = sum_d4_body, proof;
}

#[inline(always)]
fn steps_d1_body<K: Word>(keys: &[K], before: [K; 4], out: &mut [K; FRAME_LEN]) -> u32 {
    let Some(first) = keys.first() else { return 0 };
    out[0] = first.sub(before[3]);
    let mut all = out[0];
    for ((out, key), before) in out[1..].iter_mut().zip(&keys[1..]).zip(keys) {
        *out = key.sub(*before);
        all = all | *out;
    }
    all.width()
}

#[inline(always)]
fn steps_d4_body<K: Word>(keys: &[K], before: [K; 4], out: &mut [K; FRAME_LEN]) -> u32 {
    let mut all = K::default();
    for ((out, key), before) in out.iter_mut().zip(keys).zip(before) {
        *out = key.sub(before);
        all = all | *out;
    }
    for ((out, key), before) in out.iter_mut().zip(keys).skip(4).zip(keys) {
        *out = key.sub(*before);
        all = all | *out;
    }
    all.width()
}

#[inline(always)]
fn decode_d1_body<P: HasRows, K: Word>(
    proof: P,
    packed: &[u8],
    width: u32,
    len: usize,
    before: K,
    out: &mut [K; FRAME_LEN],
) {
    let (out, _) = out.as_chunks_mut::<LANES>();
    let mut before = proof.row([before; LANES]);
    each_row(proof, packed, len.div_ceil(LANES), width, |row, steps: P::Row<K>| {
        let (keys, last) = steps.running_sums(before);
        keys.store(&mut out[row]);
        before = last;
        true
    });
}

#[inline(always)]
fn decode_d4_body<P: HasRows, K: Word>(
    proof: P,
    packed: &[u8],
    width: u32,
    len: usize,
    before: [K; 4],
    out: &mut [K; FRAME_LEN],
) {
    let (out, _) = out.as_chunks_mut::<LANES>();
    let mut before = proof.row(std::array::from_fn(|lane| before[lane % 4]));
    each_row(proof, packed, len.div_ceil(LANES), width, |row, steps: P::Row<K>| {
        let (keys, last) = steps.running_sums_of_fourths(before);
        keys.store(&mut out[row]);
        before = last;
        true
    });
}

#[inline(always)]
fn find_d1_body<P: HasRows, K: Word>(proof: P, packed: &[u8], width: u32, len: usize, before: K, key: K) -> (usize, K) {
    let (mut before, sought) = (proof.row([before; LANES]), proof.row([key; LANES]));
    let (mut keys, mut found) = ([K::default(); LANES], None);
    each_row(proof, packed, len.div_ceil(LANES), width, |row, steps: P::Row<K>| {
        let (sums, last) = steps.running_sums(before);
        before = last;
        let lane = sums.first_not_less(sought);
        if lane < LANES {
            sums.store(&mut keys);
            found = Some(((row * LANES + lane).min(len - 1), keys[lane]));
        }
        lane == LANES
    });
    found.unwrap_or_else(|| {
        before.store(&mut keys);
        (len, keys[0])
    })
}

#[inline(always)]
fn find_d4_body<P: HasRows, K: Word>(
    proof: P,
    packed: &[u8],
    width: u32,
    len: usize,
    before: [K; 4],
    key: K,
) -> (usize, K, [K; 4]) {
    let mut before = proof.row(std::array::from_fn(|lane| before[lane % 4]));
    let sought = proof.row([key; LANES]);
    let (mut keys, mut found) = ([K::default(); LANES], None);
    each_row(proof, packed, len.div_ceil(LANES), width, |row, steps: P::Row<K>| {
        let (sums, last) = steps.running_sums_of_fourths(before);
        before = last;
        let lane = sums.first_not_less(sought);
        if lane < LANES {
            sums.store(&mut keys);
            found = Some(((row * LANES + lane).min(len - 1), keys[lane]));
        }
        lane == LANES
    });
    let mut last = [K::default(); LANES];
    before.store(&mut last);
    let (index, key) = found.unwrap_or((len, last[3]));
    (index, key, [last[0], last[1], last[2], last[3]])
}

#[inline(always)]
fn sum_d1_body<P: HasRows, K: Word>(proof: P, packed: &[u8], width: u32, len: usize) -> K {
    lane_sums(proof, packed, width, len).sum()
}

#[inline(always)]
fn sum_d4_body<P: HasRows, K: Word>(proof: P, packed: &[u8], width: u32, len: usize) -> K {
    lane_sums::<P, K>(proof, packed, width, len).keep(0x1111 << ((len - 1) % 4)).sum()
}

/// The sums along the lanes of the first `len` numbers.
#[inline(always)]
fn lane_sums<P: HasRows, K: Word>(proof: P, packed: &[u8], width: u32, len: usize) -> P::Row<K> {
    let last_row = (len - 1) / LANES;
    let of_last_row = u16::MAX >> (LANES - 1 - (len - 1) % LANES);
    let mut sums = proof.row([K::default(); LANES]);
    each_row(proof, packed, last_row + 1, width, |row, steps| {
        sums = sums.add(steps.keep(if row == last_row { of_last_row } else { u16::MAX }));
        true
    });
    sums
}
