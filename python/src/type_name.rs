//! What an Arrow type is called in SQL, in the words of DESCRIBE.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};

/// The name in SQL; Arrow's own where SQL has none.
pub(crate) fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "NULL".to_owned(),
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INTEGER".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt8 => "TINYINT UNSIGNED".to_owned(),
        DataType::UInt16 => "SMALLINT UNSIGNED".to_owned(),
        DataType::UInt32 => "INTEGER UNSIGNED".to_owned(),
        DataType::UInt64 => "BIGINT UNSIGNED".to_owned(),
        DataType::Float16 | DataType::Float32 => "REAL".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("DECIMAL({precision}, {scale})"),
        DataType::Date32 | DataType::Date64 => "DATE".to_owned(),
        DataType::Time64(TimeUnit::Nanosecond) => "TIME(9)".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".to_owned(),
        DataType::Timestamp(unit, zone) => {
            let digits = match unit {
                TimeUnit::Second => "(0)",
                TimeUnit::Millisecond => "(3)",
                TimeUnit::Microsecond => "(6)",
                TimeUnit::Nanosecond => "",
            };
            format!("TIMESTAMP{digits}{}", if zone.is_some() { " WITH TIME ZONE" } else { "" })
        }
        DataType::Interval(IntervalUnit::YearMonth | IntervalUnit::DayTime | IntervalUnit::MonthDayNano)
        | DataType::Duration(_) => "INTERVAL".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".to_owned(),
        DataType::FixedSizeBinary(16) => "UUID".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "BLOB".to_owned()
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => format!("{}[]", type_name(field.data_type())),
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| format!("{} {}", field.name(), type_name(field.data_type())));
            format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "))
        }
        DataType::Dictionary(_, values) => type_name(values),
        DataType::RunEndEncoded(_, values) => type_name(values.data_type()),
        other => other.to_string(),
    }
}
