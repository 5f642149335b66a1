//! A row group: up to 131,072 rows, fewer where rows are large, one segment per column.

use crate::page::StoredPage;
use crate::wire::{Reader, Writer};
use crate::{Error, Result};
use sinter_codec::{Bitmap, Block, BlockStats, Choice, ROW_GROUP_LEN, Values, ValuesBuf, encode};
use sinter_exec::{Pinned, RowIds};
use sinter_storage::PageId;
use std::sync::Arc;

/// One column of one row group.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Where its bytes are.
    pub place: SegmentPlace,
    /// Its zone map; `None` for nested types.
    pub stats: Option<BlockStats>,
}

/// Where a segment's bytes are.
#[derive(Clone, Debug)]
pub enum SegmentPlace {
    /// In a chunk of the file, from this offset, so many bytes.
    Stored {
        /// The chunk.
        page: Arc<StoredPage>,
        /// First byte in the chunk's payload.
        offset: u32,
        /// Length in bytes.
        bytes: u32,
    },
    /// In memory: a delta batch.
    Held(Pinned),
}

impl Segment {
    /// The bytes, for as long as the pin lives.
    ///
    /// # Errors
    /// What reading and checking the chunk can raise.
    pub fn pin(&self) -> Result<Pinned> {
        match &self.place {
            SegmentPlace::Held(pinned) => Ok(pinned.clone()),
            SegmentPlace::Stored { page, offset, bytes } => {
                let range = *offset as usize..*offset as usize + *bytes as usize;
                let chunk = page.pin()?;
                chunk.slice(range.clone()).ok_or_else(|| Error::Damaged {
                    table: format!("page {}", page.id()),
                    what: format!("segment at {range:?} reaches past the chunk's {} bytes", chunk.len()),
                })
            }
        }
    }

    /// Its length in bytes.
    pub fn byte_len(&self) -> usize {
        match &self.place {
            SegmentPlace::Stored { bytes, .. } => *bytes as usize,
            SegmentPlace::Held(pinned) => pinned.len(),
        }
    }
}

/// Rows that were pressed, or inserted, together.
#[derive(Debug)]
pub struct RowGroup {
    /// How many, deleted ones included.
    pub rows: usize,
    /// Their ids, increasing.
    pub row_ids: RowIds,
    /// One per column.
    pub segments: Vec<Segment>,
}

impl RowGroup {
    /// True for delta batches: rows that no chunk holds yet.
    pub fn is_fresh(&self) -> bool {
        self.segments.iter().any(|segment| matches!(segment.place, SegmentPlace::Held(_)))
    }

    /// The id of the first row.
    pub fn first_row_id(&self) -> u64 {
        match &self.row_ids {
            RowIds::From(first) => *first,
            RowIds::Listed(ids) => ids.first().copied().unwrap_or(0),
        }
    }

    /// The id after that of the last row.
    pub fn end_row_id(&self) -> u64 {
        match &self.row_ids {
            RowIds::From(first) => first.saturating_add(self.rows as u64),
            RowIds::Listed(ids) => ids.last().map_or(0, |last| last.saturating_add(1)),
        }
    }

    /// Where the row with this id stands; `None` when it is not here.
    pub fn position_of(&self, row_id: u64) -> Option<usize> {
        match &self.row_ids {
            RowIds::From(first) => {
                let position = usize::try_from(row_id.checked_sub(*first)?).ok()?;
                (position < self.rows).then_some(position)
            }
            RowIds::Listed(ids) => ids.binary_search(&row_id).ok(),
        }
    }

    /// The id of the row at `position`.
    pub fn row_id_at(&self, position: usize) -> u64 {
        match &self.row_ids {
            RowIds::From(first) => first + position as u64,
            RowIds::Listed(ids) => ids[position],
        }
    }

    /// The bytes of all its rows in plain form. Where statistics do not tell, the blocks do.
    ///
    /// # Errors
    /// For nested types, what reading their segments can raise.
    pub fn plain_bytes(&self) -> Result<u64> {
        let mut total = 0u64;
        for segment in &self.segments {
            total = total.saturating_add(match &segment.stats {
                Some(stats) => stats.plain_bytes as u64,
                None => blocks_plain_bytes(&segment.pin()?)?,
            });
        }
        Ok(total)
    }

    /// The chunks its segments are in.
    pub fn pages(&self) -> impl Iterator<Item = &Arc<StoredPage>> {
        self.segments.iter().filter_map(|segment| match &segment.place {
            SegmentPlace::Stored { page, .. } => Some(page),
            SegmentPlace::Held(_) => None,
        })
    }

    /// Writes the group of stored segments (docs/format/table.md).
    pub(crate) fn write(&self, deleted: Option<&Bitmap>, out: &mut Writer) -> Result<()> {
        out.count(self.rows);
        match &self.row_ids {
            RowIds::From(first) => {
                out.u8(0);
                out.u64(*first);
            }
            RowIds::Listed(ids) => {
                out.u8(1);
                out.bytes(&encode_row_ids(ids)?);
            }
        }
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
        out.count(self.segments.len());
        for segment in &self.segments {
            let SegmentPlace::Stored { page, offset, bytes } = &segment.place else {
                return Err(Error::Damaged {
                    table: "row group".to_owned(),
                    what: "a delta batch was about to be written as a stored group".to_owned(),
                });
            };
            out.u64(page.id().0);
            out.u32(*offset);
            out.u32(*bytes);
            out.u8(u8::from(segment.stats.is_some()));
            if let Some(stats) = &segment.stats {
                out.stats(stats);
            }
        }
        Ok(())
    }

    /// Reads what [`RowGroup::write`] wrote, with the delete marks; `page` shares one handle per chunk.
    pub(crate) fn read(
        input: &mut Reader<'_>,
        columns: usize,
        page: &mut dyn FnMut(PageId) -> Arc<StoredPage>,
    ) -> Result<(RowGroup, Option<Arc<Bitmap>>)> {
        let rows = input.u32()? as usize;
        if rows == 0 || rows > ROW_GROUP_LEN {
            return Err(input.damaged(format!("row group of {rows} rows; there are 1 to {ROW_GROUP_LEN}")));
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
        let deleted = if input.flag()? {
            let block = input.bytes()?;
            let mut positions = ValuesBuf::U32(Vec::new());
            Block::open(block)
                .and_then(|block| block.decode(0..block.value_count(), &mut positions))
                .map_err(damaged)?;
            let mut marks = Bitmap::new(rows, false);
            if let ValuesBuf::U32(positions) = positions {
                for position in positions {
                    if position as usize >= rows {
                        return Err(input.damaged(format!("row {position} of {rows} is marked as deleted")));
                    }
                    marks.set(position as usize, true);
                }
            }
            Some(Arc::new(marks))
        } else {
            None
        };
        let count = input.count()?;
        if count != columns {
            return Err(input.damaged(format!("row group of {count} segments in a table of {columns} columns")));
        }
        let mut segments = Vec::with_capacity(count);
        for _ in 0..count {
            let page = page(PageId(input.u64()?));
            let place = SegmentPlace::Stored { page, offset: input.u32()?, bytes: input.u32()? };
            let stats = if input.flag()? { Some(input.stats()?) } else { None };
            segments.push(Segment { place, stats });
        }
        Ok((RowGroup { rows, row_ids, segments }, deleted))
    }
}

/// What the blocks of a segment stand for together.
fn blocks_plain_bytes(segment: &[u8]) -> Result<u64> {
    let (mut rest, mut total) = (segment, 0u64);
    while !rest.is_empty() {
        let block = Block::open(rest).map_err(|source| {
            Error::Exec(sinter_exec::Error::Damaged { place: "segment of a nested type".to_owned(), source })
        })?;
        total = total.saturating_add(block.stats().plain_bytes as u64);
        rest = &rest[block.byte_len()..];
    }
    Ok(total)
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
