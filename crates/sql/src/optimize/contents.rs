//! What kinds of nodes and expressions a plan has, so that rules about others are left out.

use crate::walk::{WalkPlan, WalkTree};
use datafusion::common::cse::NormalizeEq;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::expr::{Alias, Exists, InSubquery, SetComparison, WindowFunction};
use datafusion::logical_expr::{Expr, ExpressionPlacement, LogicalPlan, Operator, Window};

/// What there is in a plan, its subqueries included.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Contents {
    pub(super) aggregates: bool,
    /// `+`, `-`, `*` or `/`, or a negation.
    pub(crate) arithmetic: bool,
    /// Inner joins without keys, or with conditions on top that may hold some.
    pub(super) cross_joins: bool,
    pub(super) distincts: bool,
    pub(super) empties: bool,
    pub(super) filters: bool,
    pub(crate) joins: bool,
    /// Subqueries of FROM that see the rows of others.
    pub(crate) laterals: bool,
    pub(super) limits: bool,
    pub(super) outer_joins: bool,
    pub(super) unions: bool,
    /// Subqueries in expressions, of all kinds.
    pub(crate) subqueries: bool,
    /// Comparisons with ANY or ALL.
    pub(super) set_comparisons: bool,
    /// Functions that take a value apart, such as a field out of a struct.
    pub(super) parts_of_values: bool,
    /// Window functions that are one for DataFusion's search for common expressions, see [`has_twins`].
    pub(super) window_twins: bool,
}

impl Contents {
    /// # Errors
    /// None of its own; DataFusion's tree walk wants to be able to fail.
    pub(crate) fn of(plan: &LogicalPlan) -> Result<Contents> {
        let mut contents = Contents::default();
        contents.add(plan)?;
        Ok(contents)
    }

    fn add(&mut self, plan: &LogicalPlan) -> Result<()> {
        plan.visit_nodes(&mut |node| {
            self.add_node(node);
            node.visit_exprs(&mut |expr| {
                expr.visit_nodes(&mut |expr| {
                    self.add_expr(expr)?;
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(())
    }

    fn add_node(&mut self, node: &LogicalPlan) {
        match node {
            LogicalPlan::Aggregate(_) => self.aggregates = true,
            LogicalPlan::Distinct(_) => self.distincts = true,
            LogicalPlan::EmptyRelation(_) => self.empties = true,
            LogicalPlan::Filter(filter) => {
                self.filters = true;
                self.cross_joins |= is_inner(&filter.input);
            }
            LogicalPlan::Join(join) => {
                self.joins = true;
                self.cross_joins |= is_inner(node) && join.on.is_empty();
                self.outer_joins |= matches!(join.join_type, JoinType::Left | JoinType::Right | JoinType::Full);
            }
            LogicalPlan::Limit(_) => self.limits = true,
            LogicalPlan::Subquery(_) => self.laterals = true,
            LogicalPlan::Union(_) => self.unions = true,
            LogicalPlan::Window(window) => self.window_twins |= has_twins(window),
            _ => {}
        }
    }

    fn add_expr(&mut self, expr: &Expr) -> Result<()> {
        match expr {
            Expr::Exists(Exists { subquery, .. })
            | Expr::InSubquery(InSubquery { subquery, .. })
            | Expr::SetComparison(SetComparison { subquery, .. })
            | Expr::ScalarSubquery(subquery) => {
                self.subqueries = true;
                self.set_comparisons |= matches!(expr, Expr::SetComparison(_));
                self.add(&subquery.subquery)
            }
            Expr::BinaryExpr(binary) => {
                self.arithmetic |=
                    matches!(binary.op, Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide);
                Ok(())
            }
            Expr::Negative(_) => {
                self.arithmetic = true;
                Ok(())
            }
            Expr::ScalarFunction(_) => {
                self.parts_of_values |= expr.placement() == ExpressionPlacement::MoveTowardsLeafNodes;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn is_inner(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Join(join) if join.join_type == JoinType::Inner)
}

/// Whether DataFusion may take one of a node's window functions for another, of that node or of those right below.
///
/// What it finds to be common, it computes in a projection below all of them, where no window function can be. Some are
/// common, as `sum(a + b)` and `sum(b + a)`; others only seem so, for it compares keys one after another, and not where
/// PARTITION BY ends.
fn has_twins(window: &Window) -> bool {
    let mut functions: Vec<_> = window.window_expr.iter().map(function).collect();
    let mut below = window.input.as_ref();
    while let LogicalPlan::Window(window) = below {
        functions.extend(window.window_expr.iter().map(function));
        below = window.input.as_ref();
    }
    let here = window.window_expr.len();
    (0..here).any(|place| functions[place + 1..].iter().any(|other| are_twins(functions[place], other)))
}

fn function(expr: &Expr) -> &Expr {
    if let Expr::Alias(Alias { expr, .. }) = expr { expr } else { expr }
}

fn are_twins(a: &Expr, b: &Expr) -> bool {
    let keys = |expr: &Expr| match expr {
        Expr::WindowFunction(call) => {
            let WindowFunction { params, .. } = call.as_ref();
            params.partition_by.len() + params.order_by.len()
        }
        _ => 0,
    };
    keys(a) == keys(b) && a.normalize_eq(b)
}
