//! A change to one table: built against its current state, made durable together with others, then shown.

use crate::loader::Loader;
use crate::record::deleted;
use crate::table::{GroupEntry, TableState};
use crate::{ColumnTable, Result};
use arrow::array::RecordBatch;
use sinter_storage::{CommitNumber, PageId, Record, Store};
use std::sync::Arc;

/// Deletes and inserts on their way into a table. Nothing of it is visible before [`Change::commit`]; dropping it
/// gives back what it wrote.
pub struct Change {
    table: Arc<ColumnTable>,
    state: TableState,
    loader: Option<Loader>,
    threads: usize,
    records: Vec<Record>,
    pages: Vec<PageId>,
    added: Vec<GroupEntry>,
    rows_deleted: u64,
    rows_inserted: u64,
    committed: bool,
}

impl Change {
    /// A change against what the table holds now. The caller keeps other writers away until it is committed.
    pub fn new(table: &Arc<ColumnTable>, threads: usize) -> Change {
        Change {
            table: Arc::clone(table),
            state: (*table.state()).clone(),
            loader: None,
            threads,
            records: Vec::new(),
            pages: Vec::new(),
            added: Vec::new(),
            rows_deleted: 0,
            rows_inserted: 0,
            committed: false,
        }
    }

    /// The table that changes.
    pub fn table(&self) -> &Arc<ColumnTable> {
        &self.table
    }

    /// Deletes rows by id; ids may come in any order and more than once.
    ///
    /// # Errors
    /// None in practice.
    pub fn delete(&mut self, mut row_ids: Vec<u64>) -> Result<()> {
        row_ids.sort_unstable();
        row_ids.dedup();
        let count = self.state.delete(&row_ids);
        if count > 0 {
            self.rows_deleted += count;
            self.records.extend(deleted(self.table.id(), &row_ids)?);
        }
        Ok(())
    }

    /// Appends rows: the table's columns in table order.
    ///
    /// # Errors
    /// [`crate::Error::Data`]; the change is then to be dropped.
    pub fn insert(&mut self, batch: &RecordBatch) -> Result<()> {
        let (table, first, threads) = (&self.table, self.state.next_row_id, self.threads);
        self.loader.get_or_insert_with(|| Loader::new(table, first, threads)).push(batch)
    }

    /// Rows that were deleted.
    pub fn rows_deleted(&self) -> u64 {
        self.rows_deleted
    }

    /// Rows that were inserted.
    pub fn rows_inserted(&self) -> u64 {
        self.rows_inserted + self.loader.as_ref().map_or(0, Loader::rows)
    }

    /// Presses what is left to press; after this only [`Change::commit`] remains.
    fn finish(&mut self) -> Result<()> {
        if let Some(loader) = self.loader.take() {
            let loaded = loader.finish()?;
            self.rows_inserted += loaded.rows;
            self.records.extend(loaded.records);
            self.pages.extend(loaded.pages);
            for group in loaded.groups {
                self.state.next_row_id = group.end_row_id();
                let entry = GroupEntry { group: Arc::new(group), deleted: None };
                self.added.push(entry.clone());
                self.state.groups.push(entry);
            }
        }
        Ok(())
    }

    /// Makes changes to several tables durable as one, with records of other rooms before them, and shows them.
    ///
    /// # Errors
    /// Whatever writing can raise; then none of the changes happened.
    pub fn commit(store: &Store, mut before: Vec<Record>, mut changes: Vec<Change>) -> Result<Option<CommitNumber>> {
        let mut pages = Vec::new();
        for change in &mut changes {
            change.finish()?;
            before.append(&mut change.records);
            pages.append(&mut change.pages);
        }
        if before.is_empty() {
            return Ok(None);
        }
        let number = store.commit(&before, &pages)?;
        for change in &mut changes {
            change.committed = true;
            change.table.publish(std::mem::take(&mut change.state));
        }
        Ok(Some(number))
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        if !self.committed {
            for page in self.added.iter().flat_map(|entry| entry.group.pages()) {
                page.release();
            }
        }
    }
}
