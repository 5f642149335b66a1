//! Frames of windows that reach so far by RANGE.
//!
//! DataFusion brings a distance to the type of the key it is counted from: one that has more digits behind the point is
//! rounded, and one that is too large for the type becomes UNBOUNDED. Here the key becomes of a type that holds both. Frames
//! without a distance end at rows that are equal by the whole order, so that GROUPS says the same; DataFusion refuses RANGE
//! for keys from which there are no distances to it.

use super::is_text;
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::WindowFunctionParams;
use datafusion::logical_expr::{Expr, ExprSchemable, WindowFrame, WindowFrameBound, WindowFrameUnits, cast};

/// The most digits of a decimal.
const DIGITS_MAX: usize = 38;

/// What has to become of a window.
enum Change {
    /// `GROUPS` instead of `RANGE`.
    Groups,
    /// The key as another type.
    Key(DataType),
    /// A time of day, and its distances, as nanoseconds.
    Nanoseconds,
    Refusal(String),
}

/// Whether a window's frame is other than DataFusion would have it.
pub(super) fn is_other(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr, Expr::WindowFunction(call) if change(&call.params, schema).is_some())
}

/// Makes it so.
///
/// # Errors
/// A plan error for distances between keys that have none, and for more digits than there can be.
pub(super) fn bring_together(params: &mut WindowFunctionParams, schema: &DFSchema) -> Result<()> {
    let frame = &mut params.window_frame;
    let (start, end) = (frame.start_bound.clone(), frame.end_bound.clone());
    match (change(params, schema), params.order_by.first_mut()) {
        (None, _) | (_, None) => {}
        (Some(Change::Groups), _) => {
            params.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Groups, start, end);
        }
        (Some(Change::Key(ty)), Some(key)) => key.expr = cast(std::mem::take(&mut key.expr), ty),
        (Some(Change::Nanoseconds), Some(key)) => {
            let time = cast(std::mem::take(&mut key.expr), DataType::Time64(TimeUnit::Nanosecond));
            key.expr = cast(time, DataType::Int64);
            params.window_frame =
                WindowFrame::new_bounds(WindowFrameUnits::Range, in_nanoseconds(start)?, in_nanoseconds(end)?);
        }
        (Some(Change::Refusal(message)), _) => return plan_err!("{message}"),
    }
    Ok(())
}

fn change(params: &WindowFunctionParams, schema: &DFSchema) -> Option<Change> {
    let frame = &params.window_frame;
    let key = params.order_by.first()?.expr.get_type(schema).ok()?;
    if frame.units != WindowFrameUnits::Range {
        return None;
    }
    let distances: Vec<&str> = [&frame.start_bound, &frame.end_bound].into_iter().filter_map(distance).collect();
    let has_such = matches!(
        key,
        DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
            | DataType::Struct(_)
    );
    match &key {
        _ if distances.is_empty() => has_such.then_some(Change::Groups),
        DataType::Time32(_) | DataType::Time64(_) => Some(Change::Nanoseconds),
        ty if has_such || is_text(ty) || *ty == DataType::Boolean => Some(Change::Refusal(format!(
            "RANGE with a distance wants an order by numbers, dates or times, not by {ty}; ROWS and GROUPS count rows"
        ))),
        ty if ty.is_integer() => for_numbers(ty, whole_digits(ty)?, 0, &distances),
        DataType::Decimal128(digits, scale) if *scale >= 0 => {
            let scale = usize::try_from(*scale).ok()?;
            for_numbers(&key, usize::from(*digits).checked_sub(scale)?, scale, &distances)
        }
        _ => None,
    }
}

/// A distance as it was written; it has no type yet.
fn distance(bound: &WindowFrameBound) -> Option<&str> {
    match bound {
        WindowFrameBound::Preceding(ScalarValue::Utf8(text)) | WindowFrameBound::Following(ScalarValue::Utf8(text)) => {
            text.as_deref()
        }
        _ => None,
    }
}

/// A type for a number of so many digits before and behind the point, and its distances, where its own is none.
fn for_numbers(ty: &DataType, whole: usize, scale: usize, distances: &[&str]) -> Option<Change> {
    let (mut needed_whole, mut needed_scale, mut fits) = (whole, scale, true);
    for text in distances {
        let (before, behind) = text.split_once('.').unwrap_or((text, ""));
        let (before, behind) = (before.trim_start_matches('0'), behind.trim_end_matches('0'));
        if !before.bytes().chain(behind.bytes()).all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        needed_whole = needed_whole.max(before.len());
        needed_scale = needed_scale.max(behind.len());
        // DataFusion reads no integer out of `1.0`.
        fits &= ScalarValue::try_from_string((*text).to_owned(), ty).is_ok();
    }
    if fits && needed_whole == whole && needed_scale == scale {
        return None;
    }
    let is_integer = ty.is_integer() && distances.iter().all(|text| !text.contains('.'));
    if is_integer && *ty != DataType::UInt64 && needed_whole < whole_digits(&DataType::Int64)? {
        return Some(Change::Key(DataType::Int64));
    }
    let digits = needed_whole + needed_scale;
    Some(match (u8::try_from(digits), i8::try_from(needed_scale)) {
        (Ok(digits), Ok(scale)) if usize::from(digits) <= DIGITS_MAX => {
            Change::Key(DataType::Decimal128(digits, scale))
        }
        _ => Change::Refusal(format!("a RANGE whose keys and distances need {digits} digits; there are {DIGITS_MAX}")),
    })
}

/// The digits of an integer's largest value.
fn whole_digits(ty: &DataType) -> Option<usize> {
    Some(match ty {
        DataType::Int8 | DataType::UInt8 => 3,
        DataType::Int16 | DataType::UInt16 => 5,
        DataType::Int32 | DataType::UInt32 => 10,
        DataType::Int64 => 19,
        DataType::UInt64 => 20,
        _ => return None,
    })
}

/// A distance between times of day.
fn in_nanoseconds(bound: WindowFrameBound) -> Result<WindowFrameBound> {
    let Some(text) = distance(&bound) else { return Ok(bound) };
    let interval = ScalarValue::try_from_string(text.to_owned(), &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let ScalarValue::IntervalMonthDayNano(Some(interval)) = interval else {
        return plan_err!("a distance between times of day is an interval, not {text}");
    };
    if interval.months != 0 || interval.days != 0 {
        return plan_err!("a distance between times of day has hours, minutes and seconds, not {text}");
    }
    let nanoseconds = ScalarValue::Utf8(Some(interval.nanoseconds.to_string()));
    Ok(match bound {
        WindowFrameBound::Following(_) => WindowFrameBound::Following(nanoseconds),
        _ => WindowFrameBound::Preceding(nanoseconds),
    })
}
