//! Filling Arrow arrays from text.
//!
//! [`column`] makes the builder for a type. All builders share one trait, whose [`TextColumn::push_all`] loops inside
//! the builder, so that a column of a CSV batch costs one dynamic call and not one per value.

use super::{number, pattern, temporal};
use crate::sql_type;
use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, FixedSizeBinaryArray, NullBufferBuilder, PrimitiveArray,
    StringArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use std::sync::Arc;

/// How dates and timestamps are written where not in ISO 8601.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patterns {
    /// For DATE.
    pub(crate) date: Option<String>,
    /// For TIMESTAMP and TIMESTAMPTZ.
    pub(crate) timestamp: Option<String>,
}

/// A column that is filled from texts.
pub(crate) trait TextColumn: Send {
    /// Adds the value of `text`, or returns `false` and adds nothing.
    fn push(&mut self, text: &[u8]) -> bool;

    /// Adds a NULL.
    fn push_null(&mut self);

    /// Adds a value or NULL for each of `texts`; one that does not fit becomes NULL and its index a misfit.
    fn push_all(&mut self, texts: &[Option<&[u8]>], misfits: &mut Vec<usize>) {
        for (index, text) in texts.iter().enumerate() {
            match text {
                Some(text) if self.push(text) => {}
                Some(_) => {
                    misfits.push(index);
                    self.push_null();
                }
                None => self.push_null(),
            }
        }
    }

    /// The values so far as an array; the column is empty afterwards.
    fn finish(&mut self) -> ArrayRef;
}

/// A builder for `data_type`, or `None` for types that text holds only as JSON (lists, structs).
pub(crate) fn column(data_type: &DataType, patterns: &Patterns) -> Option<Box<dyn TextColumn>> {
    use DataType as T;
    fn integer<A: ArrowPrimitiveType>() -> Option<Box<dyn TextColumn>>
    where
        A::Native: TryFrom<i128>,
    {
        let parse = |text: &[u8]| number::integer(text).and_then(|value| A::Native::try_from(value).ok());
        Some(Primitive::<A, _>::boxed(A::DATA_TYPE, parse))
    }
    match data_type {
        T::Int8 => integer::<Int8Type>(),
        T::Int16 => integer::<Int16Type>(),
        T::Int32 => integer::<Int32Type>(),
        T::Int64 => Some(Primitive::<Int64Type, _>::boxed(T::Int64, number::bigint)),
        T::UInt8 => integer::<UInt8Type>(),
        T::UInt16 => integer::<UInt16Type>(),
        T::UInt32 => integer::<UInt32Type>(),
        T::UInt64 => integer::<UInt64Type>(),
        T::Float32 => Some(Primitive::<Float32Type, _>::boxed(T::Float32, number::single)),
        T::Float64 => Some(Primitive::<Float64Type, _>::boxed(T::Float64, number::double)),
        T::Decimal128(precision, scale) => {
            let (precision, scale) = (*precision, *scale);
            let parse = move |text: &[u8]| number::decimal(text, precision, scale);
            Some(Primitive::<Decimal128Type, _>::boxed(data_type.clone(), parse))
        }
        T::Date32 => {
            let pattern = patterns.date.clone();
            let parse = move |text: &[u8]| match &pattern {
                None => temporal::date(text),
                Some(pattern) => i32::try_from(pattern::instant(pattern, text)?.seconds.div_euclid(86_400)).ok(),
            };
            Some(Primitive::<Date32Type, _>::boxed(T::Date32, parse))
        }
        T::Time64(TimeUnit::Nanosecond) => {
            Some(Primitive::<Time64NanosecondType, _>::boxed(data_type.clone(), temporal::time))
        }
        T::Time64(TimeUnit::Microsecond) => {
            let parse = |text: &[u8]| temporal::time(text).filter(|time| time % 1000 == 0).map(|time| time / 1000);
            Some(Primitive::<Time64MicrosecondType, _>::boxed(data_type.clone(), parse))
        }
        T::Timestamp(unit, zone) => {
            let pattern = patterns.timestamp.clone();
            let wants_zone = zone.is_some();
            let read = move |text: &[u8]| {
                let at = match &pattern {
                    None => temporal::instant(text)?,
                    Some(pattern) => pattern::instant(pattern, text)?,
                };
                // A zone must not be dropped; where none is written, UTC is meant.
                (wants_zone || !at.has_zone).then_some(at)
            };
            if *unit == TimeUnit::Nanosecond {
                let parse = move |text: &[u8]| {
                    let at = read(text)?;
                    at.seconds.checked_mul(1_000_000_000)?.checked_add(i64::from(at.nanoseconds))
                };
                Some(Primitive::<TimestampNanosecondType, _>::boxed(data_type.clone(), parse))
            } else {
                let parse = move |text: &[u8]| {
                    let at = read(text).filter(|at| at.nanoseconds % 1000 == 0)?;
                    at.seconds.checked_mul(1_000_000)?.checked_add(i64::from(at.nanoseconds / 1000))
                };
                Some(Primitive::<TimestampMicrosecondType, _>::boxed(data_type.clone(), parse))
            }
        }
        T::Interval(IntervalUnit::MonthDayNano) => {
            let parse = |text: &[u8]| {
                arrow::compute::kernels::cast_utils::parse_interval_month_day_nano(std::str::from_utf8(text).ok()?).ok()
            };
            Some(Primitive::<IntervalMonthDayNanoType, _>::boxed(data_type.clone(), parse))
        }
        T::Boolean => Some(Box::new(Booleans { values: Vec::new(), validity: NullBufferBuilder::new(0) })),
        T::Utf8 => Some(Box::new(Bytes::new(BytesKind::Text))),
        T::Binary => Some(Box::new(Bytes::new(BytesKind::Hexadecimal))),
        T::FixedSizeBinary(16) => Some(Box::new(Uuids { data: Vec::new(), validity: NullBufferBuilder::new(0) })),
        _ => None,
    }
}

/// Why `text` does not fit `data_type`; for messages, so speed does not matter.
pub(crate) fn misfit(text: &[u8], data_type: &DataType) -> String {
    let name = sql_type::name(data_type);
    match data_type {
        _ if std::str::from_utf8(text).is_err() => "not UTF-8".to_string(),
        kind if kind.is_integer() && number::integer(text).is_some() => format!("out of range for {name}"),
        DataType::Decimal128(..) if number::double(text).is_some_and(f64::is_finite) => {
            format!("out of range for {name}")
        }
        DataType::Timestamp(_, None) if temporal::instant(text).is_some_and(|at| at.has_zone) => {
            format!("a time zone has no place in {name}")
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) if temporal::instant(text).is_some() => {
            format!("out of range for {name}")
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) if temporal::instant(text).is_some() => {
            format!("{name} keeps microseconds, TIMESTAMP_NS nanoseconds")
        }
        _ => format!("not of type {name}"),
    }
}

/// Numbers and points in time: one parser, one vector.
struct Primitive<A: ArrowPrimitiveType, P> {
    data_type: DataType,
    parse: P,
    values: Vec<A::Native>,
    validity: NullBufferBuilder,
}

impl<A: ArrowPrimitiveType, P: Fn(&[u8]) -> Option<A::Native> + Send + 'static> Primitive<A, P> {
    fn boxed(data_type: DataType, parse: P) -> Box<dyn TextColumn> {
        Box::new(Self { data_type, parse, values: Vec::new(), validity: NullBufferBuilder::new(0) })
    }
}

impl<A: ArrowPrimitiveType, P: Fn(&[u8]) -> Option<A::Native> + Send> TextColumn for Primitive<A, P> {
    #[inline]
    fn push(&mut self, text: &[u8]) -> bool {
        let value = (self.parse)(text);
        if let Some(value) = value {
            self.values.push(value);
            self.validity.append_non_null();
        }
        value.is_some()
    }

    fn push_null(&mut self) {
        self.values.push(A::Native::default());
        self.validity.append_null();
    }

    fn finish(&mut self) -> ArrayRef {
        let values = ScalarBuffer::from(std::mem::take(&mut self.values));
        let array = PrimitiveArray::<A>::new(values, self.validity.finish());
        Arc::new(array.with_data_type(self.data_type.clone()))
    }
}

/// `true` and `false` in any case, and their shorter spellings.
struct Booleans {
    values: Vec<bool>,
    validity: NullBufferBuilder,
}

impl TextColumn for Booleans {
    fn push(&mut self, text: &[u8]) -> bool {
        let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
        let value = if is(&["true", "t", "1", "yes", "y"]) {
            true
        } else if is(&["false", "f", "0", "no", "n"]) {
            false
        } else {
            return false;
        };
        self.values.push(value);
        self.validity.append_non_null();
        true
    }

    fn push_null(&mut self) {
        self.values.push(false);
        self.validity.append_null();
    }

    fn finish(&mut self) -> ArrayRef {
        let values = BooleanBuffer::from(std::mem::take(&mut self.values));
        Arc::new(BooleanArray::new(values, self.validity.finish()))
    }
}

/// What the bytes of a variable-length column stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BytesKind {
    /// UTF-8.
    Text,
    /// `\x` and pairs of hexadecimal digits; any other text stands for its own bytes.
    Hexadecimal,
}

/// VARCHAR and BLOB.
struct Bytes {
    kind: BytesKind,
    data: Vec<u8>,
    offsets: Vec<i32>,
    validity: NullBufferBuilder,
}

impl Bytes {
    fn new(kind: BytesKind) -> Self {
        Self { kind, data: Vec::new(), offsets: vec![0], validity: NullBufferBuilder::new(0) }
    }

    /// Ends a value that has been written to `data`; `false` once 2 GiB are reached.
    fn end_value(&mut self, is_present: bool) -> bool {
        match i32::try_from(self.data.len()) {
            Ok(offset) => {
                self.offsets.push(offset);
                self.validity.append(is_present);
                true
            }
            Err(_) => false,
        }
    }
}

impl TextColumn for Bytes {
    fn push(&mut self, text: &[u8]) -> bool {
        match (self.kind, text.strip_prefix(b"\\x").and_then(from_hexadecimal)) {
            (BytesKind::Text, _) if std::str::from_utf8(text).is_err() => return false,
            (BytesKind::Hexadecimal, Some(bytes)) => self.data.extend_from_slice(&bytes),
            _ => self.data.extend_from_slice(text),
        }
        self.end_value(true)
    }

    fn push_null(&mut self) {
        self.end_value(false);
    }

    fn push_all(&mut self, texts: &[Option<&[u8]>], misfits: &mut Vec<usize>) {
        // Checking the texts together is several times faster than one by one. They are UTF-8 each if they are so
        // together and none starts in the middle of a character.
        let start = self.data.len();
        if self.kind == BytesKind::Text {
            texts.iter().flatten().for_each(|text| self.data.extend_from_slice(text));
            let starts_inside = |text: &&[u8]| text.first().is_some_and(|byte| byte & 0xC0 == 0x80);
            let is_text =
                std::str::from_utf8(&self.data[start..]).is_ok() && !texts.iter().flatten().any(starts_inside);
            if is_text && i32::try_from(self.data.len()).is_ok() {
                let mut end = start;
                for text in texts {
                    end += text.map_or(0, <[u8]>::len);
                    self.offsets.push(end as i32);
                    self.validity.append(text.is_some());
                }
                return;
            }
            self.data.truncate(start);
        }
        for (index, text) in texts.iter().enumerate() {
            match text {
                Some(text) if self.push(text) => {}
                Some(_) => {
                    misfits.push(index);
                    self.push_null();
                }
                None => self.push_null(),
            }
        }
    }

    fn finish(&mut self) -> ArrayRef {
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let data = Buffer::from_vec(std::mem::take(&mut self.data));
        let nulls = self.validity.finish();
        match self.kind {
            BytesKind::Text => Arc::new(StringArray::new(offsets, data, nulls)),
            BytesKind::Hexadecimal => Arc::new(BinaryArray::new(offsets, data, nulls)),
        }
    }
}

/// The bytes of pairs of hexadecimal digits.
fn from_hexadecimal(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: &u8| (*digit as char).to_digit(16).map(|value| value as u8);
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks_exact(2).map(|pair| Some(value(&pair[0])? << 4 | value(&pair[1])?)).collect()
}

/// UUIDs, with or without hyphens.
struct Uuids {
    data: Vec<u8>,
    validity: NullBufferBuilder,
}

impl TextColumn for Uuids {
    fn push(&mut self, text: &[u8]) -> bool {
        let text = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}")).unwrap_or(text);
        let is_hyphenated = text.len() == 36 && [8, 13, 18, 23].iter().all(|&at| text[at] == b'-');
        if !is_hyphenated && text.len() != 32 {
            return false;
        }
        let digits: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'-').collect();
        match from_hexadecimal(&digits) {
            Some(bytes) if bytes.len() == 16 => self.data.extend_from_slice(&bytes),
            _ => return false,
        }
        self.validity.append_non_null();
        true
    }

    fn push_null(&mut self) {
        self.data.extend_from_slice(&[0; 16]);
        self.validity.append_null();
    }

    fn finish(&mut self) -> ArrayRef {
        let data = Buffer::from_vec(std::mem::take(&mut self.data));
        Arc::new(FixedSizeBinaryArray::new(16, data, self.validity.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};
    use arrow::util::display::array_value_to_string;

    /// The values of `texts` as `data_type`, printed; a misfit as `!`.
    fn read(data_type: &DataType, texts: &[&str]) -> Vec<String> {
        let mut column = column(data_type, &Patterns::default()).unwrap();
        let mut misfits = Vec::new();
        let texts: Vec<Option<&[u8]>> = texts.iter().map(|text| Some(text.as_bytes())).collect();
        column.push_all(&texts, &mut misfits);
        let array = column.finish();
        assert_eq!(array.data_type(), data_type);
        let print = |row| {
            if misfits.contains(&row) { "!".to_string() } else { array_value_to_string(&array, row).unwrap() }
        };
        (0..array.len()).map(print).collect()
    }

    #[test]
    fn every_type_reads_its_texts() {
        let utc: DataType = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!(read(&DataType::Int8, &["-128", "128", "x"]), ["-128", "!", "!"]);
        assert_eq!(read(&DataType::UInt64, &["18446744073709551615", "-1"]), ["18446744073709551615", "!"]);
        assert_eq!(read(&DataType::Boolean, &["TRUE", "no", "maybe"]), ["true", "false", "!"]);
        assert_eq!(read(&DataType::Decimal128(5, 2), &["1.5", "1000"]), ["1.50", "!"]);
        assert_eq!(read(&DataType::Date32, &["2024-02-29", "29.2.2024"]), ["2024-02-29", "!"]);
        assert_eq!(read(&utc, &["2024-01-01T00:00:00+01:00"]), ["2023-12-31T23:00:00Z"]);
        assert_eq!(read(&DataType::Binary, &["\\x00ff", "ab"]), ["00ff", "6162"]);
        assert_eq!(
            read(&DataType::FixedSizeBinary(16), &["84dc295e-2da5-11e8-b024-9b47611e8dc6", "84dc"]),
            ["84dc295e2da511e8b0249b47611e8dc6", "!"]
        );
        assert_eq!(
            read(&DataType::Interval(IntervalUnit::MonthDayNano), &["1 month 2 days", "soon"]),
            ["1 mons 2 days", "!"]
        );
    }

    #[test]
    fn half_characters_are_no_text() {
        let mut column = column(&DataType::Utf8, &Patterns::default()).unwrap();
        let mut misfits = Vec::new();
        let (first, second) = "é".as_bytes().split_at(1);
        column.push_all(&[Some(b"a"), Some(first), Some(second), None, Some(b"")], &mut misfits);
        assert_eq!(misfits, [1, 2]);
        let array = column.finish();
        assert_eq!((array.as_string::<i32>().value(0), array.null_count(), array.len()), ("a", 3, 5));
    }
}
