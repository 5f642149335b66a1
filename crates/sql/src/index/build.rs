//! An index made from the rows that a table has, in a tree that nobody sees yet.

use super::entries::{KeyMaker, for_each_entry};
use super::key::row_id_bytes;
use super::upkeep::{duplicate, too_long};
use crate::kv::{KeyRef, KvTree};
use crate::{Error, Result};
use arrow::array::{ArrayRef, UInt64Array};
use sinter_btree::Condition;
use sinter_column::{ColumnTable, Difference, Index, TableSchema, differences};
use sinter_storage::{CommitNumber, Numbered};
use std::sync::Arc;

/// Entries that are put in order before they go into the tree, where rows come in the order of their table.
const SORTED_LEN: usize = 1 << 16;

/// The same in bytes of keys.
const SORTED_BYTES: usize = 4 << 20;

/// The tree of an index that is being made. What goes in is there at once, without undo and without a log: whoever reads the
/// log makes it from the rows anew.
pub(crate) struct IndexBuild<'a> {
    table: &'a Arc<ColumnTable>,
    index: &'a Index,
    tree: &'a KvTree,
    /// A commit that all see who see the index.
    at: CommitNumber,
}

impl<'a> IndexBuild<'a> {
    /// `table` is for messages, and says of which columns the index is.
    pub(crate) fn new(
        table: &'a Arc<ColumnTable>,
        index: &'a Index,
        tree: &'a KvTree,
        at: CommitNumber,
    ) -> IndexBuild<'a> {
        IndexBuild { table, index, tree, at }
    }

    /// Puts in rows of which these are the ids and the columns of the index; the more in their order, the faster.
    ///
    /// # Errors
    /// [`Error::Data`]: the index is unique, and has the values of one; or they are too long. A leaf cannot be read or written,
    /// or there is no memory.
    pub(crate) fn put_rows(&self, keys: &mut KeyMaker, row_ids: &UInt64Array, columns: &[ArrayRef]) -> Result<()> {
        keys.take_columns(self.schema(), columns, row_ids.len())?;
        for (row, &id) in row_ids.values().iter().enumerate() {
            let (key, is_whole) = keys.key(row);
            if !self.index.rule.is_unique() {
                key.extend(row_id_bytes(id));
            } else if !is_whole {
                continue;
            }
            self.put(self.table, key, id)?;
        }
        Ok(())
    }

    /// Puts in all rows of the table.
    ///
    /// # Errors
    /// As [`IndexBuild::put_rows`]; a row cannot be read.
    pub(crate) fn put_all(&self) -> Result<()> {
        self.put_table(self.table)
    }

    /// Brings what was made of one state of the table up to a later one.
    ///
    /// # Errors
    /// As [`IndexBuild::put_all`].
    pub(crate) fn follow(&self, then: &ColumnTable, now: &ColumnTable) -> Result<()> {
        let Difference { new, gone } = differences(then, now)?;
        for_each_entry(&Arc::new(gone), self.index, &mut |key, _| self.change(key, None, Condition::Always).map(drop))?;
        self.put_table(&Arc::new(new))
    }

    fn schema(&self) -> &TableSchema {
        self.table.schema()
    }

    fn put_table(&self, rows: &Arc<ColumnTable>) -> Result<()> {
        let (mut sorted, mut bytes): (Vec<(Vec<u8>, u64)>, _) = (Vec::new(), 0);
        let flush = |sorted: &mut Vec<(Vec<u8>, u64)>| {
            sorted.sort_unstable();
            sorted.drain(..).try_for_each(|(key, id)| self.put(rows, &key, id))
        };
        for_each_entry(rows, self.index, &mut |key, id| {
            bytes += key.len();
            sorted.push((key.to_vec(), id));
            if sorted.len() < SORTED_LEN && bytes < SORTED_BYTES {
                return Ok(());
            }
            bytes = 0;
            flush(&mut sorted)
        })?;
        flush(&mut sorted)
    }

    /// `rows` are those among which the row is, for messages.
    fn put(&self, rows: &Arc<ColumnTable>, key: &[u8], row_id: u64) -> Result<()> {
        let (key_bytes_max, _) = self.tree.tree().bytes_max();
        if key.len() > key_bytes_max {
            return Err(too_long(rows, self.index, key.len(), key_bytes_max));
        }
        let id = row_id_bytes(row_id);
        let record: &[u8] = if self.index.rule.is_unique() { &id } else { &[] };
        match self.change(key, Some(record), Condition::Absent)? {
            true => Ok(()),
            false => Err(duplicate(rows, self.index, row_id)),
        }
    }

    fn change(&self, key: &[u8], record: Option<&[u8]>, condition: Condition<'_>) -> Result<bool> {
        let number = || Ok::<_, Error>(Numbered { commit: self.at, horizon: self.at });
        self.tree.tree().change(KeyRef::Bytes(key), record, condition, number)
    }
}
