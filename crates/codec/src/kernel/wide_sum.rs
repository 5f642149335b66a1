//! Sums of integers that cannot overflow.

/// An exact sum of integers of up to 128 bits: 192 bits, which 2^64 of them do not overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WideSum {
    low: u128,
    /// In units of 2^128.
    high: i64,
}

impl WideSum {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: i128) {
        let (low, carry) = self.low.overflowing_add(value as u128);
        self.low = low;
        self.high += i64::from(carry) - i64::from(value < 0);
    }

    /// Adds what another sum came to.
    pub fn add_sum(&mut self, other: WideSum) {
        let (low, carry) = self.low.overflowing_add(other.low);
        self.low = low;
        self.high = self.high.wrapping_add(other.high).wrapping_add(i64::from(carry));
    }

    /// Adds a value `count` times.
    pub(crate) fn add_product(&mut self, value: i128, count: u64) {
        let (above, below) = (value >> 64, value as u64);
        self.add_sum(WideSum { low: u128::from(below) * u128::from(count), high: 0 });
        self.add_shifted(above * i128::from(count));
    }

    /// Adds a value times 2^64.
    pub(crate) fn add_shifted(&mut self, value: i128) {
        self.add_sum(WideSum { low: (value as u128) << 64, high: (value >> 64) as i64 });
    }

    /// The sum less `value` times `count`.
    pub(crate) fn less_product(mut self, value: i128, count: u64) -> WideSum {
        let mut product = WideSum::default();
        product.add_product(value, count);
        self.add_sum(product.negated());
        self
    }

    fn negated(self) -> WideSum {
        let (low, is_zero) = (!self.low).overflowing_add(1);
        WideSum { low, high: (!self.high).wrapping_add(i64::from(is_zero)) }
    }

    /// The sum, where 128 bits hold it.
    pub fn to_i128(self) -> Option<i128> {
        let value = self.low as i128;
        (self.high == if value < 0 { -1 } else { 0 }).then_some(value)
    }

    /// The nearest float; of two equally near the even one.
    pub fn to_f64(self) -> f64 {
        if let Some(value) = self.to_i128() {
            return value as f64;
        }
        let magnitude = if self.high < 0 { self.negated() } else { self };
        let limbs = [magnitude.low as u64, (magnitude.low >> 64) as u64, magnitude.high as u64];
        let nearest = nearest_f64(&limbs);
        if self.high < 0 { -nearest } else { nearest }
    }

    /// The sum divided by `count`, rounded towards zero: a value between the least and the greatest of as many.
    pub(crate) fn divided(self, count: u64) -> i128 {
        let magnitude = if self.high < 0 { self.negated() } else { self };
        let limbs = [magnitude.high as u64, (magnitude.low >> 64) as u64, magnitude.low as u64];
        let (mut quotient, mut rest) = (0u128, 0u128);
        for limb in limbs {
            let part = rest << 64 | u128::from(limb);
            quotient = (quotient << 64) | (part / u128::from(count));
            rest = part % u128::from(count);
        }
        if self.high < 0 { (quotient as i128).wrapping_neg() } else { quotient as i128 }
    }
}

impl From<i128> for WideSum {
    fn from(value: i128) -> Self {
        let mut sum = WideSum::default();
        sum.add(value);
        sum
    }
}

/// The float nearest to a number of 64-bit limbs, the lowest first.
pub(crate) fn nearest_f64(limbs: &[u64]) -> f64 {
    let Some(top) = limbs.iter().rposition(|limb| *limb != 0) else { return 0.0 };
    if top == 0 {
        return limbs[0] as f64;
    }
    // 128 bits from the highest set one on; one more for all that is cut, so that ties are none.
    let shift = limbs[top].leading_zeros();
    let below = if top >= 2 { limbs[top - 2] } else { 0 };
    let mut bits = u128::from(limbs[top]) << 64 | u128::from(limbs[top - 1]);
    bits = bits << shift | if shift == 0 { 0 } else { u128::from(below >> (64 - shift)) };
    let cut = below << shift != 0 || limbs[..top.saturating_sub(2)].iter().any(|limb| *limb != 0);
    let exponent = 64 * (top as i32 - 1) - shift as i32;
    (bits | u128::from(cut)) as f64 * 2f64.powi(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_at_the_ends_of_128_bits() {
        let mut sum = WideSum::default();
        for _ in 0..5 {
            sum.add(i128::MAX);
        }
        assert_eq!(sum.to_i128(), None);
        assert_eq!(sum.to_f64(), 5.0 * 2f64.powi(127));
        assert_eq!(sum.divided(5), i128::MAX);
        for _ in 0..10 {
            sum.add(i128::MIN);
        }
        assert_eq!(sum.to_f64(), -5.0 * 2f64.powi(127));
        assert_eq!(sum.to_i128(), None);
        sum.add_product(i128::MIN, 7);
        sum.add_product(i128::MAX, 12);
        assert_eq!(sum.to_i128(), Some(-5 - 12));
        assert_eq!(sum.divided(17), -1);
        assert_eq!(sum.less_product(-17, 1), WideSum::default());
    }

    #[test]
    fn products_are_repeated_sums() {
        for value in [0, 1, -1, 12345, -(1 << 70), i128::MAX, i128::MIN, i64::MIN.into(), u64::MAX.into()] {
            let (mut one_by_one, mut at_once) = (WideSum::default(), WideSum::default());
            (0..1000).for_each(|_| one_by_one.add(value));
            at_once.add_product(value, 1000);
            assert_eq!(at_once, one_by_one, "{value}");
            assert_eq!(at_once.divided(1000), value);
        }
    }

    #[test]
    fn the_nearest_float_is_found() {
        assert_eq!(nearest_f64(&[0, 0, 0]), 0.0);
        assert_eq!(nearest_f64(&[u64::MAX, 0]), u64::MAX as f64);
        assert_eq!(nearest_f64(&[1, 1]), (1u128 << 64 | 1) as f64);
        assert_eq!(nearest_f64(&[0, 0, 1]), 2f64.powi(128));
        // Half a unit above 2^191 and a bit more far below: up. Without it: to the even one, down.
        assert_eq!(nearest_f64(&[1, 0, 1 << 63 | 1 << 10]), 2f64.powi(191) + 2f64.powi(139));
        assert_eq!(nearest_f64(&[0, 0, 1 << 63 | 1 << 10]), 2f64.powi(191));
        assert_eq!(nearest_f64(&[0, 0, 0, 0, 1]), 2f64.powi(256));
    }
}
