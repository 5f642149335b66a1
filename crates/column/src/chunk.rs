//! Segments gathered into chunks: the unit of reading and read-ahead.
//!
//! Zukowski et al. (ICDE 2006), section 3: chunks of 1 to 8 MB, column-wise (DSM) or with all columns of the same rows
//! (PAX). We differ at the small end: what is left when a load finishes goes into shared chunks, so that a small table
//! takes one page and not one per column.

use crate::group::{RowGroup, Segment, SegmentPlace};
use crate::page::StoredPage;
use crate::schema::Layout;
use crate::{Result, TableSchema};
use sinter_codec::BlockStats;
use sinter_exec::RowIds;
use sinter_storage::page::PAYLOAD_BYTES_MAX;
use sinter_storage::{PageKind, Reservation, Store, Use};
use std::sync::Arc;

/// A chunk is written once it holds so many bytes.
const CHUNK_BYTES_MIN: usize = 1 << 20;

/// Chunks that are not full yet take up to this part of the memory that there is to reserve. Beyond it they are written as
/// they are, several columns in one: a table may have any number of columns.
const OPEN_DIVISOR: usize = 8;

/// A chunk with all columns takes no more when it would pass so many bytes, though a row group may go on in another.
const PAX_CHUNK_BYTES_MAX: usize = 8 << 20;

/// Where the segment `slot` of the load will be: known when its chunk is written.
#[derive(Debug)]
struct Waiting {
    slot: usize,
    offset: u32,
    bytes: u32,
}

#[derive(Debug, Default)]
struct OpenChunk {
    bytes: Vec<u8>,
    waiting: Vec<Waiting>,
}

/// Gathers the segments of a load into chunks.
#[derive(Debug)]
pub(crate) struct ChunkWriter {
    store: Arc<Store>,
    layout: Layout,
    /// One per column, or one for all.
    open: Vec<OpenChunk>,
    groups: Vec<(usize, RowIds, Vec<Option<BlockStats>>)>,
    placed: Vec<Option<SegmentPlace>>,
    /// For the open chunks.
    scratch: Reservation,
}

/// A segment's bytes with its statistics.
pub(crate) type Pressed = (Vec<u8>, Option<BlockStats>);

impl ChunkWriter {
    pub(crate) fn new(store: Arc<Store>, schema: &TableSchema) -> ChunkWriter {
        let layout = schema.layout();
        let open = match layout {
            Layout::Dsm => schema.columns.len(),
            Layout::Pax => 1,
        };
        ChunkWriter {
            scratch: store.budget().take(Use::Scratch, 0),
            store,
            layout,
            open: (0..open).map(|_| OpenChunk::default()).collect(),
            groups: Vec::new(),
            placed: Vec::new(),
        }
    }

    /// Takes the segments of one row group, none of which is larger than a page.
    pub(crate) fn push(&mut self, rows: usize, row_ids: RowIds, segments: Vec<Pressed>) -> Result<()> {
        let bytes_max = match self.layout {
            Layout::Dsm => PAYLOAD_BYTES_MAX,
            Layout::Pax => PAX_CHUNK_BYTES_MAX,
        };
        let mut stats = Vec::with_capacity(segments.len());
        for (column, (bytes, segment_stats)) in segments.into_iter().enumerate() {
            let slot = self.placed.len();
            self.placed.push(None);
            stats.push(segment_stats);
            let index = if self.layout == Layout::Dsm { column } else { 0 };
            // A page has an end; segments lie in one page each.
            if !self.open[index].bytes.is_empty() && self.open[index].bytes.len() + bytes.len() > bytes_max {
                self.write_open(index)?;
            }
            let chunk = &mut self.open[index];
            chunk.waiting.push(Waiting { slot, offset: chunk.bytes.len() as u32, bytes: bytes.len() as u32 });
            if chunk.bytes.is_empty() {
                chunk.bytes = bytes;
            } else {
                chunk.bytes.extend_from_slice(&bytes);
            }
            if self.layout == Layout::Dsm && chunk.bytes.len() >= CHUNK_BYTES_MIN {
                self.write_open(index)?;
            }
        }
        if self.layout == Layout::Pax && self.open[0].bytes.len() >= CHUNK_BYTES_MIN {
            self.write_open(0)?;
        }
        self.groups.push((rows, row_ids, stats));
        let open_bytes = self.open.iter().map(|chunk| chunk.bytes.len()).sum();
        let bytes_max = self.store.budget().reservable_bytes() / OPEN_DIVISOR;
        if open_bytes > bytes_max || self.scratch.resize(open_bytes).is_err() {
            self.write_all()?;
        }
        Ok(())
    }

    fn write_open(&mut self, index: usize) -> Result<()> {
        let chunk = std::mem::take(&mut self.open[index]);
        self.write(chunk)
    }

    fn write(&mut self, chunk: OpenChunk) -> Result<()> {
        let id = self.store.write_page(PageKind::CHUNK, &chunk.bytes)?;
        let page = StoredPage::new(&self.store, id);
        for Waiting { slot, offset, bytes } in chunk.waiting {
            self.placed[slot] = Some(SegmentPlace::Stored { page: page.clone(), offset, bytes });
        }
        Ok(())
    }

    /// Writes the chunks that are not full as few.
    fn write_all(&mut self) -> Result<()> {
        let mut shared = OpenChunk::default();
        for index in 0..self.open.len() {
            let chunk = std::mem::take(&mut self.open[index]);
            let shift = shared.bytes.len() as u32;
            shared.bytes.extend_from_slice(&chunk.bytes);
            shared
                .waiting
                .extend(chunk.waiting.into_iter().map(|waiting| Waiting { offset: waiting.offset + shift, ..waiting }));
            if shared.bytes.len() >= CHUNK_BYTES_MIN {
                self.write(std::mem::take(&mut shared))?;
            }
        }
        if !shared.waiting.is_empty() {
            self.write(shared)?;
        }
        self.scratch.shrink(usize::MAX);
        Ok(())
    }

    /// Writes what is left and returns the groups.
    pub(crate) fn finish(mut self) -> Result<Vec<RowGroup>> {
        self.write_all()?;
        let mut places = self.placed.into_iter().flatten();
        let budget = self.store.budget();
        let group = |(rows, row_ids, stats): (usize, RowIds, Vec<Option<BlockStats>>)| {
            let segments = stats.into_iter().zip(&mut places).map(|(stats, place)| Segment { place, stats }).collect();
            RowGroup::new(budget, rows, row_ids, segments)
        };
        Ok(self.groups.into_iter().map(group).collect())
    }
}
