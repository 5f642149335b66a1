//! What a column means.

use sinter_codec::Physical;
use std::sync::Arc;

/// The unit in which times are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// 10^-6 s.
    Microsecond,
    /// 10^-9 s.
    Nanosecond,
}

/// A named member of a struct, or the element of a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// As the user wrote it.
    pub name: String,
    /// What it means.
    pub ty: LogicalType,
    /// NULL is allowed.
    pub nullable: bool,
}

/// What the values of a column mean; [`LogicalType::physical`] says how they are kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LogicalType {
    /// `U8`, 0 or 1.
    Boolean,
    /// `I8`.
    Int8,
    /// `I16`.
    Int16,
    /// `I32`.
    Int32,
    /// `I64`.
    Int64,
    /// `U8`.
    UInt8,
    /// `U16`.
    UInt16,
    /// `U32`.
    UInt32,
    /// `U64`.
    UInt64,
    /// `F32`.
    Float32,
    /// `F64`.
    Float64,
    /// Unscaled integer: `I32` to 9 digits, `I64` to 18, `I128` to 38.
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits behind the point.
        scale: i8,
    },
    /// Days since 1970-01-01: `I32`.
    Date,
    /// Since midnight: `I64`.
    Time(TimeUnit),
    /// Since 1970-01-01 00:00 (UTC when there is a zone): `I64`.
    Timestamp(TimeUnit, Option<Arc<str>>),
    /// Months, days, nanoseconds: `I128`, see [`crate::edge`].
    Interval,
    /// UTF-8 text: `Bytes`.
    Utf8,
    /// `Bytes`.
    Binary,
    /// 16 bytes as a big-endian number with the top bit flipped, so that order is kept: `I128`.
    Uuid,
    /// Lengths (`U32`), then the child's segment.
    List(Arc<Field>),
    /// Presence (`U8`, all 1), then each field's segment.
    Struct(Arc<[Field]>),
}

impl LogicalType {
    /// Lists and structs inside one another, at most: a type is no place to exhaust the stack. Readers of schemas hold to
    /// it, so writers have to.
    pub const DEPTH_MAX: usize = 32;

    /// How many lists and structs the innermost value is in.
    pub fn depth(&self) -> usize {
        match self {
            LogicalType::List(field) => 1 + field.ty.depth(),
            LogicalType::Struct(fields) => 1 + fields.iter().map(|field| field.ty.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Whether values are IEEE floats, of either width.
    pub const fn is_float(&self) -> bool {
        matches!(self, LogicalType::Float32 | LogicalType::Float64)
    }

    /// How single values are kept; `None` for lists and structs, which are trees of blocks.
    pub fn physical(&self) -> Option<Physical> {
        Some(match self {
            LogicalType::Boolean | LogicalType::UInt8 => Physical::U8,
            LogicalType::Int8 => Physical::I8,
            LogicalType::Int16 => Physical::I16,
            LogicalType::Int32 | LogicalType::Date => Physical::I32,
            LogicalType::Int64 | LogicalType::Time(_) | LogicalType::Timestamp(..) => Physical::I64,
            LogicalType::UInt16 => Physical::U16,
            LogicalType::UInt32 => Physical::U32,
            LogicalType::UInt64 => Physical::U64,
            LogicalType::Float32 => Physical::F32,
            LogicalType::Float64 => Physical::F64,
            LogicalType::Decimal { precision: ..=9, .. } => Physical::I32,
            LogicalType::Decimal { precision: 10..=18, .. } => Physical::I64,
            LogicalType::Decimal { .. } | LogicalType::Interval | LogicalType::Uuid => Physical::I128,
            LogicalType::Utf8 | LogicalType::Binary => Physical::Bytes,
            LogicalType::List(_) | LogicalType::Struct(_) => return None,
        })
    }
}

impl std::fmt::Display for LogicalType {
    /// The name in SQL.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LogicalType::Boolean => f.write_str("BOOLEAN"),
            LogicalType::Int8 => f.write_str("TINYINT"),
            LogicalType::Int16 => f.write_str("SMALLINT"),
            LogicalType::Int32 => f.write_str("INTEGER"),
            LogicalType::Int64 => f.write_str("BIGINT"),
            LogicalType::UInt8 => f.write_str("TINYINT UNSIGNED"),
            LogicalType::UInt16 => f.write_str("SMALLINT UNSIGNED"),
            LogicalType::UInt32 => f.write_str("INTEGER UNSIGNED"),
            LogicalType::UInt64 => f.write_str("BIGINT UNSIGNED"),
            LogicalType::Float32 => f.write_str("REAL"),
            LogicalType::Float64 => f.write_str("DOUBLE"),
            LogicalType::Decimal { precision, scale } => write!(f, "DECIMAL({precision}, {scale})"),
            LogicalType::Date => f.write_str("DATE"),
            LogicalType::Time(TimeUnit::Microsecond) => f.write_str("TIME(6)"),
            LogicalType::Time(TimeUnit::Nanosecond) => f.write_str("TIME"),
            LogicalType::Timestamp(TimeUnit::Microsecond, None) => f.write_str("TIMESTAMP"),
            LogicalType::Timestamp(TimeUnit::Nanosecond, None) => f.write_str("TIMESTAMP(9)"),
            LogicalType::Timestamp(TimeUnit::Microsecond, Some(_)) => f.write_str("TIMESTAMP WITH TIME ZONE"),
            LogicalType::Timestamp(TimeUnit::Nanosecond, Some(_)) => f.write_str("TIMESTAMP(9) WITH TIME ZONE"),
            LogicalType::Interval => f.write_str("INTERVAL"),
            LogicalType::Utf8 => f.write_str("VARCHAR"),
            LogicalType::Binary => f.write_str("BLOB"),
            LogicalType::Uuid => f.write_str("UUID"),
            LogicalType::List(field) => write!(f, "{}[]", field.ty),
            LogicalType::Struct(fields) => {
                f.write_str("STRUCT<")?;
                for (index, field) in fields.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{} {}", field.name, field.ty)?;
                }
                f.write_str(">")
            }
        }
    }
}
