//! Questions that a block can answer about its values without handing them out.

use crate::{Pattern, Scalar};
use std::cmp::Ordering;

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

impl CompareOp {
    /// Whether a value that stands so to the constant passes.
    #[inline]
    pub(crate) fn admits(self, order: Ordering) -> bool {
        match self {
            CompareOp::Equal => order.is_eq(),
            CompareOp::NotEqual => order.is_ne(),
            CompareOp::Less => order.is_lt(),
            CompareOp::LessOrEqual => order.is_le(),
            CompareOp::Greater => order.is_gt(),
            CompareOp::GreaterOrEqual => order.is_ge(),
        }
    }

    /// The same comparison with its sides exchanged.
    pub fn mirrored(self) -> CompareOp {
        match self {
            CompareOp::Less => CompareOp::Greater,
            CompareOp::LessOrEqual => CompareOp::GreaterOrEqual,
            CompareOp::Greater => CompareOp::Less,
            CompareOp::GreaterOrEqual => CompareOp::LessOrEqual,
            CompareOp::Equal | CompareOp::NotEqual => self,
        }
    }
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
    /// Bytes that are as this pattern says.
    Like(Pattern),
}

/// The least bytes that are greater than all that begin with these; `None` where there are none.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut bytes = prefix[..=last].to_vec();
    bytes[last] += 1;
    Some(bytes)
}
