//! A block: values of one column in one encoding, with their statistics.

use crate::block_header::{self, BlockHeader, expect_count};
use crate::condition::{Condition, Prepared};
use crate::encoder::write_as;
use crate::kernel::DecodeOnly;
use crate::node::{Cursor, Opened};
use crate::schemes::RAW;
use crate::scratch::Scratch;
use crate::validity::{self, Validity};
use crate::values_mut::ValuesMut;
use crate::{Bitmap, BlockStats, Encoded, Error, Physical, Predicate, Result, VECTOR_LEN, Values, ValuesBuf};
use std::ops::Range;

/// A checked view of an encoded block. Opening reads headers and directories, not values.
///
/// May be shared between threads. What a block had to decode to answer at all (a dictionary, the ends of runs) it keeps
/// until it is dropped.
#[derive(Debug)]
pub struct Block<'a> {
    header: BlockHeader,
    pub(crate) validity: Validity<'a>,
    pub(crate) values: Opened<'a>,
}

/// Appends a block of values in the scheme `raw`, of which the caller knows the statistics: for values that are read once,
/// so that looking for a better scheme would cost more than it gains. `validity` has a bit for each that is present.
///
/// # Errors
/// There are more than a block holds; `out` is then as before.
pub fn write_raw(values: Values<'_>, validity: Option<&Bitmap>, stats: &BlockStats, out: &mut Vec<u8>) -> Result<()> {
    let (kind, section) = validity::encode(validity, 1);
    let start = out.len();
    block_header::write(values.physical(), kind, stats, out);
    out.extend_from_slice(&section);
    if let Err(error) = write_as(&RAW, values, None, None, 1, out) {
        out.truncate(start);
        return Err(error);
    }
    block_header::finish(start, out);
    Ok(())
}

/// A predicate made ready for one block by [`Block::prepare`]: dictionaries were searched, constants translated.
#[derive(Clone, Debug)]
pub struct PreparedPredicate {
    prepared: Prepared,
}

impl PreparedPredicate {
    /// Nothing in the block can pass, whatever the row.
    pub fn is_never(&self) -> bool {
        self.prepared.condition == Condition::Never
    }
}

impl<'a> Block<'a> {
    /// Checks the block at the start of `bytes`, which may be anything at all and may hold more after it.
    /// After this, no call on the block reads out of bounds or allocates more than its answer needs.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`], [`crate::Error::UnknownScheme`] and [`crate::Error::NotInThisBuild`].
    pub fn open(bytes: &'a [u8]) -> Result<Block<'a>> {
        let header = block_header::read(bytes)?;
        let mut cursor = Cursor { place: "block", bytes: &bytes[header.header_bytes..header.byte_len], level: 0 };
        let validity = Validity::open(header.validity, header.stats.value_count, &mut cursor)?;
        let values = cursor.part()?;
        cursor.finish()?;
        expect_count("value node", values.value_count, header.stats.value_count)?;
        if values.physical != header.physical {
            let (found, expected) = (values.physical.name(), header.physical.name());
            return Err(Error::damaged("value node", format!("it holds {found} values in a block of {expected}")));
        }
        Ok(Block { header, validity, values })
    }

    /// The same block with a reader that has only what every scheme must: to compare answers and times with.
    pub(crate) fn decode_only(self) -> Block<'a> {
        let Opened { reader, entry, physical, value_count, payload_bytes } = self.values;
        let reader = Box::new(DecodeOnly { reader });
        Block { values: Opened { reader, entry, physical, value_count, payload_bytes }, ..self }
    }

    /// Length of the block in bytes, header and statistics included.
    pub fn byte_len(&self) -> usize {
        self.header.byte_len
    }

    /// The type of its values.
    pub fn physical(&self) -> Physical {
        self.header.physical
    }

    /// Rows, NULLs included.
    pub fn value_count(&self) -> usize {
        self.header.stats.value_count
    }

    /// What was measured when it was written.
    pub fn stats(&self) -> &BlockStats {
        &self.header.stats
    }

    /// The scheme as nested text, such as `dict(bitpack[5], fsst)`.
    pub fn describe(&self) -> String {
        self.values.reader.describe()
    }

    /// About how long it takes to decode all of it, in nanoseconds on the processor that the schemes were measured on: what
    /// their values and bytes cost, added up. It is the same wherever it is asked.
    pub fn decode_nanos(&self) -> f64 {
        self.values.decode_nanos()
    }

    /// The dictionary that [`Encoded::Codes`] points into, decoded; `None` where the outermost scheme has none.
    pub fn dictionary(&self) -> Result<Option<ValuesBuf>> {
        Scratch::with(|scratch| self.values.reader.dictionary(scratch))
    }

    /// Whether [`Block::filter`] answers a predicate once for each entry of a dictionary, and costs little for each row: else
    /// of few rows the values are tested sooner.
    pub fn tests_entries(&self) -> bool {
        self.values.reader.tests_entries()
    }

    /// Writes the validity of the rows of `range` over `out`; returns false (and leaves `out` unspecified) when all
    /// of them are present.
    pub fn validity(&self, range: Range<usize>, out: &mut Bitmap) -> Result<bool> {
        self.check(&range);
        self.validity.read(range, out)
    }

    /// Replaces the content of `out` by the values of `range`. NULL slots hold an unspecified value.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] where the values themselves contradict the headers.
    /// # Panics
    /// When the range reaches past [`Block::value_count`]: a mistake of the caller.
    pub fn decode(&self, range: Range<usize>, out: &mut ValuesBuf) -> Result<()> {
        self.check(&range);
        Scratch::with(|scratch| {
            let out = ValuesMut::over(out, self.physical(), range.len());
            self.values.reader.decode(range, out, scratch)
        })
    }

    /// Appends the same block in the scheme `raw`: its values decoded, its statistics and NULLs as they are.
    ///
    /// # Errors
    /// As [`Block::decode`]; `out` is then as before.
    pub fn write_plain(&self, out: &mut Vec<u8>) -> Result<()> {
        let all = 0..self.value_count();
        let (mut values, mut present) = (ValuesBuf::new(self.physical()), Bitmap::default());
        self.decode(all.clone(), &mut values)?;
        let some_null = self.validity(all, &mut present)?;
        write_raw(values.as_values(), some_null.then_some(&present), self.stats(), out)
    }

    /// Like [`Block::decode`] for the form nearest to the bytes; `range` is at most one vector. Reuses the memory in
    /// `out` where the form stays the same.
    pub fn load(&self, range: Range<usize>, out: &mut Encoded) -> Result<()> {
        self.check(&range);
        assert!(range.len() <= VECTOR_LEN, "{range:?} is more than a vector");
        Scratch::with(|scratch| self.values.reader.load(range, self.physical(), out, scratch))
    }

    /// Replaces the content of `out` by the values at `start + positions[i]`, ascending positions, decoding as little
    /// as the scheme allows.
    pub fn gather(&self, start: usize, positions: &[u16], out: &mut ValuesBuf) -> Result<()> {
        if let Some(&last) = positions.last() {
            self.check(&(start..start + usize::from(last) + 1));
        }
        let out = ValuesMut::over(out, self.physical(), positions.len());
        Scratch::with(|scratch| {
            let mut rows = std::mem::take(&mut scratch.rows);
            rows.clear();
            rows.extend(positions.iter().map(|&position| start as u32 + u32::from(position)));
            let gathered = self.values.reader.gather(&rows, out, scratch);
            scratch.rows = rows;
            gathered
        })
    }

    /// Replaces the content of `out` by how many characters, of UTF-8, the texts of `range` have, or of those at the `kept`
    /// places of it, which ascend, counted on the symbols that stand for them; `range` is at most one vector. What is said at
    /// a NULL is any. False where the scheme is not one of such symbols.
    ///
    /// # Panics
    /// When the range is no part of the block, or a place none of the range: mistakes of the caller.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged), where a decoding would say so.
    pub fn characters(&self, range: Range<usize>, kept: Option<&[u16]>, out: &mut Vec<i32>) -> Result<bool> {
        self.check(&range);
        assert!(range.len() <= VECTOR_LEN, "{range:?} is more than a vector");
        assert!(
            kept.and_then(<[u16]>::last).is_none_or(|&last| usize::from(last) < range.len()),
            "a place is in {range:?}"
        );
        out.clear();
        Scratch::with(|scratch| self.values.reader.characters(range, kept, out, scratch))
    }

    /// Writes over `out` one bit per row of `range`: the row is present and passes. Answered on the encoded form where the
    /// scheme can. Returns true when no value had to be decoded for it.
    ///
    /// For more than one range of the same block, [`Block::prepare`] once and call [`Block::filter_prepared`].
    pub fn filter(&self, range: Range<usize>, predicate: &Predicate, out: &mut Bitmap) -> Result<bool> {
        let prepared = self.prepare(predicate)?;
        Scratch::with(|scratch| self.filter_prepared(range, &prepared, scratch, out))
    }

    /// Makes a predicate ready for this block: what does not depend on the range is done here, once.
    ///
    /// # Panics
    /// When a constant has not the block's type: a mistake of the caller.
    pub fn prepare(&self, predicate: &Predicate) -> Result<PreparedPredicate> {
        let condition = Condition::new(predicate, self.physical());
        let prepared = match condition {
            Condition::Never | Condition::Always => Prepared::plain(condition),
            condition => Scratch::with(|scratch| self.values.reader.prepare(&condition, scratch))?,
        };
        Ok(PreparedPredicate { prepared })
    }

    /// [`Block::filter`] with a predicate made ready by this block, and working memory of the caller's.
    pub fn filter_prepared(
        &self,
        range: Range<usize>,
        predicate: &PreparedPredicate,
        scratch: &mut Scratch,
        out: &mut Bitmap,
    ) -> Result<bool> {
        self.check(&range);
        out.reset(0, false);
        let len = range.len();
        let native = match predicate.prepared.condition {
            Condition::Never => {
                out.reset(len, false);
                return Ok(true);
            }
            Condition::Always => {
                out.reset(len, true);
                true
            }
            _ => self.values.reader.filter(range.clone(), &predicate.prepared, self.physical(), out, scratch)?,
        };
        let mut present = std::mem::take(&mut scratch.present);
        let some_null = self.validity.read(range, &mut present);
        if let Ok(true) = some_null {
            out.and(&present);
        }
        scratch.present = present;
        some_null.map(|_| native)
    }

    /// Whether all present values of `range` pass a predicate made ready by this block (true) or none (false), where that is
    /// had for much less than [`Block::filter_prepared`] takes that decodes: between the ends of a vector that ascends. `None`
    /// where it is not.
    ///
    /// # Panics
    /// When the range is no part of the block: a mistake of the caller.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged), where a decoding would say so.
    pub fn decides(&self, range: Range<usize>, predicate: &PreparedPredicate) -> Result<Option<bool>> {
        self.check(&range);
        match predicate.prepared.condition {
            Condition::Never => Ok(Some(false)),
            Condition::Always => Ok(Some(true)),
            _ => self.values.reader.decides(range, &predicate.prepared),
        }
    }

    pub(crate) fn check(&self, range: &Range<usize>) {
        let count = self.value_count();
        assert!(range.start <= range.end && range.end <= count, "range {range:?} of a block of {count} values");
    }
}
