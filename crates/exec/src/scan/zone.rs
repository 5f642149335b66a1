//! What zone maps say about a test, before anything is opened.

use super::test::Test;
use crate::expr::{float_key, holds};
use sinter_codec::{BlockStats, CompareOp, Predicate, Scalar};
use std::cmp::Ordering;

/// How many rows of a group pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    None,
    Some,
    All,
}

impl Test {
    /// The verdict on a group whose columns have these statistics.
    pub(super) fn verdict<'a>(&self, stats: &dyn Fn(usize) -> Option<&'a BlockStats>) -> Verdict {
        match self {
            Test::Never => Verdict::None,
            Test::All(parts) => {
                let verdicts = parts.iter().map(|part| part.verdict(stats));
                verdicts.fold(Verdict::All, |all, one| match (all, one) {
                    (Verdict::None, _) | (_, Verdict::None) => Verdict::None,
                    (Verdict::All, one) => one,
                    (all, _) => all,
                })
            }
            Test::Any(parts) => {
                let verdicts = parts.iter().map(|part| part.verdict(stats));
                verdicts.fold(Verdict::None, |any, one| match (any, one) {
                    (Verdict::All, _) | (_, Verdict::All) => Verdict::All,
                    (Verdict::None, one) => one,
                    (any, _) => any,
                })
            }
            Test::Null { column, negated } => match stats(*column) {
                None => Verdict::Some,
                Some(stats) if stats.null_count == 0 => {
                    if *negated {
                        Verdict::All
                    } else {
                        Verdict::None
                    }
                }
                Some(stats) if stats.null_count == stats.value_count => {
                    if *negated {
                        Verdict::None
                    } else {
                        Verdict::All
                    }
                }
                Some(_) => Verdict::Some,
            },
            Test::Column { column, predicate, negated } => {
                let Some(stats) = stats(*column) else { return Verdict::Some };
                if stats.null_count == stats.value_count {
                    return Verdict::None;
                }
                match (of_present(predicate, stats), negated) {
                    (Verdict::None, false) | (Verdict::All, true) => Verdict::None,
                    (Verdict::All, false) | (Verdict::None, true) if stats.null_count == 0 => Verdict::All,
                    _ => Verdict::Some,
                }
            }
        }
    }
}

/// The verdict on the present values, of which there is one.
fn of_present(predicate: &Predicate, stats: &BlockStats) -> Verdict {
    // NaN is above everything that `max` knows of.
    let min = &stats.min;
    let nan = Scalar::Float(f64::NAN);
    let max = if stats.has_nan { &nan } else { &stats.max };
    match predicate {
        Predicate::Compare(op, constant) => compare(*op, constant, min, max),
        Predicate::Between(low, high) => {
            let above = if low.is_null() { Verdict::All } else { compare(CompareOp::GreaterOrEqual, low, min, max) };
            let below = if high.is_null() { Verdict::All } else { compare(CompareOp::LessOrEqual, high, min, max) };
            match (above, below) {
                (Verdict::None, _) | (_, Verdict::None) => Verdict::None,
                (Verdict::All, Verdict::All) => Verdict::All,
                _ => Verdict::Some,
            }
        }
        Predicate::In(list) => {
            let verdicts = list.iter().map(|constant| compare(CompareOp::Equal, constant, min, max));
            verdicts.fold(Verdict::None, |any, one| match (any, one) {
                (Verdict::All, _) | (_, Verdict::All) => Verdict::All,
                (Verdict::None, one) => one,
                (any, _) => any,
            })
        }
        Predicate::Prefix(prefix) => match (min, max) {
            (_, Scalar::Bytes(max)) if max < prefix => Verdict::None,
            (Scalar::Bytes(min), _) if min > prefix && !min.starts_with(prefix) => Verdict::None,
            // Whatever lies between two texts with a prefix has it too.
            (Scalar::Bytes(min), Scalar::Bytes(max)) if min.starts_with(prefix) && max.starts_with(prefix) => {
                Verdict::All
            }
            _ => Verdict::Some,
        },
        Predicate::Contains(_) | Predicate::Like(_) => Verdict::Some,
    }
}

/// `Null` bounds are unknown.
fn compare(op: CompareOp, constant: &Scalar, min: &Scalar, max: &Scalar) -> Verdict {
    let to_min = (!min.is_null()).then(|| order(min, constant));
    let to_max = (!max.is_null()).then(|| order(max, constant));
    let min_passes = to_min.map(|order| holds(op, order));
    let max_passes = to_max.map(|order| holds(op, order));
    match op {
        CompareOp::Less | CompareOp::LessOrEqual => match (min_passes, max_passes) {
            (Some(false), _) => Verdict::None,
            (_, Some(true)) => Verdict::All,
            _ => Verdict::Some,
        },
        CompareOp::Greater | CompareOp::GreaterOrEqual => match (min_passes, max_passes) {
            (_, Some(false)) => Verdict::None,
            (Some(true), _) => Verdict::All,
            _ => Verdict::Some,
        },
        CompareOp::Equal | CompareOp::NotEqual => {
            let outside = to_min == Some(Ordering::Greater) || to_max == Some(Ordering::Less);
            let always = to_min == Some(Ordering::Equal) && to_max == Some(Ordering::Equal);
            match (outside, always, op) {
                (true, _, CompareOp::Equal) | (_, true, CompareOp::NotEqual) => Verdict::None,
                (_, true, _) | (true, _, _) => Verdict::All,
                _ => Verdict::Some,
            }
        }
    }
}

/// Orders constants of one type as values order; different types, which do not occur, as equal.
pub(super) fn order(left: &Scalar, right: &Scalar) -> Ordering {
    match (left, right) {
        (Scalar::Int(left), Scalar::Int(right)) => left.cmp(right),
        (Scalar::Float(left), Scalar::Float(right)) => float_key(*left).cmp(&float_key(*right)),
        (Scalar::Bytes(left), Scalar::Bytes(right)) => left.cmp(right),
        _ => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(min: f64, max: f64, has_nan: bool) -> BlockStats {
        BlockStats {
            value_count: 10,
            min: Scalar::Float(min),
            max: Scalar::Float(max),
            has_nan,
            bounds_exact: true,
            ..BlockStats::default()
        }
    }

    fn verdict(predicate: Predicate, stats: &BlockStats) -> Verdict {
        Test::Column { column: 0, predicate, negated: false }.verdict(&|_| Some(stats))
    }

    #[test]
    fn nan_is_the_greatest() {
        let compare = |op, constant| Predicate::Compare(op, Scalar::Float(constant));
        assert_eq!(verdict(compare(CompareOp::Greater, 5.0), &floats(0.0, 1.0, false)), Verdict::None);
        assert_eq!(verdict(compare(CompareOp::Greater, 5.0), &floats(0.0, 1.0, true)), Verdict::Some);
        assert_eq!(verdict(compare(CompareOp::LessOrEqual, 5.0), &floats(0.0, 1.0, true)), Verdict::Some);
        assert_eq!(verdict(compare(CompareOp::Equal, f64::NAN), &floats(0.0, 1.0, false)), Verdict::None);
        assert_eq!(verdict(compare(CompareOp::Equal, f64::NAN), &floats(0.0, 1.0, true)), Verdict::Some);
        assert_eq!(verdict(compare(CompareOp::GreaterOrEqual, -0.0), &floats(0.0, 1.0, true)), Verdict::All);
    }

    #[test]
    fn a_block_of_nan_alone_has_no_bounds() {
        let stats = BlockStats { value_count: 3, has_nan: true, ..BlockStats::default() };
        let less = Predicate::Compare(CompareOp::Less, Scalar::Float(0.0));
        assert_eq!(verdict(less, &stats), Verdict::Some);
        assert_eq!(verdict(Predicate::Compare(CompareOp::Greater, Scalar::Float(0.0)), &stats), Verdict::Some);
    }

    #[test]
    fn nulls_keep_a_group_from_passing_whole() {
        let mut stats = floats(0.0, 1.0, false);
        let positive = Predicate::Compare(CompareOp::GreaterOrEqual, Scalar::Float(0.0));
        assert_eq!(verdict(positive.clone(), &stats), Verdict::All);
        stats.null_count = 1;
        assert_eq!(verdict(positive.clone(), &stats), Verdict::Some);
        stats.null_count = 10;
        assert_eq!(verdict(positive, &stats), Verdict::None);
    }

    #[test]
    fn cut_bounds_are_still_bounds() {
        let stats = BlockStats {
            value_count: 2,
            min: Scalar::Bytes(b"abc".to_vec()),
            max: Scalar::Bytes(b"abe".to_vec()),
            bounds_exact: false,
            ..BlockStats::default()
        };
        assert_eq!(verdict(Predicate::Prefix(b"abd".to_vec()), &stats), Verdict::Some);
        assert_eq!(verdict(Predicate::Prefix(b"ab".to_vec()), &stats), Verdict::All);
        assert_eq!(verdict(Predicate::Prefix(b"b".to_vec()), &stats), Verdict::None);
        assert_eq!(verdict(Predicate::Prefix(b"aa".to_vec()), &stats), Verdict::None);
        let text = |text: &[u8]| Scalar::Bytes(text.to_vec());
        assert_eq!(verdict(Predicate::Compare(CompareOp::Equal, text(b"abz")), &stats), Verdict::None);
        assert_eq!(verdict(Predicate::In(vec![text(b"a"), text(b"x")]), &stats), Verdict::None);
    }
}
