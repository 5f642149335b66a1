//! Scalar subqueries of no row are NULL, also where their column is declared NOT NULL.
//!
//! DataFusion takes a scalar subquery for as NOT NULL as the column that it selects: `(SELECT id FROM t WHERE ...) IS NULL`
//! would be false before any row is looked for. What may come out of no row goes through a function here that gives back
//! what it gets, but of which nobody knows that it is not NULL.

use crate::optimize::Contents;
use crate::walk::{WalkPlan, WalkTree};
use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Distinct, Expr, FetchType, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, SkipType, Subquery, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::{Arc, LazyLock};

/// The function. Where rows are made by our engine, which does not care, nothing is called.
pub(crate) static PERHAPS: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(Perhaps { signature: Signature::any(1, Volatility::Immutable) })));

/// The rule.
#[derive(Debug)]
pub(crate) struct NoRowIsNull;

impl AnalyzerRule for NoRowIsNull {
    fn name(&self) -> &str {
        "sinter_no_row_is_null"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        each_scalar_subquery(plan, |subquery| match promises_too_much(&subquery.subquery) {
            true => perhaps(subquery).map(Expr::ScalarSubquery),
            false => Ok(Expr::ScalarSubquery(subquery)),
        })
    }
}

/// Puts something in the place of each scalar subquery of a plan, inner ones first; names stay.
pub(crate) fn each_scalar_subquery(
    plan: LogicalPlan,
    replacement: impl Fn(Subquery) -> Result<Expr>,
) -> Result<LogicalPlan> {
    if !Contents::of(&plan)?.subqueries {
        return Ok(plan);
    }
    let plan = plan.rewrite_up_with_subqueries(&mut |plan| {
        let names = NamePreserver::new(&plan);
        plan.rewrite_exprs(&mut |expr| {
            let name = names.save(&expr);
            let expr = expr.rewrite_up(&mut |expr| match expr {
                Expr::ScalarSubquery(subquery) => replacement(subquery).map(Transformed::yes),
                expr => Ok(Transformed::no(expr)),
            })?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        })
    });
    Ok(plan?.data)
}

/// Whether the one column of a subquery is NOT NULL, and there may be no row of it.
fn promises_too_much(plan: &LogicalPlan) -> bool {
    let is_nullable = plan.schema().fields().first().is_none_or(|field| field.is_nullable());
    !is_nullable && !has_a_row(plan)
}

/// Whether a plan always has one row: aggregates without keys, with nothing on top that drops it.
pub(crate) fn has_a_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => has_a_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_a_row(&alias.input),
        LogicalPlan::Distinct(Distinct::All(input)) => has_a_row(input),
        LogicalPlan::Sort(sort) if sort.fetch != Some(0) => has_a_row(&sort.input),
        LogicalPlan::Limit(limit) => {
            let keeps = matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)))
                && matches!(limit.get_fetch_type(), Ok(FetchType::Literal(fetch)) if fetch != Some(0));
            keeps && has_a_row(&limit.input)
        }
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        _ => false,
    }
}

fn perhaps(subquery: Subquery) -> Result<Subquery> {
    let plan = Arc::unwrap_or_clone(subquery.subquery);
    let (qualifier, field) = plan.schema().qualified_field(0);
    let value = PERHAPS.call(vec![Expr::from((qualifier, field))]).alias(field.name());
    let plan = LogicalPlanBuilder::from(plan).project([value])?.build()?;
    Ok(Subquery { subquery: Arc::new(plan), ..subquery })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Perhaps {
    signature: Signature,
}

impl ScalarUDFImpl for Perhaps {
    fn name(&self) -> &str {
        "perhaps"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [only] => Ok(only.clone()),
            _ => internal_err!("perhaps of {} values", types.len()),
        }
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match arguments.args.pop() {
            Some(only) => Ok(only),
            None => internal_err!("perhaps of no value"),
        }
    }
}
