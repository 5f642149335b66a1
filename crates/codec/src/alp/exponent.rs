//! Which power of ten turns the values of a vector into integers.
//!
//! Each vector tries them all on a few of its values. ALP tries a shortlist that a few vectors of the block drew up; with
//! one exponent in place of pairs there are few enough to do without, and precision that changes inside a block (in
//! FCBench's `wesad_chest`) cannot be missed.

use super::decimal::Float;

/// The power of ten that values are multiplied with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Exponent(i8);

impl Exponent {
    /// Multiples of ten billion; more trailing zeros have not been met.
    pub(crate) const MIN: Exponent = Exponent(-10);
    /// The largest power of ten that a double holds exactly, which the division relies on.
    pub(crate) const MAX: Exponent = Exponent(22);

    /// The exponent with this number on disk.
    pub(crate) fn from_byte(byte: u8) -> Option<Exponent> {
        let exponent = Exponent(byte as i8);
        (Exponent::MIN..=Exponent::MAX).contains(&exponent).then_some(exponent)
    }

    /// Whole numbers.
    pub(crate) const ZERO: Exponent = Exponent(0);

    /// Its number on disk.
    pub(crate) fn to_byte(self) -> u8 {
        self.0 as u8
    }

    /// `10^|exponent|`, exact, and whether values are multiplied with it to become integers (or else divided).
    pub(super) fn power(self) -> (f64, bool) {
        (POWERS[usize::from(self.0.unsigned_abs())], self.0 >= 0)
    }

    /// All of them, ascending.
    pub(crate) fn all() -> impl Iterator<Item = Exponent> {
        (Exponent::MIN.0..=Exponent::MAX.0).map(Exponent)
    }
}

const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Values of a vector that are tried with each exponent, about. 32 decide like the whole vector in nearly all cases
/// (ALP, 4.2). They lie an odd distance apart, for columns that hold the readings of 2, 4 or 8 sensors in turn.
const SAMPLED_VALUES: usize = 32;

/// The exponent that makes `vector` smallest, judged from a few values; `previous` where another is no better.
pub(crate) fn choose<F: Float>(vector: &[F], previous: Exponent) -> Exponent {
    let step = (vector.len() / (SAMPLED_VALUES + 1)) | 1;
    let cost = |exponent: Exponent| estimated_bits(vector.iter().step_by(step).copied(), exponent);
    let (mut best, mut least) = (previous, cost(previous));
    for exponent in Exponent::all() {
        let bits = cost(exponent);
        if bits < least {
            (best, least) = (exponent, bits);
        }
    }
    best
}

/// Bits for `values`: each takes what the range of the integers needs, and exceptions their own bits and a position.
fn estimated_bits<F: Float>(values: impl Iterator<Item = F>, exponent: Exponent) -> u64 {
    let (mut count, mut exceptions, mut least, mut greatest) = (0, 0, i64::MAX, i64::MIN);
    for value in values {
        count += 1;
        match value.to_integer(exponent) {
            Some(integer) => {
                least = least.min(integer);
                greatest = greatest.max(integer);
            }
            None => exceptions += 1,
        }
    }
    let width = if least > greatest { 0 } else { 64 - greatest.abs_diff(least).leading_zeros() };
    count * u64::from(width) + exceptions * (8 * F::BYTES as u64 + 16)
}
