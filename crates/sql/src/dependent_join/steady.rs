//! What has the same rows each time that it is read.
//!
//! A LIMIT may pick others, and numbers of rows, or sums of floats, may be others, when threads hand rows on in another
//! order.

use crate::correlation::{lateral, outer_columns, subquery_of};
use crate::walk::{WalkPlan, WalkTree};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, JoinType, Result};
use datafusion::datasource::TableType;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprSchemable, Join, LogicalPlan, Sort, Window, WindowFrameUnits,
};
use std::collections::BTreeSet;

/// By their places in a plan's schema.
type Columns = BTreeSet<usize>;

/// The columns that expressions read; `None` where they need not be the same each time for the same rows.
pub(super) fn columns<'a>(exprs: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> Result<Option<Columns>> {
    let (mut columns, mut steady) = (Columns::new(), true);
    for expr in exprs {
        columns.extend(expr.column_refs().into_iter().filter_map(|column| schema.maybe_index_of_column(column)));
        steady &= !expr.is_volatile();
        expr.visit_nodes(&mut |expr| {
            if let Some((subquery, _)) = subquery_of(expr) {
                let outer = outer_columns(&subquery.subquery);
                columns.extend(outer.iter().filter_map(|column| schema.maybe_index_of_column(column)));
                steady &= is_steady(&subquery.subquery, &all(&subquery.subquery))?;
            }
            Ok(if steady { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })?;
    }
    Ok(steady.then_some(columns))
}

fn all(plan: &LogicalPlan) -> Columns {
    (0..plan.schema().fields().len()).collect()
}

/// Whether a plan has the same lists of values of these columns each time, as often as each is there.
pub(super) fn is_steady(plan: &LogicalPlan, wanted: &Columns) -> Result<bool> {
    let with = |input: &LogicalPlan, wanted: Columns, more: Option<Columns>| match more {
        Some(more) => is_steady(input, &wanted.into_iter().chain(more).collect()),
        None => Ok(false),
    };
    match plan {
        LogicalPlan::Projection(projection) => {
            let exprs = wanted.iter().filter_map(|&column| projection.expr.get(column));
            with(&projection.input, Columns::new(), columns(exprs, projection.input.schema())?)
        }
        LogicalPlan::SubqueryAlias(alias) => is_steady(&alias.input, wanted),
        LogicalPlan::Filter(filter) => {
            with(&filter.input, wanted.clone(), columns([&filter.predicate], filter.input.schema())?)
        }
        LogicalPlan::Sort(sort) => match sort.fetch {
            Some(_) => Ok(is_total(sort) && is_steady(&sort.input, &all(&sort.input))?),
            None => is_steady(&sort.input, wanted),
        },
        LogicalPlan::Limit(limit) => match limit.input.as_ref() {
            LogicalPlan::Sort(sort) => Ok(is_total(sort) && is_steady(&sort.input, &all(&sort.input))?),
            _ => Ok(false),
        },
        LogicalPlan::Distinct(Distinct::All(input)) => is_steady(input, &all(input)),
        LogicalPlan::Distinct(Distinct::On(_)) => Ok(false),
        LogicalPlan::Aggregate(aggregate) => {
            let first = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
            let calls = aggregate.aggr_expr.iter().enumerate().filter(|(call, _)| wanted.contains(&(first + call)));
            let calls: Vec<&Expr> = calls.map(|(_, call)| call).collect();
            let read = columns(aggregate.group_expr.iter().chain(calls.clone()), aggregate.input.schema())?;
            let are_exact = calls.into_iter().all(|call| is_exact_call(call, aggregate));
            Ok(are_exact && with(&aggregate.input, Columns::new(), read)?)
        }
        LogicalPlan::Window(window) => {
            let first = window.input.schema().fields().len();
            let calls = window.window_expr.iter().enumerate().filter(|(call, _)| wanted.contains(&(first + call)));
            let calls: Vec<&Expr> = calls.map(|(_, call)| call).collect();
            let read = columns(calls.clone(), window.input.schema())?;
            let are_steady = calls.into_iter().all(|call| is_steady_call(call, window));
            let passed = wanted.iter().copied().filter(|&column| column < first).collect();
            Ok(are_steady && with(&window.input, passed, read)?)
        }
        LogicalPlan::Join(join) => is_steady_join(join, wanted),
        LogicalPlan::Union(union) => {
            let steady = union.inputs.iter().map(|input| is_steady(input, wanted)).collect::<Result<Vec<_>>>()?;
            Ok(steady.into_iter().all(|steady| steady))
        }
        // The rows so far of a recursive query are there once.
        LogicalPlan::TableScan(scan) => Ok(scan.source.table_type() != TableType::Temporary),
        plan => {
            let mut steady = true;
            plan.visit_exprs(&mut |expr| {
                steady &= !expr.is_volatile();
                Ok(TreeNodeRecursion::Continue)
            })?;
            for input in plan.inputs() {
                steady = steady && is_steady(input, &all(input))?;
            }
            Ok(steady)
        }
    }
}

fn is_steady_join(join: &Join, wanted: &Columns) -> Result<bool> {
    if lateral(join).is_some() {
        return Ok(is_steady(&join.left, &all(&join.left))? && is_steady(&join.right, &all(&join.right))?);
    }
    let both = join.left.schema().join(join.right.schema())?;
    let conditions = join.on.iter().flat_map(|(left, right)| [left, right]).chain(&join.filter);
    let Some(read) = columns(conditions, &both)? else { return Ok(false) };
    let width = join.left.schema().fields().len();
    let of_right = matches!(join.join_type, JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark);
    let wanted = wanted.iter().map(|column| if of_right { width + column } else { *column });
    let (left, right): (Columns, Columns) = wanted.chain(read).partition(|&column| column < width);
    // A mark is no column of either side.
    let right_width = join.right.schema().fields().len();
    let right = right.into_iter().map(|column| column - width).filter(|&column| column < right_width).collect();
    Ok(is_steady(&join.left, &left)? && is_steady(&join.right, &right)?)
}

/// Whether rows that an order takes for equal are.
fn is_total(sort: &Sort) -> bool {
    let is_key = |column: Expr| sort.expr.iter().any(|key| key.expr == column);
    sort.input.schema().iter().map(Expr::from).all(is_key)
}

/// Whether an aggregate does not depend on the order of rows.
fn is_exact_call(call: &Expr, aggregate: &Aggregate) -> bool {
    let call = call.clone().unalias();
    match &call {
        Expr::AggregateFunction(function) => is_exact(function.func.name(), &call, aggregate.input.schema()),
        _ => false,
    }
}

fn is_exact(function: &str, call: &Expr, schema: &DFSchema) -> bool {
    match function {
        "count" | "min" | "max" | "bool_and" | "bool_or" | "bit_and" | "bit_or" | "bit_xor" | "grouping" => true,
        "sum" | "avg" => call.get_type(schema).is_ok_and(|ty| !ty.is_floating()),
        _ => false,
    }
}

/// Whether a window function says the same of rows that its order takes for equal.
fn is_steady_call(call: &Expr, window: &Window) -> bool {
    let call = call.clone().unalias();
    let Expr::WindowFunction(function) = &call else { return false };
    let WindowFunction { fun, params } = function.as_ref();
    match fun.name() {
        "rank" | "dense_rank" | "percent_rank" | "cume_dist" => true,
        // Of copies of a row, each may have each number.
        "row_number" => {
            window.input.schema().iter().map(Expr::from).all(|column| params.partition_by.contains(&column))
        }
        name => {
            let takes_equals = params.order_by.is_empty() || params.window_frame.units != WindowFrameUnits::Rows;
            takes_equals && is_exact(name, &call, window.input.schema())
        }
    }
}
