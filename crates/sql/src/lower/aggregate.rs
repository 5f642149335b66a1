//! DataFusion's aggregate calls as ours.

use super::expr::Scope;
use datafusion::logical_expr::{Expr as DfExpr, ExprSchemable};
use sinter_exec::{Aggregate, AggregateFunction, LogicalType, edge};

/// The aggregate in our terms; `None` for functions and forms that the engine has not got.
pub(crate) fn lower(expr: &DfExpr, scope: &Scope<'_>) -> Option<Aggregate> {
    let call = match expr {
        DfExpr::Alias(alias) => return lower(&alias.expr, scope),
        DfExpr::AggregateFunction(call) => call,
        _ => return None,
    };
    let params = &call.params;
    if !params.order_by.is_empty() || params.null_treatment.is_some() {
        return None;
    }
    let [argument] = &params.args[..] else { return None };
    let ty = edge::logical_type(&expr.get_type(scope.schema).ok()?)?;
    let function = match call.func.name() {
        "count" if matches!(argument, DfExpr::Literal(value, _) if !value.is_null()) => AggregateFunction::CountStar,
        "count" => AggregateFunction::Count,
        "sum" => AggregateFunction::Sum,
        "min" => AggregateFunction::Min,
        "max" => AggregateFunction::Max,
        "avg" => AggregateFunction::Average,
        _ => return None,
    };
    let duplicates_matter = !matches!(function, AggregateFunction::Min | AggregateFunction::Max);
    if params.distinct && duplicates_matter {
        return None;
    }
    let argument = match function {
        AggregateFunction::CountStar => None,
        _ => {
            let argument_type = scope.type_of(argument)?;
            argument_type.physical()?;
            if argument_type == LogicalType::Interval {
                return None;
            }
            Some(scope.lower(argument)?)
        }
    };
    let filter = match &params.filter {
        Some(filter) => Some(scope.lower(filter)?),
        None => None,
    };
    Some(Aggregate { function, argument, filter, ty })
}
