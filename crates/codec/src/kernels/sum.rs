//! Sums: of integers exact, of floats in a fixed order.

use crate::VECTOR_LEN;
use crate::fixed::{Fixed, Integer};
use crate::isa::each_isa;
use crate::kernel::WideSum;

/// The exact sum of any number of integers.
pub(crate) fn sum<T: Integer>(values: &[T]) -> WideSum {
    let mut total = WideSum::default();
    if T::BYTES == 16 {
        values.iter().for_each(|value| total.add(value.wide()));
    } else {
        values.chunks(VECTOR_LEN).for_each(|vector| total.add(sum_of_vector(vector)));
    }
    total
}

each_isa! {
    /// The sum of at most a vector of integers of up to 64 bits.
    fn sum_of_vector<T: Integer>(values: &[T]) -> i128 = sum_of_vector_body;

    /// The sum of at most a vector of floats: each in turn is added to one of [`LANES`] lanes, and then the upper half of
    /// the lanes to the lower, until one is left.
    pub(crate) fn sum_floats<T: Real>(values: &[T]) -> f64 = sum_floats_body;

    /// The sum of the squares of the distances of at most a vector of floats from `mean`, in the same order.
    pub(crate) fn square_floats<T: Real>(values: &[T], mean: f64) -> f64 = square_floats_body;

    /// Writes the distances of integers of up to 64 bits from `pivot` over as much of `distances`, and returns the bits
    /// that any of them has.
    fn distances<T: Integer>(values: &[T], pivot: T, distances: &mut [u64]) -> u64 = distances_body;

    /// The sums of the lower and the upper halves of squares of numbers of up to 32 bits, at most a vector.
    fn square_halves(numbers: &[u64]) -> (u64, u64) = square_halves_body;
}

#[inline(always)]
fn sum_of_vector_body<T: Integer>(values: &[T]) -> i128 {
    if T::BYTES <= 4 {
        return values.iter().map(|value| value.wide() as i64).sum::<i64>().into();
    }
    let (mut low, mut high) = (0u64, 0i64);
    for value in values {
        low += value.to_delta() & 0xffff_ffff;
        high += (value.wide() >> 32) as i64;
    }
    (i128::from(high) << 32) + i128::from(low)
}

/// A float of either width.
pub(crate) trait Real: Fixed + Into<f64> {}

impl Real for f32 {}
impl Real for f64 {}

/// Lanes that floats are added to: two registers of the widest set.
const LANES: usize = 16;

#[inline(always)]
fn sum_floats_body<T: Real>(values: &[T]) -> f64 {
    in_lanes(values, |value| value.into())
}

#[inline(always)]
fn square_floats_body<T: Real>(values: &[T], mean: f64) -> f64 {
    in_lanes(values, |value| {
        let distance = value.into() - mean;
        distance * distance
    })
}

#[inline(always)]
fn in_lanes<T: Real>(values: &[T], term: impl Fn(T) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let (rows, rest) = values.as_chunks::<LANES>();
    for row in rows {
        for lane in 0..LANES {
            lanes[lane] += term(row[lane]);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane += term(*value);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// The sums of the lower and upper 64 bits of the squares of distances from `pivot`; `None` where one has more than 128.
pub(crate) fn squares<T: Integer>(values: &[T], pivot: T) -> Option<(u128, u128)> {
    if T::BYTES == 16 {
        let far = values.iter().any(|&value| (value.max(pivot).sub(value.min(pivot))).bits() >> 64 != 0);
        if far {
            return None;
        }
    }
    let (mut low, mut high) = (0, 0);
    let mut room = [0; VECTOR_LEN];
    for vector in values.chunks(VECTOR_LEN) {
        let numbers = &mut room[..vector.len()];
        if distances(vector, pivot, numbers) >> 32 == 0 {
            let (of_low, of_high) = square_halves(numbers);
            let square_sum = u128::from(of_low) + (u128::from(of_high) << 32);
            low += square_sum & u128::from(u64::MAX);
            high += square_sum >> 64;
        } else {
            for number in numbers {
                let square = u128::from(*number) * u128::from(*number);
                low += square & u128::from(u64::MAX);
                high += square >> 64;
            }
        }
    }
    Some((low, high))
}

#[inline(always)]
fn distances_body<T: Integer>(values: &[T], pivot: T, distances: &mut [u64]) -> u64 {
    let mut bits = 0;
    for (distance, &value) in distances.iter_mut().zip(values) {
        *distance = if value < pivot { pivot.sub(value) } else { value.sub(pivot) }.to_delta();
        bits |= *distance;
    }
    bits
}

#[inline(always)]
fn square_halves_body(numbers: &[u64]) -> (u64, u64) {
    let (mut low, mut high) = (0, 0);
    for number in numbers {
        let square = (number & 0xffff_ffff) * (number & 0xffff_ffff);
        low += square & 0xffff_ffff;
        high += square >> 32;
    }
    (low, high)
}

/// A sum of sums of vectors, with what was lost of each addition added at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FloatSum {
    sum: f64,
    lost: f64,
}

impl FloatSum {
    /// Adds the sum of a vector.
    pub(crate) fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        let (large, small) = if self.sum.abs() >= value.abs() { (self.sum, value) } else { (value, self.sum) };
        self.lost += (large - sum) + small;
        self.sum = sum;
    }

    /// The sum of all. Of NaNs, the one.
    pub(crate) fn total(self) -> f64 {
        let total = self.sum + self.lost;
        let total = if self.sum.is_finite() { total } else { self.sum };
        if total.is_nan() { f64::NAN } else { total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;

    fn agrees<T: Integer>(values: &[T], pivot: T) {
        let mut expected = WideSum::default();
        values.iter().for_each(|value| expected.add(value.wide()));
        let distance = |value: T| value.max(pivot).sub(value.min(pivot)).bits();
        let squares_expected = values.iter().try_fold((0, 0), |(low, high), value| {
            let square = u64::try_from(distance(*value)).ok().map(|distance| u128::from(distance).pow(2))?;
            Some((low + (square & u128::from(u64::MAX)), high + (square >> 64)))
        });
        let whole = |parts: Option<(u128, u128)>| {
            parts.map(|(low, high)| ((high + (low >> 64)) as u64, low as u64, (high + (low >> 64)) >> 64))
        };
        forms(|isa| {
            assert_eq!(sum(values), expected, "{isa}");
            assert_eq!(whole(squares(values, pivot)), whole(squares_expected), "{isa}");
        });
    }

    fn extremes<T: Integer>() {
        for count in [0, 1, 2, 15, 64, 1023, 1024, 1025, 5000] {
            let mixed =
                |index: usize| T::from_bits((index as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_ac31_1e05_77b3));
            for pivot in [T::MIN, T::MAX, T::default()] {
                agrees(&vec![T::MAX; count], pivot);
                agrees(&vec![T::MIN; count], pivot);
                agrees(&(0..count).map(mixed).collect::<Vec<T>>(), pivot);
            }
        }
    }

    #[test]
    fn every_type_is_summed_and_squared_exactly_at_its_ends() {
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

    #[test]
    fn floats_have_the_same_sum_on_every_set() {
        let values: Vec<f64> = (0..1024).map(|i| f64::from(i).sin() * 10f64.powi(i % 30 - 10)).collect();
        let narrow: Vec<f32> = values.iter().map(|value| *value as f32).collect();
        let mut expected = None;
        forms(|isa| {
            let found = [17, 1000, 1024].map(|len| {
                let (wide, narrow) = (&values[..len], &narrow[..len]);
                let sums = [sum_floats(wide), sum_floats(narrow), square_floats(wide, 0.3), square_floats(narrow, 0.3)];
                sums.map(f64::to_bits)
            });
            assert_eq!(*expected.get_or_insert(found), found, "{isa}");
        });
    }

    #[test]
    fn what_an_addition_loses_is_not_lost() {
        let mut sum = FloatSum::default();
        [1e100, 1.0, -1e100].into_iter().for_each(|value| sum.add(value));
        assert_eq!(sum.total(), 1.0);
        let mut sum = FloatSum::default();
        [f64::INFINITY, 1.0].into_iter().for_each(|value| sum.add(value));
        assert_eq!(sum.total(), f64::INFINITY);
        sum.add(f64::NEG_INFINITY);
        assert_eq!(sum.total().to_bits(), f64::NAN.to_bits());
    }
}
