//! What foreign aggregates keep of groups.

use crate::aggregate::ForeignPart;
use crate::edge::from_arrow;
use crate::expr::Frame;
use crate::{Error, ForeignStates, LogicalType, Result, Vector};
use arrow::array::{Array, ArrayRef};
use std::ops::Range;

/// States outside, and at the end their results.
#[derive(Debug)]
pub(super) enum ForeignState {
    Running(Box<dyn ForeignStates>),
    Done(ArrayRef),
}

impl ForeignState {
    pub(super) fn new(part: &ForeignPart, has_keys: bool) -> Result<ForeignState> {
        part.function.start(has_keys).map(ForeignState::Running)
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            ForeignState::Running(states) => states.bytes(),
            ForeignState::Done(results) => results.get_array_memory_size(),
        }
    }

    /// Takes a vector whose rows are of `groups`, of `group_count` in all.
    pub(super) fn add(
        &mut self,
        part: &ForeignPart,
        frame: Frame<'_>,
        groups: &[u32],
        group_count: usize,
    ) -> Result<()> {
        part.update(&mut **self.running()?, frame, groups, group_count)
    }

    /// Adds what another worker found; its groups are `map`ped to ours.
    pub(super) fn merge(&mut self, other: ForeignState, map: &[u32], group_count: usize) -> Result<()> {
        let ForeignState::Running(other) = other else { return Err(done()) };
        if map.is_empty() {
            return Ok(());
        }
        self.running()?.merge(other, map, group_count)
    }

    /// Makes the results, one for each group.
    pub(super) fn finish(&mut self, part: &ForeignPart, group_count: usize) -> Result<()> {
        let results = self.running()?.results()?;
        if results.len() != group_count {
            let (text, found) = (part.function.text(), results.len());
            return Err(Error::Foreign(format!("{text} returned {found} results for {group_count} groups")));
        }
        *self = ForeignState::Done(results);
        Ok(())
    }

    /// Writes over `out` the results of these groups.
    pub(super) fn results(&self, groups: Range<usize>, ty: &LogicalType, out: &mut Vector) -> Result<()> {
        let ForeignState::Done(results) = self else { return Err(done()) };
        *out = from_arrow(&results.slice(groups.start, groups.len()), ty)?;
        Ok(())
    }

    fn running(&mut self) -> Result<&mut Box<dyn ForeignStates>> {
        match self {
            ForeignState::Running(states) => Ok(states),
            ForeignState::Done(_) => Err(done()),
        }
    }
}

fn done() -> Error {
    Error::Unsupported("groups whose results are made already, or not yet".into())
}
