//! Tests of integers, vectorised.

use super::Constants;
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
                let first = constants.partition_point(|constant| *constant < K::MIN.wide());
                let end = constants.partition_point(|constant| *constant <= K::MAX.wide());
                match &constants[first..end] {
                    [] => out.extend_with(values.len(), false),
                    held if held.len() <= 2 => push_one_of::<2, _, _>(values, key, held, out),
                    held if held.len() <= COMPARED_CONSTANTS => {
                        push_one_of::<COMPARED_CONSTANTS, _, _>(values, key, held, out);
                    }
                    held => match constants.marks() {
                        Some(marks) => push_tests(values, out, |value| marks.hold(key(value).wide())),
                        None => push_tests(values, out, |value| held.binary_search(&key(value).wide()).is_ok()),
                    },
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
