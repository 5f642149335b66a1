//! Casts between numbers, as Arrow has them: decimals round half away from zero where they lose digits, but are cut
//! where they become integers; floats are cut where they become integers, and rounded where they become decimals.
//! What does not fit is an error.

use super::decimal::{divide_rounded, power_of_ten};
use super::machine::reset;
use super::slot::{Input, Slot};
use crate::{Error, LogicalType, Result};
use sinter_codec::{Values, ValuesBuf};

/// A cast between two types of numbers.
#[derive(Clone, Debug)]
pub(crate) struct CastPlan {
    from: Kind,
    to: Kind,
    ty: LogicalType,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Integer,
    Float,
    /// With the scale, and the limit that no value of the type reaches.
    Decimal(i8, i128),
}

impl CastPlan {
    /// `None` where one of the types is no number.
    pub(super) fn new(from: &LogicalType, to: &LogicalType) -> Option<CastPlan> {
        // What is not 0 would have to become 1, which is no cast of numbers.
        let plan = CastPlan { from: kind(from)?, to: kind(to)?, ty: to.clone() };
        (*to != LogicalType::Boolean).then_some(plan)
    }
}

fn kind(ty: &LogicalType) -> Option<Kind> {
    Some(match ty {
        LogicalType::Int8
        | LogicalType::Int16
        | LogicalType::Int32
        | LogicalType::Int64
        | LogicalType::UInt8
        | LogicalType::UInt16
        | LogicalType::UInt32
        | LogicalType::UInt64
        | LogicalType::Boolean => Kind::Integer,
        LogicalType::Float32 | LogicalType::Float64 => Kind::Float,
        LogicalType::Decimal { precision, scale } => Kind::Decimal(*scale, power_of_ten((*precision).into()).ok()?),
        _ => return None,
    })
}

/// Casts all rows.
pub(super) fn cast(plan: &CastPlan, input: Input<'_>, rows: usize, out: &mut Slot) -> Result<()> {
    out.set_strict(&[input], rows);
    reset(&mut out.values, &plan.ty);
    if out.all_null() {
        out.values.push_default(rows);
        return Ok(());
    }
    let (validity, values) = (out.has_nulls.then_some(&out.validity), &mut out.values);
    macro_rules! integers {
        ($values:expr) => {
            from_integers(plan, |row| i128::from($values[if input.constant { 0 } else { row }]), rows, values)
        };
    }
    macro_rules! floats {
        ($values:expr) => {
            from_floats(plan, |row| f64::from($values[if input.constant { 0 } else { row }]), rows, values)
        };
    }
    let failed = match input.values {
        Values::I8(from) => integers!(from),
        Values::I16(from) => integers!(from),
        Values::I32(from) => integers!(from),
        Values::I64(from) => integers!(from),
        Values::I128(from) => integers!(from),
        Values::U8(from) => integers!(from),
        Values::U16(from) => integers!(from),
        Values::U32(from) => integers!(from),
        Values::U64(from) => integers!(from),
        Values::F32(from) => floats!(from),
        Values::F64(from) => floats!(from),
        Values::Bytes(_) => return Err(Error::Unsupported(format!("cast of text to {}", plan.ty))),
    };
    // What failed at a NULL did not fail.
    let failed = failed.into_iter().find(|&row| validity.is_none_or(|validity| validity.get(row)));
    match failed {
        None => Ok(()),
        Some(row) => {
            let value = text(plan.from, input.values, if input.constant { 0 } else { row });
            Err(Error::Cast { value, type_name: plan.ty.to_string() })
        }
    }
}

/// Integers and decimals. Returns the rows that do not fit.
fn from_integers(plan: &CastPlan, at: impl Fn(usize) -> i128, rows: usize, out: &mut ValuesBuf) -> Vec<usize> {
    let scale = if let Kind::Decimal(scale, _) = plan.from { i32::from(scale) } else { 0 };
    match plan.to {
        Kind::Float => {
            match out {
                // Rounded once.
                ValuesBuf::F32(out) if scale == 0 => out.extend((0..rows).map(|row| at(row) as f32)),
                _ => {
                    let divisor = 10f64.powi(scale);
                    to_floats(|row| at(row) as f64 / divisor, rows, out);
                }
            }
            Vec::new()
        }
        Kind::Integer => {
            let Ok(power) = power_of_ten(scale.abs()) else { return (0..rows).collect() };
            if scale == 0 {
                to_integers(|row| Some(at(row)), rows, out)
            } else if scale > 0 {
                to_integers(|row| Some(at(row) / power), rows, out)
            } else {
                to_integers(|row| at(row).checked_mul(power), rows, out)
            }
        }
        Kind::Decimal(to_scale, limit) => {
            let up = i32::from(to_scale) - scale;
            let inside = |value: i128| (value > -limit && value < limit).then_some(value);
            match power_of_ten(up.abs()) {
                Ok(power) if up >= 0 => to_integers(|row| at(row).checked_mul(power).and_then(inside), rows, out),
                Ok(power) => to_integers(|row| inside(divide_rounded(at(row), power)), rows, out),
                // More digits are lost than there are.
                Err(_) if up < 0 => to_integers(|_| Some(0), rows, out),
                Err(_) => to_integers(|row| (at(row) == 0).then_some(0), rows, out),
            }
        }
    }
}

fn from_floats(plan: &CastPlan, at: impl Fn(usize) -> f64, rows: usize, out: &mut ValuesBuf) -> Vec<usize> {
    match plan.to {
        Kind::Float => {
            to_floats(at, rows, out);
            Vec::new()
        }
        Kind::Integer => to_integers(|row| whole(at(row)), rows, out),
        Kind::Decimal(scale, limit) => {
            let factor = 10f64.powi(scale.into());
            let inside = |value: i128| (value > -limit && value < limit).then_some(value);
            to_integers(|row| whole((at(row) * factor).round()).and_then(inside), rows, out)
        }
    }
}

/// The integer part; `None` for NaN and for what no `i128` holds.
fn whole(value: f64) -> Option<i128> {
    // -2^127 is a float, 2^127 is one too much.
    let limit = -(i128::MIN as f64);
    (value >= -limit && value < limit).then_some(value as i128)
}

fn to_floats(at: impl Fn(usize) -> f64, rows: usize, out: &mut ValuesBuf) {
    match out {
        ValuesBuf::F32(out) => out.extend((0..rows).map(|row| at(row) as f32)),
        ValuesBuf::F64(out) => out.extend((0..rows).map(at)),
        _ => debug_assert!(false, "a float type has a float buffer"),
    }
}

fn to_integers(at: impl Fn(usize) -> Option<i128>, rows: usize, out: &mut ValuesBuf) -> Vec<usize> {
    fn fill<T: TryFrom<i128> + Default>(
        at: impl Fn(usize) -> Option<i128>,
        rows: usize,
        out: &mut Vec<T>,
    ) -> Vec<usize> {
        let mut failed = Vec::new();
        out.extend((0..rows).map(|row| match at(row).map(T::try_from) {
            Some(Ok(value)) => value,
            _ => {
                failed.push(row);
                T::default()
            }
        }));
        failed
    }
    match out {
        ValuesBuf::I8(out) => fill(at, rows, out),
        ValuesBuf::I16(out) => fill(at, rows, out),
        ValuesBuf::I32(out) => fill(at, rows, out),
        ValuesBuf::I64(out) => fill(at, rows, out),
        ValuesBuf::I128(out) => fill(at, rows, out),
        ValuesBuf::U8(out) => fill(at, rows, out),
        ValuesBuf::U16(out) => fill(at, rows, out),
        ValuesBuf::U32(out) => fill(at, rows, out),
        ValuesBuf::U64(out) => fill(at, rows, out),
        _ => (0..rows).collect(),
    }
}

fn text(kind: Kind, values: Values<'_>, row: usize) -> String {
    match (crate::vector::scalar_at(values, row), kind) {
        (sinter_codec::Scalar::Int(value), Kind::Decimal(scale, _)) if scale > 0 => {
            let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale as usize + 1);
            let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
            format!("{}{whole}.{fraction}", if value < 0 { "-" } else { "" })
        }
        (sinter_codec::Scalar::Int(value), Kind::Decimal(scale, _)) if scale < 0 => format!("{value}e{}", -scale),
        (sinter_codec::Scalar::Int(value), _) => value.to_string(),
        (sinter_codec::Scalar::Float(value), _) => value.to_string(),
        (other, _) => format!("{other:?}"),
    }
}
