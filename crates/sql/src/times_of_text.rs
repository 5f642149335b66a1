//! Text as times of day and as intervals, where Arrow reads what nobody wrote: `12` as twelve nanoseconds, and `42` as 42
//! months, where `INTERVAL '42'` has seconds.

use crate::uuid::on_arrays;
use arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::{
    IntervalParseConfig, IntervalUnit as PartOfInterval, parse_interval_month_day_nano_config,
};
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::logical_expr::ScalarUDF;
use sinter_exec::edge::strict_cast;
use std::sync::{Arc, LazyLock};

/// The Arrow type of a time of day.
pub(crate) const TIME: DataType = DataType::Time64(TimeUnit::Nanosecond);

/// The Arrow type of an interval.
pub(crate) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// The function that SQL's `CAST(text AS TIME)` becomes.
pub(crate) static TIME_OF_TEXT: LazyLock<ScalarUDF> =
    LazyLock::new(|| on_arrays("time_of_text", DataType::Utf8, TIME, parse_times));

/// The function that SQL's `CAST(text AS INTERVAL)` becomes.
pub(crate) static INTERVAL_OF_TEXT: LazyLock<ScalarUDF> =
    LazyLock::new(|| on_arrays("interval_of_text", DataType::Utf8, INTERVAL, parse_intervals));

/// An array of text as an array of times of day.
///
/// # Errors
/// A message that names the first text that is none.
pub(crate) fn parse_times(given: &ArrayRef) -> Result<ArrayRef, String> {
    let text = cast(given, &DataType::Utf8).map_err(|error| error.to_string())?;
    if let Some(other) = text.as_string::<i32>().iter().flatten().find(|text| !text.contains(':')) {
        return Err(format!("'{other}' is no time of day; one is written '12:30:00'"));
    }
    strict_cast(&text, &TIME).map_err(|error| error.to_string().trim_start_matches("Cast error: ").to_owned())
}

/// An array of text as an array of intervals; a number alone is one of seconds.
///
/// # Errors
/// A message that names the first text that is none.
pub(crate) fn parse_intervals(given: &ArrayRef) -> Result<ArrayRef, String> {
    let text = cast(given, &DataType::Utf8).map_err(|error| error.to_string())?;
    let interval = |text: &str| {
        let seconds = IntervalParseConfig::new(PartOfInterval::Second);
        parse_interval_month_day_nano_config(text, seconds).map_err(|_| format!("'{text}' is no interval"))
    };
    let texts = text.as_string::<i32>();
    let parsed = texts.iter().map(|text| text.map(interval).transpose()).collect::<Result<Vec<_>, _>>()?;
    debug_assert_eq!(parsed.len(), text.len());
    Ok(Arc::new(IntervalMonthDayNanoArray::from(parsed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::StringArray;
    use arrow::datatypes::{IntervalMonthDayNano, IntervalMonthDayNanoType, Time64NanosecondType};

    fn texts(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    #[test]
    fn numbers_are_no_times_of_day() {
        let times = parse_times(&texts(&[Some("00:00:01"), None])).unwrap();
        assert_eq!(
            times.as_primitive::<Time64NanosecondType>().iter().collect::<Vec<_>>(),
            [Some(1_000_000_000), None]
        );
        for other in ["12", "-1", "", "25:00:00", "noon"] {
            assert!(parse_times(&texts(&[Some(other)])).is_err(), "{other}");
        }
    }

    #[test]
    fn numbers_alone_are_seconds() {
        let intervals = parse_intervals(&texts(&[Some("42"), None, Some("1 month -3 days")])).unwrap();
        let wanted =
            [Some(IntervalMonthDayNano::new(0, 0, 42_000_000_000)), None, Some(IntervalMonthDayNano::new(1, -3, 0))];
        assert_eq!(intervals.as_primitive::<IntervalMonthDayNanoType>().iter().collect::<Vec<_>>(), wanted);
        assert!(parse_intervals(&texts(&[Some("soon")])).is_err());
    }
}
