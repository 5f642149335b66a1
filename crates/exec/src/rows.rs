//! Rows on their way out.
//!
//! A scan pushes its vectors; whoever reads rows pulls batches. Between the two stands a short queue. It holds a few
//! vectors only, so that what is decoded is still in cache when it is taken, and yet enough to make up for opening the
//! group's segments again after each pause.

use crate::expr::{Machine, Program};
use crate::flow::{Flow, Sink};
use crate::{Batch, Result, Vector};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Vectors that may wait. 16 of them, at 8 bytes a value, are 128 KiB a column.
const BATCHES_AHEAD: usize = 16;

/// The queue, with the memory that batches are made in.
#[derive(Debug, Default)]
pub(crate) struct RowSink {
    machine: Machine,
    ready: VecDeque<Batch>,
    /// Batches that have been taken: their memory is used again.
    spare: Vec<Batch>,
    /// Rows that wait.
    rows: usize,
    /// So many batches may wait instead of [`BATCHES_AHEAD`].
    ahead_max: Option<usize>,
}

impl RowSink {
    /// Exchanges `batch` for the next one that waits; false when none does.
    pub(crate) fn pop(&mut self, batch: &mut Batch) -> bool {
        let Some(mut next) = self.ready.pop_front() else { return false };
        self.rows -= next.rows;
        std::mem::swap(batch, &mut next);
        self.spare.push(next);
        true
    }

    /// Makes no more batches than these before they are asked for.
    pub(crate) fn set_ahead_max(&mut self, batches: usize) {
        self.ahead_max = Some(batches);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// What the scan pushes into. With a limit, no more rows are made ready than it may let out.
    pub(crate) fn sink<'a>(&'a mut self, program: &'a Program, limit: Option<usize>) -> ProgramSink<'a> {
        ProgramSink { queue: self, program, limit: limit.unwrap_or(usize::MAX) }
    }
}

/// Evaluates a program on each vector.
pub(crate) struct ProgramSink<'a> {
    queue: &'a mut RowSink,
    program: &'a Program,
    limit: usize,
}

impl Sink for ProgramSink<'_> {
    fn columns(&self) -> &[usize] {
        &self.program.columns
    }

    fn take(&mut self, flow: &mut Flow<'_>) -> Result<ControlFlow<()>> {
        flow.load(&self.program.columns)?;
        let rows = flow.rows();
        let columns = flow.columns_mut();
        let queue = &mut *self.queue;
        let mut batch = queue.spare.pop().unwrap_or_default();
        let outputs = &self.program.outputs;
        batch.columns.resize_with(outputs.len(), Vector::default);
        batch.rows = rows;
        queue.machine.run(self.program, columns, rows)?;
        queue.machine.outputs(self.program, columns, rows, &mut batch.columns);
        queue.rows += rows;
        queue.ready.push_back(batch);
        let ahead_max = queue.ahead_max.unwrap_or(BATCHES_AHEAD);
        let enough = queue.ready.len() >= ahead_max || queue.rows >= self.limit;
        Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}
