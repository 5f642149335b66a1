//! `bp128_transposed`: the differences of `bp128_d1`, each in the lane where a register needs it.
//!
//! The 128 keys of a full frame are 16 runs of 8. A run lies in one lane, its n-th difference in row n, so that adding row to
//! row sums up all runs at once; the sums of whole runs, summed up once a frame, say where each begins. What is left is to
//! turn the 8 rows of 16 lanes into 16 runs of 8 keys, in three steps of unpacking pairs. That needs run `r` in lane
//! `4 (r mod 4) + r / 4`.
//!
//! FastLanes (Afroozeh and Boncz, VLDB 2023) orders rows for the same reason, but stores where each lane begins; as sums
//! of a frame are cheap, we store nothing, and a key takes just what `bp128_d1` takes. A frame that is not full lies as
//! there, so that keys are appended in place, and is turned as it fills. Not delete-stable, for the same reason.

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::KeyChange;
use super::bp128::{decode_d1, find_d1, steps_d1, sum_d1};
use super::coding::{Coding, Keys};
use super::count_less::count_less;
use super::key::{Key, Word};
use super::lanes::{FRAME_LEN, LANES, ROWS, each_row};
use super::packed_frames::{self, frames, pack_frame};
use super::rows::{HasRows, Row};
use crate::isa::each_isa;

/// See the module.
pub(super) struct Transposed;

impl Coding for Transposed {
    const IS_DELETE_STABLE: bool = false;

    fn size<K: Key>(keys: &[K]) -> usize {
        packed_frames::size(keys, steps_d1)
    }

    fn write<K: Key>(keys: &[K], out: &mut [u8]) {
        packed_frames::write(keys, out, |keys, before, out| {
            let width = steps_d1(keys, before, out);
            if keys.len() == FRAME_LEN {
                *out = turn(out);
            }
            width
        });
    }

    #[inline]
    fn fits<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> bool {
        packed_frames::fits(descriptor, bytes)
    }

    fn decode<K: Key>(block: &KeyBlock<'_, K>, out: &mut Keys<K>) {
        let mut before = block.descriptor.first;
        for (frame, out) in frames(block).zip(out.as_chunks_mut::<FRAME_LEN>().0) {
            match frame.len {
                FRAME_LEN => decode_turned(frame.packed, frame.width, before, out),
                len => decode_d1(frame.packed, frame.width, len, before, out),
            }
            before = out[frame.len - 1];
        }
    }

    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K {
        let (mut key, mut left) = (block.descriptor.first, index + 1);
        for frame in frames(block) {
            let len = left.min(frame.len);
            key = key.add(match frame.len {
                FRAME_LEN => sum_turned(frame.packed, frame.width, len),
                _ => sum_d1(frame.packed, frame.width, len),
            });
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
            let (index, found) = match frame.len {
                FRAME_LEN => find_turned(frame.packed, frame.width, before, key),
                len => find_d1(frame.packed, frame.width, len, before, key),
            };
            if index < frame.len {
                return (from + index, found);
            }
            (before, from) = (found, from + frame.len);
        }
        (from - 1, before)
    }

    fn append<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        let change = packed_frames::append(descriptor, room, key, key.sub(descriptor.last))?;
        if descriptor.count.is_multiple_of(FRAME_LEN) && matches!(change, KeyChange::Done(_)) {
            let packed = packed_frames::last_packed_mut(descriptor, room);
            let width = (packed.len() * 8 / FRAME_LEN) as u32;
            let mut numbers = [K::default(); FRAME_LEN];
            unpack_frame(packed, width, &mut numbers);
            pack_frame(&turn(&numbers), width, packed);
        }
        Some(change)
    }
}

/// The lane of a run, and the run of a lane.
pub(super) const fn lane_of(run: usize) -> usize {
    4 * (run % 4) + run / 4
}

/// The numbers of a frame, each in its lane.
fn turn<K: Word>(numbers: &[K; FRAME_LEN]) -> [K; FRAME_LEN] {
    std::array::from_fn(|place| numbers[lane_of(place % LANES) * ROWS + place / LANES])
}

/// The lanes of the runs before each.
static LANES_BEFORE: [u16; LANES + 1] = {
    let (mut before, mut run) = ([0; LANES + 1], 0);
    while run < LANES {
        before[run + 1] = before[run] | 1 << lane_of(run);
        run += 1;
    }
    before
};

each_isa! {
    fn unpack_frame<K: Key>(packed: &[u8], width: u32, out: &mut [K; FRAME_LEN]) = unpack_body, proof;
    /// Writes the keys of a full frame.
    fn decode_turned<K: Key>(packed: &[u8], width: u32, before: K, out: &mut [K; FRAME_LEN]) = decode_body, proof;
    /// The sum of the differences of the first `len` keys of a full frame, at least one.
    fn sum_turned<K: Key>(packed: &[u8], width: u32, len: usize) -> K = sum_body, proof;
}

#[inline(always)]
fn unpack_body<P: HasRows, K: Word>(proof: P, packed: &[u8], width: u32, out: &mut [K; FRAME_LEN]) {
    let (out, _) = out.as_chunks_mut::<LANES>();
    each_row(proof, packed, ROWS, width, |row, numbers: P::Row<K>| {
        numbers.store(&mut out[row]);
        true
    });
}

#[inline(always)]
fn decode_body<P: HasRows, K: Word>(proof: P, packed: &[u8], width: u32, before: K, out: &mut [K; FRAME_LEN]) {
    let mut sums = proof.row([K::default(); LANES]);
    let mut rows = [sums; ROWS];
    each_row(proof, packed, ROWS, width, |row, steps| {
        sums = sums.add(steps);
        rows[row] = sums;
        true
    });
    Row::join_runs(&rows, before, out);
}

#[inline(always)]
fn sum_body<P: HasRows, K: Word>(proof: P, packed: &[u8], width: u32, len: usize) -> K {
    let (last_run, last_row) = ((len - 1) / ROWS, (len - 1) % ROWS);
    let mut sums = proof.row([K::default(); LANES]);
    each_row(proof, packed, ROWS, width, |row, steps: P::Row<K>| {
        // Of runs before the last all rows count, of the last those to the last.
        let runs = if row <= last_row { last_run + 1 } else { last_run };
        sums = sums.add(steps.keep(LANES_BEFORE[runs]));
        true
    });
    sums.sum()
}

/// The first key of a full frame that is not less than `key`, and its index; without one, [`FRAME_LEN`] and the last key.
fn find_turned<K: Key>(packed: &[u8], width: u32, before: K, key: K) -> (usize, K) {
    let mut keys = [K::default(); FRAME_LEN];
    decode_turned(packed, width, before, &mut keys);
    let index = count_less(&keys, key);
    (index, keys[index.min(FRAME_LEN - 1)])
}
