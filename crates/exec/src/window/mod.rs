//! Window functions: of each row, something about the rows that stand before and after it.
//!
//! Rows are sorted by the keys of their partition, then by those of the order ([`crate::sort`]). What the functions
//! need is written out in that order, the borders of partitions are noted, and of peers where a function looks at
//! them ([`borders`], [`reach`]), and each function goes over the rows once: what it says of a row is a number
//! ([`numbers`]), what a frame adds up to ([`totals`]), or the row whose value it is ([`picks`]). Borders of frames
//! only move forward, so that each row enters and leaves a frame once.

mod borders;
mod numbers;
mod picks;
mod plan;
mod reach;
mod totals;
mod windowed;

pub(crate) use plan::WindowPlan;
pub use plan::{Bound, Distance, Frame, FrameUnit, Window, WindowFunction, WindowKind};
pub use windowed::Windowed;
