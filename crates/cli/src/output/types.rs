//! Names of types, as SQL writes them.

use sinterdb::arrow::datatypes::{DataType, Field, TimeUnit};

/// The SQL name of a column's type, in small letters: `bigint`, `decimal(15,2)`, `varchar[]`.
pub(crate) fn sql_type(field: &Field) -> String {
    if field.extension_type_name() == Some("arrow.uuid") {
        return "uuid".into();
    }
    match field.data_type() {
        DataType::Null => "null".into(),
        DataType::Boolean => "boolean".into(),
        DataType::Int8 => "tinyint".into(),
        DataType::Int16 => "smallint".into(),
        DataType::Int32 => "integer".into(),
        DataType::Int64 => "bigint".into(),
        DataType::UInt8 => "tinyint unsigned".into(),
        DataType::UInt16 => "smallint unsigned".into(),
        DataType::UInt32 => "integer unsigned".into(),
        DataType::UInt64 => "bigint unsigned".into(),
        DataType::Float16 | DataType::Float32 => "real".into(),
        DataType::Float64 => "double".into(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Time64(TimeUnit::Nanosecond) => "time(9)".into(),
        DataType::Time32(_) | DataType::Time64(_) => "time".into(),
        DataType::Timestamp(unit, zone) => timestamp(*unit, zone.is_some()),
        DataType::Duration(_) | DataType::Interval(_) => "interval".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "varchar".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "blob".into(),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => format!("{}[]", sql_type(item)),
        DataType::Struct(fields) => {
            let members: Vec<String> =
                fields.iter().map(|member| format!("{} {}", member.name(), sql_type(member))).collect();
            format!("struct({})", members.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                format!("map({}, {})", sql_type(&fields[0]), sql_type(&fields[1]))
            }
            _ => "map".into(),
        },
        DataType::Dictionary(_, values) => sql_type(&Field::new("", values.as_ref().clone(), true)),
        DataType::RunEndEncoded(_, values) => sql_type(values),
        DataType::Union(..) => "union".into(),
    }
}

/// SQL's default is six digits of a second.
fn timestamp(unit: TimeUnit, has_zone: bool) -> String {
    let digits = match unit {
        TimeUnit::Second => "(0)",
        TimeUnit::Millisecond => "(3)",
        TimeUnit::Microsecond => "",
        TimeUnit::Nanosecond => "(9)",
    };
    format!("timestamp{digits}{}", if has_zone { " with time zone" } else { "" })
}

/// Numbers stand right in their column, so that digits of one weight stand below each other.
pub(crate) fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_number(values),
        DataType::RunEndEncoded(_, values) => is_number(values.data_type()),
        other => other.is_numeric(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn types_have_the_names_that_create_table_takes() {
        let list = DataType::List(Arc::new(Field::new("item", DataType::Int32, true)));
        let nested = DataType::Struct(vec![Field::new("a", list, true), Field::new("b", DataType::Utf8, true)].into());
        assert_eq!(sql_type(&Field::new("x", nested, true)), "struct(a integer[], b varchar)");
        assert_eq!(sql_type(&Field::new("x", DataType::Decimal128(15, 2), true)), "decimal(15,2)");
        let zoned = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
        assert_eq!(sql_type(&Field::new("x", zoned, true)), "timestamp(9) with time zone");
    }
}
