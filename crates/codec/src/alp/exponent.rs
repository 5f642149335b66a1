//! Which power of ten turns the values of a vector into integers.
//!
//! Each vector is tried on a few of its values. ALP tries a shortlist that a few vectors of the block drew up; with one
//! exponent in place of pairs there are few enough to do without, and precision that changes inside a block (in FCBench's
//! `wesad_chest`) cannot be missed.

use crate::scaled::{Float, Scale};

/// The power of ten that values are multiplied with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Exponent(i8);

impl Exponent {
    /// Multiples of ten billion; more trailing zeros have not been met.
    pub(crate) const MIN: Exponent = Exponent(-10);
    /// The largest power of ten that a double holds exactly, which the division relies on.
    pub(crate) const MAX: Exponent = Exponent(Scale::TENTHS_MAX as i8);
    /// Whole numbers.
    pub(crate) const ZERO: Exponent = Exponent(0);

    /// The exponent with this number on disk.
    pub(crate) fn from_byte(byte: u8) -> Option<Exponent> {
        let exponent = Exponent(byte as i8);
        (Exponent::MIN..=Exponent::MAX).contains(&exponent).then_some(exponent)
    }

    /// Its number on disk.
    pub(crate) fn to_byte(self) -> u8 {
        self.0 as u8
    }

    /// What integers under it stand for.
    pub(crate) fn scale(self) -> Scale {
        match usize::try_from(self.0) {
            Ok(exponent) => Scale::tenths(exponent),
            Err(_) => Scale::tens(usize::from(self.0.unsigned_abs())),
        }
    }

    /// All of them, ascending: more and more digits.
    pub(crate) fn all() -> impl Iterator<Item = Exponent> {
        (Exponent::MIN.0..=Exponent::MAX.0).map(Exponent)
    }

    /// Those with fewer digits, descending.
    fn coarser(self) -> impl Iterator<Item = Exponent> {
        (Exponent::MIN.0..self.0).rev().map(Exponent)
    }
}

/// Values of a vector that are tried with each exponent, at most. 32 decide like the whole vector in nearly all cases
/// (ALP, 4.2). They lie an odd distance apart, for columns that hold the readings of 2, 4 or 8 sensors in turn.
const SAMPLED_VALUES: usize = 32;

/// Exceptions among the sampled values with which coarser exponents are not tried: they have no fewer.
const MISSES_MAX: usize = SAMPLED_VALUES / 4;

/// The exponent that makes `vector` smallest, judged from a few values; `previous` where another is no better.
pub(crate) fn choose<F: Float>(vector: &[F], previous: Exponent) -> Exponent {
    let step = (vector.len() / SAMPLED_VALUES) | 1;
    let mut sample = [F::default(); SAMPLED_VALUES];
    let mut sampled = 0;
    for (slot, value) in sample.iter_mut().zip(vector.iter().step_by(step)) {
        *slot = *value;
        sampled += 1;
    }
    let sample = &sample[..sampled];
    let (bits, misses) = estimated_bits(sample, previous);
    let mut best = (bits, previous);
    let mut consider = |exponent: Exponent| {
        let (bits, misses) = estimated_bits(sample, exponent);
        if bits < best.0 {
            best = (bits, exponent);
        }
        misses
    };
    if misses > 0 {
        Exponent::all().for_each(|exponent| _ = consider(exponent));
    } else {
        // Finer ones make the integers larger, and nothing better.
        let _ = previous.coarser().find(|exponent| consider(*exponent) > MISSES_MAX);
    }
    best.1
}

/// Bits for the values, each of which takes what the range of the integers needs, and exceptions their own bits and a
/// position; and how many exceptions there are.
fn estimated_bits<F: Float>(values: &[F], exponent: Exponent) -> (u64, usize) {
    let survey = exponent.scale().survey(values);
    let bits = values.len() as u64 * u64::from(survey.width()) + survey.misses as u64 * (8 * F::BYTES as u64 + 16);
    (bits, survey.misses)
}
