//! A pipeline over gathered rows that has them gathered without columns that nobody looks at: each would be kept for every
//! row, and fetched from another place for every row that comes in an order.

use crate::{Expr, Output, Pipeline, ScanColumn, Source};
use std::collections::BTreeSet;

impl Pipeline {
    /// The same rows, of which those that are gathered in an order have no columns that this pipeline does not look at.
    #[must_use]
    pub fn narrowed(mut self) -> Pipeline {
        let Source::Gathered(inner) = &self.source else { return self };
        let (Output::Sorted { rows, .. } | Output::Windows { rows, .. }) = &inner.output else { return self };
        let mut wanted: BTreeSet<usize> = self.columns_wanted(0).into_iter().collect();
        wanted.extend(self.filter.iter().flat_map(Expr::columns));
        let of_rows = |column: &ScanColumn| match column {
            ScanColumn::Table(column) => Some(*column),
            ScanColumn::Length(_) | ScanColumn::RowId => None,
        };
        let Some(columns) = self.columns.iter().map(of_rows).collect::<Option<Vec<usize>>>() else { return self };
        let kept: BTreeSet<usize> = wanted.iter().map(|&column| columns[column]).collect();
        let row_count = rows.len();
        let removed: Vec<usize> = (0..row_count).filter(|row| !kept.contains(row)).collect();
        if removed.is_empty() {
            return self;
        }
        let place = |column: usize| column - removed.partition_point(|&other| other < column);
        let own: Vec<usize> = (0..columns.len()).filter(|column| wanted.contains(column)).collect();
        let count = columns.len();
        let own_place = |column: usize| match column.checked_sub(count) {
            Some(later) => own.len() + later,
            None => own.partition_point(|&other| other < column),
        };
        let renumber = |expr: &mut Expr| expr.visit_columns(&mut |column| *column = own_place(*column));
        self.columns = own.iter().map(|&column| ScanColumn::Table(place(columns[column]))).collect();
        self.filter.iter_mut().for_each(renumber);
        self.visit_exprs(&mut |expr| renumber(expr));
        if let Source::Gathered(inner) = &mut self.source {
            if let Output::Sorted { rows, .. } | Output::Windows { rows, .. } = &mut inner.output {
                let mut row = 0..row_count;
                rows.retain(|_| row.next().is_some_and(|row| kept.contains(&row)));
            }
            **inner = Pipeline::clone(inner).narrowed();
        }
        self
    }
}
