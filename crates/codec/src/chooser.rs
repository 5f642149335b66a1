//! Writes the blocks of a column, one after the other, and remembers what suited the last one: schemes, and dictionaries.
//!
//! The paper (Zukowski et al., ICDE 2006, section 3.1) chooses by a sorted sample and chooses again when the ratio decays. So do
//! we, with three differences. The sample is tried out on every scheme that applies, parts included, not only judged by
//! formula. We choose again, too, when the values change their nature, as a ratio that stays might then be a better one. And
//! a dictionary that following blocks share is stored in each of them ([`crate::dictionary`]): blocks stay self-contained.

use crate::encoder::{Role, Tree, all_equal, write_as, write_values};
use crate::loss::Request;
use crate::measure::{Counts, measure};
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
    /// Plain, with values that read as they will where they are pressed by this choice. One that this build does not
    /// know stays an error: who knows what is to be lost.
    pub fn raw(&self) -> Choice {
        match self {
            Choice::Forced(text) if Request::parse(text).is_ok_and(|request| !request.is_lossy()) => Choice::Raw,
            Choice::Forced(text) | Choice::RawRounded(text) => Choice::RawRounded(text.clone()),
            Choice::Auto | Choice::Raw => Choice::Raw,
        }
    }
}

/// Blocks after which a column's schemes are chosen anew, even if the last choice still serves: it may no longer be the best.
const BLOCKS_PER_CHOICE: u32 = 64;

/// Bytes a value, as a multiple of those when the schemes were chosen, from which they are chosen anew.
const DECAY: f64 = 1.05;

/// Encodes the blocks of one column. Keep one per column: later blocks reuse what the first one found out.
#[derive(Clone, Debug)]
pub struct Chooser {
    choice: Choice,
    last: Option<Chosen>,
}

/// The schemes in use.
#[derive(Clone, Debug)]
struct Chosen {
    tree: Tree,
    /// Of the block for which they were chosen, as is the nature: small losses must not add up unseen.
    bytes_per_value: f64,
    nature: Nature,
    blocks: u32,
}

/// What the values of a block are like, so far as it is known without a choice.
#[derive(Clone, Copy, Debug)]
struct Nature {
    is_sorted: bool,
    rows: usize,
    /// About how many different values and how many runs.
    counts: Counts,
}

/// Counts that differ by a larger factor are those of other values.
const UNLIKE: f64 = 2.0;

impl Nature {
    /// Whether what suited the one may be what suits the other best.
    fn is_like(&self, other: &Nature) -> bool {
        let is_near = |one: f64, other: f64| one <= UNLIKE * other && other <= UNLIKE * one;
        // Of fewer rows there may be as many different values, or as many a row.
        let is_like = |one: usize, another: usize| {
            let (one, another) = (one as f64, another as f64);
            is_near(one, another) || is_near(one / self.rows as f64, another / other.rows as f64)
        };
        self.is_sorted == other.is_sorted
            && is_like(self.counts.distinct, other.counts.distinct)
            && is_like(self.counts.runs, other.counts.runs)
    }
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
            self.write_chosen(request, values, &stats, out);
        }
        block_header::finish(start, out);
        Ok(stats)
    }

    fn write_chosen(&mut self, request: Option<Request>, values: Values<'_>, stats: &BlockStats, out: &mut Vec<u8>) {
        if values.is_empty() || all_equal(values) {
            write_planned(request, values, None, out);
            return; // says nothing about the blocks to come
        }
        let rows = values.len();
        let nature = Nature { is_sorted: stats.sorted, rows, counts: Counts::with(stats.distinct_estimate, values) };
        let start = out.len();
        let last = self.last.take().filter(|last| last.blocks < BLOCKS_PER_CHOICE && last.nature.is_like(&nature));
        let mut decayed = None;
        if let Some(last) = last {
            let tree = write_planned(request, values, Some(&last.tree), out);
            if (out.len() - start) as f64 <= last.bytes_per_value * rows as f64 * DECAY {
                self.last = Some(Chosen { tree, blocks: last.blocks + 1, ..last });
                return;
            }
            decayed = Some(tree);
        }
        let again = out.len();
        let mut tree = write_planned(request, values, None, out);
        match decayed {
            Some(decayed) if again - start < out.len() - again => {
                out.truncate(again);
                tree = decayed;
            }
            _ => drop(out.drain(start..again)),
        }
        self.last = Some(Chosen { tree, bytes_per_value: (out.len() - start) as f64 / rows as f64, nature, blocks: 1 });
    }
}

/// Appends the node of a block in the scheme asked for, if it holds the values, else as planned, else in the best. A plan
/// is for the parts of a scheme asked for, too.
fn write_planned(request: Option<Request>, values: Values<'_>, plan: Option<&Tree>, out: &mut Vec<u8>) -> Tree {
    if let Some(Request { entry, loss }) = request
        && let Ok(tree) = write_as(entry, values, plan.filter(|plan| plan.tag() == entry.tag), loss, 1, out)
    {
        return tree;
    }
    write_values(values, Role::Values, plan, 1, out)
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
/// [`crate::Error::NoSuchScheme`], [`crate::Error::NotInThisBuild`], [`crate::Error::NoSuchParameter`] and
/// [`crate::Error::NotApplicable`] for a forced choice; [`crate::Error::TooLarge`] for more than [`VALUE_COUNT_MAX`]
/// values or 1 GiB of strings. `out` is then as before.
pub fn encode(values: Values<'_>, validity: Option<&Bitmap>, choice: &Choice, out: &mut Vec<u8>) -> Result<BlockStats> {
    Chooser::new(choice.clone()).encode(values, validity, out)
}
