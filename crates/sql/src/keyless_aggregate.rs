//! Keeps a rule of DataFusion's from asking a condition too early: an aggregate without keys makes one row of none, too.
//!
//! `PushDownFilter` asks what names nothing but keys of a GROUP BY of the rows that are grouped, and what names no column at
//! all, such as `(SELECT min(a) FROM t) = 3`, names nothing but keys. Without keys the aggregate would then have its row
//! although the condition is not true. There the rule is left out, since it could move nothing else.

use datafusion::common::{Result, tree_node::Transformed};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The rules, with that one guarded.
pub(crate) fn guarded(rules: &[Arc<dyn OptimizerRule + Send + Sync>]) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let guard = |rule: &Arc<dyn OptimizerRule + Send + Sync>| match rule.name() {
        "push_down_filter" => Arc::new(WhereThereAreKeys(Arc::clone(rule))) as _,
        _ => Arc::clone(rule),
    };
    rules.iter().map(guard).collect()
}

/// A rule for all but filters above aggregates without keys.
#[derive(Debug)]
struct WhereThereAreKeys(Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for WhereThereAreKeys {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Filter(filter) if makes_one_row(&filter.input) => Ok(Transformed::no(plan)),
            _ => self.0.rewrite(plan, config),
        }
    }
}

/// Whether a plan is an aggregate that may make a row of none; the rule makes one filter of several before it goes on.
fn makes_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Filter(filter) => makes_one_row(&filter.input),
        // One of the sets may be the empty one; what names their keys is not moved anyway.
        LogicalPlan::Aggregate(aggregate) => {
            aggregate.group_expr.iter().all(|expr| matches!(expr, Expr::GroupingSet(_)))
        }
        _ => false,
    }
}
