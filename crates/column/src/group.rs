//! A row group: up to 131,072 rows, fewer where rows are large, one segment per column.

use crate::held::Held;
use crate::page::StoredPage;
use crate::{Error, Result};
use sinter_codec::{Block, BlockStats, Scalar};
use sinter_exec::{Pinned, RowIds};
use sinter_storage::{Budget, Reservation, Use};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

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
        page: StoredPage,
        /// First byte in the chunk's payload.
        offset: u32,
        /// Length in bytes.
        bytes: u32,
    },
    /// In memory: of a delta batch, or one value that stands for all rows of a column that was added later.
    Held(Held),
}

impl Segment {
    /// The bytes, for as long as the pin lives.
    ///
    /// # Errors
    /// What reading and checking the chunk can raise.
    pub fn pin(&self) -> Result<Pinned> {
        match &self.place {
            SegmentPlace::Held(held) => Ok(held.pin()),
            SegmentPlace::Stored { page, .. } => self.within(&page.pin()?),
        }
    }

    /// The bytes, where the chunk that holds them is there already.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the chunk ends before.
    pub(crate) fn within(&self, chunk: &Pinned) -> Result<Pinned> {
        match &self.place {
            SegmentPlace::Held(held) => Ok(held.pin()),
            SegmentPlace::Stored { page, offset, bytes } => {
                let range = *offset as usize..*offset as usize + *bytes as usize;
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
            SegmentPlace::Held(held) => held.len(),
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
    /// What [`RowGroup::decode_nanos`] said of each before, where it could be read.
    decode_nanos: Box<[OnceLock<f32>]>,
    /// For this directory: what says where its rows are.
    memory: Reservation,
}

impl RowGroup {
    /// A group of these parts.
    pub(crate) fn new(budget: &Arc<Budget>, rows: usize, row_ids: RowIds, segments: Vec<Segment>) -> RowGroup {
        let listed = match &row_ids {
            RowIds::From(_) => 0,
            RowIds::Listed(ids) => size_of_val(&ids[..]),
        };
        let bounds = segments.iter().flat_map(|segment| &segment.stats).map(|stats| {
            let bytes = |bound: &Scalar| if let Scalar::Bytes(bytes) = bound { bytes.len() } else { 0 };
            bytes(&stats.min) + bytes(&stats.max)
        });
        let decode_nanos: Box<[_]> = segments.iter().map(|_| OnceLock::new()).collect();
        let of_columns = size_of_val(&segments[..]) + size_of_val(&decode_nanos[..]);
        let bytes = size_of::<RowGroup>() + of_columns + bounds.sum::<usize>() + listed;
        RowGroup { rows, row_ids, segments, decode_nanos, memory: budget.take(Use::Table, bytes) }
    }

    /// About how long it takes to decode a row of a column, in nanoseconds; `None` for nested types, and where it cannot be
    /// read, which is for whoever asks for its values. The segment is read for it once, and again only where that failed.
    pub fn decode_nanos(&self, column: usize) -> Option<f64> {
        let (segment, known) = (&self.segments[column], &self.decode_nanos[column]);
        segment.stats.as_ref()?;
        if let Some(known) = known.get() {
            return Some(f64::from(*known));
        }
        let pinned = segment.pin().ok()?;
        let block = Block::open(&pinned).ok()?;
        let said = (block.decode_nanos() / block.value_count().max(1) as f64) as f32;
        Some(f64::from(*known.get_or_init(|| said)))
    }

    /// What its directory holds in memory, without the segments.
    pub(crate) fn directory_bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// True for delta batches: rows that no chunk holds yet.
    pub fn is_fresh(&self) -> bool {
        self.pages().next().is_none()
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

    /// Where the rows with ids in this range stand.
    pub fn positions_in(&self, ids: &Range<u64>) -> Range<usize> {
        let position = |id: u64| match &self.row_ids {
            RowIds::From(first) => id.saturating_sub(*first).min(self.rows as u64) as usize,
            RowIds::Listed(ids) => ids.partition_point(|&here| here < id),
        };
        let start = position(ids.start);
        start..position(ids.end).max(start)
    }

    /// The same rows under ids that are larger by `shift`.
    pub(crate) fn shifted(&self, shift: u64) -> RowGroup {
        let row_ids = match &self.row_ids {
            RowIds::From(first) => RowIds::From(first + shift),
            RowIds::Listed(ids) => RowIds::Listed(ids.iter().map(|id| id + shift).collect()),
        };
        self.with_segments(row_ids, self.segments.clone())
    }

    /// As many rows, of these ids and segments.
    pub(crate) fn with_segments(&self, row_ids: RowIds, segments: Vec<Segment>) -> RowGroup {
        RowGroup::new(self.memory.budget(), self.rows, row_ids, segments)
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
    pub fn pages(&self) -> impl Iterator<Item = &StoredPage> {
        self.segments.iter().filter_map(|segment| match &segment.place {
            SegmentPlace::Stored { page, .. } => Some(page),
            SegmentPlace::Held(_) => None,
        })
    }
}

/// What the blocks of a segment stand for together.
pub(crate) fn blocks_plain_bytes(segment: &[u8]) -> Result<u64> {
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
