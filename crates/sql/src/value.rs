//! Values handed in as parameters, and how they stand in a statement.

use datafusion::sql::sqlparser::ast;

/// A parameter of a statement.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// NULL.
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// Whole numbers, to 38 digits.
    Int(i128),
    /// DOUBLE.
    Float(f64),
    /// Exact: unscaled number of at most 38 digits, and digits behind the point.
    Decimal(i128, u8),
    /// VARCHAR.
    Text(String),
    /// BLOB.
    Blob(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since 1970-01-01 00:00, no zone.
    Timestamp(i64),
    /// Microseconds since 1970-01-01 00:00 UTC.
    TimestampTz(i64),
}

macro_rules! from {
    ($($native:ty => |$value:ident| $make:expr),* $(,)?) => {
        $(impl From<$native> for Value {
            fn from($value: $native) -> Value {
                $make
            }
        })*
    };
}

from! {
    bool => |value| Value::Boolean(value),
    i8 => |value| Value::Int(value.into()),
    i16 => |value| Value::Int(value.into()),
    i32 => |value| Value::Int(value.into()),
    i64 => |value| Value::Int(value.into()),
    i128 => |value| Value::Int(value),
    u8 => |value| Value::Int(value.into()),
    u16 => |value| Value::Int(value.into()),
    u32 => |value| Value::Int(value.into()),
    u64 => |value| Value::Int(value.into()),
    f32 => |value| Value::Float(value.into()),
    f64 => |value| Value::Float(value),
    &str => |value| Value::Text(value.to_owned()),
    String => |value| Value::Text(value),
    &[u8] => |value| Value::Blob(value.to_vec()),
    Vec<u8> => |value| Value::Blob(value),
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

impl Value {
    /// The value as an expression of SQL, typed.
    pub(crate) fn to_sql(&self) -> ast::Expr {
        let text = |text: String| ast::Expr::value(ast::Value::SingleQuotedString(text));
        let typed = |data_type, inner: ast::Expr| ast::Expr::Cast {
            kind: ast::CastKind::Cast,
            expr: Box::new(inner),
            data_type,
            format: None,
            array: false,
        };
        match self {
            Value::Null => ast::Expr::value(ast::Value::Null),
            Value::Boolean(value) => ast::Expr::value(ast::Value::Boolean(*value)),
            Value::Int(value) => number(value.to_string()),
            Value::Float(value) => typed(ast::DataType::DoublePrecision, text(format!("{value:?}"))),
            Value::Decimal(unscaled, scale) => {
                let info = ast::ExactNumberInfo::PrecisionAndScale(38, i64::from(*scale));
                typed(ast::DataType::Decimal(info), text(decimal_text(*unscaled, *scale)))
            }
            Value::Text(value) => text(value.clone()),
            Value::Blob(value) => {
                let digits = value.iter().map(|byte| format!("{byte:02x}")).collect();
                ast::Expr::value(ast::Value::HexStringLiteral(digits))
            }
            Value::Date(days) => {
                let date = arrow::temporal_conversions::date32_to_datetime(*days);
                let date = date.map_or_else(|| days.to_string(), |date| date.format("%Y-%m-%d").to_string());
                typed(ast::DataType::Date, text(date))
            }
            Value::Time(micros) => {
                let time = arrow::temporal_conversions::time64us_to_time(*micros);
                let time = time.map_or_else(|| micros.to_string(), |time| time.format("%H:%M:%S%.6f").to_string());
                typed(ast::DataType::Time(None, ast::TimezoneInfo::None), text(time))
            }
            Value::Timestamp(micros) => {
                typed(ast::DataType::Timestamp(Some(6), ast::TimezoneInfo::None), text(timestamp_text(*micros)))
            }
            Value::TimestampTz(micros) => typed(
                ast::DataType::Timestamp(Some(6), ast::TimezoneInfo::WithTimeZone),
                text(timestamp_text(*micros) + "+00:00"),
            ),
        }
    }
}

fn number(digits: String) -> ast::Expr {
    match digits.strip_prefix('-') {
        Some(positive) => ast::Expr::UnaryOp {
            op: ast::UnaryOperator::Minus,
            expr: Box::new(ast::Expr::value(ast::Value::Number(positive.to_owned(), false))),
        },
        None => ast::Expr::value(ast::Value::Number(digits, false)),
    }
}

fn timestamp_text(micros: i64) -> String {
    match arrow::temporal_conversions::timestamp_us_to_datetime(micros) {
        Some(time) => time.format("%Y-%m-%dT%H:%M:%S%.6f").to_string(),
        None => micros.to_string(),
    }
}

fn decimal_text(unscaled: i128, scale: u8) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::decimal_text;

    #[test]
    fn decimals_keep_their_point() {
        assert_eq!(decimal_text(5, 2), "0.05");
        assert_eq!(decimal_text(-1234, 2), "-12.34");
        assert_eq!(decimal_text(1234, 0), "1234");
    }
}
