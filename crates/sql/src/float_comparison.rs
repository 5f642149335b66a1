//! Comparisons of floats with decimals, made in floats.
//!
//! `0.5` is an exact decimal here, and DataFusion compares a float with a decimal as two decimals: `f > 0.5` would fail
//! at the first value beyond 10^15, at infinity and at NaN, and no block could be asked in its encoded form. As in
//! PostgreSQL and DuckDB the decimal becomes a float instead, of the same width. Runs before DataFusion's coercion.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, cast};
use datafusion::optimizer::AnalyzerRule;

/// The rule.
#[derive(Debug)]
pub(crate) struct CompareAsFloats;

impl AnalyzerRule for CompareAsFloats {
    fn name(&self) -> &str {
        "compare_as_floats"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let expr = expr.transform_up(|expr| Ok(compared_as_floats(expr, &schema)))?;
                Ok(expr.update_data(|expr| name.restore(expr)))
            })
        });
        Ok(plan?.data)
    }
}

fn compared_as_floats(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let mut compared: Vec<&mut Expr> = match &mut expr {
        Expr::BinaryExpr(binary) if binary.op.supports_propagation() => vec![&mut binary.left, &mut binary.right],
        Expr::Between(between) => vec![&mut between.expr, &mut between.low, &mut between.high],
        Expr::InList(list) => std::iter::once(list.expr.as_mut()).chain(&mut list.list).collect(),
        _ => return Transformed::no(expr),
    };
    let types: Vec<Option<DataType>> = compared.iter().map(|expr| expr.get_type(schema).ok()).collect();
    let float = types.iter().flatten().find(|ty| matches!(ty, DataType::Float32 | DataType::Float64));
    let Some(float) = float else { return Transformed::no(expr) };
    let mut changed = false;
    for (expr, ty) in compared.iter_mut().zip(&types) {
        if ty.as_ref().is_some_and(DataType::is_decimal) {
            **expr = cast(std::mem::take(*expr), float.clone());
            changed = true;
        }
    }
    Transformed::new_transformed(expr, changed)
}
