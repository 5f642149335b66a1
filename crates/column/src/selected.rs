//! Some rows of a table, found by their ids, in the shape that the engine reads.

use crate::ColumnTable;
use sinter_codec::{Bitmap, BlockStats};
use sinter_exec::{LogicalType, Pinned, ReadAhead, RowIds, TableSource};
use std::sync::Arc;

/// The rows of a table whose ids an index told. Row groups without any are left out; of the others, all other rows count as
/// deleted.
#[derive(Debug)]
pub struct SelectedRows {
    table: Arc<ColumnTable>,
    /// Which row groups, each with those of its rows that are not among them.
    groups: Vec<(usize, Arc<Bitmap>)>,
    seek: String,
}

impl SelectedRows {
    /// The living rows of `table` that have these ids, which ascend; `seek` says in plans how they were found.
    pub fn new(table: Arc<ColumnTable>, row_ids: &[u64], seek: String) -> SelectedRows {
        let mut groups = Vec::new();
        let mut rest = row_ids;
        while let Some(&first) = rest.first() {
            let index = table.groups().partition_point(|entry| entry.group.end_row_id() <= first);
            let Some(entry) = table.groups().get(index) else { break };
            let here = rest.partition_point(|&id| id < entry.group.end_row_id());
            let mut hidden = Bitmap::new(entry.group.rows, true);
            let is_alive = |position: &usize| entry.deleted.as_ref().is_none_or(|deleted| !deleted.get(*position));
            let positions = rest[..here].iter().filter_map(|&id| entry.group.position_of(id));
            positions.filter(is_alive).for_each(|position| hidden.set(position, false));
            groups.push((index, Arc::new(hidden)));
            rest = &rest[here..];
        }
        SelectedRows { table, groups, seek }
    }
}

impl TableSource for SelectedRows {
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
        Some(self.seek.clone())
    }

    fn group_count(&self) -> usize {
        self.groups.len()
    }

    fn group_rows(&self, group: usize) -> usize {
        self.table.group_rows(self.groups[group].0)
    }

    fn row_ids(&self, group: usize) -> RowIds {
        self.table.row_ids(self.groups[group].0)
    }

    fn deleted(&self, group: usize) -> Option<Arc<Bitmap>> {
        Some(Arc::clone(&self.groups[group].1))
    }

    fn address(&self) -> usize {
        self.table.address()
    }

    fn group_id(&self, group: usize) -> Option<(u64, u64)> {
        self.table.group_id(self.groups[group].0)
    }

    fn zone(&self, group: usize, column: usize) -> Option<&BlockStats> {
        self.table.zone(self.groups[group].0, column)
    }

    fn segment(&self, group: usize, column: usize) -> sinter_exec::Result<Pinned> {
        self.table.segment(self.groups[group].0, column)
    }

    fn decode_nanos(&self, group: usize, column: usize) -> Option<f64> {
        self.table.decode_nanos(self.groups[group].0, column)
    }

    fn segment_bytes(&self, group: usize, column: usize) -> Option<usize> {
        TableSource::segment_bytes(&*self.table, self.groups[group].0, column)
    }

    fn will_read(&self, group: usize, columns: &[usize]) -> Option<ReadAhead> {
        self.table.will_read(self.groups[group].0, columns)
    }
}
