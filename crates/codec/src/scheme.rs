//! What a compression scheme is: a [`Scheme`] that writes nodes and a [`Reader`] that answers about one of them.
//!
//! To add a scheme, write one file `schemes/<name>.rs` with a unit struct that implements [`Scheme`] and a struct that
//! implements [`Reader`], and give it a line in the list of `schemes/mod.rs`. Chooser, property tests, benchmark and
//! `sinter codecs` find it there (docs/howto/add-a-scheme.md walks through it).
//!
//! A scheme writes only its *payload*; the [node](crate::node) header around it (scheme tag, physical type, value count,
//! length) is written for it. Parts of a payload that are values themselves (codes, run lengths, the integers behind
//! floats) go through [`Encoder::part`], which chooses a scheme for them and writes a node of their own; the reader gets
//! them back through [`Cursor::part`](crate::node::Cursor::part).

use crate::condition::{Condition, Prepared};
use crate::encoder::Encoder;
use crate::kernel::{self, Bounds, Rows, SquareSum, Tally, WideSum};
use crate::loss::Loss;
use crate::node::{Node, Opened};
use crate::sample::Sample;
use crate::scratch::Scratch;
use crate::values_mut::ValuesMut;
use crate::{Bitmap, Encoded, Error, Physical, Result, Values, ValuesBuf};
use std::fmt::Debug;
use std::ops::Range;

/// About how long it takes to decode what a node holds, without its parts that are nodes themselves, in nanoseconds: as
/// `sinter codecs --decoding` measured it once, so that the same data always has the same plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecodeCost {
    /// Of each value.
    pub(crate) value: f64,
    /// Of each byte of the payload that is no part's: those are counted where the parts are.
    pub(crate) byte: f64,
}

impl DecodeCost {
    /// Where the number of values says it all.
    pub(crate) const fn of_value(value: f64) -> DecodeCost {
        DecodeCost { value, byte: 0.0 }
    }
}

/// A way to write values as bytes. Stateless: one static per scheme.
pub(crate) trait Scheme: Debug + Send + Sync {
    /// The name in [`crate::Choice::Forced`], in messages and in [`crate::Block::describe`].
    fn name(&self) -> &'static str;

    /// Whether it can hold values of this type at all.
    fn holds(&self, physical: Physical) -> bool;

    /// Rank in time to decode with the parts that it usually has, 0 the fastest. Of two schemes of nearly equal size the
    /// chooser takes the lower rank.
    fn decode_rank(&self) -> u32;

    /// What decoding values of this type costs without those parts: the planner adds up what is there.
    fn decode_cost(&self, physical: Physical) -> DecodeCost;

    /// Whether a value is had without those before it, so that filters and rows picked out cost no more than they must.
    fn is_direct(&self) -> bool {
        true
    }

    /// Whether its payload has parts that are nodes themselves. Those that do are not tried at the deepest level.
    fn nests(&self) -> bool {
        false
    }

    /// What a user may write in parentheses behind the name, with an example, for messages; `None` where that is nothing.
    fn parameter(&self) -> Option<&'static str> {
        None
    }

    /// The loss that this parameter asks for; `None` where it is not one. See [`Encoder::loss`].
    fn loss(&self, _parameter: &str) -> Option<Loss> {
        None
    }

    /// Bytes that [`Scheme::encode`] would write for the whole of which `sample` is a part; `None` where it would not
    /// apply or cannot pay. The default tries it on the sample and scales up: right wherever size grows with count.
    fn estimate(&self, sample: &Sample<'_>, encoder: &Encoder<'_>) -> Option<usize> {
        encoder.try_on_sample(self.name(), sample)
    }

    /// Appends the payload for `values` (never empty, all present) to `out`.
    ///
    /// # Errors
    /// [`Error::NotApplicable`] (see [`unsuitable`]) where these values cannot be held, such as two different ones by
    /// `constant`; what was appended is then dropped and another scheme takes over. Nothing else fails.
    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()>;

    /// Checks a payload, which may be anything at all, and returns its reader. Looks at headers and directories, not at
    /// every value, and allocates nothing that grows with a count it has not seen the bytes for.
    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>>;
}

/// The error of a [`Scheme::encode`] that cannot hold just these values.
pub(crate) fn unsuitable(scheme: &dyn Scheme, physical: Physical) -> Error {
    Error::NotApplicable { scheme: scheme.name(), physical: physical.name() }
}

/// An opened node: answers about its values. Ranges and rows were checked against the node's value count by the caller.
///
/// The bytes below may still lie in what [`Scheme::open`] did not look at: then a call returns an error or wrong values,
/// but never panics, reads elsewhere or allocates more than its answer needs.
pub(crate) trait Reader: Debug + Send + Sync {
    /// The scheme with its parts as text: `dict(bitpack[5], fsst)`.
    fn describe(&self) -> String;

    /// The parts that are nodes themselves.
    fn parts(&self) -> Vec<&Opened<'_>> {
        Vec::new()
    }

    /// Writes the values of `range` to `out`: over all of a slice of just that length, or appended to a bytes buffer.
    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()>;

    /// Writes the values at `rows` (in any order; quickest when ascending) to `out`, as [`Reader::decode`] does.
    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()>;

    /// [`crate::Block::load`] for a range of at most one vector. The default is flat.
    fn load(&self, range: Range<usize>, physical: Physical, out: &mut Encoded, scratch: &mut Scratch) -> Result<()> {
        let values = out.flat(physical);
        let len = range.len();
        self.decode(range, ValuesMut::over(values, physical, len), scratch)
    }

    /// Turns a condition into what [`Reader::filter`] wants to see again for every vector: here a dictionary is searched
    /// once. The default keeps the condition as it is.
    fn prepare(&self, condition: &Condition, _scratch: &mut Scratch) -> Result<Prepared> {
        Ok(Prepared::plain(condition.clone()))
    }

    /// Appends one bit per row of `range` to `out`: it passes. Returns true when no value was decoded for it. The
    /// default decodes vector by vector.
    fn filter(
        &self,
        range: Range<usize>,
        prepared: &Prepared,
        physical: Physical,
        out: &mut Bitmap,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        filter_decoded(self, range, &prepared.condition, physical, out, scratch)?;
        Ok(false)
    }

    /// Whether all values of `range` pass (true) or none (false), where that is had for much less than [`Reader::filter`] takes,
    /// as of bounds that are known; else `None`. For readers whose filters decode.
    fn decides(&self, _range: Range<usize>, _prepared: &Prepared) -> Result<Option<bool>> {
        Ok(None)
    }

    /// Adds the values of the rows that count, integers all, to `total`. The default decodes.
    fn sum(&self, rows: &Rows<'_>, physical: Physical, total: &mut WideSum, scratch: &mut Scratch) -> Result<()> {
        kernel::sum_decoded(self, rows, physical, total, scratch)
    }

    /// Widens `found` by the values of the rows that count. The default decodes.
    fn bounds(&self, rows: &Rows<'_>, physical: Physical, found: &mut Bounds, scratch: &mut Scratch) -> Result<()> {
        kernel::bounds_decoded(self, rows, physical, found, scratch)
    }

    /// Adds the squares of the distances of the values, integers all, from `pivot`, which is a value of their type. The
    /// default decodes.
    fn squares(
        &self,
        rows: &Rows<'_>,
        physical: Physical,
        pivot: i128,
        found: &mut SquareSum,
        scratch: &mut Scratch,
    ) -> Result<()> {
        kernel::squares_decoded(self, rows, physical, pivot, found, scratch)
    }

    /// Adds the values of the rows that count to `tally`, in any order. The default decodes.
    fn tally(&self, rows: &Rows<'_>, physical: Physical, tally: &mut Tally, scratch: &mut Scratch) -> Result<()> {
        kernel::tally_decoded(self, rows, physical, tally, scratch)
    }

    /// Appends how many characters, of UTF-8, the texts of `range` have, or of those at the `kept` places of it, without
    /// decoding them; false, and nothing is appended, where that cannot be.
    fn characters(
        &self,
        _range: Range<usize>,
        _kept: Option<&[u16]>,
        _out: &mut Vec<i32>,
        _scratch: &mut Scratch,
    ) -> Result<bool> {
        Ok(false)
    }

    /// For the reader of codes, `U32` all: counts how often each occurs. The default decodes.
    ///
    /// # Errors
    /// [`Error::Damaged`] where a code has no count.
    fn count_codes(&self, rows: &Rows<'_>, counts: &mut [u64], scratch: &mut Scratch) -> Result<()> {
        kernel::count_codes_decoded(self, rows, counts, scratch)
    }

    /// Counts how often each entry of the dictionary that [`Reader::dictionary`] gives occurs; false where there is none.
    fn count_entries(&self, _rows: &Rows<'_>, _counts: &mut Vec<u64>, _scratch: &mut Scratch) -> Result<bool> {
        Ok(false)
    }

    /// Whether a condition is answered once for each entry of a dictionary or each run, instead of once for each row.
    fn tests_entries(&self) -> bool {
        false
    }

    /// Where the values of `range` never decrease: the first row whose value is not `below` (those that are come first), or
    /// the end. The default gathers a few single rows.
    fn lower_bound(
        &self,
        range: Range<usize>,
        below: &Condition,
        physical: Physical,
        scratch: &mut Scratch,
    ) -> Result<usize> {
        kernel::lower_bound_by_rows(self, range, below, physical, scratch)
    }

    /// The values that [`Encoded::Codes`] points into, where [`Reader::load`] gives codes.
    fn dictionary(&self, _scratch: &mut Scratch) -> Result<Option<ValuesBuf>> {
        Ok(None)
    }
}

/// The filter of a scheme that has none: decode a vector, then compare.
pub(crate) fn filter_decoded<R: Reader + ?Sized>(
    reader: &R,
    range: Range<usize>,
    condition: &Condition,
    physical: Physical,
    out: &mut Bitmap,
    scratch: &mut Scratch,
) -> Result<()> {
    let mut values = scratch.take_values(physical);
    let mut decoded = Ok(());
    for part in Rows::all(range).vectors() {
        let len = part.len();
        scratch.decoded_values += len;
        decoded = reader.decode(part, ValuesMut::over(&mut values, physical, len), scratch);
        if decoded.is_err() {
            break;
        }
        condition.evaluate(values.as_values(), out);
    }
    scratch.give_values(values);
    decoded
}
