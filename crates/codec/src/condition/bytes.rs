//! Tests of byte strings.

use super::Condition;
use crate::needle::Needle;
use crate::{Bitmap, BytesView, CompareOp, Pattern, Predicate, Scalar, after_prefix, at_memory};

/// A test of byte strings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BytesCondition {
    /// `value op constant`
    Compare(CompareOp, Vec<u8>),
    /// Both ends included, either may be open.
    Between(Option<Vec<u8>>, Option<Vec<u8>>),
    /// One of these, ascending.
    OneOf(Vec<Vec<u8>>),
    /// Begins so.
    Prefix(Vec<u8>),
    /// Holds this somewhere. As a pattern, too, unless it is too long.
    Contains(Needle, Option<Pattern>),
    /// As the pattern says.
    Like(Pattern),
}

impl BytesCondition {
    /// Appends one bit per value to `out`: it passes.
    pub(super) fn evaluate(&self, view: BytesView<'_>, out: &mut Bitmap) {
        for value in view.iter() {
            out.push(self.passes(value));
        }
    }

    /// The pattern that values must be as, if it is one that is asked for.
    pub(crate) fn pattern(&self) -> Option<&Pattern> {
        match self {
            BytesCondition::Contains(_, pattern) => pattern.as_ref(),
            BytesCondition::Like(pattern) => Some(pattern),
            _ => None,
        }
    }

    /// Of values in order, what is true of those before the first that passes, and of those before the end of those that do;
    /// `None` for an end that is that of all values. `None` altogether where other values may be between them.
    pub(crate) fn ends(&self) -> Option<[Option<BytesCondition>; 2]> {
        let below = |bytes: &Vec<u8>| Some(BytesCondition::Compare(CompareOp::Less, bytes.clone()));
        let up_to = |bytes: &Vec<u8>| Some(BytesCondition::Compare(CompareOp::LessOrEqual, bytes.clone()));
        Some(match self {
            BytesCondition::Compare(op, constant) => match op {
                CompareOp::Equal => [below(constant), up_to(constant)],
                CompareOp::Less => [None, below(constant)],
                CompareOp::LessOrEqual => [None, up_to(constant)],
                CompareOp::Greater => [up_to(constant), None],
                CompareOp::GreaterOrEqual => [below(constant), None],
                CompareOp::NotEqual => return None,
            },
            BytesCondition::Between(low, high) => [low.as_ref().and_then(below), high.as_ref().and_then(up_to)],
            BytesCondition::Prefix(prefix) => [below(prefix), after_prefix(prefix).as_ref().and_then(below)],
            BytesCondition::OneOf(_) | BytesCondition::Contains(..) | BytesCondition::Like(_) => return None,
        })
    }

    /// Whether this value passes.
    pub(crate) fn passes(&self, value: &[u8]) -> bool {
        match self {
            BytesCondition::Compare(op, constant) => op.admits(value.cmp(at_memory(constant))),
            BytesCondition::Between(low, high) => {
                low.as_ref().is_none_or(|low| value >= at_memory(low))
                    && high.as_ref().is_none_or(|high| value <= at_memory(high))
            }
            BytesCondition::OneOf(constants) => {
                constants.binary_search_by(|constant| at_memory(constant).cmp(value)).is_ok()
            }
            BytesCondition::Prefix(prefix) => value.starts_with(at_memory(prefix)),
            BytesCondition::Contains(needle, _) => needle.find(value).is_some(),
            BytesCondition::Like(pattern) => pattern.matches(value),
        }
    }
}

/// The predicate for byte strings.
pub(super) fn condition(predicate: &Predicate) -> Condition {
    let constant = |scalar: &Scalar| match scalar {
        Scalar::Bytes(bytes) => Some(bytes.clone()),
        Scalar::Null => None,
        other => panic!("constant {other:?} for bytes values"),
    };
    Condition::Bytes(match predicate {
        Predicate::Compare(op, scalar) => match constant(scalar) {
            Some(bytes) => BytesCondition::Compare(*op, bytes),
            None => return Condition::Never,
        },
        Predicate::Between(Scalar::Null, Scalar::Null) => return Condition::Always,
        Predicate::Between(low, high) => BytesCondition::Between(constant(low), constant(high)),
        Predicate::In(constants) => {
            let mut constants: Vec<Vec<u8>> = constants.iter().filter_map(constant).collect();
            constants.sort_unstable();
            constants.dedup();
            if constants.is_empty() {
                return Condition::Never;
            }
            BytesCondition::OneOf(constants)
        }
        Predicate::Prefix(prefix) if prefix.is_empty() => return Condition::Always,
        Predicate::Prefix(prefix) => BytesCondition::Prefix(prefix.clone()),
        Predicate::Contains(needle) if needle.is_empty() => return Condition::Always,
        Predicate::Contains(needle) => BytesCondition::Contains(Needle::new(needle), Pattern::containing(needle)),
        Predicate::Like(pattern) => BytesCondition::Like(pattern.clone()),
    })
}
