//! Partial aggregates of one worker, and how they become the result.

use super::accumulator::Accumulator;
use super::form::Argument;
use super::plan::AggregatePlan;
use super::zone;
use crate::expr::Machine;
use crate::flow::{Flow, Sink};
use crate::{Result, TableSource};
use sinter_codec::Scalar;
use std::ops::ControlFlow;

/// Partial aggregates of one worker.
#[derive(Debug)]
pub struct AggregateState {
    accumulators: Vec<Accumulator>,
}

impl AggregateState {
    pub(crate) fn new(plan: &AggregatePlan) -> AggregateState {
        AggregateState { accumulators: plan.parts.iter().map(Accumulator::new).collect() }
    }

    /// The one row of results.
    pub(crate) fn finish(plan: &AggregatePlan, states: Vec<AggregateState>) -> Result<Vec<Scalar>> {
        let mut whole = AggregateState::new(plan);
        for state in states {
            for (accumulator, other) in whole.accumulators.iter_mut().zip(state.accumulators) {
                accumulator.merge(other)?;
            }
        }
        let results = whole.accumulators.into_iter().zip(&plan.parts);
        results.map(|(accumulator, part)| accumulator.finish(part)).collect()
    }
}

/// Takes vectors into a worker's aggregates.
pub(crate) struct AggregateSink<'a> {
    plan: &'a AggregatePlan,
    /// Its statistics may answer.
    source: Option<&'a dyn TableSource>,
    state: AggregateState,
    machine: Machine,
}

impl<'a> AggregateSink<'a> {
    pub(crate) fn new(plan: &'a AggregatePlan, source: Option<&'a dyn TableSource>) -> AggregateSink<'a> {
        AggregateSink { plan, source, state: AggregateState::new(plan), machine: Machine::default() }
    }

    pub(crate) fn into_state(self) -> AggregateState {
        self.state
    }
}

impl Sink for AggregateSink<'_> {
    fn columns(&self) -> &[usize] {
        self.plan.columns()
    }

    fn take(&mut self, flow: &mut Flow<'_>) -> Result<ControlFlow<()>> {
        flow.load(self.plan.columns())?;
        let (columns, rows) = (flow.columns(), flow.rows());
        self.machine.run(&self.plan.program, columns, rows)?;
        let frame = self.machine.frame(&self.plan.program, columns, rows);
        for (part, accumulator) in self.plan.parts.iter().zip(&mut self.state.accumulators) {
            let argument = self.plan.operand(part).map(|operand| Argument::new(frame, operand));
            accumulator.add(argument, rows)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn take_group(&mut self, group: usize, rows: usize) -> bool {
        let accumulators = &mut self.state.accumulators;
        self.source.is_some_and(|source| zone::add_group(self.plan, source, group, rows, accumulators))
    }

    fn would_take_group(&self, group: usize) -> bool {
        self.source.is_some_and(|source| zone::answers_group(self.plan, source, group))
    }
}
