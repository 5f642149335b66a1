//! Rows on their way into row groups: gathered until they fill one, pressed, written as chunks.
//!
//! A row group is full at 131,072 rows or at 32 MiB in plain form, whichever comes first. So what is held in memory while
//! rows are gathered and pressed is bounded whatever a row takes, and so are the segments, each of which has to fit a
//! page. Where memory is short, row groups are smaller: a load under a small limit is compressed a little less, and
//! goes on.

use crate::chunk::ChunkWriter;
use crate::group::RowGroup;
use crate::press::{Press, PressedGroup};
use crate::{ColumnTable, Error, Result, TableSchema};
use arrow::array::{Array, ArrayRef};
use arrow::compute::{cast, concat};
use sinter_codec::ROW_GROUP_LEN;
use sinter_exec::RowIds;
use sinter_exec::edge;
use sinter_storage::page::PAYLOAD_BYTES_MAX;
use sinter_storage::{Budget, Reservation, Use};
use std::sync::Arc;

/// What a row group takes at most in plain form, however much memory there is: 256 bytes for each row of a full one.
pub(crate) const GROUP_BYTES: u64 = 32 << 20;

/// No single value is larger: in plain form it has to fit a page, with room for the headers of its blocks.
pub(crate) const VALUE_BYTES_MAX: u64 = 255 << 20;
const _: () = assert!(VALUE_BYTES_MAX < PAYLOAD_BYTES_MAX as u64);

/// A row group, and all that are pressed side by side, may take this part of the memory that there is to reserve ...
const GROUP_DIVISOR: u64 = 6;

/// ... since its rows are in memory about so many times over, in halves, while it is pressed: as they came; of columns
/// that threads are at, which may be all, as one array, too; and of some on their way through the codec. The segments that
/// take their place are smaller.
const HALVES_IN_MEMORY: u64 = 5;

/// Where not even that is to be had, row groups are pressed as soon as they have so many bytes in plain form.
const SCARCE_BYTES: u64 = 1 << 20;

/// A row group takes no more rows when they would pass so many bytes in plain form.
pub(crate) fn group_bytes_max(budget: &Budget) -> u64 {
    (budget.reservable_bytes() as u64 / GROUP_DIVISOR).clamp(SCARCE_BYTES, GROUP_BYTES)
}

/// How full some rows make a row group, of [`GROUP_BYTES`], by their count or their bytes, of which it can take
/// `bytes_max`.
pub(crate) fn weight(rows: u64, bytes: u64, bytes_max: u64) -> u64 {
    let by_bytes = u128::from(bytes) * u128::from(GROUP_BYTES) / u128::from(bytes_max.max(1));
    u64::try_from(by_bytes).unwrap_or(u64::MAX).max(rows * (GROUP_BYTES / ROW_GROUP_LEN as u64))
}

/// Gathers rows and presses full row groups as it goes, so memory stays at a few times those that are pressed side by side in
/// plain form, which is reserved.
#[derive(Debug)]
pub(crate) struct GroupWriter {
    table: String,
    schema: Arc<TableSchema>,
    press: Press,
    /// Per column, pieces of the rows gathered.
    pending: Vec<Vec<ArrayRef>>,
    row_ids: Vec<u64>,
    bytes: u64,
    scratch: Reservation,
    chunks: ChunkWriter,
}

/// Rows that were gathered, in Arrow form.
pub(crate) struct Gathered {
    pub(crate) rows: usize,
    pub(crate) row_ids: RowIds,
    pub(crate) columns: Vec<ArrayRef>,
}

impl GroupWriter {
    pub(crate) fn new(table: &ColumnTable, threads: usize) -> GroupWriter {
        let schema = Arc::clone(table.schema());
        GroupWriter {
            table: table.name().to_owned(),
            press: Press::new(&schema, threads),
            pending: vec![Vec::new(); schema.columns.len()],
            row_ids: Vec::new(),
            bytes: 0,
            scratch: table.store().budget().take(Use::Scratch, 0),
            chunks: ChunkWriter::new(Arc::clone(table.store()), &schema),
            schema,
        }
    }

    /// Rows gathered and not yet pressed.
    pub(crate) fn rows(&self) -> usize {
        self.row_ids.len()
    }

    /// Their bytes in plain form.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes rows, whose ids follow those taken before; columns in table order.
    ///
    /// # Errors
    /// [`Error::Data`] for a value of more than [`VALUE_BYTES_MAX`] bytes; then none of these rows was taken. And those of
    /// pressing, after which the writer is to be dropped.
    pub(crate) fn push(&mut self, row_ids: &[u64], columns: &[ArrayRef]) -> Result<()> {
        while self.press.is_first_made() {
            self.write_first()?;
        }
        let row_bytes = self.row_bytes(row_ids.len(), columns)?;
        let mut bytes_max = self.bytes_max();
        let mut start = 0;
        while start < row_ids.len() {
            let (end, bytes) = self.fitting(&row_bytes, start, bytes_max);
            if !self.reserve(bytes - self.bytes) {
                if self.write_first()? {
                    continue;
                }
                if bytes_max > SCARCE_BYTES {
                    bytes_max = SCARCE_BYTES;
                    self.press()?;
                    continue;
                }
                self.take_memory(bytes - self.bytes);
            }
            if start < end {
                for (pending, column) in self.pending.iter_mut().zip(columns) {
                    pending.push(column.slice(start, end - start));
                }
                self.row_ids.extend_from_slice(&row_ids[start..end]);
                self.bytes = bytes;
            }
            start = end;
            if start < row_ids.len() || self.rows() == ROW_GROUP_LEN || self.bytes >= bytes_max {
                self.press()?;
            }
        }
        Ok(())
    }

    /// What a row group takes now.
    pub(crate) fn bytes_max(&self) -> u64 {
        group_bytes_max(self.scratch.budget())
    }

    /// How many of the rows from `start` on fit beside those that are gathered: where they end, and the bytes of all. One
    /// row always fits.
    fn fitting(&self, row_bytes: &[u64], start: usize, bytes_max: u64) -> (usize, u64) {
        let (mut end, mut bytes) = (start, self.bytes);
        let rows_max = start + ROW_GROUP_LEN - self.rows();
        while end < row_bytes.len().min(rows_max) {
            let is_first = self.rows() + end - start == 0;
            if !is_first && bytes + row_bytes[end] > bytes_max {
                break;
            }
            bytes += row_bytes[end];
            end += 1;
        }
        (end, bytes)
    }

    /// Reserves memory for more rows of so many bytes; false where there is none.
    fn reserve(&mut self, bytes: u64) -> bool {
        self.scratch.grow(in_memory(bytes)).is_ok()
    }

    /// The same where so little cannot be refused.
    fn take_memory(&mut self, bytes: u64) {
        self.scratch.take(in_memory(bytes));
    }

    /// The bytes of each row in plain form.
    fn row_bytes(&self, rows: usize, columns: &[ArrayRef]) -> Result<Vec<u64>> {
        let mut row_bytes = vec![0; rows];
        for (column, array) in self.schema.columns.iter().zip(columns) {
            for (row, bytes) in row_bytes.iter_mut().zip(edge::row_bytes(array, &column.ty)?) {
                if bytes > VALUE_BYTES_MAX {
                    return Err(self.too_large(&column.name, bytes));
                }
                *row += bytes;
            }
        }
        Ok(row_bytes)
    }

    fn too_large(&self, column: &str, bytes: u64) -> Error {
        Error::Data(format!(
            "table '{}', column '{column}': a value of {bytes} bytes is larger than the {VALUE_BYTES_MAX} bytes that a \
             value may have",
            self.table
        ))
    }

    /// The rows gathered, of which there is one at least.
    pub(crate) fn take(&mut self) -> Result<Gathered> {
        self.bytes = 0;
        let ids = std::mem::take(&mut self.row_ids);
        let columns = self.pending.iter_mut().map(|parts| concatenated(&std::mem::take(parts)));
        Ok(Gathered { rows: ids.len(), columns: columns.collect::<Result<Vec<_>>>()?, row_ids: row_ids_of(ids) })
    }

    /// Begins to press the rows gathered, if there are any.
    pub(crate) fn press(&mut self) -> Result<()> {
        if self.rows() == 0 {
            return Ok(());
        }
        self.bytes = 0;
        let row_ids = std::mem::take(&mut self.row_ids);
        let columns = self.pending.iter_mut().map(std::mem::take).collect();
        let none = self.scratch.budget().take(Use::Scratch, 0);
        let memory = std::mem::replace(&mut self.scratch, none);
        self.press.begin(row_ids.len(), row_ids_of(row_ids), columns, memory);
        // All that are under way and the next one take no more than one alone may.
        let bytes_max =
            self.scratch.budget().reservable_bytes() / GROUP_DIVISOR as usize * HALVES_IN_MEMORY as usize / 2;
        let next = in_memory(self.bytes_max());
        while self.press.is_full() || self.press.bytes() + next > bytes_max {
            if !self.write_first()? {
                break;
            }
        }
        Ok(())
    }

    /// Writes the first row group that is being pressed, when that is done; false when there is none.
    fn write_first(&mut self) -> Result<bool> {
        let Some(PressedGroup { rows, row_ids, segments }) = self.press.first()? else { return Ok(false) };
        for (column, (bytes, _)) in self.schema.columns.iter().zip(&segments) {
            if bytes.len() > PAYLOAD_BYTES_MAX {
                return Err(self.too_large(&column.name, bytes.len() as u64));
            }
        }
        self.chunks.push(rows, row_ids, segments)?;
        Ok(true)
    }

    /// The row groups pressed.
    pub(crate) fn finish(mut self) -> Result<Vec<RowGroup>> {
        while self.write_first()? {}
        self.chunks.finish()
    }
}

/// What rows of so many bytes in plain form take in memory.
fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes * HALVES_IN_MEMORY / 2).unwrap_or(usize::MAX)
}

/// Ids as they are kept: the first one where the others follow without gaps.
pub(crate) fn row_ids_of(ids: Vec<u64>) -> RowIds {
    match (ids.first(), ids.last()) {
        (Some(&first), Some(&last)) if last - first == ids.len() as u64 - 1 => RowIds::From(first),
        _ => RowIds::Listed(ids.into()),
    }
}

/// Pieces of one column, one after the other. Batches may bring siblings of one type, such as text with and without
/// views; they become what the first is.
pub(crate) fn concatenated(parts: &[ArrayRef]) -> Result<ArrayRef> {
    let foreign = |error: arrow::error::ArrowError| sinter_exec::Error::Foreign(error.to_string());
    if let [part] = parts {
        return Ok(Arc::clone(part));
    }
    let ty = parts[0].data_type();
    let alike = |part: &ArrayRef| if part.data_type() == ty { Ok(Arc::clone(part)) } else { cast(part, ty) };
    let parts = parts.iter().map(alike).collect::<std::result::Result<Vec<_>, _>>().map_err(foreign)?;
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    Ok(concat(&parts).map_err(foreign)?)
}
