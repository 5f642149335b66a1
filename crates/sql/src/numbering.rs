//! `row_number`, `rank`, `dense_rank` and `ntile` as BIGINT.
//!
//! DataFusion's are without a sign, and so `-rank()` would be refused and a difference of two of them an error as soon as it
//! is below zero. Both are BIGINT in other databases.

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::arrow::compute::SortOptions;
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{Documentation, LimitEffect, PartitionEvaluator, Signature, WindowUDF, WindowUDFImpl};
use datafusion::physical_expr::PhysicalExpr;
use std::ops::Range;
use std::sync::Arc;

const NAMES: [&str; 4] = ["row_number", "rank", "dense_rank", "ntile"];

/// Puts them in the place of DataFusion's.
pub(crate) fn register(state: &mut SessionState) {
    for name in NAMES {
        let unsigned = state.udwf(name).expect("it is one of DataFusion's default functions");
        let numbering = Arc::new(WindowUDF::from(Numbering { unsigned }));
        state.register_udwf(numbering).expect("a session's state takes any function");
    }
}

/// A function that gives numbers without a sign, with one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Numbering {
    unsigned: Arc<WindowUDF>,
}

impl WindowUDFImpl for Numbering {
    fn name(&self) -> &str {
        self.unsigned.name()
    }

    fn aliases(&self) -> &[String] {
        self.unsigned.aliases()
    }

    fn signature(&self) -> &Signature {
        self.unsigned.signature()
    }

    fn partition_evaluator(&self, arguments: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Signed(self.unsigned.partition_evaluator_factory(arguments)?)))
    }

    fn field(&self, arguments: WindowUDFFieldArgs) -> Result<FieldRef> {
        let field = self.unsigned.field(arguments)?;
        Ok(Arc::new(field.as_ref().clone().with_data_type(DataType::Int64)))
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.unsigned.sort_options()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.unsigned.documentation()
    }

    fn limit_effect(&self, arguments: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.unsigned.inner().limit_effect(arguments)
    }
}

/// The numbers of a partition.
#[derive(Debug)]
struct Signed(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for Signed {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.0.memoize(state)
    }

    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.0.get_range(row, rows)
    }

    fn is_causal(&self) -> bool {
        self.0.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        Ok(cast(&self.0.evaluate_all(values, rows)?, &DataType::Int64)?)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.0.evaluate(values, range)?.cast_to(&DataType::Int64)
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        Ok(cast(&self.0.evaluate_all_with_rank(rows, ranks)?, &DataType::Int64)?)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.0.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.0.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.0.include_rank()
    }
}
