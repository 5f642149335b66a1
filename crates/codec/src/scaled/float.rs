//! Singles and doubles, and the integers that stand for them.

use crate::fixed::Integer;
use crate::values_mut::Native;

/// Adding this and taking it away again rounds a double of at most 2^51 to an integer; and below the sum's exponent bits
/// stands that integer. So both conversions are an addition and a subtraction, which every instruction set has in wide
/// form, unlike the conversions between doubles and 64-bit integers. (1.5 * 2^52.)
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Beyond it [`ROUNDER`] no longer rounds. The bits would still lead back, but such an integer says nothing small.
const INTEGER_MAX: u64 = 1 << 51;

/// Singles and doubles.
pub(crate) trait Float: Native {
    /// The integers that stand for them.
    type Integer: Integer;
    /// The greatest of these integers; the least is its negative, or one below.
    const INTEGER_MAX: i64;

    /// As a double: exact.
    fn wide(self) -> f64;
    /// The nearest to a double.
    fn nearest(wide: f64) -> Self;
    /// Whether it is the same number with the same sign and payload.
    fn is_same(self, other: Self) -> bool;
    /// Whether `integer` may stand for a float.
    fn has_integer(integer: i64) -> bool;
    /// Cuts an integer to the width.
    fn cut(integer: i64) -> Self::Integer;
    /// As a double: exact for those of [`Float::has_integer`]; some double for any other.
    fn double_of(integer: Self::Integer) -> f64;
}

/// The nearest integer, ties to even, of a double of at most 2^51; some integer of any other.
#[inline(always)]
pub(super) fn rounded(value: f64) -> i64 {
    ((value + ROUNDER).to_bits() as i64).wrapping_sub(ROUNDER.to_bits() as i64)
}

impl Float for f64 {
    type Integer = i64;
    const INTEGER_MAX: i64 = INTEGER_MAX as i64;

    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }

    #[inline(always)]
    fn nearest(wide: f64) -> f64 {
        wide
    }

    #[inline(always)]
    fn is_same(self, other: f64) -> bool {
        self.to_bits() == other.to_bits()
    }

    #[inline(always)]
    fn has_integer(integer: i64) -> bool {
        integer.unsigned_abs() <= INTEGER_MAX
    }

    #[inline(always)]
    fn cut(integer: i64) -> i64 {
        integer
    }

    #[inline(always)]
    fn double_of(integer: i64) -> f64 {
        f64::from_bits(integer.wrapping_add(ROUNDER.to_bits() as i64) as u64) - ROUNDER
    }
}

impl Float for f32 {
    type Integer = i32;
    const INTEGER_MAX: i64 = i32::MAX as i64;

    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn nearest(wide: f64) -> f32 {
        wide as f32
    }

    #[inline(always)]
    fn is_same(self, other: f32) -> bool {
        self.to_bits() == other.to_bits()
    }

    #[inline(always)]
    fn has_integer(integer: i64) -> bool {
        integer == i64::from(integer as i32)
    }

    #[inline(always)]
    fn cut(integer: i64) -> i32 {
        integer as i32
    }

    #[inline(always)]
    fn double_of(integer: i32) -> f64 {
        f64::from(integer)
    }
}
