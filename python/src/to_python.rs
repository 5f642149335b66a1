//! Arrow arrays to Python objects, a column at a time.
//!
//! | in SQL | in Python |
//! |---|---|
//! | BOOLEAN, whole numbers, REAL and DOUBLE, VARCHAR, BLOB | bool, int, float, str, bytes |
//! | DECIMAL | decimal.Decimal with the column's digits behind the point |
//! | DATE, TIME, TIMESTAMP | datetime.date, time, datetime; nanoseconds are cut off |
//! | TIMESTAMP WITH TIME ZONE | datetime with the column's zone |
//! | INTERVAL | datetime.timedelta, or sinterdb.Interval where that would lose months or nanoseconds |
//! | UUID, lists, structs and maps | uuid.UUID, list, dict |
//! | NULL | None |

use crate::calendar::date_from_days;
use crate::error::{DataError, NotSupportedError};
use arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait, RecordBatch, RunArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DecimalType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalDayTimeType,
    IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType, RunEndIndexType, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyList, PyTime, PyTuple, PyType, PyTzInfo};

type Object<'py> = Bound<'py, PyAny>;
type Column<'py> = Vec<Object<'py>>;

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Days of the longest timedelta.
const DELTA_DAYS_MAX: u32 = 999_999_999;

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static INTERVAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// One tuple per row.
///
/// # Errors
/// DataError where a value does not fit into Python's type, NotSupportedError for types without one.
pub(crate) fn rows<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let columns: Vec<_> = batch.columns().iter().map(|array| column(py, array)).collect::<PyResult<_>>()?;
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    (0..batch.num_rows())
        .map(|_| {
            let row: Vec<_> = columns.iter_mut().map(|column| column.next().expect("one value per row")).collect();
            PyTuple::new(py, row)
        })
        .collect()
}

/// One object per value.
fn column<'py>(py: Python<'py>, array: &dyn Array) -> PyResult<Column<'py>> {
    match array.data_type() {
        DataType::Null => Ok(vec![py.None().into_bound(py); array.len()]),
        DataType::Boolean => {
            let array = array.as_boolean();
            each(py, array, |row| array.value(row).into_bound_py_any(py))
        }
        DataType::Int8 => plain::<Int8Type>(py, array),
        DataType::Int16 => plain::<Int16Type>(py, array),
        DataType::Int32 => plain::<Int32Type>(py, array),
        DataType::Int64 => plain::<Int64Type>(py, array),
        DataType::UInt8 => plain::<UInt8Type>(py, array),
        DataType::UInt16 => plain::<UInt16Type>(py, array),
        DataType::UInt32 => plain::<UInt32Type>(py, array),
        DataType::UInt64 => plain::<UInt64Type>(py, array),
        DataType::Float16 => primitive::<Float16Type>(py, array, |value| value.to_f32().into_bound_py_any(py)),
        DataType::Float32 => plain::<Float32Type>(py, array),
        DataType::Float64 => plain::<Float64Type>(py, array),
        DataType::Decimal32(precision, scale) => decimal::<Decimal32Type>(py, array, *precision, *scale),
        DataType::Decimal64(precision, scale) => decimal::<Decimal64Type>(py, array, *precision, *scale),
        DataType::Decimal128(precision, scale) => decimal::<Decimal128Type>(py, array, *precision, *scale),
        DataType::Decimal256(precision, scale) => decimal::<Decimal256Type>(py, array, *precision, *scale),
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            each(py, array, |row| array.value(row).into_bound_py_any(py))
        }
        DataType::LargeUtf8 => {
            let array = array.as_string::<i64>();
            each(py, array, |row| array.value(row).into_bound_py_any(py))
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            each(py, array, |row| array.value(row).into_bound_py_any(py))
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            each(py, array, |row| Ok(PyBytes::new(py, array.value(row)).into_any()))
        }
        DataType::LargeBinary => {
            let array = array.as_binary::<i64>();
            each(py, array, |row| Ok(PyBytes::new(py, array.value(row)).into_any()))
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            each(py, array, |row| Ok(PyBytes::new(py, array.value(row)).into_any()))
        }
        DataType::FixedSizeBinary(16) => {
            let array = array.as_fixed_size_binary();
            let class = UUID.import(py, "uuid", "UUID")?;
            each(py, array, |row| class.call1((py.None(), PyBytes::new(py, array.value(row)))))
        }
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary();
            each(py, array, |row| Ok(PyBytes::new(py, array.value(row)).into_any()))
        }
        DataType::Date32 => primitive::<Date32Type>(py, array, |days| date(py, days.into())),
        DataType::Date64 => {
            primitive::<Date64Type>(py, array, |millis| date(py, millis.div_euclid(SECONDS_PER_DAY * 1000)))
        }
        DataType::Time32(TimeUnit::Second) => {
            primitive::<Time32SecondType>(py, array, |value| time(py, i64::from(value) * NANOS_PER_SECOND))
        }
        DataType::Time32(_) => {
            primitive::<Time32MillisecondType>(py, array, |value| time(py, i64::from(value) * 1_000_000))
        }
        DataType::Time64(TimeUnit::Nanosecond) => primitive::<Time64NanosecondType>(py, array, |value| time(py, value)),
        DataType::Time64(_) => primitive::<Time64MicrosecondType>(py, array, |value| {
            time(py, value.checked_mul(1000).ok_or_else(|| out_of_range(value, "time"))?)
        }),
        DataType::Timestamp(unit, zone) => timestamp(py, array, *unit, zone.as_deref()),
        DataType::Duration(TimeUnit::Second) => {
            primitive::<DurationSecondType>(py, array, |value| delta(py, i128::from(value) * 1_000_000_000))
        }
        DataType::Duration(TimeUnit::Millisecond) => {
            primitive::<DurationMillisecondType>(py, array, |value| delta(py, i128::from(value) * 1_000_000))
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            primitive::<DurationMicrosecondType>(py, array, |value| delta(py, i128::from(value) * 1000))
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            primitive::<DurationNanosecondType>(py, array, |value| delta(py, value.into()))
        }
        DataType::Interval(IntervalUnit::YearMonth) => {
            primitive::<IntervalYearMonthType>(py, array, |months| interval(py, months, 0, 0))
        }
        DataType::Interval(IntervalUnit::DayTime) => primitive::<IntervalDayTimeType>(py, array, |value| {
            interval(py, 0, value.days, i64::from(value.milliseconds) * 1_000_000)
        }),
        DataType::Interval(IntervalUnit::MonthDayNano) => primitive::<IntervalMonthDayNanoType>(py, array, |value| {
            interval(py, value.months, value.days, value.nanoseconds)
        }),
        DataType::List(_) => list::<i32>(py, array),
        DataType::LargeList(_) => list::<i64>(py, array),
        DataType::FixedSizeList(_, _) => {
            let array = array.as_fixed_size_list();
            each(py, array, |row| Ok(PyList::new(py, column(py, &array.value(row))?)?.into_any()))
        }
        DataType::Struct(fields) => {
            let array = array.as_struct();
            let children: Vec<_> = array.columns().iter().map(|child| column(py, child)).collect::<PyResult<_>>()?;
            each(py, array, |row| {
                let dict = PyDict::new(py);
                for (field, child) in fields.iter().zip(&children) {
                    dict.set_item(field.name(), &child[row])?;
                }
                Ok(dict.into_any())
            })
        }
        DataType::Map(_, _) => {
            let array = array.as_map();
            let keys = column(py, array.keys())?;
            let values = column(py, array.values())?;
            let offsets = array.value_offsets();
            each(py, array, |row| {
                let dict = PyDict::new(py);
                for entry in offsets[row] as usize..offsets[row + 1] as usize {
                    dict.set_item(&keys[entry], &values[entry])?;
                }
                Ok(dict.into_any())
            })
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let values = column(py, dictionary.values())?;
            let keys = dictionary.normalized_keys();
            each(py, array, |row| Ok(values[keys[row]].clone()))
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs::<Int16Type>(py, array),
            DataType::Int32 => runs::<Int32Type>(py, array),
            _ => runs::<Int64Type>(py, array),
        },
        other => Err(NotSupportedError::new_err(format!("{other} has no type in Python; use to_arrow()"))),
    }
}

/// `make(row)` for the rows that are present, None for the others.
fn each<'py>(
    py: Python<'py>,
    array: &dyn Array,
    mut make: impl FnMut(usize) -> PyResult<Object<'py>>,
) -> PyResult<Column<'py>> {
    (0..array.len()).map(|row| if array.is_null(row) { Ok(py.None().into_bound(py)) } else { make(row) }).collect()
}

fn primitive<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &dyn Array,
    mut make: impl FnMut(T::Native) -> PyResult<Object<'py>>,
) -> PyResult<Column<'py>> {
    let array = array.as_primitive::<T>();
    each(py, array, |row| make(array.value(row)))
}

fn plain<'py, T>(py: Python<'py>, array: &dyn Array) -> PyResult<Column<'py>>
where
    T: ArrowPrimitiveType<Native: IntoPyObject<'py>>,
{
    primitive::<T>(py, array, |value| value.into_bound_py_any(py))
}

fn decimal<'py, T: DecimalType>(py: Python<'py>, array: &dyn Array, precision: u8, scale: i8) -> PyResult<Column<'py>> {
    let class = DECIMAL.import(py, "decimal", "Decimal")?;
    primitive::<T>(py, array, |value| class.call1((T::format_decimal(value, precision, scale),)))
}

fn list<'py, O: OffsetSizeTrait>(py: Python<'py>, array: &dyn Array) -> PyResult<Column<'py>> {
    let array = array.as_list::<O>();
    let offsets = array.value_offsets();
    // A slice's offsets begin anywhere: convert only the values that belong to it.
    let first = offsets[0].as_usize();
    let last = offsets[array.len()].as_usize();
    let values = column(py, &array.values().slice(first, last - first))?;
    each(py, array, |row| {
        let range = offsets[row].as_usize() - first..offsets[row + 1].as_usize() - first;
        Ok(PyList::new(py, &values[range])?.into_any())
    })
}

fn runs<'py, R: RunEndIndexType>(py: Python<'py>, array: &dyn Array) -> PyResult<Column<'py>> {
    let array: &RunArray<R> = array.as_run();
    let values: &ArrayRef = array.values();
    let values = column(py, values)?;
    Ok((0..array.len()).map(|row| values[array.get_physical_index(row)].clone()).collect())
}

fn date(py: Python<'_>, days: i64) -> PyResult<Object<'_>> {
    let (year, month, day) = date_from_days(days).ok_or_else(|| out_of_range(days, "day"))?;
    Ok(PyDate::new(py, year, month, day)?.into_any())
}

/// Hour, minute, second and microsecond.
fn clock(nanos_of_day: i64) -> (u8, u8, u8, u32) {
    let seconds = nanos_of_day / NANOS_PER_SECOND;
    let micros = (nanos_of_day % NANOS_PER_SECOND / 1000) as u32;
    ((seconds / 3600) as u8, (seconds / 60 % 60) as u8, (seconds % 60) as u8, micros)
}

fn time(py: Python<'_>, nanos_of_day: i64) -> PyResult<Object<'_>> {
    if !(0..SECONDS_PER_DAY * NANOS_PER_SECOND).contains(&nanos_of_day) {
        return Err(out_of_range(nanos_of_day, "time"));
    }
    let (hour, minute, second, micros) = clock(nanos_of_day);
    Ok(PyTime::new(py, hour, minute, second, micros, None)?.into_any())
}

fn timestamp<'py>(py: Python<'py>, array: &dyn Array, unit: TimeUnit, zone: Option<&str>) -> PyResult<Column<'py>> {
    let zone = zone.map(|name| time_zone(py, name)).transpose()?;
    let make = |value: i64, per_second: i64| {
        let seconds = value.div_euclid(per_second);
        let nanos = value.rem_euclid(per_second) * (NANOS_PER_SECOND / per_second);
        datetime(py, seconds, nanos, zone.as_ref())
    };
    match unit {
        TimeUnit::Second => primitive::<TimestampSecondType>(py, array, |value| make(value, 1)),
        TimeUnit::Millisecond => primitive::<TimestampMillisecondType>(py, array, |value| make(value, 1000)),
        TimeUnit::Microsecond => primitive::<TimestampMicrosecondType>(py, array, |value| make(value, 1_000_000)),
        TimeUnit::Nanosecond => primitive::<TimestampNanosecondType>(py, array, |value| make(value, NANOS_PER_SECOND)),
    }
}

fn datetime<'py>(
    py: Python<'py>,
    seconds: i64,
    nanos: i64,
    zone: Option<&Bound<'py, PyTzInfo>>,
) -> PyResult<Object<'py>> {
    let days = seconds.div_euclid(SECONDS_PER_DAY);
    let (year, month, day) = date_from_days(days).ok_or_else(|| out_of_range(seconds, "second"))?;
    let (hour, minute, second, micros) = clock(seconds.rem_euclid(SECONDS_PER_DAY) * NANOS_PER_SECOND + nanos);
    let Some(zone) = zone else {
        return Ok(PyDateTime::new(py, year, month, day, hour, minute, second, micros, None)?.into_any());
    };
    let utc = PyTzInfo::utc(py)?;
    let moment = PyDateTime::new(py, year, month, day, hour, minute, second, micros, Some(&utc))?;
    if zone.is(&*utc) { Ok(moment.into_any()) } else { moment.call_method1("astimezone", (zone,)) }
}

/// The zone of a column: UTC, an offset such as `+02:00`, or a name such as `Europe/Berlin`.
fn time_zone<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyTzInfo>> {
    if matches!(name, "UTC" | "Etc/UTC" | "Z" | "+00:00" | "-00:00") {
        return Ok(PyTzInfo::utc(py)?.to_owned());
    }
    match offset_seconds(name) {
        Some(seconds) => PyTzInfo::fixed_offset(py, PyDelta::new(py, 0, seconds, 0, true)?),
        None => PyTzInfo::timezone(py, name),
    }
}

/// Seconds east of UTC of `+HH:MM`, `+HHMM` or `+HH`.
fn offset_seconds(name: &str) -> Option<i32> {
    let (sign, digits) = match name.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None => digits.split_at_checked(2)?,
    };
    let minutes: i32 = if minutes.is_empty() { 0 } else { minutes.parse().ok()? };
    Some(sign * (hours.parse::<i32>().ok()? * 3600 + minutes * 60))
}

fn delta(py: Python<'_>, nanos: i128) -> PyResult<Object<'_>> {
    let micros = nanos.div_euclid(1000);
    let day = i128::from(SECONDS_PER_DAY) * 1_000_000;
    // Days of an i64 of seconds do not overflow an i128, but may be more than a timedelta holds.
    let days = i32::try_from(micros.div_euclid(day)).ok().filter(|days| days.unsigned_abs() <= DELTA_DAYS_MAX);
    let days = days.ok_or_else(|| out_of_range(nanos, "interval"))?;
    let rest = micros.rem_euclid(day);
    Ok(PyDelta::new(py, days, (rest / 1_000_000) as i32, (rest % 1_000_000) as i32, true)?.into_any())
}

fn interval(py: Python<'_>, months: i32, days: i32, nanos: i64) -> PyResult<Object<'_>> {
    if months == 0 && nanos % 1000 == 0 {
        return delta(py, i128::from(days) * i128::from(SECONDS_PER_DAY * NANOS_PER_SECOND) + i128::from(nanos));
    }
    INTERVAL.import(py, "sinterdb.interval", "Interval")?.call1((months, days, nanos))
}

fn out_of_range(value: impl std::fmt::Display, what: &str) -> PyErr {
    DataError::new_err(format!("{what} {value} is outside of what Python's datetime holds; use to_arrow()"))
}
