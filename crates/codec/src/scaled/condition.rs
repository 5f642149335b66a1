//! Conditions on floats as conditions on the integers that stand for them.

use super::{Float, Scale};
use crate::condition::{Condition, IntegerCondition, float_order};

/// Constants of an IN list that are translated; longer lists are looked up by value.
const CONSTANTS_MAX: usize = 64;

impl Scale {
    /// The test of integers that those pass whose floats pass `condition`, a test of [`float_order`]s; `None` where there is
    /// none. Holds for integers of which [`Float::has_integer`].
    pub(crate) fn on_integers<F: Float>(self, condition: &IntegerCondition) -> Option<Condition> {
        let within = |low: i128, high: i128| {
            let (first, end) = (self.first::<F>(low), self.first::<F>(high.saturating_add(1)));
            (first < end).then_some((i128::from(first), i128::from(end) - 1))
        };
        Some(match condition {
            IntegerCondition::Within(low, high) => match within(*low, *high) {
                Some((low, high)) => Condition::Integers(IntegerCondition::Within(low, high)),
                None => Condition::Never,
            },
            IntegerCondition::Outside(low, high) => match within(*low, *high) {
                Some((low, high)) => Condition::Integers(IntegerCondition::Outside(low, high)),
                None => Condition::Always,
            },
            IntegerCondition::OneOf(constants) if constants.len() <= CONSTANTS_MAX => {
                let mut integers = Vec::new();
                for (low, high) in constants.iter().filter_map(|constant| within(*constant, *constant)) {
                    // Of singles, several integers may stand for one; a float was given one of them.
                    if high - low >= CONSTANTS_MAX as i128 {
                        return None;
                    }
                    integers.extend(low..=high);
                }
                match integers[..] {
                    [] => Condition::Never,
                    [only] => Condition::Integers(IntegerCondition::Within(only, only)),
                    _ => Condition::Integers(IntegerCondition::OneOf(integers.into())),
                }
            }
            IntegerCondition::OneOf(_) | IntegerCondition::Marked(_) => return None,
        })
    }

    /// The least integer whose float has at least this order, or one more than the greatest.
    fn first<F: Float>(self, order: i128) -> i64 {
        let (mut low, mut high) = (-F::INTEGER_MAX - 1, F::INTEGER_MAX + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut value = [F::default()];
            self.values(&[F::cut(middle)], &mut value);
            if i128::from(float_order(value[0].wide())) < order {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}
