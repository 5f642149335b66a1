//! Correlated scalar subqueries that no aggregate makes of one row: `(SELECT name FROM t WHERE t.k = o.k)`.
//!
//! DataFusion makes joins only of those that are aggregates. So each becomes two: the value, and the number of rows that
//! have it. A function gives back the value, and fails where there are several. It stands outside of the subqueries, since
//! what is wrong with rows that nobody asks for is no error. Of `ORDER BY ... LIMIT 1` the first value in that order is
//! taken, and there is nothing to count.

use crate::correlation::outer_columns;
use crate::dependent_join::has_one_row_at_most;
use crate::scalar_subquery::{each_scalar_subquery, has_a_row};
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::functions_aggregate::count::count_all;
use datafusion::functions_aggregate::first_last::first_value;
use datafusion::functions_aggregate::min_max::min;
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{
    ColumnarValue, Expr, FetchType, Limit, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, SkipType, Subquery, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::{Arc, LazyLock};

/// Gives back its first argument, and fails where its second one, a number of rows, is more than 1.
static ONLY: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(Only { signature: Signature::any(2, Volatility::Immutable) })));

/// The rule.
#[derive(Debug)]
pub(crate) struct OnlyRow;

impl AnalyzerRule for OnlyRow {
    fn name(&self) -> &str {
        "sinter_only_row"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        each_scalar_subquery(plan, |subquery| match may_have_rows(&subquery) {
            true => of_one_row(subquery),
            false => Ok(Expr::ScalarSubquery(subquery)),
        })
    }
}

/// Whether a subquery is one that DataFusion makes no join of: it refers to the rows around it, and may have several.
fn may_have_rows(subquery: &Subquery) -> bool {
    let plan = &subquery.subquery;
    let is_limited = matches!(plan.as_ref(), LogicalPlan::Limit(_));
    !outer_columns(plan).is_empty() && !has_a_row(plan) && (is_limited || !has_one_row_at_most(plan).unwrap_or(false))
}

/// The value of the subquery's one row.
fn of_one_row(subquery: Subquery) -> Result<Expr> {
    let with = |plan| Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery.clone() });
    let plan = subquery.subquery.as_ref();
    if let LogicalPlan::Limit(limit) = plan {
        return match first_of(limit)? {
            Some(first) => Ok(with(first)),
            None => Ok(Expr::ScalarSubquery(subquery)),
        };
    }
    let value = Expr::from(plan.schema().qualified_field(0));
    let is_ordered = !plan.schema().field(0).data_type().is_nested();
    let value = if is_ordered { min(value) } else { first_value(value, Vec::new()) };
    let (value, rows) = (aggregated(plan, plan, value)?, aggregated(plan, plan, count_all())?);
    Ok(ONLY.call(vec![with(value), with(rows)]))
}

/// An aggregate of `input`, under the name that the value of `plan` has.
fn aggregated(plan: &LogicalPlan, input: &LogicalPlan, call: Expr) -> Result<LogicalPlan> {
    const VALUE: &str = "__sinter_only";
    let name = plan.schema().field(0).name();
    let value = Expr::Column(VALUE.into()).alias(name);
    let grouped = LogicalPlanBuilder::from(input.clone()).aggregate(Vec::<Expr>::new(), [call.alias(VALUE)])?;
    grouped.project([value])?.build()
}

/// The first value of what a LIMIT of one row is on; `None` where it is another one.
fn first_of(limit: &Limit) -> Result<Option<LogicalPlan>> {
    let is_one = matches!(limit.get_skip_type()?, SkipType::Literal(0))
        && matches!(limit.get_fetch_type()?, FetchType::Literal(Some(1)));
    if !is_one {
        return Ok(None);
    }
    let plan = limit.input.as_ref();
    let (value, ordered) = match plan {
        LogicalPlan::Projection(projection) => match projection.input.as_ref() {
            // What it is ordered by is not selected.
            sort @ LogicalPlan::Sort(_) => (projection.expr[0].clone().unalias(), sort),
            _ => (Expr::from(plan.schema().qualified_field(0)), plan),
        },
        _ => (Expr::from(plan.schema().qualified_field(0)), plan),
    };
    let (order, input): (Vec<Sort>, &LogicalPlan) = match ordered {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => (sort.expr.clone(), &sort.input),
        other => (Vec::new(), other),
    };
    if value.contains_outer() || order.iter().any(|order| order.expr.contains_outer()) {
        return Ok(None);
    }
    aggregated(plan, input, first_value(value, order)).map(Some)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Only {
    signature: Signature,
}

impl ScalarUDFImpl for Only {
    fn name(&self) -> &str {
        "only"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [value, _] => Ok(value.clone()),
            _ => internal_err!("only of {} values", types.len()),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let Ok([value, count]) = <[ColumnarValue; 2]>::try_from(arguments.args) else {
            return internal_err!("only takes two values");
        };
        let counts = count.into_array(rows)?;
        let Some(counts) = counts.as_primitive_opt::<Int64Type>() else {
            return internal_err!("only of rows that are no number");
        };
        if counts.iter().flatten().any(|count| count > 1) {
            return exec_err!(
                "a subquery that stands for one value has several rows for one of the rows around it; take one of them \
                 by LIMIT 1 or an aggregate such as max"
            );
        }
        Ok(value)
    }
}
