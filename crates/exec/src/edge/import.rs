//! Arrow arrays of plain types as our values, borrowed where the bytes agree.

use super::{arrow_type, bits, foreign, interval, logical_type, uuid};
use crate::{Error, LogicalType, Result, TimeUnit};
use arrow::array::{Array, ArrayRef, AsArray, GenericByteArray, OffsetSizeTrait};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::*;
use arrow::error::ArrowError;
use sinter_codec::{BytesBuf, BytesView, Physical, Values, ValuesBuf};
use std::borrow::Cow;

/// Values out of an Arrow array. NULL slots hold anything.
pub(super) enum Imported<'a> {
    /// The array's own memory.
    Borrowed(Values<'a>),
    /// The array's own bytes under narrower offsets.
    Bytes { offsets: Vec<u32>, data: &'a [u8] },
    /// Converted.
    Owned(ValuesBuf),
}

impl Imported<'_> {
    pub(super) fn as_values(&self) -> Values<'_> {
        match self {
            Imported::Borrowed(values) => *values,
            Imported::Bytes { offsets, data } => Values::Bytes(BytesView { offsets, data }),
            Imported::Owned(buf) => buf.as_values(),
        }
    }

    pub(super) fn into_buf(self) -> ValuesBuf {
        match self {
            Imported::Owned(buf) => buf,
            other => other.as_values().to_buf(),
        }
    }
}

/// The array as one of a type that [`import`] reads directly: dictionaries and runs written out, and foreign results
/// of a related type cast.
pub(super) fn normalise<'a>(array: &'a ArrayRef, ty: &LogicalType) -> Result<Cow<'a, ArrayRef>> {
    let direct = !matches!(array.data_type(), DataType::Dictionary(..) | DataType::RunEndEncoded(..));
    if direct && logical_type(array.data_type()).as_ref() == Some(ty) {
        return Ok(Cow::Borrowed(array));
    }
    let plain = match array.data_type() {
        DataType::Dictionary(_, values) if logical_type(values).as_ref() == Some(ty) => (**values).clone(),
        DataType::RunEndEncoded(_, values) if logical_type(values.data_type()).as_ref() == Some(ty) => {
            values.data_type().clone()
        }
        _ => arrow_type(ty),
    };
    strict_cast(array, &plain).map(Cow::Owned).map_err(foreign)
}

/// A cast that fails where a value has no room in the type, such as seconds that are too many microseconds, and makes no
/// NULL of it.
pub fn strict_cast(array: &ArrayRef, ty: &DataType) -> std::result::Result<ArrayRef, ArrowError> {
    cast_with_options(array, ty, &CastOptions { safe: false, ..CastOptions::default() })
}

/// Values of a plain type.
pub(super) fn import<'a>(array: &'a ArrayRef, ty: &LogicalType) -> Result<Imported<'a>> {
    match normalise(array, ty)? {
        Cow::Borrowed(array) => import_normal(array, ty),
        Cow::Owned(array) => Ok(Imported::Owned(import_normal(&array, ty)?.into_buf())),
    }
}

fn import_normal<'a>(array: &'a ArrayRef, ty: &LogicalType) -> Result<Imported<'a>> {
    macro_rules! borrowed {
        ($variant:ident, $arrow:ty) => {
            Imported::Borrowed(Values::$variant(array.as_primitive::<$arrow>().values()))
        };
    }
    Ok(match (array.data_type(), ty) {
        (DataType::Boolean, _) => {
            let bits = bits::from_boolean_buffer(array.as_boolean().values());
            Imported::Owned(ValuesBuf::U8((0..bits.len()).map(|row| u8::from(bits.get(row))).collect()))
        }
        (DataType::Int8, _) => borrowed!(I8, Int8Type),
        (DataType::Int16, _) => borrowed!(I16, Int16Type),
        (DataType::Int32, _) => borrowed!(I32, Int32Type),
        (DataType::Int64, _) => borrowed!(I64, Int64Type),
        (DataType::UInt8, _) => borrowed!(U8, UInt8Type),
        (DataType::UInt16, _) => borrowed!(U16, UInt16Type),
        (DataType::UInt32, _) => borrowed!(U32, UInt32Type),
        (DataType::UInt64, _) => borrowed!(U64, UInt64Type),
        (DataType::Float16, _) => Imported::Owned(ValuesBuf::F32(
            array.as_primitive::<Float16Type>().values().iter().map(|value| value.to_f32()).collect(),
        )),
        (DataType::Float32, _) => borrowed!(F32, Float32Type),
        (DataType::Float64, _) => borrowed!(F64, Float64Type),
        (DataType::Date32, _) => borrowed!(I32, Date32Type),
        (DataType::Decimal32(..), _) => decimals(array.as_primitive::<Decimal32Type>().values(), array, ty)?,
        (DataType::Decimal64(..), _) => decimals(array.as_primitive::<Decimal64Type>().values(), array, ty)?,
        (DataType::Decimal128(..), _) if ty.physical() == Some(Physical::I128) => borrowed!(I128, Decimal128Type),
        (DataType::Decimal128(..), _) => decimals(array.as_primitive::<Decimal128Type>().values(), array, ty)?,
        (DataType::Time32(_), _) | (DataType::Time64(_), _) | (DataType::Timestamp(..), _) | (DataType::Date64, _) => {
            times(array, ty)?
        }
        (DataType::Interval(unit), _) => Imported::Owned(ValuesBuf::I128(intervals(array, *unit))),
        (DataType::Utf8, _) => bytes(array.as_string::<i32>())?,
        (DataType::LargeUtf8, _) => bytes(array.as_string::<i64>())?,
        (DataType::Binary, _) => bytes(array.as_binary::<i32>())?,
        (DataType::LargeBinary, _) => bytes(array.as_binary::<i64>())?,
        (DataType::Utf8View, _) => collect(array, |row| array.as_string_view().value(row).as_bytes())?,
        (DataType::BinaryView, _) => collect(array, |row| array.as_binary_view().value(row))?,
        (DataType::FixedSizeBinary(16), LogicalType::Uuid) => {
            let values = array.as_fixed_size_binary();
            let packed = (0..array.len()).map(|row| uuid::pack(values.value(row).try_into().expect("16 bytes wide")));
            Imported::Owned(ValuesBuf::I128(packed.collect()))
        }
        (DataType::FixedSizeBinary(_), _) => collect(array, |row| array.as_fixed_size_binary().value(row))?,
        (other, ty) => return Err(Error::Foreign(format!("an Arrow array of type {other} cannot become {ty}"))),
    })
}

/// Decimals in the width that their precision asks for.
fn decimals<T: Copy + Into<i128>>(values: &[T], array: &ArrayRef, ty: &LogicalType) -> Result<Imported<'static>> {
    fn narrow<T: Copy + Into<i128>, N: TryFrom<i128> + Default>(
        values: &[T],
        array: &ArrayRef,
        ty: &LogicalType,
    ) -> Result<Vec<N>> {
        let narrow = |(row, &value): (usize, &T)| match N::try_from(value.into()) {
            Ok(narrow) => Ok(narrow),
            Err(_) if array.is_null(row) => Ok(N::default()),
            Err(_) => Err(Error::Overflow { what: value.into().to_string(), type_name: ty.to_string() }),
        };
        values.iter().enumerate().map(narrow).collect()
    }
    Ok(Imported::Owned(match ty.physical() {
        Some(Physical::I32) => ValuesBuf::I32(narrow(values, array, ty)?),
        Some(Physical::I64) => ValuesBuf::I64(narrow(values, array, ty)?),
        _ => ValuesBuf::I128(narrow(values, array, ty)?),
    }))
}

/// Times and timestamps: nanoseconds stay, everything else becomes microseconds.
fn times<'a>(array: &'a ArrayRef, ty: &LogicalType) -> Result<Imported<'a>> {
    macro_rules! borrowed {
        ($arrow:ty) => {
            Imported::Borrowed(Values::I64(array.as_primitive::<$arrow>().values()))
        };
    }
    macro_rules! scaled {
        ($arrow:ty, $factor:expr) => {{
            let scale = |(row, &value): (usize, &<$arrow as ArrowPrimitiveType>::Native)| match i64::from(value)
                .checked_mul($factor)
            {
                Some(scaled) => Ok(scaled),
                None if array.is_null(row) => Ok(0),
                None => Err(Error::Overflow { what: value.to_string(), type_name: ty.to_string() }),
            };
            let scaled = array.as_primitive::<$arrow>().values().iter().enumerate().map(scale);
            Imported::Owned(ValuesBuf::I64(scaled.collect::<Result<_>>()?))
        }};
    }
    use arrow::datatypes::TimeUnit as Unit;
    debug_assert!(matches!(
        ty,
        LogicalType::Time(TimeUnit::Microsecond | TimeUnit::Nanosecond) | LogicalType::Timestamp(..)
    ));
    Ok(match array.data_type() {
        DataType::Time32(Unit::Second) => scaled!(Time32SecondType, 1_000_000),
        DataType::Time32(_) => scaled!(Time32MillisecondType, 1_000),
        DataType::Time64(Unit::Microsecond) => borrowed!(Time64MicrosecondType),
        DataType::Time64(_) => borrowed!(Time64NanosecondType),
        DataType::Timestamp(Unit::Second, _) => scaled!(TimestampSecondType, 1_000_000),
        DataType::Timestamp(Unit::Millisecond, _) => scaled!(TimestampMillisecondType, 1_000),
        DataType::Timestamp(Unit::Microsecond, _) => borrowed!(TimestampMicrosecondType),
        DataType::Timestamp(Unit::Nanosecond, _) => borrowed!(TimestampNanosecondType),
        _ => scaled!(Date64Type, 1_000),
    })
}

fn intervals(array: &ArrayRef, unit: IntervalUnit) -> Vec<i128> {
    let part = |months, days, nanoseconds| interval::pack(IntervalMonthDayNano { months, days, nanoseconds });
    match unit {
        IntervalUnit::YearMonth => {
            array.as_primitive::<IntervalYearMonthType>().values().iter().map(|&months| part(months, 0, 0)).collect()
        }
        IntervalUnit::DayTime => {
            let values = array.as_primitive::<IntervalDayTimeType>().values();
            values.iter().map(|value| part(0, value.days, i64::from(value.milliseconds) * 1_000_000)).collect()
        }
        IntervalUnit::MonthDayNano => array
            .as_primitive::<IntervalMonthDayNanoType>()
            .values()
            .iter()
            .map(|&value| interval::pack(value))
            .collect(),
    }
}

/// Bytes with offsets: the data stays where it is.
fn bytes<T: ByteArrayType>(array: &GenericByteArray<T>) -> Result<Imported<'_>>
where
    T::Offset: OffsetSizeTrait,
{
    let offsets = array.value_offsets();
    let first = offsets[0].as_usize();
    let total = offsets[offsets.len() - 1].as_usize() - first;
    if u32::try_from(total).is_err() {
        return Err(too_long());
    }
    let data = &array.value_data()[first..first + total];
    Ok(Imported::Bytes { offsets: offsets.iter().map(|offset| (offset.as_usize() - first) as u32).collect(), data })
}

/// Bytes that lie scattered: copied together. NULLs take no room.
fn collect<'a>(array: &'a ArrayRef, value: impl Fn(usize) -> &'a [u8]) -> Result<Imported<'a>> {
    let mut buf = BytesBuf::default();
    for row in 0..array.len() {
        let value = if array.is_null(row) { &[][..] } else { value(row) };
        if u32::try_from(buf.data.len() + value.len()).is_err() {
            return Err(too_long());
        }
        buf.push(value);
    }
    Ok(Imported::Owned(ValuesBuf::Bytes(buf)))
}

fn too_long() -> Error {
    Error::Foreign("one column of a batch holds more than 4 GiB of bytes; use smaller batches".into())
}
