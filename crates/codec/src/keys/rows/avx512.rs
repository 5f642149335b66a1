//! Rows in registers of 512 bits.
#![expect(unsafe_code, reason = "instructions that are there by proof, loads and stores that take pointers")]

use super::super::key::Word;
use super::super::lanes::{FRAME_LEN, LANES, ROWS};
use super::super::transposed::lane_of;
use super::{HasRows, Row};
use crate::isa::Avx512;
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// Sixteen numbers of 32 bits in `low`, or eight of 64 bits there and eight in `high`. There is none without an
/// [`Avx512`].
#[derive(Clone, Copy)]
pub(in super::super) struct Zmm<K> {
    low: __m512i,
    high: __m512i,
    key: PhantomData<K>,
}

impl<K: Word> Zmm<K> {
    #[inline(always)]
    fn new(low: __m512i, high: __m512i) -> Self {
        Zmm { low, high, key: PhantomData }
    }

    /// A row of one register, or of twice the same.
    #[inline(always)]
    fn both(self, register: __m512i) -> Self {
        Zmm::new(register, register)
    }
}

impl HasRows for Avx512 {
    type Row<K: Word> = Zmm<K>;

    #[inline(always)]
    fn row<K: Word>(self, lanes: [K; LANES]) -> Zmm<K> {
        // SAFETY: the array has 64 bytes a register; the set is there by proof.
        unsafe { load(lanes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn read<K: Word>(self, bytes: &[u8]) -> Zmm<K> {
        let bytes = &bytes[..LANES * K::BYTES];
        // SAFETY: the slice has 64 bytes a register; the set is there by proof, and little-endian.
        unsafe { load(bytes.as_ptr()) }
    }
}

/// # Safety
/// The set is there, and `from` has [`LANES`] words.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load<K: Word>(from: *const u8) -> Zmm<K> {
    // SAFETY: 16 words of 32 bits are one register, of 64 bits two. Loads need no alignment.
    unsafe {
        let low = _mm512_loadu_si512(from.cast());
        let high = if K::BYTES == 4 { low } else { _mm512_loadu_si512(from.add(64).cast()) };
        Zmm::new(low, high)
    }
}

/// Operations of two rows, lane by lane: for numbers of 32 bits and of 64.
macro_rules! lane_by_lane {
    ($($name:ident: $of_32:ident, $of_64:ident;)*) => {$(
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            #[inline]
            #[target_feature(enable = "avx512f")]
            fn run<K: Word>(one: Zmm<K>, other: Zmm<K>) -> Zmm<K> {
                match K::BYTES {
                    4 => one.both($of_32(one.low, other.low)),
                    _ => Zmm::new($of_64(one.low, other.low), $of_64(one.high, other.high)),
                }
            }
            // SAFETY: there is no row without the set.
            unsafe { run(self, other) }
        }
    )*};
}

/// Shifts of every number by equally many bits.
macro_rules! shifts {
    ($($name:ident: $of_32:ident, $of_64:ident;)*) => {$(
        #[inline(always)]
        fn $name(self, bits: u32) -> Self {
            #[inline]
            #[target_feature(enable = "avx512f")]
            fn run<K: Word>(row: Zmm<K>, bits: u32) -> Zmm<K> {
                let bits = _mm_cvtsi32_si128(bits as i32);
                match K::BYTES {
                    4 => row.both($of_32(row.low, bits)),
                    _ => Zmm::new($of_64(row.low, bits), $of_64(row.high, bits)),
                }
            }
            // SAFETY: there is no row without the set.
            unsafe { run(self, bits) }
        }
    )*};
}

impl<K: Word> Row<K> for Zmm<K> {
    lane_by_lane! {
        add: _mm512_add_epi32, _mm512_add_epi64;
        and: _mm512_and_si512, _mm512_and_si512;
        or: _mm512_or_si512, _mm512_or_si512;
    }

    shifts! {
        shl: _mm512_sll_epi32, _mm512_sll_epi64;
        shr: _mm512_srl_epi32, _mm512_srl_epi64;
    }

    #[inline(always)]
    fn store(self, out: &mut [K; LANES]) {
        // SAFETY: the array has 64 bytes a register; there is no row without the set.
        unsafe { store(self, out.as_mut_ptr().cast()) }
    }

    #[inline(always)]
    fn keep(self, lanes: u16) -> Self {
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn run<K: Word>(row: Zmm<K>, lanes: u16) -> Zmm<K> {
            match K::BYTES {
                4 => row.both(_mm512_maskz_mov_epi32(lanes, row.low)),
                _ => Zmm::new(
                    _mm512_maskz_mov_epi64(lanes as u8, row.low),
                    _mm512_maskz_mov_epi64((lanes >> 8) as u8, row.high),
                ),
            }
        }
        // SAFETY: there is no row without the set.
        unsafe { run(self, lanes) }
    }

    #[inline(always)]
    fn sum(self) -> K {
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn run<K: Word>(row: Zmm<K>) -> K {
            K::from_delta(match K::BYTES {
                4 => _mm512_reduce_add_epi32(row.low) as u64,
                _ => _mm512_reduce_add_epi64(_mm512_add_epi64(row.low, row.high)) as u64,
            })
        }
        // SAFETY: there is no row without the set.
        unsafe { run(self) }
    }

    #[inline(always)]
    fn first_not_less(self, other: Self) -> usize {
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn run<K: Word>(one: Zmm<K>, other: Zmm<K>) -> u16 {
            match K::BYTES {
                4 => _mm512_cmplt_epu32_mask(one.low, other.low),
                _ => {
                    let low = u16::from(_mm512_cmplt_epu64_mask(one.low, other.low));
                    low | u16::from(_mm512_cmplt_epu64_mask(one.high, other.high)) << 8
                }
            }
        }
        // SAFETY: there is no row without the set.
        unsafe { run(self, other).trailing_ones() as usize }
    }

    #[inline(always)]
    fn running_sums(self, before: Self) -> (Self, Self) {
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn run<K: Word>(row: Zmm<K>, before: Zmm<K>) -> (Zmm<K>, Zmm<K>) {
            if K::BYTES == 4 {
                let sums = running_sums_32(row.low);
                let all = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), sums);
                (row.both(_mm512_add_epi32(sums, before.low)), row.both(_mm512_add_epi32(all, before.low)))
            } else {
                let last = _mm512_set1_epi64(7);
                let (low, high) = (running_sums_64(row.low), running_sums_64(row.high));
                let middle = _mm512_add_epi64(before.low, _mm512_permutexvar_epi64(last, low));
                let end = _mm512_add_epi64(middle, _mm512_permutexvar_epi64(last, high));
                (Zmm::new(_mm512_add_epi64(low, before.low), _mm512_add_epi64(high, middle)), row.both(end))
            }
        }
        // SAFETY: there is no row without the set.
        unsafe { run(self, before) }
    }

    #[inline(always)]
    fn running_sums_of_fourths(self, before: Self) -> (Self, Self) {
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn run<K: Word>(row: Zmm<K>, before: Zmm<K>) -> (Zmm<K>, Zmm<K>) {
            if K::BYTES == 4 {
                let zero = _mm512_setzero_si512();
                let sums = _mm512_add_epi32(row.low, _mm512_alignr_epi32::<12>(row.low, zero));
                let sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<8>(sums, zero));
                let all = _mm512_shuffle_i32x4::<0b11_11_11_11>(sums, sums);
                (row.both(_mm512_add_epi32(sums, before.low)), row.both(_mm512_add_epi32(all, before.low)))
            } else {
                let sums = |row| _mm512_add_epi64(row, _mm512_alignr_epi64::<4>(row, _mm512_setzero_si512()));
                let last = |sums| _mm512_shuffle_i64x2::<0b11_10_11_10>(sums, sums);
                let (low, high) = (sums(row.low), sums(row.high));
                let middle = _mm512_add_epi64(before.low, last(low));
                let end = _mm512_add_epi64(middle, last(high));
                (Zmm::new(_mm512_add_epi64(low, before.low), _mm512_add_epi64(high, middle)), row.both(end))
            }
        }
        // SAFETY: there is no row without the set.
        unsafe { run(self, before) }
    }

    #[inline(always)]
    fn join_runs(rows: &[Self; ROWS], before: K, out: &mut [K; FRAME_LEN]) {
        let to = out.as_mut_ptr().cast();
        // SAFETY: there is no row without the set; a frame has 8 registers of 32-bit numbers, or 16 of 64-bit ones.
        unsafe {
            match K::BYTES {
                4 => join_runs_32(rows, before.to_delta() as u32, to),
                _ => join_runs_64(rows, before.to_delta(), to),
            }
        }
    }
}

/// # Safety
/// The set is there, and `to` has [`LANES`] words.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store<K: Word>(row: Zmm<K>, to: *mut u8) {
    // SAFETY: 16 words of 32 bits are one register, of 64 bits two. Stores need no alignment.
    unsafe {
        _mm512_storeu_si512(to.cast(), row.low);
        if K::BYTES == 8 {
            _mm512_storeu_si512(to.add(64).cast(), row.high);
        }
    }
}

/// A register and itself moved by 1, 2, 4 and 8 places, added up.
#[inline]
#[target_feature(enable = "avx512f")]
fn running_sums_32(row: __m512i) -> __m512i {
    let zero = _mm512_setzero_si512();
    let sums = _mm512_add_epi32(row, _mm512_alignr_epi32::<15>(row, zero));
    let sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<14>(sums, zero));
    let sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<12>(sums, zero));
    _mm512_add_epi32(sums, _mm512_alignr_epi32::<8>(sums, zero))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn running_sums_64(row: __m512i) -> __m512i {
    let zero = _mm512_setzero_si512();
    let sums = _mm512_add_epi64(row, _mm512_alignr_epi64::<7>(row, zero));
    let sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<6>(sums, zero));
    _mm512_add_epi64(sums, _mm512_alignr_epi64::<4>(sums, zero))
}

/// Where each run begins, in its lane: the running sums of the lanes' last sums in the order of runs, without those of
/// the run itself. The order turns a square of four by four, so that it is its own inverse.
#[inline]
#[target_feature(enable = "avx512f")]
fn starts_32(lane_sums: __m512i, before: __m512i) -> __m512i {
    let turned = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let sums = running_sums_32(_mm512_permutexvar_epi32(turned, lane_sums));
    let starts = _mm512_alignr_epi32::<15>(sums, _mm512_setzero_si512());
    _mm512_add_epi32(_mm512_permutexvar_epi32(turned, starts), before)
}

/// [`Row::join_runs`] for numbers of 32 bits. Pairs of rows are unpacked to pairs of numbers, these to four of a run;
/// then each register of first halves of runs meets that of their second halves.
///
/// # Safety
/// The set is there, and `to` has [`FRAME_LEN`] words.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn join_runs_32<K: Word>(rows: &[Zmm<K>; ROWS], before: u32, to: *mut u8) {
    let starts = starts_32(rows[ROWS - 1].low, _mm512_set1_epi32(before as i32));
    let row = |row: usize| _mm512_add_epi32(rows[row].low, starts);
    let halves = |from: usize| {
        let (low_0, high_0) =
            (_mm512_unpacklo_epi32(row(from), row(from + 1)), _mm512_unpackhi_epi32(row(from), row(from + 1)));
        let (low_1, high_1) =
            (_mm512_unpacklo_epi32(row(from + 2), row(from + 3)), _mm512_unpackhi_epi32(row(from + 2), row(from + 3)));
        [
            _mm512_unpacklo_epi64(low_0, low_1),
            _mm512_unpackhi_epi64(low_0, low_1),
            _mm512_unpacklo_epi64(high_0, high_1),
            _mm512_unpackhi_epi64(high_0, high_1),
        ]
    };
    let front = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let back = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    for (index, (first, second)) in halves(0).into_iter().zip(halves(4)).enumerate() {
        // SAFETY: four times two registers of 64 bytes are 128 words of 4 bytes. Stores need no alignment.
        unsafe {
            let to = to.add(128 * index);
            _mm512_storeu_si512(to.cast(), _mm512_permutex2var_epi64(first, front, second));
            _mm512_storeu_si512(to.add(64).cast(), _mm512_permutex2var_epi64(first, back, second));
        }
    }
}

/// [`Row::join_runs`] for numbers of 64 bits: each half of the lanes is a square of eight by eight.
///
/// # Safety
/// The set is there, and `to` has [`FRAME_LEN`] words.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn join_runs_64<K: Word>(rows: &[Zmm<K>; ROWS], before: u64, to: *mut u8) {
    let turned_low = _mm512_setr_epi64(0, 4, 8, 12, 1, 5, 9, 13);
    let turned_high = _mm512_setr_epi64(2, 6, 10, 14, 3, 7, 11, 15);
    let (zero, last) = (_mm512_setzero_si512(), _mm512_set1_epi64(7));
    let Zmm { low, high, .. } = rows[ROWS - 1];
    let sums_low = running_sums_64(_mm512_permutex2var_epi64(low, turned_low, high));
    let sums_high = running_sums_64(_mm512_permutex2var_epi64(low, turned_high, high));
    let sums_high = _mm512_add_epi64(sums_high, _mm512_permutexvar_epi64(last, sums_low));
    let (low, high) = (_mm512_alignr_epi64::<7>(sums_low, zero), _mm512_alignr_epi64::<7>(sums_high, sums_low));
    let before = _mm512_set1_epi64(before as i64);
    let starts = [
        _mm512_add_epi64(_mm512_permutex2var_epi64(low, turned_low, high), before),
        _mm512_add_epi64(_mm512_permutex2var_epi64(low, turned_high, high), before),
    ];
    for (half, starts) in starts.into_iter().enumerate() {
        let row = |row: usize| {
            let Zmm { low, high, .. } = rows[row];
            _mm512_add_epi64(if half == 0 { low } else { high }, starts)
        };
        // Of lanes 2 i and 2 i + 1, for each i: two numbers of a run.
        let pairs = |from: usize| {
            [_mm512_unpacklo_epi64(row(from), row(from + 1)), _mm512_unpackhi_epi64(row(from), row(from + 1))]
        };
        let (a, b, c, d) = (pairs(0), pairs(2), pairs(4), pairs(6));
        for odd in 0..2 {
            let front = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
            let back = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
            for (pair, order) in [front, back].into_iter().enumerate() {
                let first = _mm512_permutex2var_epi64(a[odd], order, b[odd]);
                let second = _mm512_permutex2var_epi64(c[odd], order, d[odd]);
                for within in 0..2 {
                    let keys = match within {
                        0 => _mm512_shuffle_i64x2::<0b01_00_01_00>(first, second),
                        _ => _mm512_shuffle_i64x2::<0b11_10_11_10>(first, second),
                    };
                    let lane = 8 * half + 4 * pair + 2 * within + odd;
                    // SAFETY: there are 16 runs of 8 words of 8 bytes. Stores need no alignment.
                    unsafe { _mm512_storeu_si512(to.add(64 * lane_of(lane)).cast(), keys) };
                }
            }
        }
    }
}
