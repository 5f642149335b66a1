//! UUIDs as text, and text as UUIDs.

use crate::coercion::is_text;
use arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryBuilder, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable, ScalarUDF, Volatility, create_udf};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::fmt::Write;
use std::sync::{Arc, LazyLock};

/// The Arrow type of a UUID; nothing else of ours has it.
pub(crate) const UUID: DataType = DataType::FixedSizeBinary(16);

/// The function that SQL's `CAST(text AS UUID)` becomes, and text that is compared with a UUID.
pub(crate) static UUID_OF_TEXT: LazyLock<ScalarUDF> =
    LazyLock::new(|| on_arrays("uuid_of_text", DataType::Utf8, UUID, parse_uuids));

/// The function that SQL's `CAST(uuid AS VARCHAR)` becomes.
pub(crate) static TEXT_OF_UUID: LazyLock<ScalarUDF> =
    LazyLock::new(|| on_arrays("text_of_uuid", UUID, DataType::Utf8, print_uuids));

/// Reads text as a UUID where it is compared with one: DataFusion's planner finds no type for the two, and asks for it in a
/// select list before any rule could have its say.
#[derive(Debug)]
pub(crate) struct ComparedWithUuids;

impl ExprPlanner for ComparedWithUuids {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> datafusion::common::Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        if matches!(expr.op, Eq | NotEq | Lt | LtEq | Gt | GtEq) {
            let is = |side: &Expr, is: fn(&DataType) -> bool| side.get_type(schema).is_ok_and(|ty| is(&ty));
            let is_uuid = |ty: &DataType| *ty == UUID;
            if is(&expr.left, is_uuid) && is(&expr.right, is_text) {
                expr.right = UUID_OF_TEXT.call(vec![expr.right]);
            } else if is(&expr.left, is_text) && is(&expr.right, is_uuid) {
                expr.left = UUID_OF_TEXT.call(vec![expr.left]);
            }
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// What makes values of others.
type OnArrays = fn(&ArrayRef) -> Result<ArrayRef, String>;

/// A function of arrays of one type.
pub(crate) fn on_arrays(name: &str, from: DataType, to: DataType, run: OnArrays) -> ScalarUDF {
    let invoke = move |arguments: &[ColumnarValue]| {
        let error = |message| datafusion::error::DataFusionError::from(crate::Error::Data(message));
        let [argument] = arguments else { return Err(error("one argument is wanted".to_owned())) };
        Ok(match argument {
            ColumnarValue::Array(array) => ColumnarValue::Array(run(array).map_err(error)?),
            ColumnarValue::Scalar(scalar) => {
                let array = run(&scalar.to_array()?).map_err(error)?;
                ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&array, 0)?)
            }
        })
    };
    create_udf(name, vec![from], to, Volatility::Immutable, Arc::new(invoke))
}

/// An array of text as an array of UUIDs.
///
/// # Errors
/// A message that names the first text that is none.
pub(crate) fn parse_uuids(given: &ArrayRef) -> Result<ArrayRef, String> {
    let text = cast(given, &DataType::Utf8).map_err(|error| error.to_string())?;
    let text = text.as_string::<i32>();
    let mut out = FixedSizeBinaryBuilder::with_capacity(text.len(), 16);
    for value in text {
        match value {
            None => out.append_null(),
            Some(value) => out.append_value(parse_uuid(value)?).map_err(|error| error.to_string())?,
        }
    }
    Ok(Arc::new(out.finish()))
}

/// 32 hexadecimal digits, with or without hyphens and braces.
fn parse_uuid(text: &str) -> Result<[u8; 16], String> {
    let mut bytes = [0; 16];
    let mut digits = 0;
    for char in text.trim_matches(['{', '}']).chars().filter(|char| *char != '-') {
        let digit =
            char.to_digit(16).ok_or_else(|| format!("'{text}' is no UUID: '{char}' is no hexadecimal digit"))?;
        if let Some(byte) = bytes.get_mut(digits / 2) {
            *byte = *byte << 4 | digit as u8;
        }
        digits += 1;
    }
    match digits {
        32 => Ok(bytes),
        _ => Err(format!("'{text}' is no UUID: it has {digits} hexadecimal digits instead of 32")),
    }
}

/// An array of UUIDs as text, lower case with hyphens.
fn print_uuids(given: &ArrayRef) -> Result<ArrayRef, String> {
    let uuids = given.as_fixed_size_binary();
    let mut out = StringBuilder::with_capacity(uuids.len(), uuids.len() * 36);
    for value in uuids {
        let Some(bytes) = value else {
            out.append_null();
            continue;
        };
        for (index, byte) in bytes.iter().enumerate() {
            let hyphen = if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(out, "{hyphen}{byte:02x}").map_err(|error| error.to_string())?;
        }
        out.append_value("");
    }
    Ok(Arc::new(out.finish()))
}
