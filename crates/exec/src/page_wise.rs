//! A table whose segments are decoded whole as they are fetched, so that the engine sees plain values only: decompression
//! between disk and memory instead of between memory and cache, to be compared with (Zukowski et al., ICDE 2006, section 3.2,
//! table 3). Row groups stand for the paper's pages.

use crate::{LogicalType, Pinned, ReadAhead, Result, RowIds, TableSource};
use sinter_codec::{Bitmap, Block, BlockStats};
use std::sync::Arc;

/// Shows another source's segments of plain types in the scheme `raw`. Nothing is kept: each scan decodes again.
#[derive(Debug)]
pub struct PageWise(pub Arc<dyn TableSource>);

impl TableSource for PageWise {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn column_types(&self) -> &[LogicalType] {
        self.0.column_types()
    }

    fn column_name(&self, column: usize) -> &str {
        self.0.column_name(column)
    }

    fn group_count(&self) -> usize {
        self.0.group_count()
    }

    fn group_rows(&self, group: usize) -> usize {
        self.0.group_rows(group)
    }

    fn row_ids(&self, group: usize) -> RowIds {
        self.0.row_ids(group)
    }

    fn deleted(&self, group: usize) -> Option<Arc<Bitmap>> {
        self.0.deleted(group)
    }

    fn zone(&self, group: usize, column: usize) -> Option<&BlockStats> {
        self.0.zone(group, column)
    }

    fn segment(&self, group: usize, column: usize) -> Result<Pinned> {
        let pressed = self.0.segment(group, column)?;
        if self.column_types()[column].physical().is_none() {
            return Ok(pressed);
        }
        let mut plain = Vec::new();
        Block::open(&pressed)?.write_plain(&mut plain)?;
        Ok(Pinned::from_vec(plain))
    }

    fn will_read(&self, group: usize, columns: &[usize]) -> Option<ReadAhead> {
        self.0.will_read(group, columns)
    }
}
