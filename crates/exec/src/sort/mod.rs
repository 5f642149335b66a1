//! ORDER BY: rows in an order, all of them or the first few.
//!
//! The keys of a row become a *head*, a number of 96 bits that orders as the keys do ([`head`]). Each worker keeps the
//! columns that are asked for in a [`RowStore`](crate::store::RowStore), and of each row its head with its number, which is
//! one integer to sort. Only rows whose heads are equal though their keys may differ are compared by their values
//! ([`ties`]). Where the first few rows are wanted, the head of the last of them says early which rows are too many, and of
//! those nothing but the keys is decoded; where the first key is a column of the table, the scan asks its blocks and zone
//! maps for it before that ([`KeyBound`](crate::flow::KeyBound)). The sorted rows of all workers are merged at the end ([`Sorted`]); runs
//! that did not fit the memory are in a file, and are merged as they are read ([`Merged`]).

mod head;
mod merged;
mod plan;
mod sink;
mod sorted;
mod spilled;
mod ties;

pub use merged::Merged;
pub(crate) use plan::SortPlan;
pub use plan::{Order, SortKey};
pub(crate) use sink::{SortSink, SortedRuns};
pub use sorted::Sorted;
pub(crate) use spilled::SpilledRun;
pub(crate) use ties::compare_values;
