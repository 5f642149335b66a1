//! Expressions that statements evaluate over rows that are in no table yet.

use crate::foreign::physical_expr;
use crate::{Error, Result};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use datafusion::common::DFSchema;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{EmptyRelation, LogicalPlan, Projection};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;

/// An expression over the columns of a schema, ready to be evaluated. It means what the same one means in a query, so all that
/// rewrites those has rewritten it.
#[derive(Debug)]
pub(super) struct RowExpr {
    schema: Arc<DFSchema>,
    expr: Arc<dyn PhysicalExpr>,
}

impl RowExpr {
    /// # Errors
    /// [`Error::Sql`]: it names other columns, or asks more than one row.
    pub(super) fn new(expr: ast::Expr, schema: &Arc<DFSchema>, state: &SessionState) -> Result<RowExpr> {
        let text = expr.to_string();
        let expr = state.create_logical_expr_from_sql_expr(ast::ExprWithAlias { expr, alias: None }, schema)?;
        let row = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: Arc::clone(schema) });
        let plan = LogicalPlan::Projection(Projection::try_new(vec![expr], Arc::new(row))?);
        let plan = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
        let expr = match plan {
            LogicalPlan::Projection(mut plan) if matches!(*plan.input, LogicalPlan::EmptyRelation(_)) => {
                plan.expr.pop()
            }
            _ => None,
        };
        let expr = expr.ok_or_else(|| Error::Sql(format!("({text}) asks more than one row of its table")))?;
        Ok(RowExpr { expr: physical_expr(expr, schema)?, schema: Arc::clone(schema) })
    }

    /// Its values over rows of the schema's columns. Text may come as it left the engine or as it was given.
    ///
    /// # Errors
    /// Those of the evaluation.
    pub(super) fn evaluate(&self, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let schema = Arc::clone(self.schema.inner());
        let columns = columns.iter().zip(schema.fields()).map(|(values, field)| cast(values, field.data_type()));
        let columns = columns.collect::<arrow::error::Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let typed = RecordBatch::try_new_with_options(schema, columns, &options)?;
        Ok(self.expr.evaluate(&typed)?.into_array(rows)?)
    }
}
