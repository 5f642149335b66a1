//! Values handed in as parameters.

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
    /// Exact: unscaled number and digits behind the point.
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

/// Parameters for `?` in a statement: `params![1, "x", None::<i64>]`.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::Value::from($value)),*]
    };
}
