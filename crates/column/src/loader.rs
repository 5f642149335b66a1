//! Rows on their way into a table: gathered, pressed a row group at a time, written as chunks.

use crate::chunk::{ChunkWriter, Pressed};
use crate::group::RowGroup;
use crate::record::fresh_group;
use crate::{ColumnTable, Result, TableSchema};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{cast, concat};
use sinter_codec::{Choice, ROW_GROUP_LEN};
use sinter_exec::{LogicalType, RowIds, edge};
use sinter_storage::{PageId, Record};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A remainder below this is kept as a delta batch: the next insert merges with it, and pressing so few rows saves
/// little.
const PRESS_ROWS_MIN: usize = 256;

/// Takes batches and presses full row groups as it goes, so memory stays at about one row group in plain form.
pub(crate) struct Loader {
    schema: Arc<TableSchema>,
    table_id: sinter_storage::ObjectId,
    threads: usize,
    pending: Vec<Vec<ArrayRef>>,
    pending_rows: usize,
    next_row_id: u64,
    rows: u64,
    chunks: ChunkWriter,
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
        let schema = table.schema();
        Loader {
            table_id: table.id(),
            threads: threads.max(1),
            pending: vec![Vec::new(); schema.columns.len()],
            pending_rows: 0,
            next_row_id: first_row_id,
            rows: 0,
            chunks: ChunkWriter::new(table.store(), schema.columns.len()),
            schema,
        }
    }

    /// Rows taken so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes a batch whose columns are the table's, in table order.
    ///
    /// # Errors
    /// [`crate::Error::Data`] where a type or NOT NULL is violated; the load is then to be dropped.
    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let arrays = self.schema.check(batch)?;
        self.rows += batch.num_rows() as u64;
        let mut start = 0;
        while start < batch.num_rows() {
            let count = (ROW_GROUP_LEN - self.pending_rows).min(batch.num_rows() - start);
            for (pending, array) in self.pending.iter_mut().zip(&arrays) {
                pending.push(array.slice(start, count));
            }
            self.pending_rows += count;
            start += count;
            if self.pending_rows == ROW_GROUP_LEN {
                self.press_pending()?;
            }
        }
        Ok(())
    }

    fn take_pending(&mut self) -> Result<(usize, RowIds, Vec<ArrayRef>)> {
        let rows = std::mem::take(&mut self.pending_rows);
        let row_ids = RowIds::From(self.next_row_id);
        self.next_row_id += rows as u64;
        let columns = self
            .pending
            .iter_mut()
            .map(|parts| {
                let parts = std::mem::take(parts);
                if parts.len() == 1 {
                    return Ok(Arc::clone(&parts[0]));
                }
                // Batches may bring siblings of one type, such as text with and without views.
                let ty = parts[0].data_type();
                let parts =
                    parts.iter().map(|part| if part.data_type() == ty { Ok(Arc::clone(part)) } else { cast(part, ty) });
                let parts = parts
                    .collect::<std::result::Result<Vec<ArrayRef>, _>>()
                    .map_err(|error| sinter_exec::Error::Foreign(error.to_string()))?;
                let parts: Vec<&dyn arrow::array::Array> = parts.iter().map(AsRef::as_ref).collect();
                Ok(concat(&parts).map_err(|error| sinter_exec::Error::Foreign(error.to_string()))?)
            })
            .collect::<Result<Vec<_>>>()?;
        Ok((rows, row_ids, columns))
    }

    fn press_pending(&mut self) -> Result<()> {
        let (rows, row_ids, columns) = self.take_pending()?;
        let segments = press(&self.schema, &columns, self.threads)?;
        self.chunks.push(rows, row_ids, segments)
    }

    /// Presses or keeps what is left.
    pub(crate) fn finish(mut self) -> Result<Loaded> {
        let mut fresh = None;
        if self.pending_rows >= PRESS_ROWS_MIN {
            self.press_pending()?;
        } else if self.pending_rows > 0 {
            let (rows, row_ids, columns) = self.take_pending()?;
            fresh = Some(fresh_group(self.table_id, &self.schema, rows, row_ids, &columns)?);
        }
        let (groups, pages) = self.chunks.finish()?;
        let mut loaded = Loaded { groups, pages, records: Vec::new(), rows: self.rows };
        if !loaded.groups.is_empty() {
            loaded.records.push(crate::record::attached(self.table_id, &loaded.groups)?);
        }
        if let Some((group, record)) = fresh {
            loaded.groups.push(group);
            loaded.records.push(record);
        }
        Ok(loaded)
    }
}

/// Encodes the columns of one row group, columns side by side on the threads.
pub(crate) fn press(schema: &TableSchema, columns: &[ArrayRef], threads: usize) -> Result<Vec<Pressed>> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<Pressed>>>> = columns.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(array) = columns.get(index) else { break };
            let column = &schema.columns[index];
            let pressed = press_column(array, &column.ty, &column.choice());
            *results[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(pressed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(columns.len()) {
            scope.spawn(work);
        }
        work();
    });
    results
        .into_iter()
        .map(|result| {
            result.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or_else(|| {
                Err(sinter_exec::Error::Unsupported("pressing: a thread died before its column was done".to_owned())
                    .into())
            })
        })
        .collect()
}

/// Encodes one column as a segment.
pub(crate) fn press_column(array: &ArrayRef, ty: &LogicalType, choice: &Choice) -> Result<Pressed> {
    let mut bytes = Vec::new();
    let stats = edge::encode_segment(array, ty, choice, &mut bytes)?;
    bytes.shrink_to_fit();
    Ok((bytes, ty.physical().map(|_| stats)))
}
