//! Our values as Arrow arrays.

use super::{arrow_type, foreign, interval, text, to_null_buffer, uuid};
use crate::{Error, LogicalType, Result};
use arrow::array::{ArrayRef, ArrowPrimitiveType, BooleanArray, FixedSizeBinaryArray, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::datatypes::*;
use sinter_codec::{Bitmap, Values};
use std::sync::Arc;

/// Flat values of a plain type as an array of [`arrow_type`].
pub(crate) fn values_to_arrow(values: Values<'_>, validity: Option<&Bitmap>, ty: &LogicalType) -> Result<ArrayRef> {
    let nulls = validity.map(to_null_buffer);
    let arrow = arrow_type(ty);
    macro_rules! primitive {
        ($type:ty, $values:expr) => {
            build::<$type>($values, nulls, arrow)
        };
    }
    match (values, &arrow) {
        (Values::U8(values), DataType::Boolean) => {
            let bits = BooleanBuffer::collect_bool(values.len(), |row| values[row] != 0);
            Ok(Arc::new(BooleanArray::new(bits, nulls)))
        }
        (Values::I8(values), DataType::Int8) => primitive!(Int8Type, values.to_vec()),
        (Values::I16(values), DataType::Int16) => primitive!(Int16Type, values.to_vec()),
        (Values::I32(values), DataType::Int32) => primitive!(Int32Type, values.to_vec()),
        (Values::I64(values), DataType::Int64) => primitive!(Int64Type, values.to_vec()),
        (Values::U8(values), DataType::UInt8) => primitive!(UInt8Type, values.to_vec()),
        (Values::U16(values), DataType::UInt16) => primitive!(UInt16Type, values.to_vec()),
        (Values::U32(values), DataType::UInt32) => primitive!(UInt32Type, values.to_vec()),
        (Values::U64(values), DataType::UInt64) => primitive!(UInt64Type, values.to_vec()),
        (Values::F32(values), DataType::Float32) => primitive!(Float32Type, values.to_vec()),
        (Values::F64(values), DataType::Float64) => primitive!(Float64Type, values.to_vec()),
        (Values::I32(values), DataType::Date32) => primitive!(Date32Type, values.to_vec()),
        (Values::I32(values), DataType::Decimal128(..)) => primitive!(Decimal128Type, widen(values)),
        (Values::I64(values), DataType::Decimal128(..)) => primitive!(Decimal128Type, widen(values)),
        (Values::I128(values), DataType::Decimal128(..)) => primitive!(Decimal128Type, values.to_vec()),
        (Values::I64(values), DataType::Time64(TimeUnit::Microsecond)) => {
            primitive!(Time64MicrosecondType, values.to_vec())
        }
        (Values::I64(values), DataType::Time64(_)) => primitive!(Time64NanosecondType, values.to_vec()),
        (Values::I64(values), DataType::Timestamp(TimeUnit::Microsecond, _)) => {
            primitive!(TimestampMicrosecondType, values.to_vec())
        }
        (Values::I64(values), DataType::Timestamp(..)) => primitive!(TimestampNanosecondType, values.to_vec()),
        (Values::I128(values), DataType::Interval(_)) => {
            primitive!(IntervalMonthDayNanoType, values.iter().map(|&packed| interval::unpack(packed)).collect())
        }
        (Values::I128(values), DataType::FixedSizeBinary(16)) => {
            let bytes: Vec<u8> = values.iter().flat_map(|&packed| uuid::unpack(packed)).collect();
            let array = FixedSizeBinaryArray::try_new(16, Buffer::from_vec(bytes), nulls);
            array.map(|array| Arc::new(array) as ArrayRef).map_err(foreign)
        }
        (Values::Bytes(view), DataType::Utf8View) => text::string_views(view, validity),
        (Values::Bytes(view), DataType::BinaryView) => text::binary_views(view, validity),
        (values, _) => Err(Error::Unsupported(format!("{} values as {ty}", values.physical().name()))),
    }
}

fn widen<T: Copy + Into<i128>>(values: &[T]) -> Vec<i128> {
    values.iter().map(|&value| value.into()).collect()
}

fn build<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    nulls: Option<arrow::buffer::NullBuffer>,
    arrow: DataType,
) -> Result<ArrayRef> {
    let array = PrimitiveArray::<T>::try_new(values.into(), nulls).map_err(foreign)?;
    // The type carries what T does not: a zone, a precision.
    Ok(Arc::new(array.with_data_type(arrow)))
}
