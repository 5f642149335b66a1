//! Writes trees of nodes: chooses a scheme for each part, or follows the tree that the last block of the column had.

use crate::dictionary::Remembered;
use crate::fixed::{Fixed, for_fixed};
use crate::loss::Loss;
use crate::measure::Counts;
use crate::node::{LEVELS_MAX, PAYLOAD_AT, write_node};
use crate::sample::Sample;
use crate::schemes::{RAW, SCHEMES, SchemeEntry, scheme_by_name};
use crate::{Error, Result, Values, ValuesBuf};
use std::sync::Arc;

/// The schemes of a node and its parts, and its dictionary if it has one.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    entry: &'static SchemeEntry,
    parts: Vec<Tree>,
    dictionary: Option<Arc<Remembered>>,
}

impl Tree {
    /// Of the outermost scheme.
    pub(crate) fn tag(&self) -> u8 {
        self.entry.tag
    }
}

/// What the values of a part are, which bounds the schemes worth trying on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Values of a column, of runs, of a dictionary: every scheme.
    Values,
    /// Codes of a dictionary: all but another dictionary, and none that has to sum up steps, because codes are what
    /// filters and groups are answered on.
    Codes,
    /// Lengths, positions and the like: only schemes without parts.
    Counts,
    /// What a scheme leaves of values (suffixes, exceptions): all but the schemes that leave such.
    Rest,
}

impl Role {
    fn allows(self, entry: &SchemeEntry) -> bool {
        match self {
            Role::Values => true,
            Role::Codes => !matches!(entry.name, "dict" | "pdict" | "delta" | "pfor_delta"),
            Role::Counts => !entry.scheme.nests(),
            Role::Rest => !matches!(entry.name, "front" | "pdict"),
        }
    }
}

/// Of two schemes the one that decodes faster is taken if its size is within this factor of the smaller one,
const NEARLY_EQUAL: f64 = 1.03;

/// or larger by at most so many bytes: a few strings of a small dictionary need no symbol table.
const NEARLY_EQUAL_BYTES: usize = 16;

/// A scheme that is not direct counts as larger by this part of its size.
const INDIRECT_DIVISOR: usize = 12;

/// Hands a scheme's parts to the schemes they deserve. One per node that is written.
#[derive(Debug)]
pub(crate) struct Encoder<'p> {
    /// Of the node being written, 1 for the outermost.
    level: usize,
    plan: Option<&'p Tree>,
    loss: Option<Loss>,
    parts: Vec<Tree>,
    dictionary: Option<Arc<Remembered>>,
}

impl<'p> Encoder<'p> {
    /// For a node at this level that follows a plan, if there is one.
    fn new(level: usize, plan: Option<&'p Tree>, loss: Option<Loss>) -> Encoder<'p> {
        Encoder { level, plan, loss, parts: Vec::new(), dictionary: None }
    }

    /// What the user let go of. The values were rounded so already; a scheme finds here what it would have to look for.
    pub(crate) fn loss(&self) -> Option<Loss> {
        self.loss
    }

    /// Appends `values` as a node, in a scheme of their own.
    pub(crate) fn part(&mut self, values: Values<'_>, role: Role, out: &mut Vec<u8>) {
        let plan = self.plan.and_then(|plan| plan.parts.get(self.parts.len()));
        let tree = write_values(values, role, plan, self.level + 1, out);
        self.parts.push(tree);
    }

    /// The dictionary of the column's last block, which had the same schemes.
    pub(crate) fn last_dictionary(&self) -> Option<&'p Remembered> {
        self.plan.and_then(|plan| plan.dictionary.as_deref())
    }

    /// Appends the entries of a dictionary as [`Encoder::part`] does, and remembers them for the next block.
    pub(crate) fn dictionary_part(&mut self, entries: ValuesBuf, out: &mut Vec<u8>) {
        let start = out.len();
        self.part(entries.as_values(), Role::Values, out);
        self.dictionary = Remembered::new(entries, &out[start..], self.last_dictionary()).map(Arc::new);
    }

    /// Appends the entries of the last block's dictionary once more.
    pub(crate) fn last_dictionary_part(&mut self, out: &mut Vec<u8>) {
        let Some(plan) = self.plan else { return };
        if let (Some(dictionary), Some(part)) = (&plan.dictionary, plan.parts.get(self.parts.len())) {
            out.extend_from_slice(dictionary.node());
            self.parts.push(part.clone());
            self.dictionary = Some(Arc::clone(dictionary));
        }
    }

    /// What the values of a part would take, judged from a sample: for schemes that estimate by their parts.
    pub(crate) fn estimate_part(&self, values: Values<'_>, role: Role) -> usize {
        let mut out = Vec::new();
        write_values(values, role, None, self.level + 1, &mut out);
        out.len()
    }

    /// The least that a scheme promises for the values of a part, all of which are there: nothing is written.
    pub(crate) fn promise_part(&self, values: Values<'_>, role: Role) -> usize {
        self.promise_sampled(values, values.len(), role)
    }

    /// The same for a part of so many values, of which these are the sample.
    pub(crate) fn promise_sampled(&self, values: Values<'_>, whole_count: usize, role: Role) -> usize {
        if values.is_empty() || all_equal(values) {
            return self.estimate_part(values, role);
        }
        let sample = match whole_count == values.len() {
            true => Sample::new(values, Counts::of(values)),
            false => Sample::of_sampled(values, whole_count),
        };
        estimates_by(&sample, role, self.level + 1).iter().map(|estimate| estimate.bytes).min().unwrap_or(0)
    }

    /// Encodes the sample with this scheme and scales up.
    pub(crate) fn try_on_sample(&self, scheme: &str, sample: &Sample<'_>) -> Option<usize> {
        let entry = scheme_by_name(scheme).ok()?;
        let mut encoder = Encoder::new(self.level, None, None);
        let mut out = Vec::new();
        entry.scheme.encode(sample.values(), &mut encoder, &mut out).ok()?;
        Some(PAYLOAD_AT + sample.scale(out.len()))
    }
}

/// Appends a node for `values` in the scheme of `plan` if it holds them, else in the one that promises the least bytes.
pub(crate) fn write_values(
    values: Values<'_>,
    role: Role,
    plan: Option<&Tree>,
    level: usize,
    out: &mut Vec<u8>,
) -> Tree {
    if let Some(plan) = plan
        && let Ok(tree) = write_as(plan.entry, values, Some(plan), None, level, out)
    {
        return tree;
    }
    for entry in ranked(values, role, level) {
        if let Ok(tree) = write_as(entry, values, None, None, level, out) {
            return tree;
        }
    }
    unreachable!("raw, the last of the ranking, holds all values")
}

/// Appends a node for `values`, to which the loss was done, in this scheme. On an error nothing is appended.
pub(crate) fn write_as(
    entry: &'static SchemeEntry,
    values: Values<'_>,
    plan: Option<&Tree>,
    loss: Option<Loss>,
    level: usize,
    out: &mut Vec<u8>,
) -> Result<Tree> {
    let entry = if values.is_empty() { &RAW } else { entry };
    if !entry.holds(values.physical()) {
        return Err(Error::NotApplicable { scheme: entry.name, physical: values.physical().name() });
    }
    let start = out.len();
    let mut encoder = Encoder::new(level, plan, loss);
    let written = write_node(entry.tag, values.physical(), values.len(), out, |out| {
        entry.scheme.encode(values, &mut encoder, out)
    });
    if let Err(error) = written {
        out.truncate(start);
        return Err(error);
    }
    Ok(Tree { entry, parts: encoder.parts, dictionary: encoder.dictionary })
}

/// The applicable schemes, most promising first, `raw` last.
fn ranked(values: Values<'_>, role: Role, level: usize) -> Vec<&'static SchemeEntry> {
    if values.is_empty() {
        return vec![&RAW];
    }
    if all_equal(values) {
        return SCHEMES.iter().filter(|entry| entry.name == "constant").chain([&RAW]).collect();
    }
    estimates(values, role, level).into_iter().map(|estimate| estimate.entry).chain([&RAW]).collect()
}

/// What a scheme promises for some values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    pub(crate) entry: &'static SchemeEntry,
    pub(crate) bytes: usize,
    /// The bytes that count in the choice: more than those where a scheme is not direct.
    pub(crate) weighed_bytes: usize,
    /// So near the least that the speed of decoding decides.
    pub(crate) is_near: bool,
}

/// The promises of all schemes that apply, the one to take first.
pub(crate) fn estimates(values: Values<'_>, role: Role, level: usize) -> Vec<Estimate> {
    estimates_by(&Sample::new(values, Counts::of(values)), role, level)
}

/// The same, judged from this sample.
fn estimates_by(sample: &Sample<'_>, role: Role, level: usize) -> Vec<Estimate> {
    let encoder = Encoder::new(level, None, None);
    let applicable = SCHEMES
        .iter()
        .filter(|entry| entry.holds(sample.values().physical()) && role.allows(entry))
        .filter(|entry| level < LEVELS_MAX || !entry.scheme.nests());
    let mut estimates: Vec<Estimate> = applicable
        .filter_map(|entry| {
            let bytes = entry.scheme.estimate(sample, &encoder)?;
            let handicap = if entry.scheme.is_direct() { 0 } else { bytes / INDIRECT_DIVISOR };
            Some(Estimate { entry, bytes, weighed_bytes: bytes + handicap, is_near: false })
        })
        .collect();
    let least = estimates.iter().map(|estimate| estimate.weighed_bytes).min().unwrap_or(0);
    let limit = (least as f64 * NEARLY_EQUAL) as usize + NEARLY_EQUAL_BYTES;
    for estimate in &mut estimates {
        estimate.is_near = estimate.weighed_bytes <= limit;
    }
    estimates.sort_by_key(|estimate| match estimate.is_near {
        true => (0, estimate.entry.scheme.decode_rank() as usize),
        false => (1, estimate.weighed_bytes),
    });
    estimates
}

/// Whether there is one value only, by its bits.
pub(crate) fn all_equal(values: Values<'_>) -> bool {
    fn fixed<T: Fixed>(values: &[T]) -> bool {
        values.iter().all(|value| value.bits() == values[0].bits())
    }
    for_fixed!(Values, values, values => fixed(values), view => view.iter().all(|value| value == view.get(0)))
}
