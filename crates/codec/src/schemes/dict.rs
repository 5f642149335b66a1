//! Dictionary: each different value once, in order, and a small code per row.
//!
//! PDICT of Zukowski et al., ICDE 2006, section 3, without exceptions: codes and values are parts of their own, so rare
//! values cost what the scheme of the codes makes of them. Values are in order: a range of values is a range of codes.
//! A reader unpacks the values at their first use and keeps them. Following blocks take a dictionary over where it suits
//! them ([`crate::dictionary`]), and store it again.
//!
//! Input: any type. Output: docs/format/codecs/dict.md. Cost: decoding looks each code up; filtering tests each different
//! value once, or a few where a range of many texts is asked for, and then compares codes.

use crate::condition::{BytesCondition, Condition, Prepared};
use crate::dictionary::Dictionary;
use crate::encoder::{Encoder, Role};
use crate::fixed::{Integer, for_fixed, for_integers};
use crate::kernel::{Bounds, Rows, SquareSum, Tally, WideSum, squares_decoded, sum_decoded};
use crate::kernels::{greatest, look_up};
use crate::node::{Cursor, Node, Opened, PAYLOAD_AT};
use crate::picking::pick;
use crate::sample::Sample;
use crate::scheme::{DecodeCost, Reader, Scheme};
use crate::scratch::Scratch;
use crate::values_mut::{Native, ValuesMut};
use crate::{
    Bitmap, CompareOp, Encoded, Error, Narrow, Physical, Predicate, Result, Scalar, VECTOR_LEN, Values, ValuesBuf,
};
use std::ops::Range;
use std::sync::OnceLock;

/// The scheme.
#[derive(Debug)]
pub(crate) struct Dict;

/// Rows a different value must have on average for a dictionary to be worth trying.
const ROWS_PER_VALUE_MIN: usize = 2;

/// Or bytes that texts must have on average, beside which a code is next to nothing,
const LONG_TEXT_BYTES: usize = 64;

/// and of so many of them one that was there before.
const LONG_TEXTS_PER_REPEATED: usize = 9;

/// Texts of more bytes than these are not written only to see what they take.
const WRITTEN_TEXT_BYTES_MAX: usize = 1 << 20;

/// Of fewer texts all are looked at.
const SEARCHED_TEXTS_MIN: usize = 256;

impl Scheme for Dict {
    fn name(&self) -> &'static str {
        "dict"
    }

    fn holds(&self, _physical: Physical) -> bool {
        true
    }

    fn decode_rank(&self) -> u32 {
        4
    }

    fn decode_cost(&self, physical: Physical) -> DecodeCost {
        match physical {
            Physical::Bytes => DecodeCost::of_value(6.0),
            _ => DecodeCost::of_value(0.5),
        }
    }

    fn nests(&self) -> bool {
        true
    }

    fn estimate(&self, sample: &Sample<'_>, encoder: &Encoder<'_>) -> Option<usize> {
        let (counts, rows) = (sample.counts, sample.whole_count());
        let are_long = text_bytes(sample.values()) >= LONG_TEXT_BYTES * sample.values().len();
        let repeated = rows.saturating_sub(counts.distinct);
        if counts.distinct * ROWS_PER_VALUE_MIN > rows && !(are_long && repeated * LONG_TEXTS_PER_REPEATED >= rows) {
            return None;
        }
        let sampled = Dictionary::of(sample.values());
        let values_bytes = entries_bytes(sampled.values.as_values(), counts.distinct, encoder);
        let bits = |entry_count: usize| (usize::BITS - (entry_count - 1).leading_zeros()) as usize;
        let code_bits = bits(counts.distinct.max(sampled.values.len()));
        let codes_bytes = if bits(sampled.values.len()) == code_bits {
            // The codes of the sample are like those of the whole.
            sample.scale(encoder.promise_part(Values::U32(&sampled.codes), Role::Codes))
        } else {
            let run_bytes = counts.runs * (code_bits + RUN_LENGTH_BITS) / 8;
            run_bytes.min(rows * code_bits / 8)
        };
        Some(2 * PAYLOAD_AT + values_bytes as usize + codes_bytes)
    }

    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        if let Some(codes) = encoder.last_dictionary().and_then(|last| last.codes(values)) {
            encoder.part(Values::U32(&codes), Role::Codes, out);
            encoder.last_dictionary_part(out);
            return Ok(());
        }
        let dictionary = Dictionary::of(values);
        encoder.part(Values::U32(&dictionary.codes), Role::Codes, out);
        encoder.dictionary_part(dictionary.values, out);
        Ok(())
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let mut cursor = node.cursor();
        let reader = DictReader::open(&mut cursor, &node)?;
        cursor.finish()?;
        Ok(Box::new(reader))
    }
}

/// Fewer entries say nothing of how near more of them lie to each other.
const ENTRIES_MIN: usize = 64;

/// What a dictionary of `count` entries takes, of which the sample has some. The more there are, the nearer each lies to
/// the one before: what an entry takes falls with each doubling as it fell with the last one in the sample.
fn entries_bytes(sampled: Values<'_>, count: usize, encoder: &Encoder<'_>) -> f64 {
    let bytes = |entries: Values<'_>| match text_bytes(entries) {
        0..WRITTEN_TEXT_BYTES_MAX => encoder.estimate_part(entries, Role::Values),
        _ => encoder.promise_part(entries, Role::Values),
    };
    let per_entry = |entries: Values<'_>| bytes(entries) as f64 / entries.len() as f64;
    let (all, growth) = (per_entry(sampled), count as f64 / sampled.len() as f64);
    if sampled.len() < ENTRIES_MIN || growth <= 1.0 {
        return all * count as f64;
    }
    let of_half = per_entry(sampled.at((0..sampled.len()).step_by(2)).as_values());
    let saved = (of_half - all).max(0.0) * growth.log2();
    (all - saved).max(all / 2.0) * count as f64
}

/// Bytes of texts; none of other values.
fn text_bytes(values: Values<'_>) -> usize {
    match values {
        Values::Bytes(view) => view.data_bytes(),
        _ => 0,
    }
}

/// What the length of a run takes about, for judging runs of codes.
const RUN_LENGTH_BITS: usize = 8;

/// Codes and values: all of a dictionary's payload, the front of a patched one's.
#[derive(Debug)]
pub(super) struct DictReader<'a> {
    codes: Opened<'a>,
    values: Opened<'a>,
    table: OnceLock<ValuesBuf>,
}

/// Values per row asked for from which a few values are picked out rather than all unpacked.
const PICK_FROM: usize = 16;

impl<'a> DictReader<'a> {
    /// Reads codes and values for a node.
    pub(super) fn open(cursor: &mut Cursor<'a>, node: &Node<'a>) -> Result<DictReader<'a>> {
        let (codes, values) = (cursor.part()?, cursor.part()?);
        if codes.physical != Physical::U32 || values.physical != node.physical {
            let what = format!("{} values with {} codes", values.physical.name(), codes.physical.name());
            return Err(cursor.damaged(what));
        }
        if codes.value_count != node.value_count || values.value_count > node.value_count {
            let (codes, values) = (codes.value_count, values.value_count);
            return Err(cursor.damaged(format!("{codes} codes and {values} values for {} rows", node.value_count)));
        }
        Ok(DictReader { codes, values, table: OnceLock::new() })
    }

    /// The schemes of codes and values as text.
    pub(super) fn describe_parts(&self) -> String {
        format!("{}, {}", self.codes.reader.describe(), self.values.reader.describe())
    }

    /// The values in order.
    fn decoded(&self, scratch: &mut Scratch) -> Result<Values<'_>> {
        Ok(self.table(scratch)?.as_values().slice(0..self.values.value_count))
    }

    /// The values in order, and after those of fixed width as many others as a power of two wants.
    fn table(&self, scratch: &mut Scratch) -> Result<&ValuesBuf> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let (physical, count) = (self.values.physical, self.values.value_count);
        let mut table = ValuesBuf::new(physical);
        self.values.decode_into(0..count, &mut table, scratch)?;
        if physical != Physical::Bytes {
            table.push_default(count.next_power_of_two() - count);
        }
        Ok(self.table.get_or_init(|| table))
    }

    /// The codes of the texts that pass, where those are one next to the other and all texts are not unpacked yet: they are in
    /// order, so that a few of them tell.
    fn codes_between(&self, condition: &Condition, scratch: &mut Scratch) -> Result<Option<Range<usize>>> {
        let count = self.values.value_count;
        let Condition::Bytes(condition) = condition else { return Ok(None) };
        if self.table.get().is_some() || count < SEARCHED_TEXTS_MIN {
            return Ok(None);
        }
        let Some([first, end]) = condition.ends() else { return Ok(None) };
        let mut place = |from: usize, below: BytesCondition| {
            let below = Condition::Bytes(below);
            self.values.reader.lower_bound(from..count, &below, Physical::Bytes, scratch)
        };
        let first = first.map_or(Ok(0), |below| place(0, below))?;
        Ok(Some(first..end.map_or(Ok(count), |below| place(first, below))?))
    }

    /// An error unless all codes point into the values.
    fn check<C: Integer + Into<u32>>(&self, codes: &[C]) -> Result<()> {
        let (count, greatest) = (self.values.value_count, greatest(codes).into());
        if greatest as usize >= count && !codes.is_empty() {
            return Err(Error::damaged("dict", format!("code {greatest} of {count} values")));
        }
        Ok(())
    }

    fn look_up<C: Integer + Into<u32>>(&self, codes: &[C], out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        self.check(codes)?;
        match self.table(scratch)?.as_values() {
            Values::Bytes(view) => {
                let ValuesMut::Bytes(buf) = out else { unreachable!("the caller asks for the type of the node") };
                pick(view, codes, buf, "dict")?;
            }
            table => for_fixed!(Values, table, table => look_up(table, codes, Native::slice_mut(out)), _ => ()),
        }
        Ok(())
    }

    /// Codes of at most one vector, in the narrowest form.
    fn load_codes(&self, range: Range<usize>, codes: &mut Encoded, scratch: &mut Scratch) -> Result<()> {
        self.codes.reader.load(range.clone(), Physical::U32, codes, scratch)?;
        let narrow = match codes {
            Encoded::BaseDelta { base: 0, deltas } => std::mem::replace(deltas, Narrow::U8(Vec::new())),
            Encoded::Flat(values) => Narrow::U32(std::mem::take(u32::vec_mut(values))),
            _ => {
                let mut values = ValuesBuf::new(Physical::U32);
                self.codes.decode_into(range, &mut values, scratch)?;
                Narrow::U32(std::mem::take(u32::vec_mut(&mut values)))
            }
        };
        *codes = Encoded::Codes(narrow);
        Ok(())
    }
}

impl Reader for DictReader<'_> {
    fn describe(&self) -> String {
        format!("dict({})", self.describe_parts())
    }

    fn parts(&self) -> Vec<&Opened<'_>> {
        vec![&self.codes, &self.values]
    }

    fn tests_entries(&self) -> bool {
        true
    }

    fn decode(&self, range: Range<usize>, mut out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let mut codes = std::mem::take(&mut scratch.codes);
        let mut start = range.start;
        let mut done = Ok(());
        while start < range.end && done.is_ok() {
            let end = range.end.min((start / VECTOR_LEN + 1) * VECTOR_LEN);
            let out = out.part(start - range.start, end - start);
            done = self.codes.reader.load(start..end, Physical::U32, &mut codes, scratch).and_then(|()| match &codes {
                Encoded::BaseDelta { base: 0, deltas: Narrow::U8(codes) } => self.look_up(codes, out, scratch),
                Encoded::BaseDelta { base: 0, deltas: Narrow::U16(codes) } => self.look_up(codes, out, scratch),
                Encoded::BaseDelta { base: 0, deltas: Narrow::U32(codes) } => self.look_up(codes, out, scratch),
                Encoded::Flat(ValuesBuf::U32(codes)) => self.look_up(codes, out, scratch),
                _ => self.decode_wide(start..end, out, scratch),
            });
            start = end;
        }
        scratch.codes = codes;
        done
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let mut codes = scratch.take_values(Physical::U32);
        let target = ValuesMut::over(&mut codes, Physical::U32, rows.len());
        let gathered = self.codes.reader.gather(rows, target, scratch).and_then(|()| {
            let codes = u32::vec_mut(&mut codes);
            if self.table.get().is_none() && rows.len() * PICK_FROM < self.values.value_count {
                self.check(codes)?;
                return self.values.reader.gather(codes, out, scratch);
            }
            self.look_up(codes, out, scratch)
        });
        scratch.give_values(codes);
        gathered
    }

    fn load(&self, range: Range<usize>, _physical: Physical, out: &mut Encoded, scratch: &mut Scratch) -> Result<()> {
        if let Encoded::Codes(codes) = out {
            let deltas = std::mem::replace(codes, Narrow::U8(Vec::new()));
            *out = Encoded::BaseDelta { base: 0, deltas };
        }
        self.load_codes(range, out, scratch)?;
        match out {
            Encoded::Codes(Narrow::U8(codes)) => self.check(codes),
            Encoded::Codes(Narrow::U16(codes)) => self.check(codes),
            Encoded::Codes(Narrow::U32(codes)) => self.check(codes),
            _ => unreachable!("codes were just loaded"),
        }
    }

    fn prepare(&self, condition: &Condition, scratch: &mut Scratch) -> Result<Prepared> {
        let on_codes = match self.codes_between(condition, scratch)? {
            Some(codes) => Condition::of_codes(codes, self.values.value_count),
            None => {
                let mut passing = Bitmap::default();
                condition.evaluate(self.decoded(scratch)?, &mut passing);
                Condition::on_codes(passing)
            }
        };
        match on_codes {
            decided @ (Condition::Never | Condition::Always) => Ok(Prepared::plain(decided)),
            on_codes => {
                let part = self.codes.prepare(&on_codes, scratch)?;
                Ok(Prepared { part: Some(Box::new(part)), ..Prepared::plain(condition.clone()) })
            }
        }
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
        self.codes.filter(range, part, out, scratch)
    }

    fn sum(&self, rows: &Rows<'_>, physical: Physical, total: &mut WideSum, scratch: &mut Scratch) -> Result<()> {
        if rows.count() < self.values.value_count {
            return sum_decoded(self, rows, physical, total, scratch);
        }
        let counts = self.counts(rows, scratch)?;
        for_integers!(Values, self.decoded(scratch)?, values => {
            values.iter().zip(counts).for_each(|(value, count)| total.add_product(value.wide(), count));
        }, other => unreachable!("{} values have no exact sum", other.physical().name()));
        Ok(())
    }

    fn bounds(&self, rows: &Rows<'_>, _physical: Physical, found: &mut Bounds, scratch: &mut Scratch) -> Result<()> {
        let mut codes = Bounds::default();
        self.codes.reader.bounds(rows, Physical::U32, &mut codes, scratch)?;
        for code in [codes.least, codes.greatest] {
            if let Scalar::Int(code) = code {
                let code = u32::try_from(code).unwrap_or(u32::MAX);
                self.check(&[code])?;
                found.widen(self.decoded(scratch)?.slice(code as usize..code as usize + 1));
            }
        }
        Ok(())
    }

    fn squares(
        &self,
        rows: &Rows<'_>,
        physical: Physical,
        pivot: i128,
        found: &mut SquareSum,
        scratch: &mut Scratch,
    ) -> Result<()> {
        if rows.count() < self.values.value_count {
            return squares_decoded(self, rows, physical, pivot, found, scratch);
        }
        let counts = self.counts(rows, scratch)?;
        for_integers!(Values, self.decoded(scratch)?, values => {
            let pivot = Integer::cut(pivot);
            values.iter().zip(counts).for_each(|(value, count)| found.add(*value, pivot, count));
        }, other => unreachable!("{} values have no exact squares", other.physical().name()));
        Ok(())
    }

    fn tally(&self, rows: &Rows<'_>, _physical: Physical, tally: &mut Tally, scratch: &mut Scratch) -> Result<()> {
        let counts = self.counts(rows, scratch)?;
        let values = self.decoded(scratch)?;
        let mut used = counts.into_iter().enumerate().filter(|(_, count)| *count > 0);
        used.try_for_each(|(code, count)| tally.add(values.slice(code..code + 1), count))
    }

    fn count_entries(&self, rows: &Rows<'_>, counts: &mut Vec<u64>, scratch: &mut Scratch) -> Result<bool> {
        counts.clear();
        counts.resize(self.values.value_count, 0);
        self.codes.reader.count_codes(rows, counts, scratch)?;
        Ok(true)
    }

    fn lower_bound(
        &self,
        range: Range<usize>,
        below: &Condition,
        _physical: Physical,
        scratch: &mut Scratch,
    ) -> Result<usize> {
        let values = self.decoded(scratch)?;
        let (mut first, mut end) = (0, values.len());
        while first < end {
            let middle = first + (end - first) / 2;
            if below.passes(values, middle) { first = middle + 1 } else { end = middle }
        }
        let code = Scalar::Int(first as i128);
        match Condition::new(&Predicate::Compare(CompareOp::Less, code), Physical::U32) {
            Condition::Never => Ok(range.start),
            Condition::Always => Ok(range.end),
            below => self.codes.reader.lower_bound(range, &below, Physical::U32, scratch),
        }
    }

    fn dictionary(&self, scratch: &mut Scratch) -> Result<Option<ValuesBuf>> {
        self.decoded(scratch).map(|values| Some(values.to_buf()))
    }
}

impl DictReader<'_> {
    /// How many of the rows that count have each code.
    fn counts(&self, rows: &Rows<'_>, scratch: &mut Scratch) -> Result<Vec<u64>> {
        let mut counts = Vec::new();
        self.count_entries(rows, &mut counts, scratch)?;
        Ok(counts)
    }

    /// Codes in a form that `load` does not hand out from zero.
    fn decode_wide(&self, range: Range<usize>, out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let mut codes = scratch.take_values(Physical::U32);
        let decoded = self.codes.decode_into(range, &mut codes, scratch);
        let done = decoded.and_then(|()| self.look_up(u32::vec_mut(&mut codes), out, scratch));
        scratch.give_values(codes);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BytesBuf, Choice, block_header, encode};

    #[test]
    fn ranges_of_many_texts_are_found_without_unpacking_them() {
        let bytes = |text: &str| Scalar::Bytes(text.into());
        for (ending, scheme) in [("", "front"), (" and whatever its name is", "fsst")] {
            let text = |row: usize| format!("{:04}{ending}", row * 7919 % 3000 / 2 * 3);
            let strings: Vec<String> = (0..9000).map(text).collect();
            let strings: BytesBuf = strings.iter().map(String::as_bytes).collect();
            let mut block = Vec::new();
            encode(Values::Bytes(strings.view()), None, &Choice::Forced("dict".into()), &mut block).unwrap();
            let header = block_header::read(&block).unwrap();
            let (node, _) = Node::parse(&block[header.header_bytes..], 1).unwrap();
            assert!(
                node.open().unwrap().reader.describe().contains(scheme),
                "{}",
                node.open().unwrap().reader.describe()
            );
            for text in ["", "0", "0003", "0004", "22", "2250", "4497", "4498", "\u{ff}"] {
                let compare = |op| Predicate::Compare(op, bytes(text));
                for predicate in [
                    compare(CompareOp::Equal),
                    compare(CompareOp::Less),
                    compare(CompareOp::LessOrEqual),
                    compare(CompareOp::Greater),
                    compare(CompareOp::GreaterOrEqual),
                    Predicate::Between(bytes(text), bytes("3")),
                    Predicate::Between(Scalar::Null, bytes(text)),
                    Predicate::Between(bytes(text), Scalar::Null),
                    Predicate::Prefix(text.into()),
                ] {
                    let mut cursor = node.cursor();
                    let reader = DictReader::open(&mut cursor, &node).unwrap();
                    let condition = Condition::new(&predicate, Physical::Bytes);
                    let (mut passed, mut expected) = (Bitmap::default(), Bitmap::default());
                    Scratch::with(|scratch| {
                        let prepared = reader.prepare(&condition, scratch).unwrap();
                        if prepared.part.is_none() {
                            passed.extend_with(9000, prepared.condition == Condition::Always);
                            return;
                        }
                        reader.filter(0..9000, &prepared, Physical::Bytes, &mut passed, scratch).unwrap();
                    });
                    condition.evaluate(Values::Bytes(strings.view()), &mut expected);
                    assert_eq!(passed, expected, "{predicate:?} in {}", reader.describe());
                    let is_decided = matches!(condition, Condition::Never | Condition::Always);
                    assert!(reader.table.get().is_none() || is_decided, "{predicate:?} in {}", reader.describe());
                }
            }
        }
    }
}
