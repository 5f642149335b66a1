//! Bounds, sum and order of integers.

use crate::fixed::{Integer, for_integers};

use crate::isa::each_isa;
use crate::{VECTOR_LEN, Values};

/// What [`summarize`] finds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary<T> {
    pub(crate) min: T,
    pub(crate) max: T,
    /// `None` where 128 bits do not hold it.
    pub(crate) sum: Option<i128>,
    /// No value is below the one before.
    pub(crate) is_sorted: bool,
}

/// Least and greatest of integers; `None` where there are none, or values of another type.
pub fn bounds_of(values: Values<'_>) -> Option<(i128, i128)> {
    for_integers!(Values, values, values => {
        let (least, greatest) = if values.is_empty() { return None } else { bounds(values) };
        Some((least.wide(), greatest.wide()))
    }, _ => None)
}

each_isa! {
    /// Least and greatest of values, of which there is at least one.
    pub(crate) fn bounds<T: Integer>(values: &[T]) -> (T, T) = bounds_body;

    /// The greatest of values; the least there can be where there are none.
    pub(crate) fn greatest<T: Integer>(values: &[T]) -> T = greatest_body;

    /// Summary of values, of which there is at least one.
    pub(crate) fn summarize<T: Integer>(values: &[T]) -> Summary<T> = summarize_body;
}

#[inline(always)]
fn bounds_body<T: Integer>(values: &[T]) -> (T, T) {
    let (mut min, mut max) = (values[0], values[0]);
    for &value in values {
        min = min.min(value);
        max = max.max(value);
    }
    (min, max)
}

#[inline(always)]
fn greatest_body<T: Integer>(values: &[T]) -> T {
    values.iter().fold(T::MIN, |greatest, &value| greatest.max(value))
}

#[inline(always)]
fn summarize_body<T: Integer>(values: &[T]) -> Summary<T> {
    let mut last = values[0];
    let mut summary = Summary { min: last, max: last, sum: Some(0), is_sorted: true };
    // One thing at a time, of which the compiler makes vectors, while a vector of ours is in the L1 cache.
    for vector in values.chunks(VECTOR_LEN) {
        let (min, max) = bounds_body(vector);
        (summary.min, summary.max) = (summary.min.min(min), summary.max.max(max));
        summary.sum = sum_of_vector(vector).and_then(|of_vector| summary.sum?.checked_add(of_vector));
        summary.is_sorted = summary.is_sorted && last <= vector[0] && ascends(vector);
        last = vector[vector.len() - 1];
    }
    summary
}

/// Whether no value is below the one before.
#[inline(always)]
fn ascends<T: Integer>(values: &[T]) -> bool {
    !values.iter().zip(&values[1..]).fold(false, |descends, (value, next)| descends | (next < value))
}

/// The sum of at most a vector: in halves of 32 bits, which so many values cannot overflow 64 bits with.
#[inline(always)]
fn sum_of_vector<T: Integer>(values: &[T]) -> Option<i128> {
    match T::BYTES {
        16 => return values.iter().try_fold(0i128, |sum, value| sum.checked_add(value.wide())),
        1 | 2 | 4 => return Some(values.iter().map(|value| value.wide() as i64).sum::<i64>().into()),
        _ => {}
    }
    let (mut low, mut high) = (0u64, 0i64);
    for value in values {
        low += value.to_delta() & 0xffff_ffff;
        high += (value.wide() >> 32) as i64;
    }
    Some((i128::from(high) << 32) + i128::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;

    fn agrees<T: Integer>(values: &[T]) {
        let wide = || values.iter().map(|value| value.wide());
        let expected = Summary {
            min: *values.iter().min().unwrap(),
            max: *values.iter().max().unwrap(),
            sum: wide().try_fold(0i128, i128::checked_add),
            is_sorted: values.is_sorted(),
        };
        forms(|isa| {
            assert_eq!(summarize(values), expected, "{isa}");
            assert_eq!(bounds(values), (expected.min, expected.max), "{isa}");
            assert_eq!(greatest(values), expected.max, "{isa}");
        });
    }

    fn extremes<T: Integer>() {
        for count in [1, 2, 15, 64, 1023, 1024, 1025, 5000] {
            agrees(&vec![T::MAX; count]);
            agrees(&vec![T::MIN; count]);
            let mixed =
                |index: usize| T::from_bits((index as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_ac31_1e05_77b3));
            let mut values: Vec<T> = (0..count).map(mixed).collect();
            agrees(&values);
            values.sort_unstable();
            agrees(&values);
            // A single descent, within a vector or between two.
            for at in [1, 512, 1024].into_iter().filter(|at| *at < count) {
                let mut values = values.clone();
                values.swap(at - 1, at);
                agrees(&values);
            }
        }
    }

    #[test]
    fn every_type_is_summed_exactly_at_its_ends() {
        extremes::<i8>();
        extremes::<i16>();
        extremes::<i32>();
        extremes::<i64>();
        extremes::<i128>();
        extremes::<u8>();
        extremes::<u16>();
        extremes::<u32>();
        extremes::<u64>();
    }
}
