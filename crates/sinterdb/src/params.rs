//! Parameters for statements.

/// Parameters for `?` in a statement: `params![1, "x", None::<i64>]`.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::Value::from($value)),*]
    };
}
