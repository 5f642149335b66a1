//! FSST: strings as codes of a table of frequent symbols, each string readable alone.
//!
//! The table and its training are in [`crate::symbol_table`]. Equality is tested on the codes: a constant is encoded
//! once with the block's table and then compared. A prefix is tested by decoding no further than it reaches.
//!
//! Input: bytes. Output: docs/format/codecs/fsst.md. Cost: encoding trains a table on up to 256 KB, then matches at
//! 100 MB/s and more; decoding copies 16 bytes per code. Reading one string unpacks the lengths of its vector.

use crate::condition::{BytesCondition, Condition, Prepared};
use crate::encoder::{Encoder, Role};
use crate::node::{Node, Opened};
use crate::sample::Sample;
use crate::scheme::{Reader, Scheme, filter_decoded, unsuitable};
use crate::scratch::Scratch;
use crate::symbol_table::{SymbolTable, Width, code_at, pack, packed_bytes, sample};
use crate::values_mut::ValuesMut;
use crate::{Bitmap, BytesBuf, BytesView, CompareOp, Error, Physical, Result, VECTOR_LEN, Values, ValuesBuf};
use std::ops::Range;

/// The scheme.
#[derive(Debug)]
pub(crate) struct Fsst;

/// Text to train on. A quarter of it costs TPC-H comments 12 % in size, twice as much gains 2 %.
const TRAINING_BYTES: usize = 256 << 10;

/// Text to train on for an estimate, which is thrown away: errs to the careful side by a tenth.
const ESTIMATE_BYTES: usize = 64 << 10;

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

    fn nests(&self) -> bool {
        true
    }

    fn estimate(&self, part: &Sample<'_>, _encoder: &Encoder<'_>) -> Option<usize> {
        let Values::Bytes(view) = part.values() else { return None };
        let texts = sample(view.iter(), ESTIMATE_BYTES);
        let text_bytes: usize = texts.iter().map(|text| text.len()).sum();
        if text_bytes == 0 {
            return None;
        }
        let whole_bytes = part.scale(view.data_bytes());
        let table = SymbolTable::train(&texts, whole_bytes);
        let (mut codes, mut encoder) = (Vec::new(), table.encoder());
        let longest = texts.iter().map(|text| encoder.encode(text, &mut codes)).max().unwrap_or(0);
        let length_bits = (usize::BITS - longest.leading_zeros()) as usize;
        let code_bytes = packed_bytes(table.width(), codes.len()) as f64 * whole_bytes as f64 / text_bytes as f64;
        Some(table.serialized_bytes() + code_bytes as usize + length_bits * part.whole_count() / 8)
    }

    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        let Values::Bytes(view) = values else { return Err(unsuitable(self, values.physical())) };
        let table = SymbolTable::train(&sample(view.iter(), TRAINING_BYTES), view.data_bytes());
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
        let vector_starts = starts.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect();
        Ok(Box::new(FsstReader { table, code_counts, vector_starts, packed: cursor.rest() }))
    }
}

/// A column as codes.
struct EncodedTexts {
    /// Codes of each string.
    code_counts: Vec<u32>,
    /// Index of the first code of each vector.
    vector_starts: Vec<u32>,
    packed: Vec<u8>,
}

impl EncodedTexts {
    fn new(table: &SymbolTable, view: BytesView<'_>) -> EncodedTexts {
        let (mut code_counts, mut vector_starts, mut packed) = (Vec::with_capacity(view.len()), Vec::new(), Vec::new());
        let (mut codes, mut encoder) = (Vec::new(), table.encoder());
        let mut code_count = 0;
        for (row, text) in view.iter().enumerate() {
            if row % VECTOR_LEN == 0 {
                vector_starts.push(code_count as u32);
            }
            let count = encoder.encode(text, &mut codes);
            code_counts.push(count as u32);
            code_count += count;
            // Pack in even portions, so that none ends within a byte.
            let whole = codes.len() & !1;
            if whole >= VECTOR_LEN {
                pack(table.width(), &codes[..whole], &mut packed);
                codes.drain(..whole);
            }
        }
        pack(table.width(), &codes, &mut packed);
        EncodedTexts { code_counts, vector_starts, packed }
    }
}

#[derive(Debug)]
struct FsstReader<'a> {
    table: SymbolTable,
    code_counts: Opened<'a>,
    vector_starts: Vec<u32>,
    packed: &'a [u8],
}

impl FsstReader<'_> {
    /// Calls `visit` for each vector that `range` touches, with the index of the first code of the first row of `range`
    /// in it, and the code counts of those rows.
    fn for_vectors(
        &self,
        range: Range<usize>,
        scratch: &mut Scratch,
        mut visit: impl FnMut(usize, &[u32]) -> Result<()>,
    ) -> Result<()> {
        let mut counts = scratch.take_values(Physical::U32);
        let mut row = range.start;
        let mut visited = Ok(());
        while row < range.end && visited.is_ok() {
            let vector = row / VECTOR_LEN;
            let end = range.end.min((vector + 1) * VECTOR_LEN);
            visited = self.counts_of(vector * VECTOR_LEN..end, &mut counts, scratch).and_then(|counts| {
                let (skipped, wanted) = counts.split_at(row % VECTOR_LEN);
                visit(self.start_of(vector)? + total(skipped), wanted)
            });
            row = end;
        }
        scratch.give_values(counts);
        visited
    }

    fn counts_of<'b>(&self, rows: Range<usize>, buf: &'b mut ValuesBuf, scratch: &mut Scratch) -> Result<&'b [u32]> {
        let len = rows.len();
        self.code_counts.reader.decode(rows, ValuesMut::over(buf, Physical::U32, len), scratch)?;
        match buf {
            ValuesBuf::U32(counts) => Ok(counts),
            _ => unreachable!("the buffer was made for them"),
        }
    }

    fn start_of(&self, vector: usize) -> Result<usize> {
        Ok(self.vector_starts[vector] as usize)
    }
}

/// Saturates far above any index that is in bounds.
fn total(counts: &[u32]) -> usize {
    counts.iter().fold(0, |sum: usize, &count| sum.saturating_add(count as usize))
}
