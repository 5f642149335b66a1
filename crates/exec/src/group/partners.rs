//! Keys that all come from one join: rows that met the same row of its table have the same, so they are looked at once for
//! each of its rows, and after that the row's number is enough.

use super::ABSENT;
use super::index::GroupIndex;
use crate::aggregate::Argument;
use crate::flow::Flow;
use crate::{Expr, LogicalType, Result, Vector};
use sinter_codec::Physical;

/// Which columns are keys, and which others are read.
#[derive(Debug)]
pub(super) struct PartnerKeys {
    keys: Vec<usize>,
    pub(super) arguments: Vec<usize>,
}

impl PartnerKeys {
    /// `None` where keys are computed, or none is a text: numbers are looked at about as fast as a row's group is found.
    pub(super) fn new(keys: &[Expr], types: &[LogicalType], arguments: Vec<usize>) -> Option<PartnerKeys> {
        let column = |key: &Expr| if let Expr::Column(column) = key { Some(*column) } else { None };
        let columns: Option<Vec<usize>> = keys.iter().map(column).collect();
        let is_text = |&column: &usize| types[column].physical() == Some(Physical::Bytes);
        let keys = columns.filter(|columns| columns.iter().any(is_text))?;
        Some(PartnerKeys { keys, arguments })
    }
}

/// Rows of a table whose groups are remembered, at most: 4 MB.
const ROWS_MAX: usize = 1 << 20;

/// The groups of a table's rows, as far as they were met.
#[derive(Debug, Default)]
pub(super) struct Partners {
    /// Which table.
    table: Option<usize>,
    /// By row; at the end, that of rows that met none.
    groups: Vec<u32>,
    strangers: Vec<u32>,
    places: Vec<u16>,
    keys: Vec<Vector>,
    numbers: Vec<u32>,
}

impl Partners {
    /// Writes over `out` the groups of rows by what they met; false, and nothing happens, where the keys are not all of one
    /// join.
    pub(super) fn find(
        &mut self,
        plan: &PartnerKeys,
        flow: &Flow<'_>,
        index: &mut GroupIndex,
        out: &mut Vec<u32>,
    ) -> Result<bool> {
        let Some(join) = flow.join_of(&plan.keys) else { return Ok(false) };
        let table = flow.table(join);
        if table.rows() > ROWS_MAX {
            return Ok(false);
        }
        let end = table.rows();
        let identity = std::ptr::from_ref(table).addr();
        if self.table.replace(identity) != Some(identity) {
            self.groups.clear();
            self.groups.resize(end + 1, ABSENT);
        }
        let (met, groups) = (flow.met(join), &mut self.groups);
        let place = |row: u32| (row as usize).min(end);
        out.clear();
        out.extend(met.iter().map(|&row| groups[place(row)]));
        self.places.clear();
        self.places.extend((0..met.len()).filter(|&row| out[row] == ABSENT).map(|row| row as u16));
        if self.places.is_empty() {
            return Ok(true);
        }
        self.strangers.clear();
        self.strangers.extend(self.places.iter().map(|&row| met[usize::from(row)]));
        self.keys.resize_with(plan.keys.len(), Vector::default);
        for (&column, key) in plan.keys.iter().zip(&mut self.keys) {
            flow.gather_partners(column, &self.strangers, key);
        }
        let keys: Vec<_> = self.keys.iter().map(|key| Argument::of(key, self.strangers.len())).collect();
        index.number(&keys, self.strangers.len(), &mut self.numbers)?;
        for ((&row, &stranger), &number) in self.places.iter().zip(&self.strangers).zip(&self.numbers) {
            out[usize::from(row)] = number;
            groups[place(stranger)] = number;
        }
        Ok(true)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.groups[..])
    }
}
