//! A row of 16 numbers, one a lane, and what the packed codecs do with it.
//!
//! The codecs are written once over [`Row`]. [`plain`] is the reference: arrays and plain loops, of which the compiler
//! makes what registers the set has. [`avx512`] says the same in registers of 512 bits, one for `u32` and two for
//! `u64`: of sums along a row, comparisons and transpositions the compiler makes single numbers instead.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod plain;

use super::key::Word;
use super::lanes::{FRAME_LEN, LANES, ROWS};
use crate::isa::Proof;

/// The rows of an instruction set.
pub(super) trait HasRows: Proof {
    /// The row of this set.
    type Row<K: Word>: Row<K>;

    /// These numbers as a row.
    fn row<K: Word>(self, lanes: [K; LANES]) -> Self::Row<K>;

    /// The row of the first words in `bytes`, of which there are at least 16.
    fn read<K: Word>(self, bytes: &[u8]) -> Self::Row<K>;
}

/// Sixteen numbers. Arithmetic wraps.
pub(super) trait Row<K: Word>: Copy {
    /// Writes the numbers.
    fn store(self, out: &mut [K; LANES]);

    /// Lane by lane.
    fn add(self, other: Self) -> Self;

    /// Lane by lane.
    fn and(self, other: Self) -> Self;

    /// Lane by lane.
    fn or(self, other: Self) -> Self;

    /// Every number by so many bits, fewer than it has.
    fn shl(self, bits: u32) -> Self;

    /// Every number by so many bits, fewer than it has.
    fn shr(self, bits: u32) -> Self;

    /// The lanes whose bit is set, the lowest for the first, and zero for the others.
    fn keep(self, lanes: u16) -> Self;

    /// The sum of all lanes.
    fn sum(self) -> K;

    /// The first lane that is not less than the same of `other`; [`LANES`] where all are.
    fn first_not_less(self, other: Self) -> usize;

    /// The sum of each lane, all lanes before it, and `before`; and the sum of all lanes and `before`, in every lane,
    /// as it already is in `before`.
    fn running_sums(self, before: Self) -> (Self, Self);

    /// The same for every fourth lane: sums of lanes whose numbers are equal modulo 4.
    fn running_sums_of_fourths(self, before: Self) -> (Self, Self);

    /// For eight rows that are sums along each lane, and have the keys of a run in a lane: the keys, of all runs one
    /// after the other, above `before`. See [`super::transposed`].
    fn join_runs(rows: &[Self; ROWS], before: K, out: &mut [K; FRAME_LEN]);
}
