//! Batches on their way into a table: checked, numbered, pressed; the few rows that remain become a delta batch.

use crate::delta_batch::delta_batch;
use crate::group::RowGroup;
use crate::group_writer::GroupWriter;
use crate::{ColumnTable, Result};
use arrow::array::RecordBatch;
use sinter_codec::VECTOR_LEN;

/// From so many rows on, what remains of an insert is pressed into a row group at once. Fewer are kept as a delta
/// batch, unless they take more than a mebibyte: the next inserts merge with it, and to press so few rows (texts train
/// a symbol table) takes many times as long as to keep them.
pub const PRESS_ROWS_MIN: usize = VECTOR_LEN;

/// Fewer rows are pressed, too, if they take more: delta batches stay in memory, and their bytes travel in the log.
const PRESS_BYTES_MIN: u64 = 1 << 20;

/// Takes batches and presses full row groups as it goes, so memory stays at a few times those that are pressed side by side
/// in plain form.
#[derive(Debug)]
pub(crate) struct Loader {
    /// Without rows; for its schema.
    table: ColumnTable,
    next_row_id: u64,
    rows: u64,
    writer: GroupWriter,
}

impl Loader {
    /// For rows that follow those of `table`.
    pub(crate) fn new(table: &ColumnTable, threads: usize) -> Loader {
        Loader {
            table: table.with_groups(Vec::new()),
            next_row_id: table.next_row_id(),
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
        let columns = self.table.schema().check(batch)?;
        let end = self.next_row_id + batch.num_rows() as u64;
        let row_ids: Vec<u64> = (self.next_row_id..end).collect();
        self.writer.push(&row_ids, &columns)?;
        self.next_row_id = end;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Presses or keeps what is left: groups in chunks, then at most one delta batch.
    pub(crate) fn finish(mut self) -> Result<Vec<RowGroup>> {
        let mut last = None;
        if self.writer.rows() >= PRESS_ROWS_MIN || self.writer.bytes() > PRESS_BYTES_MIN {
            self.writer.press()?;
        } else if self.writer.rows() > 0 {
            last = Some(delta_batch(&self.table, self.writer.take()?)?);
        }
        let mut groups = self.writer.finish()?;
        groups.extend(last);
        Ok(groups)
    }
}
