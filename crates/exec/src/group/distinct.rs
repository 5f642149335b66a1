//! Aggregates of different values: pairs of a group and a value are numbered as keys are, so each is kept once, and what
//! is kept is aggregated at the end.

use super::index::{GroupIndex, IndexPlan};
use super::merge::Merging;
use super::rows::Grouped;
use super::states::{Counts, State};
use crate::aggregate::{Argument, Form, Part};
use crate::error::check_cancelled;
use crate::{Error, LogicalType, Result, Vector};
use sinter_codec::{Encoded, VECTOR_LEN, Values, ValuesBuf};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// No group has a greater number.
const GROUP_MAX: i128 = u32::MAX as i128 - 2;

/// The pairs that have occurred, and at the end the aggregate over them.
#[derive(Debug)]
pub(super) struct Distinct {
    pairs: GroupIndex,
    /// There are groups; else a value is alone.
    has_keys: bool,
    numbers: Vec<u32>,
    results: Option<Box<(Counts, State)>>,
}

/// How pairs with values of a type are numbered, which are between these integers where it is known; an array may have so
/// many places. `None` for nested types.
pub(super) fn plan(
    ty: &LogicalType,
    bounds: Option<(i128, i128)>,
    places_max: usize,
    has_keys: bool,
) -> Option<IndexPlan> {
    match has_keys {
        true => {
            let types = vec![LogicalType::UInt32, ty.clone()];
            IndexPlan::new(types, &[Some((0, GROUP_MAX)), bounds], places_max)
        }
        false => IndexPlan::new(vec![ty.clone()], &[bounds], places_max),
    }
}

impl Distinct {
    pub(super) fn new(plan: &IndexPlan, has_keys: bool) -> Distinct {
        Distinct { pairs: GroupIndex::new(plan), has_keys, numbers: Vec::new(), results: None }
    }

    pub(super) fn bytes(&self) -> usize {
        let results = self.results.as_ref().map_or(0, |results| results.0.bytes() + results.1.bytes());
        self.pairs.bytes() + results
    }

    /// Takes a vector whose rows are of `groups`.
    pub(super) fn add(&mut self, argument: Argument<'_>, groups: &[u32]) -> Result<()> {
        let form = Form::Flat(Values::U32(groups));
        let group = Argument { form, validity: None, rows: argument.rows };
        let pair = [group, argument];
        self.pairs.number(if self.has_keys { &pair } else { &pair[1..] }, argument.rows, &mut self.numbers)
    }

    /// Adds the pairs of another worker; its groups are `map`ped to ours.
    pub(super) fn merge(&mut self, mut other: Distinct, map: &[u32], merging: Merging<'_>) -> Result<()> {
        let groups = self.has_keys.then_some(map);
        if self.pairs.merge_many(&mut other.pairs, groups, merging)?.is_some() {
            return Ok(());
        }
        other.for_each(true, merging.cancelled, |groups, values| {
            let groups: Vec<u32> = groups.iter().map(|&group| map[group as usize]).collect();
            self.add(values, &groups)
        })
    }

    /// Aggregates the pairs there are.
    pub(super) fn finish(&mut self, part: &Part, group_count: usize, cancelled: &AtomicBool) -> Result<()> {
        let mut counts = Counts::default();
        let mut state = State::plain(part)?;
        let with_values = state.reads_values();
        self.for_each(with_values, cancelled, |groups, values| {
            let rows = Grouped::all(groups, group_count);
            counts.add(rows);
            state.add(Some(values), rows)
        })?;
        self.results = Some(Box::new((counts, state)));
        let plan = self.pairs.plan.clone();
        self.pairs = GroupIndex::new(&plan);
        Ok(())
    }

    /// Writes over `out` the results of these groups.
    pub(super) fn results(&self, part: &Part, groups: Range<usize>, out: &mut Vector) -> Result<()> {
        match self.results.as_deref() {
            Some((counts, state)) => state.results(part, counts, groups, out),
            None => Err(Error::Unsupported("pairs that may still become more".into())),
        }
    }

    /// Shows all pairs, some at a time, with their values or only with which of them are NULL.
    fn for_each(
        &self,
        with_values: bool,
        cancelled: &AtomicBool,
        mut visit: impl FnMut(&[u32], Argument<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut keys = vec![Vector::default(); 1 + usize::from(self.has_keys)];
        let one_group = [0; VECTOR_LEN];
        for first in (0..self.pairs.len()).step_by(VECTOR_LEN) {
            check_cancelled(cancelled)?;
            let pairs = first..self.pairs.len().min(first + VECTOR_LEN);
            let rows = pairs.len();
            let value_key = keys.len() - 1;
            self.pairs.keys_but(pairs, (!with_values).then_some(value_key), &mut keys);
            match &keys[..] {
                [values] => visit(&one_group[..rows], Argument::of(values, rows))?,
                [groups, values] => match &groups.values {
                    Encoded::Flat(ValuesBuf::U32(groups)) => visit(groups, Argument::of(values, rows))?,
                    _ => return Err(Error::Unsupported("numbers of groups in another form".into())),
                },
                _ => {}
            }
        }
        Ok(())
    }
}
