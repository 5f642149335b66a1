//! Which types meet in a comparison or a cast, where DataFusion's own answer is none or not SQL's.
//!
//! `0.5` is an exact decimal here, and DataFusion compares a float with a decimal as two decimals: `f > 0.5` would fail
//! at the first value beyond 10^15, at infinity and at NaN, and no block could be asked in its encoded form. As in
//! PostgreSQL and DuckDB the decimal becomes a float instead, of the same width; so it does where the results of CASE,
//! the arguments of COALESCE and its like, the entries of a list and the rows of set operations meet. (Rows of VALUES meet
//! before there is a plan, as DataFusion gives them a type when it makes one.)
//!
//! A cast of a decimal to fewer digits rounds. DataFusion compares what is cast, not rounded, with the constant on the
//! other side: of `CAST(d AS DECIMAL(9, 1)) = 6.5` it makes `d = 6.50`. So such a cast goes through a function that it does
//! not look through.
//!
//! UUIDs are sixteen bytes to DataFusion, which compares and casts them with bytes only. Here text on the other side is
//! read as a UUID. Runs before DataFusion's coercion.

use crate::scalar_subquery::PERHAPS;
use crate::uuid::{TEXT_OF_UUID, UUID, UUID_OF_TEXT};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::{NamePreserver, replace_col};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Cast, Expr, ExprSchemable, GroupingSet, Join, LogicalPlan, Projection, RecursiveQuery,
    ScalarUDF, Union, cast,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Begins the names of columns that would be called as keys are.
const OWN: &str = "__sinter_own";

/// Functions whose arguments meet in one type.
const MEETING: &[&str] = &["coalesce", "greatest", "least", "nullif", "nvl", "make_array"];

/// The rule.
#[derive(Debug)]
pub(crate) struct Coercion;

impl AnalyzerRule for Coercion {
    fn name(&self) -> &str {
        "sinter_coercion"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        // Some node has columns of other types than it had.
        let mut is_changed = false;
        let plan = plan.transform_up_with_subqueries(|plan| {
            let before = Arc::clone(plan.schema());
            let plan = match plan {
                LogicalPlan::Union(union) => with_floats(union, is_changed)?,
                LogicalPlan::RecursiveQuery(query) => {
                    Transformed::no(LogicalPlan::RecursiveQuery(with_types_of_work_table(query)?))
                }
                LogicalPlan::Join(join) => {
                    let join = LogicalPlan::Join(with_keys_of_floats(join)?);
                    Transformed::new_transformed(if is_changed { join.recompute_schema()? } else { join }, is_changed)
                }
                plan if is_changed => Transformed::yes(plan.recompute_schema()?),
                plan => Transformed::no(plan),
            };
            let plan = plan.transform_data(analyzed)?;
            is_changed |= plan.transformed && before.fields() != plan.data.schema().fields();
            Ok(plan)
        });
        Ok(plan?.data)
    }
}

/// A node with its own expressions rewritten.
fn analyzed(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = schema_below(&plan);
    if !has_such(&plan, &schema)? {
        return Ok(Transformed::no(plan));
    }
    let plan = match plan {
        LogicalPlan::Aggregate(aggregate) => LogicalPlan::Aggregate(with_keys_below(aggregate, &schema)?),
        plan => plan,
    };
    let names = NamePreserver::new(&plan);
    let changed = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(rewritten(expr, &schema)?.update_data(|expr| name.restore(expr)))
    })?;
    Ok(Transformed::yes(changed.data.recompute_schema()?))
}

fn rewritten(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| match &expr {
        Expr::Cast(cast) if rounds(cast, schema) => Ok(Transformed::yes(PERHAPS.call(vec![expr]))),
        _ => Ok(coerced(expr, schema)),
    })
}

/// Makes floats of the decimals that meet floats in a UNION, and gives it the types of its rows: DataFusion does so later, and
/// until then says those of the first input, from which it could not be told what meets in a UNION around it. Inputs by name
/// say what it says.
fn with_floats(mut union: Union, is_changed_below: bool) -> Result<Transformed<LogicalPlan>> {
    for input in union.inputs.iter_mut().filter(|input| matches!(***input, LogicalPlan::Projection(_))) {
        *input = Arc::new(input.as_ref().clone().recompute_schema()?);
    }
    let types_of = |column: usize| {
        let inputs = union.inputs.iter().map(move |input| input.schema().fields().get(column));
        inputs.flatten().map(|field| field.data_type())
    };
    let columns = 0..union.schema.fields().len();
    let floats: Vec<Option<DataType>> = columns
        .clone()
        .map(|column| types_of(column).find(|ty| is_float(ty)).filter(|_| types_of(column).any(DataType::is_decimal)))
        .map(Option::<&DataType>::cloned)
        .collect();
    let differ = |column: usize| types_of(column).any(|ty| ty != union.inputs[0].schema().field(column).data_type());
    if !is_changed_below && !columns.clone().any(differ) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let meets = floats.iter().any(Option::is_some);
    let with_floats = |input: &Arc<LogicalPlan>| {
        if !meets {
            return Ok(Arc::clone(input));
        }
        let columns = input.schema().iter().zip(&floats).map(|((table, field), float)| {
            let column = Expr::from((table, field));
            match float {
                Some(float) if field.data_type().is_decimal() => {
                    cast(column, float.clone()).alias_qualified(table.cloned(), field.name())
                }
                _ => column,
            }
        });
        let projection = Projection::try_new(columns.collect(), Arc::clone(input))?;
        Ok(Arc::new(LogicalPlan::Projection(projection)))
    };
    let inputs = union.inputs.iter().map(with_floats).collect::<Result<Vec<_>>>()?;
    let union = TypeCoercionRewriter::coerce_union(Union::try_new_with_loose_types(inputs)?)?;
    Ok(Transformed::yes(union))
}

/// Makes the first rows of a recursive query decimals again where its recursive part was planned with decimals.
fn with_types_of_work_table(mut query: RecursiveQuery) -> Result<RecursiveQuery> {
    let first = Arc::clone(query.static_term.schema());
    let is_other = |(new, old): (&FieldRef, &FieldRef)| is_float(new.data_type()) && old.data_type().is_decimal();
    if !first.fields().iter().zip(query.schema.fields()).any(is_other) {
        return Ok(query);
    }
    let columns = first.iter().zip(query.schema.fields()).map(|((table, field), old)| {
        let column = Expr::from((table, field));
        match is_other((field, old)) {
            true => cast(column, old.data_type().clone()).alias_qualified(table.cloned(), field.name()),
            false => column,
        }
    });
    let projection = Projection::try_new(columns.collect(), Arc::clone(&query.static_term))?;
    query.static_term = Arc::new(LogicalPlan::Projection(projection));
    Ok(query)
}

/// Makes floats of the decimals among the keys of a join that meet floats: in it, the rows of INTERSECT and EXCEPT meet.
fn with_keys_of_floats(mut join: Join) -> Result<Join> {
    for (left, right) in &mut join.on {
        let types = (left.get_type(join.left.schema()), right.get_type(join.right.schema()));
        match types {
            (Ok(ty), Ok(float)) if ty.is_decimal() && is_float(&float) => *left = cast(std::mem::take(left), float),
            (Ok(float), Ok(ty)) if ty.is_decimal() && is_float(&float) => *right = cast(std::mem::take(right), float),
            _ => {}
        }
    }
    Ok(join)
}

fn is_float(ty: &DataType) -> bool {
    matches!(ty, DataType::Float32 | DataType::Float64)
}

/// Computes those keys of GROUPING SETS below them that the rule changes. In the sets they become columns of the same
/// names: `grouping(x)` looks for `x` there, and a set cannot have another name than its own.
fn with_keys_below(aggregate: Aggregate, schema: &DFSchema) -> Result<Aggregate> {
    let sets = aggregate.group_expr.iter().filter_map(|expr| match expr {
        Expr::GroupingSet(sets) => Some(sets),
        _ => None,
    });
    let mut keys: Vec<Expr> = Vec::new();
    for key in sets.flat_map(GroupingSet::distinct_expr) {
        if key.exists(|expr| Ok(is_such(expr, schema)))? && !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    if keys.is_empty() {
        return Ok(aggregate);
    }
    let columns = |exprs: Vec<Expr>| -> Result<Vec<Expr>> {
        let column = |expr: Expr| {
            let is_key = keys.contains(&expr);
            let name = is_key.then(|| Expr::Column(Column::new_unqualified(expr.schema_name().to_string())));
            Ok(name.map_or(Transformed::no(expr), Transformed::yes))
        };
        exprs.into_iter().map(|expr| Ok(expr.transform_down(column)?.data)).collect()
    };
    let mut other_keys: HashSet<Column> = HashSet::new();
    for key in &aggregate.group_expr {
        let within = match key {
            Expr::GroupingSet(sets) => sets.distinct_expr(),
            key => vec![key],
        };
        other_keys.extend(within.into_iter().filter(|key| !keys.contains(key)).flat_map(Expr::column_refs).cloned());
    }
    let (group_expr, mut aggr_expr) = (columns(aggregate.group_expr)?, columns(aggregate.aggr_expr)?);
    let mut below = Vec::new();
    for key in &keys {
        below.push(rewritten(key.clone(), schema)?.data.alias(key.schema_name().to_string()));
    }
    for column in aggregate.input.schema().columns() {
        // `CAST(t.d AS ...)` is called as `t.d` is, and some of DataFusion's rules then take one for the other.
        let is_called_alike = keys.iter().any(|key| key.schema_name().to_string() == column.flat_name());
        let is_kept = other_keys.contains(&column) || aggr_expr.iter().any(|call| asks_within(call, &column));
        if !is_called_alike || is_kept {
            below.push(Expr::Column(column));
            continue;
        }
        let own = Column::new_unqualified(format!("{OWN} {}", column.flat_name()));
        let names = NamePreserver::new_for_projection();
        for call in &mut aggr_expr {
            let name = names.save(call);
            *call = name.restore(replace_col(std::mem::take(call), &HashMap::from([(&column, &own)]))?);
        }
        below.push(Expr::Column(column).alias(own.name));
    }
    let input = LogicalPlan::Projection(Projection::try_new(below, aggregate.input)?);
    Aggregate::try_new(Arc::new(input), group_expr, aggr_expr)
}

/// Whether a subquery within an expression asks for a column of the rows around it.
fn asks_within(expr: &Expr, column: &Column) -> bool {
    let asks = |expr: &Expr| {
        let subquery = match expr {
            Expr::Exists(exists) => &exists.subquery,
            Expr::InSubquery(found) => &found.subquery,
            Expr::ScalarSubquery(subquery) => subquery,
            _ => return Ok(false),
        };
        let mut outer = subquery.outer_ref_columns.iter();
        Ok(outer.any(|outer| matches!(outer, Expr::OuterReferenceColumn(_, asked) if asked == column)))
    };
    expr.exists(asks).unwrap_or(true)
}

/// The columns that a node's expressions are about.
fn schema_below(plan: &LogicalPlan) -> Arc<DFSchema> {
    match &plan.inputs()[..] {
        [only] => Arc::clone(only.schema()),
        inputs => Arc::new(merge_schema(inputs)),
    }
}

/// Whether something in a node's expressions is to change. To look is cheaper than to make all of them anew.
fn has_such(plan: &LogicalPlan, schema: &DFSchema) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found = found || expr.exists(|expr| Ok(is_such(expr, schema)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether the rule changes an expression.
fn is_such(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Cast(cast) => {
            let to = cast.field.data_type();
            rounds(cast, schema) || (*to == UUID || is_text(to)) && function_for(cast, schema).is_some()
        }
        Expr::BinaryExpr(binary) if binary.op.supports_propagation() => {
            is_backwards(binary) || differ([&*binary.left, &*binary.right], schema)
        }
        Expr::Between(between) => differ([&*between.expr, &*between.low, &*between.high], schema),
        Expr::InList(list) => differ(std::iter::once(&*list.expr).chain(&list.list), schema),
        Expr::Case(case) => {
            let results = case.when_then_expr.iter().map(|(_, then)| &**then).chain(case.else_expr.as_deref());
            let values = case
                .expr
                .as_deref()
                .map(|subject| std::iter::once(subject).chain(case.when_then_expr.iter().map(|(when, _)| &**when)));
            differ(results, schema) || values.is_some_and(|values| differ(values, schema))
        }
        Expr::ScalarFunction(call) if MEETING.contains(&call.name()) => differ(&call.args, schema),
        _ => false,
    }
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

/// Whether [`meet`] changes one of these.
fn differ<'a>(compared: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> bool {
    let (mut float, mut decimal, mut uuid, mut text) = (false, false, false, false);
    for ty in compared.into_iter().filter_map(|expr| expr.get_type(schema).ok()) {
        float |= is_float(&ty);
        decimal |= ty.is_decimal();
        uuid |= ty == UUID;
        text |= is_text(&ty);
    }
    (float && decimal) || (uuid && text)
}

/// What casts to or from a UUID instead of a cast; `None` for all others.
fn function_for(cast: &Cast, schema: &DFSchema) -> Option<&'static ScalarUDF> {
    let (from, to) = (cast.expr.get_type(schema).ok()?, cast.field.data_type());
    match from {
        from if is_text(&from) && *to == UUID => Some(&*UUID_OF_TEXT),
        from if from == UUID && is_text(to) => Some(&*TEXT_OF_UUID),
        _ => None,
    }
}

fn coerced(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let compared: Vec<&mut Expr> = match &mut expr {
        Expr::Cast(cast) => {
            let Some(function) = function_for(cast, schema) else { return Transformed::no(expr) };
            return Transformed::yes(function.call(vec![std::mem::take(cast.expr.as_mut())]));
        }
        Expr::BinaryExpr(binary) if is_backwards(binary) => {
            std::mem::swap(&mut binary.left, &mut binary.right);
            binary.op = binary.op.swap().unwrap_or(binary.op);
            meet(vec![&mut binary.left, &mut binary.right], schema);
            return Transformed::yes(expr);
        }
        Expr::BinaryExpr(binary) if binary.op.supports_propagation() => vec![&mut binary.left, &mut binary.right],
        Expr::Between(between) => vec![&mut between.expr, &mut between.low, &mut between.high],
        Expr::InList(list) => std::iter::once(list.expr.as_mut()).chain(&mut list.list).collect(),
        Expr::Case(case) => {
            let (whens, thens): (Vec<_>, Vec<_>) =
                case.when_then_expr.iter_mut().map(|(when, then)| (when.as_mut(), then.as_mut())).unzip();
            let results = thens.into_iter().chain(case.else_expr.as_deref_mut()).collect();
            let of_results = meet(results, schema);
            let of_values = match case.expr.as_deref_mut() {
                Some(subject) => meet(std::iter::once(subject).chain(whens).collect(), schema),
                None => false,
            };
            return Transformed::new_transformed(expr, of_results || of_values);
        }
        Expr::ScalarFunction(call) if MEETING.contains(&call.name()) => call.args.iter_mut().collect(),
        _ => return Transformed::no(expr),
    };
    let changed = meet(compared, schema);
    Transformed::new_transformed(expr, changed)
}

/// Gives values that meet one type where DataFusion would not; true if something changed.
fn meet(mut compared: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let types: Vec<Option<DataType>> = compared.iter().map(|expr| expr.get_type(schema).ok()).collect();
    let float = types.iter().flatten().find(|ty| is_float(ty)).cloned();
    let has_uuid = types.iter().flatten().any(|ty| *ty == UUID);
    let mut changed = false;
    for (expr, ty) in compared.iter_mut().zip(&types) {
        let with = match (ty, &float) {
            (Some(ty), Some(float)) if ty.is_decimal() => cast(std::mem::take(*expr), float.clone()),
            (Some(ty), _) if has_uuid && is_text(ty) => UUID_OF_TEXT.call(vec![std::mem::take(*expr)]),
            _ => continue,
        };
        **expr = with;
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
