//! Going through all that a table holds, chunk by chunk, to see whether it can be read.

use crate::group::{Segment, SegmentPlace, blocks_plain_bytes};
use crate::group_writer::GROUP_BYTES;
use crate::page::pinned;
use crate::{ColumnTable, Error, Result};
use sinter_codec::{Block, VECTOR_LEN};
use sinter_exec::{Pinned, edge};
use sinter_storage::PageId;
use std::collections::BTreeMap;
use std::ops::Range;

/// Which segment of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentId {
    /// The row group, by its place in the table.
    pub group: usize,
    /// The column, by its place in the schema.
    pub column: usize,
}

impl ColumnTable {
    /// Its segments by the chunk that they are in. `None` for those that are in none: they were read with the table's root
    /// or with the log.
    pub fn segments_by_page(&self) -> BTreeMap<Option<PageId>, Vec<SegmentId>> {
        let mut by_page: BTreeMap<_, Vec<SegmentId>> = BTreeMap::new();
        for (group, entry) in self.groups().iter().enumerate() {
            for (column, segment) in entry.group.segments.iter().enumerate() {
                let page = match &segment.place {
                    SegmentPlace::Stored { page, .. } => Some(page.id()),
                    SegmentPlace::Held(_) => None,
                };
                by_page.entry(page).or_default().push(SegmentId { group, column });
            }
        }
        by_page
    }

    /// Reads every value of a segment once, and holds what the table says of it against what it is. `chunk` is the payload
    /// of the page that it is in. Returns how many rows it has.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_segment(&self, id: SegmentId, chunk: Option<&sinter_storage::Pinned>) -> Result<usize> {
        let group = &self.groups()[id.group].group;
        let (segment, column) = (&group.segments[id.column], &self.schema().columns[id.column]);
        let bytes = match chunk {
            Some(chunk) => segment.within(&pinned(chunk.clone()))?,
            None => segment.pin()?,
        };
        self.check_statistics(segment, &bytes)?;
        // What a few bytes stand for may be much: never all of it at once.
        let pieces = blocks_plain_bytes(&bytes)?.div_ceil(GROUP_BYTES);
        let step = group.rows.div_ceil(pieces.clamp(1, group.rows.div_ceil(VECTOR_LEN) as u64) as usize);
        for start in (0..group.rows).step_by(step) {
            edge::decode_segment(&bytes, &column.ty, start..group.rows.min(start + step), None)?;
        }
        Ok(group.rows)
    }

    /// The table's own copy of a block's statistics decides what is read at all, so it must be right.
    fn check_statistics(&self, segment: &Segment, bytes: &Pinned) -> Result<()> {
        let Some(stats) = &segment.stats else { return Ok(()) };
        let block =
            Block::open(bytes).map_err(|source| sinter_exec::Error::Damaged { place: "segment".to_owned(), source })?;
        match block.stats() == stats {
            true => Ok(()),
            false => Err(Error::Damaged {
                table: self.name().to_owned(),
                what: format!(
                    "the table has other statistics of a segment than the segment: {stats:?}, {:?}",
                    block.stats()
                ),
            }),
        }
    }

    /// The ids of the rows of a group, those of deleted rows and gaps between them included.
    pub fn row_ids_of(&self, group: usize) -> Range<u64> {
        let group = &self.groups()[group].group;
        group.first_row_id()..group.end_row_id()
    }
}
