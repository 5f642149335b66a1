//! Questions that a block can answer about its values without handing them out.

use crate::Scalar;

/// Comparison of a column (left) with a constant (right).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A test on single values. A NULL value passes none of them.
///
/// Constants have the column's physical type (`Scalar::Int` for all integers). They need not be in its range:
/// `u8 < Int(300)` holds for every value. Floats order as PostgreSQL does: `-0.0 = 0.0`, NaN equals NaN and is
/// greater than all other values. Bytes compare lexicographically, unsigned.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// `value op constant`
    Compare(CompareOp, Scalar),
    /// `low <= value AND value <= high`; either may be `Null` for an open end.
    Between(Scalar, Scalar),
    /// `value IN (...)`; contains no `Null`.
    In(Vec<Scalar>),
    /// Bytes that begin so.
    Prefix(Vec<u8>),
    /// Bytes that hold this somewhere.
    Contains(Vec<u8>),
}
