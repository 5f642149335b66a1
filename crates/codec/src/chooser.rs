//! Writes the blocks of a column, one after the other, and remembers which schemes suited the last one.
//!
//! The paper (Zukowski et al., ICDE 2006, section 3.1) chooses by a sorted sample and chooses again when the ratio decays. So do
//! we, with one difference: the sample is tried out on every scheme that applies, parts included, not only judged by formula.

use crate::encoder::{Role, Tree, all_equal, write_as, write_values};
use crate::loss::Request;
use crate::measure::measure;
use crate::node::VALUE_COUNT_MAX;
use crate::null_filling::fill_nulls;
use crate::schemes::RAW;
use crate::values::DECODED_BYTES_MAX;
use crate::{Bitmap, BlockStats, Error, Result, Values, block_header, validity};

/// How [`encode`] finds a scheme.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The cheapest in bytes, judged from a sample.
    #[default]
    Auto,
    /// Plain, whatever the values: delta batches and log records, where speed of writing counts.
    Raw,
    /// This scheme, by its name in [`crate::SCHEMES`]; its parts choose for themselves. A block whose values it cannot
    /// hold (different ones for `constant`) is encoded as by `Auto`. With a loss in parentheses, `quantise(0.01)`, values
    /// are rounded before, and read back as they were rounded; no other choice does that.
    Forced(String),
    /// Plain, but rounded as by `Forced` of the same text.
    RawRounded(String),
}

impl Choice {
    /// Plain, with values that read as they will where they are pressed by this choice.
    pub fn raw(&self) -> Choice {
        match self {
            Choice::Forced(text) if Request::parse(text).is_ok_and(|request| request.is_lossy()) => {
                Choice::RawRounded(text.clone())
            }
            Choice::RawRounded(text) => Choice::RawRounded(text.clone()),
            Choice::Auto | Choice::Raw | Choice::Forced(_) => Choice::Raw,
        }
    }
}

/// Blocks after which a column's schemes are chosen anew, even if the last choice still serves: it may no longer be the best.
const BLOCKS_PER_CHOICE: u32 = 64;

/// Bytes a value, as a multiple of those when the schemes were chosen, from which they are chosen anew.
const DECAY: f64 = 1.05;

/// Encodes the blocks of one column. Keep one per column: later blocks reuse what the first one found out.
#[derive(Debug)]
pub struct Chooser {
    choice: Choice,
    last: Option<Chosen>,
}

/// The schemes in use.
#[derive(Debug)]
struct Chosen {
    tree: Tree,
    bytes_per_value: f64,
    blocks: u32,
}

impl Chooser {
    /// For a column that is yet to come.
    pub fn new(choice: Choice) -> Chooser {
        Chooser { choice, last: None }
    }

    /// [`encode`] for the next block of the column.
    ///
    /// # Errors
    /// As [`encode`].
    pub fn encode(&mut self, values: Values<'_>, validity: Option<&Bitmap>, out: &mut Vec<u8>) -> Result<BlockStats> {
        let request = match &self.choice {
            Choice::Auto => None,
            Choice::Raw => Some(Request { entry: &RAW, loss: None }),
            Choice::Forced(text) | Choice::RawRounded(text) => Some(Request::parse(text)?),
        };
        if let Some(request) = &request
            && !request.holds(values.physical())
        {
            return Err(Error::NotApplicable { scheme: request.entry.name, physical: values.physical().name() });
        }
        check_size(values)?;
        let loss = request.and_then(|request| request.loss);
        let rounded = loss.map(|loss| loss.round(values));
        let values = rounded.as_ref().map_or(values, |rounded| rounded.as_values());
        let stats = measure(values, validity);
        let (kind, section) = validity::encode(validity, 1);
        let start = out.len();
        block_header::write(values.physical(), kind, &stats, out);
        out.extend_from_slice(&section);
        let filled = validity.filter(|_| stats.null_count > 0).map(|validity| fill_nulls(values, validity));
        let values = filled.as_ref().map_or(values, |filled| filled.as_values());
        let is_raw = request.is_some_and(|request| request.entry.name == RAW.name);
        if is_raw || matches!(self.choice, Choice::RawRounded(_)) {
            write_as(&RAW, values, None, None, 1, out)?;
        } else {
            self.write_chosen(request, values, out);
        }
        block_header::finish(start, out);
        Ok(stats)
    }

    fn write_chosen(&mut self, request: Option<Request>, values: Values<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        let last = self.last.as_ref().filter(|last| last.blocks < BLOCKS_PER_CHOICE).map(|last| &last.tree);
        if let Some(Request { entry, loss }) = request
            && let Ok(tree) = write_as(entry, values, last.filter(|last| last.tag() == entry.tag), loss, 1, out)
        {
            self.remember(tree, out.len() - start, values.len());
            return;
        }
        if values.is_empty() || all_equal(values) {
            write_values(values, Role::Values, None, 1, out);
            return; // says nothing about the blocks to come
        }
        let Some(last) = last else {
            let tree = write_values(values, Role::Values, None, 1, out);
            self.last = None;
            self.remember(tree, out.len() - start, values.len());
            return;
        };
        let tree = write_values(values, Role::Values, Some(last), 1, out);
        let bytes = out.len() - start;
        let limit = self.last.as_ref().map_or(0.0, |last| last.bytes_per_value * DECAY);
        if bytes as f64 / values.len() as f64 <= limit {
            self.remember(tree, bytes, values.len());
            return;
        }
        let again = out.len();
        let tree = write_values(values, Role::Values, None, 1, out);
        if out.len() - again <= bytes {
            out.drain(start..again);
        } else {
            out.truncate(again);
        }
        self.last = None;
        self.remember(tree, out.len() - start, values.len());
    }

    /// Keeps the ratio of the block for which the schemes were chosen: small losses must not add up unseen.
    fn remember(&mut self, tree: Tree, bytes: usize, value_count: usize) {
        self.last = Some(match self.last.take().filter(|last| last.blocks < BLOCKS_PER_CHOICE) {
            Some(last) => Chosen { tree, blocks: last.blocks + 1, ..last },
            None => Chosen { tree, bytes_per_value: bytes as f64 / value_count.max(1) as f64, blocks: 1 },
        });
    }
}

/// Readers hold blocks to these limits; who writes keeps them.
pub(crate) fn check_size(values: Values<'_>) -> Result<()> {
    if values.len() > VALUE_COUNT_MAX {
        return Err(Error::TooLarge { what: "values", found: values.len(), limit: VALUE_COUNT_MAX });
    }
    match values {
        Values::Bytes(view) if view.data_bytes() > DECODED_BYTES_MAX => {
            Err(Error::TooLarge { what: "bytes of strings", found: view.data_bytes(), limit: DECODED_BYTES_MAX })
        }
        _ => Ok(()),
    }
}

/// Encodes `values` as one block, appended to `out`, and returns its statistics.
///
/// `validity` has one bit per value, 1 where it is present; `None` when all are. What stands at a NULL is not kept.
///
/// # Errors
/// [`crate::Error::NoSuchScheme`], [`crate::Error::NoSuchParameter`] and [`crate::Error::NotApplicable`] for a forced choice;
/// [`crate::Error::TooLarge`] for more than [`VALUE_COUNT_MAX`] values or 1 GiB of strings. `out` is then as before.
pub fn encode(values: Values<'_>, validity: Option<&Bitmap>, choice: &Choice, out: &mut Vec<u8>) -> Result<BlockStats> {
    Chooser::new(choice.clone()).encode(values, validity, out)
}
