//! `min` and `max` of floats by group, in DataFusion's operators.
//!
//! Of the values of a group, DataFusion keeps the one that comes after NaN, whatever it is, and the greatest number that there
//! is where all are -Infinity. One accumulator per group, which it has for other types, answers as SQL has it.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Expr, ExprSchemable, Signature};
use std::sync::Arc;

pub(super) fn is_extreme(call: &AggregateFunction) -> bool {
    matches!(call.func.name(), "min" | "max")
}

/// Has an aggregate take one accumulator per group where it is an extreme of floats; true where it is.
pub(super) fn set_apart(expr: &mut Expr, schema: &DFSchema) -> bool {
    let Expr::AggregateFunction(call) = expr else { return false };
    let [argument] = call.params.args.as_slice() else { return false };
    let is_float = matches!(argument.get_type(schema), Ok(DataType::Float64 | DataType::Float32));
    if !is_extreme(call) || !is_float {
        return false;
    }
    call.func = Arc::new(AggregateUDF::from(EachGroup { extreme: Arc::clone(&call.func) }));
    true
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct EachGroup {
    extreme: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for EachGroup {
    fn name(&self) -> &str {
        self.extreme.name()
    }

    fn signature(&self) -> &Signature {
        self.extreme.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.extreme.return_type(types)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.extreme.accumulator(arguments)
    }

    fn groups_accumulator_supported(&self, _arguments: AccumulatorArgs<'_>) -> bool {
        false
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}
