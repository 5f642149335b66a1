//! A few rows of a table, by their ids: what a commit looks at to see whether others' rows are among those that it read.

use crate::group_entry::GroupEntry;
use crate::{ColumnTable, TableSchema};
use sinter_codec::{Bitmap, BlockStats};
use sinter_exec::{LogicalType, Pinned, RowIds, TableSource};
use std::ops::Range;
use std::sync::Arc;

/// Row ids, as ranges and one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSet {
    ranges: Vec<Range<u64>>,
    ids: Vec<u64>,
}

impl RowSet {
    /// Adds the ids of a range.
    pub fn add_range(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.ranges.push(range);
        }
    }

    /// Adds ids, in any order.
    pub fn add_ids(&mut self, ids: &[u64]) {
        self.ids.extend_from_slice(ids);
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.ids.is_empty()
    }

    /// The same ids in order; ranges that touch are one.
    fn sorted(&self) -> RowSet {
        let (mut ranges, mut ids) = (self.ranges.clone(), self.ids.clone());
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup_by(|next, last| {
            let touches = next.start <= last.end;
            if touches {
                last.end = last.end.max(next.end);
            }
            touches
        });
        ids.sort_unstable();
        RowSet { ranges, ids }
    }
}

/// Those living rows of a table that are in a [`RowSet`]; all others count as deleted.
#[derive(Debug)]
pub struct RowsSource {
    table: ColumnTable,
}

impl ColumnTable {
    /// The living rows with these ids. Takes time for how many groups they are in, not for how many there are.
    pub fn rows_of(&self, rows: &RowSet) -> RowsSource {
        let rows = rows.sorted();
        let groups = self.groups();
        let mut wanted: Vec<usize> = Vec::new();
        for range in &rows.ranges {
            let start = groups.partition_point(|entry| entry.group.end_row_id() <= range.start);
            let inside = groups[start..].iter().take_while(|entry| entry.group.first_row_id() < range.end).count();
            wanted.extend(start..start + inside);
        }
        let mut rest = &rows.ids[..];
        while let Some(&first) = rest.first() {
            let index = groups.partition_point(|entry| entry.group.end_row_id() <= first);
            let Some(entry) = groups.get(index) else { break };
            rest = &rest[rest.partition_point(|&id| id < entry.group.end_row_id())..];
            wanted.push(index);
        }
        wanted.sort_unstable();
        wanted.dedup();
        let chosen = wanted.into_iter().filter_map(|index| masked(&groups[index], &rows)).collect();
        RowsSource { table: self.with_groups(chosen) }
    }
}

/// The group with all but these rows marked; `None` where none is left.
fn masked(entry: &GroupEntry, rows: &RowSet) -> Option<GroupEntry> {
    let group = &entry.group;
    let (first, end) = (group.first_row_id(), group.end_row_id());
    let mut marks = Bitmap::new(group.rows, true);
    for range in rows.ranges.iter().take_while(|range| range.start < end) {
        group.positions_in(range).for_each(|position| marks.set(position, false));
    }
    let ids = &rows.ids[rows.ids.partition_point(|&id| id < first)..];
    for &id in ids.iter().take_while(|&&id| id < end) {
        if let Some(position) = group.position_of(id) {
            marks.set(position, false);
        }
    }
    if let Some(deleted) = &entry.deleted {
        marks.or(deleted);
    }
    (!marks.all()).then(|| GroupEntry { group: Arc::clone(group), deleted: Some(Arc::new(marks)) })
}

impl RowsSource {
    /// The table's columns.
    pub fn schema(&self) -> &Arc<TableSchema> {
        self.table.schema()
    }

    /// How many rows.
    pub fn live_rows(&self) -> u64 {
        self.table.live_rows()
    }
}

impl TableSource for RowsSource {
    fn name(&self) -> &str {
        self.table.name()
    }

    fn column_types(&self) -> &[LogicalType] {
        self.table.column_types()
    }

    fn column_name(&self, column: usize) -> &str {
        self.table.column_name(column)
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

    fn zone(&self, group: usize, column: usize) -> Option<&BlockStats> {
        self.table.zone(group, column)
    }

    fn segment(&self, group: usize, column: usize) -> sinter_exec::Result<Pinned> {
        self.table.segment(group, column)
    }
}
