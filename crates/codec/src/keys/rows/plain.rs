//! Rows as arrays.

use super::super::key::Word;
use super::super::lanes::{FRAME_LEN, LANES, ROWS};
use super::super::transposed::lane_of;
use super::{HasRows, Row};
use crate::isa::Portable;
use std::array::from_fn;

impl HasRows for Portable {
    type Row<K: Word> = [K; LANES];

    #[inline(always)]
    fn row<K: Word>(self, lanes: [K; LANES]) -> [K; LANES] {
        lanes
    }

    #[inline(always)]
    fn read<K: Word>(self, bytes: &[u8]) -> [K; LANES] {
        let bytes = &bytes[..LANES * K::BYTES];
        from_fn(|lane| K::read_word(&bytes[lane * K::BYTES..]))
    }
}

#[cfg(target_arch = "x86_64")]
impl HasRows for crate::isa::Avx2 {
    type Row<K: Word> = [K; LANES];

    #[inline(always)]
    fn row<K: Word>(self, lanes: [K; LANES]) -> [K; LANES] {
        lanes
    }

    #[inline(always)]
    fn read<K: Word>(self, bytes: &[u8]) -> [K; LANES] {
        Portable.read(bytes)
    }
}

impl<K: Word> Row<K> for [K; LANES] {
    #[inline(always)]
    fn store(self, out: &mut [K; LANES]) {
        *out = self;
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        from_fn(|lane| self[lane].add(other[lane]))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        from_fn(|lane| self[lane] & other[lane])
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        from_fn(|lane| self[lane] | other[lane])
    }

    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        self.map(|number| number << bits)
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        self.map(|number| number >> bits)
    }

    #[inline(always)]
    fn keep(self, lanes: u16) -> Self {
        from_fn(|lane| if lanes >> lane & 1 == 1 { self[lane] } else { K::default() })
    }

    #[inline(always)]
    fn sum(self) -> K {
        self.into_iter().fold(K::default(), |sum, number| sum.add(number))
    }

    #[inline(always)]
    fn first_not_less(self, other: Self) -> usize {
        let less = (0..LANES).fold(0u32, |bits, lane| bits | u32::from(self[lane] < other[lane]) << lane);
        less.trailing_ones() as usize
    }

    #[inline(always)]
    fn running_sums(self, before: Self) -> (Self, Self) {
        let mut sum = before[0];
        let sums = self.map(|number| {
            sum = sum.add(number);
            sum
        });
        (sums, [sum; LANES])
    }

    #[inline(always)]
    fn running_sums_of_fourths(self, before: Self) -> (Self, Self) {
        let mut sums = self.add(before);
        for lane in 4..LANES {
            sums[lane] = self[lane].add(sums[lane - 4]);
        }
        (sums, from_fn(|lane| sums[LANES - 4 + lane % 4]))
    }

    #[inline(always)]
    fn join_runs(rows: &[Self; ROWS], before: K, out: &mut [K; FRAME_LEN]) {
        let mut start = before;
        for (run, out) in out.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
            *out = from_fn(|row| start.add(rows[row][lane_of(run)]));
            start = out[ROWS - 1];
        }
    }
}
