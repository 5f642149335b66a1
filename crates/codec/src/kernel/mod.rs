//! Kernels: what a block answers about a stretch of its rows, without handing them out.
//!
//! A kernel is asked of a [`Block`](crate::Block) and a [`Span`]: a range of rows, up to all of them, and perhaps a
//! selection among them. Rows that are NULL never count. The list of them is [`KERNELS`], the only one.
//!
//! ```text
//!  Block::sum(span)          statistics, where span is the whole block and they are exact
//!     |                      Rows = range, present rows, selected rows
//!     v
//!  Reader::sum(rows)         on the encoded form, where the scheme has a way: runs times lengths, bases times counts,
//!     |                      counts of codes, packed numbers summed as they are unpacked
//!     v
//!  walk(reader, rows)        else: vector by vector into scratch, rows that count moved together, and a plain loop
//! ```
//!
//! Both ways give the same answer to the last bit, and so does every instruction set:
//!
//! - Integers are summed exactly, in 192 bits ([`WideSum`]), squares of them in 320. Means and deviations are rounded once,
//!   at their end.
//! - Floats are summed in a fixed order: in each vector of the block, the counted values go in turn to 16 lanes, the lanes
//!   are added in halves (8 and 8, 4 and 4, ...), and the sums of the vectors with a compensation (Neumaier, 1974). Zeros
//!   have no sign in a sum. An answer that is NaN is *the* NaN, whatever its bits were.
//! - Least, greatest, equal and in order are meant as in [`Predicate`](crate::Predicate): -0.0 is 0.0 (and comes back as
//!   that), NaN equals itself and is above all other floats.
//!
//! To add a kernel: a method of `Block` in `answers.rs`, its line in `list.rs`, and a default method of
//! [`Reader`](crate::scheme::Reader) if schemes may have ways of their own. Property tests and `sinter codecs --kernels`
//! find it there.

mod answers;
mod bounds;
mod list;
mod moments;
mod span;
mod table;
mod table_values;
mod tally;
#[cfg(test)]
mod tests;
mod walk;
mod wide_sum;

pub use answers::Sum;
pub use list::{Answer, KERNELS, KernelEntry};
pub use moments::Moments;
pub use span::{Selection, Span};
pub use table::{DecodeRow, KernelRow, decode_table, kernel_table};
pub use tally::Histogram;
pub use wide_sum::WideSum;

pub(crate) use bounds::{Bounds, bounds_decoded};
pub(crate) use moments::{SquareSum, squares_decoded};
pub(crate) use span::{Marks, Rows, VectorMarks};
pub(crate) use tally::{Tally, add_code, count_codes_decoded, tally_decoded};
pub(crate) use walk::{DecodeOnly, lower_bound_by_rows, sum_decoded};
