//! Rows of build sides that come out after all others: those that found no partner, or those that found one.

use super::steps::{Chain, StepPlan};
use super::survivors::Survivors;
use super::{Flow, Sink};
use crate::Result;
use crate::error::check_cancelled;

/// How far the one worker is who hands them out.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Steps before this one have no rows left.
    step: usize,
    /// The next row of that step's table.
    row: usize,
    rows: Vec<u32>,
    survivors: Survivors,
}

impl Chain<'_> {
    /// Hands out what is left of all joins, one join after the other; false when nothing is left, true when the sink
    /// pauses. Nobody else is at work any more.
    ///
    /// # Errors
    /// As [`Sink::take`].
    pub(crate) fn run_rest(&mut self, rest: &mut Rest) -> Result<bool> {
        loop {
            if self.resume()?.is_break() {
                return Ok(true);
            }
            check_cancelled(self.cancelled)?;
            let Some(step) = self.plan.step(rest.step) else { return Ok(false) };
            let begun = self.clock.now();
            rest.rows.clear();
            let mut join = 0;
            if let StepPlan::Join(probe) = step
                && probe.kind.has_rest()
            {
                join = probe.join;
                let table = &*self.layout.tables[join];
                if rest.row == 0 {
                    table.settle();
                }
                table.rest(probe.kind, &mut rest.row, &mut rest.rows);
            }
            if rest.rows.is_empty() {
                (rest.step, rest.row) = (rest.step + 1, 0);
                continue;
            }
            rest.survivors.start_with_rest(join, &mut rest.rows, self.layout.columns());
            let mut flow = Flow::new(&mut rest.survivors, self.layout, None);
            self.clock.note(rest.step, begun, flow.rows());
            if self.run(rest.step + 1, &mut flow)?.is_break() {
                return Ok(true);
            }
        }
    }
}
