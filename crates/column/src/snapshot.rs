//! What a table held at one moment, in the shape that the engine reads.

use crate::TableSchema;
use crate::table::TableState;
use sinter_codec::{Bitmap, BlockStats};
use sinter_exec::{LogicalType, Pinned, RowIds, TableSource};
use std::sync::Arc;

/// An immutable view of a table; keeps the pages it needs from being given back.
#[derive(Debug)]
pub struct Snapshot {
    name: String,
    schema: Arc<TableSchema>,
    types: Vec<LogicalType>,
    state: Arc<TableState>,
}

impl Snapshot {
    pub(crate) fn new(name: String, schema: Arc<TableSchema>, state: Arc<TableState>) -> Snapshot {
        let types = schema.columns.iter().map(|column| column.ty.clone()).collect();
        Snapshot { name, schema, types, state }
    }

    /// The table's columns.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// The table's row groups.
    pub fn state(&self) -> &TableState {
        &self.state
    }
}

impl TableSource for Snapshot {
    fn name(&self) -> &str {
        &self.name
    }

    fn column_types(&self) -> &[LogicalType] {
        &self.types
    }

    fn column_name(&self, column: usize) -> &str {
        &self.schema.columns[column].name
    }

    fn group_count(&self) -> usize {
        self.state.groups.len()
    }

    fn group_rows(&self, group: usize) -> usize {
        self.state.groups[group].group.rows
    }

    fn row_ids(&self, group: usize) -> RowIds {
        self.state.groups[group].group.row_ids.clone()
    }

    fn deleted(&self, group: usize) -> Option<Arc<Bitmap>> {
        self.state.groups[group].deleted.clone()
    }

    fn zone(&self, group: usize, column: usize) -> Option<&BlockStats> {
        self.state.groups[group].group.segments[column].stats.as_ref()
    }

    fn segment(&self, group: usize, column: usize) -> sinter_exec::Result<Pinned> {
        Ok(self.state.groups[group].group.segments[column].pin()?)
    }
}
