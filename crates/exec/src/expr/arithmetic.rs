//! Arithmetic of integers and floats. Integers that overflow are an error, floats follow IEEE 754.
//!
//! Integer kernels compute everything first and collect whether anything overflowed; only then do they look where,
//! because what stands at a NULL may overflow without harm.

use super::ArithmeticOp;
use super::machine::reset;
use super::slot::{Each, Input, Lane, Same, Slot};
use crate::{Error, LogicalType, Result};
use sinter_codec::{Physical, Values, ValuesBuf};

/// An operation on two numbers of the result's type.
#[derive(Clone, Debug)]
pub(crate) struct NumberPlan {
    op: ArithmeticOp,
    ty: LogicalType,
}

impl NumberPlan {
    /// `None` where the type is not one that is computed with.
    pub(super) fn new(op: ArithmeticOp, ty: &LogicalType) -> Option<NumberPlan> {
        let number = matches!(
            ty,
            LogicalType::Int8
                | LogicalType::Int16
                | LogicalType::Int32
                | LogicalType::Int64
                | LogicalType::UInt8
                | LogicalType::UInt16
                | LogicalType::UInt32
                | LogicalType::UInt64
                | LogicalType::Float32
                | LogicalType::Float64
        );
        debug_assert!(!number || ty.physical() != Some(Physical::Bytes));
        number.then(|| NumberPlan { op, ty: ty.clone() })
    }
}

/// Computes a plan over all rows.
pub(super) fn numbers(plan: &NumberPlan, left: Input<'_>, right: Input<'_>, rows: usize, out: &mut Slot) -> Result<()> {
    out.set_strict(&[left, right], rows);
    reset(&mut out.values, &plan.ty);
    if out.all_null() {
        out.values.push_default(rows);
        return Ok(());
    }
    let failed = match (left.values, right.values, &mut out.values) {
        (Values::I8(l), Values::I8(r), ValuesBuf::I8(out)) => lanes(plan.op, (l, left), (r, right), rows, out),
        (Values::I16(l), Values::I16(r), ValuesBuf::I16(out)) => lanes(plan.op, (l, left), (r, right), rows, out),
        (Values::I32(l), Values::I32(r), ValuesBuf::I32(out)) => lanes(plan.op, (l, left), (r, right), rows, out),
        (Values::I64(l), Values::I64(r), ValuesBuf::I64(out)) => lanes(plan.op, (l, left), (r, right), rows, out),
        (Values::U8(l), Values::U8(r), ValuesBuf::U8(out)) => lanes(plan.op, (l, left), (r, right), rows, out),
        (Values::U16(l), Values::U16(r), ValuesBuf::U16(out)) => lanes(plan.op, (l, left), (r, right), rows, out),
        (Values::U32(l), Values::U32(r), ValuesBuf::U32(out)) => lanes(plan.op, (l, left), (r, right), rows, out),
        (Values::U64(l), Values::U64(r), ValuesBuf::U64(out)) => lanes(plan.op, (l, left), (r, right), rows, out),
        (Values::F32(l), Values::F32(r), ValuesBuf::F32(out)) => lanes(plan.op, (l, left), (r, right), rows, out),
        (Values::F64(l), Values::F64(r), ValuesBuf::F64(out)) => lanes(plan.op, (l, left), (r, right), rows, out),
        _ => return Err(Error::Unsupported(format!("{:?} of operands that are not {}", plan.op, plan.ty))),
    };
    if !failed {
        return Ok(());
    }
    let failing = |row: &usize| fails(plan.op, left, right, *row);
    let present = |row: &usize| !out.has_nulls || out.validity.get(*row);
    match (0..rows).filter(present).find(failing) {
        None => Ok(()),
        Some(row) => Err(failure(plan, left, right, row)),
    }
}

/// What the kernels need of a number.
trait Number: Copy + Default {
    /// The result, and whether it is wrong.
    fn apply(op: ArithmeticOp, left: Self, right: Self) -> (Self, bool);
}

macro_rules! integers {
    ($($native:ty),*) => {
        $(impl Number for $native {
            #[inline(always)]
            fn apply(op: ArithmeticOp, left: $native, right: $native) -> ($native, bool) {
                match op {
                    ArithmeticOp::Add => left.overflowing_add(right),
                    ArithmeticOp::Subtract => left.overflowing_sub(right),
                    ArithmeticOp::Multiply => left.overflowing_mul(right),
                    ArithmeticOp::Divide => left.checked_div(right).map_or((0, true), |value| (value, false)),
                    ArithmeticOp::Modulo if right == 0 => (0, true),
                    // The remainder of the least number by -1 is 0.
                    ArithmeticOp::Modulo => (left.wrapping_rem(right), false),
                }
            }
        })*
    };
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! floats {
    ($($native:ty),*) => {
        $(impl Number for $native {
            #[inline(always)]
            fn apply(op: ArithmeticOp, left: $native, right: $native) -> ($native, bool) {
                let value = match op {
                    ArithmeticOp::Add => left + right,
                    ArithmeticOp::Subtract => left - right,
                    ArithmeticOp::Multiply => left * right,
                    ArithmeticOp::Divide => left / right,
                    ArithmeticOp::Modulo => left % right,
                };
                (value, false)
            }
        })*
    };
}

floats!(f32, f64);

/// Runs the kernel for the shape of the operands; true when something went wrong in some row.
fn lanes<T: Number>(
    op: ArithmeticOp,
    (l, left): (&[T], Input<'_>),
    (r, right): (&[T], Input<'_>),
    rows: usize,
    out: &mut Vec<T>,
) -> bool {
    match (left.constant, right.constant) {
        (false, false) => each_op(op, Each(l), Each(r), rows, out),
        (false, true) => each_op(op, Each(l), Same(r[0]), rows, out),
        (true, false) => each_op(op, Same(l[0]), Each(r), rows, out),
        (true, true) => each_op(op, Same(l[0]), Same(r[0]), rows, out),
    }
}

fn each_op<T: Number>(
    op: ArithmeticOp,
    left: impl Lane<T> + Copy,
    right: impl Lane<T> + Copy,
    rows: usize,
    out: &mut Vec<T>,
) -> bool {
    // By value, and as many as there are rows: nothing needs to be loaded again or checked for each.
    let (left, right) = (left.cut(rows), right.cut(rows));
    // One loop per operator, so that each is compiled without the choice inside.
    match op {
        ArithmeticOp::Add => fill(rows, out, move |row| T::apply(ArithmeticOp::Add, left.at(row), right.at(row))),
        ArithmeticOp::Subtract => {
            fill(rows, out, move |row| T::apply(ArithmeticOp::Subtract, left.at(row), right.at(row)))
        }
        ArithmeticOp::Multiply => {
            fill(rows, out, move |row| T::apply(ArithmeticOp::Multiply, left.at(row), right.at(row)))
        }
        ArithmeticOp::Divide => fill(rows, out, move |row| T::apply(ArithmeticOp::Divide, left.at(row), right.at(row))),
        ArithmeticOp::Modulo => fill(rows, out, move |row| T::apply(ArithmeticOp::Modulo, left.at(row), right.at(row))),
    }
}

/// Writes what is computed for each row over `out`, which is empty; true when something went wrong in some row. To extend
/// it by an iterator would be a function of its own, which finds operands by reference and one at a time.
#[inline(always)]
pub(super) fn fill<T: Copy + Default>(rows: usize, out: &mut Vec<T>, compute: impl Fn(usize) -> (T, bool)) -> bool {
    let mut failed = false;
    out.resize(rows, T::default());
    for (row, out) in out[..rows].iter_mut().enumerate() {
        let (value, wrong) = compute(row);
        failed |= wrong;
        *out = value;
    }
    failed
}

fn integer_at(input: Input<'_>, row: usize) -> i128 {
    match crate::vector::scalar_at(input.values, if input.constant { 0 } else { row }) {
        sinter_codec::Scalar::Int(value) => value,
        _ => 0,
    }
}

fn fails(op: ArithmeticOp, left: Input<'_>, right: Input<'_>, row: usize) -> bool {
    let (l, r) = (integer_at(left, row), integer_at(right, row));
    let in_range = |value: i128| match left.values {
        Values::I8(_) => i8::try_from(value).is_ok(),
        Values::I16(_) => i16::try_from(value).is_ok(),
        Values::I32(_) => i32::try_from(value).is_ok(),
        Values::I64(_) => i64::try_from(value).is_ok(),
        Values::U8(_) => u8::try_from(value).is_ok(),
        Values::U16(_) => u16::try_from(value).is_ok(),
        Values::U32(_) => u32::try_from(value).is_ok(),
        Values::U64(_) => u64::try_from(value).is_ok(),
        _ => true,
    };
    match op {
        ArithmeticOp::Add => !in_range(l + r),
        ArithmeticOp::Subtract => !in_range(l - r),
        ArithmeticOp::Multiply => !in_range(l * r),
        ArithmeticOp::Divide => r == 0 || !in_range(l / r),
        ArithmeticOp::Modulo => r == 0,
    }
}

fn failure(plan: &NumberPlan, left: Input<'_>, right: Input<'_>, row: usize) -> Error {
    let (l, r) = (integer_at(left, row), integer_at(right, row));
    if r == 0 && matches!(plan.op, ArithmeticOp::Divide | ArithmeticOp::Modulo) {
        return Error::DivisionByZero;
    }
    Error::Overflow { what: format!("{l} {} {r}", plan.op.sign()), type_name: plan.ty.to_string() }
}
