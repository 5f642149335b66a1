//! Which types rows of several inputs meet in: of set operations, and of the two parts of recursive queries.

use super::{becomes, is_float, meeting_type};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan, Projection, RecursiveQuery, Union, cast};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;
use std::sync::Arc;

/// Makes floats of the decimals that meet floats in a UNION, and timestamps of such dates, and gives it the types of its rows: DataFusion does so later, and
/// until then says those of the first input, from which it could not be told what meets in a UNION around it. Inputs by name
/// say what it says.
pub(super) fn of_union(mut union: Union, is_changed_below: bool) -> Result<Transformed<LogicalPlan>> {
    for input in union.inputs.iter_mut().filter(|input| matches!(***input, LogicalPlan::Projection(_))) {
        *input = Arc::new(input.as_ref().clone().recompute_schema()?);
    }
    let types_of = |column: usize| {
        let inputs = union.inputs.iter().map(move |input| input.schema().fields().get(column));
        inputs.flatten().map(|field| field.data_type())
    };
    let columns = 0..union.schema.fields().len();
    let met: Vec<Option<DataType>> = columns.clone().map(|column| meeting_type(types_of(column))).collect();
    let differ = |column: usize| types_of(column).any(|ty| ty != union.inputs[0].schema().field(column).data_type());
    if !is_changed_below && !columns.clone().any(differ) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let meets = met.iter().any(Option::is_some);
    let with_types = |input: &Arc<LogicalPlan>| {
        if !meets {
            return Ok(Arc::clone(input));
        }
        let columns = input.schema().iter().zip(&met).map(|((table, field), met)| {
            let column = Expr::from((table, field));
            match met {
                Some(met) if becomes(field.data_type(), met) => {
                    cast(column, met.clone()).alias_qualified(table.cloned(), field.name())
                }
                _ => column,
            }
        });
        let projection = Projection::try_new(columns.collect(), Arc::clone(input))?;
        Ok(Arc::new(LogicalPlan::Projection(projection)))
    };
    let inputs = union.inputs.iter().map(with_types).collect::<Result<Vec<_>>>()?;
    let union = TypeCoercionRewriter::coerce_union(Union::try_new_with_loose_types(inputs)?)?;
    Ok(Transformed::yes(union))
}

/// Makes the first rows of a recursive query decimals again where its recursive part was planned with decimals.
///
/// # Errors
/// Where it was planned with integers, which would lose digits.
pub(super) fn of_recursive_query(mut query: RecursiveQuery) -> Result<RecursiveQuery> {
    let first = Arc::clone(query.static_term.schema());
    for (new, old) in first.fields().iter().zip(query.schema.fields()) {
        if old.data_type().is_integer() && (new.data_type().is_decimal() || is_float(new.data_type())) {
            return plan_err!(
                "the first rows of a recursive query have a column {} of integers and other numbers; cast them to one type",
                new.name()
            );
        }
    }
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

/// Makes floats of the decimals among the keys of a join that meet floats, and timestamps of such dates: in it, the rows of INTERSECT and EXCEPT meet.
pub(super) fn of_join(mut join: Join) -> Result<Join> {
    for (left, right) in &mut join.on {
        let types = (left.get_type(join.left.schema()), right.get_type(join.right.schema()));
        let (Ok(left_type), Ok(right_type)) = types else { continue };
        match meeting_type([&left_type, &right_type]) {
            Some(met) if becomes(&left_type, &met) => *left = cast(std::mem::take(left), met),
            Some(met) => *right = cast(std::mem::take(right), met),
            None => {}
        }
    }
    Ok(join)
}
