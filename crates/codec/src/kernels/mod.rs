//! Loops over plain values that everything else waits for, each compiled for every instruction set (`crate::isa`).

mod by_group;
mod float_summary;
mod hash;
mod keep;
mod look_up;
mod misses;
mod multiples;
mod passing;
mod prefix_sum;
mod rows;
mod sum;
mod summary;

pub use by_group::{GROUPS_FEW, NO_GROUP, add_by_group, count_by_group};
pub(crate) use float_summary::{FloatSummary, summarize_floats};
pub(crate) use hash::{count_runs, hash};
pub use keep::replace_unmarked;
pub(crate) use keep::{fill_unmarked, keep_marked};
pub(crate) use look_up::look_up;
pub(crate) use misses::{Positions, count_misses, farthest_below, misses};
pub(crate) use multiples::{ExactDivisor, divide, multiply};
pub(crate) use passing::push_tests;
pub(crate) use prefix_sum::prefix_sum;
pub use rows::{map_rows, update_rows, zip_rows};
pub(crate) use sum::{FloatSum, square_floats, squares, sum, sum_floats};
pub use summary::bounds_of;
pub(crate) use summary::{Summary, bounds, greatest, summarize};
