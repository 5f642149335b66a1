//! Texts of which only the length is wanted: counted where they are stored, they are not decoded.

use crate::expr::TextFunction;
use crate::{Expr, LogicalType, Pipeline, ScanColumn, Source, Step};
use std::collections::BTreeSet;

impl Pipeline {
    /// Has the scan of each table bring lengths ([`ScanColumn::Length`]) in place of texts of which nothing else is asked; also
    /// in the pipelines that this one has its rows from. What comes out stays the same.
    pub fn measure_texts(&mut self) {
        match &mut self.source {
            Source::Table(_) => self.measure_scanned(),
            Source::Gathered(inner) => inner.measure_texts(),
            Source::Union(all) => all.iter_mut().for_each(Pipeline::measure_texts),
        }
        for step in &mut self.steps {
            if let Step::Join(join) = step {
                join.build.measure_texts();
            }
        }
    }

    fn measure_scanned(&mut self) {
        let (mut measured, mut others) = (BTreeSet::new(), BTreeSet::new());
        self.visit_all_exprs(&mut |expr| {
            let mut rest = vec![&*expr];
            while let Some(part) = rest.pop() {
                match (part, measured_column(part)) {
                    (_, Some(column)) => _ = measured.insert(column),
                    (Expr::Column(column), None) => _ = others.insert(*column),
                    (part, None) => rest.extend(part.children()),
                }
            }
        });
        let types = self.scan_types();
        measured.retain(|column| !others.contains(column) && types.get(*column) == Some(&LogicalType::Utf8));
        if measured.is_empty() {
            return;
        }
        for &column in &measured {
            if let ScanColumn::Table(text) = self.columns[column] {
                self.columns[column] = ScanColumn::Length(text);
            }
        }
        self.visit_all_exprs(&mut |expr| {
            expr.visit_parts(&mut |part| {
                if let Some(column) = measured_column(part).filter(|column| measured.contains(column)) {
                    *part = Expr::Column(column);
                }
            });
        });
    }

    fn visit_all_exprs(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.filter.iter_mut().for_each(&mut *visit);
        self.visit_exprs(visit);
    }
}

/// The column whose length an expression is.
fn measured_column(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Text { function: TextFunction::Length, expr } => match **expr {
            Expr::Column(column) => Some(column),
            _ => None,
        },
        _ => None,
    }
}
