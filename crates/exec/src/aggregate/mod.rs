//! Aggregates over all rows that pass: one accumulator per aggregate and worker, merged at the end.
//!
//! An accumulator reads vectors in the form in which they come. A constant counts once, deltas are summed apart from
//! their base, MIN and MAX of a dictionary's column only note which entries occur; and a row group that passes whole
//! may be answered by its statistics without being opened.

mod accumulator;
mod average;
mod extreme;
mod foreign;
mod form;
mod plan;
mod state;
mod sum;
mod zone;

pub(crate) use average::{average, averages, sum, takes_sums_as_they_are, variance};
pub(crate) use foreign::ForeignPart;
pub use foreign::{ForeignAggregate, ForeignCall, ForeignStates};
pub(crate) use form::{Argument, Form};
pub(crate) use plan::{AggregatePlan, Part, parts, widened_column};
pub(crate) use state::AggregateSink;
pub use state::AggregateState;
pub(crate) use sum::{Sum, overflow};
