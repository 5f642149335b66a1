//! Intervals times numbers, and divided by them: `INTERVAL '1 hour' * n`, which DataFusion has no type for.
//!
//! Whole numbers multiply months, days and nanoseconds exactly. What fractions leave of a month goes on as days, 30 a month,
//! and what they leave of a day as time, as in PostgreSQL: half of `1 month 1 day` is `15 days 12 hours`.

use crate::times_of_text::INTERVAL;
use arrow::array::{Array, AsArray, IntervalMonthDayNanoArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable, ScalarUDF, Volatility, cast, create_udf};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::fmt::Display;
use std::sync::{Arc, LazyLock};

const DAYS_PER_MONTH: f64 = 30.0;
const SECONDS_PER_DAY: f64 = 86_400.0;
const NANOS_PER_SECOND: f64 = 1e9;

static TIMES_INTEGER: LazyLock<ScalarUDF> =
    LazyLock::new(|| function("interval_times_integer", DataType::Int64, times));

static TIMES_FRACTION: LazyLock<ScalarUDF> = LazyLock::new(|| {
    function("interval_times_fraction", DataType::Float64, |intervals, numbers| {
        each(intervals, numbers.as_primitive::<Float64Type>().iter(), "*", |interval, factor| {
            scaled(interval, |part| part * factor)
        })
    })
});

static DIVIDED: LazyLock<ScalarUDF> = LazyLock::new(|| {
    function("interval_divided", DataType::Float64, |intervals, numbers| {
        let numbers = numbers.as_primitive::<Float64Type>();
        if numbers.iter().zip(intervals).any(|(number, interval)| number == Some(0.0) && interval.is_some()) {
            return Err(sinter_exec::Error::DivisionByZero.to_string());
        }
        each(intervals, numbers.iter(), "/", |interval, divisor| scaled(interval, |part| part / divisor))
    })
});

/// Makes a function of an interval times a number, a number times an interval, and an interval divided by a number.
/// DataFusion's planner finds no type for these, and asks for it in a select list before any rule could have its say.
#[derive(Debug)]
pub(crate) struct MultiplesOfIntervals;

impl ExprPlanner for MultiplesOfIntervals {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let (Ok(left), Ok(right)) = (expr.left.get_type(schema), expr.right.get_type(schema)) else {
            return Ok(PlannerResult::Original(expr));
        };
        let is_interval = |ty: &DataType| matches!(ty, DataType::Interval(_));
        Ok(match expr.op {
            BinaryOperator::Multiply if is_interval(&left) && right.is_numeric() => {
                PlannerResult::Planned(product(expr.left, expr.right, &right))
            }
            BinaryOperator::Multiply if left.is_numeric() && is_interval(&right) => {
                PlannerResult::Planned(product(expr.right, expr.left, &left))
            }
            BinaryOperator::Divide if is_interval(&left) && right.is_numeric() => {
                PlannerResult::Planned(call(&DIVIDED, expr.left, expr.right, DataType::Float64))
            }
            _ => PlannerResult::Original(expr),
        })
    }
}

fn product(interval: Expr, number: Expr, ty: &DataType) -> Expr {
    match ty.is_integer() {
        true => call(&TIMES_INTEGER, interval, number, DataType::Int64),
        false => call(&TIMES_FRACTION, interval, number, DataType::Float64),
    }
}

fn call(function: &ScalarUDF, interval: Expr, number: Expr, ty: DataType) -> Expr {
    function.call(vec![cast(interval, INTERVAL), cast(number, ty)])
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

fn times(intervals: &IntervalMonthDayNanoArray, numbers: &dyn Array) -> Result<IntervalMonthDayNanoArray, String> {
    each(intervals, numbers.as_primitive::<Int64Type>().iter(), "*", |interval, factor| {
        let part = |part: i32| i64::from(part).checked_mul(factor)?.try_into().ok();
        Some(IntervalMonthDayNano {
            months: part(interval.months)?,
            days: part(interval.days)?,
            nanoseconds: interval.nanoseconds.checked_mul(factor)?,
        })
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
    let days_of_month = to_micro((months - months.trunc()) * DAYS_PER_MONTH);
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
