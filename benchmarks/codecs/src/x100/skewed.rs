//! The paper's synthetic data: 64-bit numbers for codes of 8 bits, a share of them exceptions.

use crate::random::Random;
use crate::reference::patch_list::Coding;

/// Bits of a code.
pub(super) const BIT_WIDTH: u32 = 8;

/// Where the numbers that have a code begin.
const BASE: u64 = 1 << 40;

/// Numbers that PFOR has codes for, but for a share of them. NAIVE has one code less; no number needs that.
pub(super) fn around_base(value_count: usize, exception_share: f64, bit_width: u32) -> Vec<u64> {
    let mut random = Random::new(11);
    let below = ((1 << bit_width) - 1).max(1);
    let mut number = || match random.happens(exception_share) {
        true => BASE + (1 << 32) + random.of_width(48),
        false => BASE + random.below(below),
    };
    (0..value_count).map(|_| number()).collect()
}

/// The coding of these.
pub(super) fn base() -> Coding {
    Coding::Base(BASE)
}

/// 255 numbers all over the range, and a share of others.
pub(super) fn frequent(value_count: usize, exception_share: f64) -> Vec<u64> {
    let mut random = Random::new(12);
    let values = frequent_values();
    let mut number = || match random.happens(exception_share) {
        true => random.bits() | 1,
        false => values[random.below(values.len() as u64) as usize],
    };
    (0..value_count).map(|_| number()).collect()
}

/// The numbers that PDICT has codes for: even ones, so that exceptions are others.
pub(super) fn frequent_values() -> Vec<u64> {
    let mut random = Random::new(13);
    (0..(1 << BIT_WIDTH) - 1).map(|_| random.bits() & !1).collect()
}
