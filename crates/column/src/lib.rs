//! Column tables: row groups of compressed segments, fresh inserts beside them, deletes as marks.
//!
//! A [`ColumnTable`] is a value: what a table holds at one moment, as a list of row groups that later values share.
//! Nothing here is locked, and nothing waits. What leads from one value to the next:
//!
//! ```text
//! Change::new(&table, threads) .insert(&batch) .delete(row_ids) .finish() -> Changed   a statement
//! Draft::new(table) .take(changed) .alter(alteration)                                  a transaction, on one table
//! draft.rebase(&current) -> Rebased { table, records, pages, .. }                      its commit, after others' commits
//! table.settling(threads), table.pressing(threads, ..) -> Rewrite                      the same rows, kept better
//! rewrite.apply_to(&current) -> ColumnTable
//! table.apply(&record)                                                                 recovery
//! ```
//!
//! Which value is the current one, and in which order changes are made to it, is for the rooms above to say. Pages
//! come back by themselves when no value points to them any more.
//!
//! Zukowski et al. (ICDE 2006) call this a differential file; we differ in that fresh inserts have the same shape as
//! pressed row groups (delta batches, encoded `raw`), so that scans know one kind of group only.

mod alteration;
mod change;
mod check;
mod chunk;
mod delta_batch;
mod difference;
mod draft;
mod error;
mod group;
mod group_entry;
mod group_wire;
mod group_writer;
mod held;
mod loader;
mod marks;
mod page;
mod press;
mod pressing;
mod rebase;
mod record;
mod rewrite;
mod root;
mod schema;
mod selected;
mod source;
mod table;
pub mod wire;

pub use alteration::Alteration;
pub use change::{Change, Changed};
pub use check::SegmentId;
pub use difference::{Difference, differences};
pub use draft::Draft;
pub use error::{Error, Result};
pub use group::{RowGroup, Segment, SegmentPlace};
pub use group_entry::GroupEntry;
pub use held::Held;
pub use loader::PRESS_ROWS_MIN;
pub use marks::Marks;
pub use pressing::Unreadable;
pub use rebase::{Prepared, Rebased};
pub use rewrite::Rewrite;
pub use schema::{Check, ColumnSchema, Index, IndexRule, TableSchema};
pub use selected::SelectedRows;
pub use table::ColumnTable;
