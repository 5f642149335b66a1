//! Comparing with constants: how one string stands to a constant says how the next one does, but for its suffix.

use super::common_prefix;
use crate::CompareOp;
use crate::condition::BytesCondition;
use std::cmp::Ordering;

/// How strings, one after the other, stand to a constant.
#[derive(Debug)]
pub(crate) struct Standing<'c> {
    constant: &'c [u8],
    /// Bytes that the last string has in common with the constant at the start.
    matched: usize,
    /// Of the last string.
    order: Ordering,
}

impl<'c> Standing<'c> {
    /// Before the first string, which stands at a restart point.
    fn new(constant: &'c [u8]) -> Standing<'c> {
        Standing { constant, matched: 0, order: Ordering::Less }
    }

    /// The order of the next string. One that shares more with the last than that did with the constant differs from
    /// the constant where the last did.
    #[inline]
    fn step(&mut self, shared: usize, suffix: &[u8]) -> Ordering {
        if shared <= self.matched {
            let rest = &self.constant[shared..];
            let common = common_prefix(rest, suffix);
            self.matched = shared + common;
            self.order = suffix.get(common).cmp(&rest.get(common));
        }
        self.order
    }
}

/// A test of strings in front coding, which sees them one after the other from a restart point on.
#[derive(Debug)]
pub(crate) enum Comparison<'c> {
    /// With one constant.
    Compare(CompareOp, Standing<'c>),
    /// With the ends of a range.
    Between(Option<Standing<'c>>, Option<Standing<'c>>),
    /// With each of a few constants.
    OneOf(Vec<Standing<'c>>),
    /// With the start.
    Prefix(Standing<'c>),
}

/// Constants that are compared one by one; for more than these, strings are rebuilt and looked up.
const CONSTANTS_MAX: usize = 8;

impl<'c> Comparison<'c> {
    /// The condition as a comparison; `None` where strings must be rebuilt for it.
    pub(crate) fn new(condition: &'c BytesCondition) -> Option<Comparison<'c>> {
        let standing = |constant: &'c Vec<u8>| Standing::new(constant);
        Some(match condition {
            BytesCondition::Compare(op, constant) => Comparison::Compare(*op, standing(constant)),
            BytesCondition::Between(low, high) => {
                Comparison::Between(low.as_ref().map(standing), high.as_ref().map(standing))
            }
            BytesCondition::OneOf(constants) if constants.len() <= CONSTANTS_MAX => {
                Comparison::OneOf(constants.iter().map(standing).collect())
            }
            BytesCondition::Prefix(prefix) => Comparison::Prefix(standing(prefix)),
            BytesCondition::OneOf(_) | BytesCondition::Contains(_) => return None,
        })
    }

    /// Whether the next string passes. Strings that are left out make all answers after them wrong.
    #[inline]
    pub(crate) fn passes(&mut self, shared: usize, suffix: &[u8]) -> bool {
        match self {
            Comparison::Compare(op, standing) => op.admits(standing.step(shared, suffix)),
            Comparison::Between(low, high) => {
                let above = low.as_mut().is_none_or(|low| low.step(shared, suffix).is_ge());
                let below = high.as_mut().is_none_or(|high| high.step(shared, suffix).is_le());
                above & below
            }
            Comparison::OneOf(standings) => {
                standings.iter_mut().fold(false, |found, standing| found | standing.step(shared, suffix).is_eq())
            }
            Comparison::Prefix(standing) => {
                standing.step(shared, suffix);
                standing.matched == standing.constant.len()
            }
        }
    }
}
