//! Which of our types an Arrow type is, and the way back.

use crate::{Field, LogicalType, TimeUnit};
use arrow::datatypes::{DataType, Field as ArrowField, IntervalUnit, TimeUnit as ArrowUnit};
use std::sync::Arc;

/// What a column of this Arrow type means to us; `None` where our tables cannot hold it, be it that it is nested deeper
/// than [`LogicalType::DEPTH_MAX`].
pub fn logical_type(arrow: &DataType) -> Option<LogicalType> {
    type_at_depth(arrow, 0)
}

fn type_at_depth(arrow: &DataType, depth: usize) -> Option<LogicalType> {
    if depth > LogicalType::DEPTH_MAX {
        return None;
    }
    Some(match arrow {
        DataType::Boolean => LogicalType::Boolean,
        DataType::Int8 => LogicalType::Int8,
        DataType::Int16 => LogicalType::Int16,
        DataType::Int32 => LogicalType::Int32,
        DataType::Int64 => LogicalType::Int64,
        DataType::UInt8 => LogicalType::UInt8,
        DataType::UInt16 => LogicalType::UInt16,
        DataType::UInt32 => LogicalType::UInt32,
        DataType::UInt64 => LogicalType::UInt64,
        DataType::Float16 | DataType::Float32 => LogicalType::Float32,
        DataType::Float64 => LogicalType::Float64,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => LogicalType::Decimal { precision: *precision, scale: *scale },
        DataType::Date32 => LogicalType::Date,
        DataType::Time32(_) | DataType::Time64(ArrowUnit::Microsecond) => LogicalType::Time(TimeUnit::Microsecond),
        DataType::Time64(_) => LogicalType::Time(TimeUnit::Nanosecond),
        DataType::Timestamp(ArrowUnit::Nanosecond, zone) => LogicalType::Timestamp(TimeUnit::Nanosecond, zone.clone()),
        DataType::Timestamp(_, zone) => LogicalType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Date64 => LogicalType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Interval(_) => LogicalType::Interval,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => LogicalType::Utf8,
        DataType::FixedSizeBinary(16) => LogicalType::Uuid,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            LogicalType::Binary
        }
        DataType::Dictionary(_, values) => type_at_depth(values, depth)?,
        DataType::RunEndEncoded(_, values) => type_at_depth(values.data_type(), depth)?,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            LogicalType::List(Arc::new(field_at_depth(item, depth + 1)?))
        }
        DataType::Struct(fields) => {
            LogicalType::Struct(fields.iter().map(|field| field_at_depth(field, depth + 1)).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn field_at_depth(field: &ArrowField, depth: usize) -> Option<Field> {
    let ty = type_at_depth(field.data_type(), depth)?;
    Some(Field { name: field.name().clone(), ty, nullable: field.is_nullable() })
}

/// The Arrow type in which columns leave the engine (text as `Utf8View`).
pub fn arrow_type(ty: &LogicalType) -> DataType {
    match ty {
        LogicalType::Boolean => DataType::Boolean,
        LogicalType::Int8 => DataType::Int8,
        LogicalType::Int16 => DataType::Int16,
        LogicalType::Int32 => DataType::Int32,
        LogicalType::Int64 => DataType::Int64,
        LogicalType::UInt8 => DataType::UInt8,
        LogicalType::UInt16 => DataType::UInt16,
        LogicalType::UInt32 => DataType::UInt32,
        LogicalType::UInt64 => DataType::UInt64,
        LogicalType::Float32 => DataType::Float32,
        LogicalType::Float64 => DataType::Float64,
        LogicalType::Decimal { precision, scale } => DataType::Decimal128(*precision, *scale),
        LogicalType::Date => DataType::Date32,
        LogicalType::Time(unit) => DataType::Time64(arrow_unit(*unit)),
        LogicalType::Timestamp(unit, zone) => DataType::Timestamp(arrow_unit(*unit), zone.clone()),
        LogicalType::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        LogicalType::Utf8 => DataType::Utf8View,
        LogicalType::Binary => DataType::BinaryView,
        LogicalType::Uuid => DataType::FixedSizeBinary(16),
        LogicalType::List(field) => DataType::List(Arc::new(arrow_field(field))),
        LogicalType::Struct(fields) => DataType::Struct(fields.iter().map(arrow_field).collect()),
    }
}

pub(super) fn arrow_field(field: &Field) -> ArrowField {
    ArrowField::new(&field.name, arrow_type(&field.ty), field.nullable)
}

fn arrow_unit(unit: TimeUnit) -> ArrowUnit {
    match unit {
        TimeUnit::Microsecond => ArrowUnit::Microsecond,
        TimeUnit::Nanosecond => ArrowUnit::Nanosecond,
    }
}
