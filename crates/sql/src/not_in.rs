//! `x NOT IN (SELECT ...)` with rows in mind that are NULL, or that the subquery has for some outer rows only.
//!
//! DataFusion makes an anti join of it that knows of NULL where it has one key and the subquery knows nothing of the rows
//! around it. Everywhere else its answers are wrong, or none: keys of the correlation are taken for the value, and beside
//! an OR, NULL is taken for false. So those become EXISTS, which has no NULL:
//!
//! - Where only rows count for which it is true: no row `b` of the subquery for which `b = x` is true or NULL.
//! - Where its value counts: true if there is a row with `b = x`, else NULL if there is one for which that is NULL.
//!
//! That `b = x` is NULL is asked apart where the subquery knows nothing of the rows around it, so that joins have keys.
//!
//! Comparisons with ANY and ALL are the same with another operator: `= ANY` is IN, and `<> ALL` is NOT IN. All rows are less
//! than x where it is not true that any is not.
//!
//! A subquery that has one row in any case, such as a maximum, is compared with it, and EXISTS of it is true. The rule
//! rewrites filters, conditions of inner joins, and what is selected, grouped by or aggregated ([`crate::exists_as_value`]
//! goes on with that). What is ordered by is selected below, since DataFusion has no subquery in ORDER BY. IN that no join
//! can be made of becomes EXISTS, too ([`crate::dependent_join`] goes on with that).

use crate::correlation::{self, Kind, has, obstacle, outer_columns, subquery_of};
use crate::optimize::Contents;
use crate::scalar_subquery::has_a_row;
use crate::walk::{WalkPlan, WalkTree};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema, JoinType, Result, ScalarValue, not_impl_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Sort, Subquery, binary_expr,
    ident, lit, not, when,
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
        if !Contents::of(&plan)?.subqueries {
            return Ok(plan);
        }
        let plan = plan.rewrite_up_with_subqueries(&mut |plan| {
            let plan = match plan {
                LogicalPlan::Filter(filter) if has_subquery(&filter.predicate) => {
                    Transformed::yes(filtered(filter.predicate, filter.input)?)
                }
                LogicalPlan::Join(mut join) if join.filter.as_ref().is_some_and(has_subquery) => {
                    if join.join_type != JoinType::Inner {
                        return not_impl_err!(
                            "a subquery in the condition of an outer join; filter one of its sides instead"
                        );
                    }
                    match join.filter.take() {
                        Some(condition) => Transformed::yes(filtered(condition, Arc::new(LogicalPlan::Join(join)))?),
                        None => Transformed::no(LogicalPlan::Join(join)),
                    }
                }
                LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => with_values(plan)?,
                LogicalPlan::Sort(sort) if sort.expr.iter().any(|order| correlation::has_subquery(&order.expr)) => {
                    Transformed::yes(ordered_by_values(sort)?)
                }
                plan => Transformed::no(plan),
            };
            Ok(plan)
        });
        Ok(plan?.data)
    }
}

fn filtered(condition: Expr, input: Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let predicate = rewritten(condition, Place::Conjunct, input.schema())?;
    Ok(LogicalPlan::Filter(Filter::try_new(predicate, input)?))
}

/// The node with its expressions rewritten, under their names.
fn with_values(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(plan.inputs()[0].schema());
    let names = NamePreserver::new(&plan);
    let plan = plan.rewrite_exprs(&mut |expr| {
        if !has_subquery(&expr) {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        Ok(Transformed::yes(name.restore(rewritten(expr, Place::Value, &schema)?)))
    })?;
    if plan.transformed { plan.map_data(LogicalPlan::recompute_schema) } else { Ok(plan) }
}

/// The order, of columns that a projection below makes of what subqueries are in.
fn ordered_by_values(mut sort: Sort) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = sort.input.schema().iter().map(Expr::from).collect();
    sort.input = with_columns_around(&sort)?;
    let mut selected = columns.clone();
    for (number, order) in sort.expr.iter_mut().enumerate() {
        if correlation::has_subquery(&order.expr) {
            let name = format!("{ORDER}_{number}");
            selected.push(std::mem::replace(&mut order.expr, ident(&name)).alias(name));
        }
    }
    let below = with_values(LogicalPlan::Projection(Projection::try_new(selected, sort.input)?))?.data;
    sort.input = Arc::new(below);
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(LogicalPlan::Sort(sort)))?))
}

/// What is ordered, with the columns that these subqueries refer to, be they selected or not.
fn with_columns_around(sort: &Sort) -> Result<Arc<LogicalPlan>> {
    let LogicalPlan::Projection(projection) = sort.input.as_ref() else { return Ok(Arc::clone(&sort.input)) };
    let mut selected = projection.expr.clone();
    for order in &sort.expr {
        order.expr.visit_nodes(&mut |expr| {
            let outer = subquery_of(expr).map(|(subquery, _)| outer_columns(&subquery.subquery)).unwrap_or_default();
            for column in outer {
                let is_hidden = !has(&projection.schema, &column) && has(projection.input.schema(), &column);
                let column = Expr::Column(column);
                if is_hidden && !selected.contains(&column) {
                    selected.push(column);
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    let input = Arc::clone(&projection.input);
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(selected, input)?)))
}

/// Begins the names of values that rows are ordered by.
const ORDER: &str = "__sinter_order";

/// What the value of a subquery is called.
const VALUE: &str = "__sinter_value";

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

fn has_subquery(expr: &Expr) -> bool {
    expr.any(&mut |expr| Ok(matches!(expr, Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_))))
        .unwrap_or(true)
}

/// The expression over rows of this schema, without what DataFusion answers otherwise than SQL.
fn rewritten(expr: Expr, place: Place, schema: &DFSchema) -> Result<Expr> {
    if !has_subquery(&expr) {
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
            Expr::SetComparison(found) => compared_with_set(found, true, place, schema),
            Expr::Not(inner) => rewritten(*inner, place, schema),
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let op = if op == Operator::And { Operator::Or } else { Operator::And };
                rewritten(binary_expr(not(*left), op, not(*right)), place, schema)
            }
            inner => Ok(not(rewritten(inner, Place::Value, schema)?)),
        },
        Expr::InSubquery(found) => in_subquery(found, place, schema),
        Expr::SetComparison(found) => compared_with_set(found, false, place, schema),
        Expr::Exists(found) if has_a_row(&found.subquery.subquery) => Ok(lit(!found.negated)),
        expr => Ok(expr.map_children(|expr| Ok(Transformed::yes(rewritten(expr, Place::Value, schema)?)))?.data),
    }
}

fn in_subquery(found: InSubquery, place: Place, schema: &DFSchema) -> Result<Expr> {
    let is_correlated = !outer_columns(&found.subquery.subquery).is_empty();
    let is_plain = !is_correlated && !found.expr.column_refs().is_empty();
    let is_kept = match place {
        Place::Conjunct => !found.negated || is_plain,
        Place::Truth => !found.negated,
        Place::Value => false,
    };
    let has_a_row = has_a_row(&found.subquery.subquery);
    let is_kept = is_kept && obstacle(&found.subquery.subquery, Kind::In).is_none();
    if is_kept && !(has_a_row && is_correlated) {
        return Ok(Expr::InSubquery(found));
    }
    let any = Any { op: Operator::Eq, negated: found.negated };
    any.of(*found.expr, found.subquery, place, schema)
}

fn compared_with_set(found: SetComparison, negated: bool, place: Place, schema: &DFSchema) -> Result<Expr> {
    let SetComparison { expr, subquery, op, quantifier } = found;
    let is_all = quantifier == SetQuantifier::All;
    let negated = negated != is_all;
    match if is_all { op.negate() } else { Some(op) } {
        Some(Operator::Eq) => in_subquery(InSubquery { expr, subquery, negated }, place, schema),
        Some(op) => Any { op, negated }.of(*expr, subquery, place, schema),
        None => not_impl_err!("{op} ALL; ask NOT EXISTS for a row where it is not so"),
    }
}

/// Whether `x op b` holds for any row `b` of a subquery, or for none of them where it is negated.
#[derive(Clone, Copy)]
struct Any {
    op: Operator,
    negated: bool,
}

impl Any {
    fn of(self, x: Expr, subquery: Subquery, place: Place, schema: &DFSchema) -> Result<Expr> {
        let Any { op, negated } = self;
        if has_a_row(&subquery.subquery) {
            // Joins would have none where the row is of no rows.
            let compared = |op| binary_expr(x.clone(), op, Expr::ScalarSubquery(subquery.clone()));
            return Ok(match (negated, op.negate()) {
                (false, _) => compared(op),
                (true, Some(op)) => compared(op),
                (true, None) => not(compared(op)),
            });
        }
        if x.is_volatile() {
            return not_impl_err!(
                "a function such as random() before IN, ANY or ALL with a subquery; compute it in a subquery of FROM"
            );
        }
        let is_correlated = !outer_columns(&subquery.subquery).is_empty();
        let exists = |condition: &dyn Fn(Expr, Expr) -> Expr, negated| {
            let subquery = with_condition(&subquery, &x, condition, schema)?;
            Ok::<_, DataFusionError>(Expr::Exists(Exists { subquery, negated }))
        };
        let holds = |value: Expr, x: Expr| match op.swap() {
            Some(op) => binary_expr(value, op, x),
            None => binary_expr(x, op, value),
        };
        if !negated && place != Place::Value {
            return exists(&holds, false);
        }
        if is_correlated && place != Place::Value {
            return exists(&|value, x| holds(value, x).is_not_false(), true);
        }
        let is_any = exists(&holds, false)?;
        let is_unknown = match is_correlated {
            true => exists(&|value, x| holds(value, x).is_null(), false)?,
            false => {
                let is_there = Expr::Exists(Exists { subquery: subquery.clone(), negated: false });
                exists(&|value, _| value.is_null(), false)?.or(x.clone().is_null().and(is_there))
            }
        };
        if place != Place::Value {
            return Ok(not(is_any).and(not(is_unknown)));
        }
        when(is_any, lit(!negated)).when(is_unknown, lit(ScalarValue::Boolean(None))).otherwise(lit(negated))
    }
}

/// The rows of a subquery for which a condition on its value and x holds; x is of the rows around it.
fn with_condition(
    subquery: &Subquery,
    x: &Expr,
    condition: &dyn Fn(Expr, Expr) -> Expr,
    schema: &DFSchema,
) -> Result<Subquery> {
    let mut columns_of_x = Vec::new();
    let x = x.clone().rewrite_up(&mut |expr| match expr {
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            let outer = Expr::OuterReferenceColumn(field, column);
            columns_of_x.push(outer.clone());
            Ok(Transformed::new(outer, true, TreeNodeRecursion::Jump))
        }
        expr => Ok(Transformed::no(expr)),
    })?;
    // Under a name of its own: the same one may be among the rows around.
    let value = Expr::from(subquery.subquery.schema().qualified_field(0)).alias(VALUE);
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).project([value])?;
    let condition = condition(ident(VALUE), x.data);
    let mut outer_ref_columns = subquery.outer_ref_columns.clone();
    if condition.contains_outer() {
        outer_ref_columns.append(&mut columns_of_x);
    }
    let plan = plan.filter(condition)?.build()?;
    Ok(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: subquery.spans.clone() })
}
