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
use super::lanes::{FRAME_LEN, LANES, Row, each_row};
use super::packed_frames::{self, frames};
use crate::Result;
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

    fn check<K: Key>(block: &KeyBlock<'_, K>) -> Result<()> {
        packed_frames::check(block)
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
            key = key.add(sum(frame.packed, frame.width, len, 1));
            left -= len;
            if left == 0 {
                break;
            }
        }
        key
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

    fn check<K: Key>(block: &KeyBlock<'_, K>) -> Result<()> {
        packed_frames::check(block)
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
            key = key.add(sum(frame.packed, frame.width, len, 4));
            if left == 0 {
                break;
            }
        }
        key
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
        = decode_d1_body;
    fn decode_d4<K: Key>(packed: &[u8], width: u32, len: usize, before: [K; 4], out: &mut [K; FRAME_LEN])
        = decode_d4_body;
    /// The sum of every `stride`th of the first `len` numbers, at least one, that ends in the last of them. A stride divides
    /// the lanes.
    pub(super) fn sum<K: Key>(packed: &[u8], width: u32, len: usize, stride: usize) -> K = sum_body;
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
    for ((out, key), before) in out.iter_mut().zip(keys).zip(before.iter().chain(keys)) {
        *out = key.sub(*before);
        all = all | *out;
    }
    all.width()
}

#[inline(always)]
fn decode_d1_body<K: Word>(packed: &[u8], width: u32, len: usize, mut before: K, out: &mut [K; FRAME_LEN]) {
    let (out, _) = out.as_chunks_mut::<LANES>();
    each_row(packed, len.div_ceil(LANES), width, |row, steps: Row<K>| {
        let mut keys = running_sums(steps);
        for key in &mut keys {
            *key = key.add(before);
        }
        before = keys[LANES - 1];
        out[row] = keys;
    });
}

#[inline(always)]
fn decode_d4_body<K: Word>(packed: &[u8], width: u32, len: usize, before: [K; 4], out: &mut [K; FRAME_LEN]) {
    let (out, _) = out.as_chunks_mut::<LANES>();
    let mut before: Row<K> = std::array::from_fn(|lane| before[lane % 4]);
    each_row(packed, len.div_ceil(LANES), width, |row, steps: Row<K>| {
        let mut keys = add_shifted::<K, 8>(add_shifted::<K, 4>(steps));
        for (key, before) in keys.iter_mut().zip(before) {
            *key = key.add(before);
        }
        before = std::array::from_fn(|lane| keys[LANES - 4 + lane % 4]);
        out[row] = keys;
    });
}

/// Adds to each number all before it.
#[inline(always)]
pub(super) fn running_sums<K: Word>(row: Row<K>) -> Row<K> {
    add_shifted::<K, 8>(add_shifted::<K, 4>(add_shifted::<K, 2>(add_shifted::<K, 1>(row))))
}

/// Adds to each number the one so many lanes before.
#[inline(always)]
fn add_shifted<K: Word, const LANES_BY: usize>(row: Row<K>) -> Row<K> {
    let mut sums = row;
    for lane in LANES_BY..LANES {
        sums[lane] = row[lane].add(row[lane - LANES_BY]);
    }
    sums
}

#[inline(always)]
fn sum_body<K: Word>(packed: &[u8], width: u32, len: usize, stride: usize) -> K {
    let (last_row, last_lane) = ((len - 1) / LANES, (len - 1) % LANES);
    let mut sums = [K::default(); LANES];
    each_row(packed, last_row + 1, width, |row, steps: Row<K>| {
        let end = if row == last_row { last_lane + 1 } else { LANES };
        for lane in 0..LANES {
            sums[lane] = sums[lane].add(if lane < end { steps[lane] } else { K::default() });
        }
    });
    let wanted = |lane: usize| if lane % stride == last_lane % stride { sums[lane] } else { K::default() };
    (0..LANES).fold(K::default(), |sum, lane| sum.add(wanted(lane)))
}
