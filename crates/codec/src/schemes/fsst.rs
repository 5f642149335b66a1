//! FSST: strings as codes of a table of frequent symbols, each string readable alone.
//!
//! The table and its training are in [`crate::symbol_table`]. Equality is tested on the codes: a constant is encoded
//! once with the block's table and then compared. A prefix is tested by decoding no further than it reaches, and LIKE
//! by an automaton that reads symbols. How many characters a string has is the sum of what its symbols have.
//!
//! Input: bytes. Output: docs/format/codecs/fsst.md. Cost: encoding trains a table on up to 256 KB, in 10 to 25 ms, then
//! matches at 100 to 500 MB/s; decoding copies 16 bytes per code. Reading one string unpacks the lengths of its vector.

use crate::condition::{BytesCondition, Condition, Prepared};
use crate::encoder::{Encoder, Role};
use crate::node::{Node, Opened, PAYLOAD_AT};
use crate::sample::Sample;
use crate::scheme::{DecodeCost, Reader, Scheme, filter_decoded, unsuitable};
use crate::scratch::Scratch;
use crate::symbol_table::{
    CharacterCounts, EncodedTexts, SymbolTable, code_capacity, packed_bytes, sample, sort_needles,
};
use crate::values_mut::ValuesMut;
use crate::{Bitmap, BytesBuf, CompareOp, Error, Physical, Result, VECTOR_LEN, Values, ValuesBuf};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The scheme.
#[derive(Debug)]
pub(crate) struct Fsst;

/// Text to train on. A quarter of it costs TPC-H comments 11 to 14 % in size; twice as much gains 1 to 3 %.
const TRAINING_BYTES: usize = 256 << 10;

/// Text to train on for an estimate, which is thrown away. As much again is encoded to see how well it suits other text.
const ESTIMATE_BYTES: usize = 64 << 10;

/// How much of what other text takes more counts: on the texts of FSST's corpus this is right within 5 % for most.
const UNKNOWN_PART: f64 = 1.0 / 3.0;

/// Bytes of a vector's entry in the directory.
const START_BYTES: usize = 4;

impl Scheme for Fsst {
    fn name(&self) -> &'static str {
        "fsst"
    }

    fn holds(&self, physical: Physical) -> bool {
        physical == Physical::Bytes
    }

    fn decode_rank(&self) -> u32 {
        60
    }

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost { value: 3.4, byte: 1.3 }
    }

    fn nests(&self) -> bool {
        true
    }

    fn estimate(&self, part: &Sample<'_>, encoder: &Encoder<'_>) -> Option<usize> {
        let Values::Bytes(view) = part.values() else { return None };
        let whole_bytes = part.scale(view.data_bytes());
        // A table suits the text that it was trained on better than other text, if it does not see all of it.
        let step = if whole_bytes > TRAINING_BYTES { 2 } else { 1 };
        let texts = sample(view.iter(), step * ESTIMATE_BYTES);
        let texts = texts.view();
        if texts.data_bytes() == 0 {
            return None;
        }
        let trained: BytesBuf = texts.iter().step_by(step).collect();
        let others: BytesBuf = texts.iter().skip(1).step_by(step).filter(|_| step > 1).collect();
        let table = SymbolTable::train(trained.view(), whole_bytes);
        let mut code_counts = Vec::new();
        let mut encoder_of_texts = table.encoder();
        let mut bytes_per_byte = |texts: &BytesBuf| {
            let mut codes = Vec::new();
            encoder_of_texts.encode(texts.view(), &mut codes, &mut code_counts);
            let text_bytes = texts.data.len() as f64;
            (text_bytes > 0.0).then(|| packed_bytes(table.width(), codes.len()) as f64 / text_bytes)
        };
        let (known, unknown) = (bytes_per_byte(&trained)?, bytes_per_byte(&others));
        let code_bytes = whole_bytes as f64 * unknown.map_or(known, |unknown| known + (unknown - known) * UNKNOWN_PART);
        let counts_bytes = encoder.promise_part(Values::U32(&code_counts), Role::Counts).saturating_sub(PAYLOAD_AT);
        let counts_bytes = counts_bytes as f64 * part.whole_count() as f64 / code_counts.len() as f64;
        let starts_bytes = START_BYTES * part.whole_count().div_ceil(VECTOR_LEN);
        Some(2 * PAYLOAD_AT + table.serialized_bytes() + code_bytes as usize + counts_bytes as usize + starts_bytes)
    }

    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        let Values::Bytes(view) = values else { return Err(unsuitable(self, values.physical())) };
        let table = SymbolTable::train(sample(view.iter(), TRAINING_BYTES).view(), view.data_bytes());
        table.write(out);
        let encoded = EncodedTexts::new(&table, view);
        encoder.part(Values::U32(&encoded.code_counts), Role::Counts, out);
        for start in encoded.vector_starts {
            out.extend_from_slice(&start.to_le_bytes());
        }
        out.extend_from_slice(&encoded.packed);
        Ok(())
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let mut cursor = node.cursor();
        let (table, table_bytes) = SymbolTable::read(cursor.bytes)?;
        cursor.take(table_bytes, "symbol table")?;
        let code_counts = cursor.part()?;
        if code_counts.physical != Physical::U32 || code_counts.value_count != node.value_count {
            let (found, name) = (code_counts.value_count, code_counts.physical.name());
            return Err(cursor.damaged(format!("{found} lengths of type {name} for {} strings", node.value_count)));
        }
        let starts = cursor.take(START_BYTES * node.value_count.div_ceil(VECTOR_LEN), "vector directory")?;
        let packed = cursor.rest();
        let end = code_capacity(table.width(), packed.len());
        let starts = starts.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes) as usize);
        let vector_starts: Vec<usize> = starts.chain([end]).collect();
        if let Some(vector) = vector_starts.windows(2).position(|pair| pair[0] > pair[1]) {
            let (start, end) = (vector_starts[vector], vector_starts[vector + 1]);
            return Err(cursor.damaged(format!("vector {vector} has codes {start}..{end}")));
        }
        Ok(Box::new(FsstReader { table, characters: OnceLock::new(), code_counts, vector_starts, packed }))
    }
}

#[derive(Debug)]
struct FsstReader<'a> {
    table: SymbolTable,
    /// Of its symbols, from when somebody asks.
    characters: OnceLock<CharacterCounts>,
    code_counts: Opened<'a>,
    /// Index of the first code of each vector, then of the code after the last.
    vector_starts: Vec<usize>,
    packed: &'a [u8],
}

/// Strings of one vector: their code counts, and where their codes begin.
struct Stretch<'b> {
    first_code: usize,
    code_counts: &'b [u32],
}

impl FsstReader<'_> {
    /// The strings of `rows`, which lie in one vector.
    fn stretch<'b>(&self, rows: Range<usize>, buf: &'b mut ValuesBuf, scratch: &mut Scratch) -> Result<Stretch<'b>> {
        let vector = rows.start / VECTOR_LEN;
        let from_start = vector * VECTOR_LEN..rows.end;
        let target = ValuesMut::over(buf, Physical::U32, from_start.len());
        self.code_counts.reader.decode(from_start, target, scratch)?;
        let ValuesBuf::U32(counts) = buf else { unreachable!("the buffer was made for them") };
        let (start, end) = (self.vector_starts[vector], self.vector_starts[vector + 1]);
        if total(counts) > end - start {
            let what = format!("vector {vector} has lengths of {} codes, {} are there", total(counts), end - start);
            return Err(Error::damaged("fsst", what));
        }
        let (skipped, code_counts) = counts.split_at(rows.start % VECTOR_LEN);
        Ok(Stretch { first_code: start + total(skipped), code_counts })
    }

    /// Calls `visit` for the strings of `range`, vector by vector.
    fn for_stretches(
        &self,
        range: Range<usize>,
        scratch: &mut Scratch,
        mut visit: impl FnMut(Stretch<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut counts = scratch.take_values(Physical::U32);
        let mut visited = Ok(());
        let mut row = range.start;
        while row < range.end && visited.is_ok() {
            let end = range.end.min((row / VECTOR_LEN + 1) * VECTOR_LEN);
            visited = self.stretch(row..end, &mut counts, scratch).and_then(&mut visit);
            row = end;
        }
        scratch.give_values(counts);
        visited
    }

    /// Appends a bit for each string of `range`: `test` of its first code and its code count.
    fn filter_codes(
        &self,
        range: Range<usize>,
        out: &mut Bitmap,
        scratch: &mut Scratch,
        test: impl Fn(usize, usize) -> bool,
    ) -> Result<bool> {
        self.for_stretches(range, scratch, |stretch| {
            let mut first_code = stretch.first_code;
            for &code_count in stretch.code_counts {
                out.push(test(first_code, code_count as usize));
                first_code += code_count as usize;
            }
            Ok(())
        })?;
        Ok(true)
    }

    fn gather_from(
        &self,
        rows: &[u32],
        buf: &mut BytesBuf,
        counts: &mut ValuesBuf,
        scratch: &mut Scratch,
    ) -> Result<()> {
        for rows in rows.chunk_by(|a, b| a <= b && *a as usize / VECTOR_LEN == *b as usize / VECTOR_LEN) {
            let (first, last) = (rows[0] as usize, rows[rows.len() - 1] as usize);
            let stretch = self.stretch(first..last + 1, counts, scratch)?;
            let (mut reached, mut first_code) = (0, stretch.first_code);
            for &row in rows {
                let index = row as usize - first;
                first_code += total(&stretch.code_counts[reached..index]);
                self.table.decode(self.packed, first_code, &stretch.code_counts[index..index + 1], buf)?;
                reached = index;
            }
        }
        Ok(())
    }
}

impl Reader for FsstReader<'_> {
    fn describe(&self) -> String {
        format!("fsst{}({})", self.table.width().bits(), self.code_counts.reader.describe())
    }

    fn parts(&self) -> Vec<&Opened<'_>> {
        vec![&self.code_counts]
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let ValuesMut::Bytes(buf) = out else { unreachable!("only for bytes") };
        self.for_stretches(range, scratch, |stretch| {
            self.table.decode(self.packed, stretch.first_code, stretch.code_counts, buf)?;
            Ok(())
        })
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let ValuesMut::Bytes(buf) = out else { unreachable!("only for bytes") };
        let mut counts = scratch.take_values(Physical::U32);
        let gathered = self.gather_from(rows, buf, &mut counts, scratch);
        scratch.give_values(counts);
        gathered
    }

    fn characters(
        &self,
        range: Range<usize>,
        kept: Option<&[u16]>,
        out: &mut Vec<i32>,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let counts = self.characters.get_or_init(|| self.table.character_counts());
        let (start, rows) = (out.len(), range.len());
        let few = kept.filter(|kept| kept.len() * ROWS_PER_KEPT < rows);
        let (mut few, mut place) = (few.map(|few| few.iter().map(|&place| usize::from(place)).peekable()), 0);
        self.for_stretches(range, scratch, |stretch| {
            let count = |first_code, code_counts, out: &mut Vec<i32>| {
                self.table.characters(counts, self.packed, first_code, code_counts, out)
            };
            let Some(few) = &mut few else { return count(stretch.first_code, stretch.code_counts, out) };
            let mut first_code = stretch.first_code;
            for code_count in stretch.code_counts {
                if few.next_if_eq(&place).is_some() {
                    count(first_code, std::slice::from_ref(code_count), out)?;
                }
                first_code += *code_count as usize;
                place += 1;
            }
            Ok(())
        })?;
        if let (Some(kept), None) = (kept, few) {
            for (at, &place) in (start..).zip(kept) {
                out[at] = out[start + usize::from(place)];
            }
            out.truncate(start + kept.len());
        }
        Ok(true)
    }

    /// Encodes the constants of equalities once, and makes tables of patterns.
    fn prepare(&self, condition: &Condition, _scratch: &mut Scratch) -> Result<Prepared> {
        let on_codes = match condition {
            Condition::Bytes(BytesCondition::Compare(op @ (CompareOp::Equal | CompareOp::NotEqual), value)) => {
                BytesCondition::Compare(*op, self.table.encoder().needle(value))
            }
            Condition::Bytes(BytesCondition::OneOf(values)) => {
                let mut encoder = self.table.encoder();
                let mut needles: Vec<Vec<u8>> = values.iter().map(|value| encoder.needle(value)).collect();
                sort_needles(&mut needles);
                BytesCondition::OneOf(needles)
            }
            Condition::Bytes(bytes) => {
                let search = bytes.pattern().map(|pattern| Arc::new(self.table.search(pattern)));
                return Ok(Prepared { search, ..Prepared::plain(condition.clone()) });
            }
            _ => return Ok(Prepared::plain(condition.clone())),
        };
        let part = Some(Box::new(Prepared::plain(Condition::Bytes(on_codes))));
        Ok(Prepared { part, ..Prepared::plain(condition.clone()) })
    }

    fn filter(
        &self,
        range: Range<usize>,
        prepared: &Prepared,
        physical: Physical,
        out: &mut Bitmap,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let (table, packed) = (&self.table, self.packed);
        if let Condition::Bytes(BytesCondition::Prefix(prefix)) = &prepared.condition {
            return self
                .filter_codes(range, out, scratch, |first, count| table.begins_with(packed, first, count, prefix));
        }
        if let Some(search) = prepared.search.as_deref() {
            return self.filter_codes(range, out, scratch, |first, count| search.is_in(packed, first, count));
        }
        match prepared.part.as_deref().map(|part| &part.condition) {
            Some(Condition::Bytes(BytesCondition::Compare(op, needle))) => {
                let wanted = *op == CompareOp::Equal;
                self.filter_codes(range, out, scratch, |first, count| {
                    table.is_equal(packed, first, count, needle) == wanted
                })
            }
            Some(Condition::Bytes(BytesCondition::OneOf(needles))) => {
                self.filter_codes(range, out, scratch, |first, count| table.is_one_of(packed, first, count, needles))
            }
            _ => filter_decoded(self, range, &prepared.condition, physical, out, scratch).map(|()| false),
        }
    }
}

/// With more strings for each that is wanted, those are counted one by one; else all are in one go.
const ROWS_PER_KEPT: usize = 16;

/// Codes of these strings together.
fn total(code_counts: &[u32]) -> usize {
    code_counts.iter().map(|&count| count as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Choice, Predicate, Scalar, encode};

    /// Three words each, some empty, over three vectors; the table has 12-bit codes.
    fn comments() -> Vec<String> {
        let words = ["furiously", "ironic", "deposits", "sleep", "above", "the", "express", "packages"];
        let word = |row: usize, place: u32| words[row / 8_usize.pow(place) % words.len()];
        let comment = |row: usize| format!("{} {} {}", word(row, 0), word(row * 7, 1), word(row * 5, 2));
        (0..3000).map(|row| if row % 100 == 99 { String::new() } else { comment(row) }).collect()
    }

    fn block(texts: &[String]) -> Vec<u8> {
        let buf: BytesBuf = texts.iter().map(String::as_bytes).collect();
        let mut out = Vec::new();
        encode(Values::Bytes(buf.view()), None, &Choice::Forced("fsst".into()), &mut out).unwrap();
        out
    }

    #[test]
    fn any_range_and_any_rows_come_back() {
        let texts = comments();
        for texts in [&texts[..], &texts[..1], &texts[..1024], &texts[..1025]] {
            let bytes = block(texts);
            let block = Block::open(&bytes).unwrap();
            let mut out = ValuesBuf::new(Physical::Bytes);
            for range in
                [0..texts.len(), 0..1, texts.len() / 2..texts.len(), 1023.min(texts.len())..texts.len().min(1025)]
            {
                block.decode(range.clone(), &mut out).unwrap();
                let Values::Bytes(view) = out.as_values() else { unreachable!() };
                assert!(view.iter().eq(texts[range].iter().map(String::as_bytes)));
            }
            let positions: Vec<u16> = (0..texts.len() as u16).filter(|position| position % 7 == 0).collect();
            block.gather(0, &positions, &mut out).unwrap();
            let Values::Bytes(view) = out.as_values() else { unreachable!() };
            assert!(view.iter().eq(positions.iter().map(|&position| texts[usize::from(position)].as_bytes())));
        }
    }

    #[test]
    fn long_lists_are_searched_for_the_codes() {
        let texts = comments();
        let bytes = block(&texts);
        let block = Block::open(&bytes).unwrap();
        let strange = ["", "furiously", "furiously ironic", "\u{e9}", "zzz"].map(str::to_owned);
        let list: Vec<String> = texts.iter().step_by(5).take(200).chain(&strange).cloned().collect();
        let constants = list.iter().map(|text| Scalar::Bytes(text.clone().into_bytes())).collect();
        let mut passes = Bitmap::default();
        assert!(block.filter(0..1024, &Predicate::In(constants), &mut passes).unwrap());
        assert_eq!(passes, Bitmap::from_bools(texts[..1024].iter().map(|text| list.contains(text))));
    }

    #[test]
    fn equality_and_prefixes_are_answered_on_the_codes() {
        let texts = comments();
        let bytes = block(&texts);
        let block = Block::open(&bytes).unwrap();
        assert!(block.describe().starts_with("fsst"), "{}", block.describe());
        let constant = |text: &str| Scalar::Bytes(text.as_bytes().to_vec());
        for text in [&texts[5][..], "", "ironic", "ironic deposits sleep and more", "\u{e9}", "furiously"] {
            for (predicate, native, test) in [
                (
                    Predicate::Compare(CompareOp::Equal, constant(text)),
                    true,
                    &(|value: &str| value == text) as &dyn Fn(&str) -> bool,
                ),
                (Predicate::Compare(CompareOp::NotEqual, constant(text)), true, &|value| value != text),
                (Predicate::In(vec![constant(text), constant(&texts[8])]), true, &|value| {
                    value == text || value == texts[8]
                }),
                (Predicate::Prefix(text.into()), true, &|value| value.starts_with(text)),
                (Predicate::Contains(text.into()), true, &|value| value.contains(text)),
                (Predicate::Contains("sleep".repeat(13).into()), false, &|_| false),
                (Predicate::Compare(CompareOp::Less, constant(text)), false, &|value| value < text),
            ] {
                let mut passes = Bitmap::default();
                let range = 1000..1024 + 900;
                assert_eq!(block.filter(range.clone(), &predicate, &mut passes).unwrap(), native, "{predicate:?}");
                assert_eq!(passes, Bitmap::from_bools(texts[range].iter().map(|value| test(value))), "{predicate:?}");
            }
        }
    }
}
