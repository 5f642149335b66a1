//! Which group each row of a vector is of: found once, read by every aggregate.

use super::index::GroupIndex;
use super::partners::Partners;
use crate::Result;
use crate::aggregate::Argument;
use sinter_codec::{Bitmap, GROUPS_FEW, NO_GROUP, count_by_group, map_rows};

/// The groups of a vector's rows, in memory that is used again.
#[derive(Debug, Default)]
pub(super) struct RowGroups {
    numbers: Vec<u32>,
    few: Vec<u8>,
    counts: [u64; GROUPS_FEW],
}

/// The same, for reading.
#[derive(Clone, Copy)]
pub(super) struct Grouped<'a> {
    /// By row; those of dead rows are any.
    pub(super) numbers: &'a [u32],
    /// `None` where all rows are.
    pub(super) alive: Option<&'a Bitmap>,
    /// Where there are few groups.
    pub(super) few: Option<Few<'a>>,
    pub(super) group_count: usize,
}

/// Rows of at most [`GROUPS_FEW`] groups.
#[derive(Clone, Copy)]
pub(super) struct Few<'a> {
    /// By row; [`NO_GROUP`] for dead ones.
    pub(super) groups: &'a [u8],
    /// How many rows of the vector each group has.
    pub(super) counts: &'a [u64],
}

impl<'a> Grouped<'a> {
    /// Rows that are all alive, of these groups.
    pub(super) fn all(numbers: &'a [u32], group_count: usize) -> Grouped<'a> {
        Grouped { numbers, alive: None, few: None, group_count }
    }
}

impl RowGroups {
    /// Finds the groups of rows by their keys. `None`, and nothing happens, where only some are alive and those of others
    /// cannot be left out.
    pub(super) fn find<'a>(
        &'a mut self,
        index: &mut GroupIndex,
        keys: &[Argument<'_>],
        rows: usize,
        alive: Option<&'a Bitmap>,
    ) -> Result<Option<Grouped<'a>>> {
        let are_known = index.number_few(keys, rows, alive, &mut self.few, &mut self.counts);
        if are_known {
            // Any group will do for a dead row.
            map_rows(&self.few, &mut self.numbers, |group| if group == NO_GROUP { 0 } else { group.into() });
        } else if alive.is_some() {
            return Ok(None);
        } else {
            index.number(keys, rows, &mut self.numbers)?;
        }
        Ok(Some(self.grouped(alive, index.len(), are_known)))
    }

    /// The groups of rows that all are alive, by which rows of a join's table they met.
    ///
    /// # Errors
    /// [`crate::Error::TooManyKeys`].
    pub(super) fn find_by_partners<'a>(&'a mut self, partners: &mut Partners, met: &[u32]) -> Result<Grouped<'a>> {
        partners.find(met, &mut self.numbers)?;
        Ok(self.grouped(None, partners.len(), false))
    }

    /// With the numbers found; are those of `few` known, too?
    fn grouped<'a>(&'a mut self, alive: Option<&'a Bitmap>, group_count: usize, are_known: bool) -> Grouped<'a> {
        let are_few = group_count <= GROUPS_FEW;
        if are_few && !are_known {
            map_rows(&self.numbers, &mut self.few, |number| number as u8);
            self.counts = [0; GROUPS_FEW];
            count_by_group(&self.few, &mut self.counts);
        }
        let few = are_few.then_some(Few { groups: &self.few, counts: &self.counts });
        Grouped { numbers: &self.numbers, alive, few, group_count }
    }
}
