//! What becomes of a scan that comes to bytes which are not those that were written.

use crate::TableSource;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What a scan does with a row group of which it cannot read a column.
#[derive(Clone, Debug, Default)]
pub enum OnDamage {
    /// Ends with the error.
    #[default]
    Fail,
    /// Leaves the whole group out, and notes it here.
    LeaveOut(Arc<LeftOut>),
}

/// Row groups that scans left out. Any number of runs may share it; a group that several leave out counts once.
#[derive(Debug, Default)]
pub struct LeftOut(Mutex<BTreeMap<Table, Groups>>);

/// By its first row, or else by number: the rows of a group, and why it could not be read.
type Groups = BTreeMap<u64, (u64, String)>;

/// A table's name, and where its value is in memory: several databases may have tables of one name.
type Table = (String, usize);

/// What was left out of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutOfTable {
    /// Its name.
    pub table: String,
    /// Row groups.
    pub groups: u64,
    /// Their rows, without deleted ones.
    pub rows: u64,
    /// Why: each reason once, in the order of the groups.
    pub reasons: Vec<String>,
}

impl LeftOut {
    pub(crate) fn add(&self, source: &dyn TableSource, group: usize, rows: u64, why: String) {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first_row = source.group_id(group).map(|(_, first_row)| first_row);
        let table = (source.name().to_owned(), source.address());
        tables.entry(table).or_default().insert(first_row.unwrap_or(group as u64), (rows, why));
    }

    /// Everything that was left out since the last call, by table.
    pub fn take(&self) -> Vec<LeftOutOfTable> {
        let tables = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let of_table = |((table, _), groups): (Table, BTreeMap<u64, (u64, String)>)| {
            let mut left_out = LeftOutOfTable { table, groups: groups.len() as u64, rows: 0, reasons: Vec::new() };
            for (rows, why) in groups.into_values() {
                left_out.rows += rows;
                if !left_out.reasons.contains(&why) {
                    left_out.reasons.push(why);
                }
            }
            left_out
        };
        tables.into_iter().map(of_table).collect()
    }
}
