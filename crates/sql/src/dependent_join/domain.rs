//! The values that a subquery is asked about, and the subquery for all of them.

use super::source;
use crate::correlation::{has, has_subquery, is_grouping_set, lateral, outer_columns, schema_below, subquery_of};
use crate::walk::{WalkPlan, WalkTree};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, Result};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr::{Sort as Order, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprFunctionExt, FetchType, Filter, Join, JoinConstraint, Limit,
    LogicalPlan, LogicalPlanBuilder, Operator, Projection, SkipType, Subquery, Union, Window, lit, when,
};
use std::sync::Arc;

/// The different values of those columns around a subquery that it refers to.
pub(super) struct Domain {
    /// The columns around it, and what they are called within.
    columns: Vec<(Column, String)>,
    /// The values, each list of them once, and perhaps some that no row around has.
    rows: LogicalPlan,
    name: String,
}

/// A column that has a name of its own.
pub(super) fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

fn is_correlated(plan: &LogicalPlan) -> bool {
    !outer_columns(plan).is_empty()
}

impl Domain {
    /// What `plan` asks of the rows around it; `None` where it asks of others, or these cannot be read twice. `name` begins the
    /// names of its columns.
    pub(super) fn of(around: &LogicalPlan, plan: &LogicalPlan, name: &str) -> Result<Option<Domain>> {
        let outer = outer_columns(plan);
        if outer.is_empty() || !outer.iter().all(|column| has(around.schema(), column)) {
            return Ok(None);
        }
        let values = outer.iter().cloned().map(Expr::Column).collect();
        let Some((source, values)) = source::of(around, values)? else { return Ok(None) };
        let called = |(number, column)| (column, format!("{name}_{number}"));
        let columns: Vec<(Column, String)> = outer.into_iter().enumerate().map(called).collect();
        let values = values.into_iter().zip(&columns).map(|(value, (_, name))| value.alias(name));
        let rows = LogicalPlanBuilder::from(source.clone()).project(values)?.distinct()?.build()?;
        Ok(Some(Domain { columns, rows, name: name.to_owned() }))
    }

    /// The columns of the values.
    pub(super) fn columns(&self) -> impl Iterator<Item = Expr> {
        self.columns.iter().map(|(_, name)| column(name))
    }

    /// The rows around, joined with rows that have the columns of the values.
    pub(super) fn joined(
        &self,
        around: LogicalPlan,
        rows: LogicalPlan,
        kind: JoinType,
        condition: Option<Expr>,
    ) -> Result<LogicalPlan> {
        let outer = self.columns.iter().map(|(outer, _)| Expr::Column(outer.clone()));
        by_values(around, rows, outer.zip(self.columns()).collect(), kind, condition)
    }

    /// The rows of a subquery for each list of values, which come out as columns behind its own; `None` where there is a
    /// node in it that this cannot be done with.
    pub(super) fn pushed_into(&self, plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        if !is_correlated(plan) {
            return LogicalPlanBuilder::from(plan.clone()).cross_join(self.rows.clone())?.build().map(Some);
        }
        match plan {
            LogicalPlan::Filter(filter) => {
                let Some(input) = self.pushed_into(&filter.input)? else { return Ok(None) };
                let predicate = self.over(filter.predicate.clone(), filter.input.schema())?;
                Ok(Some(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?)))
            }
            LogicalPlan::Projection(projection) => {
                let Some(input) = self.pushed_into(&projection.input)? else { return Ok(None) };
                let names = NamePreserver::new_for_projection();
                let below = projection.input.schema();
                let own =
                    projection.expr.iter().map(|expr| Ok(names.save(expr).restore(self.over(expr.clone(), below)?)));
                self.projected(own.collect::<Result<_>>()?, input).map(Some)
            }
            LogicalPlan::SubqueryAlias(alias) => match self.pushed_into(&alias.input)? {
                Some(input) => self.named(input, 0.., &alias.schema).map(Some),
                None => Ok(None),
            },
            LogicalPlan::Distinct(Distinct::All(input)) => match self.pushed_into(input)? {
                Some(input) => LogicalPlanBuilder::from(input).distinct()?.build().map(Some),
                None => Ok(None),
            },
            LogicalPlan::Sort(sort) => match sort.fetch {
                Some(fetch) => self.pushed_into_first(&sort.input, &sort.expr, 0, Some(fetch)),
                // What is on top of it is of rows without an order.
                None => self.pushed_into(&sort.input),
            },
            LogicalPlan::Limit(limit) => self.pushed_into_limit(limit),
            LogicalPlan::Aggregate(aggregate) => self.pushed_into_aggregate(aggregate),
            LogicalPlan::Window(window) => self.pushed_into_window(window),
            LogicalPlan::Join(join) => self.pushed_into_join(join),
            LogicalPlan::Union(union) => {
                let mut inputs = Vec::with_capacity(union.inputs.len());
                for input in &union.inputs {
                    let Some(input) = self.pushed_into(input)? else { return Ok(None) };
                    inputs.push(Arc::new(input));
                }
                let all = LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?);
                self.named(all, 0.., &union.schema).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// An expression over rows of this schema, with the columns of the values in the place of those around.
    fn over(&self, expr: Expr, below: &DFSchema) -> Result<Expr> {
        let expr = expr.rewrite_up(&mut |expr| match &expr {
            Expr::OuterReferenceColumn(_, outer) => match self.name_of(outer) {
                Some(name) => Ok(Transformed::yes(column(name))),
                None => Ok(Transformed::no(expr)),
            },
            _ if subquery_of(&expr).is_some() => self.over_subquery(expr, &|column| has(below, column)),
            _ => Ok(Transformed::no(expr)),
        });
        Ok(expr?.data)
    }

    /// A subquery within the subquery, to which the columns of the values are some of the rows around it. Others that are
    /// nearer may have the same names.
    fn over_subquery(&self, mut expr: Expr, is_nearer: &dyn Fn(&Column) -> bool) -> Result<Transformed<Expr>> {
        let Some(subquery) = subquery_mut(&mut expr) else { return Ok(Transformed::no(expr)) };
        let outer = |expr: Expr| match &expr {
            Expr::OuterReferenceColumn(_, column) if !is_nearer(column) => match self.name_of(column) {
                Some(name) => {
                    let column = Column::new_unqualified(name);
                    let field = self.rows.schema().field_with_unqualified_name(name)?;
                    Ok(Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(field), column)))
                }
                None => Ok(Transformed::no(expr)),
            },
            _ => Ok(Transformed::no(expr)),
        };
        let plan = subquery.subquery.as_ref().clone().rewrite_up(&mut |plan| {
            let (below, names) = (schema_below(&plan), NamePreserver::new(&plan));
            plan.rewrite_exprs(&mut |expr| {
                let name = names.save(&expr);
                let expr = expr.rewrite_up(&mut |expr| match subquery_of(&expr) {
                    Some(_) => self.over_subquery(expr, &|column| has(&below, column) || is_nearer(column)),
                    None => outer(expr),
                })?;
                Ok(expr.update_data(|expr| name.restore(expr)))
            })
        })?;
        subquery.subquery = Arc::new(plan.data);
        for column in &mut subquery.outer_ref_columns {
            *column = outer(std::mem::take(column))?.data;
        }
        Ok(Transformed::yes(expr))
    }

    fn name_of(&self, outer: &Column) -> Option<&String> {
        self.columns.iter().find(|(known, _)| known == outer).map(|(_, name)| name)
    }

    /// Expressions over `input`, and the values.
    fn projected(&self, own: Vec<Expr>, input: LogicalPlan) -> Result<LogicalPlan> {
        let exprs = own.into_iter().chain(self.columns()).collect();
        Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?))
    }

    /// Columns of `input`, called as those of `schema`, and the values.
    pub(super) fn named(
        &self,
        input: LogicalPlan,
        columns: impl Iterator<Item = usize>,
        schema: &DFSchema,
    ) -> Result<LogicalPlan> {
        let own = schema.iter().zip(columns).map(|((table, field), column)| {
            let (own_table, own) = input.schema().qualified_field(column);
            let expr = Expr::from((own_table, own));
            match own_table == table && own.name() == field.name() {
                true => expr,
                false => expr.alias_qualified(table.cloned(), field.name()),
            }
        });
        let own = own.collect();
        self.projected(own, input)
    }

    fn pushed_into_limit(&self, limit: &Limit) -> Result<Option<LogicalPlan>> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) = (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return Ok(None);
        };
        match limit.input.as_ref() {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                self.pushed_into_first(&sort.input, &sort.expr, skip, fetch)
            }
            // What it is ordered by is not selected.
            LogicalPlan::Projection(projection) if matches!(*projection.input, LogicalPlan::Sort(_)) => {
                let below = LogicalPlan::Limit(Limit { input: Arc::clone(&projection.input), ..limit.clone() });
                let above = Projection::try_new(projection.expr.clone(), Arc::new(below))?;
                self.pushed_into(&LogicalPlan::Projection(above))
            }
            input => self.pushed_into_first(input, &[], skip, fetch),
        }
    }

    /// Of each list of values the rows from `skip` on, and `fetch` of them at most.
    fn pushed_into_first(
        &self,
        plan: &LogicalPlan,
        order: &[Order],
        skip: usize,
        fetch: Option<usize>,
    ) -> Result<Option<LogicalPlan>> {
        let Some(input) = self.pushed_into(plan)? else { return Ok(None) };
        let over = |order: &Order| Ok(Order { expr: self.over(order.expr.clone(), plan.schema())?, ..order.clone() });
        let order = order.iter().map(over);
        let order = order.collect::<Result<Vec<_>>>()?;
        let number = row_number().partition_by(self.columns().collect());
        let number = if order.is_empty() { number } else { number.order_by(order) }.build()?;
        let called = column(&number.schema_name().to_string());
        let numbered = LogicalPlanBuilder::from(input).window([number])?;
        let from = called.clone().gt(lit(skip as u64));
        let kept = match fetch {
            Some(fetch) => from.and(called.lt_eq(lit(skip.saturating_add(fetch) as u64))),
            None => from,
        };
        let kept = numbered.filter(kept)?.build()?;
        self.named(kept, 0.., plan.schema()).map(Some)
    }

    fn pushed_into_window(&self, window: &Window) -> Result<Option<LogicalPlan>> {
        let Some(input) = self.pushed_into(&window.input)? else { return Ok(None) };
        let own_count = window.input.schema().fields().len();
        let calls = window.window_expr.iter().map(|call| {
            let within = call.clone().rewrite_up(&mut |expr| match expr {
                Expr::WindowFunction(mut call) => {
                    let WindowFunction { params, .. } = call.as_mut();
                    params.partition_by.extend(self.columns());
                    Ok(Transformed::yes(Expr::WindowFunction(call)))
                }
                expr => Ok(Transformed::no(expr)),
            });
            self.over(within?.data, window.input.schema())
        });
        let calls = calls.collect::<Result<Vec<_>>>()?;
        let plan = LogicalPlan::Window(Window::try_new(calls, Arc::new(input))?);
        let columns = (0..own_count).chain(own_count + self.columns.len()..);
        self.named(plan, columns, &window.schema).map(Some)
    }

    fn pushed_into_aggregate(&self, aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
        if aggregate.group_expr.iter().any(is_grouping_set) {
            return Ok(None);
        }
        let Some(input) = self.pushed_into(&aggregate.input)? else { return Ok(None) };
        let over = |expr: &Expr| self.over(expr.clone(), aggregate.input.schema());
        let keys = aggregate.group_expr.iter().map(over).collect::<Result<Vec<_>>>()?;
        let calls = aggregate.aggr_expr.iter().map(over).collect::<Result<Vec<_>>>()?;
        // A key that is one of the values is there once.
        let (mut own, mut places) = (Vec::with_capacity(keys.len()), Vec::with_capacity(keys.len()));
        let value_of = |key: &Expr| self.columns().position(|value| value == *key);
        let own_count = keys.iter().filter(|key| value_of(key).is_none()).count();
        for key in &keys {
            places.push(value_of(key).map_or(own.len(), |value| own_count + value));
            if value_of(key).is_none() {
                own.push(key.clone());
            }
        }
        own.extend(self.columns());
        let first_call = own.len();
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), own, calls)?);
        if keys.is_empty() {
            return self.with_empty_groups(plan, aggregate);
        }
        self.named(plan, places.into_iter().chain(first_call..), &aggregate.schema).map(Some)
    }

    /// Groups, and for values that no row is there for what an aggregate without keys is of no row.
    fn with_empty_groups(&self, groups: LogicalPlan, aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
        let (is_group, mut values) = (format!("{}_is_group", self.name), Vec::new());
        let fields = aggregate.schema.fields();
        for (call, field) in aggregate.aggr_expr.iter().zip(fields) {
            let Expr::AggregateFunction(call) = call.clone().unalias() else { return Ok(None) };
            let of_none = call.func.default_value(field.data_type())?;
            let value = Expr::Column(Column::new_unqualified(field.name()));
            values.push(match of_none.is_null() {
                true => value,
                false => when(column(&is_group).is_null(), lit(of_none)).otherwise(value)?.alias(field.name()),
            });
        }
        let calls = groups.schema().iter().skip(self.columns.len()).zip(fields).map(|(own, field)| {
            // Arguments that were of the rows around have other names now.
            Expr::from(own).alias(field.name())
        });
        let keys = self.columns.iter().map(|(_, name)| column(name).alias(other(name)));
        let columns: Vec<Expr> = calls.chain(keys).chain([lit(true).alias(&is_group)]).collect();
        let groups = LogicalPlanBuilder::from(groups).project(columns)?.build()?;
        let plan = by_values(self.rows.clone(), groups, self.pairs(), JoinType::Left, None)?;
        self.projected(values, plan).map(Some)
    }

    /// The columns of the values on both sides of a join.
    fn pairs(&self) -> Vec<(Expr, Expr)> {
        self.columns.iter().map(|(_, name)| (column(name), column(&other(name)))).collect()
    }

    fn pushed_into_join(&self, join: &Join) -> Result<Option<LogicalPlan>> {
        let (left, mut right) = (is_correlated(&join.left), is_correlated(&join.right));
        if lateral(join).is_some() {
            // What it refers to is to be on the left side, and stays so.
            right = false;
            if !outer_columns(&join.right).iter().all(|column| has(join.left.schema(), column)) {
                return Ok(None);
            }
        }
        // Where rows come out without a partner, they do so for some values and not for others.
        let (on_left, on_right) = match join.join_type {
            JoinType::Inner => (left || !right, right),
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => (true, right),
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => (left, true),
            JoinType::Full => (true, true),
        };
        let pushed = |plan: &LogicalPlan, is_wanted| match is_wanted {
            true => self.pushed_into(plan),
            false => Ok(Some(plan.clone())),
        };
        let (Some(left), Some(mut right)) = (pushed(&join.left, on_left)?, pushed(&join.right, on_right)?) else {
            return Ok(None);
        };
        let both = join.left.schema().join(join.right.schema())?;
        let over = |expr: &Expr| self.over(expr.clone(), &both);
        let mut on = Vec::with_capacity(join.on.len());
        for (left, right) in &join.on {
            on.push((over(left)?, over(right)?));
        }
        let mut filter = join.filter.as_ref().map(over).transpose()?;
        let mut null_equality = join.null_equality;
        if on_left && on_right {
            let own = join.right.schema().iter().map(Expr::from);
            let values = self.columns.iter().map(|(_, name)| column(name).alias(other(name)));
            let exprs: Vec<Expr> = own.chain(values).collect();
            right = LogicalPlanBuilder::from(right).project(exprs)?.build()?;
            let conditions = filter.take().into_iter().flat_map(split_conjunction_owned);
            let (keys, mut conditions): (Vec<_>, Vec<_>) =
                conditions.partition(|condition| key_of(condition, left.schema(), right.schema()).is_some());
            on.extend(keys.iter().filter_map(|key| key_of(key, left.schema(), right.schema())));
            if null_equality == NullEquality::NullEqualsNothing {
                // Other than the values, these keys find no NULL.
                conditions.extend(on.iter().map(|(left, _)| left.clone().is_not_null()));
            }
            null_equality = NullEquality::NullEqualsNull;
            on.extend(self.pairs());
            filter = conjunction(conditions);
        }
        let (left, right) = (Arc::new(left), Arc::new(right));
        let (kind, constraint) = (join.join_type, join.join_constraint);
        let joined = Join::try_new(left, right, on, filter, kind, constraint, null_equality, join.null_aware)?;
        let of_right =
            matches!(kind, JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark);
        let values = self.columns.iter().map(|(_, name)| match (on_left && on_right, kind) {
            (true, JoinType::Full) => coalesce(vec![column(name), column(&other(name))]).alias(name),
            (true, _) if of_right => column(&other(name)).alias(name),
            _ => column(name),
        });
        let exprs: Vec<Expr> = join.schema.iter().map(Expr::from).chain(values).collect();
        LogicalPlanBuilder::from(LogicalPlan::Join(joined)).project(exprs)?.build().map(Some)
    }
}

/// The keys of both sides that a condition says are equal.
fn key_of(condition: &Expr, left: &DFSchema, right: &DFSchema) -> Option<(Expr, Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left: one, op: Operator::Eq, right: two }) = condition else { return None };
    let is_of = |expr: &Expr, schema| {
        let columns = expr.column_refs();
        !columns.is_empty() && !has_subquery(expr) && columns.into_iter().all(|column| has(schema, column))
    };
    if is_of(one, left) && is_of(two, right) {
        Some((one.as_ref().clone(), two.as_ref().clone()))
    } else if is_of(two, left) && is_of(one, right) {
        Some((two.as_ref().clone(), one.as_ref().clone()))
    } else {
        None
    }
}

/// What the column of a value is called on the other side of a join.
fn other(name: &str) -> String {
    format!("{name}_other")
}

/// A join by values of which NULL is one.
fn by_values(
    left: LogicalPlan,
    right: LogicalPlan,
    on: Vec<(Expr, Expr)>,
    kind: JoinType,
    condition: Option<Expr>,
) -> Result<LogicalPlan> {
    let (left, right) = (Arc::new(left), Arc::new(right));
    let nulls = NullEquality::NullEqualsNull;
    Ok(LogicalPlan::Join(Join::try_new(left, right, on, condition, kind, JoinConstraint::On, nulls, false)?))
}

fn subquery_mut(expr: &mut Expr) -> Option<&mut Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(exists) => Some(&mut exists.subquery),
        Expr::InSubquery(found) => Some(&mut found.subquery),
        Expr::SetComparison(found) => Some(&mut found.subquery),
        _ => None,
    }
}
