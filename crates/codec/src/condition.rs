//! A predicate made ready for one physical type: every comparison becomes a range, every float an integer that orders
//! alike. What readers test values against.

use crate::fixed::{Integer, for_integers};
use crate::{Bitmap, BytesView, CompareOp, Physical, Predicate, Scalar, Values};

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

/// A test of integers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum IntegerCondition {
    /// `low <= value <= high`
    Within(i128, i128),
    /// Not so.
    Outside(i128, i128),
    /// One of these, ascending.
    OneOf(Vec<i128>),
    /// Those whose bit is set; values lie in `0..len`. For codes.
    Marked(Bitmap),
}

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
    /// Holds this somewhere; never empty.
    Contains(Vec<u8>),
}

/// A condition as a reader wants it for each vector.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// On the values of the node itself. `Never` and `Always` need no reader.
    pub(crate) condition: Condition,
    /// On those of the part that is tested in their place: codes for values.
    pub(crate) part: Option<Box<Prepared>>,
    /// Which distinct entries of the node (runs) pass, where they were all tested beforehand.
    pub(crate) passing: Bitmap,
}

impl Prepared {
    /// Without parts.
    pub(crate) fn plain(condition: Condition) -> Prepared {
        Prepared { condition, part: None, passing: Bitmap::default() }
    }
}

impl Condition {
    /// The predicate for values of this type. A comparison with `Null` passes nothing.
    ///
    /// # Panics
    /// When a constant has not the column's type: a mistake of the caller.
    pub(crate) fn new(predicate: &Predicate, physical: Physical) -> Condition {
        if physical == Physical::Bytes {
            return bytes_condition(predicate);
        }
        let order: fn(&Scalar) -> i128 = if physical.is_integer() { integer_order } else { constant_order };
        let (least, greatest) = if physical.is_integer() { bounds(physical) } else { (FLOAT_MIN, FLOAT_MAX) };
        let within = |low: i128, high: i128| {
            if low > high || high < least || low > greatest {
                Condition::Never
            } else if low <= least && high >= greatest {
                Condition::Always
            } else {
                of_numbers(physical, IntegerCondition::Within(low.max(least), high.min(greatest)))
            }
        };
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
                match constants[..] {
                    [] => Condition::Never,
                    [first, .., last] if last.wrapping_sub(first) == constants.len() as i128 - 1 => within(first, last),
                    [only] => within(only, only),
                    _ => of_numbers(physical, IntegerCondition::OneOf(constants)),
                }
            }
            Predicate::Prefix(_) | Predicate::Contains(_) => panic!("{predicate:?} on {} values", physical.name()),
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

impl IntegerCondition {
    /// Whether this value passes.
    pub(crate) fn passes(&self, value: i128) -> bool {
        match self {
            IntegerCondition::Within(low, high) => (*low..=*high).contains(&value),
            IntegerCondition::Outside(low, high) => !(*low..=*high).contains(&value),
            IntegerCondition::OneOf(constants) => constants.binary_search(&value).is_ok(),
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
                push_tests(values, out, |value| constants.binary_search(&key(value).wide()).is_ok());
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

/// Appends one bit per value. The comparison goes into bytes first, which the compiler vectorises; eight bytes of 0 and 1
/// become eight bits by one multiplication.
#[inline]
pub(crate) fn push_tests<T: Copy>(values: &[T], out: &mut Bitmap, test: impl Fn(T) -> bool) {
    const GATHER: u64 = 0x0102_0408_1020_4080;
    for chunk in values.chunks(64) {
        let mut passed = [0u8; 64];
        for (passed, &value) in passed.iter_mut().zip(chunk) {
            *passed = u8::from(test(value));
        }
        let mut word = 0;
        for (index, eight) in passed.chunks_exact(8).enumerate() {
            let eight =
                u64::from_le_bytes([eight[0], eight[1], eight[2], eight[3], eight[4], eight[5], eight[6], eight[7]]);
            word |= (eight.wrapping_mul(GATHER) >> 56) << (8 * index);
        }
        out.push_word(word, chunk.len());
    }
}

impl BytesCondition {
    fn evaluate(&self, view: BytesView<'_>, out: &mut Bitmap) {
        for value in view.iter() {
            out.push(self.passes(value));
        }
    }

    /// Whether this value passes.
    pub(crate) fn passes(&self, value: &[u8]) -> bool {
        match self {
            BytesCondition::Compare(op, constant) => {
                let order = value.cmp(constant);
                match op {
                    CompareOp::Equal => order.is_eq(),
                    CompareOp::NotEqual => order.is_ne(),
                    CompareOp::Less => order.is_lt(),
                    CompareOp::LessOrEqual => order.is_le(),
                    CompareOp::Greater => order.is_gt(),
                    CompareOp::GreaterOrEqual => order.is_ge(),
                }
            }
            BytesCondition::Between(low, high) => {
                low.as_ref().is_none_or(|low| value >= &low[..]) && high.as_ref().is_none_or(|high| value <= &high[..])
            }
            BytesCondition::OneOf(constants) => constants.binary_search_by(|constant| constant[..].cmp(value)).is_ok(),
            BytesCondition::Prefix(prefix) => value.starts_with(prefix),
            BytesCondition::Contains(needle) => contains(value, needle),
        }
    }
}

/// Whether `needle` (never empty) stands somewhere in `value`.
fn contains(value: &[u8], needle: &[u8]) -> bool {
    let mut rest = value;
    while rest.len() >= needle.len() {
        match rest[..=rest.len() - needle.len()].iter().position(|byte| *byte == needle[0]) {
            None => return false,
            Some(at) if rest[at..].starts_with(needle) => return true,
            Some(at) => rest = &rest[at + 1..],
        }
    }
    false
}

fn bytes_condition(predicate: &Predicate) -> Condition {
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
        Predicate::Contains(needle) => BytesCondition::Contains(needle.clone()),
    })
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

/// `float_order` of the least float, minus infinity.
const FLOAT_MIN: i128 = float_order(f64::NEG_INFINITY) as i128;
/// `float_order` of NaN.
const FLOAT_MAX: i128 = i64::MAX as i128;

/// An integer that orders as PostgreSQL orders floats: `-0.0` as `0.0`, NaN above all and equal to itself.
#[inline]
pub(crate) const fn float_order(value: f64) -> i64 {
    let bits = (value + 0.0).to_bits() as i64;
    let ordered = bits ^ ((bits >> 63) as u64 >> 1) as i64;
    if value.is_nan() { i64::MAX } else { ordered }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_order_as_in_postgresql() {
        let ascending = [
            f64::NEG_INFINITY,
            -1e300,
            -1.5,
            -f64::MIN_POSITIVE,
            -5e-324,
            0.0,
            5e-324,
            1.5,
            1e300,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(ascending.windows(2).all(|pair| float_order(pair[0]) < float_order(pair[1])));
        assert_eq!(float_order(-0.0), float_order(0.0));
        assert_eq!(float_order(-f64::NAN), float_order(f64::NAN));
    }

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

    #[test]
    fn a_needle_is_found_anywhere() {
        for (value, needle, found) in [
            ("special requests", "quest", true),
            ("aab", "ab", true),
            ("aa", "aab", false),
            ("", "a", false),
            ("abab", "b", true),
        ] {
            assert_eq!(contains(value.as_bytes(), needle.as_bytes()), found, "{needle} in {value}");
        }
    }
}
