//! The loop over what another pipeline gathered: the scan of what is decoded already.

use super::plan::ScanPlan;
use crate::error::check_cancelled;
use crate::flow::{FilterScratch, Flow, Layout, Sink, Survivors};
use crate::{Batch, Error, Groups, LogicalType, Merged, Result, Sorted, Spilled, Vector, Windowed};
use sinter_codec::{Scalar, VECTOR_LEN};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Vectors after which a scan pauses though nobody asked it to.
const VECTORS_BETWEEN_PAUSES: usize = 1024;

/// What a pipeline made of all its rows.
#[derive(Debug)]
pub enum Gathered {
    /// In no order.
    Groups(Box<Groups>),
    /// In theirs.
    Sorted(Sorted),
    /// In theirs, though they did not fit the memory; to be read once. A [`Reader`](crate::Reader) reads them.
    Merged(Box<Merged>),
    /// In that of the window.
    Windowed(Windowed),
    /// Values of these types.
    Row(Vec<Scalar>, Vec<LogicalType>),
    /// What did not fit the memory; a [`Reader`](crate::Reader) reads it.
    Spilled(Arc<Spilled>),
}

impl Gathered {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        match self {
            Gathered::Groups(groups) => groups.len(),
            Gathered::Sorted(sorted) => sorted.len(),
            Gathered::Windowed(windowed) => windowed.len(),
            Gathered::Row(..) => 1,
            Gathered::Merged(merged) => merged.len(),
            Gathered::Spilled(table) => table.rows(),
        }
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the rows from `first` on, a multiple of [`VECTOR_LEN`], over `batch`, a vector's worth at most. False when none is
    /// left.
    ///
    /// # Errors
    /// As [`Groups::read`]; [`Error::Unsupported`] for what was spilled.
    pub fn read(&self, first: usize, batch: &mut Batch) -> Result<bool> {
        match self {
            Gathered::Groups(groups) => groups.read(first, batch),
            Gathered::Sorted(sorted) => Ok(sorted.read(first, batch)),
            Gathered::Windowed(windowed) => Ok(windowed.read(first, batch)),
            Gathered::Row(values, types) => {
                batch.rows = usize::from(first == 0);
                batch.columns.clear();
                for (value, ty) in values.iter().zip(types) {
                    batch.columns.push(Vector::of_scalar(value, ty)?);
                }
                Ok(first == 0)
            }
            Gathered::Merged(_) | Gathered::Spilled(_) => {
                Err(Error::Unsupported("spilled rows by their numbers".into()))
            }
        }
    }
}

/// One worker's part in it.
#[derive(Debug, Default)]
pub(crate) struct GatheredScanner {
    batch: Batch,
    survivors: Survivors,
    filters: Vec<FilterScratch>,
    /// The part of sorted rows that it has taken.
    taken: Option<usize>,
    /// Rows since somebody asked.
    done: usize,
}

/// What the workers share.
pub(crate) struct SharedGathered<'a> {
    pub(crate) plan: &'a ScanPlan,
    pub(crate) layout: Layout<'a>,
    pub(crate) gathered: &'a Gathered,
    pub(crate) next_vector: &'a AtomicUsize,
    pub(crate) cancelled: &'a AtomicBool,
}

impl GatheredScanner {
    /// How many rows it took since it was last asked.
    pub(crate) fn take_done(&mut self) -> usize {
        std::mem::take(&mut self.done)
    }

    /// Feeds `sink` until it pauses, or many vectors have passed (true), or no group is left (false).
    ///
    /// # Errors
    /// What finishing aggregates and evaluating filters bring about, and [`Error::Cancelled`].
    pub(crate) fn run(&mut self, shared: &SharedGathered<'_>, sink: &mut dyn Sink) -> Result<bool> {
        if sink.resume()?.is_break() {
            return Ok(true);
        }
        self.filters.resize_with(shared.plan.programs.len(), FilterScratch::default);
        for _ in 0..VECTORS_BETWEEN_PAUSES {
            check_cancelled(shared.cancelled)?;
            let more = match shared.gathered {
                Gathered::Merged(merged) => merged.read(&mut self.taken, &mut self.batch)?,
                gathered => {
                    let vector = shared.next_vector.fetch_add(1, Ordering::Relaxed);
                    gathered.read(vector * VECTOR_LEN, &mut self.batch)?
                }
            };
            if !more {
                return Ok(false);
            }
            self.done += self.batch.rows;
            self.survivors.start_loaded(&mut self.batch, &shared.plan.source_columns, shared.layout.columns());
            let mut flow = Flow::new(&mut self.survivors, shared.layout, None);
            let mut passed = true;
            for (program, scratch) in shared.plan.programs.iter().zip(&mut self.filters) {
                passed = passed && flow.filter(program, scratch)?;
            }
            if passed && sink.take(&mut flow)?.is_break() {
                return Ok(true);
            }
        }
        Ok(true)
    }
}
