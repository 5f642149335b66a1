//! Where the values come from that a subquery is asked about.
//!
//! They are read a second time, so they must be the same then, and should cost little. Values that no row around has in the
//! end are joined with nothing: so what orders or numbers rows is left out, and what picks some, if it may pick others.

use super::steady;
use crate::correlation::{has, has_no_keys, has_subquery, lateral, outer_columns};
use crate::walk::WalkTree;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, JoinType, NullEquality, Result};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};

/// Nodes beyond which a plan is not read a second time: each subquery of a chain might double it.
const NODES_MAX: usize = 1000;

/// A plan below `around` that has all values of these expressions among its own, the same each time, with the expressions
/// over it; `None` where there is none.
pub(super) fn of(around: &LogicalPlan, values: Vec<Expr>) -> Result<Option<(&LogicalPlan, Vec<Expr>)>> {
    let (mut plan, mut values) = (around, values);
    while let Some((below, over_it)) = below(plan, &values)? {
        (plan, values) = (below, over_it);
    }
    let is_fit = nodes(plan) <= NODES_MAX && outer_columns(plan).is_empty() && !may_differ(plan, &values)?;
    Ok(is_fit.then_some((plan, values)))
}

/// The input that the values come from, if it is as good.
fn below<'a>(plan: &'a LogicalPlan, values: &[Expr]) -> Result<Option<(&'a LogicalPlan, Vec<Expr>)>> {
    let comes_from = |schema: &DFSchema| values.iter().flat_map(Expr::column_refs).all(|column| has(schema, column));
    let same = |input: &'a LogicalPlan| comes_from(input.schema()).then(|| (input, values.to_vec()));
    Ok(match plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() || may_differ(plan, values)? => same(&sort.input),
        LogicalPlan::Limit(limit) if may_differ(plan, values)? => same(&limit.input),
        LogicalPlan::Window(window) => same(&window.input),
        LogicalPlan::Distinct(Distinct::All(input)) => same(input),
        LogicalPlan::Filter(filter) if has_subquery(&filter.predicate) || may_differ(plan, values)? => {
            same(&filter.input)
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let own: Vec<Expr> = alias.input.schema().iter().map(Expr::from).collect();
            substituted(values, &alias.schema, &own)?.map(|values| (&*alias.input, values))
        }
        LogicalPlan::Projection(projection) => {
            substituted(values, &projection.schema, &projection.expr)?.map(|values| (&*projection.input, values))
        }
        // A row of no rows is in none of them.
        LogicalPlan::Aggregate(aggregate) if !has_no_keys(aggregate) => {
            substituted(values, &aggregate.schema, &aggregate.group_expr)?.map(|values| (&*aggregate.input, values))
        }
        LogicalPlan::Join(join) if lateral(join).is_some() => None,
        LogicalPlan::Join(join) => {
            // Such joins are those of other subqueries, of which each would read all before it once more.
            let is_as_good = join.null_equality == NullEquality::NullEqualsNull || may_differ(plan, values)?;
            match join.join_type {
                JoinType::Left | JoinType::LeftMark => same(&join.left),
                JoinType::Right | JoinType::RightMark => same(&join.right),
                JoinType::Inner if is_as_good => same(&join.left).or_else(|| same(&join.right)),
                JoinType::LeftSemi | JoinType::LeftAnti if is_as_good => same(&join.left),
                JoinType::RightSemi | JoinType::RightAnti if is_as_good => same(&join.right),
                _ => None,
            }
        }
        _ => None,
    })
}

/// Values over the input of a node that makes these columns of it; `None` where they need other columns, or what is not the
/// same each time.
fn substituted(values: &[Expr], schema: &DFSchema, columns: &[Expr]) -> Result<Option<Vec<Expr>>> {
    let mut is_known = true;
    let mut all = Vec::with_capacity(values.len());
    for value in values {
        let value = value.clone().rewrite_up(&mut |expr| {
            let Expr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
            Ok(match schema.maybe_index_of_column(column).and_then(|place| columns.get(place)) {
                Some(own) if can_move(own) => Transformed::new(own.clone().unalias(), true, TreeNodeRecursion::Jump),
                _ => {
                    is_known = false;
                    Transformed::no(expr)
                }
            })
        })?;
        all.push(value.data);
    }
    Ok(is_known.then_some(all))
}

/// Whether values of rows that are read twice may be others the second time.
fn may_differ(plan: &LogicalPlan, values: &[Expr]) -> Result<bool> {
    match steady::columns(values, plan.schema())? {
        Some(columns) => Ok(!steady::is_steady(plan, &columns)?),
        None => Ok(true),
    }
}

fn can_move(expr: &Expr) -> bool {
    !expr.is_volatile() && !has_subquery(expr) && !matches!(expr, Expr::GroupingSet(_))
}

fn nodes(plan: &LogicalPlan) -> usize {
    1 + plan.inputs().into_iter().map(nodes).sum::<usize>()
}
