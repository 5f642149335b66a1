//! Where the point of fixed-point numbers is.

use super::{Float, Scale};

/// Integers stand for `n / base^exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    base: u8,
    exponent: i16,
}

/// Powers of two in both directions that are normal numbers, and so are their inverses.
const BINARY_MAX: i16 = 1000;

/// Values that are looked at to find the point, at most.
const SAMPLED_VALUES: usize = 1024;

/// Of the sampled values sorted by their lowest bit, those that a binary point is put before: so many in 1000 are exceptions.
const LEFT_OUT: [usize; 4] = [0, 10, 40, 100];

impl Point {
    /// Whole numbers.
    pub(crate) const UNITS: Point = Point { base: 10, exponent: 0 };

    /// The point with this base and exponent on disk.
    pub(crate) fn new(base: u8, exponent: i16) -> Option<Point> {
        let exponent_max = match base {
            2 => BINARY_MAX,
            10 => Scale::TENTHS_MAX as i16,
            _ => return None,
        };
        (-exponent_max..=exponent_max).contains(&exponent).then_some(Point { base, exponent })
    }

    /// The point for steps of a power of ten or two.
    pub(crate) fn of_step(step: f64) -> Option<Point> {
        let exponents = -(Scale::TENTHS_MAX as i16)..=Scale::TENTHS_MAX as i16;
        let mut decimals = exponents.filter_map(|exponent| Point::new(10, exponent));
        let binary = || {
            let point = Point::new(2, -i16::try_from(lowest_bit(step)?).ok()?)?;
            (point.scale().unit() == step).then_some(point)
        };
        decimals.find(|point| point.scale().unit() == step).or_else(binary)
    }

    /// The point with which values like these take the fewest bits.
    pub(crate) fn of_values<F: Float>(values: &[F]) -> Point {
        let sample = sampled(values);
        let decimals = (0..=Scale::TENTHS_MAX as i16).filter_map(|exponent| Point::new(10, exponent));
        cheapest(decimals.chain(Point::binary(&sample)), &sample)
    }

    /// The binary point with which they do.
    pub(crate) fn of_fractions<F: Float>(values: &[F]) -> Point {
        let sample = sampled(values);
        cheapest(Point::binary(&sample), &sample)
    }

    /// Points that are behind the lowest bits of values, or of most of them.
    fn binary<F: Float>(values: &[F]) -> impl Iterator<Item = Point> {
        let mut lowest: Vec<i32> = values.iter().filter_map(|value| lowest_bit(value.wide())).collect();
        lowest.sort_unstable();
        LEFT_OUT.into_iter().filter_map(move |left_out| {
            let lowest = lowest.get(lowest.len() * left_out / 1000)?;
            Point::new(2, i16::try_from(-lowest).ok()?)
        })
    }

    /// What integers stand for.
    pub(crate) fn scale(self) -> Scale {
        match (self.base, usize::try_from(self.exponent)) {
            (2, _) => Scale::step(f64::from_bits(((1023 - i64::from(self.exponent)) as u64) << 52)),
            (_, Ok(exponent)) => Scale::tenths(exponent),
            (_, Err(_)) => Scale::tens(usize::from(self.exponent.unsigned_abs())),
        }
    }

    /// Base and exponent on disk.
    pub(crate) fn parts(self) -> (u8, i16) {
        (self.base, self.exponent)
    }

    /// Whether it is one of `alp`, too.
    pub(crate) fn is_decimal(self) -> bool {
        self.base == 10 || self.exponent == 0
    }
}

fn sampled<F: Float>(values: &[F]) -> Vec<F> {
    values.iter().step_by((values.len() / SAMPLED_VALUES) | 1).copied().collect()
}

fn cheapest<F: Float>(points: impl Iterator<Item = Point>, sample: &[F]) -> Point {
    let bits = |point: &Point| {
        let survey = point.scale().survey(sample);
        u64::from(survey.width()) * sample.len() as u64 + survey.misses as u64 * (8 * F::BYTES as u64 + 16)
    };
    points.min_by_key(bits).unwrap_or(Point::UNITS)
}

/// The power of two of the lowest bit set in the number; `None` for zero, NaN and infinities.
fn lowest_bit(value: f64) -> Option<i32> {
    if value == 0.0 || !value.is_finite() {
        return None;
    }
    let bits = value.to_bits();
    let (exponent, mantissa) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    Some(match exponent {
        0 => mantissa.trailing_zeros() as i32 - 1074,
        _ => (mantissa | 1 << 52).trailing_zeros() as i32 + exponent - 1075,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_bit_is_that_of_the_number() {
        for (value, lowest) in [(1.0, 0), (6.0, 1), (0.75, -2), (-0.5, -1), (5e-324, -1074), (f64::MIN_POSITIVE, -1022)]
        {
            assert_eq!(lowest_bit(value), Some(lowest), "{value}");
        }
        assert_eq!([0.0, f64::NAN, f64::INFINITY].map(lowest_bit), [None; 3]);
    }

    #[test]
    fn points_are_found_by_step_and_by_values() {
        for (step, parts) in [
            (1.0, Some((10, 0))),
            (0.01, Some((10, 2))),
            (1000.0, Some((10, -3))),
            (0.25, Some((2, 2))),
            (4096.0, Some((2, -12))),
            (0.03, None),
            (0.0, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
            (5e-324, None),
        ] {
            assert_eq!(Point::of_step(step).map(Point::parts), parts, "{step}");
        }
        let samples: Vec<f64> = (0..5000).map(|i| f64::from(i * 7919 % 65_536 - 32_768) / 32_768.0).collect();
        assert_eq!(Point::of_values(&samples), Point { base: 2, exponent: 15 });
        let prices: Vec<f32> = (0..5000).map(|i| i as f32 / 100.0).collect();
        assert_eq!(Point::of_values(&prices), Point { base: 10, exponent: 2 });
        assert_eq!(Point::of_values(&[f64::NAN; 3]), Point::UNITS);
    }
}
