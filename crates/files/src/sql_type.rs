//! The SQL names of the Arrow types that columns of files can have.

use super::{FileError, Result};
use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};

/// Names and types; the first name of a type is the one that messages use.
const NAMES: &[(&str, DataType)] = &[
    ("BOOLEAN", DataType::Boolean),
    ("BOOL", DataType::Boolean),
    ("TINYINT", DataType::Int8),
    ("SMALLINT", DataType::Int16),
    ("INTEGER", DataType::Int32),
    ("INT", DataType::Int32),
    ("BIGINT", DataType::Int64),
    ("UTINYINT", DataType::UInt8),
    ("USMALLINT", DataType::UInt16),
    ("UINTEGER", DataType::UInt32),
    ("UBIGINT", DataType::UInt64),
    ("REAL", DataType::Float32),
    ("FLOAT", DataType::Float32),
    ("DOUBLE", DataType::Float64),
    ("DOUBLE PRECISION", DataType::Float64),
    ("DATE", DataType::Date32),
    ("TIME", DataType::Time64(TimeUnit::Microsecond)),
    ("TIME_NS", DataType::Time64(TimeUnit::Nanosecond)),
    ("TIMESTAMP", DataType::Timestamp(TimeUnit::Microsecond, None)),
    ("TIMESTAMP_NS", DataType::Timestamp(TimeUnit::Nanosecond, None)),
    ("INTERVAL", DataType::Interval(IntervalUnit::MonthDayNano)),
    ("VARCHAR", DataType::Utf8),
    ("TEXT", DataType::Utf8),
    ("STRING", DataType::Utf8),
    ("BLOB", DataType::Binary),
    ("BYTEA", DataType::Binary),
    ("UUID", DataType::FixedSizeBinary(16)),
];

/// The type called `name`.
///
/// # Errors
/// No type has this name.
pub(crate) fn parse(name: &str) -> Result<DataType> {
    let name = name.trim();
    let upper = name.to_ascii_uppercase();
    if let Some(element) = name.strip_suffix("[]") {
        return Ok(DataType::List(Field::new_list_field(parse(element)?, true).into()));
    }
    match upper.as_str() {
        "TIMESTAMPTZ" | "TIMESTAMP WITH TIME ZONE" => {
            return Ok(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
        }
        "DECIMAL" | "NUMERIC" => return Ok(DataType::Decimal128(18, 3)),
        _ => {}
    }
    let (head, parameters) = upper.split_once('(').unwrap_or((upper.as_str(), ""));
    match head.trim() {
        "DECIMAL" | "NUMERIC" => {
            let (precision, scale) = parameters.trim_end_matches(')').split_once(',').unwrap_or((parameters, "0"));
            match (precision.trim_end_matches(')').trim().parse(), scale.trim().parse()) {
                (Ok(precision), Ok(scale))
                    if (1..=38).contains(&precision) && (0..=precision as i8).contains(&scale) =>
                {
                    Ok(DataType::Decimal128(precision, scale))
                }
                _ => Err(unknown(name)),
            }
        }
        "VARCHAR" | "CHAR" => Ok(DataType::Utf8),
        _ => NAMES
            .iter()
            .find(|(known, _)| *known == upper)
            .map(|(_, data_type)| data_type.clone())
            .ok_or_else(|| unknown(name)),
    }
}

fn unknown(name: &str) -> FileError {
    FileError::Option(format!("unknown type '{name}'; for example BIGINT, DOUBLE, DECIMAL(10,2), VARCHAR, TIMESTAMP"))
}

/// What SQL calls `data_type`, for messages.
pub(crate) fn name(data_type: &DataType) -> String {
    match data_type {
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "TIMESTAMPTZ".to_string(),
        DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => "TIMESTAMPTZ_NS".to_string(),
        DataType::List(field) => format!("{}[]", name(field.data_type())),
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| format!("{} {}", field.name(), name(field.data_type())));
            format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "))
        }
        _ => match NAMES.iter().find(|(_, known)| known == data_type) {
            Some((name, _)) => (*name).to_string(),
            None => data_type.to_string(),
        },
    }
}

/// `text` cut at the commas that stand outside brackets and quotes.
pub(crate) fn split_outside_brackets(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut quoted) = (0, 0usize, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\'' => quoted = !quoted,
            b'(' if !quoted => depth += 1,
            b')' if !quoted => depth = depth.saturating_sub(1),
            b',' if !quoted && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if start < text.len() {
        parts.push(&text[start..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_types_agree() {
        for name_given in ["BIGINT", "DECIMAL(10,2)", "TIMESTAMPTZ", "VARCHAR", "DOUBLE[]", "UUID", "TIMESTAMP_NS"] {
            assert_eq!(name(&parse(name_given).unwrap()), name_given);
        }
        assert_eq!(parse(" numeric(5) ").unwrap(), DataType::Decimal128(5, 0));
        assert_eq!(parse("varchar(20)").unwrap(), DataType::Utf8);
        for wrong in ["", "WORD", "DECIMAL(39,0)", "DECIMAL(3,4)", "DECIMAL(x)"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
