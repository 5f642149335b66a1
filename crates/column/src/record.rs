//! What a table writes to the log: after-images by row id (docs/format/table.md).

use crate::group::{RowGroup, Segment, SegmentPlace, decode_row_ids, encode_row_ids};
use crate::group_writer::press_column;
use crate::wire::{Reader, Writer};
use crate::{Error, Result, TableSchema};
use arrow::array::ArrayRef;
use sinter_codec::{Block, Choice, ROW_GROUP_LEN};
use sinter_exec::{Pinned, RowIds};
use sinter_storage::{ObjectId, Record, RecordTag};

/// A delta batch of these rows, and the record that brings it back.
pub(crate) fn fresh_group(
    table: ObjectId,
    schema: &TableSchema,
    rows: usize,
    row_ids: &RowIds,
    columns: &[ArrayRef],
) -> Result<(RowGroup, Record)> {
    let payload = fresh_payload(schema, rows, row_ids, columns)?;
    let record = Record { tag: RecordTag::ROWS_INSERTED, object: table, payload: payload.clone() };
    Ok((read_fresh_group(schema, payload)?, record))
}

/// The payload of a `rows inserted` record.
pub(crate) fn fresh_payload(
    schema: &TableSchema,
    rows: usize,
    row_ids: &RowIds,
    columns: &[ArrayRef],
) -> Result<Vec<u8>> {
    let mut out = Writer::default();
    out.count(rows);
    match row_ids {
        RowIds::From(first) => {
            out.u8(0);
            out.u64(*first);
        }
        RowIds::Listed(ids) => {
            out.u8(1);
            out.bytes(&encode_row_ids(ids)?);
        }
    }
    out.count(columns.len());
    for (column, array) in schema.columns.iter().zip(columns) {
        let (bytes, _) = press_column(array, &column.ty, &Choice::Raw)?;
        out.bytes(&bytes);
    }
    Ok(out.into_bytes())
}

/// The delta batch of a `rows inserted` record. It keeps the payload and points into it.
pub(crate) fn read_fresh_group(schema: &TableSchema, payload: Vec<u8>) -> Result<RowGroup> {
    let pinned = Pinned::from_vec(payload);
    let mut input = Reader::new("record of inserted rows", &pinned);
    let rows = input.u32()? as usize;
    if rows == 0 || rows > ROW_GROUP_LEN {
        return Err(input.damaged(format!("{rows} rows; there are 1 to {ROW_GROUP_LEN}")));
    }
    let row_ids = if input.flag()? {
        let ids = decode_row_ids(input.bytes()?)?;
        if ids.len() != rows {
            return Err(input.damaged(format!("{} row ids for {rows} rows", ids.len())));
        }
        RowIds::Listed(ids.into())
    } else {
        RowIds::From(input.u64()?)
    };
    let count = input.count()?;
    if count != schema.columns.len() {
        return Err(input.damaged(format!("{count} columns for a table of {}", schema.columns.len())));
    }
    let mut segments = Vec::with_capacity(count);
    for column in &schema.columns {
        let bytes = input.bytes()?;
        let start = bytes.as_ptr() as usize - pinned.as_ptr() as usize;
        let place = pinned.slice(start..start + bytes.len()).ok_or_else(|| input.damaged("segment out of bounds"))?;
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
    Ok(RowGroup { rows, row_ids, segments })
}

/// The record of row groups whose chunks are in the file already.
pub(crate) fn attached(table: ObjectId, groups: &[RowGroup]) -> Result<Record> {
    let mut out = Writer::default();
    out.count(groups.len());
    for group in groups {
        group.write(None, &mut out)?;
    }
    Ok(Record { tag: RecordTag::ROW_GROUPS_ATTACHED, object: table, payload: out.into_bytes() })
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
