//! A run of row groups, kept in another way: the same rows under the same ids.

use crate::group_entry::GroupEntry;
use crate::{ColumnTable, TableSchema};
use sinter_storage::ObjectId;
use std::sync::Arc;

/// What settling and pressing lead to. It is made from one value of a table and can be applied to a later one, as long
/// as the groups are still there. Dropping it gives back what it wrote, unless a table has it.
#[derive(Debug)]
pub struct Rewrite {
    table: ObjectId,
    schema: Arc<TableSchema>,
    /// At least one, neighbours, with the marks that were seen.
    replaced: Vec<GroupEntry>,
    replacement: Vec<GroupEntry>,
}

impl Rewrite {
    /// Of neighbouring groups of `table`, at least one.
    pub(crate) fn new(table: &ColumnTable, replaced: &[GroupEntry], replacement: Vec<GroupEntry>) -> Rewrite {
        let schema = Arc::clone(table.schema());
        Rewrite { table: table.id(), schema, replaced: replaced.to_vec(), replacement }
    }

    /// `table` with these groups in the place of the old ones; rows that were deleted since are deleted. `None` when the
    /// old ones are not there any more, or the table was altered: then the work was for nothing.
    pub fn apply_to(&self, table: &ColumnTable) -> Option<ColumnTable> {
        if table.id() != self.table || !table.schema().is_same(&self.schema) {
            return None;
        }
        let first = self.replaced.first()?.group.first_row_id();
        let groups = table.groups();
        let start = groups.partition_point(|entry| entry.group.first_row_id() < first);
        let run = groups.get(start..start + self.replaced.len())?;
        let mut deleted = Vec::new();
        for (now, seen) in run.iter().zip(&self.replaced) {
            if !Arc::ptr_eq(&now.group, &seen.group) {
                return None;
            }
            deleted.extend(now.deleted_since(seen));
        }
        let (before, after) = (&groups[..start], &groups[start + run.len()..]);
        let mut next = table.with_groups([before, &self.replacement, after].concat());
        next.delete(&deleted);
        Some(next)
    }
}
