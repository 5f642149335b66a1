//! Aggregates that DataFusion computes inside our pipelines.
//!
//! The engine finds the group of each row, and [`AggregateCall`] gives the rows to what DataFusion keeps of groups: a
//! `GroupsAccumulator` where the function has one, else an `Accumulator` for each group ([`each_group`]).

mod call;
mod each_group;
mod states;

pub(crate) use call::AggregateCall;
