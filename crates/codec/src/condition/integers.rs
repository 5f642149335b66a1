//! Tests of integers, vectorised.

use super::{Constants, Marks};
use crate::Bitmap;
use crate::fixed::Integer;
use crate::kernels::push_tests;

/// A test of integers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum IntegerCondition {
    /// `low <= value <= high`
    Within(i128, i128),
    /// Not so.
    Outside(i128, i128),
    /// One of these.
    OneOf(Constants),
    /// Those whose bit is set; values lie in `0..len`. For codes.
    Marked(Bitmap),
}

/// Constants of an IN list up to which comparing with each of them beats a search per value.
pub(crate) const COMPARED_CONSTANTS: usize = 8;

impl IntegerCondition {
    /// Lowest and highest value of a range, and whether it is those outside that pass; `None` for another condition.
    #[inline]
    pub(crate) fn as_range(&self) -> Option<(i128, i128, bool)> {
        match *self {
            IntegerCondition::Within(low, high) => Some((low, high, false)),
            IntegerCondition::Outside(low, high) => Some((low, high, true)),
            IntegerCondition::OneOf(_) | IntegerCondition::Marked(_) => None,
        }
    }

    /// Whether this value passes.
    pub(crate) fn passes(&self, value: i128) -> bool {
        match self {
            IntegerCondition::Within(low, high) => (*low..=*high).contains(&value),
            IntegerCondition::Outside(low, high) => !(*low..=*high).contains(&value),
            IntegerCondition::OneOf(constants) => constants.hold(value),
            IntegerCondition::Marked(marked) => {
                usize::try_from(value).is_ok_and(|code| code < marked.len() && marked.get(code))
            }
        }
    }

    /// Whether all integers from `least` to `greatest` pass (true) or none (false); `None` where some do, or nobody looked.
    pub(crate) fn decides(&self, least: i128, greatest: i128) -> Option<bool> {
        match self {
            IntegerCondition::Within(low, high) if greatest < *low || least > *high => Some(false),
            IntegerCondition::Within(low, high) => (*low <= least && greatest <= *high).then_some(true),
            IntegerCondition::Outside(low, high) => {
                IntegerCondition::Within(*low, *high).decides(least, greatest).map(|passes| !passes)
            }
            IntegerCondition::OneOf(constants) => between(constants, least, greatest).is_empty().then_some(false),
            IntegerCondition::Marked(_) => None,
        }
    }

    /// Appends a bit per value for what `key` makes of it.
    pub(crate) fn evaluate_by<T: Copy, K: Integer>(&self, values: &[T], key: impl Fn(T) -> K, out: &mut Bitmap) {
        match self {
            IntegerCondition::Within(low, high) => {
                if *high < K::MIN.wide() || *low > K::MAX.wide() {
                    return out.extend_with(values.len(), false);
                }
                let (low, high) = (K::cut((*low).max(K::MIN.wide())), K::cut((*high).min(K::MAX.wide())));
                push_tests(values, out, |value| (key(value) >= low) & (key(value) <= high));
            }
            IntegerCondition::Outside(low, high) => {
                if *high < K::MIN.wide() || *low > K::MAX.wide() {
                    return out.extend_with(values.len(), true);
                }
                let (low, high) = (K::cut((*low).max(K::MIN.wide())), K::cut((*high).min(K::MAX.wide())));
                push_tests(values, out, |value| (key(value) < low) | (key(value) > high));
            }
            IntegerCondition::OneOf(constants) => {
                let held = between(constants, K::MIN.wide(), K::MAX.wide());
                // Of a long list, values that lie near each other may meet a few or none.
                let held = if held.len() > COMPARED_CONSTANTS {
                    let none = (K::MAX, K::MIN);
                    let (least, greatest) = values.iter().fold(none, |(least, greatest), value| {
                        let key = key(*value);
                        (least.min(key), greatest.max(key))
                    });
                    between(held, least.wide(), greatest.wide())
                } else {
                    held
                };
                match held {
                    [] => out.extend_with(values.len(), false),
                    held if held.len() <= 2 => push_one_of::<2, _, _>(values, key, held, out),
                    held if held.len() <= COMPARED_CONSTANTS => {
                        push_one_of::<COMPARED_CONSTANTS, _, _>(values, key, held, out);
                    }
                    held => {
                        // Where a list is too wide for marks, what lies among these values may not be.
                        let of_all = constants.marks();
                        let of_held = if of_all.is_none() { Marks::of(held) } else { None };
                        match of_all.or(of_held.as_ref()) {
                            Some(marks) => push_tests(values, out, |value| marks.hold(key(value).wide())),
                            None => push_tests(values, out, |value| held.binary_search(&key(value).wide()).is_ok()),
                        }
                    }
                }
            }
            IntegerCondition::Marked(marked) => {
                let words = marked.words();
                push_tests(values, out, |value| {
                    let code = key(value).to_delta();
                    words.get((code / 64) as usize).is_some_and(|word| word >> (code % 64) & 1 == 1)
                });
            }
        }
    }
}

/// Those of constants that ascend from `low` to `high`.
fn between(constants: &[i128], low: i128, high: i128) -> &[i128] {
    let first = constants.partition_point(|constant| *constant < low);
    let end = constants.partition_point(|constant| *constant <= high);
    &constants[first..end.max(first)]
}

/// Appends a bit per value: its key is one of `constants`, `1..=N` that its type holds.
fn push_one_of<const N: usize, T: Copy, K: Integer>(
    values: &[T],
    key: impl Fn(T) -> K,
    constants: &[i128],
    out: &mut Bitmap,
) {
    let mut wanted = [K::cut(constants[0]); N];
    wanted.iter_mut().zip(constants).for_each(|(wanted, constant)| *wanted = K::cut(*constant));
    push_tests(values, out, |value| {
        let key = key(value);
        wanted.iter().fold(false, |found, wanted| found | (key == *wanted))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_near_each_other_meet_what_is_among_them_of_a_long_list() {
        let far = (0..500).map(|place| 1_000_000 * (place - 250));
        let sorted = |near: std::ops::Range<i128>| {
            let mut constants: Vec<i128> = far.clone().chain(near.map(|place| 3 * place)).collect();
            constants.sort_unstable();
            constants.dedup();
            constants
        };
        // Of those near: none, a few, as many as are compared, more, and some too far apart for marks.
        for near in [0..0, 400..402, 400..400 + COMPARED_CONSTANTS as i128 - 1, 390..420, -4000..4000] {
            let condition = IntegerCondition::OneOf(sorted(near.clone()).into());
            for values in
                [Vec::new(), (1200..1300).rev().collect(), vec![i32::MIN, -11_999, 0, 1206, 6_000_000, i32::MAX]]
            {
                let mut passing = Bitmap::default();
                condition.evaluate_by(&values, |value| value, &mut passing);
                let expected: Vec<bool> = values.iter().map(|value| condition.passes(value.wide())).collect();
                let bits: Vec<bool> = (0..passing.len()).map(|row| passing.get(row)).collect();
                assert_eq!(bits, expected, "{near:?}");
            }
        }
    }
}
