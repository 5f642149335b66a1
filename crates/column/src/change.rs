//! What one statement does to a table: from one value to the next. Nothing is logged, nothing is visible.

use crate::loader::Loader;
use crate::{ColumnTable, Draft, Result};
use arrow::array::RecordBatch;
use sinter_storage::{Reservation, Use};
use std::sync::Arc;

/// Ids of deleted rows are in memory twice: as they came, and those of them that were alive.
const IDS_IN_MEMORY: usize = 2;

/// Deletes and inserts on their way into a table. Dropping it gives back what it wrote.
#[derive(Debug)]
pub struct Change {
    before: Arc<ColumnTable>,
    now: ColumnTable,
    /// Rows from this id on belong to the transaction alone, so their delta batches may be merged.
    own_row_id: u64,
    threads: usize,
    loader: Option<Loader>,
    rows_deleted: u64,
    /// For the ids of rows that are deleted.
    ids: Reservation,
}

/// What a finished [`Change`] made of its table.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The table after the statement.
    pub table: Arc<ColumnTable>,
}

impl Change {
    /// A change of `table`, pressing on so many threads.
    pub fn new(table: &Arc<ColumnTable>, threads: usize) -> Change {
        Change::of(table, table.next_row_id(), threads)
    }

    /// A change of what a transaction sees; [`Draft::take`] takes what comes of it.
    pub fn on(draft: &Draft, threads: usize) -> Change {
        Change::of(draft.now(), draft.base().next_row_id(), threads)
    }

    fn of(table: &Arc<ColumnTable>, own_row_id: u64, threads: usize) -> Change {
        let (before, now) = (Arc::clone(table), (**table).clone());
        let ids = table.store().budget().take(Use::Query, 0);
        Change { before, now, own_row_id, threads, loader: None, rows_deleted: 0, ids }
    }

    /// The table before the change.
    pub fn table(&self) -> &Arc<ColumnTable> {
        &self.before
    }

    /// Deletes rows by id; ids may come in any order and more than once. Rows that this change inserts are not among
    /// those it can delete.
    ///
    /// # Errors
    /// [`crate::Error::Storage`] where there is no memory for so many ids; the change is then to be dropped.
    pub fn delete(&mut self, mut row_ids: Vec<u64>) -> Result<()> {
        self.ids.grow(IDS_IN_MEMORY * size_of_val(&row_ids[..]))?;
        row_ids.sort_unstable();
        row_ids.dedup();
        self.rows_deleted += self.now.delete(&row_ids).len() as u64;
        Ok(())
    }

    /// Appends rows: the table's columns in table order.
    ///
    /// # Errors
    /// [`crate::Error::Data`]; the change is then to be dropped.
    pub fn insert(&mut self, batch: &RecordBatch) -> Result<()> {
        let (table, threads) = (&self.now, self.threads);
        self.loader.get_or_insert_with(|| Loader::new(table, threads)).push(batch)
    }

    /// Rows that were deleted.
    pub fn rows_deleted(&self) -> u64 {
        self.rows_deleted
    }

    /// Rows that were inserted.
    pub fn rows_inserted(&self) -> u64 {
        self.loader.as_ref().map_or(0, Loader::rows)
    }

    /// Presses what is left to press. A change of nothing gives back the table that it got.
    ///
    /// # Errors
    /// Those of encoding and writing.
    pub fn finish(mut self) -> Result<Changed> {
        let groups = self.loader.take().map_or(Ok(Vec::new()), Loader::finish)?;
        if groups.is_empty() && self.rows_deleted == 0 {
            return Ok(Changed { table: self.before });
        }
        if !groups.is_empty() {
            groups.into_iter().for_each(|group| self.now.push(group.into()));
            let border = self.own_row_id;
            let own = self.now.groups().partition_point(|entry| entry.group.first_row_id() < border);
            while let Some(rewrite) = self.now.settling_from(own, self.threads)? {
                let Some(settled) = rewrite.apply_to(&self.now) else { break };
                self.now = settled;
            }
        }
        Ok(Changed { table: Arc::new(self.now) })
    }
}
