//! A table in the shape that the engine reads.

use crate::ColumnTable;
use crate::group::SegmentPlace;
use sinter_codec::{Bitmap, BlockStats};
use sinter_exec::{LogicalType, Pinned, ReadAhead, RowIds, TableSource};
use std::sync::Arc;

impl TableSource for ColumnTable {
    fn name(&self) -> &str {
        self.name()
    }

    fn column_types(&self) -> &[LogicalType] {
        &self.types
    }

    fn column_name(&self, column: usize) -> &str {
        &self.schema().columns[column].name
    }

    fn group_count(&self) -> usize {
        self.groups().len()
    }

    fn group_rows(&self, group: usize) -> usize {
        self.groups()[group].group.rows
    }

    fn row_ids(&self, group: usize) -> RowIds {
        self.groups()[group].group.row_ids.clone()
    }

    fn deleted(&self, group: usize) -> Option<Arc<Bitmap>> {
        self.groups()[group].deleted.as_ref().map(|marks| Arc::clone(marks.bits()))
    }

    fn group_id(&self, group: usize) -> Option<(u64, u64)> {
        Some((self.id().0, self.groups()[group].group.first_row_id()))
    }

    fn zone(&self, group: usize, column: usize) -> Option<&BlockStats> {
        self.groups()[group].group.segments[column].stats.as_ref()
    }

    fn segment(&self, group: usize, column: usize) -> sinter_exec::Result<Pinned> {
        Ok(self.groups()[group].group.segments[column].pin()?)
    }

    fn decode_nanos(&self, group: usize, column: usize) -> Option<f64> {
        self.groups()[group].group.decode_nanos(column)
    }

    fn segment_bytes(&self, group: usize, column: usize) -> Option<usize> {
        Some(self.groups()[group].group.segments[column].byte_len())
    }

    fn will_read(&self, group: usize, columns: &[usize]) -> Option<ReadAhead> {
        let segments = &self.groups()[group].group.segments;
        let mut pages = Vec::new();
        for &column in columns {
            if let SegmentPlace::Stored { page, .. } = &segments[column].place
                && !pages.contains(&page.id())
            {
                pages.push(page.id());
            }
        }
        Some(ReadAhead::new(self.store().read_ahead(&pages)?))
    }
}
