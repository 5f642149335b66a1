//! What a table writes to the log: after-images by row id (docs/format/table.md).
//!
//! Ids come first, so that a record of rows that a table has already is passed over before anything else of it is
//! looked at: the table may have been altered since.

use crate::group::{RowGroup, Segment, SegmentPlace};
use crate::group_wire::{
    check_columns, decode_row_ids, encode_row_ids, read_group, read_row_ids, write_group, write_row_ids,
};
use crate::held::Held;
use crate::wire::{Reader, Writer};
use crate::{ColumnTable, Error, Result};
use sinter_codec::{Block, ROW_GROUP_LEN};
use sinter_storage::{ObjectId, Record, RecordTag};
use std::sync::Arc;

/// The record of a delta batch.
pub(crate) fn inserted(table: ObjectId, group: &RowGroup) -> Result<Record> {
    let mut out = Writer::default();
    out.count(group.rows);
    write_row_ids(&group.row_ids, &mut out)?;
    out.count(group.segments.len());
    for segment in &group.segments {
        out.bytes(&segment.pin()?);
    }
    Ok(Record { tag: RecordTag::ROWS_INSERTED, object: table, payload: out.into_bytes() })
}

/// The delta batch of such a record; `None` where the table has it already. It keeps the payload and points into it.
pub(crate) fn read_inserted(table: &ColumnTable, payload: &[u8]) -> Result<Option<RowGroup>> {
    let mut input = Reader::new("record of inserted rows", payload);
    let rows = input.u32()? as usize;
    if rows == 0 || rows > ROW_GROUP_LEN {
        return Err(input.damaged(format!("{rows} rows; there are 1 to {ROW_GROUP_LEN}")));
    }
    let row_ids = read_row_ids(rows, &mut input)?;
    let budget = table.store().budget();
    let ids = RowGroup::new(budget, rows, row_ids, Vec::new());
    if ids.first_row_id() < table.next_row_id() {
        return Ok(None);
    }
    let (count, columns) = (input.count()?, &table.schema().columns);
    if count != columns.len() {
        return Err(input.damaged(format!("{count} columns for a table of {}", columns.len())));
    }
    let held = Held::new(budget, payload.to_vec());
    let mut segments = Vec::with_capacity(columns.len());
    for column in columns {
        let bytes = input.bytes()?;
        let start = bytes.as_ptr() as usize - payload.as_ptr() as usize;
        let place = held.slice(start..start + bytes.len()).ok_or_else(|| input.damaged("segment out of bounds"))?;
        let block = Block::open(&place).map_err(|source| sinter_exec::Error::Damaged {
            place: format!("record of inserted rows, column '{}'", column.name),
            source,
        })?;
        if block.value_count() != rows {
            return Err(input.damaged(format!("column of {} values for {rows} rows", block.value_count())));
        }
        let stats = column.ty.physical().map(|_| block.stats().clone());
        drop(block);
        segments.push(Segment { place: SegmentPlace::Held(place), stats });
    }
    input.end()?;
    Ok(Some(ids.with_segments(ids.row_ids.clone(), segments)))
}

/// The record of row groups whose chunks are in the file already.
pub(crate) fn attached(table: ObjectId, groups: &[Arc<RowGroup>]) -> Result<Record> {
    let mut out = Writer::default();
    out.count(groups.len());
    for group in groups {
        write_group(group, None, &mut out)?;
    }
    Ok(Record { tag: RecordTag::ROW_GROUPS_ATTACHED, object: table, payload: out.into_bytes() })
}

/// The groups of such a record that the table does not have yet.
pub(crate) fn read_attached(table: &ColumnTable, payload: &[u8]) -> Result<Vec<RowGroup>> {
    let mut input = Reader::new(table.name(), payload);
    let (mut groups, mut next_row_id) = (Vec::new(), table.next_row_id());
    for _ in 0..input.count()? {
        let (group, _) = read_group(&mut input, table.store())?;
        if group.first_row_id() >= next_row_id {
            check_columns(&group, table.schema().columns.len(), &input)?;
            next_row_id = group.end_row_id();
            groups.push(group);
        }
    }
    input.end()?;
    Ok(groups)
}

/// The records of deleted rows, ids increasing: a block holds only so many, so there may be several.
pub(crate) fn deleted(table: ObjectId, row_ids: &[u64]) -> Result<Vec<Record>> {
    let record = |ids: &[u64]| {
        let payload = encode_row_ids(ids)?;
        Ok(Record { tag: RecordTag::ROWS_DELETED, object: table, payload })
    };
    row_ids.chunks(ROW_GROUP_LEN).map(record).collect()
}

/// Row ids of a `rows deleted` record.
pub(crate) fn read_deleted(payload: &[u8]) -> Result<Vec<u64>> {
    decode_row_ids(payload)
}

/// An error for a record that tables do not know.
pub(crate) fn unknown(table: &str, tag: RecordTag) -> Error {
    Error::Damaged { table: table.to_owned(), what: format!("the log holds a {tag}, which tables do not know") }
}
