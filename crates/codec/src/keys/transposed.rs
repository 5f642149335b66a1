//! `bp128_transposed`: the differences of `bp128_d1`, each in the lane where a register needs it.
//!
//! The 128 keys of a full frame are 16 runs of 8. A run lies in one lane, its n-th difference in row n, so that adding
//! row to row sums up all runs at once; the sums of whole runs, summed up once a frame, say where each begins. What is
//! left is to turn the 8 rows of 16 lanes into 16 runs of 8 keys, in three steps of unpacking pairs. That needs run `r`
//! in lane `4 (r mod 4) + r / 4`.
//!
//! FastLanes (Afroozeh and Boncz, VLDB 2023) orders rows for the same reason, but stores where each lane begins; as
//! sums of a frame are cheap, we store nothing, and a key takes just what `bp128_d1` takes. A frame that is not full
//! lies as there, so that keys are appended in place, and is turned as it fills. Not delete-stable, for the same
//! reason.

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::KeyChange;
use super::bp128::{D1, Stride, find_in_frame, frame_sum, steps_d1};
use super::coding::{Coding, Keys};
use super::key::{Key, Word};
use super::lanes::{FRAME_LEN, LANES, ROWS, each_row};
use super::packed_frames::{self, Frame, each_frame, frames, pack_frame};
use super::rows::{HasRows, Row};
use crate::isa::each_isa;
use std::hint::select_unpredictable;

/// See the module.
pub(super) struct Transposed;

impl Coding for Transposed {
    const IS_DELETE_STABLE: bool = false;

    fn size<K: Key>(keys: &[K]) -> usize {
        packed_frames::size(keys, steps_d1)
    }

    fn write<K: Key>(keys: &[K], out: &mut [u8]) {
        packed_frames::write(keys, out, turned_steps);
    }

    fn encode<K: Key>(keys: &[K], out: &mut Vec<u8>) {
        packed_frames::encode(keys, out, turned_steps);
    }

    #[inline]
    fn fits<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> bool {
        packed_frames::fits(descriptor, bytes)
    }

    fn decode<K: Key>(block: &KeyBlock<'_, K>, out: &mut Keys<K>) {
        decode(block.bytes, block.descriptor.count, block.descriptor.first, out);
    }

    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K {
        block.descriptor.first.add(sum_to(block.bytes, block.descriptor.count, index))
    }

    fn lower_bound<K: Key>(block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
        let KeyDescriptor { first, last, count, .. } = block.descriptor;
        find(block.bytes, count, first, key).unwrap_or((count - 1, last))
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

/// The differences of a frame as they are packed, and the width of the greatest.
fn turned_steps<K: Key>(keys: &[K], before: [K; 4], out: &mut [K; FRAME_LEN]) -> u32 {
    let width = steps_d1(keys, before, out);
    if keys.len() == FRAME_LEN {
        *out = turn(out);
    }
    width
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
    /// Writes the keys of a block, and unspecified ones behind them.
    fn decode<K: Key>(bytes: &[u8], count: usize, first: K, out: &mut Keys<K>) = decode_body, proof;
    /// The first key that is not less than `key`, and its index.
    fn find<K: Key>(bytes: &[u8], count: usize, first: K, key: K) -> Option<(usize, K)> = find_body, proof;
    /// The sum of the differences that lead from the first key to that at `index`.
    fn sum_to<K: Key>(bytes: &[u8], count: usize, index: usize) -> K = sum_to_body, proof;
}

#[inline(always)]
fn unpack_body<P: HasRows, K: Word>(proof: P, packed: &[u8], width: u32, out: &mut [K; FRAME_LEN]) {
    let (out, _) = out.as_chunks_mut::<LANES>();
    each_row(proof, packed, ROWS, width, |row, numbers: P::Row<K>| {
        numbers.store(&mut out[row]);
        true
    });
}

/// Writes the keys of a full frame.
#[inline(always)]
fn decode_turned<P: HasRows, K: Word>(proof: P, frame: &Frame<'_>, before: K, out: &mut [K; FRAME_LEN]) {
    let mut sums = proof.row([K::default(); LANES]);
    let mut rows = [sums; ROWS];
    each_row(proof, frame.packed, ROWS, frame.width, |row, steps| {
        sums = sums.add(steps);
        rows[row] = sums;
        true
    });
    Row::join_runs(&rows, before, out);
}

#[inline(always)]
fn decode_body<P: HasRows, K: Key>(proof: P, bytes: &[u8], count: usize, first: K, out: &mut Keys<K>) {
    let mut before = first;
    each_frame(bytes, count, |frame| {
        let out = &mut out.as_chunks_mut::<FRAME_LEN>().0[frame.from / FRAME_LEN];
        if frame.len == FRAME_LEN {
            decode_turned(proof, &frame, before, out);
            before = out[FRAME_LEN - 1];
        } else {
            let (out, _) = out.as_chunks_mut::<LANES>();
            let mut before = proof.row([before; LANES]);
            each_row(proof, frame.packed, frame.rows(), frame.width, |row, steps| {
                let (keys, last) = D1::keys(steps, before);
                keys.store(&mut out[row]);
                before = last;
                true
            });
        }
        true
    });
}

/// Sums up the first of two frames, which costs a fraction of its keys, to have the keys of one frame only.
#[inline(always)]
fn find_body<P: HasRows, K: Key>(proof: P, bytes: &[u8], count: usize, first: K, key: K) -> Option<(usize, K)> {
    let (mut frame, second) = frames(bytes, count);
    let (mut before, sought) = (first, proof.row([key; LANES]));
    if let Some(second) = second {
        let end = first.add(frame_sum::<P, K>(proof, &frame));
        let is_behind = end < key;
        frame = select_unpredictable(is_behind, second, frame);
        before = select_unpredictable(is_behind, end, before);
    }
    let found = if frame.len == FRAME_LEN {
        let mut keys = [K::default(); FRAME_LEN];
        decode_turned(proof, &frame, before, &mut keys);
        let rows = keys.as_chunks::<LANES>().0.iter();
        let index = rows.map(|row| proof.row(*row).first_not_less(sought)).sum::<usize>().min(FRAME_LEN - 1);
        Some((index, keys[index]))
    } else {
        let mut before = proof.row([before; LANES]);
        find_in_frame::<P, K, D1>(proof, &frame, &mut before, sought)
    };
    found.map(|(index, key)| (frame.from + index, key))
}

#[inline(always)]
fn sum_to_body<P: HasRows, K: Key>(proof: P, bytes: &[u8], count: usize, index: usize) -> K {
    let mut sums = proof.row([K::default(); LANES]);
    each_frame(bytes, count, |frame| {
        let within = (index - frame.from).min(FRAME_LEN - 1);
        // Of a run before the last all rows count, of the last those to the last. In a frame that is not turned, of a
        // row before the last all lanes count, of the last those to the last.
        let (of_before, of_last, rows) = match frame.len {
            FRAME_LEN => (LANES_BEFORE[within / ROWS + 1], LANES_BEFORE[within / ROWS], within % ROWS + 1),
            _ => (u16::MAX, (1 << (within % LANES)) - 1, within / LANES + 1),
        };
        let is_turned = frame.len == FRAME_LEN;
        each_row(proof, frame.packed, if is_turned { ROWS } else { rows }, frame.width, |row, steps: P::Row<K>| {
            let lanes = match is_turned {
                true if row < rows => of_before,
                true => of_last,
                false if row + 1 < rows => of_before,
                false => of_last << 1 | 1,
            };
            sums = sums.add(steps.keep(lanes));
            true
        });
        index >= frame.from + FRAME_LEN
    });
    sums.sum()
}
