//! Intervals as 128-bit numbers.
//!
//! ```text
//! bit 127 ... 96   months, signed
//! bit  95 ... 64   days, sign bit flipped
//! bit  63 ...  0   nanoseconds, sign bit flipped
//! ```
//!
//! Flipping the sign bits of the lower parts keeps the order: months first, then days, then nanoseconds, as Arrow has
//! it. (SQL's order of intervals, where a month is 30 days, is up to whoever compares them.)

use arrow::datatypes::IntervalMonthDayNano;

/// The number that stands for an interval.
pub(crate) fn pack(value: IntervalMonthDayNano) -> i128 {
    let days = value.days as u32 ^ 1 << 31;
    let nanoseconds = value.nanoseconds as u64 ^ 1 << 63;
    i128::from(value.months) << 96 | i128::from(days) << 64 | i128::from(nanoseconds)
}

/// The interval that a number stands for. Every number stands for one.
pub(crate) fn unpack(packed: i128) -> IntervalMonthDayNano {
    IntervalMonthDayNano {
        months: (packed >> 96) as i32,
        days: ((packed >> 64) as u32 ^ 1 << 31) as i32,
        nanoseconds: (packed as u64 ^ 1 << 63) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_keeps_every_bit_and_the_order() {
        let mut intervals = Vec::new();
        for months in [i32::MIN, -1, 0, 1, i32::MAX] {
            for days in [i32::MIN, -1, 0, 1, i32::MAX] {
                for nanoseconds in [i64::MIN, -1, 0, 1, i64::MAX] {
                    intervals.push(IntervalMonthDayNano { months, days, nanoseconds });
                }
            }
        }
        for pair in intervals.windows(2) {
            assert_eq!(unpack(pack(pair[0])), pair[0]);
            assert!(pack(pair[0]) < pack(pair[1]), "{pair:?}");
        }
    }
}
