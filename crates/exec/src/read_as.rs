//! A table read in other ways than usual, with the same answers: by what finds rows of it once the keys of joins are known; and
//! to compare with, and for tests.

use crate::{Finder, LogicalType, Pinned, ReadAhead, Result, RowIds, TableSource};
use sinter_codec::{Bitmap, Block, BlockStats, VECTOR_LEN};
use std::sync::Arc;

/// Shows another source so.
#[derive(Debug)]
pub struct ReadAs {
    /// The other.
    pub table: Arc<dyn TableSource>,
    /// Segments of plain types are decoded whole as they are fetched, and shown in the scheme `raw`: decompression between
    /// disk and memory instead of between memory and cache (Zukowski et al., ICDE 2006, section 3.2, table 3; row groups
    /// stand for the paper's pages). Nothing is kept: each scan decodes again.
    pub page_wise: bool,
    /// As [`TableSource::vector_rows`].
    pub vector_rows: usize,
    /// As [`TableSource::finder`].
    pub finder: Option<Arc<dyn Finder>>,
}

impl TableSource for ReadAs {
    fn name(&self) -> &str {
        self.table.name()
    }

    fn column_types(&self) -> &[LogicalType] {
        self.table.column_types()
    }

    fn column_name(&self, column: usize) -> &str {
        self.table.column_name(column)
    }

    fn seek(&self) -> Option<String> {
        self.table.seek()
    }

    fn group_count(&self) -> usize {
        self.table.group_count()
    }

    fn group_rows(&self, group: usize) -> usize {
        self.table.group_rows(group)
    }

    fn row_ids(&self, group: usize) -> RowIds {
        self.table.row_ids(group)
    }

    fn deleted(&self, group: usize) -> Option<Arc<Bitmap>> {
        self.table.deleted(group)
    }

    fn address(&self) -> usize {
        self.table.address()
    }

    fn group_id(&self, group: usize) -> Option<(u64, u64)> {
        self.table.group_id(group)
    }

    fn zone(&self, group: usize, column: usize) -> Option<&BlockStats> {
        self.table.zone(group, column)
    }

    fn looks_into(&self, column: usize) -> Option<&'static str> {
        self.table.looks_into(column)
    }

    fn look_into(&self, group: usize, column: usize) -> Option<BlockStats> {
        self.table.look_into(group, column)
    }

    fn segment(&self, group: usize, column: usize) -> Result<Pinned> {
        let pressed = self.table.segment(group, column)?;
        if !self.page_wise || self.column_types()[column].physical().is_none() {
            return Ok(pressed);
        }
        let mut plain = Vec::new();
        Block::open(&pressed)?.write_plain(&mut plain)?;
        Ok(Pinned::from_vec(plain))
    }

    fn decode_nanos(&self, group: usize, column: usize) -> Option<f64> {
        self.table.decode_nanos(group, column)
    }

    fn segment_bytes(&self, group: usize, column: usize) -> Option<usize> {
        self.table.segment_bytes(group, column)
    }

    fn finder(&self) -> Option<&dyn Finder> {
        self.finder.as_deref()
    }

    fn without_finder(&self) -> Option<Arc<dyn TableSource>> {
        self.finder.as_ref()?;
        let table = Arc::clone(&self.table);
        if !self.page_wise && self.vector_rows >= VECTOR_LEN {
            return Some(table);
        }
        let (page_wise, vector_rows) = (self.page_wise, self.vector_rows);
        Some(Arc::new(ReadAs { table, page_wise, vector_rows, finder: None }))
    }

    fn will_read(&self, group: usize, columns: &[usize]) -> Option<ReadAhead> {
        self.table.will_read(group, columns)
    }

    fn vector_rows(&self) -> usize {
        self.vector_rows
    }
}
