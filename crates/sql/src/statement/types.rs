//! Types as they stand in CREATE TABLE.

use super::names::normal;
use crate::{Error, Result};
use arrow::datatypes::{Field as ArrowField, FieldRef};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{ArrayElemTypeDef, DataType, ExactNumberInfo, TimezoneInfo};
use sinter_exec::{Field, LogicalType, TimeUnit, edge};
use std::sync::Arc;

/// Types in CAST and in typed literals: they mean what they mean in CREATE TABLE.
#[derive(Debug)]
pub(crate) struct TypesOfTables;

impl TypePlanner for TypesOfTables {
    /// `None` for what tables cannot hold, which DataFusion may know.
    fn plan_type_field(&self, declared: &DataType) -> datafusion::common::Result<Option<FieldRef>> {
        let known = logical_type(declared).ok();
        Ok(known.map(|ty| Arc::new(ArrowField::new("", edge::arrow_type(&ty), true))))
    }
}

/// What a declared type means to us.
///
/// # Errors
/// [`Error::Sql`] for types that tables cannot hold.
pub(crate) fn logical_type(declared: &DataType) -> Result<LogicalType> {
    Ok(match declared {
        DataType::Boolean | DataType::Bool => LogicalType::Boolean,
        DataType::TinyInt(_) | DataType::Int8(_) if is_one_byte(declared) => LogicalType::Int8,
        DataType::SmallInt(_) | DataType::Int2(_) | DataType::Int16 => LogicalType::Int16,
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) | DataType::Int32 | DataType::MediumInt(_) => {
            LogicalType::Int32
        }
        DataType::BigInt(_) | DataType::Int8(_) | DataType::Int64 => LogicalType::Int64,
        DataType::HugeInt => LogicalType::Decimal { precision: 38, scale: 0 },
        DataType::TinyIntUnsigned(_) | DataType::UTinyInt | DataType::UInt8 => LogicalType::UInt8,
        DataType::SmallIntUnsigned(_) | DataType::Int2Unsigned(_) | DataType::USmallInt | DataType::UInt16 => {
            LogicalType::UInt16
        }
        DataType::IntUnsigned(_)
        | DataType::IntegerUnsigned(_)
        | DataType::Int4Unsigned(_)
        | DataType::MediumIntUnsigned(_)
        | DataType::UInt32 => LogicalType::UInt32,
        DataType::BigIntUnsigned(_) | DataType::Int8Unsigned(_) | DataType::UBigInt | DataType::UInt64 => {
            LogicalType::UInt64
        }
        DataType::Real | DataType::Float4 | DataType::Float32 => LogicalType::Float32,
        DataType::Float(info) => match info {
            ExactNumberInfo::Precision(1..=24) => LogicalType::Float32,
            _ => LogicalType::Float64,
        },
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float8 | DataType::Float64 => LogicalType::Float64,
        DataType::Decimal(info) | DataType::Numeric(info) | DataType::Dec(info) => decimal(info)?,
        DataType::Date | DataType::Date32 => LogicalType::Date,
        DataType::Time(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            // Unlike timestamps, so that TIME literals, which the SQL library counts in nanoseconds, compare.
            LogicalType::Time(unit(precision.or(Some(9))))
        }
        DataType::Timestamp(precision, zone) => {
            let zone = match zone {
                TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => None,
                TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => Some(Arc::from("UTC")),
            };
            LogicalType::Timestamp(unit(*precision), zone)
        }
        DataType::Datetime(precision) => LogicalType::Timestamp(unit(*precision), None),
        DataType::Interval { .. } => LogicalType::Interval,
        DataType::Varchar(_)
        | DataType::CharVarying(_)
        | DataType::CharacterVarying(_)
        | DataType::Nvarchar(_)
        | DataType::Text
        | DataType::String(_)
        | DataType::Char(_)
        | DataType::Character(_) => LogicalType::Utf8,
        DataType::Blob(_) | DataType::Bytea | DataType::Binary(_) | DataType::Varbinary(_) | DataType::Bytes(_) => {
            LogicalType::Binary
        }
        DataType::Uuid => LogicalType::Uuid,
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => LogicalType::List(Arc::new(Field { name: "item".to_owned(), ty: logical_type(element)?, nullable: true })),
        DataType::Struct(fields, _) => {
            let fields = fields.iter().enumerate().map(|(index, field)| {
                let name = field.field_name.as_ref().map_or_else(|| format!("c{index}"), normal);
                Ok(Field { name, ty: logical_type(&field.field_type)?, nullable: true })
            });
            LogicalType::Struct(fields.collect::<Result<Arc<[Field]>>>()?)
        }
        DataType::Custom(name, arguments) => custom(&name.to_string(), arguments, declared)?,
        other => return Err(unsupported(other)),
    })
}

fn unsupported(declared: &DataType) -> Error {
    Error::Sql(format!("type {declared} is not supported; see the README for the types that tables hold"))
}

/// PostgreSQL's INT8 has eight bytes; only TINYINT has one.
fn is_one_byte(declared: &DataType) -> bool {
    matches!(declared, DataType::TinyInt(_))
}

fn unit(precision: Option<u64>) -> TimeUnit {
    match precision {
        Some(7..) => TimeUnit::Nanosecond,
        _ => TimeUnit::Microsecond,
    }
}

fn decimal(info: &ExactNumberInfo) -> Result<LogicalType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => (18, 3),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(precision @ 1..=38), Ok(scale)) if scale >= 0 && scale.cast_unsigned() <= precision => {
            Ok(LogicalType::Decimal { precision, scale })
        }
        _ => Err(Error::Sql(format!(
            "DECIMAL({precision}, {scale}) is out of range; precision is 1 to 38, scale 0 to the precision"
        ))),
    }
}

/// Names that the SQL parser has no word for.
fn custom(name: &str, _arguments: &[String], declared: &DataType) -> Result<LogicalType> {
    Ok(match name.to_uppercase().as_str() {
        "TIMESTAMP_NS" => LogicalType::Timestamp(TimeUnit::Nanosecond, None),
        "TIMESTAMP_US" => LogicalType::Timestamp(TimeUnit::Microsecond, None),
        "UINTEGER" => LogicalType::UInt32,
        "INT1" => LogicalType::Int8,
        "BPCHAR" => LogicalType::Utf8,
        _ => return Err(unsupported(declared)),
    })
}
