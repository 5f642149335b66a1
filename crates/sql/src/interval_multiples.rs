//! Intervals times numbers, and divided by them: `INTERVAL '1 hour' * n`, for which DataFusion has a type with few numbers
//! only. Differences of timestamps are intervals here.
//!
//! Whole numbers multiply months, days and nanoseconds exactly. What a division leaves of a month goes on as days, 30 a month,
//! and what it leaves of a day as time, as in PostgreSQL: half of `1 month 1 day` is `15 days 12 hours`; so do fractions.

use crate::times_of_text::INTERVAL;
use arrow::array::{Array, AsArray, IntervalMonthDayNanoArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{ColumnarValue, ExprSchemable, ScalarUDF, Volatility, cast, create_udf};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::fmt::Display;
use std::sync::{Arc, LazyLock};

const DAYS_PER_MONTH: i32 = 30;
const SECONDS_PER_DAY: f64 = 86_400.0;
const NANOS_PER_SECOND: f64 = 1e9;
const NANOS_PER_DAY: i128 = 86_400_000_000_000;

static TIMES_INTEGER: LazyLock<ScalarUDF> = LazyLock::new(|| {
    function("interval_times_integer", DataType::Int64, |intervals, numbers| {
        each(intervals, numbers.as_primitive::<Int64Type>().iter(), "*", times)
    })
});

static TIMES_FRACTION: LazyLock<ScalarUDF> = LazyLock::new(|| {
    function("interval_times_fraction", DataType::Float64, |intervals, numbers| {
        let numbers = numbers.as_primitive::<Float64Type>().iter();
        each(intervals, numbers, "*", |interval, factor| scaled(interval, |part| part * factor))
    })
});

static OVER_INTEGER: LazyLock<ScalarUDF> = LazyLock::new(|| {
    function("interval_over_integer", DataType::Int64, |intervals, numbers| {
        let numbers = numbers.as_primitive::<Int64Type>();
        check_divisors(intervals, numbers.iter().map(|number| number == Some(0)))?;
        each(intervals, numbers.iter(), "/", divided)
    })
});

static OVER_FRACTION: LazyLock<ScalarUDF> = LazyLock::new(|| {
    function("interval_over_fraction", DataType::Float64, |intervals, numbers| {
        let numbers = numbers.as_primitive::<Float64Type>();
        check_divisors(intervals, numbers.iter().map(|number| number == Some(0.0)))?;
        each(intervals, numbers.iter(), "/", |interval, divisor| scaled(interval, |part| part / divisor))
    })
});

/// Makes a function of an interval times a number, a number times an interval, and an interval divided by a number.
/// DataFusion's planner finds no type for these, and asks for it in a select list before any rule could have its say.
#[derive(Debug)]
pub(crate) struct MultiplesOfIntervals;

impl ExprPlanner for MultiplesOfIntervals {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        // Before types are asked for, which costs more the longer an expression is.
        let is_product = match expr.op {
            BinaryOperator::Multiply => true,
            BinaryOperator::Divide => false,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let (Ok(left), Ok(right)) = (expr.left.get_type(schema), expr.right.get_type(schema)) else {
            return Ok(PlannerResult::Original(expr));
        };
        let is_interval = |ty: &DataType| matches!(ty, DataType::Interval(_) | DataType::Duration(_));
        let is_number = |ty: &DataType| ty.is_numeric() || ty.is_null();
        let (interval, number, ty) = if is_interval(&left) && is_number(&right) {
            (expr.left, expr.right, right)
        } else if is_product && is_number(&left) && is_interval(&right) {
            (expr.right, expr.left, left)
        } else {
            return Ok(PlannerResult::Original(expr));
        };
        let is_whole = ty.is_integer() || ty.is_null();
        let function = match (is_product, is_whole) {
            (true, true) => &TIMES_INTEGER,
            (true, false) => &TIMES_FRACTION,
            (false, true) => &OVER_INTEGER,
            (false, false) => &OVER_FRACTION,
        };
        let number_type = if is_whole { DataType::Int64 } else { DataType::Float64 };
        Ok(PlannerResult::Planned(function.call(vec![cast(interval, INTERVAL), cast(number, number_type)])))
    }
}

type OfArrays = fn(&IntervalMonthDayNanoArray, &dyn Array) -> Result<IntervalMonthDayNanoArray, String>;

/// A function of intervals and as many numbers of one type.
fn function(name: &str, number: DataType, run: OfArrays) -> ScalarUDF {
    let invoke = move |arguments: &[ColumnarValue]| {
        let arrays = ColumnarValue::values_to_arrays(arguments)?;
        let made = run(arrays[0].as_primitive::<IntervalMonthDayNanoType>(), &*arrays[1])
            .map_err(|message| datafusion::error::DataFusionError::from(crate::Error::Data(message)))?;
        Ok(ColumnarValue::Array(Arc::new(made)))
    };
    create_udf(name, vec![INTERVAL, number], INTERVAL, Volatility::Immutable, Arc::new(invoke))
}

/// An error where an interval would be divided by zero.
fn check_divisors(
    intervals: &IntervalMonthDayNanoArray,
    are_zero: impl Iterator<Item = bool>,
) -> std::result::Result<(), String> {
    match are_zero.zip(intervals).any(|(is_zero, interval)| is_zero && interval.is_some()) {
        true => Err(sinter_exec::Error::DivisionByZero.to_string()),
        false => Ok(()),
    }
}

fn times(interval: IntervalMonthDayNano, factor: i64) -> Option<IntervalMonthDayNano> {
    let part = |part: i32| i64::from(part).checked_mul(factor)?.try_into().ok();
    Some(IntervalMonthDayNano {
        months: part(interval.months)?,
        days: part(interval.days)?,
        nanoseconds: interval.nanoseconds.checked_mul(factor)?,
    })
}

/// The nanoseconds that are left at last are cut.
fn divided(interval: IntervalMonthDayNano, divisor: i64) -> Option<IntervalMonthDayNano> {
    let divisor = i128::from(divisor);
    let [months, days] = [interval.months, interval.days].map(i128::from);
    let days_of_month = months % divisor * i128::from(DAYS_PER_MONTH);
    let rest = days % divisor + days_of_month % divisor;
    Some(IntervalMonthDayNano {
        months: (months / divisor).try_into().ok()?,
        days: (days / divisor + days_of_month / divisor + rest / divisor).try_into().ok()?,
        nanoseconds: ((i128::from(interval.nanoseconds) + rest % divisor * NANOS_PER_DAY) / divisor).try_into().ok()?,
    })
}

/// What `of` makes of each interval and its number; NULL where one of them is.
///
/// # Errors
/// A message that names the first two of which it makes none.
fn each<T: Copy + Display>(
    intervals: &IntervalMonthDayNanoArray,
    numbers: impl Iterator<Item = Option<T>>,
    operator: &str,
    of: impl Fn(IntervalMonthDayNano, T) -> Option<IntervalMonthDayNano>,
) -> Result<IntervalMonthDayNanoArray, String> {
    let made = intervals.iter().zip(numbers).map(|(interval, number)| {
        let (Some(interval), Some(number)) = (interval, number) else { return Ok(None) };
        let IntervalMonthDayNano { months, days, nanoseconds } = interval;
        let beyond = || {
            format!(
                "out of range: INTERVAL '{months} months {days} days {nanoseconds} nanoseconds' {operator} {number}"
            )
        };
        of(interval, number).map(Some).ok_or_else(beyond)
    });
    made.collect()
}

/// An interval whose parts are scaled by a number that is no whole one. `None` where a part is out of range.
fn scaled(interval: IntervalMonthDayNano, scale: impl Fn(f64) -> f64) -> Option<IntervalMonthDayNano> {
    let months = scale(f64::from(interval.months));
    let days = scale(f64::from(interval.days));
    let days_of_month = to_micro((months - months.trunc()) * f64::from(DAYS_PER_MONTH));
    let seconds = to_micro((days - days.trunc() + days_of_month - days_of_month.trunc()) * SECONDS_PER_DAY);
    let carried_days = (seconds / SECONDS_PER_DAY).trunc();
    let seconds = seconds - carried_days * SECONDS_PER_DAY;
    let nanos = scale(interval.nanoseconds as f64) + seconds * NANOS_PER_SECOND;
    Some(IntervalMonthDayNano {
        months: part(months.trunc())?,
        days: part(days.trunc() + days_of_month.trunc() + carried_days)?,
        // 2^63 itself is the first float that is too large.
        nanoseconds: (nanos.round() >= i64::MIN as f64 && nanos.round() < i64::MAX as f64)
            .then(|| nanos.round() as i64)?,
    })
}

/// Without what floats leave behind the sixth digit of a fraction.
fn to_micro(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn part(value: f64) -> Option<i32> {
    (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value).then_some(value as i32)
}
