//! Arithmetic of decimals, as Arrow and the SQL library have it.
//!
//! Operands are unscaled integers of 64 or 128 bits. The digits that a result can have are known when the plan is
//! made: where they fit the width that it is computed in, nothing is checked per row.
//!
//! - `+`, `-`, `%` bring both sides to the greater scale;
//! - `*` adds the scales;
//! - `/` scales the left side up until the quotient has the result's scale, and cuts what is left.
//!
//! A result whose type has another scale than that is then rescaled, rounded half away from zero.

use super::ArithmeticOp;
use super::arithmetic::fill;
use super::decimal_bounds::{Width, compute_within};
use super::machine::reset;
use super::slot::{Each, Input, Lane, Same, Slot};
use crate::{Error, LogicalType, Result};
use sinter_codec::{Physical, Values, ValuesBuf};

/// A decimal operation with all its factors.
#[derive(Clone, Debug)]
pub(crate) struct DecimalPlan {
    pub(super) op: ArithmeticOp,
    /// Powers of ten that bring the sides to the scale of the operation.
    pub(super) left_factor: i128,
    pub(super) right_factor: i128,
    /// Then divide (rounding) or multiply by a power of ten.
    pub(super) shrink: i128,
    pub(super) grow: i128,
    /// Everything fits 64 bits on the way.
    narrow: bool,
    /// Something may not fit 128 bits on the way.
    checked: bool,
    /// The result may have more digits than its type.
    pub(super) limit: Option<i128>,
    /// How few bits whoever reads the result takes.
    pub(super) width: Width,
}

/// Precision and scale of decimals, and of integers seen as decimals.
pub(crate) fn digits(ty: &LogicalType) -> Option<(u8, i8)> {
    Some(match ty {
        LogicalType::Decimal { precision, scale } => (*precision, *scale),
        LogicalType::Int8 | LogicalType::UInt8 => (3, 0),
        LogicalType::Int16 | LogicalType::UInt16 => (5, 0),
        LogicalType::Int32 | LogicalType::UInt32 => (10, 0),
        LogicalType::Int64 => (19, 0),
        LogicalType::UInt64 => (20, 0),
        _ => return None,
    })
}

/// `10^exponent`.
pub(crate) fn power_of_ten(exponent: i32) -> Result<i128> {
    let power = u32::try_from(exponent).ok().and_then(|exponent| 10i128.checked_pow(exponent));
    power.ok_or_else(|| Error::Overflow { what: format!("10^{exponent}"), type_name: "DECIMAL(38)".into() })
}

impl DecimalPlan {
    /// A plan for operands and result of these precisions and scales.
    pub(super) fn new(op: ArithmeticOp, left: (u8, i8), right: (u8, i8), result: (u8, i8)) -> Result<DecimalPlan> {
        let ((lp, ls), (rp, rs)) = ((i32::from(left.0), i32::from(left.1)), (i32::from(right.0), i32::from(right.1)));
        let (precision, scale) = (i32::from(result.0), i32::from(result.1));
        let common = ls.max(rs);
        // The scales to which the sides go up, the scale and digits of what comes out, and the digits on the way.
        let (left_up, right_up, natural_scale, natural_digits, way) = match op {
            ArithmeticOp::Add | ArithmeticOp::Subtract => {
                let most = (lp - ls).max(rp - rs) + common;
                (common - ls, common - rs, common, most + 1, most + 1)
            }
            ArithmeticOp::Multiply => (0, 0, ls + rs, lp + rp, lp + rp),
            ArithmeticOp::Divide => {
                let up = scale - ls + rs;
                let (left_up, right_up) = (up.max(0), (-up).max(0));
                (left_up, right_up, scale, lp + left_up, (lp + left_up).max(rp + right_up))
            }
            ArithmeticOp::Modulo => {
                let (l, r) = (lp + common - ls, rp + common - rs);
                (common - ls, common - rs, common, l.min(r), l.max(r))
            }
        };
        let grow = scale - natural_scale;
        let grown = natural_digits + grow;
        let way = way.max(grown).max(natural_digits);
        Ok(DecimalPlan {
            op,
            left_factor: power_of_ten(left_up)?,
            right_factor: power_of_ten(right_up)?,
            shrink: power_of_ten((-grow).max(0))?,
            grow: power_of_ten(grow.max(0))?,
            narrow: way <= 18,
            checked: way > 38,
            // Rounding may carry into one digit more.
            limit: (grown + i32::from(grow < 0) > precision).then(|| power_of_ten(precision)).transpose()?,
            width: Width::Typed,
        })
    }
}

/// Computes a plan over all rows.
pub(super) fn decimals(
    plan: &DecimalPlan,
    left: Input<'_>,
    right: Input<'_>,
    rows: usize,
    ty: &LogicalType,
    out: &mut Slot,
) -> Result<()> {
    out.set_strict(&[left, right], rows);
    out.bounds = None;
    if out.all_null() {
        reset(&mut out.values, ty);
        out.values.push_default(rows);
        return Ok(());
    }
    if compute_within(plan, left, right, ty, out) {
        return Ok(());
    }
    reset(&mut out.values, ty);
    let (mut left_room, mut right_room) = (Vec::new(), Vec::new());
    let (left, right) = (widened(left, &mut left_room), widened(right, &mut right_room));
    let is_narrow = match (left.values, right.values) {
        (Values::I64(l), Values::I64(r)) => plan.is_narrow(l, r),
        _ => false,
    };
    if is_narrow && plan.width > Width::Typed && matches!(out.values, ValuesBuf::I128(_)) {
        out.values.reset(Physical::I64);
    }
    let failed = match (left.values, right.values) {
        (Values::I64(l), Values::I64(r)) => match (left.constant, right.constant) {
            (false, false) => run(plan, is_narrow, &Each(l), &Each(r), rows, &mut out.values),
            (false, true) => run(plan, is_narrow, &Each(l), &Same(r[0]), rows, &mut out.values),
            (true, false) => run(plan, is_narrow, &Same(l[0]), &Each(r), rows, &mut out.values),
            (true, true) => run(plan, is_narrow, &Same(l[0]), &Same(r[0]), rows, &mut out.values),
        },
        (Values::I64(l), Values::I128(r)) => match (left.constant, right.constant) {
            (false, false) => run_wide(plan, &Each(l), &Each(r), rows, &mut out.values),
            (false, true) => run_wide(plan, &Each(l), &Same(r[0]), rows, &mut out.values),
            (true, false) => run_wide(plan, &Same(i128::from(l[0])), &Each(r), rows, &mut out.values),
            (true, true) => run_wide(plan, &Same(i128::from(l[0])), &Same(r[0]), rows, &mut out.values),
        },
        (Values::I128(l), Values::I64(r)) => match (left.constant, right.constant) {
            (false, false) => run_wide(plan, &Each(l), &Each(r), rows, &mut out.values),
            (false, true) => run_wide(plan, &Each(l), &Same(i128::from(r[0])), rows, &mut out.values),
            (true, false) => run_wide(plan, &Same(l[0]), &Each(r), rows, &mut out.values),
            (true, true) => run_wide(plan, &Same(l[0]), &Same(i128::from(r[0])), rows, &mut out.values),
        },
        (Values::I128(l), Values::I128(r)) => match (left.constant, right.constant) {
            (false, false) => run_wide(plan, &Each(l), &Each(r), rows, &mut out.values),
            (false, true) => run_wide(plan, &Each(l), &Same(r[0]), rows, &mut out.values),
            (true, false) => run_wide(plan, &Same(l[0]), &Each(r), rows, &mut out.values),
            (true, true) => run_wide(plan, &Same(l[0]), &Same(r[0]), rows, &mut out.values),
        },
        _ => return Err(Error::Unsupported("decimals of less than 64 bits".into())),
    };
    if !failed {
        return Ok(());
    }
    for row in (0..rows).filter(|&row| !out.has_nulls || out.validity.get(row)) {
        let (l, r) = (integer_at(left, row), integer_at(right, row));
        if r == 0 && matches!(plan.op, ArithmeticOp::Divide | ArithmeticOp::Modulo) {
            return Err(Error::DivisionByZero);
        }
        if plan.checked(l, r).1 {
            let what = format!("{l} {} {r} (unscaled)", plan.op.sign());
            return Err(Error::Overflow { what, type_name: ty.to_string() });
        }
    }
    Ok(())
}

/// An operand in 64 bits where it has less.
fn widened<'a>(input: Input<'a>, room: &'a mut Vec<i64>) -> Input<'a> {
    match input.values {
        Values::I32(values) => {
            room.extend(values.iter().map(|&value| i64::from(value)));
            Input { values: Values::I64(room), ..input }
        }
        _ => input,
    }
}

fn integer_at(input: Input<'_>, row: usize) -> i128 {
    let row = if input.constant { 0 } else { row };
    match input.values {
        Values::I64(values) => values[row].into(),
        Values::I128(values) => values[row],
        _ => 0,
    }
}

/// Operands of 64 bits: computed in 64 bits where that `is_narrow` enough for all on the way.
fn run<L: Lane<i64> + Lane<i128>, R: Lane<i64> + Lane<i128>>(
    plan: &DecimalPlan,
    is_narrow: bool,
    left: &L,
    right: &R,
    rows: usize,
    out: &mut ValuesBuf,
) -> bool {
    if !is_narrow {
        return run_wide(plan, left, right, rows, out);
    }
    let (lf, rf) = (plan.left_factor as i64, plan.right_factor as i64);
    macro_rules! narrow {
        ($out:expr, $convert:expr) => {{
            let l = |row| Lane::<i64>::at(left, row).wrapping_mul(lf);
            let r = |row| Lane::<i64>::at(right, row).wrapping_mul(rf);
            match plan.op {
                ArithmeticOp::Add => fill(rows, $out, |row| ($convert(l(row).wrapping_add(r(row))), false)),
                ArithmeticOp::Subtract => fill(rows, $out, |row| ($convert(l(row).wrapping_sub(r(row))), false)),
                ArithmeticOp::Multiply => fill(rows, $out, |row| ($convert(l(row).wrapping_mul(r(row))), false)),
                ArithmeticOp::Divide => fill(rows, $out, |row| match l(row).checked_div(r(row)) {
                    Some(value) => ($convert(value), false),
                    None => (Default::default(), true),
                }),
                ArithmeticOp::Modulo => fill(rows, $out, |row| match l(row).checked_rem(r(row)) {
                    Some(value) => ($convert(value), false),
                    None => (Default::default(), true),
                }),
            }
        }};
    }
    match out {
        ValuesBuf::I32(out) => narrow!(out, |value: i64| value as i32),
        ValuesBuf::I64(out) => narrow!(out, |value: i64| value),
        ValuesBuf::I128(out) => narrow!(out, i128::from),
        _ => true,
    }
}

/// Computed in 128 bits.
fn run_wide(
    plan: &DecimalPlan,
    left: &impl Lane<i128>,
    right: &impl Lane<i128>,
    rows: usize,
    out: &mut ValuesBuf,
) -> bool {
    let fits = !plan.checked && plan.limit.is_none() || plan.fits(bits(left, rows), bits(right, rows), i128::BITS - 1);
    let plain = fits && plan.grow == 1 && plan.shrink == 1;
    let same_scale = plan.left_factor == 1 && plan.right_factor == 1;
    if let (ValuesBuf::I128(out), true, true) = (&mut *out, plain, same_scale) {
        // The digits fit: nothing can go wrong.
        let (l, r) = (|row| left.at(row), |row| right.at(row));
        match plan.op {
            ArithmeticOp::Add => return fill(rows, out, |row| (l(row).wrapping_add(r(row)), false)),
            ArithmeticOp::Subtract => return fill(rows, out, |row| (l(row).wrapping_sub(r(row)), false)),
            ArithmeticOp::Multiply => return fill(rows, out, |row| (l(row).wrapping_mul(r(row)), false)),
            _ => {}
        }
    }
    if let (ValuesBuf::I128(out), true, ArithmeticOp::Add | ArithmeticOp::Subtract) = (&mut *out, plain, plan.op) {
        let l = |row| left.at(row).wrapping_mul(plan.left_factor);
        let r = |row| right.at(row).wrapping_mul(plan.right_factor);
        return match plan.op {
            ArithmeticOp::Add => fill(rows, out, |row| (l(row).wrapping_add(r(row)), false)),
            _ => fill(rows, out, |row| (l(row).wrapping_sub(r(row)), false)),
        };
    }
    let one = |row| plan.checked(left.at(row), right.at(row));
    match out {
        ValuesBuf::I32(out) => fill(rows, out, |row| narrowed(one(row))),
        ValuesBuf::I64(out) => fill(rows, out, |row| narrowed(one(row))),
        ValuesBuf::I128(out) => fill(rows, out, one),
        _ => true,
    }
}

/// Bits that the numbers need at most, without their signs. Digits say what a type can hold; what a vector does hold is
/// mostly much less, and looking is cheaper than checking every operation.
fn bits(lane: &impl Lane<i128>, rows: usize) -> u32 {
    let all = (0..rows).fold(0, |all, row| {
        let value = lane.at(row);
        all | value ^ (value >> 127)
    });
    128 - all.leading_zeros()
}

/// The same of plain values, one or one per row.
fn narrow_bits(values: &[i64]) -> u32 {
    i64::BITS - values.iter().fold(0, |all, value| all | value ^ (value >> 63)).leading_zeros()
}

fn narrowed<T: TryFrom<i128> + Default>((value, wrong): (i128, bool)) -> (T, bool) {
    match T::try_from(value) {
        Ok(value) => (value, wrong),
        Err(_) => (T::default(), true),
    }
}

impl DecimalPlan {
    /// True when these numbers of 64 bits need no more on the way, by their types or by what they are, and each result is
    /// right.
    fn is_narrow(&self, left: &[i64], right: &[i64]) -> bool {
        let by_type = self.narrow && self.limit.is_none();
        let fits = || self.fits(narrow_bits(left), narrow_bits(right), i64::BITS - 1);
        self.grow == 1 && self.shrink == 1 && (by_type || fits())
    }

    /// True when numbers of so many bits cannot need `bits_max` bits on the way, nor give more digits than the result's type
    /// has.
    fn fits(&self, left: u32, right: u32, bits_max: u32) -> bool {
        let of = |value: i128| 128 - value.leading_zeros();
        let (left, right) = (left + of(self.left_factor), right + of(self.right_factor));
        let most = match self.op {
            ArithmeticOp::Add | ArithmeticOp::Subtract => left.max(right) + 1,
            ArithmeticOp::Multiply => left + right,
            ArithmeticOp::Divide | ArithmeticOp::Modulo => left.max(right),
        };
        // A number of `n` bits is less than 2^n, and the limit at least that where it has more bits.
        most < self.limit.map_or(bits_max, of).min(bits_max)
    }

    /// One row, with every check. The flag says that the result is wrong.
    fn checked(&self, left: i128, right: i128) -> (i128, bool) {
        match self.exact(left, right) {
            Some(value) if self.limit.is_none_or(|limit| value > -limit && value < limit) => (value, false),
            _ => (0, true),
        }
    }

    fn exact(&self, left: i128, right: i128) -> Option<i128> {
        let (left, right) = (left.checked_mul(self.left_factor)?, right.checked_mul(self.right_factor)?);
        let value = match self.op {
            ArithmeticOp::Add => left.checked_add(right)?,
            ArithmeticOp::Subtract => left.checked_sub(right)?,
            ArithmeticOp::Multiply => left.checked_mul(right)?,
            ArithmeticOp::Divide => left.checked_div(right)?,
            ArithmeticOp::Modulo if right == -1 => 0,
            ArithmeticOp::Modulo => left.checked_rem(right)?,
        };
        if self.shrink > 1 { Some(divide_rounded(value, self.shrink)) } else { value.checked_mul(self.grow) }
    }
}

/// `value / divisor`, rounded half away from zero. `divisor` is a power of ten above 1.
pub(crate) fn divide_rounded(value: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (value / divisor, value % divisor);
    let half = divisor / 2;
    if rest >= half {
        quotient + 1
    } else if rest <= -half {
        quotient - 1
    } else {
        quotient
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_away_from_zero() {
        let rounded: Vec<_> = [-15, -14, -5, -4, 0, 4, 5, 14, 15].map(|value| divide_rounded(value, 10)).into();
        assert_eq!(rounded, [-2, -1, -1, 0, 0, 0, 1, 1, 2]);
    }

    #[test]
    fn division_has_the_scale_of_the_result_and_cuts_the_rest() {
        // 2.00 / 3.0 as DECIMAL(38, 6)
        let plan = DecimalPlan::new(ArithmeticOp::Divide, (15, 2), (10, 1), (38, 6)).unwrap();
        assert_eq!(plan.checked(200, 30), (666_666, false));
        assert_eq!(plan.checked(-200, 30), (-666_666, false));
        assert!(plan.checked(1, 0).1);
    }
}
