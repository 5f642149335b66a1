//! Floats by whose bits others are less, equal and greater as SQL has it.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

static ONE_FLOAT: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(OneFloat { signature: Signature::any(1, Volatility::Immutable) })));

/// Puts a float that compares right in the place of a constant; others are left as they are.
pub(crate) fn make_one_zero(constant: &mut Expr) {
    match constant {
        Expr::Literal(ScalarValue::Float64(Some(value)), _) => *value = one_f64(*value),
        Expr::Literal(ScalarValue::Float32(Some(value)), _) => *value = one_f32(*value),
        _ => {}
    }
}

/// Puts a float that compares right in the place of one; true where the expression is of floats.
pub(super) fn make_one_float(expr: &mut Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(_)) | ScalarValue::Float32(Some(_)), _) => make_one_zero(expr),
        _ if !matches!(expr.get_type(schema), Ok(DataType::Float64 | DataType::Float32)) => return false,
        _ => *expr = ONE_FLOAT.call(vec![std::mem::take(expr)]),
    }
    true
}

/// The same values, of which floats compare right; others as they are.
pub(crate) fn one_floats(values: ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float64 => Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(one_f64)),
        DataType::Float32 => Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(one_f32)),
        _ => values,
    }
}

fn one_f64(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

fn one_f32(value: f32) -> f32 {
    if value.is_nan() { f32::NAN } else { value + 0.0 }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OneFloat {
    signature: Signature,
}

impl ScalarUDFImpl for OneFloat {
    fn name(&self) -> &str {
        "one_float"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [float] => Ok(float.clone()),
            _ => internal_err!("one_float of {} values", types.len()),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let Ok([value]) = <[ColumnarValue; 1]>::try_from(arguments.args) else {
            return internal_err!("one_float takes one value");
        };
        Ok(ColumnarValue::Array(one_floats(value.into_array(rows)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Float64Array;

    #[test]
    fn there_is_one_zero_and_nan_is_above_all() {
        let values = Float64Array::from(vec![Some(-0.0), None, Some(-f64::NAN), Some(f64::INFINITY), Some(-1.5)]);
        let ones = one_floats(Arc::new(values));
        let bits: Vec<_> = ones.as_primitive::<Float64Type>().iter().map(|value| value.map(f64::to_bits)).collect();
        let wanted = [Some(0.0), None, Some(f64::NAN), Some(f64::INFINITY), Some(-1.5)];
        assert_eq!(bits, wanted.map(|value| value.map(f64::to_bits)));
        assert!(f64::NAN.total_cmp(&f64::INFINITY).is_gt());
    }
}
