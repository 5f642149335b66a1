//! Keeps a rule of DataFusion's from dropping keys of ORDER BY.
//!
//! `EliminateDuplicatedExpr` drops sort keys that others determine, and believes that a key of one side of a join tells
//! which row of the other side it is: of `ORDER BY a.k, b.d` above a join only `a.k` would be left. Keys of GROUP BY that
//! are there twice it finds as it should, and later rules want them gone.

use datafusion::common::{Result, tree_node::Transformed};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The rules, with that one guarded.
pub(crate) fn guarded(rules: &[Arc<dyn OptimizerRule + Send + Sync>]) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let guard = |rule: &Arc<dyn OptimizerRule + Send + Sync>| match rule.name() {
        "eliminate_duplicated_expr" => Arc::new(NotInOrders(Arc::clone(rule))) as _,
        _ => Arc::clone(rule),
    };
    rules.iter().map(guard).collect()
}

/// A rule for all nodes but sorts.
#[derive(Debug)]
struct NotInOrders(Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for NotInOrders {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Sort(_) => Ok(Transformed::no(plan)),
            plan => self.0.rewrite(plan, config),
        }
    }
}
