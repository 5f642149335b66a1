//! What an expression's values mean.

use super::Expr;
use crate::LogicalType;
use std::collections::BTreeSet;

impl Expr {
    /// The type of the result over columns of these types; `Boolean` for a column that does not exist.
    pub fn type_over(&self, columns: &[LogicalType]) -> LogicalType {
        match self {
            Expr::Column(column) => columns.get(*column).cloned().unwrap_or(LogicalType::Boolean),
            Expr::Literal(_, ty)
            | Expr::Arithmetic { ty, .. }
            | Expr::Cast { ty, .. }
            | Expr::Case { ty, .. }
            | Expr::Foreign { ty, .. } => ty.clone(),
            Expr::Text { function, .. } => function.ty(),
            Expr::Compare(..)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::InList { .. }
            | Expr::IsKey { .. }
            | Expr::Like { .. } => LogicalType::Boolean,
        }
    }

    /// The columns that it reads.
    pub fn columns(&self) -> BTreeSet<usize> {
        let mut columns = BTreeSet::new();
        let mut rest = vec![self];
        while let Some(expr) = rest.pop() {
            if let Expr::Column(column) = expr {
                columns.insert(*column);
            }
            rest.extend(expr.children());
        }
        columns
    }

    /// Shows the position of each column in it.
    pub fn visit_columns(&mut self, visit: &mut dyn FnMut(&mut usize)) {
        self.visit_parts(&mut |part| {
            if let Expr::Column(position) = part {
                visit(position);
            }
        });
    }

    /// Shows it, and then the expressions that are parts of what it has become.
    pub(crate) fn visit_parts(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        visit(self);
        match self {
            Expr::Column(_) | Expr::Literal(..) => {}
            Expr::Compare(_, left, right) | Expr::Arithmetic { left, right, .. } => {
                left.visit_parts(visit);
                right.visit_parts(visit);
            }
            Expr::And(parts) | Expr::Or(parts) => parts.iter_mut().for_each(|part| part.visit_parts(visit)),
            Expr::Not(inner) | Expr::IsNull(inner) | Expr::IsNotNull(inner) => inner.visit_parts(visit),
            Expr::InList { expr, .. }
            | Expr::IsKey { expr, .. }
            | Expr::Like { expr, .. }
            | Expr::Text { expr, .. }
            | Expr::Cast { expr, .. } => expr.visit_parts(visit),
            Expr::Case { branches, otherwise, .. } => {
                for (condition, result) in branches {
                    condition.visit_parts(visit);
                    result.visit_parts(visit);
                }
                if let Some(otherwise) = otherwise {
                    otherwise.visit_parts(visit);
                }
            }
            Expr::Foreign { arguments, .. } => arguments.iter_mut().for_each(|part| part.visit_parts(visit)),
        }
    }

    /// The expressions that this one is made of. An AND within an AND is no part of its own, its parts are; OR likewise.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Column(_) | Expr::Literal(..) => Vec::new(),
            Expr::Compare(_, left, right) | Expr::Arithmetic { left, right, .. } => vec![left, right],
            Expr::And(parts) => flat(parts, |part| if let Expr::And(inner) = part { Some(inner) } else { None }),
            Expr::Or(parts) => flat(parts, |part| if let Expr::Or(inner) = part { Some(inner) } else { None }),
            Expr::Foreign { arguments, .. } => arguments.iter().collect(),
            Expr::Not(inner)
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::InList { expr: inner, .. }
            | Expr::IsKey { expr: inner, .. }
            | Expr::Like { expr: inner, .. }
            | Expr::Text { expr: inner, .. }
            | Expr::Cast { expr: inner, .. } => vec![inner],
            Expr::Case { branches, otherwise, .. } => {
                let parts = branches.iter().flat_map(|(condition, result)| [condition, result]);
                parts.chain(otherwise.as_deref()).collect()
            }
        }
    }
}

/// The parts in order, and for those that have parts of the same kind these, without recursion: SQL nests
/// `a AND b AND c AND ...` as deep as it is long.
fn flat<'a>(parts: &'a [Expr], nested: impl Fn(&'a Expr) -> Option<&'a Vec<Expr>>) -> Vec<&'a Expr> {
    let mut flat = Vec::with_capacity(parts.len());
    let mut open = vec![parts.iter()];
    while let Some(level) = open.last_mut() {
        match level.next() {
            Some(part) => match nested(part) {
                Some(inner) => open.push(inner.iter()),
                None => flat.push(part),
            },
            None => _ = open.pop(),
        }
    }
    flat
}
