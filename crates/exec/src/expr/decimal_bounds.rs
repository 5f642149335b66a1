//! Decimals computed in as few bits as their values need.
//!
//! Digits say what a type can hold; what a vector does hold is mostly much less. So the least and the greatest number of
//! each side are found in one pass, if the operation before did not tell them, and with them those of the result. Where
//! they fit, no row can fail and none is checked: the loop is one operation, and runs over registers of 32 bits where that
//! is enough. It may wrap on the way, since what fits in the end comes out right.

use super::ArithmeticOp;
use super::decimal::DecimalPlan;
use super::slot::{Input, Slot};
use crate::dispatch::each_narrow;
use crate::vector::Progression;
use crate::{LogicalType, Vector};
use sinter_codec::{Encoded, Narrow, Physical, Values, ValuesBuf, bounds_of, map_rows, zip_rows};

/// How few bits a result may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Width {
    /// Those of its type.
    #[default]
    Typed,
    /// 64 where its type has more.
    Bits64,
    /// 32 where its type has more.
    Bits32,
}

/// Writes the numbers of a column over `out`, in the fewest bits that hold them; false, and nothing happens, where 64 do not
/// or the column is no base with deltas, nor codes of a progression.
pub(super) fn flatten_narrow(column: &Vector, out: &mut Slot) -> bool {
    let (base, step, deltas) = match (&column.values, &column.dictionary) {
        (Encoded::BaseDelta { base, deltas }, _) => (*base, 1, deltas),
        (Encoded::Codes(codes), Some(dictionary)) => match dictionary.progression() {
            Some(Progression { first, step }) => (first.into(), step, codes),
            None => return false,
        },
        _ => return false,
    };
    let Some((least, greatest)) = bounds_of(deltas.as_values()) else { return false };
    let value = |delta: i128| i64::try_from(base.checked_add(delta.checked_mul(step.into())?)?).ok();
    let (Some(first), Some(last)) = (value(least), value(greatest)) else { return false };
    let bounds = (first.min(last), first.max(last));
    out.bounds = Some(bounds);
    if are_32_bits(bounds) {
        let (base, step, out) = (base as i32, step as i32, as_i32(&mut out.values));
        match deltas {
            Narrow::U8(deltas) => {
                map_rows(deltas, out, move |delta| base.wrapping_add(step.wrapping_mul(delta.into())))
            }
            Narrow::U16(deltas) => {
                map_rows(deltas, out, move |delta| base.wrapping_add(step.wrapping_mul(delta.into())))
            }
            Narrow::U32(deltas) if step == 1 => map_rows(deltas, out, move |delta| base.wrapping_add(delta as i32)),
            Narrow::U32(deltas) => {
                map_rows(deltas, out, move |delta| base.wrapping_add(step.wrapping_mul(delta as i32)))
            }
        }
    } else {
        let (base, out) = (base as i64, as_i64(&mut out.values));
        match step {
            1 => each_narrow!(deltas, deltas => map_rows(deltas, out, move |delta| base.wrapping_add(delta.into()))),
            _ => each_narrow!(deltas, deltas => {
                map_rows(deltas, out, move |delta| base.wrapping_add(step.wrapping_mul(delta.into())));
            }),
        }
    }
    true
}

/// Computes a plan over all rows and says what the results lie between. False, and nothing happens, where they might not
/// fit, or the plan does more than one operation.
pub(super) fn compute_within(
    plan: &DecimalPlan,
    left: Input<'_>,
    right: Input<'_>,
    ty: &LogicalType,
    out: &mut Slot,
) -> bool {
    let (Some(of_left), Some(of_right)) = (bounds(left), bounds(right)) else { return false };
    let Some(bounds) = plan.bounds(of_left, of_right) else { return false };
    let (Some(left), Some(right)) = (side(left, plan.left_factor), side(right, plan.right_factor)) else {
        return false;
    };
    let is_half = are_32_bits(bounds);
    let can_be_half = !matches!((&left, &right), (Side::Doubles(_), _) | (_, Side::Doubles(_)));
    let bits = match ty.physical() {
        Some(Physical::I32) if !(is_half && can_be_half) => return false,
        Some(Physical::I32) => 32,
        _ if plan.width == Width::Bits32 && is_half && can_be_half => 32,
        Some(Physical::I64) => 64,
        _ if plan.width >= Width::Bits64 => 64,
        _ => return false,
    };
    match (bits, left, right) {
        (_, Side::Same(_), Side::Same(_)) => return false,
        (32, Side::Halves(left), Side::Halves(right)) => each(plan.op, left, right, as_i32(&mut out.values)),
        (32, Side::Halves(left), Side::Same(right)) => {
            each_with(plan.op, left, right as i32, as_i32(&mut out.values));
        }
        (32, Side::Same(left), Side::Halves(right)) => {
            with_each(plan.op, left as i32, right, as_i32(&mut out.values));
        }
        (_, Side::Halves(left), Side::Halves(right)) => each(plan.op, left, right, as_i64(&mut out.values)),
        (_, Side::Halves(left), Side::Doubles(right)) => each(plan.op, left, right, as_i64(&mut out.values)),
        (_, Side::Doubles(left), Side::Halves(right)) => each(plan.op, left, right, as_i64(&mut out.values)),
        (_, Side::Doubles(left), Side::Doubles(right)) => each(plan.op, left, right, as_i64(&mut out.values)),
        (_, Side::Halves(left), Side::Same(right)) => each_with(plan.op, left, right, as_i64(&mut out.values)),
        (_, Side::Doubles(left), Side::Same(right)) => each_with(plan.op, left, right, as_i64(&mut out.values)),
        (_, Side::Same(left), Side::Halves(right)) => with_each(plan.op, left, right, as_i64(&mut out.values)),
        (_, Side::Same(left), Side::Doubles(right)) => with_each(plan.op, left, right, as_i64(&mut out.values)),
    }
    out.bounds = Some(bounds);
    true
}

impl DecimalPlan {
    /// Whether the plan is a single addition, subtraction or multiplication, but for factors.
    pub(super) fn is_plain(&self) -> bool {
        let op_is_plain = matches!(self.op, ArithmeticOp::Add | ArithmeticOp::Subtract | ArithmeticOp::Multiply);
        op_is_plain && self.grow == 1 && self.shrink == 1
    }

    /// The least and the greatest result of numbers between these; `None` where 64 bits or the type do not hold them.
    fn bounds(&self, left: (i64, i64), right: (i64, i64)) -> Option<(i64, i64)> {
        if !self.is_plain() {
            return None;
        }
        // Sides of 64 bits even at the scale of the operation, so that nothing overflows 128.
        let scaled = |(least, greatest): (i64, i64), factor: i128| {
            let factor = i64::try_from(factor).ok()?;
            Some((i128::from(least.checked_mul(factor)?), i128::from(greatest.checked_mul(factor)?)))
        };
        let (left, right) = (scaled(left, self.left_factor)?, scaled(right, self.right_factor)?);
        let (least, greatest) = match self.op {
            ArithmeticOp::Add => (left.0 + right.0, left.1 + right.1),
            ArithmeticOp::Subtract => (left.0 - right.1, left.1 - right.0),
            _ => {
                let products = [left.0 * right.0, left.0 * right.1, left.1 * right.0, left.1 * right.1];
                products.into_iter().fold((i128::MAX, i128::MIN), |(least, greatest), product| {
                    (least.min(product), greatest.max(product))
                })
            }
        };
        if self.limit.is_some_and(|limit| least <= -limit || greatest >= limit) {
            return None;
        }
        Some((i64::try_from(least).ok()?, i64::try_from(greatest).ok()?))
    }
}

/// One side of an operation.
enum Side<'a> {
    Halves(&'a [i32]),
    Doubles(&'a [i64]),
    /// For all rows, at the scale of the operation, as far as 64 bits hold it.
    Same(i64),
}

fn side(input: Input<'_>, factor: i128) -> Option<Side<'_>> {
    match (input.values, input.constant) {
        (Values::I32(values), true) => Some(Side::Same(i128::from(values[0]).wrapping_mul(factor) as i64)),
        (Values::I64(values), true) => Some(Side::Same(i128::from(values[0]).wrapping_mul(factor) as i64)),
        (Values::I32(values), false) if factor == 1 => Some(Side::Halves(values)),
        (Values::I64(values), false) if factor == 1 => Some(Side::Doubles(values)),
        _ => None,
    }
}

fn bounds(input: Input<'_>) -> Option<(i64, i64)> {
    if input.bounds.is_some() {
        return input.bounds;
    }
    let (Values::I32(_) | Values::I64(_)) = input.values else { return None };
    let (least, greatest) = bounds_of(input.values)?;
    Some((least as i64, greatest as i64))
}

fn are_32_bits((least, greatest): (i64, i64)) -> bool {
    least >= i32::MIN.into() && greatest <= i32::MAX.into()
}

fn as_i32(values: &mut ValuesBuf) -> &mut Vec<i32> {
    if !matches!(values, ValuesBuf::I32(_)) {
        *values = ValuesBuf::I32(Vec::new());
    }
    let ValuesBuf::I32(values) = values else { unreachable!("it was just made so") };
    values
}

fn as_i64(values: &mut ValuesBuf) -> &mut Vec<i64> {
    if !matches!(values, ValuesBuf::I64(_)) {
        *values = ValuesBuf::I64(Vec::new());
    }
    let ValuesBuf::I64(values) = values else { unreachable!("it was just made so") };
    values
}

/// What is computed with; results that do not fit wrap.
trait Wrapping: Copy + Default {
    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
}

macro_rules! wrapping {
    ($($native:ty),*) => {
        $(impl Wrapping for $native {
            #[inline(always)]
            fn add(self, other: $native) -> $native {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn subtract(self, other: $native) -> $native {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn multiply(self, other: $native) -> $native {
                self.wrapping_mul(other)
            }
        })*
    };
}

wrapping!(i32, i64);

fn each<L: Copy + Into<O>, R: Copy + Into<O>, O: Wrapping>(
    op: ArithmeticOp,
    left: &[L],
    right: &[R],
    out: &mut Vec<O>,
) {
    match op {
        ArithmeticOp::Add => zip_rows(left, right, out, |left: L, right: R| left.into().add(right.into())),
        ArithmeticOp::Subtract => zip_rows(left, right, out, |left: L, right: R| left.into().subtract(right.into())),
        _ => zip_rows(left, right, out, |left: L, right: R| left.into().multiply(right.into())),
    }
}

fn each_with<L: Copy + Into<O>, O: Wrapping>(op: ArithmeticOp, left: &[L], right: O, out: &mut Vec<O>) {
    match op {
        ArithmeticOp::Add => map_rows(left, out, move |left: L| left.into().add(right)),
        ArithmeticOp::Subtract => map_rows(left, out, move |left: L| left.into().subtract(right)),
        _ => map_rows(left, out, move |left: L| left.into().multiply(right)),
    }
}

fn with_each<R: Copy + Into<O>, O: Wrapping>(op: ArithmeticOp, left: O, right: &[R], out: &mut Vec<O>) {
    match op {
        ArithmeticOp::Add => map_rows(right, out, move |right: R| left.add(right.into())),
        ArithmeticOp::Subtract => map_rows(right, out, move |right: R| left.subtract(right.into())),
        _ => map_rows(right, out, move |right: R| left.multiply(right.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(values: &ValuesBuf, constant: bool) -> Input<'_> {
        Input { values: values.as_values(), constant, null_constant: false, validity: None, bounds: None }
    }

    #[test]
    fn what_fits_is_exact_and_what_might_not_is_refused() {
        let halves = [0, 1, -1, 99, i64::from(i32::MAX), i64::from(i32::MIN)];
        let doubles = [i64::MAX, i64::MIN, 3_000_000_000, -(1 << 40), 7];
        let ints = |values: &[i64]| ValuesBuf::I32(values.iter().map(|&value| value as i32).collect());
        let sides: Vec<(ValuesBuf, bool)> = halves
            .windows(2)
            .map(|pair| (ints(pair), false))
            .chain(doubles.windows(2).map(|pair| (ValuesBuf::I64(pair.to_vec()), false)))
            .chain(halves.iter().map(|&value| (ints(&[value]), true)))
            .chain(doubles.iter().map(|&value| (ValuesBuf::I64(vec![value]), true)))
            .collect();
        let wide = LogicalType::Decimal { precision: 38, scale: 2 };
        let (mut computed, mut refused) = (0, 0);
        for op in [ArithmeticOp::Add, ArithmeticOp::Subtract, ArithmeticOp::Multiply] {
            for scales in [(2, 0), (2, 2)] {
                let scale = if op == ArithmeticOp::Multiply { scales.0 + scales.1 } else { 2 };
                let mut plan = DecimalPlan::new(op, (18, scales.0), (18, scales.1), (38, scale)).unwrap();
                for width in [Width::Bits64, Width::Bits32] {
                    plan.width = width;
                    for (left, right) in sides.iter().flat_map(|left| sides.iter().map(move |right| (left, right))) {
                        let mut out = Slot::default();
                        let (l, r) = (input(&left.0, left.1), input(&right.0, right.1));
                        if !compute_within(&plan, l, r, &wide, &mut out) {
                            refused += 1;
                            continue;
                        }
                        computed += 1;
                        let (least, greatest) = out.bounds.unwrap();
                        let at = |side: &(ValuesBuf, bool), row: usize| match crate::vector::scalar_at(
                            side.0.as_values(),
                            if side.1 { 0 } else { row },
                        ) {
                            sinter_codec::Scalar::Int(value) => value,
                            other => panic!("{other:?}"),
                        };
                        for row in 0..out.values.len() {
                            let (l, r) = (at(left, row) * plan.left_factor, at(right, row) * plan.right_factor);
                            let expected = match op {
                                ArithmeticOp::Add => l + r,
                                ArithmeticOp::Subtract => l - r,
                                _ => l * r,
                            };
                            let found = crate::vector::scalar_at(out.values.as_values(), row);
                            assert_eq!(found, sinter_codec::Scalar::Int(expected), "{op:?} of {left:?} and {right:?}");
                            assert!((least.into()..=greatest.into()).contains(&expected), "{least}, {greatest}");
                        }
                        let is_half = matches!(out.values, ValuesBuf::I32(_));
                        assert!(!is_half || width == Width::Bits32);
                    }
                }
            }
        }
        assert!(computed > 500 && refused > 500, "{computed} computed, {refused} refused");
    }
}
