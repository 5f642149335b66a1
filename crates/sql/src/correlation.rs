//! Correlated subqueries that DataFusion would answer wrongly are refused.
//!
//! It makes joins of them, for which conditions on the rows around a subquery move to its top. Some nodes have other rows
//! when a condition below them is gone: these conditions must stay, and there is no plan for that.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, not_impl_err};
use datafusion::logical_expr::{Expr, FetchType, LogicalPlan, SkipType};

/// # Errors
/// [`datafusion::error::DataFusionError::NotImplemented`] where a subquery among the expressions of `plan` is such a one.
pub(crate) fn check(plan: &LogicalPlan) -> Result<()> {
    plan.apply_expressions(|expr| {
        expr.apply(|expr| {
            let (subquery, is_scalar) = match expr {
                Expr::ScalarSubquery(subquery) => (subquery, true),
                Expr::Exists(exists) => (&exists.subquery, false),
                Expr::InSubquery(found) => (&found.subquery, false),
                _ => return Ok(TreeNodeRecursion::Continue),
            };
            if let Some(place) = obstacle(&subquery.subquery, is_scalar) {
                return not_impl_err!(
                    "a subquery that refers to the rows around it {place}; join with the subquery instead"
                );
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

/// What a condition on the rows around a subquery cannot move out of.
fn obstacle(plan: &LogicalPlan, is_scalar: bool) -> Option<&'static str> {
    if plan.all_out_ref_exprs().is_empty() {
        return None;
    }
    let is_correlated = |plan: &LogicalPlan| !plan.all_out_ref_exprs().is_empty();
    let found = match plan {
        LogicalPlan::Window(_) => Some("below a window function"),
        LogicalPlan::Limit(limit) => {
            let skips = !matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)));
            // One row is as good as any where it only matters that there is one.
            let is_empty = matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(0))));
            (skips || is_empty).then_some("below OFFSET")
        }
        LogicalPlan::Join(join) => {
            let (left, right) = (is_correlated(&join.left), is_correlated(&join.right));
            let in_condition = join.filter.iter().any(Expr::contains_outer);
            let is_lost = match join.join_type {
                JoinType::Inner => false,
                JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => right || in_condition,
                JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                    left || in_condition
                }
                JoinType::Full => true,
            };
            is_lost.then_some("within an outer join")
        }
        // Without rows it has one all the same, which a join does not.
        LogicalPlan::Aggregate(aggregate) if !is_scalar && aggregate.group_expr.iter().all(is_grouping_set) => {
            Some("below an aggregate without keys")
        }
        _ => None,
    };
    found.or_else(|| plan.inputs().into_iter().find_map(|input| obstacle(input, is_scalar)))
}

fn is_grouping_set(expr: &Expr) -> bool {
    matches!(expr, Expr::GroupingSet(_))
}
