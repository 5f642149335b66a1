//! Loops over plain values that everything else waits for, each compiled for every instruction set (`crate::isa`).

mod hash;
mod look_up;
mod misses;
mod multiples;
mod passing;
mod prefix_sum;
mod summary;

pub(crate) use hash::{count_runs, hash};
pub(crate) use look_up::look_up;
pub(crate) use misses::{count_misses, farthest_below, misses};
pub(crate) use multiples::{ExactDivisor, divide, multiply};
pub(crate) use passing::push_tests;
pub(crate) use prefix_sum::prefix_sum;
pub(crate) use summary::{Summary, bounds, greatest, summarize};
