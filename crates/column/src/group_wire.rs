//! How row groups are written in table roots and log records (docs/format/table.md, "A row group").

use crate::group::{RowGroup, Segment, SegmentPlace};
use crate::held::Held;
use crate::marks::Marks;
use crate::page::StoredPage;
use crate::wire::{Reader, Writer};
use crate::{Error, Result};
use sinter_codec::{Bitmap, Block, Choice, ROW_GROUP_LEN, Values, ValuesBuf, encode};
use sinter_exec::RowIds;
use sinter_storage::{PageId, Store};
use std::sync::Arc;

/// No page has this number: in the place of one it says that the segment's bytes follow.
const INLINE: u64 = 0;

/// Writes a group with its delete marks.
pub(crate) fn write_group(group: &RowGroup, deleted: Option<&Bitmap>, out: &mut Writer) -> Result<()> {
    out.count(group.rows);
    write_row_ids(&group.row_ids, out)?;
    match deleted {
        None => out.u8(0),
        Some(deleted) => {
            out.u8(1);
            let positions: Vec<u32> = deleted.ones().map(|position| position as u32).collect();
            let mut block = Vec::new();
            encode(Values::U32(&positions), None, &Choice::Auto, &mut block).map_err(damaged)?;
            out.bytes(&block);
        }
    }
    out.count(group.segments.len());
    for segment in &group.segments {
        match &segment.place {
            SegmentPlace::Stored { page, offset, bytes } => {
                out.u64(page.id().0);
                out.u32(*offset);
                out.u32(*bytes);
            }
            SegmentPlace::Held(held) => {
                out.u64(INLINE);
                out.u32(0);
                out.bytes(held);
            }
        }
        out.u8(u8::from(segment.stats.is_some()));
        if let Some(stats) = &segment.stats {
            out.stats(stats);
        }
    }
    Ok(())
}

/// Reads what [`write_group`] wrote. How many segments a group should have is for the caller to say
/// ([`check_columns`]), who knows whether it wants the group at all.
pub(crate) fn read_group(input: &mut Reader<'_>, store: &Arc<Store>) -> Result<(RowGroup, Option<Marks>)> {
    let rows = input.u32()? as usize;
    if rows == 0 || rows > ROW_GROUP_LEN {
        return Err(input.damaged(format!("row group of {rows} rows; there are 1 to {ROW_GROUP_LEN}")));
    }
    let row_ids = read_row_ids(rows, input)?;
    let deleted = if input.flag()? { Some(Marks::new(store.budget(), read_marks(rows, input)?)) } else { None };
    let count = input.count()?;
    let mut segments = Vec::with_capacity(count.min(1024));
    for _ in 0..count {
        let (page, offset) = (input.u64()?, input.u32()?);
        let place = match page {
            INLINE => SegmentPlace::Held(Held::new(store.budget(), input.bytes()?.to_vec())),
            page => SegmentPlace::Stored { page: StoredPage::new(store, PageId(page)), offset, bytes: input.u32()? },
        };
        if let SegmentPlace::Held(held) = &place {
            check_held(held, rows, input)?;
        }
        let stats = if input.flag()? { Some(input.stats()?) } else { None };
        segments.push(Segment { place, stats });
    }
    Ok((RowGroup::new(store.budget(), rows, row_ids, segments), deleted))
}

/// A group of a table has a segment for each column.
pub(crate) fn check_columns(group: &RowGroup, columns: usize, input: &Reader<'_>) -> Result<()> {
    match group.segments.len() {
        count if count == columns => Ok(()),
        count => Err(input.damaged(format!("row group of {count} segments in a table of {columns} columns"))),
    }
}

/// A segment that no page's checksum vouches for.
fn check_held(segment: &[u8], rows: usize, input: &Reader<'_>) -> Result<()> {
    let block = Block::open(segment)
        .map_err(|source| sinter_exec::Error::Damaged { place: "segment beside its row group".to_owned(), source })?;
    match block.value_count() {
        count if count == rows => Ok(()),
        count => Err(input.damaged(format!("segment of {count} values for {rows} rows"))),
    }
}

fn read_marks(rows: usize, input: &mut Reader<'_>) -> Result<Bitmap> {
    let mut positions = ValuesBuf::U32(Vec::new());
    let block = Block::open(input.bytes()?).map_err(damaged)?;
    block.decode(0..block.value_count(), &mut positions).map_err(damaged)?;
    let mut marks = Bitmap::new(rows, false);
    if let ValuesBuf::U32(positions) = positions {
        for position in positions {
            if position as usize >= rows {
                return Err(input.damaged(format!("row {position} of {rows} is marked as deleted")));
            }
            marks.set(position as usize, true);
        }
    }
    Ok(marks)
}

/// Writes the ids of a group's rows.
pub(crate) fn write_row_ids(row_ids: &RowIds, out: &mut Writer) -> Result<()> {
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
    Ok(())
}

/// Reads what [`write_row_ids`] wrote.
pub(crate) fn read_row_ids(rows: usize, input: &mut Reader<'_>) -> Result<RowIds> {
    if !input.flag()? {
        return Ok(RowIds::From(input.u64()?));
    }
    let ids = decode_row_ids(input.bytes()?)?;
    match ids.len() {
        count if count == rows => Ok(RowIds::Listed(ids.into())),
        count => Err(input.damaged(format!("{count} row ids for {rows} rows"))),
    }
}

/// Row ids as one block.
pub(crate) fn encode_row_ids(ids: &[u64]) -> Result<Vec<u8>> {
    let mut block = Vec::new();
    encode(Values::U64(ids), None, &Choice::Auto, &mut block).map_err(damaged)?;
    Ok(block)
}

/// Row ids out of a block; increasing, or the block is damaged.
pub(crate) fn decode_row_ids(bytes: &[u8]) -> Result<Vec<u64>> {
    let mut ids = ValuesBuf::U64(Vec::new());
    let block = Block::open(bytes).map_err(damaged)?;
    block.decode(0..block.value_count(), &mut ids).map_err(damaged)?;
    match ids {
        ValuesBuf::U64(ids) if ids.is_sorted_by(|a, b| a < b) => Ok(ids),
        _ => Err(Error::Damaged {
            table: "row ids".to_owned(),
            what: "they are not increasing 64-bit numbers".to_owned(),
        }),
    }
}

fn damaged(error: sinter_codec::Error) -> Error {
    Error::Exec(sinter_exec::Error::Damaged { place: "row ids".to_owned(), source: error })
}
