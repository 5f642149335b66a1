//! Segments gathered into chunks: the unit of reading and read-ahead.
//!
//! Zukowski et al. (ICDE 2006), section 3: chunks of 1 to 8 MB, column-wise (DSM). We differ at the small end: what is
//! left when a load finishes goes into shared chunks, so that a small table takes one page and not one per column.

use crate::Result;
use crate::group::{RowGroup, Segment, SegmentPlace};
use crate::page::StoredPage;
use sinter_codec::BlockStats;
use sinter_exec::RowIds;
use sinter_storage::page::PAYLOAD_BYTES_MAX;
use sinter_storage::{PageId, PageKind, Store};
use std::sync::Arc;

/// A chunk is written once it holds so many bytes.
const CHUNK_BYTES_MIN: usize = 1 << 20;

/// Where the segment `slot` of the load will be: known when its chunk is written.
struct Waiting {
    slot: usize,
    offset: u32,
    bytes: u32,
}

#[derive(Default)]
struct OpenChunk {
    bytes: Vec<u8>,
    waiting: Vec<Waiting>,
}

/// Gathers the segments of a load, column by column, into chunks.
pub(crate) struct ChunkWriter {
    store: Arc<Store>,
    columns: Vec<OpenChunk>,
    groups: Vec<(usize, RowIds, Vec<Option<BlockStats>>)>,
    placed: Vec<Option<SegmentPlace>>,
    pages: Vec<Arc<StoredPage>>,
}

/// A segment's bytes with its statistics.
pub(crate) type Pressed = (Vec<u8>, Option<BlockStats>);

impl ChunkWriter {
    pub(crate) fn new(store: Arc<Store>, columns: usize) -> ChunkWriter {
        ChunkWriter {
            store,
            columns: (0..columns).map(|_| OpenChunk::default()).collect(),
            groups: Vec::new(),
            placed: Vec::new(),
            pages: Vec::new(),
        }
    }

    /// Takes the segments of one row group, none of which is larger than a page.
    pub(crate) fn push(&mut self, rows: usize, row_ids: RowIds, segments: Vec<Pressed>) -> Result<()> {
        let mut stats = Vec::with_capacity(segments.len());
        for (column, (bytes, segment_stats)) in segments.into_iter().enumerate() {
            let slot = self.placed.len();
            self.placed.push(None);
            stats.push(segment_stats);
            // A page has an end; segments lie in one page each.
            if self.columns[column].bytes.len() + bytes.len() > PAYLOAD_BYTES_MAX {
                let chunk = std::mem::take(&mut self.columns[column]);
                self.write(chunk)?;
            }
            let chunk = &mut self.columns[column];
            chunk.waiting.push(Waiting { slot, offset: chunk.bytes.len() as u32, bytes: bytes.len() as u32 });
            if chunk.bytes.is_empty() {
                chunk.bytes = bytes;
            } else {
                chunk.bytes.extend_from_slice(&bytes);
            }
            if chunk.bytes.len() >= CHUNK_BYTES_MIN {
                let chunk = std::mem::take(chunk);
                self.write(chunk)?;
            }
        }
        self.groups.push((rows, row_ids, stats));
        Ok(())
    }

    fn write(&mut self, chunk: OpenChunk) -> Result<()> {
        let id = self.store.write_page(PageKind::CHUNK, &chunk.bytes)?;
        let page = StoredPage::new(Arc::clone(&self.store), id);
        for Waiting { slot, offset, bytes } in chunk.waiting {
            self.placed[slot] = Some(SegmentPlace::Stored { page: Arc::clone(&page), offset, bytes });
        }
        self.pages.push(page);
        Ok(())
    }

    /// Writes what is left and returns the groups, with the pages they are in.
    pub(crate) fn finish(mut self) -> Result<(Vec<RowGroup>, Vec<PageId>)> {
        let mut shared = OpenChunk::default();
        for chunk in std::mem::take(&mut self.columns) {
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
        let mut places = std::mem::take(&mut self.placed).into_iter().flatten();
        let groups = std::mem::take(&mut self.groups)
            .into_iter()
            .map(|(rows, row_ids, stats)| RowGroup {
                rows,
                row_ids,
                segments: stats.into_iter().zip(&mut places).map(|(stats, place)| Segment { place, stats }).collect(),
            })
            .collect();
        let pages = std::mem::take(&mut self.pages).iter().map(|page| page.id()).collect();
        Ok((groups, pages))
    }
}

impl Drop for ChunkWriter {
    /// A load that was given up gives its pages back.
    fn drop(&mut self) {
        for page in &self.pages {
            page.release();
        }
    }
}
