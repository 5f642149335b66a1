//! Columns of one name, of several tables in a subquery that knows of the rows around it.
//!
//! DataFusion makes a join with such a subquery, whose columns then stand under one alias: `t.id` and `u.id` both become
//! `subquery.id`, and the conditions on the rows around are asked of either of them. A table may also be in the subquery and
//! around it, as in `a NOT IN (SELECT a FROM t)`, and then both columns become the subquery's. Where names meet, the columns
//! that these conditions name get names of their own below the conditions, and their old ones back above.

use crate::walk::{WalkPlan, WalkTree};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Subquery};
use datafusion::optimizer::AnalyzerRule;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rule.
#[derive(Debug)]
pub(crate) struct OwnNames;

impl AnalyzerRule for OwnNames {
    fn name(&self) -> &str {
        "sinter_own_names"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.rewrite_up_with_subqueries(&mut |plan| {
            let names = NamePreserver::new(&plan);
            plan.rewrite_exprs(&mut |expr| {
                let name = names.save(&expr);
                let expr = expr.rewrite_up(&mut |mut expr| {
                    let subquery = match &mut expr {
                        Expr::Exists(exists) => &mut exists.subquery,
                        Expr::InSubquery(found) => &mut found.subquery,
                        Expr::ScalarSubquery(subquery) => subquery,
                        _ => return Ok(Transformed::no(expr)),
                    };
                    let changed = name_apart(subquery)?;
                    Ok(Transformed::new_transformed(expr, changed))
                })?;
                Ok(expr.update_data(|expr| name.restore(expr)))
            })
        });
        Ok(plan?.data)
    }
}

/// Whether a condition moves out of a subquery, to become one of a join.
fn moves_out(condition: &Expr) -> bool {
    let is_subquery = |expr: &Expr| {
        Ok(matches!(expr, Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_)))
    };
    condition.contains_outer() && !condition.any(&mut |expr| is_subquery(expr)).unwrap_or(true)
}

/// Gives the columns names of their own where some of them meet; true if something changed.
fn name_apart(subquery: &mut Subquery) -> Result<bool> {
    let (mut asked, mut around): (Vec<Column>, Vec<Column>) = (Vec::new(), Vec::new());
    subquery.subquery.visit_nodes(&mut |plan| {
        if let LogicalPlan::Filter(filter) = plan {
            for condition in split_conjunction(&filter.predicate).into_iter().filter(|condition| moves_out(condition)) {
                asked.extend(condition.column_refs().into_iter().cloned());
                condition.visit_nodes(&mut |expr| {
                    if let Expr::OuterReferenceColumn(_, column) = expr {
                        around.push(column.clone());
                    }
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let handed_out = subquery.subquery.schema().columns();
    let meets = |one: &Column| {
        let mut others = asked.iter().chain(&handed_out);
        around.contains(one) || others.any(|other| other.name == one.name && other.relation != one.relation)
    };
    if !asked.iter().any(meets) {
        return Ok(false);
    }
    let mut count = 0;
    let plan = subquery.subquery.as_ref().clone().rewrite_up(&mut |plan| match plan {
        LogicalPlan::Filter(filter) if split_conjunction(&filter.predicate).into_iter().any(moves_out) => {
            Ok(Transformed::yes(with_own_names(filter, &mut count)?))
        }
        plan => Ok(Transformed::no(plan)),
    })?;
    subquery.subquery = Arc::new(plan.data);
    Ok(true)
}

fn with_own_names(filter: Filter, count: &mut usize) -> Result<LogicalPlan> {
    let (moving, staying): (Vec<Expr>, Vec<Expr>) =
        split_conjunction_owned(filter.predicate.clone()).into_iter().partition(moves_out);
    let mut own: BTreeMap<Column, Column> = BTreeMap::new();
    for column in moving.iter().flat_map(Expr::column_refs) {
        if !own.contains_key(column) {
            *count += 1;
            own.insert(column.clone(), Column::new_unqualified(format!("{} {count}", column.flat_name())));
        }
    }
    let (mut below, mut above) = (Vec::new(), Vec::new());
    for column in filter.input.schema().columns() {
        match own.get(&column) {
            Some(name) => {
                below.push(Expr::Column(column.clone()).alias(&name.name));
                above.push(Expr::Column(name.clone()).alias_qualified(column.relation, column.name));
            }
            None => {
                below.push(Expr::Column(column.clone()));
                above.push(Expr::Column(column));
            }
        }
    }
    let renamed = |condition: Expr| {
        let condition = condition.rewrite_up(&mut |expr| match &expr {
            Expr::Column(column) => match own.get(column) {
                Some(name) => Ok(Transformed::yes(Expr::Column(name.clone()))),
                None => Ok(Transformed::no(expr)),
            },
            _ => Ok(Transformed::no(expr)),
        });
        condition.map(|condition| condition.data)
    };
    // As one filter: of two of them, DataFusion hands out the columns of one.
    let Some(moving) = conjunction(moving) else { return Ok(LogicalPlan::Filter(filter)) };
    let plan = LogicalPlanBuilder::new_from_arc(filter.input).project(below)?.filter(renamed(moving)?)?;
    let plan = plan.project(above)?;
    match conjunction(staying) {
        Some(condition) => plan.filter(condition)?.build(),
        None => plan.build(),
    }
}
