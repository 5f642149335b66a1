//! Loops over the values of a vector.

use super::Float;
use super::arithmetic::{Arithmetic, there_and_back};
use crate::VECTOR_LEN;
use crate::isa::{Proof, each_isa};

/// What the integers of some values are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Values that have none.
    pub(crate) misses: usize,
    /// Of the others; the least is above the greatest where there are no others.
    pub(crate) least: i64,
    /// See [`Survey::least`].
    pub(crate) greatest: i64,
}

impl Survey {
    /// Bits that the range of the integers needs.
    pub(crate) fn width(self) -> u32 {
        if self.least > self.greatest { 0 } else { 64 - self.greatest.abs_diff(self.least).leading_zeros() }
    }
}

each_isa! {
    /// Writes an integer and a flag (1 where the integer does not lead back) for each value; returns whether one is set.
    pub(super) fn integers<F: Float, A: Arithmetic>(
        scale: A, values: &[F], integers: &mut [F::Integer], flags: &mut [u8; VECTOR_LEN],
    ) -> bool = integers_body, proof;

    /// Writes the value of each integer.
    pub(super) fn values<F: Float, A: Arithmetic>(scale: A, integers: &[F::Integer], out: &mut [F]) = values_body, proof;

    /// Looks, and writes nothing.
    pub(super) fn survey<F: Float, A: Arithmetic>(scale: A, values: &[F]) -> Survey = survey_body, proof;

    /// Replaces values by what they lead back to, if that is within `bound`.
    pub(super) fn round<F: Float, A: Arithmetic>(scale: A, bound: f64, values: &mut [F]) = round_body, proof;
}

#[inline(always)]
fn integers_body<P: Proof, F: Float, A: Arithmetic>(
    proof: P,
    scale: A,
    values: &[F],
    integers: &mut [F::Integer],
    flags: &mut [u8; VECTOR_LEN],
) -> bool {
    let mut any = 0;
    for ((value, slot), flag) in values.iter().zip(integers).zip(flags) {
        let (integer, _, is_same) = there_and_back(proof, scale, *value);
        *slot = F::cut(integer);
        *flag = u8::from(!is_same);
        any |= *flag;
    }
    any != 0
}

#[inline(always)]
fn values_body<P: Proof, F: Float, A: Arithmetic>(proof: P, scale: A, integers: &[F::Integer], out: &mut [F]) {
    for (out, &integer) in out.iter_mut().zip(integers) {
        *out = F::nearest(scale.value(proof, F::double_of(integer)));
    }
}

#[inline(always)]
fn survey_body<P: Proof, F: Float, A: Arithmetic>(proof: P, scale: A, values: &[F]) -> Survey {
    let mut survey = Survey { misses: 0, least: i64::MAX, greatest: i64::MIN };
    for &value in values {
        let (integer, _, is_same) = there_and_back(proof, scale, value);
        survey.misses += usize::from(!is_same);
        survey.least = survey.least.min(if is_same { integer } else { i64::MAX });
        survey.greatest = survey.greatest.max(if is_same { integer } else { i64::MIN });
    }
    survey
}

#[inline(always)]
fn round_body<P: Proof, F: Float, A: Arithmetic>(proof: P, scale: A, bound: f64, values: &mut [F]) {
    for value in values {
        let (integer, back, _) = there_and_back(proof, scale, *value);
        // Of two floats within a factor of two the difference is exact (Sterbenz), and these are, or one is zero. A
        // comparison with NaN is false.
        let is_near = (back.wide() - value.wide()).abs() <= bound;
        *value = if is_near & F::has_integer(integer) { back } else { *value };
    }
}
