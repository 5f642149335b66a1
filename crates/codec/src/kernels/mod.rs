//! Loops over plain values that everything else waits for, each compiled for every instruction set (`crate::isa`).

mod float_summary;
mod hash;
mod keep;
mod look_up;
mod misses;
mod multiples;
mod passing;
mod prefix_sum;
mod sum;
mod summary;

pub(crate) use float_summary::{FloatSummary, summarize_floats};
pub(crate) use hash::{count_runs, hash};
pub(crate) use keep::{fill_unmarked, keep_marked};
pub(crate) use look_up::look_up;
pub(crate) use misses::{Positions, count_misses, farthest_below, misses};
pub(crate) use multiples::{ExactDivisor, divide, multiply};
pub(crate) use passing::push_tests;
pub(crate) use prefix_sum::prefix_sum;
pub(crate) use sum::{FloatSum, square_floats, squares, sum, sum_floats};
pub(crate) use summary::{Summary, bounds, greatest, summarize};
