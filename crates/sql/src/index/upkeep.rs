//! What a statement did to a table, done to its indexes.

use super::entries::{for_each_entry, values_text};
use super::key::row_id_bytes;
use crate::kv::{AnyDraft, KeyRef};
use crate::{Error, Result};
use sinter_column::{ColumnTable, Difference, Index, differences};
use sinter_storage::CommitNumber;
use std::sync::Arc;

/// Rows that are new in a table, and rows that are gone.
pub(crate) struct RowChanges {
    new: Arc<ColumnTable>,
    gone: Option<Arc<ColumnTable>>,
}

impl RowChanges {
    /// What led from one state of a table to a later one.
    ///
    /// # Errors
    /// None in practice.
    pub(crate) fn between(before: &ColumnTable, after: &ColumnTable) -> Result<RowChanges> {
        let Difference { new, gone } = differences(before, after)?;
        Ok(RowChanges { new: Arc::new(new), gone: Some(Arc::new(gone)) })
    }

    /// All rows of a table, which are new to an index.
    pub(crate) fn all(table: &Arc<ColumnTable>) -> RowChanges {
        RowChanges { new: Arc::clone(table), gone: None }
    }

    /// Changes the tree of an index, in the state after commit `at`: what is gone goes first, so that its values may come
    /// again.
    ///
    /// # Errors
    /// [`Error::Data`]: values are there already, or too long. A row or a leaf cannot be read; there is no memory.
    pub(crate) fn apply(&self, index: &Index, draft: &mut AnyDraft, at: CommitNumber) -> Result<()> {
        if let Some(gone) = &self.gone {
            for_each_entry(gone, index, &mut |key, _| draft.change(KeyRef::Bytes(key), None, at))?;
        }
        if index.rule.is_unique() {
            // That others have not put the same values is seen at the commit.
            draft.hold_written();
        }
        let key_bytes_max = draft.key_bytes_max();
        for_each_entry(&self.new, index, &mut |key, row_id| {
            if key.len() > key_bytes_max {
                return Err(too_long(&self.new, index, key.len(), key_bytes_max));
            }
            let key = KeyRef::Bytes(key);
            if !index.rule.is_unique() {
                return draft.change(key, Some(&[]), at);
            }
            if draft.get(key, at, false, |found| found.is_some())? {
                return Err(duplicate(&self.new, index, row_id));
            }
            draft.change(key, Some(&row_id_bytes(row_id)), at)
        })
    }
}

/// The error for a row whose values a unique index has already.
pub(super) fn duplicate(rows: &Arc<ColumnTable>, index: &Index, row_id: u64) -> Error {
    match values_text(rows, index, row_id) {
        Ok(values) => Error::Data(format!(
            "table '{}' has a row with {values} already, and '{}' is unique",
            rows.name(),
            index.name
        )),
        Err(error) => error,
    }
}

/// The error for a row whose values are longer than a key may be.
pub(super) fn too_long(rows: &ColumnTable, index: &Index, bytes: usize, bytes_max: usize) -> Error {
    Error::Data(format!(
        "table '{}': a row's values for the index '{}' take {bytes} bytes, where it has place for {bytes_max}",
        rows.name(),
        index.name
    ))
}
