//! A block: values of one column in one encoding, with their statistics.

use crate::{Bitmap, BlockStats, BytesBuf, Physical, Predicate, Result, Values, ValuesBuf};
use std::ops::Range;

/// How [`encode`] finds a scheme.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The cheapest in bytes, judged from a sample.
    #[default]
    Auto,
    /// Plain, whatever the values: delta batches and log records, where speed of writing counts.
    Raw,
    /// This scheme, by its name in [`crate::SCHEMES`]; its parts choose for themselves.
    Forced(String),
}

/// Encodes `values` as one block, appended to `out`, and returns its statistics.
///
/// `validity` has one bit per value, 1 where it is present; `None` when all are. What stands at a NULL is not kept.
///
/// # Errors
/// [`crate::Error::NoSuchScheme`] and [`crate::Error::NotApplicable`] for a forced choice. Never for `Auto` and `Raw`.
pub fn encode(values: Values<'_>, validity: Option<&Bitmap>, choice: &Choice, out: &mut Vec<u8>) -> Result<BlockStats> {
    let _ = (values, validity, choice, out);
    todo!()
}

/// Small unsigned numbers, in the narrowest of three widths.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are their widths")]
pub enum Narrow {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
}

/// The values of a range in the form nearest to their bytes: what [`Block::load`] fills.
#[derive(Clone, Debug)]
pub enum Encoded {
    /// All values are equal; the buffer holds one value.
    Constant(ValuesBuf),
    /// Integers: value = `base` + delta (wrapping in the physical type is already resolved: the sum is exact).
    BaseDelta {
        /// The least value that a delta of zero stands for.
        base: i128,
        /// One per row.
        deltas: Narrow,
    },
    /// Positions in [`Block::dictionary`].
    Codes(Narrow),
    /// Plain values, one per row.
    Flat(ValuesBuf),
}

impl Default for Encoded {
    fn default() -> Self {
        Encoded::Flat(ValuesBuf::Bytes(BytesBuf::default()))
    }
}

/// A checked view of an encoded block. Opening reads headers and directories, not values.
#[derive(Debug)]
pub struct Block<'a> {
    bytes: &'a [u8],
}

impl<'a> Block<'a> {
    /// Checks the block at the start of `bytes`, which may be anything at all and may hold more after it.
    /// After this, no call on the block reads out of bounds or allocates more than its answer needs.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] and [`crate::Error::UnknownScheme`].
    pub fn open(bytes: &'a [u8]) -> Result<Block<'a>> {
        Ok(Block { bytes })
    }

    /// Length of the block in bytes, header and statistics included.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// The type of its values.
    pub fn physical(&self) -> Physical {
        todo!()
    }

    /// Rows, NULLs included.
    pub fn value_count(&self) -> usize {
        todo!()
    }

    /// What was measured when it was written.
    pub fn stats(&self) -> &BlockStats {
        todo!()
    }

    /// The scheme as nested text, such as `dict(bitpack[5], fsst)`.
    pub fn describe(&self) -> String {
        todo!()
    }

    /// The dictionary that [`Encoded::Codes`] points into, decoded; `None` where the outermost scheme has none.
    pub fn dictionary(&self) -> Result<Option<ValuesBuf>> {
        todo!()
    }

    /// Writes the validity of the rows of `range` over `out`; returns false (and leaves `out` unspecified) when all
    /// of them are present.
    pub fn validity(&self, range: Range<usize>, out: &mut Bitmap) -> Result<bool> {
        let _ = (range, out);
        todo!()
    }

    /// Replaces the content of `out` by the values of `range`. NULL slots hold an unspecified value.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] where the values themselves contradict the headers.
    /// # Panics
    /// When the range reaches past [`Block::value_count`]: a mistake of the caller.
    pub fn decode(&self, range: Range<usize>, out: &mut ValuesBuf) -> Result<()> {
        let _ = (range, out);
        todo!()
    }

    /// Like [`Block::decode`] for the form nearest to the bytes; `range` is at most one vector. Reuses the memory in
    /// `out` where the form stays the same.
    pub fn load(&self, range: Range<usize>, out: &mut Encoded) -> Result<()> {
        let _ = (range, out);
        todo!()
    }

    /// Replaces the content of `out` by the values at `start + positions[i]`, ascending positions, decoding as little
    /// as the scheme allows.
    pub fn gather(&self, start: usize, positions: &[u16], out: &mut ValuesBuf) -> Result<()> {
        let _ = (start, positions, out);
        todo!()
    }

    /// Writes over `out` one bit per row of `range` (at most one vector): the row is present and passes. Answered on
    /// the encoded form where the scheme can. Returns true when no value had to be decoded for it.
    pub fn filter(&self, range: Range<usize>, predicate: &Predicate, out: &mut Bitmap) -> Result<bool> {
        let _ = (range, predicate, out);
        todo!()
    }
}
