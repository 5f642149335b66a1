//! Halves: numbers of 128 bits as their upper and lower 64, each in a scheme of its own.
//!
//! For decimals whose values lie more than 64 bits apart, which packed schemes would keep whole. The upper halves of such
//! columns are seldom more than a few bits each, so that all of it takes about the width of the values.
//!
//! Kernels ask the halves: a sum is that of both; a value lies in a range if its upper half lies between those of the ends,
//! or is that of an end and the lower half lies on the right side of it.
//!
//! Input: `i128`. Output: docs/format/codecs/halves.md. Cost: that of both parts, and putting them together.

use crate::condition::{Condition, IntegerCondition, Prepared};
use crate::encoder::{Encoder, Role};
use crate::kernel::{Bounds, Rows, WideSum};
use crate::kernels::bounds;
use crate::node::{Node, Opened};
use crate::scheme::{DecodeCost, Reader, Scheme, filter_decoded, unsuitable};
use crate::scratch::Scratch;
use crate::values_mut::{Native, ValuesMut};
use crate::{Bitmap, Physical, Result, Scalar, Values};
use std::ops::Range;

/// The scheme.
#[derive(Debug)]
pub(crate) struct Halves;

impl Scheme for Halves {
    fn name(&self) -> &'static str {
        "halves"
    }

    fn holds(&self, physical: Physical) -> bool {
        physical == Physical::I128
    }

    fn decode_rank(&self) -> u32 {
        8
    }

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost::of_value(0.85)
    }

    fn nests(&self) -> bool {
        true
    }

    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        let Values::I128(values) = values else { return Err(unsuitable(self, values.physical())) };
        let (least, greatest) = bounds(values);
        if u64::try_from(greatest.wrapping_sub(least) as u128).is_ok() {
            return Err(unsuitable(self, Physical::I128)); // packed schemes need but one number for each
        }
        let upper: Vec<i64> = values.iter().map(|value| (value >> 64) as i64).collect();
        encoder.part(Values::I64(&upper), Role::Values, out);
        let lower: Vec<u64> = values.iter().map(|value| *value as u64).collect();
        encoder.part(Values::U64(&lower), Role::Values, out);
        Ok(())
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let mut cursor = node.cursor();
        let (upper, lower) = (cursor.part()?, cursor.part()?);
        for (half, physical) in [(&upper, Physical::I64), (&lower, Physical::U64)] {
            if half.physical != physical || half.value_count != node.value_count {
                let (count, found) = (half.value_count, half.physical.name());
                let what = format!("{count} halves of type {found}, not {} of {}", node.value_count, physical.name());
                return Err(cursor.damaged(what));
            }
        }
        cursor.finish()?;
        Ok(Box::new(HalvesReader { upper, lower }))
    }
}

#[derive(Debug)]
struct HalvesReader<'a> {
    upper: Opened<'a>,
    lower: Opened<'a>,
}

/// Upper halves of constants up to which a list of them is asked of the halves: each has a pass of its own.
const LISTED_UPPERS_MAX: usize = 4;

/// Where at most one of so many rows is left by its upper half, lower halves are picked out, not all of them asked: to pick
/// one takes about as long as to ask so many that are packed.
const ROWS_PER_PICKED_MIN: usize = 64;

/// The upper and lower half of a value.
fn halves_of(value: i128) -> (i128, i128) {
    (value >> 64, i128::from(value as u64))
}

/// What both halves of values from `low` to `high` must be: those of any pair.
fn pairs_within(low: i128, high: i128) -> Vec<[Condition; 2]> {
    const LOWER_MAX: i128 = u64::MAX as i128;
    let ((low_upper, low_lower), (high_upper, high_lower)) = (halves_of(low), halves_of(high));
    let pair = |uppers: (i128, i128), lowers: (i128, i128)| {
        [Condition::within(Physical::I64, uppers.0, uppers.1), Condition::within(Physical::U64, lowers.0, lowers.1)]
    };
    if low_upper == high_upper {
        return vec![pair((low_upper, low_upper), (low_lower, high_lower))];
    }
    let mut pairs = Vec::with_capacity(3);
    let (mut first_whole, mut last_whole) = (low_upper, high_upper);
    if low_lower > 0 {
        pairs.push(pair((low_upper, low_upper), (low_lower, LOWER_MAX)));
        first_whole += 1;
    }
    if high_lower < LOWER_MAX {
        pairs.push(pair((high_upper, high_upper), (0, high_lower)));
        last_whole -= 1;
    }
    if first_whole <= last_whole {
        pairs.push(pair((first_whole, last_whole), (0, LOWER_MAX)));
    }
    pairs
}

/// [`pairs_within`] for the range or list of a condition; none where it is quicker to put the values together.
fn pairs_of(condition: &IntegerCondition) -> Vec<[Condition; 2]> {
    match condition {
        IntegerCondition::Within(low, high) | IntegerCondition::Outside(low, high) => pairs_within(*low, *high),
        IntegerCondition::OneOf(constants) => {
            let of_upper = |constants: &[i128]| {
                let (upper, _) = halves_of(constants[0]);
                let lowers = constants.iter().map(|constant| halves_of(*constant).1).collect();
                [Condition::within(Physical::I64, upper, upper), Condition::one_of(Physical::U64, lowers)]
            };
            let is_alike = |one: &i128, other: &i128| halves_of(*one).0 == halves_of(*other).0;
            let uppers: Vec<&[i128]> = constants.chunk_by(is_alike).take(LISTED_UPPERS_MAX + 1).collect();
            match uppers.len() {
                ..=LISTED_UPPERS_MAX => uppers.into_iter().map(of_upper).collect(),
                _ => Vec::new(),
            }
        }
        IntegerCondition::Marked(_) => unreachable!("codes are no halves"),
    }
}

impl HalvesReader<'_> {
    /// Sets a bit for each row of `range` of which both halves pass, for any of these pairs. Returns true when no value
    /// was decoded for it but those few that were picked out.
    fn mark_pairs(
        &self,
        range: &Range<usize>,
        pairs: &[[Prepared; 2]],
        passing: &mut Bitmap,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let (mut of_upper, mut of_lower) = (scratch.take_bits(), scratch.take_bits());
        let marked = pairs.iter().try_fold(true, |is_native, [upper, lower]| {
            of_upper.reset(0, false);
            let mut stays_native = is_native & self.upper.filter(range.clone(), upper, &mut of_upper, scratch)?;
            let count = of_upper.count_ones();
            if lower.condition == Condition::Always {
                // The upper halves have said all.
            } else if range.is_empty() || count * ROWS_PER_PICKED_MIN > range.len() {
                // Of no rows, too, where only the answer about decoding is wanted.
                of_lower.reset(0, false);
                stays_native &= self.lower.filter(range.clone(), lower, &mut of_lower, scratch)?;
                of_upper.and(&of_lower);
            } else if count > 0 {
                self.keep_by_lower(range.start, &lower.condition, &mut of_upper, scratch)?;
            }
            passing.or(&of_upper);
            Ok(stays_native)
        });
        scratch.give_bits(of_upper);
        scratch.give_bits(of_lower);
        marked
    }

    /// Takes the bits of rows, of which there are few from `start` on, whose lower half does not pass.
    fn keep_by_lower(
        &self,
        start: usize,
        condition: &Condition,
        bits: &mut Bitmap,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (mut rows, mut lowers) = (std::mem::take(&mut scratch.rows), scratch.take_values(Physical::U64));
        rows.clear();
        rows.extend(bits.ones().map(|place| (start + place) as u32));
        scratch.decoded_values += rows.len();
        let out = ValuesMut::over(&mut lowers, Physical::U64, rows.len());
        let gathered = self.lower.reader.gather(&rows, out, scratch);
        if gathered.is_ok() {
            for (index, row) in rows.iter().enumerate() {
                bits.set(*row as usize - start, condition.passes(lowers.as_values(), index));
            }
        }
        scratch.rows = rows;
        scratch.give_values(lowers);
        gathered
    }

    /// Least and greatest of the lower halves of the rows that count and have this upper one.
    fn lower_bounds(&self, upper: i128, rows: &Rows<'_>, scratch: &mut Scratch) -> Result<Bounds> {
        let prepared = self.upper.prepare(&Condition::within(Physical::I64, upper, upper), scratch)?;
        let mut marks = scratch.take_bits();
        let mut found = Bounds::default();
        let asked = self.upper.filter(rows.range.clone(), &prepared, &mut marks, scratch).and_then(|_| {
            rows.keep_counted(&mut marks);
            let rows = Rows::marked(rows.range.clone(), &marks);
            self.lower.reader.bounds(&rows, Physical::U64, &mut found, scratch)
        });
        scratch.give_bits(marks);
        asked.map(|()| found)
    }

    /// Has `read` write each half of so many values, and puts them together.
    fn join(
        out: ValuesMut<'_>,
        len: usize,
        scratch: &mut Scratch,
        halves: [&Opened<'_>; 2],
        read: impl Fn(&Opened<'_>, ValuesMut<'_>, &mut Scratch) -> Result<()>,
    ) -> Result<()> {
        let (mut upper, mut lower) = (scratch.take_values(Physical::I64), scratch.take_values(Physical::U64));
        let joined = read(halves[0], ValuesMut::over(&mut upper, Physical::I64, len), scratch)
            .and_then(|()| read(halves[1], ValuesMut::over(&mut lower, Physical::U64, len), scratch))
            .map(|()| {
                let halves = i64::vec_mut(&mut upper).iter().zip(u64::vec_mut(&mut lower));
                for (slot, (upper, lower)) in i128::slice_mut(out).iter_mut().zip(halves) {
                    *slot = i128::from(*upper) << 64 | i128::from(*lower);
                }
            });
        scratch.give_values(upper);
        scratch.give_values(lower);
        joined
    }
}

impl Reader for HalvesReader<'_> {
    fn describe(&self) -> String {
        format!("halves({}, {})", self.upper.reader.describe(), self.lower.reader.describe())
    }

    fn parts(&self) -> Vec<&Opened<'_>> {
        vec![&self.upper, &self.lower]
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let mut left = i128::slice_mut(out);
        Rows::all(range).vectors().try_for_each(|part| {
            let (slots, rest) = std::mem::take(&mut left).split_at_mut(part.len());
            left = rest;
            let halves = [&self.upper, &self.lower];
            Self::join(ValuesMut::I128(slots), part.len(), scratch, halves, |half, out, scratch| {
                half.reader.decode(part.clone(), out, scratch)
            })
        })
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let halves = [&self.upper, &self.lower];
        Self::join(out, rows.len(), scratch, halves, |half, out, scratch| half.reader.gather(rows, out, scratch))
    }

    fn prepare(&self, condition: &Condition, scratch: &mut Scratch) -> Result<Prepared> {
        let mut prepared = Prepared::plain(condition.clone());
        if let Condition::Integers(integers) = condition {
            for [upper, lower] in pairs_of(integers) {
                prepared.pairs.push([self.upper.prepare(&upper, scratch)?, self.lower.prepare(&lower, scratch)?]);
            }
            // Upper halves that are decoded to be asked are decoded once, not for each pair.
            if let [[upper, _], _, ..] = &prepared.pairs[..]
                && !self.upper.filter(0..0, upper, &mut Bitmap::default(), scratch)?
            {
                prepared.pairs.clear();
            }
        }
        Ok(prepared)
    }

    fn filter(
        &self,
        range: Range<usize>,
        prepared: &Prepared,
        physical: Physical,
        out: &mut Bitmap,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        if prepared.pairs.is_empty() {
            filter_decoded(self, range, &prepared.condition, physical, out, scratch)?;
            return Ok(false);
        }
        let mut passing = scratch.take_bits();
        passing.reset(range.len(), false);
        let marked = self.mark_pairs(&range, &prepared.pairs, &mut passing, scratch);
        if let Condition::Integers(IntegerCondition::Outside(..)) = prepared.condition {
            passing.invert();
        }
        if marked.is_ok() {
            out.extend(&passing);
        }
        scratch.give_bits(passing);
        marked
    }

    fn sum(&self, rows: &Rows<'_>, _physical: Physical, total: &mut WideSum, scratch: &mut Scratch) -> Result<()> {
        self.lower.reader.sum(rows, Physical::U64, total, scratch)?;
        let mut uppers = WideSum::default();
        self.upper.reader.sum(rows, Physical::I64, &mut uppers, scratch)?;
        total.add_shifted(uppers.to_i128().expect("a block has less than 2^32 values, of 64 bits each"));
        Ok(())
    }

    fn bounds(&self, rows: &Rows<'_>, _physical: Physical, found: &mut Bounds, scratch: &mut Scratch) -> Result<()> {
        let mut uppers = Bounds::default();
        self.upper.reader.bounds(rows, Physical::I64, &mut uppers, scratch)?;
        let Bounds { least: Scalar::Int(least), greatest: Scalar::Int(greatest) } = uppers else { return Ok(()) };
        if found.hold(least << 64, greatest << 64 | i128::from(u64::MAX)) {
            return Ok(());
        }
        let (of_least, of_greatest) = if least == greatest {
            let mut lowers = Bounds::default();
            self.lower.reader.bounds(rows, Physical::U64, &mut lowers, scratch)?;
            (lowers.least, lowers.greatest)
        } else {
            let of_least = self.lower_bounds(least, rows, scratch)?.least;
            (of_least, self.lower_bounds(greatest, rows, scratch)?.greatest)
        };
        if let (Scalar::Int(of_least), Scalar::Int(of_greatest)) = (of_least, of_greatest) {
            found.widen_integers(least << 64 | of_least, greatest << 64 | of_greatest);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Bitmap, Block, Choice, CompareOp, Predicate, Scalar, Span, Values, encode};
    use rand::{Rng, SeedableRng};

    #[test]
    fn halves_answer_as_the_values_do() {
        let mut random = rand::rngs::SmallRng::seed_from_u64(11);
        // Uppers that several share, with lowers at both ends.
        let mut any = || {
            let lower = [0, 1, u64::MAX, u64::MAX - 1, random.random()][random.random_range(0..5)];
            // One upper half is rare: of those few rows, lower halves are picked out.
            let upper = if random.random_range(0..400) == 0 { 7 } else { random.random_range(-2..3) };
            i128::from(upper) << 64 | i128::from(lower)
        };
        let values: Vec<i128> = (0..1500).map(|_| any()).chain([i128::MIN, i128::MAX]).collect();
        let ends = [i128::MIN, i128::MAX, 7 << 64, 8 << 64, (8 << 64) - 1];
        let rare = values.iter().copied().filter(|value| value >> 64 == 7);
        let mut constants: Vec<i128> = ends.into_iter().chain(rare).collect();
        assert!(constants.len() > ends.len());
        let marks = Bitmap::from_bools(values.iter().enumerate().map(|(row, value)| row % 3 == 1 && *value >= 0));
        let mut bytes = Vec::new();
        encode(Values::I128(&values), None, &Choice::Forced("halves".to_owned()), &mut bytes).unwrap();
        let block = Block::open(&bytes).unwrap();
        let check = |predicate: Predicate, passes: &dyn Fn(i128) -> bool| {
            for range in [0..values.len(), 3..1030, 9..9] {
                let mut found = Bitmap::default();
                block.filter(range.clone(), &predicate, &mut found).unwrap();
                let expected = Bitmap::from_bools(values[range.clone()].iter().map(|value| passes(*value)));
                assert_eq!(found, expected, "{predicate:?} on {range:?} of {}", block.describe());
            }
        };
        constants.extend((0..200).map(|_| any()));
        for one in constants {
            let other = any();
            let scalar = Scalar::Int(one);
            check(Predicate::Compare(CompareOp::Equal, scalar.clone()), &|value| value == one);
            check(Predicate::Compare(CompareOp::NotEqual, scalar.clone()), &|value| value != one);
            check(Predicate::Compare(CompareOp::Less, scalar.clone()), &|value| value < one);
            check(Predicate::Compare(CompareOp::GreaterOrEqual, scalar.clone()), &|value| value >= one);
            check(Predicate::Between(scalar, Scalar::Int(other)), &|value| (one..=other).contains(&value));
            let listed: Vec<i128> = (0..1 + one as u8 % 8).map(|_| any()).chain([one, one.saturating_add(1)]).collect();
            let list = listed.iter().copied().map(Scalar::Int).collect();
            check(Predicate::In(list), &|value| listed.contains(&value));
        }
        for (start, end) in [(0, values.len()), (3, 1030), (7, 7)] {
            let some = marks.slice(start..end);
            let chosen = || (start..end).filter(|row| marks.get(*row)).map(|row| values[row]);
            let scalar = |value: Option<i128>| value.map_or(Scalar::Null, Scalar::Int);
            assert_eq!(block.min(&Span::marked(start..end, &some)).unwrap(), scalar(chosen().min()));
            assert_eq!(block.max(&Span::marked(start..end, &some)).unwrap(), scalar(chosen().max()));
            assert_eq!(block.min(&Span::from(start..end)).unwrap(), scalar(values[start..end].iter().min().copied()));
        }
    }

    #[test]
    fn wide_decimals_take_their_width() {
        let mut random = rand::rngs::SmallRng::seed_from_u64(7);
        let values: Vec<i128> = (0..10_000).map(|_| random.random::<i128>() >> 48).collect();
        let mut bytes = Vec::new();
        encode(Values::I128(&values), None, &Choice::Auto, &mut bytes).unwrap();
        let block = Block::open(&bytes).unwrap();
        assert!(block.describe().starts_with("halves("), "{}", block.describe());
        assert!(bytes.len() < 10_000 * 81 / 8, "{} bytes", bytes.len());
    }
}
