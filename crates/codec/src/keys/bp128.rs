//! `bp128_d1` and `bp128_d4`: differences, packed in frames of 128 at the width of the greatest of the frame (section
//! 2.4).
//!
//! D1 takes the difference from the key before, the smallest there is; to undo it, each register of 16 differences is
//! summed up with four additions of itself, shifted. D4 takes that from the fourth key before: about two bits more, but
//! two additions do. The first keys of a block take their difference from the first key, which thus is zero.
//!
//! One key is had by adding up the differences before it, lane by lane and without a running sum.
//!
//! Not delete-stable: without the second key, 1, 2, 3, 4, ... has a difference of 2, which needs two bits where all
//! others need one. A frame is written anew as soon as a key is appended whose difference is wider than it, or
//! inserted, or deleted.

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::KeyChange;
use super::coding::{Coding, Keys};
use super::key::{Key, Word};
use super::lanes::{FRAME_LEN, LANES, ROWS, each_row};
use super::packed_frames::{self, each_frame};
use super::rows::{HasRows, Row};
use crate::isa::each_isa;

/// From which key before a difference is taken.
pub(super) trait Stride {
    /// The differences of the keys of a frame from those before, zero behind them, and the width of the greatest.
    fn steps<K: Key>(keys: &[K], before: [K; 4], out: &mut [K; FRAME_LEN]) -> u32;

    /// The keys of a row of differences, and what is before the next, in the lanes where it is needed.
    fn keys<K: Word, R: Row<K>>(steps: R, before: R) -> (R, R);

    /// The lanes whose differences add up to the key in this one.
    fn lanes_before(lane: usize) -> u16;

    /// What the difference of a key behind the last is taken from.
    fn before_next<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> K;
}

/// Differences from the key before.
pub(super) struct D1;

/// Differences from the fourth key before.
pub(super) struct D4;

impl Stride for D1 {
    fn steps<K: Key>(keys: &[K], before: [K; 4], out: &mut [K; FRAME_LEN]) -> u32 {
        steps_d1(keys, before, out)
    }

    #[inline(always)]
    fn keys<K: Word, R: Row<K>>(steps: R, before: R) -> (R, R) {
        steps.running_sums(before)
    }

    #[inline(always)]
    fn lanes_before(_: usize) -> u16 {
        u16::MAX
    }

    #[inline]
    fn before_next<K: Key>(descriptor: &KeyDescriptor<K>, _: &[u8]) -> K {
        descriptor.last
    }
}

impl Stride for D4 {
    fn steps<K: Key>(keys: &[K], before: [K; 4], out: &mut [K; FRAME_LEN]) -> u32 {
        steps_d4(keys, before, out)
    }

    #[inline(always)]
    fn keys<K: Word, R: Row<K>>(steps: R, before: R) -> (R, R) {
        steps.running_sums_of_fourths(before)
    }

    #[inline(always)]
    fn lanes_before(lane: usize) -> u16 {
        0x1111 << (lane % 4)
    }

    #[inline]
    fn before_next<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> K {
        match descriptor.count.checked_sub(4) {
            Some(index) => descriptor.first.add(sum_to::<K, D4>(bytes, descriptor.count, index)),
            None => descriptor.first,
        }
    }
}

impl<S: Stride> Coding for S {
    const IS_DELETE_STABLE: bool = false;

    fn size<K: Key>(keys: &[K]) -> usize {
        packed_frames::size(keys, S::steps)
    }

    fn write<K: Key>(keys: &[K], out: &mut [u8]) {
        packed_frames::write(keys, out, S::steps);
    }

    fn encode<K: Key>(keys: &[K], out: &mut Vec<u8>) {
        packed_frames::encode(keys, out, S::steps);
    }

    #[inline]
    fn fits<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> bool {
        packed_frames::fits(descriptor, bytes)
    }

    fn decode<K: Key>(block: &KeyBlock<'_, K>, out: &mut Keys<K>) {
        decode::<K, S>(block.bytes, block.descriptor.count, block.descriptor.first, out);
    }

    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K {
        block.descriptor.first.add(sum_to::<K, S>(block.bytes, block.descriptor.count, index))
    }

    fn lower_bound<K: Key>(block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
        let KeyDescriptor { first, last, count, .. } = block.descriptor;
        find::<K, S>(block.bytes, count, first, key).unwrap_or((count - 1, last))
    }

    fn append<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        let before = S::before_next(descriptor, &room[..descriptor.byte_len]);
        packed_frames::append(descriptor, room, key, key.sub(before))
    }
}

each_isa! {
    /// [`Stride::steps`].
    pub(super) fn steps_d1<K: Key>(keys: &[K], before: [K; 4], out: &mut [K; FRAME_LEN]) -> u32 = steps_d1_body;
    /// [`Stride::steps`].
    fn steps_d4<K: Key>(keys: &[K], before: [K; 4], out: &mut [K; FRAME_LEN]) -> u32 = steps_d4_body;
    /// Writes the keys of a block, and unspecified ones behind them.
    fn decode<K: Key, S: Stride>(bytes: &[u8], count: usize, first: K, out: &mut Keys<K>)
        = decode_body::<_, K, S>, proof;
    /// The first key that is not less than `key`, and its index.
    fn find<K: Key, S: Stride>(bytes: &[u8], count: usize, first: K, key: K) -> Option<(usize, K)>
        = find_body::<_, K, S>, proof;
    /// The sum of the differences that lead from the first key to that at `index`.
    fn sum_to<K: Key, S: Stride>(bytes: &[u8], count: usize, index: usize) -> K = sum_to_body::<_, K, S>, proof;
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
fn decode_body<P: HasRows, K: Key, S: Stride>(proof: P, bytes: &[u8], count: usize, first: K, out: &mut Keys<K>) {
    let (out, _) = out.as_chunks_mut::<LANES>();
    let mut before = proof.row([first; LANES]);
    each_frame(bytes, count, |frame| {
        let out = &mut out[frame.from / LANES..];
        each_row(proof, frame.packed, frame.rows(), frame.width, |row, steps| {
            let (keys, last) = S::keys(steps, before);
            keys.store(&mut out[row]);
            before = last;
            true
        });
        true
    });
}

/// The first key of a frame that is not less than `sought`, and its index in the frame; `before` becomes what is before
/// the next frame.
#[inline(always)]
pub(super) fn find_in_frame<P: HasRows, K: Key, S: Stride>(
    proof: P,
    frame: &packed_frames::Frame<'_>,
    before: &mut P::Row<K>,
    sought: P::Row<K>,
) -> Option<(usize, K)> {
    let mut found = None;
    each_row(proof, frame.packed, frame.rows(), frame.width, |row, steps| {
        let (keys, last) = S::keys(steps, *before);
        *before = last;
        let lane = keys.first_not_less(sought);
        if lane < LANES {
            let mut lanes = [K::default(); LANES];
            keys.store(&mut lanes);
            found = Some(((row * LANES + lane).min(frame.len - 1), lanes[lane]));
        }
        lane == LANES
    });
    found
}

/// The sum of all differences of a full frame.
#[inline(always)]
pub(super) fn frame_sum<P: HasRows, K: Key>(proof: P, frame: &packed_frames::Frame<'_>) -> K {
    let mut sums = proof.row([K::default(); LANES]);
    each_row(proof, frame.packed, ROWS, frame.width, |_, steps| {
        sums = sums.add(steps);
        true
    });
    sums.sum()
}

#[inline(always)]
fn find_body<P: HasRows, K: Key, S: Stride>(
    proof: P,
    bytes: &[u8],
    count: usize,
    first: K,
    key: K,
) -> Option<(usize, K)> {
    let (mut before, sought) = (proof.row([first; LANES]), proof.row([key; LANES]));
    let mut found = None;
    each_frame(bytes, count, |frame| {
        let within = find_in_frame::<P, K, S>(proof, &frame, &mut before, sought);
        found = within.map(|(index, key)| (frame.from + index, key));
        found.is_none()
    });
    found
}

#[inline(always)]
fn sum_to_body<P: HasRows, K: Key, S: Stride>(proof: P, bytes: &[u8], count: usize, index: usize) -> K {
    let mut sums = proof.row([K::default(); LANES]);
    each_frame(bytes, count, |frame| {
        let (last_row, last_lane) = ((index - frame.from) / LANES, index % LANES);
        let of_last_row = u16::MAX >> (LANES - 1 - last_lane);
        each_row(proof, frame.packed, frame.rows().min(last_row + 1), frame.width, |row, steps: P::Row<K>| {
            sums = sums.add(if row == last_row { steps.keep(of_last_row) } else { steps });
            true
        });
        index >= frame.from + FRAME_LEN
    });
    sums.keep(S::lanes_before(index % LANES)).sum()
}
