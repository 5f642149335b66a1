//! Joins by equal keys, or without any.
//!
//! The rows of one side, the build side, are kept as columns ([`RowStore`](crate::store::RowStore)) with an index over their keys ([`index`]):
//! together they are a [`JoinTable`]. Rows of the other side look their keys up there ([`probe`]) and go on with the
//! number of the row they met; what else they want of it is fetched when it is asked for.

mod build;
mod by_number;
mod index;
mod key_filter;
mod plan;
mod probe;
mod ranks;
mod refined;
mod table;

pub(crate) use build::{BuildPlan, BuildSink, WantedTable};
pub use key_filter::KeyFilter;
pub(crate) use key_filter::Keys;
pub use plan::{Join, JoinKind};
pub(crate) use probe::{Probe, ProbePlan};
pub(crate) use table::JoinTable;
