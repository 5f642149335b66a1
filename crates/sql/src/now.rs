//! `now()` in microseconds, as all times are unless they say otherwise.
//!
//! DataFusion's has nanoseconds, and brings what it is compared with to these: `valid_until > now()` would fail at the first
//! year that 64 bits of nanoseconds do not reach, such as 9999.

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use std::sync::Arc;

/// Puts it in the place of DataFusion's.
pub(crate) fn register(state: &mut SessionState) {
    let fine = state.udf("now").expect("it is one of DataFusion's default functions");
    state.register_udf(Arc::new(ScalarUDF::from(Now { fine }))).expect("a session's state takes any function");
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Now {
    fine: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Now {
    fn name(&self) -> &str {
        self.fine.name()
    }

    fn aliases(&self) -> &[String] {
        self.fine.aliases()
    }

    fn signature(&self) -> &Signature {
        self.fine.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.fine.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.fine.return_field_from_args(args)?;
        let ty = match field.data_type() {
            DataType::Timestamp(TimeUnit::Nanosecond, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            other => other.clone(),
        };
        Ok(Arc::new(Field::new(field.name(), ty, field.is_nullable())))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match self.fine.simplify(args, info)? {
            ExprSimplifyResult::Simplified(Expr::Literal(ScalarValue::TimestampNanosecond(now, zone), metadata)) => {
                let now = ScalarValue::TimestampMicrosecond(now.map(|nanos| nanos.div_euclid(1000)), zone);
                ExprSimplifyResult::Simplified(Expr::Literal(now, metadata))
            }
            other => other,
        })
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let fine = self.fine.inner().with_updated_config(config)?;
        Some(ScalarUDF::from(Now { fine: Arc::new(fine) }))
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("now() is a constant of the statement")
    }
}
