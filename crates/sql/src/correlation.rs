//! What subqueries refer to of the rows around them, and what DataFusion makes no join of then, or one with other rows.
//!
//! It moves conditions on the rows around a subquery to its top, where they become those of a join. Some nodes have other
//! rows when a condition below them is gone, and other expressions about those rows do not move at all.
//! [`crate::dependent_join`] does without moving them; what is left then is refused.

use crate::scalar_subquery::has_a_row;
use crate::walk::{WalkPlan, WalkTree};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, DFSchema, JoinType, Result, not_impl_err};
use datafusion::logical_expr::utils::{merge_schema, split_conjunction};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable, FetchType, Join, LogicalPlan, Operator, SkipType, Subquery,
};
use std::sync::Arc;

/// What a subquery stands for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Value,
    Exists,
    In,
    /// Rows of FROM, beside those that it refers to.
    Lateral,
}

/// # Errors
/// [`datafusion::error::DataFusionError::NotImplemented`] where there is no join for a subquery among the expressions of
/// `plan`.
pub(crate) fn check(plan: &LogicalPlan) -> Result<()> {
    plan.visit_exprs(&mut |expr| {
        expr.visit_nodes(&mut |expr| {
            if let Some((subquery, kind)) = subquery_of(expr) {
                check_subquery(&subquery.subquery, kind)?;
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

/// # Errors
/// As [`check`].
pub(crate) fn check_subquery(plan: &LogicalPlan, kind: Kind) -> Result<()> {
    match obstacle(plan, kind) {
        Some(place) => {
            not_impl_err!("a subquery that refers to the rows around it {place}; join with the subquery instead")
        }
        None => Ok(()),
    }
}

/// The subquery that an expression is, and what it stands for.
pub(crate) fn subquery_of(expr: &Expr) -> Option<(&Subquery, Kind)> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some((subquery, Kind::Value)),
        Expr::Exists(exists) => Some((&exists.subquery, Kind::Exists)),
        Expr::InSubquery(found) => Some((&found.subquery, Kind::In)),
        Expr::SetComparison(found) => Some((&found.subquery, Kind::In)),
        _ => None,
    }
}

/// Whether there is a subquery in an expression.
pub(crate) fn has_subquery(expr: &Expr) -> bool {
    expr.any(&mut |expr| Ok(subquery_of(expr).is_some())).unwrap_or(true)
}

/// The columns that a node's expressions are about.
pub(crate) fn schema_below(plan: &LogicalPlan) -> Arc<DFSchema> {
    match &plan.inputs()[..] {
        [only] => Arc::clone(only.schema()),
        inputs => Arc::new(merge_schema(inputs)),
    }
}

/// The columns of rows around a plan that it refers to, be it in subqueries of its own.
pub(crate) fn outer_columns(plan: &LogicalPlan) -> Vec<Column> {
    let mut columns = own_outer_columns(plan);
    let mut add = |column: Column| {
        if !columns.contains(&column) {
            columns.push(column);
        }
    };
    match plan {
        LogicalPlan::Join(join) => {
            let within = outer_columns(&join.right).into_iter();
            outer_columns(&join.left).into_iter().for_each(&mut add);
            // A subquery of FROM refers to the rows before it.
            let is_lateral = lateral(join).is_some();
            within.filter(|column| !is_lateral || !has(join.left.schema(), column)).for_each(add);
        }
        plan => plan.inputs().into_iter().flat_map(outer_columns).for_each(add),
    }
    columns
}

/// Those that the expressions of the node alone refer to.
pub(crate) fn own_outer_columns(plan: &LogicalPlan) -> Vec<Column> {
    let mut columns = Vec::new();
    let visited = plan.visit_exprs(&mut |expr| {
        expr.visit_nodes(&mut |expr| {
            if let Expr::OuterReferenceColumn(_, column) = expr {
                columns.push(column.clone());
            } else if let Some((subquery, _)) = subquery_of(expr) {
                columns.extend(beyond(plan, subquery));
            }
            Ok(TreeNodeRecursion::Continue)
        })
    });
    debug_assert!(visited.is_ok(), "nothing fails here");
    columns
}

/// What a subquery in a node's expressions refers to that the rows of the node do not have.
fn beyond(plan: &LogicalPlan, subquery: &Subquery) -> Vec<Column> {
    let (below, mut columns) = (schema_below(plan), outer_columns(&subquery.subquery));
    columns.retain(|column| !has(&below, column));
    columns
}

pub(crate) fn has(schema: &DFSchema, column: &Column) -> bool {
    schema.maybe_index_of_column(column).is_some()
}

/// The subquery that the right side of a join is, if it is one that sees the rows of the left side.
pub(crate) fn lateral(join: &Join) -> Option<&Subquery> {
    match join.right.as_ref() {
        LogicalPlan::Subquery(subquery) => Some(subquery),
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            LogicalPlan::Subquery(subquery) => Some(subquery),
            _ => None,
        },
        _ => None,
    }
}

/// Where in a subquery the rows around it are referred to such that DataFusion makes no join of it, or a wrong one; `None`
/// where it makes the right one.
pub(crate) fn obstacle(plan: &LogicalPlan, kind: Kind) -> Option<&'static str> {
    if outer_columns(plan).is_empty() {
        return None;
    }
    if kind == Kind::Lateral {
        // Its conditions move to where columns have other names, and perhaps those of others.
        return Some("in LATERAL");
    }
    if let Some(place) = of_node(plan, kind).or_else(|| of_subqueries(plan)) {
        return Some(place);
    }
    match plan {
        LogicalPlan::Join(join) if lateral(join).is_some() => {
            let is_beyond = outer_columns(&join.right).iter().any(|column| !has(join.left.schema(), column));
            let is_beside = !outer_columns(&join.left).is_empty();
            (is_beyond || is_beside).then_some("in or beside LATERAL")
        }
        plan => plan.inputs().into_iter().find_map(|input| obstacle(input, kind)),
    }
}

/// What rows around a subquery are referred to in or below a node.
fn of_node(plan: &LogicalPlan, kind: Kind) -> Option<&'static str> {
    match plan {
        LogicalPlan::Window(_) => Some("below a window function"),
        LogicalPlan::Sort(_) => Some("below ORDER BY"),
        LogicalPlan::Union(_) => Some("below UNION"),
        LogicalPlan::Limit(limit) => {
            let skips = !matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)));
            // One row is as good as any where it only matters that there is one.
            let is_empty = matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(0))));
            (kind != Kind::Exists || skips || is_empty).then_some("below LIMIT or OFFSET")
        }
        LogicalPlan::Distinct(Distinct::On(_)) => Some("below DISTINCT ON"),
        // The row of no rows is lost.
        LogicalPlan::Distinct(Distinct::All(input)) => has_a_row(input).then_some("below DISTINCT"),
        LogicalPlan::Filter(filter) if has_a_row(&filter.input) => Some("below HAVING"),
        LogicalPlan::Filter(filter) => {
            let mut conditions = split_conjunction(&filter.predicate).into_iter();
            let is_moved = conditions.any(|condition| condition.contains_outer() && has_subquery(condition));
            is_moved.then_some("in or beside a subquery of its own")
        }
        // The columns of conditions would have to come out of it, too.
        LogicalPlan::SubqueryAlias(_) => Some("in a subquery of FROM"),
        LogicalPlan::Aggregate(aggregate) => of_aggregate(plan, aggregate, kind),
        LogicalPlan::Join(join) => of_join(plan, join, kind),
        plan => (!own_outer_columns(plan).is_empty()).then_some("in what it selects"),
    }
}

fn of_join(plan: &LogicalPlan, join: &Join, kind: Kind) -> Option<&'static str> {
    let is_correlated = |plan: &LogicalPlan| !outer_columns(plan).is_empty();
    let (left, right) = (is_correlated(&join.left), is_correlated(&join.right));
    let in_condition = !own_outer_columns(plan).is_empty();
    let is_lost = match join.join_type {
        JoinType::Inner => false,
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => right || in_condition,
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => left || in_condition,
        JoinType::Full => true,
    };
    if is_lost {
        return Some("within an outer join");
    }
    // They would be taken for ones above the condition.
    let has_calls =
        |plan: &LogicalPlan| matches!(plan, LogicalPlan::Aggregate(aggregate) if !aggregate.aggr_expr.is_empty());
    if left && join.right.any(&mut |plan| Ok(has_calls(plan))).unwrap_or(true) {
        return Some("beside an aggregate");
    }
    // It would be dropped.
    let has_limit = || join.right.any(&mut |plan| Ok(matches!(plan, LogicalPlan::Limit(_)))).unwrap_or(true);
    if kind == Kind::Exists && left && has_limit() {
        return Some("beside LIMIT");
    }
    in_condition.then_some("in the condition of a join")
}

fn of_aggregate(plan: &LogicalPlan, aggregate: &Aggregate, kind: Kind) -> Option<&'static str> {
    let has_other = |plan: &LogicalPlan| match plan {
        LogicalPlan::Filter(filter) => {
            let mut conditions = split_conjunction(&filter.predicate).into_iter();
            let is_key = |condition| can_be_a_key(condition, filter.input.schema());
            conditions.any(|condition| condition.contains_outer() && !is_key(condition))
        }
        LogicalPlan::Aggregate(inner) => has_no_keys(inner),
        LogicalPlan::Limit(_) => true,
        _ => false,
    };
    match kind {
        // Without rows it has one all the same, which a join does not.
        Kind::Exists | Kind::In if has_no_keys(aggregate) => Some("below an aggregate without keys"),
        Kind::Value if has_no_keys(aggregate) && !aggregate.group_expr.is_empty() => Some("below GROUPING SETS"),
        _ if aggregate.aggr_expr.is_empty() => (!own_outer_columns(plan).is_empty()).then_some("in a key"),
        _ if !own_outer_columns(plan).is_empty() => Some("in an aggregate"),
        _ => is_in_correlated(&aggregate.input, &has_other)
            .then_some("below an aggregate, other than by columns that equal theirs"),
    }
}

/// Whether a node is such a one, of those that rows around are referred to in or below.
fn is_in_correlated(plan: &LogicalPlan, is_such: &dyn Fn(&LogicalPlan) -> bool) -> bool {
    !outer_columns(plan).is_empty()
        && (is_such(plan) || plan.inputs().into_iter().any(|input| is_in_correlated(input, is_such)))
}

/// Whether an aggregate has a row of no rows, or may have.
pub(crate) fn has_no_keys(aggregate: &Aggregate) -> bool {
    aggregate.group_expr.iter().all(is_grouping_set)
}

/// What subqueries in a node's expressions are in the way.
fn of_subqueries(plan: &LogicalPlan) -> Option<&'static str> {
    let mut found = None;
    let visited = plan.visit_exprs(&mut |expr| {
        expr.visit_nodes(&mut |expr| {
            if let Some((subquery, kind)) = subquery_of(expr) {
                let is_beyond = || !beyond(plan, subquery).is_empty();
                if obstacle(&subquery.subquery, kind).is_some() || is_beyond() {
                    found = Some("in or beside a subquery of its own");
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })
    });
    debug_assert!(visited.is_ok(), "nothing fails here");
    found
}

/// Whether a condition says what a column of the subquery equals, as it is: casts make one value of several.
fn can_be_a_key(condition: &Expr, below: &DFSchema) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return false };
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(_));
    let are_alike = match (left.get_type(below), right.get_type(below)) {
        (Ok(left), Ok(right)) => left == right || left.is_integer() && right.is_integer(),
        _ => false,
    };
    are_alike && (is_column(left) && !right.any_column_refs() || is_column(right) && !left.any_column_refs())
}

pub(crate) fn is_grouping_set(expr: &Expr) -> bool {
    matches!(expr, Expr::GroupingSet(_))
}
