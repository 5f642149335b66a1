//! Mean and spread.

use super::span::Rows;
use super::walk::walk;
use super::wide_sum::nearest_f64;
use crate::fixed::{Integer, for_integers};
use crate::kernels::squares;
use crate::scheme::Reader;
use crate::scratch::Scratch;
use crate::{Physical, Result, Values};

/// How many values, where they lie, and how far from there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Values counted, at least one.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// The sum of the squares of their distances from the mean. For integers, rounded from exact sums.
    pub squares: f64,
}

impl Moments {
    /// Standard deviation of all there is: SQL's `stddev_pop`.
    pub fn deviation_of_population(&self) -> f64 {
        (self.squares / self.count as f64).sqrt()
    }

    /// Standard deviation as a sample tells it: SQL's `stddev_samp`, which one value has none of.
    pub fn deviation_of_sample(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }
}

/// An exact sum of squares of distances between integers of up to 128 bits: 320 bits, which 2^64 of them do not overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SquareSum {
    /// The lowest first.
    limbs: [u64; 5],
}

impl SquareSum {
    /// Adds the square of the distance between a value and `pivot`, `count` times.
    pub(crate) fn add<T: Integer>(&mut self, value: T, pivot: T, count: u64) {
        let distance = if value < pivot { pivot.sub(value) } else { value.sub(pivot) }.bits();
        let (low, high) = (u128::from(distance as u64), distance >> 64);
        let mut square = [0; 4];
        add_at(&mut square, 0, low * low);
        add_at(&mut square, 1, low * high);
        add_at(&mut square, 1, low * high);
        add_at(&mut square, 2, high * high);
        for (index, limb) in square.into_iter().enumerate().filter(|(_, limb)| *limb != 0) {
            add_at(&mut self.limbs, index, u128::from(limb) * u128::from(count));
        }
    }

    /// Adds squares of distances from `pivot`.
    fn add_all<T: Integer>(&mut self, values: &[T], pivot: T) {
        match squares(values, pivot) {
            Some((low, high)) => {
                add_at(&mut self.limbs, 0, low);
                add_at(&mut self.limbs, 1, high);
            }
            None => values.iter().for_each(|value| self.add(*value, pivot, 1)),
        }
    }

    /// The float nearest to the sum.
    pub(crate) fn to_f64(self) -> f64 {
        nearest_f64(&self.limbs)
    }
}

/// Adds `value` in the place of the limb at `index`.
fn add_at(limbs: &mut [u64], index: usize, value: u128) {
    let mut carry = value;
    for limb in &mut limbs[index..] {
        if carry == 0 {
            return;
        }
        let sum = u128::from(*limb) + (carry & u128::from(u64::MAX));
        *limb = sum as u64;
        carry = (carry >> 64) + (sum >> 64);
    }
}

/// [`Reader::squares`] of a scheme that has none.
pub(crate) fn squares_decoded<R: Reader + ?Sized>(
    reader: &R,
    rows: &Rows<'_>,
    physical: Physical,
    pivot: i128,
    found: &mut SquareSum,
    scratch: &mut Scratch,
) -> Result<()> {
    walk(reader, rows, physical, scratch, &mut |values| {
        for_integers!(Values, values, values => found.add_all(values, Integer::cut(pivot)),
            other => unreachable!("{} values have no exact squares", other.physical().name()));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_of_the_farthest_distances_are_exact() {
        let mut sum = SquareSum::default();
        sum.add(i128::MIN, i128::MAX, 1);
        // (2^128 - 1)^2 = 2^256 - 2^129 + 1
        assert_eq!(sum.limbs, [1, 0, u64::MAX - 1, u64::MAX, 0]);
        sum.add(i128::MAX, i128::MIN, 3);
        assert_eq!(sum.limbs, [4, 0, u64::MAX - 7, u64::MAX, 3]);
        assert_eq!(sum.to_f64(), 2f64.powi(258));
        let (mut at_once, mut one_by_one) = (SquareSum::default(), SquareSum::default());
        let values: Vec<i64> = (0..1000).map(|i| i64::MIN + (i << 53)).collect();
        at_once.add_all(&values, 7);
        values.iter().for_each(|value| one_by_one.add(*value, 7, 1));
        assert_eq!(at_once, one_by_one);
    }
}
