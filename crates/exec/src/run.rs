//! A pipeline at work.

use crate::{Batch, Pipeline, Result};
use sinter_codec::Scalar;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

/// What a run has touched so far; for EXPLAIN ANALYZE and SHOW. Counted per vector, so reading them is cheap and exact
/// once all workers are done.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub struct Counters {
    pub groups_total: AtomicU64,
    /// Row groups never opened: their zone maps rule them out.
    pub groups_pruned: AtomicU64,
    pub vectors_total: AtomicU64,
    /// Vectors of opened groups in which the filter left no row; none of their output columns was decoded.
    pub vectors_rejected: AtomicU64,
    /// Filter tests on a vector answered on the encoded form.
    pub filters_encoded: AtomicU64,
    /// Filter tests on a vector for which values had to be decoded.
    pub filters_decoded: AtomicU64,
    /// Vectors of which values were decoded, per column.
    pub vectors_decoded: AtomicU64,
    pub rows_scanned: AtomicU64,
    pub rows_selected: AtomicU64,
    /// Bytes of the segments that were opened.
    pub bytes_compressed: AtomicU64,
    /// Plain bytes of the values that were decoded.
    pub bytes_decoded: AtomicU64,
}

/// A started pipeline, shared by its workers.
#[derive(Debug)]
pub struct Run {
    /// What runs.
    pub pipeline: Pipeline,
    /// What it has touched.
    pub counters: Counters,
    next_group: AtomicUsize,
    rows_out: AtomicUsize,
    cancelled: AtomicBool,
}

/// One thread's part in a run.
#[derive(Debug)]
pub struct Worker {
    run: Arc<Run>,
}

/// Partial aggregates of one worker.
#[derive(Debug)]
pub struct AggregateState {}

impl Pipeline {
    /// Makes the pipeline ready; nothing is read before a worker asks.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] where an expression is none of ours.
    pub fn start(self) -> Result<Arc<Run>> {
        todo!()
    }
}

impl Run {
    /// A worker; take one per thread.
    pub fn worker(self: &Arc<Run>) -> Worker {
        Worker { run: Arc::clone(self) }
    }

    /// Makes every worker stop with [`crate::Error::Cancelled`] at its next vector.
    pub fn cancel(&self) {
        self.cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Merges what the workers found into the one row of results, in the order of the aggregates.
    pub fn finish(&self, states: Vec<AggregateState>) -> Result<Vec<Scalar>> {
        let _ = (states, &self.next_group, &self.rows_out);
        todo!()
    }
}

impl Worker {
    /// Fills `batch` with the next rows (at least one); false when nothing is left. For [`crate::Output::Rows`].
    pub fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        let _ = (batch, &self.run);
        todo!()
    }

    /// Aggregates until no row group is left. For [`crate::Output::Aggregate`].
    pub fn aggregate(self) -> Result<AggregateState> {
        todo!()
    }
}
