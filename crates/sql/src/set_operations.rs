//! INTERSECT ALL and EXCEPT ALL count rows.
//!
//! DataFusion makes semi and anti joins of them, which keep or drop all copies of a row together: of three copies less one,
//! `EXCEPT ALL` would leave none. So copies are numbered on both sides, and a copy meets the one of its number: of `m`
//! copies and `n` others, the joins then leave the lesser of the two, and `m - n`.

use crate::optimize::Contents;
use crate::walk::WalkPlan;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// The columns with the numbers of copies.
const OUR_COPY: &str = "number of the copy";
const THEIR_COPY: &str = "number of the other copy";

/// The rule.
#[derive(Debug)]
pub(crate) struct CopiesCount;

impl AnalyzerRule for CopiesCount {
    fn name(&self) -> &str {
        "sinter_copies_count"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !Contents::of(&plan)?.joins {
            return Ok(plan);
        }
        let plan = plan.rewrite_up_with_subqueries(&mut |plan| match plan {
            LogicalPlan::Join(join) if is_of_all(&join) => Ok(Transformed::yes(counted(join)?)),
            plan => Ok(Transformed::no(plan)),
        });
        Ok(plan?.data)
    }
}

/// Whether this is a set operation with ALL: before plans are optimised, nothing else joins so. Without ALL, rows of the left
/// side are distinct.
fn is_of_all(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && join.on.len() == join.left.schema().fields().len()
        && !matches!(*join.left, LogicalPlan::Distinct(_))
}

fn counted(join: Join) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = join.left.schema().iter().map(Expr::from).collect();
    let left = with_copies(Arc::unwrap_or_clone(join.left), OUR_COPY)?;
    let right = with_copies(Arc::unwrap_or_clone(join.right), THEIR_COPY)?;
    let copies = (Expr::Column(Column::from_name(OUR_COPY)), Expr::Column(Column::from_name(THEIR_COPY)));
    let on = join.on.into_iter().chain([copies]).collect();
    let (kind, constraint, nulls) = (join.join_type, join.join_constraint, join.null_equality);
    let join = Join::try_new(Arc::new(left), Arc::new(right), on, None, kind, constraint, nulls, false)?;
    LogicalPlanBuilder::from(LogicalPlan::Join(join)).project(columns)?.build()
}

/// The rows, with the number that each has among its equals.
fn with_copies(plan: LogicalPlan, name: &str) -> Result<LogicalPlan> {
    let mut columns: Vec<Expr> = plan.schema().iter().map(Expr::from).collect();
    let number = row_number().partition_by(columns.clone()).build()?;
    columns.push(Expr::Column(Column::from_name(number.schema_name().to_string())).alias(name));
    LogicalPlanBuilder::from(plan).window([number])?.project(columns)?.build()
}
