//! One vector: floats to integers under one exponent, and back.

use super::exponent::Exponent;

/// Adding this and taking it away again rounds a double of at most 2^51 to an integer; and below the sum's exponent bits
/// stands that integer. So both conversions are an addition and a subtraction, which every instruction set has in wide
/// form, unlike the conversions between doubles and 64-bit integers. (1.5 * 2^52.)
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Singles and doubles.
pub(crate) trait Float: Copy {
    /// Width in the file.
    const BYTES: usize;
    /// The integers that stand for them.
    type Integer: Copy + Default;

    /// The integer under `exponent`, or `None` where it does not lead back to just these bits.
    fn to_integer(self, exponent: Exponent) -> Option<i64>;
    /// Takes a result of [`Float::to_integer`] over into [`Float::Integer`], where it fits.
    fn narrow(integer: i64) -> Self::Integer;
    /// The value of `integer`: what [`Float::to_integer`] checks against.
    fn from_integer(integer: Self::Integer, power: f64, divide: bool) -> Self;
}

/// Beyond it [`ROUNDER`] no longer rounds. The bits would still lead back, but such an integer says nothing small.
const INTEGER_MAX: u64 = 1 << 51;

#[inline]
fn round(value: f64) -> i64 {
    ((value + ROUNDER).to_bits() as i64).wrapping_sub(ROUNDER.to_bits() as i64)
}

/// Exact for what [`round`] gives; any other integer gives some double.
#[inline]
fn to_double(integer: i64) -> f64 {
    f64::from_bits(integer.wrapping_add(ROUNDER.to_bits() as i64) as u64) - ROUNDER
}

#[inline]
fn scale(value: f64, power: f64, multiply: bool) -> f64 {
    if multiply { value * power } else { value / power }
}

impl Float for f64 {
    const BYTES: usize = 8;
    type Integer = i64;

    #[inline]
    fn to_integer(self, exponent: Exponent) -> Option<i64> {
        let (power, multiply) = exponent.power();
        let integer = round(scale(self, power, multiply));
        let exact = f64::from_integer(integer, power, multiply).to_bits() == self.to_bits();
        (exact && integer.unsigned_abs() <= INTEGER_MAX).then_some(integer)
    }

    #[inline]
    fn narrow(integer: i64) -> i64 {
        integer
    }

    #[inline]
    fn from_integer(integer: i64, power: f64, divide: bool) -> f64 {
        scale(to_double(integer), power, !divide)
    }
}

impl Float for f32 {
    const BYTES: usize = 4;
    type Integer = i32;

    #[inline]
    fn to_integer(self, exponent: Exponent) -> Option<i64> {
        let (power, multiply) = exponent.power();
        let integer = round(scale(f64::from(self), power, multiply));
        let fits = i32::try_from(integer).ok()?;
        (f32::from_integer(fits, power, multiply).to_bits() == self.to_bits()).then_some(integer)
    }

    #[inline]
    fn narrow(integer: i64) -> i32 {
        integer as i32
    }

    #[inline]
    fn from_integer(integer: i32, power: f64, divide: bool) -> f32 {
        scale(f64::from(integer), power, !divide) as f32
    }
}

/// A value that no integer stands for, and where in its vector it belongs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Exception<F> {
    /// Position in the vector.
    pub(crate) position: u16,
    /// The value itself.
    pub(crate) value: F,
}

/// Appends an integer for each value of `vector` (at most 65,536) to `integers`, and the exceptions to `exceptions`,
/// positions ascending. At an exception stands its neighbour's integer, so that it widens nothing.
pub(crate) fn encode<F: Float>(
    vector: &[F],
    exponent: Exponent,
    integers: &mut Vec<F::Integer>,
    exceptions: &mut Vec<Exception<F>>,
) {
    let first = vector.iter().find_map(|value| value.to_integer(exponent)).unwrap_or(0);
    let mut neighbour = F::narrow(first);
    for (position, &value) in vector.iter().enumerate() {
        match value.to_integer(exponent) {
            Some(integer) => neighbour = F::narrow(integer),
            None => exceptions.push(Exception { position: position as u16, value }),
        }
        integers.push(neighbour);
    }
}

/// Writes the values of `integers` to `out`, which has the same length; exceptions are the caller's to put over them.
pub(crate) fn decode<F: Float>(integers: &[F::Integer], exponent: Exponent, out: &mut [F]) {
    let (power, divide) = exponent.power();
    // Two loops, so that neither has a branch in it.
    if divide {
        for (out, &integer) in out.iter_mut().zip(integers) {
            *out = F::from_integer(integer, power, true);
        }
    } else {
        for (out, &integer) in out.iter_mut().zip(integers) {
            *out = F::from_integer(integer, power, false);
        }
    }
}
