//! Floats in what DataFusion compares: -0.0 is 0.0, and NaN is above all others, whatever its sign.
//!
//! Its operators of comparison, its groups and its hash joins take one zero for the other; its sorts, also those of aggregates
//! and window functions, NULLIF, CASE of a value and IN of constants compare floats in the total order of their bits, by which
//! -0.0 is less than 0.0, and NaN below all others where it has a sign, as that of an infinity less another. So floats there
//! become [`one_float`]s: in what is left of a plan when our engine has taken its part, and in expressions that DataFusion
//! evaluates within that part. What it computes of constants while it plans stays as it is. Its [`extreme`]s by group are
//! others than those without groups where there is NaN. Our engine compares so by itself.

mod extreme;
mod one_float;

pub(crate) use one_float::{make_one_zero, one_floats};

use crate::walk::{WalkPlan, WalkTree};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use one_float::make_one_float;

/// A plan for DataFusion's operators; names stay.
///
/// # Errors
/// None of its own; DataFusion's tree walk wants to be able to fail.
pub(crate) fn with_one_zero(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.rewrite_up_with_subqueries(&mut |plan| {
        let are_keys = matches!(plan, LogicalPlan::Sort(_));
        // Filters of scans are ours.
        if matches!(plan, LogicalPlan::TableScan(_)) || !(are_keys || has_such(&plan)?) {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        plan.rewrite_exprs(&mut |expr| {
            let name = names.save(&expr);
            let mut expr = expr_with_one_zero(expr, &schema)?;
            expr.transformed |= are_keys && make_one_float(&mut expr.data, &schema);
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
    expr.rewrite_up(&mut |mut expr| {
        let mut changed = extreme::set_apart(&mut expr, schema);
        for compared in compared(&mut expr) {
            changed |= make_one_float(compared, schema);
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
        Expr::AggregateFunction(call) => {
            let compares = compares_arguments(call.func.name(), call.params.distinct);
            let arguments = if compares { call.params.args.as_mut_slice() } else { &mut [] };
            arguments.iter_mut().chain(call.params.order_by.iter_mut().map(|order| &mut order.expr)).collect()
        }
        Expr::WindowFunction(call) => {
            let params = &mut call.params;
            params.partition_by.iter_mut().chain(params.order_by.iter_mut().map(|order| &mut order.expr)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether an aggregate compares its arguments with each other. `min` and `max` do, too, but -0.0 is to come out of them.
pub(crate) fn compares_arguments(function: &str, is_distinct: bool) -> bool {
    const COMPARING: [&str; 6] = [
        "median",
        "percentile_cont",
        "approx_median",
        "approx_percentile_cont",
        "approx_percentile_cont_with_weight",
        "approx_distinct",
    ];
    is_distinct || COMPARING.contains(&function)
}

fn has_such(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.visit_exprs(&mut |expr| {
        found = found
            || expr.any(&mut |expr| {
                Ok(match expr {
                    Expr::InList(_) | Expr::AggregateFunction(_) | Expr::WindowFunction(_) => true,
                    Expr::Case(case) => case.expr.is_some(),
                    Expr::ScalarFunction(call) => call.name() == "nullif",
                    _ => false,
                })
            })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
