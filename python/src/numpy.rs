//! Dates, moments and spans of numpy to parameters, without needing numpy.
//!
//! Each is a count of units in 64 bits, the least of which is NaT. Its `item()` gives Python's own objects only where
//! these hold the unit, and bare integers for nanoseconds, for months, and outside of the years 1 to 9999. So we take
//! the count, and let the unit decide.

use crate::calendar::{date_from_days, days_from_date};
use crate::error::DataError;
use crate::from_python::interval;
use pyo3::prelude::*;
use sinterdb::Value;

/// NaT, "not a time", which is NULL.
const NAT: i64 = i64::MIN;

// Attoseconds, numpy's finest unit. In 128 bits they reach past whatever a parameter holds.
const NANOSECOND: i128 = 1_000_000_000;
const MICROSECOND: i128 = 1000 * NANOSECOND;
const SECOND: i128 = 1_000_000 * MICROSECOND;
const DAY: i128 = 86_400 * SECOND;

/// `datetime64`: a date where its unit is days or longer, else a timestamp.
///
/// # Errors
/// DataError for years that Python does not have either, and for fractions of a microsecond.
pub(crate) fn datetime(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    let Some((count, unit)) = count_and_unit(object)? else { return Ok(Value::Null) };
    let refused = || DataError::new_err(format!("datetime64 {object} is outside of the years 1 to 9999"));
    if let Some(months) = months_per(&unit) {
        let months = count * months;
        let year = i32::try_from(1970 + months.div_euclid(12)).map_err(|_| refused())?;
        let days = days_from_date(year, months.rem_euclid(12) as u8 + 1, 1);
        return date(days).ok_or_else(refused);
    }
    let attos = attos_per(&unit).and_then(|attos| count.checked_mul(attos)).ok_or_else(refused)?;
    let days = i64::try_from(attos.div_euclid(DAY)).map_err(|_| refused())?;
    let date = date(days).ok_or_else(refused)?;
    if matches!(unit.as_str(), "W" | "D") {
        return Ok(date);
    }
    if attos % MICROSECOND != 0 {
        return Err(DataError::new_err(format!(
            "datetime64 {object} has nanoseconds, and a parameter holds microseconds; astype('datetime64[us]') cuts the \
             rest off"
        )));
    }
    // Within the years 1 to 9999 there are fewer than 2^58 microseconds on either side of 1970.
    Ok(Value::Timestamp((attos / MICROSECOND) as i64))
}

/// `timedelta64`: an interval of months, or of days and nanoseconds.
///
/// # Errors
/// DataError for what an interval does not hold, and for a count without a unit.
pub(crate) fn timedelta(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    let Some((count, unit)) = count_and_unit(object)? else { return Ok(Value::Null) };
    let refused = || DataError::new_err(format!("timedelta64 of {object} is longer than an interval can be"));
    if let Some(months) = months_per(&unit) {
        let months = i32::try_from(count * months).map_err(|_| refused())?;
        return Ok(interval(months, 0, 0));
    }
    let Some(attos) = attos_per(&unit) else {
        return Err(DataError::new_err(format!(
            "timedelta64 {count} has no unit; say which: numpy.timedelta64({count}, 's')"
        )));
    };
    let attos = count.checked_mul(attos).ok_or_else(refused)?;
    if attos % NANOSECOND != 0 {
        return Err(DataError::new_err(format!(
            "timedelta64 of {object} has fractions of a nanosecond, which an interval has not; \
             astype('timedelta64[ns]') cuts them off"
        )));
    }
    let days = i32::try_from(attos.div_euclid(DAY)).map_err(|_| refused())?;
    // Fewer than the nanoseconds of a day.
    let nanos = (attos.rem_euclid(DAY) / NANOSECOND) as i64;
    Ok(interval(0, days, nanos))
}

/// How many of which unit, in numpy's letters; `None` for NaT. Units may come in multiples: `[25s]`.
fn count_and_unit(object: &Bound<'_, PyAny>) -> PyResult<Option<(i128, String)>> {
    let count: i64 = object.call_method1("astype", ("int64",))?.extract()?;
    if count == NAT {
        return Ok(None);
    }
    let data = object.py().import("numpy")?.call_method1("datetime_data", (object.getattr("dtype")?,))?;
    let (unit, multiple): (String, i32) = data.extract()?;
    Ok(Some((i128::from(count) * i128::from(multiple), unit)))
}

/// Months in a unit of the calendar, which has no length in seconds.
fn months_per(unit: &str) -> Option<i128> {
    match unit {
        "Y" => Some(12),
        "M" => Some(1),
        _ => None,
    }
}

/// Attoseconds in a unit of the clock.
fn attos_per(unit: &str) -> Option<i128> {
    match unit {
        "W" => Some(7 * DAY),
        "D" => Some(DAY),
        "h" => Some(3600 * SECOND),
        "m" => Some(60 * SECOND),
        "s" => Some(SECOND),
        "ms" => Some(1000 * MICROSECOND),
        "us" => Some(MICROSECOND),
        "ns" => Some(NANOSECOND),
        "ps" => Some(1_000_000),
        "fs" => Some(1000),
        "as" => Some(1),
        _ => None,
    }
}

/// The date `days` after 1970-01-01; `None` outside of the years 1 to 9999.
fn date(days: i64) -> Option<Value> {
    date_from_days(days).and_then(|_| i32::try_from(days).ok()).map(Value::Date)
}
