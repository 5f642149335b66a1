//! Who scans what: row groups, and stretches of them where no group is left.
//!
//! A worker takes a group and goes through it stretch by stretch. When all groups are taken, it helps the others with
//! theirs: what has been opened for a group is opened once more for that, so nobody helps sooner. Without help, of the
//! two groups of a small table one worker would have nearly all.

use super::DecodedFields;
use crate::{OnDamage, Output, Pipeline, TableSource};
use sinter_codec::VECTOR_LEN;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Vectors of a stretch.
const STRETCH: usize = 8;

/// What the workers of a run have taken of a table.
#[derive(Debug)]
pub(crate) struct Claims {
    next_group: AtomicUsize,
    /// Of each group, the vectors that nobody has taken begin here.
    next_vectors: Vec<AtomicUsize>,
    /// Vectors that are taken at a time.
    stretch: usize,
    /// Of each group, per column of the scan: whether anybody has opened it.
    opened: Vec<AtomicBool>,
    columns: usize,
    /// Of the plan, in measured runs.
    decoded: Option<Arc<DecodedFields>>,
}

/// Vectors of a group.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) group: usize,
    pub(super) vectors: Range<usize>,
}

impl Claims {
    /// On a table, which is the pipeline's or some of its rows; there is nothing to claim where it has none.
    pub(crate) fn new(
        pipeline: &Pipeline,
        table: Option<&dyn TableSource>,
        decoded: Option<Arc<DecodedFields>>,
    ) -> Claims {
        let group_count = table.map_or(0, |table| table.group_count());
        let columns = pipeline.columns.len();
        Claims {
            next_group: AtomicUsize::new(0),
            next_vectors: (0..group_count).map(|_| AtomicUsize::new(0)).collect(),
            stretch: stretch(pipeline),
            opened: (0..group_count * columns).map(|_| AtomicBool::new(false)).collect(),
            columns,
            decoded,
        }
    }

    /// What the scans of the plan have decoded, where that is measured.
    pub(super) fn decoded(&self) -> Option<&DecodedFields> {
        self.decoded.as_deref()
    }

    /// Notes that a column of a group is opened; true for the first of those who do, who reads it.
    pub(super) fn opens_first(&self, group: usize, column: usize) -> bool {
        !self.opened[group * self.columns + column].swap(true, Ordering::Relaxed)
    }

    /// The next stretch, of the group in which the worker is if there is one; `None` when nothing is left.
    pub(super) fn take(&self, within: Option<usize>, source: &dyn TableSource) -> Option<Claim> {
        let stretch = |group: usize| {
            let end = source.group_rows(group).div_ceil(VECTOR_LEN);
            let next = &self.next_vectors[group];
            if next.load(Ordering::Relaxed) >= end {
                return None;
            }
            let first = next.fetch_add(self.stretch.min(end), Ordering::Relaxed);
            (first < end).then(|| Claim { group, vectors: first..end.min(first.saturating_add(self.stretch)) })
        };
        if let Some(claim) = within.and_then(stretch) {
            return Some(claim);
        }
        loop {
            let group = self.next_group.fetch_add(1, Ordering::Relaxed);
            if group >= self.next_vectors.len() {
                // Those that were taken last have most left.
                return (0..self.next_vectors.len()).rev().find_map(stretch);
            }
            if let Some(claim) = stretch(group) {
                return Some(claim);
            }
        }
    }

    /// How many vectors are taken.
    pub(crate) fn taken(&self, source: &dyn TableSource) -> usize {
        let of_group = |(group, next): (usize, &AtomicUsize)| {
            next.load(Ordering::Relaxed).min(source.group_rows(group).div_ceil(VECTOR_LEN))
        };
        self.next_vectors.iter().enumerate().map(of_group).sum()
    }

    /// Takes what is left of a group, and says how many vectors that is.
    pub(super) fn take_rest(&self, group: usize, source: &dyn TableSource) -> usize {
        let end = source.group_rows(group).div_ceil(VECTOR_LEN);
        end.saturating_sub(self.next_vectors[group].fetch_max(end, Ordering::Relaxed))
    }
}

/// How many vectors are taken at a time. What is known of groups as a whole leaves them whole: statistics that answer
/// aggregates, and groups that are left out when they cannot be read.
fn stretch(pipeline: &Pipeline) -> usize {
    let whole = matches!(pipeline.on_damage, OnDamage::LeaveOut(_))
        || (matches!(pipeline.output, Output::Aggregate(_)) && pipeline.steps.is_empty());
    if whole { usize::MAX } else { STRETCH }
}

/// How many vectors a table has.
pub(crate) fn vector_count(source: &dyn TableSource) -> usize {
    (0..source.group_count()).map(|group| source.group_rows(group).div_ceil(VECTOR_LEN)).sum()
}

/// How many workers can find something to do.
pub(crate) fn worker_count_max(pipeline: &Pipeline, source: &dyn TableSource) -> usize {
    match stretch(pipeline) {
        STRETCH => vector_count(source).div_ceil(STRETCH),
        _ => source.group_count(),
    }
}
