//! SinterDB's one engine: operators on encoded vectors.
//!
//! A [`Pipeline`] scans a [`TableSource`], filters on the encoded form, and hands out rows, aggregates,
//! aggregates by group, rows in an order, or rows with what window functions say of them.
//! [`Pipeline::start`] gives a [`Run`] that any number of threads serve: each takes a [`Worker`], and workers share the
//! row groups between them. Values are unpacked a vector at a time, late, and only where the filter left rows alive.
//!
//! Start with [`Pipeline`], then [`TableSource`], then [`Vector`].

mod aggregate;
mod damage;
mod dispatch;
pub mod edge;
mod error;
mod estimate;
mod explain;
mod expr;
mod flow;
mod group;
mod join;
mod lengths;
mod measure;
mod memory;
mod narrowed;
mod parallel;
mod pin;
mod pipeline;
mod read_as;
mod rows;
mod run;
mod scan;
mod sort;
mod source;
mod spill;
mod store;
mod text_head;
mod types;
mod vector;
mod window;

pub use aggregate::{AggregateState, ForeignAggregate, ForeignCall, ForeignStates};
pub use damage::{LeftOut, LeftOutOfTable, OnDamage};
pub use error::{Error, Result};
pub use expr::{ArithmeticOp, Expr, Foreign, TextFunction};
pub use group::Groups;
pub use join::{Join, JoinKind, KeyFilter};
pub use memory::{Memory, Unlimited};
pub use pin::{PageSource, Pinned};
pub use pipeline::{Aggregate, AggregateFunction, GroupingSet, Output, Pipeline, Source, Step};
pub use read_as::ReadAs;
pub use run::{Counters, Reader, Run, Worker, panicked};
pub use scan::Gathered;
pub use sort::{Merged, Order, SortKey, Sorted};
pub use source::{Finder, ReadAhead, RowIds, ScanColumn, TableSource};
pub use spill::{SpillCompression, SpillFile, Spilled};
pub use types::{Field, LogicalType, TimeUnit};
pub use vector::{Batch, Dictionary, Vector};
pub use window::{Bound, Distance, Frame, FrameUnit, Window, WindowFunction, WindowKind, Windowed};
