//! Batches on their way into a table: checked, numbered, pressed; the few rows that remain become a delta batch.

use crate::group::RowGroup;
use crate::group_writer::{Gathered, GroupWriter};
use crate::record::{attached, fresh_group};
use crate::{ColumnTable, Result, TableSchema};
use arrow::array::RecordBatch;
use sinter_storage::{ObjectId, PageId, Record};
use std::sync::Arc;

/// A remainder below this is kept as a delta batch: the next insert merges with it, and pressing so few rows saves
/// little...
const PRESS_ROWS_MIN: usize = 256;

/// ... unless its rows are large: delta batches stay in memory, and their bytes travel in the log.
const PRESS_BYTES_MIN: u64 = 1 << 20;

/// Takes batches and presses full row groups as it goes, so memory stays at about one row group in plain form.
pub(crate) struct Loader {
    schema: Arc<TableSchema>,
    table_id: ObjectId,
    next_row_id: u64,
    rows: u64,
    writer: GroupWriter,
}

/// What a finished load will add to its table.
pub(crate) struct Loaded {
    /// Groups in chunks, then at most one delta batch.
    pub(crate) groups: Vec<RowGroup>,
    pub(crate) pages: Vec<PageId>,
    pub(crate) records: Vec<Record>,
    pub(crate) rows: u64,
}

impl Loader {
    pub(crate) fn new(table: &ColumnTable, first_row_id: u64, threads: usize) -> Loader {
        Loader {
            schema: table.schema(),
            table_id: table.id(),
            next_row_id: first_row_id,
            rows: 0,
            writer: GroupWriter::new(table, threads),
        }
    }

    /// Rows taken so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes a batch whose columns are the table's, in table order.
    ///
    /// # Errors
    /// [`crate::Error::Data`] where a type or NOT NULL is violated or a value is too large; the load is then to be
    /// dropped.
    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = self.schema.check(batch)?;
        let end = self.next_row_id + batch.num_rows() as u64;
        let row_ids: Vec<u64> = (self.next_row_id..end).collect();
        self.writer.push(&row_ids, &columns)?;
        self.next_row_id = end;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Presses or keeps what is left.
    pub(crate) fn finish(mut self) -> Result<Loaded> {
        let mut fresh = None;
        if self.writer.rows() >= PRESS_ROWS_MIN || self.writer.bytes() > PRESS_BYTES_MIN {
            self.writer.press()?;
        } else if self.writer.rows() > 0 {
            let Gathered { rows, row_ids, columns } = self.writer.take()?;
            fresh = Some(fresh_group(self.table_id, &self.schema, rows, &row_ids, &columns)?);
        }
        let (groups, pages) = self.writer.finish()?;
        let mut loaded = Loaded { groups, pages, records: Vec::new(), rows: self.rows };
        if !loaded.groups.is_empty() {
            loaded.records.push(attached(self.table_id, &loaded.groups)?);
        }
        if let Some((group, record)) = fresh {
            loaded.groups.push(group);
            loaded.records.push(record);
        }
        Ok(loaded)
    }
}
