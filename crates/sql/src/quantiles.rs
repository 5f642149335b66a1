//! `approx_percentile_cont` and `approx_median` that are as near however the rows come.
//!
//! DataFusion's digest of at most 100 centroids takes in each batch by itself, so that it is further off the smaller the
//! batches and the more the workers. Here values wait until they are many, and there are [`CENTROIDS`] unless the query says
//! how many.

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, not_impl_err};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::functions_aggregate::approx_percentile_cont::approx_percentile_cont_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Signature};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use std::sync::Arc;

const MEDIAN: &str = "approx_median";
const PERCENTILE: &str = "approx_percentile_cont";

/// Of a digest.
pub(crate) const CENTROIDS: u64 = 1024;

/// Values that wait until a digest takes them in.
pub(crate) const WAITING_MAX: usize = 1 << 13;

/// Puts them in the place of DataFusion's.
pub(crate) fn register(state: &mut SessionState) {
    for name in [MEDIAN, PERCENTILE] {
        let coarse = state.udaf(name).expect("it is one of DataFusion's default functions");
        let quantile = Arc::new(AggregateUDF::from(Quantile { coarse }));
        state.register_udaf(quantile).expect("a session's state takes any function");
    }
}

/// One of both functions.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Quantile {
    coarse: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for Quantile {
    fn name(&self) -> &str {
        self.coarse.name()
    }

    fn signature(&self) -> &Signature {
        self.coarse.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.coarse.return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.coarse.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let literal = |value| Arc::new(Literal::new(value)) as Arc<dyn PhysicalExpr>;
        if args.is_distinct {
            // DataFusion would take each value as often as it comes.
            return not_impl_err!("{} of DISTINCT values; percentile_cont and median know them", self.name());
        }
        let mut exprs = args.exprs.to_vec();
        match (self.name(), &exprs[..]) {
            (MEDIAN, [_]) if !args.expr_fields[0].data_type().is_null() => {
                exprs.push(literal(ScalarValue::Float64(Some(0.5))));
            }
            (PERCENTILE, [_, _]) => {}
            _ => return self.coarse.accumulator(args),
        }
        exprs.push(literal(ScalarValue::UInt64(Some(CENTROIDS))));
        let digest = approx_percentile_cont_udaf().accumulator(AccumulatorArgs { exprs: &exprs, ..args })?;
        Ok(Box::new(Waiting { digest, values: Vec::new() }))
    }

    fn supports_within_group_clause(&self) -> bool {
        self.coarse.supports_within_group_clause()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.coarse.documentation()
    }
}

/// A digest, and values that it has yet to take in.
#[derive(Debug)]
struct Waiting {
    digest: Box<dyn Accumulator>,
    values: Vec<f64>,
}

impl Waiting {
    fn take_in(&mut self) -> Result<()> {
        match std::mem::take(&mut self.values) {
            values if values.is_empty() => Ok(()),
            values => self.digest.update_batch(&[Arc::new(Float64Array::from(values))]),
        }
    }
}

impl Accumulator for Waiting {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let values = cast(&columns[0], &DataType::Float64)?;
        let values = values.as_primitive::<Float64Type>();
        match values.null_count() {
            0 => self.values.extend_from_slice(values.values()),
            _ => self.values.extend(values.iter().flatten()),
        }
        if self.values.len() >= WAITING_MAX { self.take_in() } else { Ok(()) }
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.take_in()?;
        self.digest.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.digest.size() + self.values.capacity() * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.take_in()?;
        self.digest.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.digest.merge_batch(states)
    }
}
