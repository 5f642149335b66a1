//! From a sum to the result's type.

use super::sum::{Sum, overflow};
use crate::expr::{digits, divide_rounded, power_of_ten};
use crate::group::Spread;
use crate::{AggregateFunction, Error, LogicalType, Result};
use sinter_codec::{Physical, Scalar, ValuesBuf};

/// SUM; NULL over nothing.
pub(crate) fn sum(sum: &Sum, argument: &LogicalType, ty: &LogicalType) -> Result<Scalar> {
    if sum.count == 0 {
        return Ok(Scalar::Null);
    }
    match (argument.is_float(), ty.is_float()) {
        (true, true) => Ok(Scalar::Float(rounded(sum.float, ty))),
        (false, true) => Ok(Scalar::Float(sum.exact as f64 / 10f64.powi(scale_of(argument).into()))),
        (true, false) => Err(Error::Unsupported(format!("a sum of {argument} as {ty}"))),
        (false, false) => {
            let value = rescaled(sum.exact, scale_of(argument), scale_of(ty))?;
            fitting(value, ty, || format!("sum {}", sum.exact))
        }
    }
}

/// Whether a sum in 64 bits of such arguments, whatever it is, is a value of this type without being rescaled.
pub(crate) fn takes_sums_as_they_are(ty: &LogicalType, argument: &LogicalType) -> bool {
    const DIGITS_OF_64_BITS: u8 = 19;
    let has_room = match ty {
        LogicalType::Decimal { precision, .. } => *precision >= DIGITS_OF_64_BITS,
        _ => *ty == LogicalType::Int64,
    };
    has_room && !argument.is_float() && scale_of(argument) == scale_of(ty)
}

/// AVG; NULL over nothing. Decimals have the SQL library's four more digits, and what is beyond them is cut.
pub(crate) fn average(sum: &Sum, argument: &LogicalType, ty: &LogicalType) -> Result<Scalar> {
    if sum.count == 0 {
        return Ok(Scalar::Null);
    }
    match (argument.is_float(), ty.is_float()) {
        (true, true) => Ok(Scalar::Float(rounded(sum.float / sum.count as f64, ty))),
        (false, true) => {
            let sum_of_units = sum.exact as f64 / sum.count as f64;
            Ok(Scalar::Float(sum_of_units / 10f64.powi(scale_of(argument).into())))
        }
        (true, false) => Err(Error::Unsupported(format!("an average of {argument} as {ty}"))),
        (false, false) => {
            let value = divided(sum.exact, sum.count.into(), scale_of(argument), scale_of(ty))?;
            fitting(value, ty, || format!("average of {} values", sum.count))
        }
    }
}

/// [`average`] of many sums in 64 bits, each of as many values as its count says. `None` where one has no values or one's
/// average no room in the type, and for floats.
pub(crate) fn averages(sums: &[i64], counts: &[u64], argument: &LogicalType, ty: &LogicalType) -> Option<ValuesBuf> {
    if argument.is_float() || counts.contains(&0) {
        return None;
    }
    let pairs = sums.iter().zip(counts);
    if *ty == LogicalType::Float64 {
        let unit = 10f64.powi(scale_of(argument).into());
        return Some(ValuesBuf::F64(pairs.map(|(&sum, &count)| sum as f64 / count as f64 / unit).collect()));
    }
    let LogicalType::Decimal { precision, scale } = *ty else { return None };
    let power = 10i64.checked_pow(u32::try_from(scale - scale_of(argument)).ok()?)?;
    let limit = power_of_ten(precision.into()).ok()?;
    let value = |(&sum, &count): (&i64, &u64)| {
        let count = i64::try_from(count).ok()?;
        // A division of 128 bits takes many times as long.
        let value = match sum.checked_mul(power) {
            Some(units) => i128::from(units / count),
            None => i128::from(sum) * i128::from(power) / i128::from(count),
        };
        (-limit < value && value < limit).then_some(value)
    };
    match ty.physical()? {
        Physical::I64 => {
            Some(ValuesBuf::I64(pairs.map(|pair| i64::try_from(value(pair)?).ok()).collect::<Option<_>>()?))
        }
        Physical::I128 => Some(ValuesBuf::I128(pairs.map(value).collect::<Option<_>>()?)),
        _ => None,
    }
}

/// Variance, or its root; NULL over too few values.
pub(crate) fn variance(spread: Spread, function: &AggregateFunction, argument: &LogicalType) -> Scalar {
    let (of_sample, is_root) = match function {
        AggregateFunction::Deviation { of_sample } => (*of_sample, true),
        AggregateFunction::Variance { of_sample } => (*of_sample, false),
        _ => return Scalar::Null,
    };
    let unit = 10f64.powi(scale_of(argument).into());
    match spread.variance(of_sample) {
        None => Scalar::Null,
        Some(variance) if is_root => Scalar::Float(variance.sqrt() / unit),
        Some(variance) => Scalar::Float(variance / (unit * unit)),
    }
}

fn rounded(value: f64, ty: &LogicalType) -> f64 {
    if *ty == LogicalType::Float32 { f64::from(value as f32) } else { value }
}

fn scale_of(ty: &LogicalType) -> i8 {
    digits(ty).map_or(0, |(_, scale)| scale)
}

fn rescaled(value: i128, from: i8, to: i8) -> Result<i128> {
    let up = i32::from(to) - i32::from(from);
    let power = power_of_ten(up.abs())?;
    if up >= 0 { value.checked_mul(power).ok_or_else(overflow) } else { Ok(divide_rounded(value, power)) }
}

/// A sum of so many values over their count, cut. Its digits come behind the division, since an average may have room where
/// the sum with as many has none.
fn divided(sum: i128, count: i128, from: i8, to: i8) -> Result<i128> {
    if to < from {
        return Ok(rescaled(sum, from, to)? / count);
    }
    let power = power_of_ten(i32::from(to) - i32::from(from))?;
    let (whole, rest) = (sum / count, sum % count);
    let digits = rest.checked_mul(power).ok_or_else(overflow)? / count;
    whole.checked_mul(power).and_then(|whole| whole.checked_add(digits)).ok_or_else(overflow)
}

/// The value, if the type has room for it.
fn fitting(value: i128, ty: &LogicalType, what: impl Fn() -> String) -> Result<Scalar> {
    let fits = match (ty, ty.physical()) {
        (LogicalType::Decimal { precision, .. }, _) => {
            let limit = power_of_ten((*precision).into())?;
            value > -limit && value < limit
        }
        (_, Some(Physical::I8)) => i8::try_from(value).is_ok(),
        (_, Some(Physical::I16)) => i16::try_from(value).is_ok(),
        (_, Some(Physical::I32)) => i32::try_from(value).is_ok(),
        (_, Some(Physical::I64)) => i64::try_from(value).is_ok(),
        (_, Some(Physical::U8)) => u8::try_from(value).is_ok(),
        (_, Some(Physical::U16)) => u16::try_from(value).is_ok(),
        (_, Some(Physical::U32)) => u32::try_from(value).is_ok(),
        (_, Some(Physical::U64)) => u64::try_from(value).is_ok(),
        _ => true,
    };
    if fits { Ok(Scalar::Int(value)) } else { Err(Error::Overflow { what: what(), type_name: ty.to_string() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::scalar_at;

    const fn decimal(precision: u8, scale: i8) -> LogicalType {
        LogicalType::Decimal { precision, scale }
    }

    #[test]
    fn averages_have_room_where_sums_have_not() {
        let (argument, ty) = (decimal(38, 10), decimal(38, 14));
        let value = 500_000_000_000_000_000_000_000 * 10i128.pow(10);
        let sum = Sum { exact: 4 * value + 3, count: 4, ..Sum::default() };
        assert_eq!(average(&sum, &argument, &ty).unwrap(), Scalar::Int(value * 10_000 + 7_500));
        let sum = Sum { exact: -4 * value - 3, count: 4, ..Sum::default() };
        assert_eq!(average(&sum, &argument, &ty).unwrap(), Scalar::Int(-value * 10_000 - 7_500));
        assert!(average(&Sum { exact: i128::MAX, count: 1, ..Sum::default() }, &argument, &ty).is_err());
    }

    #[test]
    fn many_averages_are_those_of_each() {
        let sums = [0, 1, -1, 7, -7, 1_234_567_890_123, i64::MAX / 10_000, i64::MAX / 10_000 + 1, i64::MIN];
        let counts = [1, 2, 3, 7, 1 << 40, 5, 1, 3, 1 << 20];
        let types = [
            (decimal(15, 2), decimal(19, 6)),
            (decimal(10, 3), decimal(14, 7)),
            (decimal(18, 0), decimal(38, 18)),
            (LogicalType::Int64, LogicalType::Float64),
            (decimal(15, 2), LogicalType::Float64),
        ];
        for (argument, ty) in types {
            for end in 1..=sums.len() {
                let many = averages(&sums[..end], &counts[..end], &argument, &ty);
                let each: Result<Vec<Scalar>> = sums[..end]
                    .iter()
                    .zip(&counts)
                    .map(|(&exact, &count)| average(&Sum { exact: exact.into(), float: 0.0, count }, &argument, &ty))
                    .collect();
                match each {
                    Ok(each) => {
                        let many = many.expect("each of them has one");
                        let many: Vec<Scalar> = (0..end).map(|row| scalar_at(many.as_values(), row)).collect();
                        assert_eq!(many, each, "{argument} as {ty}");
                    }
                    Err(_) => assert_eq!(many, None, "{argument} as {ty}"),
                }
            }
            assert_eq!(averages(&[0, 5], &[0, 1], &argument, &ty), None);
        }
        assert_eq!(averages(&[], &[], &LogicalType::Float64, &LogicalType::Float64), None);
    }
}
