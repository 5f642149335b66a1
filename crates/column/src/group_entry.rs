//! A row group as a table holds it: with its delete marks.

use crate::Result;
use crate::group::RowGroup;
use crate::group_writer::weight;
use crate::marks::Marks;
use std::sync::Arc;

/// A row group and which of its rows are deleted.
#[derive(Clone, Debug)]
pub struct GroupEntry {
    /// The rows.
    pub group: Arc<RowGroup>,
    /// `None` when none is.
    pub deleted: Option<Marks>,
}

impl From<RowGroup> for GroupEntry {
    /// All rows live.
    fn from(group: RowGroup) -> GroupEntry {
        GroupEntry { group: Arc::new(group), deleted: None }
    }
}

impl GroupEntry {
    /// The same rows with these marks.
    pub(crate) fn with_marks(&self, deleted: Marks) -> GroupEntry {
        GroupEntry { group: Arc::clone(&self.group), deleted: Some(deleted) }
    }

    /// Rows that are not deleted.
    pub fn live_rows(&self) -> usize {
        self.group.rows - self.deleted.as_ref().map_or(0, Marks::count)
    }

    /// So much of it is deleted that it is worth pressing anew.
    pub(crate) fn is_mostly_deleted(&self) -> bool {
        2 * self.live_rows() < self.group.rows
    }

    /// It waits to be pressed.
    pub(crate) fn is_loose(&self) -> bool {
        self.group.is_fresh() || self.is_mostly_deleted()
    }

    /// How full its living rows would make a row group of `bytes_max`, of [`crate::group_writer::GROUP_BYTES`].
    pub(crate) fn weight(&self, bytes_max: u64) -> Result<u64> {
        let (live, rows) = (self.live_rows() as u64, self.group.rows.max(1) as u64);
        if live == 0 {
            return Ok(0);
        }
        let bytes = (u128::from(self.group.plain_bytes()?) * u128::from(live) / u128::from(rows)) as u64;
        Ok(weight(live, bytes, bytes_max))
    }

    /// True for the same rows with the same marks, by their addresses.
    pub(crate) fn is_same(&self, other: &GroupEntry) -> bool {
        Arc::ptr_eq(&self.group, &other.group) && self.has_marks_of(other)
    }

    /// True for the same marks, by their address.
    pub(crate) fn has_marks_of(&self, other: &GroupEntry) -> bool {
        match (&self.deleted, &other.deleted) {
            (None, None) => true,
            (Some(left), Some(right)) => left.is_same(right),
            _ => false,
        }
    }

    /// The ids of the rows that are marked here and not in `earlier`, the same rows before; increasing.
    pub(crate) fn deleted_since<'a>(&'a self, earlier: &'a GroupEntry) -> impl Iterator<Item = u64> + 'a {
        let marked = self.deleted.iter().filter(|_| !self.has_marks_of(earlier)).flat_map(|marks| marks.ones());
        let is_new = |position: &usize| earlier.deleted.as_ref().is_none_or(|marks| !marks.get(*position));
        marked.filter(is_new).map(|position| self.group.row_id_at(position))
    }

    /// The ids of the rows that are marked; increasing.
    pub(crate) fn deleted_ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.deleted.iter().flat_map(|marks| marks.ones()).map(|position| self.group.row_id_at(position))
    }
}
