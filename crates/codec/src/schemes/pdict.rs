//! Patched dictionary: the frequent values once, in order, a small code per row, and the rows that have other values.
//!
//! PDICT of Zukowski et al., ICDE 2006, section 3. We differ in two points. Exceptions are not chained through the
//! codes: their rows and values are parts of their own, so that no exception is compulsory and each part has a scheme
//! that suits it; the code of such a row is the one before, which neither widens codes nor ends a run. And the values
//! are in order: a range of values is a range of codes. What is frequent is found by [`crate::dictionary`].
//!
//! Input: integers and bytes. Output: docs/format/codecs/pdict.md. Cost: that of `dict`, and for each exception a
//! copy. The rows of exceptions are unpacked at their first use, and kept.

use super::dict::DictReader;
use crate::condition::{Condition, Prepared};
use crate::dictionary::{Frequent, Patched};
use crate::encoder::{Encoder, Role};
use crate::fixed::for_fixed;
use crate::kernel::{Bounds, Rows, Tally};
use crate::measure::Counts;
use crate::node::{Node, Opened, PAYLOAD_AT};
use crate::sample::Sample;
use crate::scheme::{DecodeCost, Reader, Scheme, unsuitable};
use crate::scratch::Scratch;
use crate::values_mut::{Native, ValuesMut};
use crate::{Bitmap, BytesBuf, Error, Physical, Result, VECTOR_LEN, Values, ValuesBuf};
use std::ops::Range;
use std::sync::OnceLock;

/// The scheme.
#[derive(Debug)]
pub(crate) struct Pdict;

/// Fewer different values are all in a dictionary.
const DISTINCT_MIN: usize = 32;

/// Exceptions are at most one row in so many, or the values are not what a dictionary is for.
const ROWS_PER_EXCEPTION_MIN: usize = 4;

/// Where a value of the dictionary stands for fewer rows of the sample, others as frequent may not be in it.
const SAMPLED_PER_VALUE_MIN: usize = 16;

impl Scheme for Pdict {
    fn name(&self) -> &'static str {
        "pdict"
    }

    fn holds(&self, physical: Physical) -> bool {
        physical.is_integer() || physical == Physical::Bytes
    }

    fn decode_rank(&self) -> u32 {
        6
    }

    fn decode_cost(&self, physical: Physical) -> DecodeCost {
        match physical {
            Physical::Bytes => DecodeCost::of_value(11.0),
            _ => DecodeCost::of_value(0.9),
        }
    }

    fn nests(&self) -> bool {
        true
    }

    fn estimate(&self, sample: &Sample<'_>, encoder: &Encoder<'_>) -> Option<usize> {
        let (row_count, counts) = (sample.whole_count(), sample.counts);
        if counts.distinct < DISTINCT_MIN || counts.distinct * 2 > row_count {
            return None;
        }
        let values = sample.values();
        let frequent = Frequent::of(values, row_count);
        let exception_count = values.len() - frequent.covered;
        if exception_count == 0 || exception_count * ROWS_PER_EXCEPTION_MIN > values.len() {
            return None;
        }
        // What all values in a dictionary take, or each by itself, by the same formula.
        let distinct_bits = f64::from(usize::BITS - (counts.distinct - 1).leading_zeros());
        let whole_bits = row_count as f64 * distinct_bits + counts.distinct as f64 * frequent.value_bits;
        if frequent.bits > whole_bits.min(row_count as f64 * frequent.value_bits) {
            return None;
        }
        let Patched { codes, positions, exceptions } = Patched::of(values, &frequent.values);
        let scaled = |part_bytes: usize| PAYLOAD_AT + sample.scale(part_bytes.saturating_sub(PAYLOAD_AT));
        // Outside of the sample there are more exceptions than in it, since the dictionary is made of the sample.
        let outside = 1.0 - values.len() as f64 / row_count as f64;
        let more = 1.0 + outside * local_count(&codes, frequent.values.len()) as f64 / exception_count as f64;
        if exception_count as f64 * more * ROWS_PER_EXCEPTION_MIN as f64 > values.len() as f64 {
            return None;
        }
        let exceptional = |part_bytes: usize| (scaled(part_bytes) as f64 * more) as usize;
        Some(
            PAYLOAD_AT
                + scaled(encoder.promise_part(Values::U32(&codes), Role::Codes))
                + encoder.promise_part(frequent.values.as_values(), Role::Values)
                + exceptional(encoder.promise_part(Values::U32(&positions), Role::Counts))
                + exceptional(encoder.promise_part(exceptions.as_values(), Role::Rest)),
        )
    }

    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        if !self.holds(values.physical()) {
            return Err(unsuitable(self, values.physical()));
        }
        let has_few = |patched: &Patched| patched.positions.len() * ROWS_PER_EXCEPTION_MIN <= values.len();
        let last = encoder.last_dictionary().and_then(|last| last.patched(values)).filter(has_few);
        let Patched { positions, exceptions, .. } = match last {
            Some(patched) => {
                encoder.part(Values::U32(&patched.codes), Role::Codes, out);
                encoder.last_dictionary_part(out);
                patched
            }
            None => {
                // Nobody asks for its counts.
                let sample = Sample::new(values, Counts { distinct: 0, runs: 0 });
                let mut frequent = Frequent::of(sample.values(), values.len()).values;
                let is_all = sample.values().len() == values.len();
                if !is_all && frequent.len() * SAMPLED_PER_VALUE_MIN > sample.values().len() {
                    frequent = Frequent::of(values, values.len()).values;
                }
                let patched = Patched::of(values, &frequent);
                encoder.part(Values::U32(&patched.codes), Role::Codes, out);
                encoder.dictionary_part(frequent, out);
                patched
            }
        };
        encoder.part(Values::U32(&positions), Role::Counts, out);
        encoder.part(exceptions.as_values(), Role::Rest, out);
        Ok(())
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let mut cursor = node.cursor();
        let dictionary = DictReader::open(&mut cursor, &node)?;
        let (positions, exceptions) = (cursor.part()?, cursor.part()?);
        if positions.physical != Physical::U32 || exceptions.physical != node.physical {
            let (positions, exceptions) = (positions.physical.name(), exceptions.physical.name());
            return Err(cursor.damaged(format!("{exceptions} exceptions at {positions} positions")));
        }
        if positions.value_count != exceptions.value_count || positions.value_count > node.value_count {
            let (positions, exceptions) = (positions.value_count, exceptions.value_count);
            let what = format!("{exceptions} exceptions at {positions} positions of {} rows", node.value_count);
            return Err(cursor.damaged(what));
        }
        cursor.finish()?;
        let value_count = node.value_count;
        Ok(Box::new(PdictReader { value_count, dictionary, positions, exceptions, places: OnceLock::new() }))
    }
}

/// How many codes are of entries that one vector has and no other: of a value of the next vector we would not know.
fn local_count(codes: &[u32], entry_count: usize) -> usize {
    let mut entries = vec![(u32::MAX, 0, true); entry_count];
    for (vector, codes) in (0..).zip(codes.chunks(VECTOR_LEN)) {
        for &code in codes {
            let (first, count, is_local) = &mut entries[code as usize];
            *is_local &= *first == u32::MAX || *first == vector;
            (*first, *count) = (vector, *count + 1);
        }
    }
    entries.iter().filter(|(.., is_local)| *is_local).map(|(_, count, _)| count).sum()
}

#[derive(Debug)]
struct PdictReader<'a> {
    value_count: usize,
    dictionary: DictReader<'a>,
    positions: Opened<'a>,
    exceptions: Opened<'a>,
    /// The positions as kept once unpacked.
    places: OnceLock<Vec<u32>>,
}

/// Rows that count: which of them have a code that means something, and which exceptions are among them.
struct Apart {
    range: Range<usize>,
    plain: Bitmap,
    indices: Range<usize>,
    counted: Bitmap,
}

impl Apart {
    fn in_dictionary(&self) -> Rows<'_> {
        Rows::marked(self.range.clone(), &self.plain)
    }

    fn exceptional(&self) -> Rows<'_> {
        Rows::marked(self.indices.clone(), &self.counted)
    }
}

impl PdictReader<'_> {
    /// The rows of exceptions, ascending.
    fn places(&self, scratch: &mut Scratch) -> Result<&[u32]> {
        if let Some(places) = self.places.get() {
            return Ok(places);
        }
        let mut places = ValuesBuf::new(Physical::U32);
        self.positions.decode_into(0..self.positions.value_count, &mut places, scratch)?;
        let places = std::mem::take(u32::vec_mut(&mut places));
        let is_ascending = places.windows(2).all(|pair| pair[0] < pair[1]);
        if !is_ascending || places.last().is_some_and(|&last| last as usize >= self.value_count) {
            let what = format!("exceptions in other than ascending rows, or behind row {}", self.value_count);
            return Err(Error::damaged("pdict", what));
        }
        Ok(self.places.get_or_init(|| places))
    }

    /// The exceptions in `range`: their indices.
    fn exceptions_in(&self, range: &Range<usize>, scratch: &mut Scratch) -> Result<Range<usize>> {
        let places = self.places(scratch)?;
        let index_of = |row: usize| places.partition_point(|&place| (place as usize) < row);
        Ok(index_of(range.start)..index_of(range.end))
    }

    /// The rows that count, those of the dictionary and the exceptions by themselves: the codes of these mean nothing.
    fn apart(&self, rows: &Rows<'_>, scratch: &mut Scratch) -> Result<Apart> {
        let indices = self.exceptions_in(&rows.range, scratch)?;
        let (mut plain, mut counted) = (rows.to_bitmap(), Bitmap::default());
        for &place in &self.places(scratch)?[indices.clone()] {
            let slot = place as usize - rows.range.start;
            counted.push(plain.get(slot));
            plain.set(slot, false);
        }
        Ok(Apart { range: rows.range.clone(), plain, indices, counted })
    }

    /// Puts `exceptions` at these places of `out`, ascending. `plain` is what the dictionary gave for all of them, of
    /// which `out` gets the rest, where it is a bytes buffer; else `out` has it already.
    fn patch(
        plain: &ValuesBuf,
        places: impl Iterator<Item = usize>,
        exceptions: Values<'_>,
        out: ValuesMut<'_>,
    ) -> Result<()> {
        match (out, plain, exceptions) {
            (ValuesMut::Bytes(out), ValuesBuf::Bytes(plain), Values::Bytes(exceptions)) => {
                let mut done = 0;
                for (place, exception) in places.zip(exceptions.iter()) {
                    append(plain, done..place, out)?;
                    out.push_decoded(exception, "pdict")?;
                    done = place + 1;
                }
                append(plain, done..plain.view().len(), out)
            }
            (out, _, exceptions) => {
                for_fixed!(Values, exceptions, exceptions => {
                    let out = Native::slice_mut(out);
                    places.zip(exceptions).for_each(|(place, exception)| out[place] = *exception);
                }, _ => unreachable!("all parts have one type"));
                Ok(())
            }
        }
    }
}

/// Appends the strings of `range`.
fn append(plain: &BytesBuf, range: Range<usize>, out: &mut BytesBuf) -> Result<()> {
    let (from, to) = (plain.offsets[range.start] as usize, plain.offsets[range.end] as usize);
    let base = out.data.len();
    if base + to - from > crate::values::DECODED_BYTES_MAX {
        let what = format!("{} bytes decoded at once pass the limit of 1 GiB", base + to - from);
        return Err(Error::damaged("pdict", what));
    }
    out.data.extend_from_slice(&plain.data[from..to]);
    let ends = &plain.offsets[range.start + 1..=range.end];
    out.offsets.extend(ends.iter().map(|&end| (base + end as usize - from) as u32));
    Ok(())
}

impl Reader for PdictReader<'_> {
    fn describe(&self) -> String {
        let (positions, exceptions) = (self.positions.reader.describe(), self.exceptions.reader.describe());
        format!("pdict({}, exceptions {exceptions} at {positions})", self.dictionary.describe_parts())
    }

    fn parts(&self) -> Vec<&Opened<'_>> {
        [self.dictionary.parts(), vec![&self.positions, &self.exceptions]].concat()
    }

    fn tests_entries(&self) -> bool {
        true
    }

    fn decode(&self, range: Range<usize>, mut out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let physical = out.physical();
        let (mut plain, mut exceptions) = (scratch.take_values(physical), scratch.take_values(physical));
        let decoded = Rows::all(range.clone()).vectors().try_for_each(|rows| {
            let (start, len) = (rows.start, rows.len());
            let found = self.exceptions_in(&rows, scratch)?;
            let mut out = out.part(start - range.start, len);
            if found.is_empty() {
                return self.dictionary.decode(rows, out, scratch);
            }
            self.exceptions.decode_into(found.clone(), &mut exceptions, scratch)?;
            let target = match physical {
                Physical::Bytes => ValuesMut::over(&mut plain, physical, len),
                _ => out.part(0, len),
            };
            self.dictionary.decode(rows, target, scratch)?;
            let places = self.places(scratch)?[found].iter().map(|&place| place as usize - start);
            Self::patch(&plain, places, exceptions.as_values(), out)
        });
        scratch.give_values(plain);
        scratch.give_values(exceptions);
        decoded
    }

    fn gather(&self, rows: &[u32], mut out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let places = self.places(scratch)?;
        let (mut slots, mut indices) = (Vec::new(), Vec::new());
        for (slot, row) in rows.iter().enumerate() {
            if let Ok(index) = places.binary_search(row) {
                slots.push(slot);
                indices.push(index as u32);
            }
        }
        if slots.is_empty() {
            return self.dictionary.gather(rows, out, scratch);
        }
        let physical = out.physical();
        let (mut plain, mut exceptions) = (scratch.take_values(physical), scratch.take_values(physical));
        let target = match physical {
            Physical::Bytes => ValuesMut::over(&mut plain, physical, rows.len()),
            _ => out.part(0, rows.len()),
        };
        let gathered = self.dictionary.gather(rows, target, scratch).and_then(|()| {
            let target = ValuesMut::over(&mut exceptions, physical, indices.len());
            self.exceptions.reader.gather(&indices, target, scratch)?;
            Self::patch(&plain, slots.iter().copied(), exceptions.as_values(), out)
        });
        scratch.give_values(plain);
        scratch.give_values(exceptions);
        gathered
    }

    /// Tests each value of the dictionary and each exception once.
    fn prepare(&self, condition: &Condition, scratch: &mut Scratch) -> Result<Prepared> {
        self.places(scratch)?;
        let on_codes = self.dictionary.prepare(condition, scratch)?;
        let mut passing = Bitmap::default();
        let mut values = scratch.take_values(self.exceptions.physical);
        let tested = Rows::all(0..self.exceptions.value_count).vectors().try_for_each(|indices| {
            self.exceptions.decode_into(indices, &mut values, scratch)?;
            condition.evaluate(values.as_values(), &mut passing);
            Ok(())
        });
        scratch.give_values(values);
        tested?;
        match on_codes.condition {
            Condition::Never if !passing.any() => Ok(Prepared::plain(Condition::Never)),
            Condition::Always if passing.all() => Ok(Prepared::plain(Condition::Always)),
            _ => Ok(Prepared { part: Some(Box::new(on_codes)), passing, ..Prepared::plain(condition.clone()) }),
        }
    }

    fn filter(
        &self,
        range: Range<usize>,
        prepared: &Prepared,
        physical: Physical,
        out: &mut Bitmap,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let on_codes = prepared.part.as_deref().expect("prepared by this reader");
        let first_bit = out.len();
        let is_native = match on_codes.condition {
            Condition::Never | Condition::Always => {
                out.extend_with(range.len(), on_codes.condition == Condition::Always);
                true
            }
            _ => self.dictionary.filter(range.clone(), on_codes, physical, out, scratch)?,
        };
        let found = self.exceptions_in(&range, scratch)?;
        for (index, place) in found.clone().zip(&self.places(scratch)?[found]) {
            out.set(first_bit + *place as usize - range.start, prepared.passing.get(index));
        }
        Ok(is_native)
    }

    fn bounds(&self, rows: &Rows<'_>, physical: Physical, found: &mut Bounds, scratch: &mut Scratch) -> Result<()> {
        let apart = self.apart(rows, scratch)?;
        self.dictionary.bounds(&apart.in_dictionary(), physical, found, scratch)?;
        self.exceptions.reader.bounds(&apart.exceptional(), physical, found, scratch)
    }

    fn tally(&self, rows: &Rows<'_>, physical: Physical, tally: &mut Tally, scratch: &mut Scratch) -> Result<()> {
        let apart = self.apart(rows, scratch)?;
        self.dictionary.tally(&apart.in_dictionary(), physical, tally, scratch)?;
        self.exceptions.reader.tally(&apart.exceptional(), physical, tally, scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Choice, CompareOp, Predicate, Scalar, encode};

    /// Four frequent values, and every 20th row another.
    fn skewed(rows: i64) -> Vec<i64> {
        let mixed = |row: i64| (row.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) >> 20).abs();
        (0..rows).map(|row| if row % 20 == 7 { mixed(row) } else { mixed(row) % 4 * 1_000_000_007 }).collect()
    }

    #[test]
    fn a_long_tail_is_left_to_exceptions() {
        let values = skewed(100_000);
        let mut bytes = Vec::new();
        encode(Values::I64(&values), None, &Choice::Auto, &mut bytes).unwrap();
        let description = Block::open(&bytes).unwrap().describe();
        assert!(description.starts_with("pdict(bitpack[2], "), "{description}");
        let strings: Vec<String> = values.iter().map(|value| format!("user {value:x}")).collect();
        let strings: BytesBuf = strings.iter().map(String::as_bytes).collect();
        encode(Values::Bytes(strings.view()), None, &Choice::Auto, &mut bytes).unwrap();
        let len = Block::open(&bytes).unwrap().byte_len();
        let description = Block::open(&bytes[len..]).unwrap().describe();
        assert!(description.starts_with("pdict(bitpack[2], "), "{description}");
    }

    #[test]
    fn filters_know_which_rows_are_exceptions() {
        let values = skewed(5000);
        let mut bytes = Vec::new();
        encode(Values::I64(&values), None, &Choice::Forced("pdict".into()), &mut bytes).unwrap();
        let block = Block::open(&bytes).unwrap();
        for constant in [values[7], values[8], 0, -1, i64::MAX] {
            let constant = Scalar::Int(constant.into());
            for op in [CompareOp::Equal, CompareOp::NotEqual, CompareOp::Less, CompareOp::Greater] {
                let predicate = Predicate::Compare(op, constant.clone());
                for range in [0..5000, 7..8, 1020..2050] {
                    let mut passed = Bitmap::default();
                    assert!(block.filter(range.clone(), &predicate, &mut passed).unwrap());
                    let Scalar::Int(constant) = constant else { unreachable!() };
                    let expected = values[range].iter().map(|value| op.admits(i128::from(*value).cmp(&constant)));
                    assert_eq!(passed, Bitmap::from_bools(expected), "{predicate:?}");
                }
            }
        }
    }
}
