//! Python objects to parameters of a statement.

use crate::calendar::days_from_date;
use crate::error::{DataError, NotSupportedError, ProgrammingError};
use crate::numpy;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyDict, PyFloat, PyInt,
    PyMemoryView, PyString, PyTime, PyTimeAccess, PyType, PyTzInfo, PyTzInfoAccess,
};
use sinterdb::Value;

/// Largest whole number of 38 digits.
const INT_MAX: i128 = 10_i128.pow(38) - 1;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static INTERVAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The parameters of one run: any iterable but a text or a dict, whose keys have no place in `?`.
///
/// # Errors
/// ProgrammingError for other things, DataError and NotSupportedError for values.
pub(crate) fn row(parameters: &Bound<'_, PyAny>) -> PyResult<Vec<Value>> {
    if parameters.is_instance_of::<PyString>()
        || parameters.is_instance_of::<PyBytes>()
        || parameters.is_instance_of::<PyDict>()
    {
        let class = parameters.get_type().qualname()?;
        return Err(ProgrammingError::new_err(format!(
            "parameters are a list or tuple, one value per ?, not a {class}"
        )));
    }
    parameters.try_iter()?.map(|value| self::value(&value?)).collect()
}

fn value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Value::Boolean(flag.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return int(object).map(Value::Int);
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(Value::Float(number.value()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::Text(text.to_cow()?.into_owned()));
    }
    if object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>() {
        return Ok(Value::Blob(object.extract()?));
    }
    if object.is_instance_of::<PyMemoryView>() {
        return Ok(Value::Blob(object.call_method0("tobytes")?.extract()?));
    }
    if let Ok(moment) = object.cast::<PyDateTime>() {
        return datetime(moment);
    }
    if let Ok(date) = object.cast::<PyDate>() {
        // Within the years 1 to 9999 there are fewer than 2^22 days.
        return Ok(Value::Date(days(date) as i32));
    }
    if let Ok(time) = object.cast::<PyTime>() {
        if time.get_tzinfo().is_some() {
            return Err(DataError::new_err(format!("{object} has a time zone, which TIME has not")));
        }
        return Ok(Value::Time(micros_of_day(time)));
    }
    let py = object.py();
    if object.is_instance(DECIMAL.import(py, "decimal", "Decimal")?)? {
        return decimal(object);
    }
    // Texts until there are parameters of these types: they are cast where the statement expects the type.
    if object.is_instance(UUID.import(py, "uuid", "UUID")?)? {
        return Ok(Value::Text(object.str()?.to_cow()?.into_owned()));
    }
    if let Ok(delta) = object.cast::<PyDelta>() {
        return timedelta(delta);
    }
    if object.is_instance(INTERVAL.import(py, "sinterdb.interval", "Interval")?)? {
        let parts: PyResult<(i32, i32, i64)> = object.extract();
        let (months, days, nanos) =
            parts.map_err(|error| DataError::new_err(format!("{object} is no interval: {error}")))?;
        return Ok(interval(months, days, nanos));
    }
    foreign(object)
}

fn int(object: &Bound<'_, PyAny>) -> PyResult<i128> {
    let number = object.extract::<i128>().ok().filter(|number| (-INT_MAX..=INT_MAX).contains(number));
    number.ok_or_else(|| DataError::new_err("a whole number has at most 38 digits"))
}

/// `sign`, `digits` and `exponent` are the number, so nothing is rounded.
fn decimal(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    let refused = || DataError::new_err(format!("Decimal {object} does not fit into 38 digits"));
    let (sign, digits, exponent): (u8, Vec<u8>, Bound<'_, PyAny>) = object.call_method0("as_tuple")?.extract()?;
    // Texts stand for infinity and for what is not a number.
    let exponent: i64 = exponent.extract().map_err(|_| refused())?;
    let mut unscaled = 0_i128;
    let zeros = usize::try_from(exponent).unwrap_or(0);
    if zeros > 38 && digits != [0] {
        return Err(refused());
    }
    for digit in digits.into_iter().chain(std::iter::repeat_n(0, zeros.min(38))) {
        unscaled = unscaled.checked_mul(10).and_then(|number| number.checked_add(digit.into())).ok_or_else(refused)?;
    }
    if unscaled > INT_MAX || exponent < -38 {
        return Err(refused());
    }
    let scale = (-exponent).max(0) as u8;
    Ok(Value::Decimal(if sign == 1 { -unscaled } else { unscaled }, scale))
}

fn datetime(moment: &Bound<'_, PyDateTime>) -> PyResult<Value> {
    // pandas.NaT is a datetime that differs from itself.
    if moment.ne(moment)? {
        return Ok(Value::Null);
    }
    let nanos = moment.getattr_opt("nanosecond")?.map(|nanos| nanos.extract::<u32>()).transpose()?.unwrap_or(0);
    if nanos != 0 {
        return Err(DataError::new_err(format!("{moment} has nanoseconds; a parameter holds microseconds")));
    }
    let Some(zone) = moment.get_tzinfo() else {
        return Ok(Value::Timestamp(micros(moment)));
    };
    let utc = PyTzInfo::utc(moment.py())?;
    if zone.is(&*utc) {
        return Ok(Value::TimestampTz(micros(moment)));
    }
    let offset = moment.call_method0("utcoffset")?;
    if offset.is_none() {
        return Ok(Value::Timestamp(micros(moment)));
    }
    Ok(Value::TimestampTz(micros(moment) - delta_micros(offset.cast::<PyDelta>()?)))
}

fn days(date: &impl PyDateAccess) -> i64 {
    days_from_date(date.get_year(), date.get_month(), date.get_day())
}

fn micros_of_day(time: &impl PyTimeAccess) -> i64 {
    let seconds = i64::from(time.get_hour()) * 3600 + i64::from(time.get_minute()) * 60 + i64::from(time.get_second());
    seconds * MICROS_PER_SECOND + i64::from(time.get_microsecond())
}

fn micros(moment: &Bound<'_, PyDateTime>) -> i64 {
    days(moment) * MICROS_PER_DAY + micros_of_day(moment)
}

fn delta_micros(delta: &Bound<'_, PyDelta>) -> i64 {
    let seconds = i64::from(delta.get_seconds()) * MICROS_PER_SECOND + i64::from(delta.get_microseconds());
    i64::from(delta.get_days()) * MICROS_PER_DAY + seconds
}

fn timedelta(delta: &Bound<'_, PyDelta>) -> PyResult<Value> {
    // pandas.Timedelta has them, besides what it inherits.
    let nanos = delta.getattr_opt("nanoseconds")?.map(|nanos| nanos.extract::<i64>()).transpose()?.unwrap_or(0);
    let nanos = i64::from(delta.get_seconds()) * NANOS_PER_SECOND + i64::from(delta.get_microseconds()) * 1000 + nanos;
    Ok(interval(0, delta.get_days(), nanos))
}

/// An interval in SQL's words; each part carries its own sign, as timedelta's days do.
pub(crate) fn interval(months: i32, days: i32, nanos: i64) -> Value {
    let sign = if nanos < 0 { "-" } else { "" };
    let (seconds, rest) = (nanos / NANOS_PER_SECOND, nanos % NANOS_PER_SECOND);
    let (seconds, rest) = (seconds.unsigned_abs(), rest.unsigned_abs());
    Value::Text(format!("{months} months {days} days {sign}{seconds}.{rest:09} seconds"))
}

/// Scalars of numpy and pandas, without needing either.
fn foreign(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    let class = object.get_type();
    let module = class.module()?;
    let module = module.to_cow()?;
    if module.starts_with("pandas") && matches!(&*class.name()?.to_cow()?, "NAType" | "NaTType") {
        return Ok(Value::Null);
    }
    if module.starts_with("numpy") && !object.hasattr("__len__")? {
        match &*class.name()?.to_cow()? {
            "datetime64" => return numpy::datetime(object),
            "timedelta64" => return numpy::timedelta(object),
            _ => {}
        }
        let plain = object.call_method0("item")?;
        if !plain.get_type().is(&class) {
            return value(&plain);
        }
    }
    let class = class.qualname()?;
    Err(NotSupportedError::new_err(format!(
        "a {class} cannot be a parameter; append() and register() take whole frames"
    )))
}
