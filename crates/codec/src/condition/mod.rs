//! A predicate made ready for one physical type: every comparison becomes a range, every float an integer that orders
//! alike. What readers test values against.

mod bytes;
mod constants;
mod float_order;
mod integers;

pub(crate) use bytes::BytesCondition;
pub(crate) use constants::{Constants, Marks};
pub(crate) use float_order::{float_of_order, float_order};
pub(crate) use integers::{COMPARED_CONSTANTS, IntegerCondition};

use crate::fixed::{Integer, for_integers};
use crate::symbol_table::Search;
use crate::{Bitmap, CompareOp, Physical, Predicate, Scalar, Values};
use float_order::{FLOAT_MAX, FLOAT_MIN};
use std::ops::Range;
use std::sync::Arc;

/// A test of values of one physical type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    /// No value passes.
    Never,
    /// Every value passes.
    Always,
    /// Integers.
    Integers(IntegerCondition),
    /// Floats, tested by their [`float_order`].
    Floats(IntegerCondition),
    /// Bytes.
    Bytes(BytesCondition),
}

/// A condition as a reader wants it for each vector.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// On the values of the node itself. `Never` and `Always` need no reader.
    pub(crate) condition: Condition,
    /// On those of the part that is tested in their place: codes for values.
    pub(crate) part: Option<Box<Prepared>>,
    /// Tests of two parts of each value: it is in the range or list of the condition where both of any pair pass.
    pub(crate) pairs: Vec<[Prepared; 2]>,
    /// Which distinct entries of the node (runs) pass, where they were all tested beforehand.
    pub(crate) passing: Bitmap,
    /// What finds a pattern in codes of a symbol table.
    pub(crate) search: Option<Arc<Search>>,
}

impl Prepared {
    /// Without parts.
    pub(crate) fn plain(condition: Condition) -> Prepared {
        Prepared { condition, part: None, pairs: Vec::new(), passing: Bitmap::default(), search: None }
    }
}

impl Condition {
    /// The predicate for values of this type. A comparison with `Null` passes nothing.
    ///
    /// # Panics
    /// When a constant has not the column's type: a mistake of the caller.
    pub(crate) fn new(predicate: &Predicate, physical: Physical) -> Condition {
        if physical == Physical::Bytes {
            return bytes::condition(predicate);
        }
        let order: fn(&Scalar) -> i128 = if physical.is_integer() { integer_order } else { constant_order };
        let (least, greatest) = ends(physical);
        let within = |low: i128, high: i128| Condition::within(physical, low, high);
        match predicate {
            Predicate::Compare(_, Scalar::Null) => Condition::Never,
            Predicate::Compare(op, constant) => {
                let constant = order(constant);
                match op {
                    CompareOp::Equal => within(constant, constant),
                    CompareOp::NotEqual if (least..=greatest).contains(&constant) => {
                        of_numbers(physical, IntegerCondition::Outside(constant, constant))
                    }
                    CompareOp::NotEqual => Condition::Always,
                    CompareOp::Less if constant == i128::MIN => Condition::Never,
                    CompareOp::Less => within(least, constant - 1),
                    CompareOp::LessOrEqual => within(least, constant),
                    CompareOp::Greater if constant == i128::MAX => Condition::Never,
                    CompareOp::Greater => within(constant + 1, greatest),
                    CompareOp::GreaterOrEqual => within(constant, greatest),
                }
            }
            Predicate::Between(low, high) => {
                let low = if low.is_null() { least } else { order(low) };
                let high = if high.is_null() { greatest } else { order(high) };
                within(low, high)
            }
            Predicate::In(constants) => {
                let mut constants: Vec<i128> =
                    constants.iter().filter(|constant| !constant.is_null()).map(order).collect();
                constants.retain(|constant| (least..=greatest).contains(constant));
                constants.sort_unstable();
                constants.dedup();
                Condition::one_of(physical, constants)
            }
            Predicate::Prefix(_) | Predicate::Contains(_) | Predicate::Like(_) => {
                panic!("{predicate:?} on {} values", physical.name())
            }
        }
    }

    /// The numbers of this type from `low` to `high`; of floats these are orders.
    pub(crate) fn within(physical: Physical, low: i128, high: i128) -> Condition {
        let (least, greatest) = ends(physical);
        if low > high || high < least || low > greatest {
            Condition::Never
        } else if low <= least && high >= greatest {
            Condition::Always
        } else {
            of_numbers(physical, IntegerCondition::Within(low.max(least), high.min(greatest)))
        }
    }

    /// These numbers of this type, ascending and each once; of floats these are orders.
    pub(crate) fn one_of(physical: Physical, constants: Vec<i128>) -> Condition {
        match constants[..] {
            [] => Condition::Never,
            [first, .., last] if last.wrapping_sub(first) == constants.len() as i128 - 1 => {
                Condition::within(physical, first, last)
            }
            [only] => Condition::within(physical, only, only),
            _ => of_numbers(physical, IntegerCondition::OneOf(constants.into())),
        }
    }

    /// These of the codes `0..count`.
    pub(crate) fn of_codes(codes: Range<usize>, count: usize) -> Condition {
        match codes {
            codes if codes.is_empty() => Condition::Never,
            Range { start: 0, end } if end == count => Condition::Always,
            Range { start, end } => Condition::Integers(IntegerCondition::Within(start as i128, end as i128 - 1)),
        }
    }

    /// The codes `0..len` that have a set bit in `marked`.
    pub(crate) fn on_codes(marked: Bitmap) -> Condition {
        let count = marked.count_ones();
        let (first, last) = (marked.ones().next(), marked.words().iter().rposition(|&word| word != 0));
        match (first, last) {
            (None, _) | (_, None) => Condition::Never,
            _ if count == marked.len() => Condition::Always,
            (Some(first), Some(last)) => {
                let last = last * 64 + 63 - marked.words()[last].leading_zeros() as usize;
                Condition::Integers(if last - first + 1 == count {
                    IntegerCondition::Within(first as i128, last as i128)
                } else {
                    IntegerCondition::Marked(marked)
                })
            }
        }
    }

    /// Whether the value at `index` passes.
    pub(crate) fn passes(&self, values: Values<'_>, index: usize) -> bool {
        match (self, values) {
            (Condition::Never, _) => false,
            (Condition::Always, _) => true,
            (Condition::Floats(condition), Values::F32(values)) => {
                condition.passes(float_order(f64::from(values[index])).into())
            }
            (Condition::Floats(condition), Values::F64(values)) => condition.passes(float_order(values[index]).into()),
            (Condition::Bytes(condition), Values::Bytes(view)) => condition.passes(view.get(index)),
            (Condition::Integers(condition), values) => for_integers!(Values, values,
                values => condition.passes(values[index].wide()),
                other => panic!("an integer condition on {} values", other.physical().name())),
            (condition, values) => panic!("{condition:?} on {} values", values.physical().name()),
        }
    }

    /// Appends one bit per value to `out`: it passes.
    pub(crate) fn evaluate(&self, values: Values<'_>, out: &mut Bitmap) {
        match (self, values) {
            (Condition::Never, _) => out.extend_with(values.len(), false),
            (Condition::Always, _) => out.extend_with(values.len(), true),
            (Condition::Floats(condition), Values::F32(values)) => {
                condition.evaluate_by(values, |value| float_order(f64::from(value)), out);
            }
            (Condition::Floats(condition), Values::F64(values)) => condition.evaluate_by(values, float_order, out),
            (Condition::Bytes(condition), Values::Bytes(view)) => condition.evaluate(view, out),
            (Condition::Integers(condition), values) => for_integers!(Values, values,
                values => condition.evaluate_by(values, |value| value, out),
                other => panic!("an integer condition on {} values", other.physical().name())),
            (condition, values) => panic!("{condition:?} on {} values", values.physical().name()),
        }
    }
}

fn of_numbers(physical: Physical, condition: IntegerCondition) -> Condition {
    if physical.is_integer() { Condition::Integers(condition) } else { Condition::Floats(condition) }
}

/// Least and greatest number of a type; of floats these are orders.
fn ends(physical: Physical) -> (i128, i128) {
    if physical.is_integer() { bounds(physical) } else { (FLOAT_MIN, FLOAT_MAX) }
}

/// Least and greatest value of an integer type.
fn bounds(physical: Physical) -> (i128, i128) {
    fn of<T: Integer>() -> (i128, i128) {
        (T::MIN.wide(), T::MAX.wide())
    }
    match physical {
        Physical::I8 => of::<i8>(),
        Physical::I16 => of::<i16>(),
        Physical::I32 => of::<i32>(),
        Physical::I64 => of::<i64>(),
        Physical::I128 => of::<i128>(),
        Physical::U8 => of::<u8>(),
        Physical::U16 => of::<u16>(),
        Physical::U32 => of::<u32>(),
        Physical::U64 => of::<u64>(),
        Physical::F32 | Physical::F64 | Physical::Bytes => unreachable!("only for integers"),
    }
}

fn integer_order(scalar: &Scalar) -> i128 {
    match scalar {
        Scalar::Int(value) => *value,
        other => panic!("constant {other:?} for integer values"),
    }
}

fn constant_order(scalar: &Scalar) -> i128 {
    match scalar {
        Scalar::Float(value) => i128::from(float_order(*value)),
        Scalar::Int(value) => i128::from(float_order(*value as f64)),
        other => panic!("constant {other:?} for float values"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_out_of_range_decide_without_looking() {
        let less = |constant| Condition::new(&Predicate::Compare(CompareOp::Less, Scalar::Int(constant)), Physical::U8);
        assert_eq!(less(300), Condition::Always);
        assert_eq!(less(0), Condition::Never);
        assert_eq!(less(5), Condition::Integers(IntegerCondition::Within(0, 4)));
    }

    #[test]
    fn codes_become_a_range_where_they_are_one() {
        let marks =
            |codes: &[usize]| Condition::on_codes(Bitmap::from_bools((0..100).map(|code| codes.contains(&code))));
        assert_eq!(marks(&[]), Condition::Never);
        assert_eq!(marks(&[70, 71, 72]), Condition::Integers(IntegerCondition::Within(70, 72)));
        assert!(matches!(marks(&[1, 3]), Condition::Integers(IntegerCondition::Marked(_))));
    }
}
