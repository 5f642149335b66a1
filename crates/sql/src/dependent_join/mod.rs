//! Subqueries about the rows around them that DataFusion makes no join of, or one with other rows.
//!
//! DataFusion moves conditions on the rows around a subquery to its top, where they become those of a join. Where they
//! cannot move ([`correlation`] knows), the subquery is worked out once for all rows around it instead, as T. Neumann and
//! A. Kemper describe in *Unnesting Arbitrary Queries* (BTW 2015): its [`Domain`], the different values that it is asked
//! about, is joined with what it reads, and comes out of it as columns beside its own, by which the rows around are
//! joined with it. NULLs equal each other there.
//!
//! A node gets columns for its subqueries from such joins below it, and a projection above that hides them; subqueries
//! of FROM that see the rows before them (LATERAL) are one side of such a join. Runs when copies of set operations are
//! numbered ([`crate::set_operations`]), IN, ANY and ALL have become EXISTS ([`crate::not_in`]), and subqueries for one
//! value are of one row ([`crate::only_row`]).

mod domain;
mod source;
mod steady;

use crate::correlation::{self, Kind, has_subquery, lateral, obstacle, subquery_of};
use crate::optimize::Contents;
use crate::scalar_subquery::has_a_row;
use crate::walk::{WalkPlan, WalkTree};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Distinct, Expr, FetchType, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection, SkipType, Subquery, lit,
};
use datafusion::optimizer::AnalyzerRule;
use domain::{Domain, column};
use std::sync::Arc;

/// Begins the names of columns that only plans see.
const NAME: &str = "__sinter_dependent";

/// The rule.
#[derive(Debug)]
pub(crate) struct DependentJoins;

impl AnalyzerRule for DependentJoins {
    fn name(&self) -> &str {
        "sinter_dependent_joins"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let contents = Contents::of(&plan)?;
        if !contents.subqueries && !contents.laterals {
            return Ok(plan);
        }
        let mut number = 0;
        // From the top: a subquery within a subquery may refer to rows around both.
        let plan = plan.rewrite_down_with_subqueries(&mut |plan| {
            let plan = match plan {
                LogicalPlan::Join(join) if lateral(&join).is_some() => joined_laterally(join, &mut number)?,
                plan => joined(plan, &mut number)?,
            };
            correlation::check(&plan.data)?;
            Ok(plan)
        });
        Ok(plan?.data)
    }
}

/// A node over joins with those of its subqueries that want it. What there is no join for stays as it is.
fn joined(plan: LogicalPlan, number: &mut usize) -> Result<Transformed<LogicalPlan>> {
    let asked = asked(&plan)?;
    if asked.is_empty() {
        return Ok(Transformed::no(plan));
    }
    let columns: Vec<Expr> = plan.schema().iter().map(Expr::from).collect();
    let plan = match plan {
        // The order is kept in a place of its own, and does not survive that expressions change.
        LogicalPlan::Distinct(Distinct::On(_)) => return Ok(Transformed::no(plan)),
        LogicalPlan::Filter(filter) => with_others_below(filter)?,
        LogicalPlan::Join(mut join) if join.join_type == JoinType::Inner => match join.filter.take() {
            Some(condition) => with_others_below(Filter::try_new(condition, Arc::new(LogicalPlan::Join(join)))?)?,
            None => return Ok(Transformed::no(LogicalPlan::Join(join))),
        },
        plan => plan,
    };
    let around = match &plan.inputs()[..] {
        [input] => (*input).clone(),
        _ => return Ok(Transformed::no(plan)),
    };
    let mut input = around.clone();
    let mut values: Vec<(Expr, Expr)> = Vec::new();
    for expr in asked {
        *number += 1;
        if let Some(found) = Found::of(&expr, &around, &format!("{NAME}_{number}"))? {
            if let Some((domain, rows)) = found.joined {
                input = domain.joined(input, rows, JoinType::Left, None)?;
            }
            values.push((expr, found.value));
        }
    }
    if values.is_empty() {
        return Ok(Transformed::no(plan));
    }
    let names = NamePreserver::new(&plan);
    let plan = plan.rewrite_exprs(&mut |expr| {
        let name = names.save(&expr);
        let expr = expr.rewrite_down(&mut |expr| match values.iter().find(|(asked, _)| *asked == expr) {
            Some((_, value)) => Ok(Transformed::new(value.clone(), true, TreeNodeRecursion::Jump)),
            None => Ok(Transformed::no(expr)),
        })?;
        Ok(expr.update_data(|expr| name.restore(expr)))
    })?;
    let mut plan = plan.data.with_new_exprs(plan.data.expressions(), vec![input])?;
    if plan.schema().fields().len() > columns.len() {
        plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?);
    }
    Ok(Transformed::yes(plan))
}

/// A filter with those of its conditions in a filter below that ask no subquery: fewer rows are left to be asked about.
fn with_others_below(filter: Filter) -> Result<LogicalPlan> {
    let asks = |expr: &Expr| expr.is_volatile() || has_subquery(expr);
    let (above, below): (Vec<_>, Vec<_>) = split_conjunction_owned(filter.predicate).into_iter().partition(asks);
    let input = match conjunction(below) {
        Some(below) => Arc::new(LogicalPlan::Filter(Filter::try_new(below, filter.input)?)),
        None => filter.input,
    };
    let above = conjunction(above).unwrap_or_else(|| lit(true));
    Ok(LogicalPlan::Filter(Filter::try_new(above, input)?))
}

/// The different subqueries in the expressions of a node that want such a join.
fn asked(plan: &LogicalPlan) -> Result<Vec<Expr>> {
    let mut asked = Vec::new();
    plan.visit_exprs(&mut |expr| {
        expr.visit_nodes(&mut |expr| {
            let is_wanted = |(subquery, kind): (&Subquery, Kind)| obstacle(&subquery.subquery, kind).is_some();
            if subquery_of(expr).is_some_and(is_wanted) && !asked.contains(expr) {
                asked.push(expr.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(asked)
}

/// What comes out of a subquery.
struct Found {
    /// What the rows around are joined with, if they are.
    joined: Option<(Domain, LogicalPlan)>,
    /// Over the rows around, joined with these.
    value: Expr,
}

impl Found {
    /// `None` where it stays as it is.
    fn of(expr: &Expr, around: &LogicalPlan, name: &str) -> Result<Option<Found>> {
        let (plan, is_exists) = match expr {
            Expr::ScalarSubquery(subquery) if has_one_row_at_most(&subquery.subquery)? => (&*subquery.subquery, false),
            Expr::Exists(exists) => (with_any_row(&exists.subquery.subquery)?, true),
            _ => return Ok(None),
        };
        if let Expr::Exists(exists) = expr
            && obstacle(plan, Kind::Exists).is_none()
        {
            // It was in what does not matter.
            let subquery = Subquery { subquery: Arc::new(plan.clone()), ..exists.subquery.clone() };
            let value = Expr::Exists(Exists { subquery, negated: exists.negated });
            return Ok(Some(Found { joined: None, value }));
        }
        let Some(domain) = Domain::of(around, plan, name)? else { return Ok(None) };
        let Some(rows) = domain.pushed_into(plan)? else { return Ok(None) };
        let value = format!("{name}_value");
        let row = match is_exists {
            true => lit(true),
            false => Expr::from(rows.schema().qualified_field(0)),
        };
        let rows =
            LogicalPlanBuilder::from(rows).project(std::iter::once(row.alias(&value)).chain(domain.columns()))?;
        let rows = if is_exists { rows.distinct()?.build()? } else { rows.build()? };
        let value = match expr {
            Expr::Exists(exists) if exists.negated => column(&value).is_null(),
            Expr::Exists(_) => column(&value).is_not_null(),
            _ => column(&value),
        };
        Ok(Some(Found { joined: Some((domain, rows)), value }))
    }
}

/// The join of rows with a subquery of FROM that sees them, when those rows are joined among themselves.
fn joined_laterally(mut join: Join, number: &mut usize) -> Result<Transformed<LogicalPlan>> {
    let before = Arc::unwrap_or_clone(join.left).rewrite_up(&mut |plan| match plan {
        LogicalPlan::Join(join) if lateral(&join).is_some() => lateral_join(join, number),
        plan => Ok(Transformed::no(plan)),
    })?;
    join.left = Arc::new(before.data);
    lateral_join(join, number)
}

/// The join of rows with a subquery of FROM that sees them. One that DataFusion joins stays as it is.
fn lateral_join(join: Join, number: &mut usize) -> Result<Transformed<LogicalPlan>> {
    let same = |join| Ok(Transformed::no(LogicalPlan::Join(join)));
    let Some(subquery) = lateral(&join) else { return same(join) };
    let plan = &subquery.subquery;
    if obstacle(plan, Kind::Lateral).is_none() {
        return same(join);
    }
    *number += 1;
    let is_kind = matches!(join.join_type, JoinType::Inner | JoinType::Left);
    let domain = if is_kind { Domain::of(&join.left, plan, &format!("{NAME}_{number}"))? } else { None };
    let found = match domain {
        Some(domain) => domain.pushed_into(plan)?.map(|rows| (domain, rows)),
        None => None,
    };
    let Some((domain, rows)) = found else {
        // A row without keys, and nothing on top, comes out of a join as it should.
        let kind = if has_a_row(plan) { Kind::Value } else { Kind::Lateral };
        correlation::check_subquery(plan, kind)?;
        return same(join);
    };
    let rows = domain.named(rows, 0.., join.right.schema())?;
    let keys = join.on.into_iter().map(|(left, right)| left.eq(right));
    let condition = keys.chain(join.filter).reduce(Expr::and);
    let joined = domain.joined(Arc::unwrap_or_clone(join.left), rows, join.join_type, condition)?;
    let columns = join.schema.iter().map(Expr::from).collect();
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(joined))?)))
}

/// Whether a plan has one row or none, whatever it is asked about. DataFusion's own notion of it takes several grouping sets
/// of one row for one.
pub(crate) fn has_one_row_at_most(plan: &LogicalPlan) -> Result<bool> {
    Ok(match plan {
        plan if has_a_row(plan) => true,
        LogicalPlan::Limit(limit) => {
            matches!(limit.get_fetch_type()?, FetchType::Literal(Some(0 | 1))) || has_one_row_at_most(&limit.input)?
        }
        LogicalPlan::Projection(projection) => has_one_row_at_most(&projection.input)?,
        LogicalPlan::SubqueryAlias(alias) => has_one_row_at_most(&alias.input)?,
        LogicalPlan::Filter(filter) => has_one_row_at_most(&filter.input)?,
        LogicalPlan::Sort(sort) => sort.fetch == Some(1) || has_one_row_at_most(&sort.input)?,
        LogicalPlan::Distinct(Distinct::All(input)) => has_one_row_at_most(input)?,
        _ => false,
    })
}

/// What has a row if the subquery has one: it does not matter which, and how many.
fn with_any_row(plan: &LogicalPlan) -> Result<&LogicalPlan> {
    match plan {
        LogicalPlan::Limit(limit) => {
            let has_all = matches!(limit.get_skip_type()?, SkipType::Literal(0))
                && matches!(limit.get_fetch_type()?, FetchType::Literal(fetch) if fetch != Some(0));
            if has_all { with_any_row(&limit.input) } else { Ok(plan) }
        }
        LogicalPlan::Sort(sort) if sort.fetch != Some(0) => with_any_row(&sort.input),
        LogicalPlan::Distinct(Distinct::All(input)) => with_any_row(input),
        LogicalPlan::Distinct(Distinct::On(distinct)) => with_any_row(&distinct.input),
        LogicalPlan::Projection(projection) => with_any_row(&projection.input),
        _ => Ok(plan),
    }
}
