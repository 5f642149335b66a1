//! Integers and decimals without room in their type are errors also in what DataFusion computes.
//!
//! Its `+`, `-` and `*` of integers wrap around, and so does its negation; of decimals they have 39 digits where there is
//! room for 38. They become functions here that do not: in what
//! is left of a plan when our engine has taken its part, in expressions that DataFusion evaluates within that part, and,
//! before anything is optimised, where constants have no room, which DataFusion would compute while it plans. What our
//! engine runs checks by itself, and `sum` is that of [`crate::wide_sums`]. Keys of GROUPING SETS that DataFusion computes
//! still wrap around, as they can have no other names.

use crate::optimize::Contents;
use crate::walk::{WalkPlan, WalkTree};
use arrow::array::{Array, ArrayRef, AsArray, Datum, new_empty_array};
use arrow::compute::kernels::numeric::{add, div, mul, neg, sub};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;
use std::sync::{Arc, LazyLock};

/// What may have no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    /// Of decimals.
    Divide,
    Negate,
}

impl Operation {
    const ALL: [Operation; 5] =
        [Operation::Add, Operation::Subtract, Operation::Multiply, Operation::Divide, Operation::Negate];

    /// That of an operator between two values.
    fn between(operator: Operator) -> Option<Operation> {
        match operator {
            Operator::Plus => Some(Operation::Add),
            Operator::Minus => Some(Operation::Subtract),
            Operator::Multiply => Some(Operation::Multiply),
            Operator::Divide => Some(Operation::Divide),
            _ => None,
        }
    }

    /// Its operator between two values.
    pub(crate) fn operator(self) -> Option<Operator> {
        match self {
            Operation::Add => Some(Operator::Plus),
            Operation::Subtract => Some(Operator::Minus),
            Operation::Multiply => Some(Operator::Multiply),
            Operation::Divide => Some(Operator::Divide),
            Operation::Negate => None,
        }
    }

    /// That of an expression over rows of this schema, and its type; `None` where there is always room.
    fn within(expr: &Expr, schema: &DFSchema) -> Option<(Operation, DataType)> {
        let ty = |expr: &Expr| expr.get_type(schema).ok();
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let operation = Operation::between(*op)?;
                let (left, right) = (ty(left)?, ty(right)?);
                let are_integers = left.is_integer() && left == right && operation != Operation::Divide;
                let is_bounded = are_integers || left.is_decimal() && right.is_decimal();
                let result = operation.result(&[left, right]).ok().filter(|_| is_bounded)?;
                (result.is_integer() || is_full(&result)).then_some((operation, result))
            }
            Expr::Negative(inner) => ty(inner).filter(DataType::is_signed_integer).map(|ty| (Operation::Negate, ty)),
            _ => None,
        }
    }

    /// The type of the result, which is that of the operator.
    fn result(self, operands: &[DataType]) -> Result<DataType> {
        match operands {
            [only] => Ok(only.clone()),
            [left, right] if left == right && left.is_integer() => Ok(left.clone()),
            [left, right] => Ok(self.kernel()(&new_empty_array(left), &new_empty_array(right))?.data_type().clone()),
            _ => internal_err!("{self:?} of {} values", operands.len()),
        }
    }

    /// What computes it for two values.
    fn kernel(self) -> fn(&dyn Datum, &dyn Datum) -> arrow::error::Result<ArrayRef> {
        match self {
            Operation::Add => |left, right| in_precision(add(left, right)?),
            Operation::Subtract | Operation::Negate => |left, right| in_precision(sub(left, right)?),
            Operation::Multiply => |left, right| in_precision(mul(left, right)?),
            Operation::Divide => |left, right| in_precision(div(left, right)?),
        }
    }

    /// What a function of ours computes.
    pub(crate) fn of(function: &ScalarUDF) -> Option<Operation> {
        Operation::ALL.into_iter().find(|operation| *operation.function() == *function)
    }

    fn function(self) -> &'static ScalarUDF {
        &FUNCTIONS[self as usize]
    }
}

/// In the order of [`Operation::ALL`].
static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 5]> = LazyLock::new(|| {
    Operation::ALL.map(|operation| {
        let operand_count = if operation == Operation::Negate { 1 } else { 2 };
        let signature = Signature::any(operand_count, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Checked { operation, signature }))
    })
});

/// The rule for constants.
#[derive(Debug)]
pub(crate) struct CheckedConstants;

impl AnalyzerRule for CheckedConstants {
    fn name(&self) -> &str {
        "sinter_checked_constants"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewritten(plan, overflows)
    }
}

/// Whether decimals have all digits that there are, so that more of them are cut off.
fn is_full(ty: &DataType) -> bool {
    matches!(ty, DataType::Decimal128(DECIMAL128_MAX_PRECISION, _))
}

/// Decimals that have no more digits than their type.
fn in_precision(values: ArrayRef) -> arrow::error::Result<ArrayRef> {
    if let DataType::Decimal128(precision, _) = values.data_type() {
        values.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision)?;
    }
    Ok(values)
}

/// Whether constants have an exact result for which there is no room in this type, or may have, if they are decimals.
fn overflows(expr: &Expr, ty: &DataType) -> bool {
    if ty.is_decimal() {
        return is_constant(expr);
    }
    let Some(value) = constant(expr) else { return false };
    let (least, greatest) = match ty {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        _ => (i128::MIN, i128::MAX),
    };
    !(least..=greatest).contains(&value)
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::Alias(alias) => is_constant(&alias.expr),
        Expr::Cast(cast) => is_constant(&cast.expr),
        Expr::Negative(inner) => is_constant(inner),
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => is_constant(left) && is_constant(right),
        _ => false,
    }
}

/// The exact value of an expression of integer constants.
fn constant(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Literal(value, _) if value.data_type().is_integer() => {
            let wide = value.cast_to(&DataType::Decimal128(38, 0)).ok()?;
            if let ScalarValue::Decimal128(value, ..) = wide { value } else { None }
        }
        Expr::Alias(alias) => constant(&alias.expr),
        Expr::Cast(cast) if cast.field.data_type().is_integer() => constant(&cast.expr),
        Expr::Negative(inner) => constant(inner)?.checked_neg(),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (left, right) = (constant(left)?, constant(right)?);
            match Operation::between(*op)? {
                Operation::Add => left.checked_add(right),
                Operation::Subtract => left.checked_sub(right),
                Operation::Multiply => left.checked_mul(right),
                Operation::Divide | Operation::Negate => None,
            }
        }
        _ => None,
    }
}

/// A plan for DataFusion's operators.
///
/// # Errors
/// None of its own; DataFusion's tree walk wants to be able to fail.
pub(crate) fn checked_plan(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewritten(plan, |_, _| true)
}

/// An expression for DataFusion's evaluation over rows of this schema.
///
/// # Errors
/// As [`checked_plan`].
pub(crate) fn checked_expr(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(rewritten_expr(expr, schema, &|_, _| true)?.data)
}

/// The plan with functions in the place of the operations that are `wanted`; names stay.
fn rewritten(plan: LogicalPlan, wanted: impl Fn(&Expr, &DataType) -> bool) -> Result<LogicalPlan> {
    if !Contents::of(&plan)?.arithmetic {
        return Ok(plan);
    }
    let plan = plan.rewrite_up_with_subqueries(&mut |plan| {
        // Filters of scans are ours, and limits have to be constants.
        if matches!(plan, LogicalPlan::TableScan(_) | LogicalPlan::Limit(_)) {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        plan.rewrite_exprs(&mut |expr| {
            let name = names.save(&expr);
            let expr = rewritten_expr(expr, &schema, &wanted)?;
            Ok(if expr.transformed { expr.update_data(|expr| name.restore(expr)) } else { expr })
        })
    });
    Ok(plan?.data)
}

fn rewritten_expr(
    expr: Expr,
    schema: &DFSchema,
    wanted: &impl Fn(&Expr, &DataType) -> bool,
) -> Result<Transformed<Expr>> {
    if matches!(expr, Expr::GroupingSet(_)) {
        // The keys in it have no names of their own that could stay.
        return Ok(Transformed::no(expr));
    }
    // From above: the type of an operator is soon found, that of a function takes as long as all names within it.
    expr.rewrite_down(&mut |expr| {
        Ok(match Operation::within(&expr, schema) {
            Some((operation, ty)) if wanted(&expr, &ty) => Transformed::yes(operation.function().call(operands(expr))),
            _ => Transformed::no(expr),
        })
    })
}

/// The operands of an operation.
fn operands(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => vec![*left, *right],
        Expr::Negative(inner) => vec![*inner],
        _ => Vec::new(),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operation: Operation,
    signature: Signature,
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        match self.operation {
            Operation::Add => "checked_add",
            Operation::Subtract => "checked_subtract",
            Operation::Multiply => "checked_multiply",
            Operation::Divide => "checked_divide",
            Operation::Negate => "checked_negate",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.operation.result(types)
    }

    /// As nullable as that of the operator in whose place it stands: types of plans must not change.
    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let is_nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, is_nullable)))
    }

    /// Anything of the type: that of no type, as is said by default, `abs` cannot compare with zero.
    fn evaluate_bounds(&self, operands: &[&Interval]) -> Result<Interval> {
        let types: Vec<DataType> = operands.iter().map(|operand| operand.data_type()).collect();
        Interval::make_unbounded(&self.operation.result(&types)?)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match (self.operation, &arguments.args[..]) {
            (Operation::Add | Operation::Subtract | Operation::Multiply | Operation::Divide, [left, right]) => {
                apply(left, right, self.operation.kernel())
            }
            (Operation::Negate, [ColumnarValue::Array(values)]) => Ok(ColumnarValue::Array(neg(values)?)),
            (Operation::Negate, [ColumnarValue::Scalar(value)]) => {
                let negated = neg(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&negated, 0)?))
            }
            (_, operands) => internal_err!("{} of {} values", self.name(), operands.len()),
        }
    }
}
