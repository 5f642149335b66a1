//! DataFusion's aggregate calls as ours.

use super::expr::{Scope, argument_type, is_number};
use crate::foreign_aggregate::AggregateCall;
use arrow::datatypes::DataType;
use datafusion::logical_expr::expr::AggregateFunction as DfAggregateFunction;
use datafusion::logical_expr::{Expr as DfExpr, ExprSchemable};
use sinter_exec::{Aggregate, AggregateFunction, Expr, ForeignCall, LogicalType, Output, edge};
use std::sync::Arc;

/// The aggregate in our terms; `None` where only DataFusion can run it.
pub(crate) fn lower(expr: &DfExpr, scope: &Scope<'_>) -> Option<Aggregate> {
    let call = match expr {
        DfExpr::Alias(alias) => return lower(&alias.expr, scope),
        DfExpr::AggregateFunction(call) => call,
        _ => return None,
    };
    let ty = edge::logical_type(&expr.get_type(scope.schema).ok()?)?;
    let filter = match &call.params.filter {
        Some(filter) => Some(scope.lower(filter)?),
        None => None,
    };
    let (function, argument) = match own(call, scope) {
        Some(own) => own,
        None => (AggregateFunction::Foreign(foreign(call, &ty, scope)?), None),
    };
    Some(Aggregate { function, argument, filter, ty })
}

/// What makes these aggregates of rows, by groups where there are keys.
pub(super) fn output(keys: Vec<Expr>, aggregates: Vec<Aggregate>) -> Output {
    let are_of_groups = aggregates.iter().any(|aggregate| aggregate.function.is_of_groups());
    match keys.is_empty() && !are_of_groups {
        true => Output::Aggregate(aggregates),
        false => Output::Groups { keys, aggregates },
    }
}

/// The function as one of the engine, with its argument; `None` for functions and forms that it has not got.
fn own(call: &DfAggregateFunction, scope: &Scope<'_>) -> Option<(AggregateFunction, Option<Expr>)> {
    let params = &call.params;
    if !params.order_by.is_empty() || params.null_treatment.is_some() {
        return None;
    }
    let [argument] = &params.args[..] else { return None };
    let function = match call.func.name() {
        "count" if matches!(argument, DfExpr::Literal(value, _) if !value.is_null()) => AggregateFunction::CountStar,
        "count" => AggregateFunction::Count,
        "sum" => AggregateFunction::Sum,
        "min" | "bool_and" => AggregateFunction::Min,
        "max" | "bool_or" => AggregateFunction::Max,
        "avg" => AggregateFunction::Average,
        "var" => AggregateFunction::Variance { of_sample: true },
        "var_pop" => AggregateFunction::Variance { of_sample: false },
        "stddev" => AggregateFunction::Deviation { of_sample: true },
        "stddev_pop" => AggregateFunction::Deviation { of_sample: false },
        _ => return None,
    };
    let function = match function {
        AggregateFunction::CountStar if !params.distinct => return Some((function, None)),
        AggregateFunction::CountStar => AggregateFunction::Distinct(Box::new(AggregateFunction::Count)),
        AggregateFunction::Count | AggregateFunction::Sum | AggregateFunction::Average if params.distinct => {
            AggregateFunction::Distinct(Box::new(function))
        }
        AggregateFunction::Variance { .. } | AggregateFunction::Deviation { .. } if params.distinct => return None,
        _ => function,
    };
    let argument = match function {
        AggregateFunction::Variance { .. } | AggregateFunction::Deviation { .. } => uncast(argument, scope),
        _ => argument,
    };
    let argument_type = scope.type_of(argument)?;
    argument_type.physical()?;
    if argument_type == LogicalType::Interval {
        return None;
    }
    Some((function, Some(scope.lower(argument)?)))
}

/// The number that was cast to a float, as variances want floats; the engine's are as well of any numbers.
fn uncast<'a>(argument: &'a DfExpr, scope: &Scope<'_>) -> &'a DfExpr {
    let DfExpr::Cast(cast) = argument else { return argument };
    let is_number = scope.type_of(&cast.expr).is_some_and(|ty| is_number(&ty));
    if is_number { &cast.expr } else { argument }
}

/// The call as one into DataFusion. Literals stay what they are: some functions want to know them beforehand.
fn foreign(call: &DfAggregateFunction, ty: &LogicalType, scope: &Scope<'_>) -> Option<ForeignCall> {
    let order = call.params.order_by.iter().map(|order| &order.expr);
    let mut columns: Vec<(&DfExpr, DataType)> = Vec::new();
    let mut arguments = Vec::new();
    for expr in call.params.args.iter().chain(order) {
        let is_known = columns.iter().any(|(known, _)| *known == expr);
        if !is_known && !matches!(expr, DfExpr::Literal(..)) {
            columns.push((expr, argument_type(&expr.get_type(scope.schema).ok()?)?));
            arguments.push(scope.lower(expr)?);
        }
    }
    let function = AggregateCall::new(call, &columns, scope.schema, ty)?;
    Some(ForeignCall { function: Arc::new(function), arguments })
}
