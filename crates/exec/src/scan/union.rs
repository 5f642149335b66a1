//! The rows of several pipelines, one after the other, as the scan of another.

use super::plan::ScanPlan;
use crate::expr::{Machine, Program};
use crate::flow::{FilterScratch, Flow, Layout, Sink, Survivors};
use crate::{Batch, Result, Vector};
use std::ops::ControlFlow;

/// What a worker keeps between two vectors.
#[derive(Debug, Default)]
pub(crate) struct Forwarder {
    machine: Machine,
    batch: Batch,
    survivors: Survivors,
    filters: Vec<FilterScratch>,
}

/// Takes the rows of one of the pipelines for the one that scans them.
pub(crate) struct Forward<'a> {
    pub(crate) own: &'a mut Forwarder,
    /// Makes what the pipeline hands out.
    pub(crate) program: &'a Program,
    /// How many of so many rows it may hand out.
    pub(crate) admit: &'a dyn Fn(usize) -> usize,
    /// Of the one that scans.
    pub(crate) plan: &'a ScanPlan,
    pub(crate) layout: Layout<'a>,
    pub(crate) sink: &'a mut dyn Sink,
}

impl Sink for Forward<'_> {
    fn columns(&self) -> &[usize] {
        &self.program.columns
    }

    fn resume(&mut self) -> Result<ControlFlow<()>> {
        self.sink.resume()
    }

    fn take(&mut self, flow: &mut Flow<'_>) -> Result<ControlFlow<()>> {
        flow.load(&self.program.columns)?;
        let rows = flow.rows();
        let columns = flow.columns_mut();
        let Forwarder { machine, batch, survivors, filters } = &mut *self.own;
        batch.columns.resize_with(self.program.outputs.len(), Vector::default);
        batch.rows = rows;
        machine.run(self.program, columns, rows)?;
        machine.outputs(self.program, columns, rows, &mut batch.columns);
        match (self.admit)(rows) {
            0 => return Ok(ControlFlow::Break(())),
            admitted if admitted < rows => batch.truncate(admitted),
            _ => {}
        }
        survivors.start_loaded(batch, &self.plan.source_columns, self.layout.columns());
        filters.resize_with(self.plan.programs.len(), FilterScratch::default);
        let mut flow = Flow::new(survivors, self.layout, None);
        for (program, scratch) in self.plan.programs.iter().zip(filters) {
            if !flow.filter(program, scratch)? {
                return Ok(ControlFlow::Continue(()));
            }
        }
        self.sink.take(&mut flow)
    }
}
