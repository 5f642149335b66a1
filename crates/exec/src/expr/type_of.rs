//! What an expression's values mean.

use super::Expr;
use crate::LogicalType;

impl Expr {
    /// The type of the result over columns of these types; `Boolean` for a column that does not exist.
    pub(crate) fn type_over(&self, columns: &[LogicalType]) -> LogicalType {
        match self {
            Expr::Column(column) => columns.get(*column).cloned().unwrap_or(LogicalType::Boolean),
            Expr::Literal(_, ty)
            | Expr::Arithmetic { ty, .. }
            | Expr::Cast { ty, .. }
            | Expr::Case { ty, .. }
            | Expr::Foreign { ty, .. } => ty.clone(),
            Expr::Compare(..)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::InList { .. }
            | Expr::Like { .. } => LogicalType::Boolean,
        }
    }

    /// The expressions that this one is made of.
    pub(crate) fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Column(_) | Expr::Literal(..) => Vec::new(),
            Expr::Compare(_, left, right) | Expr::Arithmetic { left, right, .. } => vec![left, right],
            Expr::And(parts) | Expr::Or(parts) | Expr::Foreign { arguments: parts, .. } => parts.iter().collect(),
            Expr::Not(inner)
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::InList { expr: inner, .. }
            | Expr::Like { expr: inner, .. }
            | Expr::Cast { expr: inner, .. } => vec![inner],
            Expr::Case { branches, otherwise, .. } => {
                let parts = branches.iter().flat_map(|(condition, result)| [condition, result]);
                parts.chain(otherwise.as_deref()).collect()
            }
        }
    }

    /// Adds the columns it reads to `columns`, each once.
    pub(crate) fn collect_columns(&self, columns: &mut Vec<usize>) {
        if let Expr::Column(column) = self
            && !columns.contains(column)
        {
            columns.push(*column);
        }
        for child in self.children() {
            child.collect_columns(columns);
        }
    }

    /// True when code from outside takes part.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self, Expr::Foreign { .. }) || self.children().into_iter().any(Expr::is_foreign)
    }
}
