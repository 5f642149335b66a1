//! Comparing with constants: how one string stands to a constant says how the next one does, but for its suffix.

use super::common_prefix;
use crate::CompareOp;
use crate::condition::BytesCondition;
use crate::pattern::{Automaton, Pattern, START};
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

/// How far a pattern's automaton came with strings, one after the other.
#[derive(Debug)]
pub(crate) struct Reading<'c> {
    automaton: &'c Automaton,
    /// The state before each byte of the last string, and behind it.
    states: Vec<u8>,
}

impl<'c> Reading<'c> {
    /// Before the first string, which stands at a restart point.
    fn new(pattern: &'c Pattern) -> Reading<'c> {
        Reading { automaton: pattern.automaton(), states: vec![START] }
    }

    /// Whether the next string is as the pattern says: what it shares with the last was read with that.
    fn step(&mut self, shared: usize, suffix: &[u8]) -> bool {
        self.states.truncate(shared + 1);
        let mut state = self.states.last().copied().unwrap_or(START);
        for &byte in suffix {
            state = self.automaton.after(state, byte);
            self.states.push(state);
        }
        self.automaton.accepts(state)
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
    /// With a pattern.
    Like(Reading<'c>),
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
            condition => Comparison::Like(Reading::new(condition.pattern()?)),
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
            Comparison::Like(reading) => reading.step(shared, suffix),
        }
    }
}
