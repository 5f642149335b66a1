//! The page that says what a table is made of (docs/format/table.md).

use crate::group_entry::GroupEntry;
use crate::group_wire::{check_columns, read_group, write_group};
use crate::wire::{Reader, Writer};
use crate::{Result, TableSchema};
use sinter_storage::Store;
use std::sync::Arc;

/// The first byte of a table root: its own version. Version 1 had no segments beside their row groups.
const ROOT_VERSION: u8 = 2;

/// The root of a table.
pub(crate) fn write(groups: &[GroupEntry], next_row_id: u64) -> Result<Vec<u8>> {
    let mut out = Writer::default();
    out.u8(ROOT_VERSION);
    out.u64(next_row_id);
    out.count(groups.len());
    for entry in groups {
        write_group(&entry.group, entry.deleted.as_deref(), &mut out)?;
    }
    Ok(out.into_bytes())
}

/// The groups and the next row id that [`write`] wrote.
pub(crate) fn read(
    table: &str,
    schema: &TableSchema,
    store: &Arc<Store>,
    bytes: &[u8],
) -> Result<(Vec<GroupEntry>, u64)> {
    let mut input = Reader::new(table, bytes);
    let version = input.u8()?;
    if !(1..=ROOT_VERSION).contains(&version) {
        return Err(input.damaged(format!(
            "table root of version {version}; this SinterDB reads 1 to {ROOT_VERSION}, a newer one wrote it"
        )));
    }
    let next_row_id = input.u64()?;
    let count = input.count()?;
    let mut groups: Vec<GroupEntry> = Vec::new();
    for _ in 0..count {
        let (group, deleted) = read_group(&mut input, store)?;
        check_columns(&group, schema.columns.len(), &input)?;
        if groups.last().is_some_and(|last| last.group.end_row_id() > group.first_row_id())
            || group.end_row_id() > next_row_id
        {
            return Err(input.damaged("row ids of row groups overlap or run past the next row id"));
        }
        groups.push(GroupEntry { group: Arc::new(group), deleted });
    }
    input.end()?;
    Ok((groups, next_row_id))
}
