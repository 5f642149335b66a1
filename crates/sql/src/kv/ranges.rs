//! Ranges of keys, whatever these are: what a condition lets through, and what a transaction has read.

use super::any_tree::{Key, KeyRef};
use super::{KeyType, KvKey};
use sinter_codec::{CompareOp, Scalar, after_prefix};
use sinter_exec::{Expr, LogicalType};
use std::ops::Bound;

/// Keys from here to there.
pub(crate) type AnyRange = (Bound<Key>, Bound<Key>);

/// All keys.
pub(crate) const ALL_KEYS: AnyRange = (Bound::Unbounded, Bound::Unbounded);

/// Whether all keys of a type are the same whole numbers in another one.
fn keeps_value(key: KeyType, wider: &LogicalType) -> bool {
    let digits = match key {
        KeyType::U32 => 10,
        KeyType::I64 => 19,
        KeyType::U64 => 20,
        KeyType::Bytes | KeyType::Text | KeyType::Columns => return false,
    };
    match wider {
        LogicalType::Int64 | LogicalType::UInt64 => key == KeyType::U32,
        LogicalType::Decimal { precision, scale: 0 } => *precision >= digits,
        _ => false,
    }
}

/// Takes keys out of ranges that a condition does not let through. What is no condition on keys alone lets all through.
pub(super) fn narrow(ranges: &mut Vec<AnyRange>, condition: &Expr, ty: KeyType, is_key_column: &dyn Fn(usize) -> bool) {
    let is_key = |expr: &Expr| match expr {
        Expr::Cast { expr, ty: wider } if keeps_value(ty, wider) => {
            matches!(&**expr, Expr::Column(column) if is_key_column(*column))
        }
        Expr::Column(column) => is_key_column(*column),
        _ => false,
    };
    match condition {
        Expr::And(parts) => parts.iter().for_each(|part| narrow(ranges, part, ty, is_key_column)),
        Expr::Or(parts) => {
            let of_part = |part: &Expr| {
                let mut of_part = vec![ALL_KEYS];
                narrow(&mut of_part, part, ty, is_key_column);
                of_part
            };
            *ranges = intersection(ranges, &union(parts.iter().flat_map(of_part).collect()));
        }
        Expr::Compare(op, left, right) => {
            let (op, value) = match (&**left, &**right) {
                (key, Expr::Literal(value, of)) if is_key(key) && is_whole(of) => (*op, value),
                (Expr::Literal(value, of), key) if is_key(key) && is_whole(of) => (op.mirrored(), value),
                _ => return,
            };
            *ranges = intersection(ranges, &compared(op, value, ty));
        }
        Expr::InList { expr, list, negated: false, .. } if is_key(expr) => {
            let found = list.iter().map(|value| Place::of(value, ty)).collect::<Option<Vec<Place>>>();
            let Some(found) = found else { return };
            let is_there = |place| if let Place::At(key) = place { Some(key) } else { None };
            let mut points: Vec<Key> = found.into_iter().filter_map(is_there).collect();
            points.sort_unstable();
            points.dedup();
            let point = |key: Key| (Bound::Included(key.clone()), Bound::Included(key));
            *ranges = intersection(ranges, &points.into_iter().map(point).collect::<Vec<_>>());
        }
        Expr::Like { expr, pattern, negated: false, case_insensitive: false } if is_key(expr) && ty.is_bytes() => {
            let prefix = pattern.split(['%', '_', '\\']).next().unwrap_or_default().as_bytes();
            let end = after_prefix(prefix).map_or(Bound::Unbounded, |end| Bound::Excluded(Key::Bytes(end)));
            *ranges = intersection(ranges, &[(Bound::Included(Key::Bytes(prefix.to_vec())), end)]);
        }
        _ => {}
    }
}

/// Whether a constant of this type is what it says: the number of a decimal is that of its last digit.
fn is_whole(ty: &LogicalType) -> bool {
    !matches!(ty, LogicalType::Decimal { scale, .. } if *scale != 0)
}

/// Where a value is among the keys of a type.
enum Place {
    Before,
    At(Key),
    After,
}

impl Place {
    /// `None` where it is not to be compared with keys.
    fn of(value: &Scalar, ty: KeyType) -> Option<Place> {
        match value {
            Scalar::Int(value) if !ty.is_bytes() => Some(match ty.encode(KvKey::Int(*value)) {
                Ok(key) => Place::At(key.to_key()),
                Err(_) if *value < 0 => Place::Before,
                Err(_) => Place::After,
            }),
            Scalar::Bytes(value) if ty.is_bytes() => Some(Place::At(Key::Bytes(value.clone()))),
            _ => None,
        }
    }
}

/// The keys that compare so with a value.
fn compared(op: CompareOp, value: &Scalar, ty: KeyType) -> Vec<AnyRange> {
    use CompareOp::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    vec![match (op, Place::of(value, ty)) {
        (_, None) | (NotEqual, _) => ALL_KEYS,
        (Equal, Some(Place::At(key))) => (Bound::Included(key.clone()), Bound::Included(key)),
        (Less, Some(Place::At(key))) => (Bound::Unbounded, Bound::Excluded(key)),
        (LessOrEqual, Some(Place::At(key))) => (Bound::Unbounded, Bound::Included(key)),
        (Greater, Some(Place::At(key))) => (Bound::Excluded(key), Bound::Unbounded),
        (GreaterOrEqual, Some(Place::At(key))) => (Bound::Included(key), Bound::Unbounded),
        (Less | LessOrEqual, Some(Place::After)) | (Greater | GreaterOrEqual, Some(Place::Before)) => ALL_KEYS,
        (Less | LessOrEqual | Equal, Some(Place::Before)) | (Greater | GreaterOrEqual | Equal, Some(Place::After)) => {
            return Vec::new();
        }
    }]
}

/// What is in ranges of both; in each they are in order, and none overlap.
fn intersection(one: &[AnyRange], other: &[AnyRange]) -> Vec<AnyRange> {
    let mut both = Vec::new();
    let (mut ones, mut others) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(one), Some(other)) = (ones.peek(), others.peek()) {
        let end = earlier_end(&one.1, &other.1);
        let is_done = end == one.1;
        let range = (later_start(&one.0, &other.0), end);
        if !is_over(&range) {
            both.push(range);
        }
        if is_done {
            ones.next()
        } else {
            others.next()
        };
    }
    both
}

/// What is in one of these ranges, as ranges in order of which none overlap.
pub(crate) fn union(mut ranges: Vec<AnyRange>) -> Vec<AnyRange> {
    ranges.sort_by(|(one, _), (other, _)| start_rank(one).cmp(&start_rank(other)));
    let mut apart: Vec<AnyRange> = Vec::new();
    for (start, end) in ranges {
        match apart.last_mut() {
            // Those that only touch may stay apart.
            Some((_, last)) if !is_over(&(start.clone(), last.clone())) => {
                if earlier_end(last, &end) == *last {
                    *last = end;
                }
            }
            _ => apart.push((start, end)),
        }
    }
    apart
}

/// The place of a range's start among others.
fn start_rank(start: &Bound<Key>) -> Option<(&Key, bool)> {
    match start {
        Bound::Unbounded => None,
        Bound::Included(key) => Some((key, false)),
        Bound::Excluded(key) => Some((key, true)),
    }
}

fn later_start(one: &Bound<Key>, other: &Bound<Key>) -> Bound<Key> {
    if start_rank(one) >= start_rank(other) { one.clone() } else { other.clone() }
}

fn earlier_end(one: &Bound<Key>, other: &Bound<Key>) -> Bound<Key> {
    match (one, other) {
        (Bound::Unbounded, end) | (end, Bound::Unbounded) => end.clone(),
        (Bound::Included(one_key) | Bound::Excluded(one_key), Bound::Included(key) | Bound::Excluded(key)) => {
            let is_one = one_key < key || (one_key == key && matches!(one, Bound::Excluded(_)));
            if is_one { one.clone() } else { other.clone() }
        }
    }
}

/// Whether a key is behind the end of a range.
pub(super) fn is_behind(key: KeyRef<'_>, end: Bound<KeyRef<'_>>) -> bool {
    match end {
        Bound::Included(end) => key > end,
        Bound::Excluded(end) => key >= end,
        Bound::Unbounded => false,
    }
}

/// Whether no key is in a range.
pub(super) fn is_over<K: Ord>(range: &(Bound<K>, Bound<K>)) -> bool {
    match range {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => start >= end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::RangeBounds;

    /// Of keys from 0 to 9, those in the ranges; none is to be in two of them, nor before those of the range before.
    fn within(ranges: &[AnyRange]) -> Vec<u32> {
        ranges.iter().flat_map(|range| (0..10).filter(|key| range.contains(&Key::U32(*key)))).collect()
    }

    #[test]
    fn ranges_meet_and_join_as_sets_do() {
        let bounds = |at: u32| [Bound::Included(Key::U32(at)), Bound::Excluded(Key::U32(at)), Bound::Unbounded];
        let starts = (0..10).flat_map(bounds);
        let all: Vec<AnyRange> =
            starts.flat_map(|start| (0..10).flat_map(bounds).map(move |end| (start.clone(), end))).collect();
        // Several together, with gaps and without.
        let unions: Vec<Vec<AnyRange>> = (0..all.len())
            .step_by(7)
            .map(|first| union(all.iter().skip(first).step_by(83).cloned().collect()))
            .collect();
        for one in &unions {
            for two in unions.iter().step_by(3) {
                let sets = [within(one), within(two)];
                let expected: Vec<u32> = (0..10).filter(|key| sets.iter().all(|set| set.contains(key))).collect();
                assert_eq!(within(&intersection(one, two)), expected, "{one:?} and {two:?}");
                let expected: Vec<u32> = (0..10).filter(|key| sets.iter().any(|set| set.contains(key))).collect();
                assert_eq!(within(&union([&one[..], two].concat())), expected, "{one:?} or {two:?}");
            }
        }
    }
}
