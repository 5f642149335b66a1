//! Keys of GROUPING SETS in which something changes.

use super::{is_such, rewritten};
use crate::walk::WalkTree;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::{NamePreserver, replace_col};
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, Projection};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Begins the names of columns that would be called as keys are.
const OWN: &str = "__sinter_own";

/// Computes those keys of GROUPING SETS below them that the rule changes. In the sets they become columns of the same
/// names: `grouping(x)` looks for `x` there, and a set cannot have another name than its own.
pub(super) fn with_keys_below(aggregate: Aggregate, schema: &DFSchema) -> Result<Aggregate> {
    let sets = aggregate.group_expr.iter().filter_map(|expr| match expr {
        Expr::GroupingSet(sets) => Some(sets),
        _ => None,
    });
    let mut keys: Vec<Expr> = Vec::new();
    for key in sets.flat_map(GroupingSet::distinct_expr) {
        if key.any(&mut |expr| Ok(is_such(expr, schema)))? && !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    if keys.is_empty() {
        return Ok(aggregate);
    }
    let columns = |exprs: Vec<Expr>| -> Result<Vec<Expr>> {
        let column = |expr: Expr| {
            let is_key = keys.contains(&expr);
            let name = is_key.then(|| Expr::Column(Column::new_unqualified(expr.schema_name().to_string())));
            Ok(name.map_or(Transformed::no(expr), Transformed::yes))
        };
        exprs.into_iter().map(|expr| Ok(expr.rewrite_down(&mut |expr| column(expr))?.data)).collect()
    };
    let mut other_keys: HashSet<Column> = HashSet::new();
    for key in &aggregate.group_expr {
        let within = match key {
            Expr::GroupingSet(sets) => sets.distinct_expr(),
            key => vec![key],
        };
        other_keys.extend(within.into_iter().filter(|key| !keys.contains(key)).flat_map(Expr::column_refs).cloned());
    }
    let (group_expr, mut aggr_expr) = (columns(aggregate.group_expr)?, columns(aggregate.aggr_expr)?);
    let mut below = Vec::new();
    for key in &keys {
        below.push(rewritten(key.clone(), schema)?.data.alias(key.schema_name().to_string()));
    }
    for column in aggregate.input.schema().columns() {
        // `CAST(t.d AS ...)` is called as `t.d` is, and some of DataFusion's rules then take one for the other.
        let is_called_alike = keys.iter().any(|key| key.schema_name().to_string() == column.flat_name());
        let is_kept = other_keys.contains(&column) || aggr_expr.iter().any(|call| asks_within(call, &column));
        if !is_called_alike || is_kept {
            below.push(Expr::Column(column));
            continue;
        }
        let own = Column::new_unqualified(format!("{OWN} {}", column.flat_name()));
        let names = NamePreserver::new_for_projection();
        for call in &mut aggr_expr {
            let name = names.save(call);
            *call = name.restore(replace_col(std::mem::take(call), &HashMap::from([(&column, &own)]))?);
        }
        below.push(Expr::Column(column).alias(own.name));
    }
    let input = LogicalPlan::Projection(Projection::try_new(below, aggregate.input)?);
    Aggregate::try_new(Arc::new(input), group_expr, aggr_expr)
}

/// Whether a subquery within an expression asks for a column of the rows around it.
fn asks_within(expr: &Expr, column: &Column) -> bool {
    let asks = |expr: &Expr| {
        let subquery = match expr {
            Expr::Exists(exists) => &exists.subquery,
            Expr::InSubquery(found) => &found.subquery,
            Expr::SetComparison(found) => &found.subquery,
            Expr::ScalarSubquery(subquery) => subquery,
            _ => return Ok(false),
        };
        let mut outer = subquery.outer_ref_columns.iter();
        Ok(outer.any(|outer| matches!(outer, Expr::OuterReferenceColumn(_, asked) if asked == column)))
    };
    expr.any(&mut |expr| asks(expr)).unwrap_or(true)
}
