//! Column tables: row groups of compressed segments, fresh inserts beside them, deletes as marks.
//!
//! Start with [`ColumnTable`] and [`Change`]: its state is an immutable list of row groups behind one pointer, so a snapshot is a
//! clone of that pointer and readers never wait. A change builds the next state, makes it durable through the log, and
//! swaps the pointer. Zukowski et al. (ICDE 2006) call this a differential file; we differ in that fresh inserts have
//! the same shape as pressed row groups (delta batches, encoded `raw`), so that scans know one kind of group only.

mod change;
mod chunk;
mod error;
mod group;
mod group_writer;
mod loader;
mod page;
mod record;
mod root;
mod schema;
mod snapshot;
mod table;
pub mod wire;

pub use change::Change;
pub use error::{Error, Result};
pub use group::{RowGroup, Segment, SegmentPlace};
pub use schema::{ColumnSchema, TableSchema};
pub use snapshot::Snapshot;
pub use table::{ColumnTable, GroupEntry, TableState};
