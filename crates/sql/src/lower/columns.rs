//! Columns in expressions.

use super::expr::Scope;
use crate::walk::WalkTree;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::Expr as DfExpr;
use sinter_exec::{Expr, ScanColumn};
use std::sync::Arc;

/// Projections one above the other become one; beyond so many parts of expressions DataFusion runs them one by one: a
/// column that is used twice above is computed twice, and so on for every projection in the chain.
const NODES_MAX: usize = 4096;

/// A condition as the list of what must hold.
pub(super) fn conjuncts(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::And(parts) => parts.into_iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

/// All of these in our terms; `None` where one is not ours, or all together are too long.
pub(super) fn lower_all<'a>(exprs: impl IntoIterator<Item = &'a DfExpr>, scope: &Scope<'_>) -> Option<Vec<Expr>> {
    let lowered = exprs.into_iter().map(|expr| scope.lower(expr)).collect::<Option<Vec<_>>>()?;
    let mut nodes = 0;
    lowered.iter().for_each(|expr| count_nodes(expr, &mut nodes));
    (nodes <= NODES_MAX).then_some(lowered)
}

fn count_nodes(expr: &Expr, nodes: &mut usize) {
    *nodes += 1;
    expr.children().into_iter().for_each(|child| count_nodes(child, nodes));
}

/// Filters over a table's own schema, whose columns are appended to `columns` where the scan has them not yet.
pub(crate) fn lower_filters(
    filters: &[DfExpr],
    schema: &datafusion::common::DFSchema,
    scan_column: &dyn Fn(usize) -> ScanColumn,
    columns: &mut Vec<ScanColumn>,
) -> Option<Vec<Expr>> {
    let all: Vec<Expr> = (0..schema.fields().len())
        .map(|index| {
            let wanted = scan_column(index);
            let position = columns.iter().position(|column| *column == wanted).unwrap_or(usize::MAX - index);
            Expr::Column(position)
        })
        .collect();
    let scope = Scope::new(schema, &all);
    let mut lowered = Vec::new();
    for filter in filters {
        lowered.extend(conjuncts(scope.lower(&unqualified(filter))?));
    }
    for expr in &mut lowered {
        expr.visit_columns(&mut |position| {
            if *position > usize::MAX / 2 {
                let wanted = scan_column(usize::MAX - *position);
                *position = columns.iter().position(|column| *column == wanted).unwrap_or_else(|| {
                    columns.push(wanted);
                    columns.len() - 1
                });
            }
        });
    }
    Some(lowered)
}

fn unqualified(expr: &DfExpr) -> DfExpr {
    let stripped = expr.clone().rewrite_up(&mut |expr| {
        Ok(match expr {
            DfExpr::Column(column) if column.relation.is_some() => {
                Transformed::yes(DfExpr::Column(datafusion::common::Column::from_name(column.name)))
            }
            other => Transformed::no(other),
        })
    });
    stripped.map(|stripped| stripped.data).unwrap_or_else(|_| expr.clone())
}

/// The same expression over other columns.
pub(super) fn with_columns(expr: &Expr, column: &dyn Fn(usize) -> Expr) -> Expr {
    let with = |expr: &Expr| with_columns(expr, column);
    let boxed = |expr: &Expr| Box::new(with_columns(expr, column));
    let all = |parts: &[Expr]| parts.iter().map(with).collect::<Vec<_>>();
    match expr {
        Expr::Column(position) => column(*position),
        Expr::Literal(..) => expr.clone(),
        Expr::Compare(op, left, right) => Expr::Compare(*op, boxed(left), boxed(right)),
        Expr::Arithmetic { op, left, right, ty } => {
            Expr::Arithmetic { op: *op, left: boxed(left), right: boxed(right), ty: ty.clone() }
        }
        Expr::And(parts) => Expr::And(all(parts)),
        Expr::Or(parts) => Expr::Or(all(parts)),
        Expr::Not(inner) => Expr::Not(boxed(inner)),
        Expr::IsNull(inner) => Expr::IsNull(boxed(inner)),
        Expr::IsNotNull(inner) => Expr::IsNotNull(boxed(inner)),
        Expr::InList { expr, list, has_null, negated } => {
            Expr::InList { expr: boxed(expr), list: list.clone(), has_null: *has_null, negated: *negated }
        }
        Expr::IsKey { expr, keys } => Expr::IsKey { expr: boxed(expr), keys: Arc::clone(keys) },
        Expr::Like { expr, pattern, negated, case_insensitive } => Expr::Like {
            expr: boxed(expr),
            pattern: pattern.clone(),
            negated: *negated,
            case_insensitive: *case_insensitive,
        },
        Expr::Text { function, expr } => Expr::Text { function: *function, expr: boxed(expr) },
        Expr::Cast { expr, ty } => Expr::Cast { expr: boxed(expr), ty: ty.clone() },
        Expr::Case { branches, otherwise, ty } => Expr::Case {
            branches: branches.iter().map(|(condition, result)| (with(condition), with(result))).collect(),
            otherwise: otherwise.as_deref().map(boxed),
            ty: ty.clone(),
        },
        Expr::Foreign { function, arguments, ty } => {
            Expr::Foreign { function: Arc::clone(function), arguments: all(arguments), ty: ty.clone() }
        }
    }
}
