//! Texts of which only the length is wanted: counted where they are stored, if they are stored as symbols.
//!
//! A filter that asks a column for more, though it may be answered on the encoded form, keeps it as texts.

use crate::expr::TextFunction;
use crate::{Expr, LogicalType, Pipeline, ScanColumn, Source, Step};
use std::collections::BTreeSet;

impl Pipeline {
    /// Has the scan of each table bring lengths ([`ScanColumn::Length`]) in place of texts of which nothing else is asked; also
    /// in the pipelines that this one has its rows from. What comes out stays the same.
    pub fn bring_lengths(&mut self) {
        match &mut self.source {
            Source::Table(_) => self.scan_lengths(),
            Source::Gathered(inner) => inner.bring_lengths(),
            Source::Union(all) => all.iter_mut().for_each(Pipeline::bring_lengths),
        }
        for step in &mut self.steps {
            if let Step::Join(join) = step {
                join.build.bring_lengths();
            }
        }
    }

    fn scan_lengths(&mut self) {
        let (mut wanted, mut others) = (BTreeSet::new(), BTreeSet::new());
        self.visit_all_exprs(&mut |expr| {
            let mut rest = vec![&*expr];
            while let Some(part) = rest.pop() {
                match (part, text_of_length(part)) {
                    (_, Some(column)) => _ = wanted.insert(column),
                    (Expr::Column(column), None) => _ = others.insert(*column),
                    (part, None) => rest.extend(part.children()),
                }
            }
        });
        let types = self.scan_types();
        wanted.retain(|column| !others.contains(column) && types.get(*column) == Some(&LogicalType::Utf8));
        if wanted.is_empty() {
            return;
        }
        for &column in &wanted {
            if let ScanColumn::Table(text) = self.columns[column] {
                self.columns[column] = ScanColumn::Length(text);
            }
        }
        self.visit_all_exprs(&mut |expr| {
            expr.visit_parts(&mut |part| {
                if let Some(column) = text_of_length(part).filter(|column| wanted.contains(column)) {
                    *part = Expr::Column(column);
                }
            });
        });
    }

    /// Those of the filter, too.
    fn visit_all_exprs(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.filter.iter_mut().for_each(&mut *visit);
        self.visit_exprs(visit);
    }
}

/// The column of texts whose lengths an expression is.
fn text_of_length(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Text { function: TextFunction::Length, expr } => match **expr {
            Expr::Column(column) => Some(column),
            _ => None,
        },
        _ => None,
    }
}
