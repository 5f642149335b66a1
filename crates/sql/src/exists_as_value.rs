//! EXISTS where it is no condition: in a list of SELECT, or as what is grouped by or aggregated.
//!
//! DataFusion makes joins of EXISTS in filters alone. So what a list asks for is put into a filter that asks whether each is
//! not NULL; of that it makes joins that mark the rows, and the list takes the marks. IN has become EXISTS before
//! ([`crate::not_in`]).

use crate::walk::{WalkPlan, WalkTree};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The rule of DataFusion that makes joins of conditions.
pub(crate) const DECORRELATE: &str = "decorrelate_predicate_subquery";

/// That rule, for values as well.
#[derive(Debug)]
pub(crate) struct ExistsAsValue {
    pub(crate) of_conditions: Arc<dyn OptimizerRule + Send + Sync>,
}

impl OptimizerRule for ExistsAsValue {
    fn name(&self) -> &str {
        self.of_conditions.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.of_conditions.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => {
                let asked = asked(&plan)?;
                if asked.is_empty() { Ok(Transformed::no(plan)) } else { self.marked(plan, &asked, config) }
            }
            _ => self.of_conditions.rewrite(plan, config),
        }
    }
}

/// The different EXISTS in the expressions of a node.
fn asked(plan: &LogicalPlan) -> Result<Vec<Expr>> {
    let mut asked = Vec::new();
    plan.visit_exprs(&mut |expr| {
        expr.visit_nodes(&mut |expr| {
            if !matches!(expr, Expr::Exists(_)) {
                return Ok(TreeNodeRecursion::Continue);
            }
            if !asked.contains(expr) {
                asked.push(expr.clone());
            }
            Ok(TreeNodeRecursion::Jump)
        })
    })?;
    Ok(asked)
}

impl ExistsAsValue {
    /// The node over joins that mark its rows. What there is no join for stays as it is.
    fn marked(
        &self,
        plan: LogicalPlan,
        asked: &[Expr],
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let input = Arc::new(plan.inputs()[0].clone());
        let conditions = asked.iter().map(|exists| exists.clone().is_not_null());
        let condition = conjunction(conditions).ok_or_else(|| internal_datafusion_err!("nothing is asked for"))?;
        let filter = LogicalPlan::Filter(Filter::try_new(condition, input)?);
        let joined = match self.of_conditions.rewrite(filter, config)?.data {
            // It hides the marks.
            LogicalPlan::Projection(projection) => Arc::unwrap_or_clone(projection.input),
            joined => joined,
        };
        let LogicalPlan::Filter(Filter { predicate, input, .. }) = joined else {
            return internal_err!("the conditions on marks are gone");
        };
        let marks: Vec<Expr> = split_conjunction_owned(predicate)
            .into_iter()
            .map(|condition| match condition {
                Expr::IsNotNull(mark) => Ok(*mark),
                other => internal_err!("{other} is no condition on a mark"),
            })
            .collect::<Result<_>>()?;
        if marks.len() != asked.len() {
            return internal_err!("there are {} marks for {} of EXISTS", marks.len(), asked.len());
        }
        if marks == asked {
            return Ok(Transformed::no(plan));
        }
        let columns = plan.schema().columns();
        let names = NamePreserver::new(&plan);
        let plan = plan.rewrite_exprs(&mut |expr| {
            let name = names.save(&expr);
            let taken = expr.rewrite_down(&mut |expr| match asked.iter().position(|asked| *asked == expr) {
                Some(index) => Ok(Transformed::new(marks[index].clone(), true, TreeNodeRecursion::Jump)),
                None => Ok(Transformed::no(expr)),
            })?;
            Ok(taken.update_data(|expr| name.restore(expr)))
        })?;
        let plan = plan.data.with_new_exprs(plan.data.expressions(), vec![Arc::unwrap_or_clone(input)])?;
        let shows_marks = plan.schema().fields().len() > columns.len();
        let plan = match shows_marks {
            true => LogicalPlanBuilder::from(plan).project(columns.into_iter().map(Expr::from))?.build()?,
            false => plan,
        };
        Ok(Transformed::yes(plan))
    }
}
