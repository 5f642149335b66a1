//! The page that says what a table is made of (docs/format/table.md).

use crate::group::RowGroup;
use crate::page::StoredPage;
use crate::table::{GroupEntry, TableState};
use crate::wire::{Reader, Writer};
use crate::{Result, TableSchema};
use sinter_storage::{PageId, Store};
use std::collections::HashMap;
use std::sync::Arc;

/// The first bytes of a table root: its own version, so that later steps can extend it.
const ROOT_VERSION: u8 = 1;

/// The root of `state`, whose groups are all stored.
pub(crate) fn write(state: &TableState) -> Result<Vec<u8>> {
    let mut out = Writer::default();
    out.u8(ROOT_VERSION);
    out.u64(state.next_row_id);
    out.count(state.groups.len());
    for entry in &state.groups {
        entry.group.write(entry.deleted.as_deref(), &mut out)?;
    }
    Ok(out.into_bytes())
}

/// The state that [`write`] wrote.
pub(crate) fn read(table: &str, schema: &TableSchema, store: &Arc<Store>, bytes: &[u8]) -> Result<TableState> {
    let mut input = Reader::new(table, bytes);
    let version = input.u8()?;
    if version != ROOT_VERSION {
        return Err(input.damaged(format!(
            "table root of version {version}; this SinterDB reads {ROOT_VERSION}, a newer one wrote it"
        )));
    }
    let next_row_id = input.u64()?;
    let count = input.count()?;
    let mut pages = PageHandles::new(store);
    let mut groups: Vec<GroupEntry> = Vec::new();
    for _ in 0..count {
        let (group, deleted) = RowGroup::read(&mut input, schema.columns.len(), &mut |id| pages.get(id))?;
        if groups.last().is_some_and(|last| last.group.end_row_id() > group.first_row_id())
            || group.end_row_id() > next_row_id
        {
            return Err(input.damaged("row ids of row groups overlap or run past the next row id"));
        }
        groups.push(GroupEntry { group: Arc::new(group), deleted });
    }
    input.end()?;
    Ok(TableState { groups, next_row_id })
}

/// One handle per chunk, however many segments are in it.
pub(crate) struct PageHandles<'a> {
    store: &'a Arc<Store>,
    handles: HashMap<PageId, Arc<StoredPage>>,
}

impl<'a> PageHandles<'a> {
    pub(crate) fn new(store: &'a Arc<Store>) -> PageHandles<'a> {
        PageHandles { store, handles: HashMap::new() }
    }

    pub(crate) fn get(&mut self, id: PageId) -> Arc<StoredPage> {
        Arc::clone(self.handles.entry(id).or_insert_with(|| StoredPage::new(Arc::clone(self.store), id)))
    }
}
