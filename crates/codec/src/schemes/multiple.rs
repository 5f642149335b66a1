//! Multiples: the least value, and how many times a common divisor lies between it and each value.
//!
//! For timestamps of whole seconds kept in microseconds, amounts in whole units kept in cents, numbers of hundreds: what
//! remains of them is small, and goes to the scheme that suits it. A comparison becomes one of what remains.
//!
//! Input: integers of up to 64 bits. Output: docs/format/codecs/multiple.md.
//! Cost: a product and a sum per value on top of the part's scheme; encoding divides by a product.

use crate::condition::{Condition, IntegerCondition, Prepared};
use crate::encoder::{Encoder, Role};
use crate::fixed::{Integer, for_integers};
use crate::kernels::{ExactDivisor, bounds, bounds_of, divide, map_rows, multiply};
use crate::node::{Node, Opened};
use crate::scheme::{DecodeCost, Reader, Scheme, unsuitable};
use crate::scratch::Scratch;
use crate::values_mut::{Native, ValuesMut};
use crate::{Bitmap, Encoded, Narrow, Physical, Result, VECTOR_LEN, Values};
use std::ops::Range;

/// The scheme.
#[derive(Debug)]
pub(crate) struct Multiple;

impl Scheme for Multiple {
    fn name(&self) -> &'static str {
        "multiple"
    }

    fn holds(&self, physical: Physical) -> bool {
        physical.is_integer() && physical != Physical::I128
    }

    fn decode_rank(&self) -> u32 {
        7
    }

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost::of_value(0.1)
    }

    fn nests(&self) -> bool {
        true
    }

    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        let written = match values {
            Values::I128(_) => None,
            values => for_integers!(Values, values, values => encode(values, encoder, out), _ => None),
        };
        written.ok_or_else(|| unsuitable(self, values.physical()))
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let mut cursor = node.cursor();
        let value_bytes = node.physical.value_bytes().unwrap_or(0);
        let mut bytes = [0; size_of::<u128>()];
        bytes[..value_bytes].copy_from_slice(cursor.take(value_bytes, "base")?);
        let base_bits = u128::from_le_bytes(bytes);
        let mut bytes = [0; size_of::<u64>()];
        bytes[..value_bytes].copy_from_slice(cursor.take(value_bytes, "divisor")?);
        let divisor = u64::from_le_bytes(bytes);
        if divisor < 2 {
            return Err(cursor.damaged(format!("multiples of {divisor}")));
        }
        let numbers = cursor.part()?;
        if numbers.physical != node.physical || numbers.value_count != node.value_count {
            let (count, physical) = (numbers.value_count, numbers.physical.name());
            return Err(cursor.damaged(format!("{count} numbers of type {physical} for {} values", node.value_count)));
        }
        cursor.finish()?;
        Ok(Box::new(MultipleReader { base_bits, divisor, numbers }))
    }
}

/// Appends base, divisor and numbers; `None` where the values have no divisor in common.
fn encode<T: Integer>(values: &[T], encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Option<()> {
    if values.is_empty() {
        return None;
    }
    let (base, _) = bounds(values);
    let mut numbers = vec![T::default(); values.len()];
    let mut divisor = common_divisor(0, &values[..values.len().min(VECTOR_LEN)], base);
    let mut done = 0;
    while done < values.len() {
        if divisor < 2 {
            return None;
        }
        let end = values.len().min(done + VECTOR_LEN);
        if divide(&values[done..end], base, ExactDivisor::new(divisor), &mut numbers[done..end]) {
            done = end;
        } else {
            divisor = common_divisor(divisor, &values[done..end], base);
            done = 0;
        }
    }
    base.write(out);
    T::from_delta(divisor).write(out);
    encoder.part(T::values(&numbers), Role::Values, out);
    Some(())
}

/// The greatest number that divides `known` and the distances of all values from `base`; 0 where all are 0.
fn common_divisor<T: Integer>(known: u64, values: &[T], base: T) -> u64 {
    let mut divisor = known;
    for value in values {
        let mut rest = value.sub(base).to_delta();
        while rest != 0 {
            (divisor, rest) = (rest, if divisor == 0 { 0 } else { divisor % rest });
        }
        if divisor == 1 {
            break;
        }
    }
    divisor
}

#[derive(Debug)]
struct MultipleReader<'a> {
    /// Of the least value.
    base_bits: u128,
    divisor: u64,
    numbers: Opened<'a>,
}

impl MultipleReader<'_> {
    fn multiply(&self, out: ValuesMut<'_>) {
        for_integers!(ValuesMut, out, numbers => multiply(numbers, base(self.base_bits), self.divisor), other => {
            unreachable!("{} values are integers", other.physical().name())
        });
    }

    /// The least value, and the greatest of the type.
    fn ends(&self, physical: Physical) -> (i128, i128) {
        fn wide<T: Integer + Native>(bits: u128) -> (i128, i128) {
            (T::from_bits(bits).wide(), T::MAX.wide())
        }
        match physical {
            Physical::I8 => wide::<i8>(self.base_bits),
            Physical::I16 => wide::<i16>(self.base_bits),
            Physical::I32 => wide::<i32>(self.base_bits),
            Physical::I64 => wide::<i64>(self.base_bits),
            Physical::U8 => wide::<u8>(self.base_bits),
            Physical::U16 => wide::<u16>(self.base_bits),
            Physical::U32 => wide::<u32>(self.base_bits),
            _ => wide::<u64>(self.base_bits),
        }
    }

    /// Makes `out` a base and deltas that are multiples of those of `numbers`; false, and nothing happens, where 32 bits do
    /// not hold them.
    fn multiply_deltas(&self, numbers: &Encoded, physical: Physical, out: &mut Encoded) -> bool {
        let (Encoded::BaseDelta { base: first, deltas: numbers }, Ok(divisor)) = (numbers, u32::try_from(self.divisor))
        else {
            return false;
        };
        let Some((_, last)) = bounds_of(numbers.as_values()) else { return false };
        let (base, value_max) = self.ends(physical);
        let reach = last * i128::from(divisor);
        let Some(base) = first.checked_mul(divisor.into()).and_then(|distance| base.checked_add(distance)) else {
            return false;
        };
        if *first < 0 || reach > u32::MAX.into() || base > value_max - reach {
            return false;
        }
        let deltas = out.deltas_above(base);
        match (numbers, reach) {
            (Narrow::U8(numbers), 0..=0xff) => {
                map_rows(numbers, deltas.as_u8(), move |number| number.wrapping_mul(divisor as u8));
            }
            (Narrow::U8(numbers), 0x100..=0xffff) => {
                map_rows(numbers, deltas.as_u16(), move |number| u16::from(number).wrapping_mul(divisor as u16));
            }
            (Narrow::U16(numbers), 0..=0xffff) => {
                map_rows(numbers, deltas.as_u16(), move |number| number.wrapping_mul(divisor as u16));
            }
            (Narrow::U8(numbers), _) => {
                map_rows(numbers, deltas.as_u32(), move |number| u32::from(number).wrapping_mul(divisor));
            }
            (Narrow::U16(numbers), _) => {
                map_rows(numbers, deltas.as_u32(), move |number| u32::from(number).wrapping_mul(divisor));
            }
            (Narrow::U32(numbers), _) => map_rows(numbers, deltas.as_u32(), move |number| number.wrapping_mul(divisor)),
        }
        true
    }

    /// What the numbers of values that pass must be.
    fn on_numbers(&self, condition: &IntegerCondition, physical: Physical) -> Condition {
        let (base, value_max) = self.ends(physical);
        let divisor = i128::from(self.divisor);
        let number_max = (value_max - base) / divisor;
        // Values lie between the base and the greatest of their type, so this has room.
        let within = |low: i128, high: i128| {
            let low = (low.max(base) - base + divisor - 1) / divisor;
            let high = if high < base { -1 } else { (high.min(value_max) - base) / divisor };
            (low, high)
        };
        match condition {
            IntegerCondition::Within(low, high) => match within(*low, *high) {
                (low, high) if low > high => Condition::Never,
                (low, high) if low == 0 && high == number_max => Condition::Always,
                (low, high) => Condition::Integers(IntegerCondition::Within(low, high)),
            },
            IntegerCondition::Outside(low, high) => match within(*low, *high) {
                (low, high) if low > high => Condition::Always,
                (low, high) => Condition::Integers(IntegerCondition::Outside(low, high)),
            },
            IntegerCondition::OneOf(constants) => {
                let distances = constants.iter().filter(|constant| **constant >= base).map(|constant| constant - base);
                let numbers: Vec<i128> =
                    distances.filter(|distance| distance % divisor == 0).map(|distance| distance / divisor).collect();
                match numbers.is_empty() {
                    true => Condition::Never,
                    false => Condition::Integers(IntegerCondition::OneOf(numbers.into())),
                }
            }
            IntegerCondition::Marked(_) => unreachable!("codes are no multiples"),
        }
    }
}

fn base<T: Integer>(bits: u128) -> T {
    T::from_bits(bits)
}

impl Reader for MultipleReader<'_> {
    fn describe(&self) -> String {
        format!("multiple[{}]({})", self.divisor, self.numbers.reader.describe())
    }

    fn parts(&self) -> Vec<&Opened<'_>> {
        vec![&self.numbers]
    }

    fn decode(&self, range: Range<usize>, mut out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let len = range.len();
        self.numbers.reader.decode(range, out.part(0, len), scratch)?;
        self.multiply(out);
        Ok(())
    }

    fn load(&self, range: Range<usize>, physical: Physical, out: &mut Encoded, scratch: &mut Scratch) -> Result<()> {
        let mut numbers = std::mem::take(&mut scratch.codes);
        let loaded = self.numbers.reader.load(range.clone(), physical, &mut numbers, scratch);
        let is_narrow = loaded.is_ok() && self.multiply_deltas(&numbers, physical, out);
        scratch.codes = numbers;
        loaded?;
        if is_narrow {
            return Ok(());
        }
        let len = range.len();
        self.decode(range, ValuesMut::over(out.flat(physical), physical, len), scratch)
    }

    fn gather(&self, rows: &[u32], mut out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        self.numbers.reader.gather(rows, out.part(0, rows.len()), scratch)?;
        self.multiply(out);
        Ok(())
    }

    fn prepare(&self, condition: &Condition, scratch: &mut Scratch) -> Result<Prepared> {
        let Condition::Integers(integers) = condition else { return Ok(Prepared::plain(condition.clone())) };
        let part = match self.on_numbers(integers, self.numbers.physical) {
            decided @ (Condition::Never | Condition::Always) => return Ok(Prepared::plain(decided)),
            on_numbers => self.numbers.prepare(&on_numbers, scratch)?,
        };
        Ok(Prepared { part: Some(Box::new(part)), ..Prepared::plain(condition.clone()) })
    }

    fn filter(
        &self,
        range: Range<usize>,
        prepared: &Prepared,
        _physical: Physical,
        out: &mut Bitmap,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let part = prepared.part.as_deref().expect("prepared by this reader");
        self.numbers.filter(range, part, out, scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Choice, CompareOp, Predicate, Scalar, encode};
    use rand::{Rng, SeedableRng};

    /// Bits that pass, by the block and by the values.
    fn agree(values: &[i64], predicate: &Predicate, passes: impl Fn(i64) -> bool) {
        let mut block = Vec::new();
        encode(Values::I64(values), None, &Choice::Forced("multiple".to_owned()), &mut block).unwrap();
        let block = Block::open(&block).unwrap();
        let mut found = Bitmap::default();
        block.filter(0..values.len(), predicate, &mut found).unwrap();
        let expected = Bitmap::from_bools(values.iter().map(|value| passes(*value)));
        assert_eq!(found, expected, "{predicate:?} on {}", block.describe());
    }

    #[test]
    fn comparisons_are_those_of_the_values() {
        let extremes = [i64::MIN, i64::MIN + 3_000_000, i64::MAX / 3_000_000 * 3_000_000 + i64::MIN % 3_000_000];
        let seconds: Vec<i64> = (0..3000i64).map(|index| 7 + (index * index % 911 - 400) * 3_000_000).collect();
        for values in [&seconds[..], &extremes] {
            let (least, greatest) = (values.iter().min().unwrap(), values.iter().max().unwrap());
            let near = values[values.len() / 2];
            for constant in [near, near + 1, near - 1, *least, *greatest, i64::MIN, i64::MAX, 0] {
                let scalar = Scalar::Int(constant.into());
                let compare = |op| Predicate::Compare(op, scalar.clone());
                agree(values, &compare(CompareOp::Equal), |value| value == constant);
                agree(values, &compare(CompareOp::NotEqual), |value| value != constant);
                agree(values, &compare(CompareOp::Less), |value| value < constant);
                agree(values, &compare(CompareOp::GreaterOrEqual), |value| value >= constant);
                let several = [constant, near, near.wrapping_add(2), *greatest];
                let list = several.iter().map(|value| Scalar::Int((*value).into())).collect();
                agree(values, &Predicate::In(list), |value| several.contains(&value));
            }
        }
    }

    #[test]
    fn whole_seconds_are_found_and_one_that_is_not_ends_it() {
        let mut random = rand::rngs::SmallRng::seed_from_u64(5);
        let mut values: Vec<i64> =
            (0..5000).map(|_| 1_700_000_000_000_000 + random.random_range(0..1_000_000) * 1_000_000).collect();
        let describe = |values: &[i64]| {
            let mut block = Vec::new();
            encode(Values::I64(values), None, &Choice::Auto, &mut block).unwrap();
            Block::open(&block).unwrap().describe()
        };
        assert!(describe(&values).starts_with("multiple[1000000]("), "{}", describe(&values));
        values[4000] += 500_000;
        assert!(describe(&values).starts_with("multiple[500000]("), "{}", describe(&values));
        values[4999] += 1;
        assert!(!describe(&values).starts_with("multiple"), "{}", describe(&values));
    }
}
