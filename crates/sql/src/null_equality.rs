//! Keeps a rule of DataFusion's from giving one join's idea of NULL to its neighbours.
//!
//! `EliminateCrossJoin` takes trees of inner joins apart and makes all joins of them as their topmost one was: beside
//! `a = b`, `c IS NOT DISTINCT FROM d` would become `c = d`, or the other way round. Plans in which inner joins differ in
//! this go by without it.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinType, NullEquality, Result, tree_node::Transformed};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The rules, with that one guarded.
pub(crate) fn guarded(rules: &[Arc<dyn OptimizerRule + Send + Sync>]) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let guard = |rule: &Arc<dyn OptimizerRule + Send + Sync>| match rule.name() {
        "eliminate_cross_join" => Arc::new(WhereNullsAreEqual(Arc::clone(rule))) as _,
        _ => Arc::clone(rule),
    };
    rules.iter().map(guard).collect()
}

/// A rule for plans whose inner joins agree about NULL.
#[derive(Debug)]
struct WhereNullsAreEqual(Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for WhereNullsAreEqual {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if agrees(&plan)? { self.0.rewrite(plan, config) } else { Ok(Transformed::no(plan)) }
    }
}

fn agrees(plan: &LogicalPlan) -> Result<bool> {
    let (mut equal, mut unequal) = (false, false);
    plan.apply_with_subqueries(|plan| {
        if let LogicalPlan::Join(join) = plan
            && join.join_type == JoinType::Inner
        {
            match join.null_equality {
                NullEquality::NullEqualsNull => equal = true,
                NullEquality::NullEqualsNothing => unequal = true,
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(!(equal && unequal))
}
