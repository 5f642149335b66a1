//! `x NOT IN (SELECT ...)` with rows in mind that are NULL, or that the subquery has for some outer rows only.
//!
//! DataFusion makes an anti join of it that knows of NULL where it has one key and the subquery knows nothing of the rows
//! around it. Everywhere else its answers are wrong, or none: keys of the correlation are taken for the value, and beside
//! an OR, NULL is taken for false. So those become EXISTS, which has no NULL:
//!
//! - Where only rows count for which it is true: no row `b` of the subquery for which `b = x` is true or NULL.
//! - Where its value counts: true if there is a row with `b = x`, else NULL if there is one for which that is NULL.
//!
//! A subquery that has one row in any case, such as a maximum, is compared with it. The rule rewrites filters; in a list of SELECT, DataFusion has no IN with a subquery.

use crate::scalar_subquery::has_a_row;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{
    BinaryExpr, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, binary_expr, lit, not, when,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// The rule.
#[derive(Debug)]
pub(crate) struct NotIn;

impl AnalyzerRule for NotIn {
    fn name(&self) -> &str {
        "sinter_not_in"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Filter(filter) if has_in(&filter.predicate) => {
                let predicate = rewritten(filter.predicate, Place::Conjunct, filter.input.schema())?;
                Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
            }
            plan => Ok(Transformed::no(plan)),
        });
        Ok(plan?.data)
    }
}

/// What counts of an expression.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Whether it is true, for without it no row passes.
    Conjunct,
    /// Whether it is true.
    Truth,
    /// What it is.
    Value,
}

fn has_in(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(matches!(expr, Expr::InSubquery(_)))).unwrap_or(true)
}

/// The expression over rows of this schema, without what DataFusion answers otherwise than SQL.
fn rewritten(expr: Expr, place: Place, schema: &DFSchema) -> Result<Expr> {
    if !has_in(&expr) {
        return Ok(expr);
    }
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let place = if op == Operator::Or && place == Place::Conjunct { Place::Truth } else { place };
            Ok(binary_expr(rewritten(*left, place, schema)?, op, rewritten(*right, place, schema)?))
        }
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(found) => {
                rewritten(Expr::InSubquery(InSubquery { negated: !found.negated, ..found }), place, schema)
            }
            Expr::Not(inner) => rewritten(*inner, place, schema),
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let op = if op == Operator::And { Operator::Or } else { Operator::And };
                rewritten(binary_expr(not(*left), op, not(*right)), place, schema)
            }
            inner => Ok(not(rewritten(inner, Place::Value, schema)?)),
        },
        Expr::InSubquery(found) => in_subquery(found, place, schema),
        expr => Ok(expr.map_children(|expr| Ok(Transformed::yes(rewritten(expr, Place::Value, schema)?)))?.data),
    }
}

fn in_subquery(found: InSubquery, place: Place, schema: &DFSchema) -> Result<Expr> {
    let is_plain = found.subquery.outer_ref_columns.is_empty() && !found.expr.column_refs().is_empty();
    let is_kept = match place {
        Place::Conjunct => !found.negated || is_plain,
        Place::Truth => !found.negated,
        Place::Value => false,
    };
    if is_kept {
        return Ok(Expr::InSubquery(found));
    }
    let InSubquery { expr, subquery, negated } = found;
    if has_a_row(&subquery.subquery) {
        // Joins would have none where the row is of no rows.
        let op = if negated { Operator::NotEq } else { Operator::Eq };
        return Ok(binary_expr(*expr, op, Expr::ScalarSubquery(subquery)));
    }
    let exists = |of_equality: fn(Expr) -> Expr, negated| {
        let subquery = with_condition(&subquery, &expr, of_equality, schema)?;
        Ok::<_, datafusion::error::DataFusionError>(Expr::Exists(Exists { subquery, negated }))
    };
    if place != Place::Value {
        return exists(Expr::is_not_false, true);
    }
    let is_in = when(exists(|equality| equality, false)?, lit(!negated))
        .when(exists(Expr::is_null, false)?, lit(ScalarValue::Boolean(None)))
        .otherwise(lit(negated))?;
    Ok(is_in)
}

/// The rows of a subquery for which what is made of `value = x` holds; x is of the rows around it.
fn with_condition(subquery: &Subquery, x: &Expr, of_equality: fn(Expr) -> Expr, schema: &DFSchema) -> Result<Subquery> {
    let mut outer_ref_columns = subquery.outer_ref_columns.clone();
    let x = x.clone().transform(|expr| match expr {
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            let outer = Expr::OuterReferenceColumn(field, column);
            outer_ref_columns.push(outer.clone());
            Ok(Transformed::new(outer, true, TreeNodeRecursion::Jump))
        }
        expr => Ok(Transformed::no(expr)),
    })?;
    let value = Expr::from(subquery.subquery.schema().qualified_field(0));
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
    let plan = plan.filter(of_equality(value.eq(x.data)))?.build()?;
    Ok(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: subquery.spans.clone() })
}
