//! One thread's part in a run.

use super::feed::Feed;
use super::{OutputPlan, Run};
use crate::aggregate::AggregateSink;
use crate::group::GroupSink;
use crate::join::BuildSink;
use crate::rows::RowSink;
use crate::sort::{SortPlan, SortSink, SortedRuns};
use crate::spill::{PartsSink, WorkerParts};
use crate::{AggregateState, Batch, Error, Groups, Memory, Result};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Poll;

/// One thread's part in a run.
#[derive(Debug)]
pub struct Worker {
    pub(super) run: Arc<Run>,
    pub(super) feed: Feed,
    pub(super) rows: RowSink,
}

impl Worker {
    /// Fills `batch` with the next rows (at least one); false when nothing is left. For [`Output::Rows`].
    ///
    /// # Errors
    /// What the data brings about, [`Error::Source`], [`Error::Damaged`], and [`Error::Cancelled`].
    pub fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        loop {
            if let Poll::Ready(more) = self.poll(batch)? {
                return Ok(more);
            }
        }
    }

    /// The same, but comes back from time to time though there is nothing yet: whoever runs other work on this thread, or
    /// may lose interest, asks again.
    ///
    /// # Errors
    /// As [`Worker::next`].
    pub fn poll(&mut self, batch: &mut Batch) -> Result<Poll<bool>> {
        let run = Arc::clone(&self.run);
        let OutputPlan::Rows(program) = &run.output else {
            return Err(Error::Unsupported("aggregates as rows".into()));
        };
        if self.rows.is_empty() {
            if run.is_full() {
                return Ok(Poll::Ready(false));
            }
            let mut sink = self.rows.sink(program, run.pipeline.limit);
            let more = self.feed.run(&run, &mut sink)?;
            if self.rows.is_empty() {
                return Ok(if more { Poll::Pending } else { Poll::Ready(false) });
            }
        }
        self.rows.pop(batch);
        match run.admit(batch.rows) {
            0 => return Ok(Poll::Ready(false)),
            rows if rows < batch.rows => batch.truncate(rows),
            _ => {}
        }
        Ok(Poll::Ready(true))
    }

    /// Hands every batch of this worker's share to `take`, until nothing is left or `take` breaks off.
    ///
    /// # Errors
    /// As [`Worker::next`], and those of `take`.
    pub fn for_each(&mut self, mut take: impl FnMut(&mut Batch) -> Result<ControlFlow<()>>) -> Result<()> {
        let mut batch = Batch::default();
        while self.next(&mut batch)? {
            if take(&mut batch)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Aggregates until no row group is left. For [`Output::Aggregate`].
    ///
    /// # Errors
    /// As [`Worker::next`].
    pub fn aggregate(mut self) -> Result<AggregateState> {
        let OutputPlan::Aggregate(plan) = &self.run.output else {
            return Err(Error::Unsupported("rows as aggregates".into()));
        };
        let mut sink = AggregateSink::new(plan, self.run.pipeline.source.table().map(|table| &**table));
        while self.feed.run(&self.run, &mut sink)? {}
        Ok(sink.into_state())
    }

    /// Groups until no row group is left. For [`Output::Groups`] and [`Output::GroupingSets`].
    pub(super) fn groups(mut self, memory: &Arc<dyn Memory>) -> Result<Groups> {
        let OutputPlan::Groups(plan) = &self.run.output else {
            return Err(Error::Unsupported("rows as groups".into()));
        };
        let mut sink = GroupSink::new(plan, &self.run.prepared()?.tables, memory)?;
        while self.feed.run(&self.run, &mut sink)? {}
        Ok(sink.into_groups())
    }

    /// Keeps and sorts rows until no row group is left, and may spill them. For [`Output::Sorted`].
    pub(super) fn sort(
        mut self,
        plan: &Arc<SortPlan>,
        may_spill: bool,
        memory: &Arc<dyn Memory>,
    ) -> Result<SortedRuns> {
        let mut sink = SortSink::new(plan, may_spill.then_some(&self.run.stop), memory)?;
        while self.feed.run(&self.run, &mut sink)? {}
        sink.into_runs()
    }

    /// Spills rows until no row group is left.
    pub(super) fn parts(mut self) -> Result<WorkerParts> {
        let OutputPlan::Parts(plan) = &self.run.output else {
            return Err(Error::Unsupported("rows as parts of them".into()));
        };
        let mut sink = PartsSink::new(plan)?;
        while self.feed.run(&self.run, &mut sink)? {}
        sink.finish()
    }

    /// Keeps rows until no row group is left. For build sides.
    pub(super) fn build(mut self, memory: &Arc<dyn Memory>) -> Result<BuildSink> {
        let OutputPlan::Build(plan) = &self.run.output else {
            return Err(Error::Unsupported("rows as a join's table".into()));
        };
        let mut sink = BuildSink::new(plan, memory)?;
        while self.feed.run(&self.run, &mut sink)? {}
        Ok(sink)
    }
}
