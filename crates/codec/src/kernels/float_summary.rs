//! Bounds and order of floats, by the integers that order alike.

use crate::condition::float_order;
use crate::isa::each_isa;
use crate::scaled::Float;

/// What [`summarize_floats`] finds in a vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FloatSummary {
    /// Least order of a number; `i64::MAX` where there is none.
    least: i64,
    /// Greatest order of a number; `i64::MIN` where there is none.
    greatest: i64,
    /// NaNs.
    pub(crate) nans: usize,
    /// No value orders below the one before.
    pub(crate) is_sorted: bool,
}

/// The order of NaN, above all others.
const NAN: i64 = i64::MAX;

impl FloatSummary {
    /// Of no values.
    pub(crate) const NONE: FloatSummary =
        FloatSummary { least: i64::MAX, greatest: i64::MIN, nans: 0, is_sorted: true };

    /// Of these values and others, apart from how they follow one another.
    pub(crate) fn and(self, other: FloatSummary) -> FloatSummary {
        FloatSummary {
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
            nans: self.nans + other.nans,
            is_sorted: self.is_sorted && other.is_sorted,
        }
    }

    /// Least and greatest number; -0.0 counts as 0.0. `None` where there is none.
    pub(crate) fn bounds(self) -> Option<(f64, f64)> {
        let float = |order: i64| f64::from_bits((order ^ ((order >> 63) as u64 >> 1) as i64) as u64);
        (self.least <= self.greatest).then(|| (float(self.least), float(self.greatest)))
    }
}

each_isa! {
    /// Writes the order of each value, and summarizes. There are as many orders as values.
    pub(crate) fn summarize_floats<F: Float>(values: &[F], orders: &mut [i64]) -> FloatSummary = summarize_floats_body;
}

#[inline(always)]
fn summarize_floats_body<F: Float>(values: &[F], orders: &mut [i64]) -> FloatSummary {
    for (order, value) in orders.iter_mut().zip(values) {
        *order = float_order(value.wide());
    }
    // One thing at a time: of all at once the compiler makes no vectors.
    let least = orders.iter().fold(i64::MAX, |least, order| least.min(*order));
    let number = |order: &i64| if *order == NAN { i64::MIN } else { *order };
    let greatest = orders.iter().fold(i64::MIN, |greatest, order| greatest.max(number(order)));
    let nans = orders.iter().map(|order| usize::from(*order == NAN)).sum();
    let descends = orders.iter().zip(orders.iter().skip(1)).fold(false, |found, (order, next)| found | (next < order));
    FloatSummary { least, greatest, nans, is_sorted: !descends }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;

    #[test]
    fn bounds_leave_nan_out_and_know_no_minus_zero() {
        let mut values: Vec<f64> = (0..100).map(|i| f64::from(i) - 50.0).collect();
        values.extend([f64::NAN, -0.0, f64::NEG_INFINITY, 1e300, -f64::NAN]);
        forms(|isa| {
            let mut orders = vec![0; values.len()];
            let summary = summarize_floats(&values, &mut orders);
            assert_eq!(summary.bounds(), Some((f64::NEG_INFINITY, 1e300)), "{isa}");
            assert_eq!((summary.nans, summary.is_sorted), (2, false), "{isa}");
            assert!(summarize_floats(&values[..101], &mut orders[..101]).is_sorted, "{isa}");
            assert!(orders.iter().zip(&values).all(|(order, value)| *order == float_order(*value)), "{isa}");
            let zeros = summarize_floats(&[-0.0f32, -0.0], &mut [0; 2]).bounds().unwrap();
            assert_eq!((zeros.0.to_bits(), zeros.1.to_bits()), (0, 0), "{isa}");
            assert_eq!(summarize_floats(&[f64::NAN], &mut [0]).bounds(), None, "{isa}");
        });
        assert_eq!(FloatSummary::NONE.bounds(), None);
    }
}
