//! GROUP BY: aggregates per group, in one pass over the rows.
//!
//! Keys become numbers first, whatever their type ([`key`]), and the numbers of a row become the number of its group
//! ([`index`]). Where one join brought all keys, its rows stand for them ([`partners`]). What is kept of the groups stands
//! in arrays by that number ([`states`]), so that an aggregate is a loop over a vector's rows that adds to an array. Both
//! together are the groups by one set of keys ([`set`]), of which GROUPING SETS have several ([`groups`]).
//!
//! Each worker has groups of its own, into which it takes its vectors ([`sink`]). At the end those of one are looked up among
//! those of another ([`merge`]); where there are many, and several threads, each thread makes a part of the groups from those
//! of all workers ([`parted`]).

mod direct;
mod distinct;
mod either_index;
mod extremes;
mod find;
mod foreign;
mod groups;
mod index;
mod ints;
mod key;
mod merge;
mod moments;
mod numbers;
mod parted;
mod partners;
mod plan;
mod rows;
mod set;
mod sink;
mod states;
mod sums;
mod texts;

pub(crate) use find::{ABSENT, Finder};
pub use groups::Groups;
pub(crate) use index::{GroupIndex, IndexPlan};
pub(crate) use ints::{IntScratch, Ints};
pub(crate) use key::{canonical_f32, canonical_f64};
pub(crate) use moments::{Moments, Spread};
pub(crate) use plan::GroupPlan;
pub(crate) use sink::GroupSink;

#[cfg(test)]
mod tests;
