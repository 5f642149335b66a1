//! Floats as integers that order alike.

/// `float_order` of the least float, minus infinity.
pub(super) const FLOAT_MIN: i128 = float_order(f64::NEG_INFINITY) as i128;
/// `float_order` of NaN.
pub(super) const FLOAT_MAX: i128 = i64::MAX as i128;

/// An integer that orders as PostgreSQL orders floats: `-0.0` as `0.0`, NaN above all and equal to itself.
#[inline]
pub(crate) const fn float_order(value: f64) -> i64 {
    let bits = (value + 0.0).to_bits() as i64;
    let ordered = bits ^ ((bits >> 63) as u64 >> 1) as i64;
    if value.is_nan() { i64::MAX } else { ordered }
}

/// The float of an order; of those with the same, 0.0 and the one NaN.
#[inline]
pub(crate) const fn float_of_order(order: i64) -> f64 {
    let bits = order ^ ((order >> 63) as u64 >> 1) as i64;
    if order == i64::MAX { f64::NAN } else { f64::from_bits(bits as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_order_as_in_postgresql() {
        let ascending = [
            f64::NEG_INFINITY,
            -1e300,
            -1.5,
            -f64::MIN_POSITIVE,
            -5e-324,
            0.0,
            5e-324,
            1.5,
            1e300,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(ascending.windows(2).all(|pair| float_order(pair[0]) < float_order(pair[1])));
        for value in ascending {
            assert_eq!(float_of_order(float_order(value)).to_bits(), value.to_bits());
        }
        assert_eq!(float_order(-0.0), float_order(0.0));
        assert_eq!(float_order(-f64::NAN), float_order(f64::NAN));
    }
}
