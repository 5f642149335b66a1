//! -0.0 is 0.0 also in what DataFusion compares.
//!
//! Its operators of comparison, its groups and its hash joins take one for the other; its sorts, NULLIF, CASE of a value and
//! IN of constants compare floats in the total order of their bits, by which -0.0 is less than 0.0. So floats there get
//! `+ 0.0`, which makes 0.0 of -0.0 and changes nothing else: in what is left of a plan when our engine has taken its part, and
//! in expressions that DataFusion evaluates within that part. The order within its aggregates and window functions stays as it
//! is, and so does what it computes of constants while it plans. Our engine compares so by itself.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};

/// A plan for DataFusion's operators; names stay.
///
/// # Errors
/// None of its own; DataFusion's tree walk wants to be able to fail.
pub(crate) fn with_one_zero(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|plan| {
        let are_keys = matches!(plan, LogicalPlan::Sort(_));
        // Filters of scans are ours.
        if matches!(plan, LogicalPlan::TableScan(_)) || !(are_keys || has_such(&plan)?) {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let mut expr = expr_with_one_zero(expr, &schema)?;
            expr.transformed |= are_keys && add_zero(&mut expr.data, &schema);
            Ok(if expr.transformed { expr.update_data(|expr| name.restore(expr)) } else { expr })
        })
    });
    Ok(plan?.data)
}

/// An expression for DataFusion's evaluation over rows of this schema.
///
/// # Errors
/// As [`with_one_zero`].
pub(crate) fn expr_with_one_zero(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if matches!(expr, Expr::GroupingSet(_)) {
        // The keys in it have no names of their own that could stay.
        return Ok(Transformed::no(expr));
    }
    expr.transform_up(|mut expr| {
        let mut changed = false;
        for compared in compared(&mut expr) {
            changed |= add_zero(compared, schema);
        }
        Ok(Transformed::new_transformed(expr, changed))
    })
}

/// What DataFusion compares by bits within an expression.
fn compared(expr: &mut Expr) -> Vec<&mut Expr> {
    match expr {
        Expr::InList(list) => std::iter::once(list.expr.as_mut()).chain(&mut list.list).collect(),
        Expr::Case(case) => match &mut case.expr {
            Some(subject) => {
                let whens = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                std::iter::once(subject.as_mut()).chain(whens).collect()
            }
            None => Vec::new(),
        },
        Expr::ScalarFunction(call) if call.name() == "nullif" => call.args.iter_mut().collect(),
        _ => Vec::new(),
    }
}

fn has_such(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found = found
            || expr.exists(|expr| {
                Ok(match expr {
                    Expr::InList(_) => true,
                    Expr::Case(case) => case.expr.is_some(),
                    Expr::ScalarFunction(call) => call.name() == "nullif",
                    _ => false,
                })
            })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Makes 0.0 of -0.0 where the expression has floats; true where it has.
fn add_zero(expr: &mut Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(value)), _) => *value += 0.0,
        Expr::Literal(ScalarValue::Float32(Some(value)), _) => *value += 0.0,
        _ => {
            let zero = match expr.get_type(schema) {
                Ok(DataType::Float64) => ScalarValue::Float64(Some(0.0)),
                Ok(DataType::Float32) => ScalarValue::Float32(Some(0.0)),
                _ => return false,
            };
            let (left, right) = (Box::new(std::mem::take(expr)), Box::new(Expr::Literal(zero, None)));
            *expr = Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus, right });
        }
    }
    true
}
