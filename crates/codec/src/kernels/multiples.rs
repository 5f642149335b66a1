//! Numbers as a base and multiples of a common divisor.

use crate::fixed::Integer;
use crate::isa::each_isa;

/// A divisor taken apart for divisions that are known to be exact: a product and a shift instead of a division.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExactDivisor {
    /// How often 2 divides it.
    shift: u32,
    /// The inverse of what remains, modulo 2^64.
    inverse: u64,
    /// The greatest quotient of a 64-bit number.
    quotient_max: u64,
}

impl ExactDivisor {
    /// For `divisor`, which is not zero.
    pub(crate) fn new(divisor: u64) -> ExactDivisor {
        let shift = divisor.trailing_zeros();
        let odd = divisor >> shift;
        // Newton's iteration doubles the right bits; an odd number is its own inverse modulo 8.
        let inverse = (0..5).fold(odd, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse))));
        ExactDivisor { shift, inverse, quotient_max: u64::MAX / divisor }
    }
}

each_isa! {
    /// Writes how many times the divisor fits between `base` and each value, distances without a sign; false where one of
    /// them is no multiple. `T` has at most 64 bits, `quotients` the length of `values`.
    pub(crate) fn divide<T: Integer>(values: &[T], base: T, divisor: ExactDivisor, quotients: &mut [T]) -> bool
        = divide_body;

    /// Makes each number `base` and so many times `divisor`, modulo the width of the type.
    pub(crate) fn multiply<T: Integer>(numbers: &mut [T], base: T, divisor: u64) -> () = multiply_body;
}

#[inline(always)]
fn divide_body<T: Integer>(values: &[T], base: T, divisor: ExactDivisor, quotients: &mut [T]) -> bool {
    let below_shift = (1u64 << divisor.shift) - 1;
    let mut is_exact = true;
    for (value, quotient) in values.iter().zip(quotients) {
        let distance = value.sub(base).to_delta();
        let found = (distance >> divisor.shift).wrapping_mul(divisor.inverse);
        // A number that is no multiple comes out as one that is too large.
        is_exact &= (distance & below_shift == 0) & (found <= divisor.quotient_max);
        *quotient = T::from_delta(found);
    }
    is_exact
}

#[inline(always)]
fn multiply_body<T: Integer>(numbers: &mut [T], base: T, divisor: u64) {
    for number in numbers {
        *number = base.add(T::from_delta(number.to_delta().wrapping_mul(divisor)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;

    #[test]
    fn every_form_divides_what_is_a_multiple_and_refuses_what_is_not() {
        for divisor in [2u64, 3, 60, 1000, 1_000_000, 1 << 40, 86_400_000_000, u64::MAX / 2, u64::MAX] {
            let times = u64::MAX / divisor;
            let values: Vec<u64> = (0..100).map(|index: u64| (index * 7).min(times) * divisor).collect();
            let exact = ExactDivisor::new(divisor);
            forms(|isa| {
                let mut numbers = vec![0; values.len()];
                assert!(divide(&values, 0, exact, &mut numbers), "{isa}, {divisor}");
                assert!(numbers.iter().zip(&values).all(|(number, value)| number * divisor == *value), "{isa}");
                multiply(&mut numbers, 0, divisor);
                assert_eq!(numbers, values, "{isa}");
                for off in 1..divisor.min(50) {
                    let mut wrong = values.clone();
                    wrong[50] ^= off;
                    let is_exact = divide(&wrong, 0, exact, &mut numbers);
                    assert_eq!(is_exact, wrong[50].is_multiple_of(divisor), "{isa}, {divisor}, {off}");
                }
            });
        }
    }

    #[test]
    fn distances_have_no_sign() {
        let values = [i32::MIN, i32::MAX - 1, i32::MAX - 3];
        forms(|isa| {
            let mut numbers = [0; 3];
            assert!(!divide(&values, i32::MIN, ExactDivisor::new(3), &mut numbers), "{isa}");
            let values = [i8::MIN, i8::MIN + 126, i8::MAX - 3];
            let mut numbers = [0; 3];
            assert!(divide(&values, i8::MIN, ExactDivisor::new(126), &mut numbers), "{isa}");
            assert_eq!(numbers, [0, 1, 2], "{isa}");
            multiply(&mut numbers, i8::MIN, 126);
            assert_eq!(numbers, values, "{isa}");
        });
    }
}
