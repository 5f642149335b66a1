//! Expressions with their constants computed and their conditions made simple, in place of DataFusion's `SimplifyExpressions`.
//!
//! DataFusion's simplifier is right about a single comparison, and wrong in many ways about several: `x NOT IN (1) OR
//! x NOT IN (2)` becomes true, though it is NULL where `x` is, `CASE WHEN n = 1 THEN true ELSE 10 / (n - 1) > 3 END` divides
//! by zero, and more of the kind comes with comparisons that become lists on the way. So AND, OR, NOT and CASE between
//! conditions are made simple here ([`conditions`]), and its simplifier is given one condition at a time. What else it must
//! not look into it sees as a column ([`hidden`]).

mod conditions;
mod hidden;

use self::conditions::{Chain, negated};
use self::hidden::Hidden;
use crate::walk::{WalkPlan, WalkTree};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, Result, ScalarValue};
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The name of DataFusion's rule.
pub(crate) const SIMPLIFY: &str = "simplify_expressions";

/// The rule.
#[derive(Debug)]
pub(crate) struct Simplify {
    /// DataFusion's, which knows what aggregates can be made of others.
    pub(crate) of_aggregates: Arc<dyn OptimizerRule + Send + Sync>,
}

impl OptimizerRule for Simplify {
    fn name(&self) -> &str {
        SIMPLIFY
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if matches!(plan, LogicalPlan::Aggregate(_)) && !has_conditions_or_bits(&plan)? {
            return self.of_aggregates.rewrite(plan, config);
        }
        let simplifier = Simplifier::new(&plan, config)?;
        let preserver = NamePreserver::new(&plan);
        let mut simplify = |expr: Expr| {
            let name = preserver.save(&expr);
            Ok(Transformed::yes(name.restore(simplifier.simplify(expr)?)))
        };
        plan.rewrite_exprs(&mut |expr| match expr {
            // The sets are no values.
            Expr::GroupingSet(_) => hidden::with_children(expr, &mut simplify),
            expr => simplify(expr),
        })
    }
}

/// Whether a node's expressions have something that DataFusion's rule may get wrong; any CASE may be a condition.
fn has_conditions_or_bits(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.visit_exprs(&mut |expr| {
        found |= expr.any(&mut |expr| Ok(is_condition(expr) || is_of_bits(expr) || matches!(expr, Expr::Case(_))))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Makes the expressions of one node simple.
struct Simplifier {
    schema: DFSchemaRef,
    context: SimplifyContext,
    /// Whether constants may change sides.
    may_swap: bool,
}

impl Simplifier {
    fn new(plan: &LogicalPlan, config: &dyn OptimizerConfig) -> Result<Simplifier> {
        let schema = match plan {
            // Its filters see all columns.
            LogicalPlan::TableScan(scan) => {
                DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?
            }
            plan => merge_schema(&plan.inputs()),
        };
        let schema = Arc::new(schema);
        let context = SimplifyContext::builder()
            .with_schema(Arc::clone(&schema))
            .with_config_options(config.options())
            .with_query_execution_start_time(config.query_execution_start_time())
            .build();
        // The sides of a join's keys are those of its inputs.
        Ok(Simplifier { schema, context, may_swap: !matches!(plan, LogicalPlan::Join(_)) })
    }

    /// What DataFusion's simplifier is told where columns are those of another schema.
    fn with_schema(&self, schema: DFSchemaRef) -> SimplifyContext {
        SimplifyContext::builder()
            .with_schema(schema)
            .with_config_options(Arc::clone(self.context.config_options()))
            .with_query_execution_start_time(self.context.query_execution_start_time())
            .build()
    }

    fn simplify(&self, expr: Expr) -> Result<Expr> {
        match expr {
            Expr::Alias(mut alias) => {
                alias.expr = Box::new(self.simplify(*alias.expr)?);
                Ok(Expr::Alias(alias))
            }
            Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
                let parts = conditions::split(expr, op);
                Chain::of(op).joined(parts.into_iter().map(|part| self.simplify(part)).collect::<Result<_>>()?)
            }
            Expr::Not(inner) => negated(self.simplify(*inner)?),
            Expr::Case(case) if self.is_condition_by_case(&case)? => self.case(case),
            Expr::ScalarFunction(call) if self.is_condition_by_call(&call)? => self.call(call),
            expr => self.by_datafusion(expr),
        }
    }

    /// A condition of branches, each of which is asked where it is come to, and nowhere else.
    fn case(&self, case: Case) -> Result<Expr> {
        let (mut branches, mut otherwise) = (Vec::new(), case.else_expr);
        for (when, then) in case.when_then_expr {
            match self.simplify(*when)? {
                Expr::Literal(ScalarValue::Boolean(Some(true)), _) => {
                    otherwise = Some(then);
                    break;
                }
                Expr::Literal(..) => {}
                when => branches.push((Box::new(when), Box::new(self.simplify(*then)?))),
            }
        }
        let otherwise = otherwise.map(|expr| self.simplify(*expr)).transpose()?;
        if branches.is_empty() {
            return Ok(otherwise.unwrap_or_else(|| lit(ScalarValue::Boolean(None))));
        }
        Ok(Expr::Case(Case { expr: None, when_then_expr: branches, else_expr: otherwise.map(Box::new) }))
    }

    /// `coalesce` of conditions and its like, which are CASEs by another name.
    fn call(&self, call: ScalarFunction) -> Result<Expr> {
        match call.func.simplify(call.args, &self.context)? {
            ExprSimplifyResult::Simplified(Expr::Case(case)) => self.simplify(Expr::Case(case)),
            ExprSimplifyResult::Simplified(expr) => self.by_datafusion(expr),
            ExprSimplifyResult::Original(args) => {
                self.by_datafusion(Expr::ScalarFunction(ScalarFunction { func: call.func, args }))
            }
        }
    }

    /// Whether a call is a condition that may not come to all of its arguments.
    fn is_condition_by_call(&self, call: &ScalarFunction) -> Result<bool> {
        let Some(argument) = call.args.last() else { return Ok(false) };
        Ok(call.func.short_circuits() && argument.get_type(&self.schema)? == DataType::Boolean)
    }

    /// Whether a CASE is a condition.
    fn is_condition_by_case(&self, case: &Case) -> Result<bool> {
        let Some((_, then)) = case.when_then_expr.first() else { return Ok(false) };
        Ok(case.expr.is_none() && then.get_type(&self.schema)? == DataType::Boolean)
    }

    /// What DataFusion makes of an expression that is neither of AND, OR and NOT nor a CASE between conditions.
    fn by_datafusion(&self, mut expr: Expr) -> Result<Expr> {
        if is_simple(&expr) {
            return Ok(expr);
        }
        if matches!(expr, Expr::AggregateFunction(_) | Expr::WindowFunction(_)) {
            // What they make of themselves is faster at best, and may be of another kind, which a node would have to fit.
            let with_simple = hidden::with_children(expr, &mut |expr| Ok(Transformed::yes(self.simplify(expr)?)))?;
            return Ok(with_simple.data);
        }
        if let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &mut expr
            && is_by_regex(*op)
        {
            **right = self.simplify(std::mem::take(&mut **right))?;
            if !becomes_like(right) {
                **left = self.simplify(std::mem::take(&mut **left))?;
                return Ok(expr);
            }
        }
        let mut hidden = Hidden::default();
        let mut is_whole = true;
        let seen = expr.rewrite_down(&mut |expr| {
            let is_part = !std::mem::replace(&mut is_whole, false);
            if is_part && self.is_condition(&expr)? {
                let column = hidden.hide(self.simplify(expr)?);
                return Ok(Transformed::new(column, true, TreeNodeRecursion::Jump));
            }
            Ok(Transformed::yes(self.with_hidden(expr, &mut hidden)?))
        })?;
        // Of one of few values, DataFusion makes a comparison with each; what is hidden would be computed for each.
        if let Expr::InList(list) = &seen.data
            && Hidden::has(&list.expr)
            && list.list.len() > 1
            && list.list.iter().all(|value| matches!(value, Expr::Literal(..)))
        {
            return conditions::regrouped(hidden.put_back(seen.data)?);
        }
        let context = match hidden.schema(&self.schema)? {
            None => self.context.clone(),
            Some(schema) => self.with_schema(Arc::new(schema)),
        };
        let simplified = ExprSimplifier::new(context).with_canonicalize(self.may_swap).simplify(seen.data)?;
        conditions::regrouped(hidden.put_back(simplified)?)
    }

    fn is_condition(&self, expr: &Expr) -> Result<bool> {
        match expr {
            Expr::Case(case) => self.is_condition_by_case(case),
            Expr::ScalarFunction(call) => self.is_condition_by_call(call),
            expr => Ok(is_condition(expr)),
        }
    }

    /// A node of which those operands are hidden that DataFusion would take for something else.
    fn with_hidden(&self, expr: Expr, hidden: &mut Hidden) -> Result<Expr> {
        Ok(match expr {
            // It takes the minus for the complement, also one that it comes to on the way.
            Expr::BinaryExpr(mut binary) if is_bitwise(binary.op) => {
                for operand in [&mut binary.left, &mut binary.right] {
                    **operand = self.hidden(std::mem::take(&mut **operand), hidden)?;
                }
                Expr::BinaryExpr(binary)
            }
            Expr::Negative(mut inner) => {
                *inner = self.hidden(*inner, hidden)?;
                Expr::Negative(inner)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
                let (left, right) = (self.compared(*left, hidden)?, self.compared(*right, hidden)?);
                Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
            }
            Expr::InList(mut list) => {
                *list.expr = self.compared(*list.expr, hidden)?;
                Expr::InList(list)
            }
            Expr::Between(mut between) => {
                for operand in [&mut between.expr, &mut between.low, &mut between.high] {
                    **operand = self.compared(std::mem::take(&mut **operand), hidden)?;
                }
                Expr::Between(between)
            }
            Expr::Like(mut like) => {
                *like.expr = self.compared(*like.expr, hidden)?;
                Expr::Like(like)
            }
            expr => expr,
        })
    }

    /// What stands for an expression that is neither a column nor a constant.
    fn hidden(&self, expr: Expr, hidden: &mut Hidden) -> Result<Expr> {
        match expr {
            Expr::Column(_) | Expr::Literal(..) => Ok(expr),
            expr => Ok(hidden.hide(self.simplify(expr)?)),
        }
    }

    /// What is compared, hidden from where comparing it is not the same as comparing what it is made of: a cast may fail, be
    /// NULL or lose digits, and a CASE keeps its branches from rows in which they would fail.
    fn compared(&self, expr: Expr, hidden: &mut Hidden) -> Result<Expr> {
        let keeps = |expr: &Expr, to: &FieldRef| -> Result<bool> {
            Ok(keeps_each_value(&expr.get_type(&self.schema)?, to.data_type()))
        };
        Ok(match expr {
            Expr::Cast(mut cast) if keeps(&cast.expr, &cast.field)? => {
                *cast.expr = self.compared(*cast.expr, hidden)?;
                Expr::Cast(cast)
            }
            Expr::TryCast(mut cast) if keeps(&cast.expr, &cast.field)? => {
                *cast.expr = self.compared(*cast.expr, hidden)?;
                Expr::TryCast(cast)
            }
            expr @ (Expr::Cast(_) | Expr::TryCast(_)) => hidden.hide(self.simplify(expr)?),
            expr @ Expr::Case(_) if may_fail(&expr)? => hidden.hide(self.simplify(expr)?),
            expr => expr,
        })
    }
}

/// Whether each value of a type is one of the other, and no two are the same one. What else than numbers and
/// timestamps DataFusion compares before it is cast, it is right about.
pub(crate) fn keeps_each_value(from: &DataType, to: &DataType) -> bool {
    /// The decimal digits of integers, and whether they have a sign.
    fn integer(ty: &DataType) -> Option<(u8, bool)> {
        Some(match ty {
            DataType::Int8 => (3, true),
            DataType::Int16 => (5, true),
            DataType::Int32 => (10, true),
            DataType::Int64 => (19, true),
            DataType::UInt8 => (3, false),
            DataType::UInt16 => (5, false),
            DataType::UInt32 => (10, false),
            DataType::UInt64 => (20, false),
            _ => return None,
        })
    }
    /// The digits of decimals, before and behind the point.
    fn decimal(ty: &DataType) -> Option<(i16, i16)> {
        match *ty {
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale) => {
                Some((i16::from(precision) - i16::from(scale), i16::from(scale)))
            }
            _ => None,
        }
    }
    if from == to {
        return true;
    }
    if let (DataType::Timestamp(..), _) | (_, DataType::Timestamp(..)) = (from, to) {
        // Constants would lose digits behind the second, and wall clocks meet instants.
        return false;
    }
    match (integer(from), integer(to)) {
        (Some((digits, false)), Some((wide, true))) => return digits < wide,
        (Some((digits, has_sign)), Some((wide, wide_has_sign))) => return digits <= wide && has_sign == wide_has_sign,
        _ => {}
    }
    match (integer(from), decimal(from), decimal(to), integer(to)) {
        (Some((digits, _)), _, Some((before, behind)), _) => i16::from(digits) <= before && behind >= 0,
        (_, Some((before, behind)), Some((wide, fine)), _) => before <= wide && behind <= fine,
        (_, Some(_), _, Some(_)) => false,
        // Texts, and what DataFusion does not look into.
        _ => true,
    }
}

/// Whether evaluating an expression may fail: it has other parts than comparisons, columns and constants.
fn may_fail(expr: &Expr) -> Result<bool> {
    expr.any(
        &mut |expr| Ok(!matches!(expr, Expr::Case(_) | Expr::Column(_) | Expr::Literal(..)) && !is_condition(expr)),
    )
}

/// Whether an expression is a condition by its form. A CASE may be one, too.
fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => matches!(binary.op, Operator::And | Operator::Or) || binary.op.negate().is_some(),
        Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::InList(_)
        | Expr::Between(_)
        | Expr::Like(_) => true,
        _ => false,
    }
}

fn is_bitwise(op: Operator) -> bool {
    matches!(op, Operator::BitwiseAnd | Operator::BitwiseOr | Operator::BitwiseXor)
}

fn is_of_bits(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(binary) if is_bitwise(binary.op))
}

fn is_by_regex(op: Operator) -> bool {
    use Operator::{RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    matches!(op, RegexMatch | RegexNotMatch | RegexIMatch | RegexNotIMatch)
}

/// Whether DataFusion may make LIKE of a pattern. It takes what `.*` finds for what is not NULL, and a backslash that stands
/// for itself for LIKE's escape.
fn becomes_like(pattern: &Expr) -> bool {
    match pattern {
        Expr::Literal(pattern, _) => {
            pattern.try_as_str().flatten().is_none_or(|text| text != ".*" && !text.contains('\\'))
        }
        _ => true,
    }
}

/// Whether an expression is as simple as it can be: a name, a constant, or the two compared.
fn is_simple(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(..) => true,
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() && !is_by_regex(*op) => {
            match (&**left, &**right) {
                // Those with true and false are conditions by themselves, and floats have two zeros.
                (Expr::Column(_), Expr::Literal(value, _)) => {
                    !value.is_null()
                        && !matches!(value.data_type(), DataType::Boolean)
                        && !value.data_type().is_floating()
                }
                _ => false,
            }
        }
        _ => false,
    }
}
