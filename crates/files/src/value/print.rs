//! Values as text, in the form that parsing reads back as the same value.

use super::calendar;
use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, DecimalType, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::io::Write;

/// Appends the text of one row's value, which is not NULL.
pub(crate) type Printer<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

const NANOSECONDS: i64 = 1_000_000_000;

/// A printer for the values of `array`, or `None` for nested types, which have no text of their own.
pub(crate) fn printer(array: &dyn Array) -> Option<Printer<'_>> {
    use DataType as T;
    fn integers<A: ArrowPrimitiveType>(array: &dyn Array) -> Option<Printer<'_>>
    where
        A::Native: Into<i128>,
    {
        let array = array.as_primitive::<A>();
        Some(Box::new(move |row, out| integer(array.value(row).into(), out)))
    }
    // Writing to memory cannot fail.
    match array.data_type() {
        T::Int8 => integers::<Int8Type>(array),
        T::Int16 => integers::<Int16Type>(array),
        T::Int32 => integers::<Int32Type>(array),
        T::Int64 => integers::<Int64Type>(array),
        T::UInt8 => integers::<UInt8Type>(array),
        T::UInt16 => integers::<UInt16Type>(array),
        T::UInt32 => integers::<UInt32Type>(array),
        T::UInt64 => integers::<UInt64Type>(array),
        // The shortest digits that read back as the same number.
        T::Float32 => {
            let array = array.as_primitive::<Float32Type>();
            Some(Box::new(move |row, out| drop(write!(out, "{:?}", array.value(row)))))
        }
        T::Float64 => {
            let array = array.as_primitive::<Float64Type>();
            Some(Box::new(move |row, out| drop(write!(out, "{:?}", array.value(row)))))
        }
        T::Decimal128(precision, scale) => {
            let (precision, scale) = (*precision, *scale);
            let array = array.as_primitive::<Decimal128Type>();
            Some(Box::new(move |row, out| {
                out.extend_from_slice(Decimal128Type::format_decimal(array.value(row), precision, scale).as_bytes());
            }))
        }
        T::Boolean => {
            let array = array.as_boolean();
            Some(Box::new(move |row, out| out.extend_from_slice(if array.value(row) { b"true" } else { b"false" })))
        }
        T::Date32 => {
            let array = array.as_primitive::<Date32Type>();
            Some(Box::new(move |row, out| date(i64::from(array.value(row)), out)))
        }
        T::Time64(TimeUnit::Microsecond) => {
            let array = array.as_primitive::<Time64MicrosecondType>();
            Some(Box::new(move |row, out| time(array.value(row).saturating_mul(1000), out)))
        }
        T::Time64(TimeUnit::Nanosecond) => {
            let array = array.as_primitive::<Time64NanosecondType>();
            Some(Box::new(move |row, out| time(array.value(row), out)))
        }
        T::Timestamp(TimeUnit::Microsecond, zone) => {
            let has_zone = zone.is_some();
            let array = array.as_primitive::<TimestampMicrosecondType>();
            Some(Box::new(move |row, out| {
                let value = array.value(row);
                timestamp(value.div_euclid(1_000_000), value.rem_euclid(1_000_000) * 1000, has_zone, out);
            }))
        }
        T::Timestamp(TimeUnit::Nanosecond, zone) => {
            let has_zone = zone.is_some();
            let array = array.as_primitive::<TimestampNanosecondType>();
            Some(Box::new(move |row, out| {
                let value = array.value(row);
                timestamp(value.div_euclid(NANOSECONDS), value.rem_euclid(NANOSECONDS), has_zone, out);
            }))
        }
        T::Utf8 => {
            let array = array.as_string::<i32>();
            Some(Box::new(move |row, out| out.extend_from_slice(array.value(row).as_bytes())))
        }
        T::Binary => {
            let array = array.as_binary::<i32>();
            Some(Box::new(move |row, out| {
                out.extend_from_slice(b"\\x");
                hexadecimal(array.value(row), out);
            }))
        }
        T::FixedSizeBinary(16) => {
            let array = array.as_fixed_size_binary();
            Some(Box::new(move |row, out| {
                for (at, byte) in array.value(row).iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        out.push(b'-');
                    }
                    hexadecimal(&[*byte], out);
                }
            }))
        }
        T::Interval(_) => {
            let formatter = ArrayFormatter::try_new(array, &FormatOptions::default()).ok()?;
            Some(Box::new(move |row, out| drop(write!(out, "{}", formatter.value(row)))))
        }
        _ => None,
    }
}

fn integer(value: i128, out: &mut Vec<u8>) {
    match u64::try_from(value.unsigned_abs()) {
        Ok(magnitude) => {
            if value < 0 {
                out.push(b'-');
            }
            digits(magnitude, 1, out);
        }
        Err(_) => drop(write!(out, "{value}")),
    }
}

/// `value` with at least `width` digits.
fn digits(mut value: u64, width: usize, out: &mut Vec<u8>) {
    let mut text = [b'0'; 20];
    let mut at = text.len();
    while value > 0 || text.len() - at < width {
        at -= 1;
        text[at] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(&text[at..]);
}

fn date(days: i64, out: &mut Vec<u8>) {
    let (year, month, day) = calendar::date_of(days);
    if year < 0 {
        out.push(b'-');
    }
    digits(year.unsigned_abs(), 4, out);
    out.push(b'-');
    digits(u64::from(month), 2, out);
    out.push(b'-');
    digits(u64::from(day), 2, out);
}

/// A time of day in nanoseconds, with as many fractional digits as it needs.
fn time(nanoseconds: i64, out: &mut Vec<u8>) {
    let seconds = nanoseconds.div_euclid(NANOSECONDS).unsigned_abs();
    digits(seconds / 3600, 2, out);
    out.push(b':');
    digits(seconds / 60 % 60, 2, out);
    out.push(b':');
    digits(seconds % 60, 2, out);
    let fraction = nanoseconds.rem_euclid(NANOSECONDS).unsigned_abs();
    if fraction > 0 {
        out.push(b'.');
        digits(fraction, 9, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

fn timestamp(seconds: i64, nanoseconds: i64, has_zone: bool, out: &mut Vec<u8>) {
    date(seconds.div_euclid(86_400), out);
    out.push(b' ');
    time(seconds.rem_euclid(86_400) * NANOSECONDS + nanoseconds, out);
    if has_zone {
        // The value is in UTC, whatever zone it is shown in.
        out.extend_from_slice(b"+00");
    }
}

fn hexadecimal(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}
