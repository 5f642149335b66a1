//! The two ways of scaling.

use super::Float;
use super::float::rounded;
use super::kernels::{self, Survey};
use crate::VECTOR_LEN;
use crate::isa::Proof;

/// Which float an integer stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    /// `n / 10^e`, rounded once.
    Tenths(Tenths),
    /// `n * step`, rounded once.
    Steps(Steps),
}

/// See [`Scale::Tenths`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tenths {
    power: f64,
    /// The double nearest to `1 / power`.
    inverse: f64,
    /// The double nearest to what is missing of it.
    missing: f64,
}

/// See [`Scale::Steps`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Steps {
    step: f64,
    inverse: f64,
}

/// There and back.
pub(super) trait Arithmetic: Copy {
    /// About how many units `value` is, not rounded to an integer.
    fn units<P: Proof>(self, proof: P, value: f64) -> f64;
    /// The double that so many units are. Equal whatever the proof.
    fn value<P: Proof>(self, proof: P, units: f64) -> f64;
}

impl Arithmetic for Tenths {
    #[inline(always)]
    fn units<P: Proof>(self, _proof: P, value: f64) -> f64 {
        value * self.power
    }

    /// A division takes two cycles a value in the widest registers. Two multiplications give the same: together the two
    /// parts of the inverse are wrong by less than 2^-105, and no quotient of an integer up to 2^51 by 10^e comes closer to
    /// the middle between two doubles than 2^-54 * 5^-e, which is more for every e up to 22 (a test computes both); nor can
    /// it lie in the middle, which has 54 bits.
    #[inline(always)]
    fn value<P: Proof>(self, _proof: P, units: f64) -> f64 {
        if P::FUSED { units.mul_add(self.inverse, units * self.missing) } else { units / self.power }
    }
}

impl Arithmetic for Steps {
    #[inline(always)]
    fn units<P: Proof>(self, _proof: P, value: f64) -> f64 {
        value * self.inverse
    }

    #[inline(always)]
    fn value<P: Proof>(self, _proof: P, units: f64) -> f64 {
        units * self.step
    }
}

/// Powers of ten that a double holds exactly, and the doubles nearest to what `1.0 / power` misses of the inverse.
const TENTHS: [(f64, f64); 23] = [
    (1e0, 0.0),
    (1e1, -5.551115123125783e-18),
    (1e2, -2.0816681711721684e-19),
    (1e3, -2.0816681711721686e-20),
    (1e4, -4.79217360238593e-21),
    (1e5, -8.180305391403131e-22),
    (1e6, 4.525188817411374e-23),
    (1e7, 4.525188817411374e-24),
    (1e8, -2.092256083012847e-25),
    (1e9, -6.228159145777985e-26),
    (1e10, -3.643219731549774e-27),
    (1e11, 6.050303071806019e-28),
    (1e12, 2.0113352370744385e-29),
    (1e13, -3.037374556340037e-30),
    (1e14, 1.1806906454401013e-32),
    (1e15, -7.770539987666108e-32),
    (1e16, 2.0902213275965398e-33),
    (1e17, -7.154242405462192e-34),
    (1e18, -7.154242405462193e-35),
    (1e19, 2.475407316473987e-36),
    (1e20, 5.484672854579043e-37),
    (1e21, 9.246254777210363e-38),
    (1e22, -4.859677432657087e-39),
];

impl Scale {
    /// The greatest exponent of [`Scale::tenths`].
    pub(crate) const TENTHS_MAX: usize = TENTHS.len() - 1;

    /// Integers stand for `n / 10^exponent`; the exponent is at most [`Scale::TENTHS_MAX`].
    pub(crate) fn tenths(exponent: usize) -> Scale {
        let (power, missing) = TENTHS[exponent];
        match exponent {
            0 => Scale::step(1.0),
            _ => Scale::Tenths(Tenths { power, inverse: 1.0 / power, missing }),
        }
    }

    /// Integers stand for `n * 10^exponent`; the exponent is at most [`Scale::TENTHS_MAX`].
    pub(crate) fn tens(exponent: usize) -> Scale {
        Scale::step(TENTHS[exponent].0)
    }

    /// Integers stand for `n * step`, which is a normal number above zero, as is its inverse.
    pub(crate) fn step(step: f64) -> Scale {
        Scale::Steps(Steps { step, inverse: 1.0 / step })
    }

    /// Whether [`Scale::step`] takes it.
    pub(crate) fn has_step(step: f64) -> bool {
        step > 0.0 && step.is_normal() && (1.0 / step).is_normal()
    }

    /// The distance from one integer's float to the next.
    pub(crate) fn unit(self) -> f64 {
        match self {
            Scale::Tenths(tenths) => tenths.inverse,
            Scale::Steps(steps) => steps.step,
        }
    }

    /// Writes an integer for each value of a vector, and a flag: 1 where it does not lead back to the value, which then has
    /// none. Returns whether there are such.
    pub(crate) fn integers<F: Float>(
        self,
        values: &[F],
        integers: &mut [F::Integer],
        flags: &mut [u8; VECTOR_LEN],
    ) -> bool {
        match self {
            Scale::Tenths(tenths) => kernels::integers(tenths, values, integers, flags),
            Scale::Steps(steps) => kernels::integers(steps, values, integers, flags),
        }
    }

    /// Writes the value that each integer stands for.
    pub(crate) fn values<F: Float>(self, integers: &[F::Integer], out: &mut [F]) {
        match self {
            Scale::Tenths(tenths) => kernels::values(tenths, integers, out),
            Scale::Steps(steps) => kernels::values(steps, integers, out),
        }
    }

    /// What [`Scale::integers`] would find.
    pub(crate) fn survey<F: Float>(self, values: &[F]) -> Survey {
        match self {
            Scale::Tenths(tenths) => kernels::survey(tenths, values),
            Scale::Steps(steps) => kernels::survey(steps, values),
        }
    }

    /// Replaces each value by the nearest that has an integer, if that is no further away than `bound`.
    pub(crate) fn round<F: Float>(self, bound: f64, values: &mut [F]) {
        match self {
            Scale::Tenths(tenths) => kernels::round(tenths, bound, values),
            Scale::Steps(steps) => kernels::round(steps, bound, values),
        }
    }
}

/// The integer for a value, with the value that it leads back to, and whether that is the same.
#[inline(always)]
pub(super) fn there_and_back<P: Proof, F: Float, A: Arithmetic>(proof: P, scale: A, value: F) -> (i64, F, bool) {
    let integer = rounded(scale.units(proof, value.wide()));
    let back = F::nearest(scale.value(proof, F::double_of(F::cut(integer))));
    (integer, back, back.is_same(value) & F::has_integer(integer))
}
