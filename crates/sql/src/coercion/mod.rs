//! Which types meet in a comparison or a cast, where DataFusion's own answer is none or not SQL's.
//!
//! `0.5` is an exact decimal here, and DataFusion compares a float with a decimal as two decimals: `f > 0.5` would fail
//! at the first value beyond 10^15, at infinity and at NaN, and no block could be asked in its encoded form. As in
//! PostgreSQL and DuckDB the decimal becomes a float instead, of the same width; so it does where the results of CASE,
//! the arguments of COALESCE and its like, the entries of a list, the rows of set operations, and of subqueries with IN, ANY
//! and ALL meet. (Rows of VALUES meet before there is a plan, as DataFusion gives them a type when it makes one.)
//!
//! CASE is of the type of its first result to DataFusion until it gives all of them one, which would be too late to tell
//! what meets around it: numbers of several types become of one here.
//!
//! A cast of a decimal to fewer digits rounds. DataFusion compares what is cast, not rounded, with the constant on the
//! other side: of `CAST(d AS DECIMAL(9, 1)) = 6.5` it makes `d = 6.50`. So such a cast goes through a function that it does
//! not look through.
//!
//! [`intervals`] are compared and ordered by how long they are, texts with patterns as SQL has it ([`similar_to`]), and
//! distances of [`frames`] are what they are.
//!
//! UUIDs are sixteen bytes to DataFusion, which compares and casts them with bytes only. Here text on the other side is
//! read as a UUID. Dates and text beside timestamps become timestamps of microseconds, as those are. Runs before DataFusion's
//! coercion.

mod frames;
mod grouping_sets;
mod intervals;
mod rows;
mod similar_to;

use crate::correlation::schema_below;
use crate::scalar_subquery::PERHAPS;
use crate::times_of_text::{INTERVAL, INTERVAL_OF_TEXT, TIME, TIME_OF_TEXT};
use crate::uuid::{TEXT_OF_UUID, UUID, UUID_OF_TEXT};
use crate::walk::{WalkPlan, WalkTree};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::type_coercion::other::get_coerce_type_for_case_expression;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Projection, ScalarUDF, Subquery, cast, lit, when,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// Functions whose arguments meet in one type.
const MEETING: &[&str] = &["coalesce", "greatest", "least", "nullif", "nvl", "make_array"];

/// What the value of a subquery's row is called when it was given another type.
const ROW: &str = "__sinter_row";

/// The rule.
#[derive(Debug)]
pub(crate) struct Coercion;

impl AnalyzerRule for Coercion {
    fn name(&self) -> &str {
        "sinter_coercion"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(analyzed_plan(plan, false)?.0)
    }
}

/// A plan with all its expressions rewritten, and whether some node of it has columns of other types than it had, or those
/// around it have (`is_changed`). What is below a node comes before its subqueries, which refer to it.
fn analyzed_plan(plan: LogicalPlan, mut is_changed: bool) -> Result<(LogicalPlan, bool)> {
    let plan = plan.rewrite_up(&mut |plan| {
        let around = schema_below(&plan);
        let plan = plan.map_subqueries(|subquery| {
            let LogicalPlan::Subquery(mut subquery) = subquery else { return Ok(Transformed::no(subquery)) };
            let mut plan = Arc::unwrap_or_clone(subquery.subquery);
            if is_changed {
                plan = with_types_around(plan, &around)?;
            }
            let (plan, is_changed_within) = analyzed_plan(plan, is_changed)?;
            is_changed |= is_changed_within;
            subquery.subquery = Arc::new(plan);
            Ok(Transformed::yes(LogicalPlan::Subquery(subquery)))
        })?;
        let plan = plan.data;
        let before = Arc::clone(plan.schema());
        let plan = match plan {
            LogicalPlan::Union(union) => rows::of_union(union, is_changed)?,
            LogicalPlan::RecursiveQuery(query) => {
                Transformed::no(LogicalPlan::RecursiveQuery(rows::of_recursive_query(query)?))
            }
            LogicalPlan::Join(join) => {
                let join = LogicalPlan::Join(rows::of_join(join)?);
                Transformed::new_transformed(if is_changed { join.recompute_schema()? } else { join }, is_changed)
            }
            plan if is_changed => Transformed::yes(plan.recompute_schema()?),
            plan => Transformed::no(plan),
        };
        let plan = plan.transform_data(analyzed)?;
        is_changed |= plan.transformed && before.fields() != plan.data.schema().fields();
        Ok(plan)
    })?;
    Ok((plan.data, is_changed))
}

/// The plan of a subquery, which says of columns of the rows around it the types that these have now.
fn with_types_around(plan: LogicalPlan, around: &DFSchema) -> Result<LogicalPlan> {
    let plan = plan.rewrite_up_with_subqueries(&mut |plan| {
        let plan = plan.rewrite_exprs(&mut |expr| {
            expr.rewrite_up(&mut |expr| {
                let Expr::OuterReferenceColumn(_, column) = &expr else { return Ok(Transformed::no(expr)) };
                let Ok(field) = around.field_from_column(column) else { return Ok(Transformed::no(expr)) };
                Ok(Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(field), column.clone())))
            })
        })?;
        plan.map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(plan.data)
}

/// A node with its own expressions rewritten.
fn analyzed(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = schema_below(&plan);
    if !has_such(&plan, &schema)? {
        return Ok(Transformed::no(plan));
    }
    let plan = match plan {
        LogicalPlan::Sort(sort) => intervals::sort_by_lengths(sort, &schema)?,
        LogicalPlan::Aggregate(aggregate) => {
            LogicalPlan::Aggregate(grouping_sets::with_keys_below(aggregate, &schema)?)
        }
        plan => plan,
    };
    let names = NamePreserver::new(&plan);
    let changed = plan.rewrite_exprs(&mut |expr| {
        let name = names.save(&expr);
        Ok(rewritten(expr, &schema)?.update_data(|expr| name.restore(expr)))
    })?;
    Ok(Transformed::yes(changed.data.recompute_schema()?))
}

fn rewritten(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.rewrite_up(&mut |expr| match expr {
        Expr::Cast(ref cast) if rounds(cast, schema) => Ok(Transformed::yes(PERHAPS.call(vec![expr]))),
        Expr::SimilarTo(similar) => Ok(Transformed::yes(similar_to::by_regex(similar))),
        expr => coerced(expr, schema),
    })
}

/// Whether values are times of day.
fn is_time(ty: &DataType) -> bool {
    matches!(ty, DataType::Time32(_) | DataType::Time64(_))
}

fn is_float(ty: &DataType) -> bool {
    matches!(ty, DataType::Float32 | DataType::Float64)
}

/// Whether something in a node's expressions is to change. To look is cheaper than to make all of them anew.
fn has_such(plan: &LogicalPlan, schema: &DFSchema) -> Result<bool> {
    let mut found = match plan {
        LogicalPlan::Sort(sort) => intervals::has_interval(sort.expr.iter().map(|sort| &sort.expr), schema),
        _ => false,
    };
    plan.visit_exprs(&mut |expr| {
        found = found || expr.any(&mut |expr| Ok(is_such(expr, schema)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether the rule changes an expression.
fn is_such(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Cast(cast) => {
            let to = cast.field.data_type();
            let by_function = is_text(to) || is_time(to) || matches!(*to, UUID | INTERVAL);
            rounds(cast, schema) || by_function && function_for(cast, schema).is_some()
        }
        Expr::BinaryExpr(binary) if intervals::are_date_and_hours(binary, schema) => true,
        Expr::BinaryExpr(binary) if binary.op.supports_propagation() => {
            is_backwards(binary) || are_other_compared(&[&*binary.left, &*binary.right], schema)
        }
        Expr::Between(between) => are_other_compared(&[&*between.expr, &*between.low, &*between.high], schema),
        Expr::InList(list) => {
            let compared: Vec<&Expr> = std::iter::once(&*list.expr).chain(&list.list).collect();
            are_other_compared(&compared, schema)
        }
        Expr::InSubquery(found) => differs_from_rows(&found.expr, &found.subquery, schema),
        Expr::SetComparison(found) => differs_from_rows(&found.expr, &found.subquery, schema),
        Expr::Case(case) => {
            let values = case
                .expr
                .as_deref()
                .map(|subject| std::iter::once(subject).chain(case.when_then_expr.iter().map(|(when, _)| &**when)));
            differ(results(case), schema)
                || type_of_results(case, schema).is_some()
                || values.is_some_and(|values| are_other_compared(&values.collect::<Vec<_>>(), schema))
        }
        Expr::ScalarFunction(call) if is_nullif_of_intervals(call, schema) => true,
        Expr::ScalarFunction(call) if MEETING.contains(&call.name()) => differ(&call.args, schema),
        Expr::SimilarTo(_) => true,
        expr => intervals::is_ordered_by_interval(expr, schema) || frames::is_other(expr, schema),
    }
}

fn is_nullif_of_intervals(call: &ScalarFunction, schema: &DFSchema) -> bool {
    call.name() == "nullif" && call.args.len() == 2 && intervals::has_interval(&call.args, schema)
}

/// What CASE may say.
fn results(case: &Case) -> impl Iterator<Item = &Expr> {
    case.when_then_expr.iter().map(|(_, then)| &**then).chain(case.else_expr.as_deref())
}

/// The type that the results of CASE become if they are numbers of several types.
fn type_of_results(case: &Case, schema: &DFSchema) -> Option<DataType> {
    let types = results(case).map(|result| result.get_type(schema)).collect::<Result<Vec<_>>>().ok()?;
    let mut known = types.iter().filter(|ty| !ty.is_null());
    let first = known.next()?;
    if known.all(|ty| ty == first) {
        return None;
    }
    let float = widest_float(&types);
    let met = |ty: &DataType| float.clone().filter(|_| ty.is_decimal()).unwrap_or_else(|| ty.clone());
    let met: Vec<DataType> = types.iter().map(met).collect();
    let (thens, other) = met.split_at(case.when_then_expr.len());
    get_coerce_type_for_case_expression(thens, other.first()).filter(|ty| ty.is_decimal() || is_float(ty))
}

/// The type that some of what meets becomes where DataFusion has another one: the widest float beside decimals, and the
/// timestamp beside dates.
fn meeting_type<'a>(types: impl IntoIterator<Item = &'a DataType> + Clone) -> Option<DataType> {
    let met = widest_float(types.clone()).or_else(|| meeting_time(types.clone()))?;
    types.into_iter().any(|ty| becomes(ty, &met)).then_some(met)
}

/// Whether values of a type become of another one when they meet.
fn becomes(ty: &DataType, met: &DataType) -> bool {
    is_float(met) && ty.is_decimal() || matches!(met, DataType::Timestamp(..)) && *ty == DataType::Date32
}

/// The timestamps among types, of one zone or none, unless some have nanoseconds: DataFusion brings dates and text to
/// nanoseconds that meet one of microseconds, and these do not reach the year 9999.
fn meeting_time<'a>(types: impl IntoIterator<Item = &'a DataType>) -> Option<DataType> {
    let mut stamps = types.into_iter().filter(|ty| matches!(ty, DataType::Timestamp(..)));
    let first = stamps.next().filter(|ty| matches!(ty, DataType::Timestamp(TimeUnit::Microsecond, _)))?;
    stamps.all(|ty| ty == first).then(|| first.clone())
}

fn widest_float<'a>(types: impl IntoIterator<Item = &'a DataType>) -> Option<DataType> {
    let floats = types.into_iter().filter(|ty| is_float(ty));
    floats.max_by_key(|ty| **ty == DataType::Float64).cloned()
}

/// Whether a constant stands on the left of a comparison. DataFusion's filters take `d >= c AND c < d` for `d >= c`.
fn is_backwards(binary: &BinaryExpr) -> bool {
    let is_constant = |expr: &Expr| match expr {
        Expr::Literal(..) => true,
        Expr::Cast(cast) => matches!(*cast.expr, Expr::Literal(..)),
        _ => false,
    };
    binary.op.swap().is_some() && is_constant(&binary.left) && !is_constant(&binary.right)
}

/// Whether [`meet`] or [`intervals::compare_lengths`] changes one of what is compared.
fn are_other_compared(compared: &[&Expr], schema: &DFSchema) -> bool {
    differ(compared.iter().copied(), schema) || intervals::has_interval(compared.iter().copied(), schema)
}

/// Whether [`meet`] changes one of these.
fn differ<'a>(compared: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> bool {
    do_types_differ(compared.into_iter().filter_map(|expr| expr.get_type(schema).ok()))
}

/// Whether [`meet_rows`] changes a value or the subquery that it is compared with.
fn differs_from_rows(value: &Expr, subquery: &Subquery, schema: &DFSchema) -> bool {
    let row = subquery.subquery.schema().fields().first().map(|field| field.data_type().clone());
    let types = || value.get_type(schema).into_iter().chain(row.clone());
    do_types_differ(types()) || types().any(|ty| matches!(ty, DataType::Interval(_)))
}

fn do_types_differ(types: impl Iterator<Item = DataType>) -> bool {
    let types: Vec<DataType> = types.collect();
    let is_text_read = types.iter().any(|ty| *ty == UUID || is_time(ty)) || meeting_time(&types).is_some();
    let meeting = meeting_type(&types);
    types.iter().any(|ty| is_text_read && is_text(ty) || meeting.as_ref().is_some_and(|met| becomes(ty, met)))
}

/// What casts to or from a UUID instead of a cast; `None` for all others.
fn function_for(cast: &Cast, schema: &DFSchema) -> Option<&'static ScalarUDF> {
    let (from, to) = (cast.expr.get_type(schema).ok()?, cast.field.data_type());
    match from {
        from if is_text(&from) => match *to {
            UUID => Some(&*UUID_OF_TEXT),
            ref to if is_time(to) => Some(&*TIME_OF_TEXT),
            INTERVAL => Some(&*INTERVAL_OF_TEXT),
            _ => None,
        },
        from if from == UUID && is_text(to) => Some(&*TEXT_OF_UUID),
        _ => None,
    }
}

fn coerced(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let compared: Vec<&mut Expr> = match &mut expr {
        Expr::Cast(cast) => {
            let Some(function) = function_for(cast, schema) else { return Ok(Transformed::no(expr)) };
            let (value, to) = (function.call(vec![std::mem::take(cast.expr.as_mut())]), cast.field.data_type());
            let is_other = is_time(to) && *to != TIME;
            return Ok(Transformed::yes(if is_other {
                datafusion::logical_expr::cast(value, to.clone())
            } else {
                value
            }));
        }
        Expr::BinaryExpr(binary) if intervals::are_date_and_hours(binary, schema) => {
            intervals::make_timestamp(binary, schema);
            return Ok(Transformed::yes(expr));
        }
        Expr::BinaryExpr(binary) if is_backwards(binary) => {
            std::mem::swap(&mut binary.left, &mut binary.right);
            binary.op = binary.op.swap().unwrap_or(binary.op);
            meet_compared(vec![&mut binary.left, &mut binary.right], schema);
            return Ok(Transformed::yes(expr));
        }
        Expr::BinaryExpr(binary) if binary.op.supports_propagation() => {
            let changed = meet_compared(vec![&mut binary.left, &mut binary.right], schema);
            return Ok(Transformed::new_transformed(expr, changed));
        }
        Expr::Between(between) => {
            let changed = meet_compared(vec![&mut between.expr, &mut between.low, &mut between.high], schema);
            return Ok(Transformed::new_transformed(expr, changed));
        }
        Expr::InList(list) => {
            let compared = std::iter::once(list.expr.as_mut()).chain(&mut list.list).collect();
            let changed = meet_compared(compared, schema);
            return Ok(Transformed::new_transformed(expr, changed));
        }
        Expr::InSubquery(found) => {
            let changed = meet_rows(&mut found.expr, &mut found.subquery, schema)?;
            return Ok(Transformed::new_transformed(expr, changed));
        }
        Expr::SetComparison(found) => {
            let changed = meet_rows(&mut found.expr, &mut found.subquery, schema)?;
            return Ok(Transformed::new_transformed(expr, changed));
        }
        Expr::Case(case) => {
            let changed = meet_in_case(case, schema);
            return Ok(Transformed::new_transformed(expr, changed));
        }
        Expr::ScalarFunction(call) if is_nullif_of_intervals(call, schema) => {
            let Ok([value, other]) = <[Expr; 2]>::try_from(std::mem::take(&mut call.args)) else {
                return plan_err!("nullif takes two values");
            };
            let mut compared = [value.clone(), other];
            intervals::compare_lengths(compared.iter_mut().collect(), schema);
            let [length, other] = compared;
            let (null, ty) = (ScalarValue::Null, value.get_type(schema)?);
            return Ok(Transformed::yes(when(length.eq(other), cast(lit(null), ty)).otherwise(value)?));
        }
        Expr::ScalarFunction(call) if MEETING.contains(&call.name()) => call.args.iter_mut().collect(),
        other if intervals::is_ordered_by_interval(other, schema) || frames::is_other(other, schema) => {
            intervals::order_by_lengths(other, schema);
            if let Expr::WindowFunction(call) = other {
                frames::bring_together(&mut call.params, schema)?;
            }
            return Ok(Transformed::yes(expr));
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let changed = meet(compared, schema);
    Ok(Transformed::new_transformed(expr, changed))
}

fn meet_in_case(case: &mut Case, schema: &DFSchema) -> bool {
    let ty = type_of_results(case, schema);
    let (whens, thens): (Vec<_>, Vec<_>) =
        case.when_then_expr.iter_mut().map(|(when, then)| (when.as_mut(), then.as_mut())).unzip();
    let results: Vec<&mut Expr> = thens.into_iter().chain(case.else_expr.as_deref_mut()).collect();
    let of_results = match &ty {
        Some(ty) => {
            for result in results {
                if result.get_type(schema).is_ok_and(|other| other != *ty) {
                    *result = cast(std::mem::take(result), ty.clone());
                }
            }
            true
        }
        None => meet(results, schema),
    };
    let of_values = match case.expr.as_deref_mut() {
        Some(subject) => meet_compared(std::iter::once(subject).chain(whens).collect(), schema),
        None => false,
    };
    of_results || of_values
}

/// Has what is compared meet; true if something changed.
fn meet_compared(compared: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    if intervals::has_interval(compared.iter().map(|expr| &**expr), schema) {
        intervals::compare_lengths(compared, schema);
        return true;
    }
    meet(compared, schema)
}

/// Gives values that meet one type where DataFusion would not; true if something changed.
fn meet(compared: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let typed = compared.into_iter().filter_map(|expr| expr.get_type(schema).ok().map(|ty| (expr, ty)));
    meet_typed(typed.collect())
}

/// The same of a value and the rows of a subquery that it is compared with.
fn meet_rows(value: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
    let rows = subquery.subquery.schema();
    let (Ok(ty), Some((table, field))) = (value.get_type(schema), rows.iter().next()) else { return Ok(false) };
    let row_ty = field.data_type().clone();
    let mut row = Expr::from((table, field));
    let are_intervals = [&ty, &row_ty].iter().any(|ty| matches!(ty, DataType::Interval(_)));
    let changed = if are_intervals {
        intervals::compare_lengths(vec![value], schema);
        intervals::compare_lengths(vec![&mut row], rows);
        true
    } else {
        meet_typed(vec![(value, ty), (&mut row, row_ty)])
    };
    if !matches!(row, Expr::Column(_)) {
        // Conditions that become those of a join may need its column, too, which then stands beside this one.
        let projection = Projection::try_new(vec![row.alias(ROW)], Arc::clone(&subquery.subquery))?;
        subquery.subquery = Arc::new(LogicalPlan::Projection(projection));
    }
    Ok(changed)
}

fn meet_typed(compared: Vec<(&mut Expr, DataType)>) -> bool {
    let meeting = meeting_type(compared.iter().map(|(_, ty)| ty));
    let time = meeting_time(compared.iter().map(|(_, ty)| ty));
    let has = |is: fn(&DataType) -> bool| compared.iter().any(|(_, ty)| is(ty));
    let (has_uuid, has_time) = (has(|ty| *ty == UUID), has(is_time));
    let mut changed = false;
    for (expr, ty) in compared {
        let with = match (&meeting, &time) {
            (Some(met), _) if becomes(&ty, met) => cast(std::mem::take(expr), met.clone()),
            _ if has_uuid && is_text(&ty) => UUID_OF_TEXT.call(vec![std::mem::take(expr)]),
            _ if has_time && is_text(&ty) => TIME_OF_TEXT.call(vec![std::mem::take(expr)]),
            (_, Some(time)) if is_text(&ty) => cast(std::mem::take(expr), time.clone()),
            _ => continue,
        };
        *expr = with;
        changed = true;
    }
    changed
}

/// Whether a cast leaves out digits of a decimal that is no constant.
fn rounds(cast: &Cast, schema: &DFSchema) -> bool {
    let scale = |ty: &DataType| match ty {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        _ => None,
    };
    if matches!(cast.expr.as_ref(), Expr::Literal(..)) {
        return false;
    }
    let (Ok(from), to) = (cast.expr.get_type(schema), cast.field.data_type()) else { return false };
    match (scale(&from), scale(to)) {
        (Some(from), Some(to)) => to < from,
        (Some(from), None) => from > 0 && to.is_integer(),
        _ => false,
    }
}

/// True for Arrow's types of text.
pub(crate) fn is_text(ty: &DataType) -> bool {
    matches!(ty, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}
