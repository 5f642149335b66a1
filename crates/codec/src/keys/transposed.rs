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
use super::bp128::{decode_d1, running_sums, steps_d1, sum};
use super::coding::{Coding, Keys};
use super::key::{Key, Word};
use super::lanes::{FRAME_LEN, LANES, ROWS, Row, each_row};
use super::packed_frames::{self, frames, pack_frame};
use crate::Result;
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

    fn check<K: Key>(block: &KeyBlock<'_, K>) -> Result<()> {
        packed_frames::check(block)
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
                _ => sum(frame.packed, frame.width, len, 1),
            });
            left -= len;
            if left == 0 {
                break;
            }
        }
        key
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
const fn lane_of(run: usize) -> usize {
    4 * (run % 4) + run / 4
}

/// The numbers of a frame, each in its lane.
fn turn<K: Word>(numbers: &[K; FRAME_LEN]) -> [K; FRAME_LEN] {
    std::array::from_fn(|place| numbers[lane_of(place % LANES) * ROWS + place / LANES])
}

each_isa! {
    fn unpack_frame<K: Key>(packed: &[u8], width: u32, out: &mut [K; FRAME_LEN]) = unpack_body;
    /// Writes the keys of a full frame.
    fn decode_turned<K: Key>(packed: &[u8], width: u32, before: K, out: &mut [K; FRAME_LEN]) = decode_body;
    /// The sum of the differences of the first `len` keys of a full frame, at least one.
    fn sum_turned<K: Key>(packed: &[u8], width: u32, len: usize) -> K = sum_body;
}

#[inline(always)]
fn unpack_body<K: Word>(packed: &[u8], width: u32, out: &mut [K; FRAME_LEN]) {
    let (out, _) = out.as_chunks_mut::<LANES>();
    each_row(packed, ROWS, width, |row, numbers| out[row] = numbers);
}

#[inline(always)]
fn decode_body<K: Word>(packed: &[u8], width: u32, before: K, out: &mut [K; FRAME_LEN]) {
    let (mut sums, mut rows) = ([K::default(); LANES], [[K::default(); LANES]; ROWS]);
    each_row(packed, ROWS, width, |row, steps: Row<K>| {
        for lane in 0..LANES {
            sums[lane] = sums[lane].add(steps[lane]);
        }
        rows[row] = sums;
    });
    let ends = running_sums(std::array::from_fn(|run| sums[lane_of(run)]));
    let starts: Row<K> = std::array::from_fn(|lane| before.add(ends[lane_of(lane)].sub(sums[lane])));
    for row in &mut rows {
        for lane in 0..LANES {
            row[lane] = row[lane].add(starts[lane]);
        }
    }
    for (run, out) in out.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
        *out = std::array::from_fn(|row| rows[row][lane_of(run)]);
    }
}

#[inline(always)]
fn sum_body<K: Word>(packed: &[u8], width: u32, len: usize) -> K {
    let (last_run, last_row) = ((len - 1) / ROWS, (len - 1) % ROWS);
    let mut sums = [K::default(); LANES];
    each_row(packed, ROWS, width, |row, steps: Row<K>| {
        // Of runs before the last all rows count, of the last those to the last.
        let end = if row <= last_row { last_run + 1 } else { last_run };
        for lane in 0..LANES {
            sums[lane] = sums[lane].add(if lane_of(lane) < end { steps[lane] } else { K::default() });
        }
    });
    sums.into_iter().fold(K::default(), |sum, lane| sum.add(lane))
}
