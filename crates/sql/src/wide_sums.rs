//! `sum` of integers and decimals that DataFusion's own operators compute without wrapping around.
//!
//! DataFusion adds up in the type of the result, modulo its width. Here it adds up in a wider one, of which no number of rows
//! makes too much, and a result for which there is no room is an error, as it is in our engine. What it adds up over frames
//! that move, of different values alone, still wraps around: it has no wider form of that.

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, Expr, GroupsAccumulator, Operator,
    ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs,
};
use sinter_exec::edge::strict_cast;
use std::sync::Arc;

/// Puts it in the place of DataFusion's.
pub(crate) fn register(state: &mut SessionState) {
    let sum = Arc::new(AggregateUDF::from(Sum { narrow: sum_udaf() }));
    state.register_udaf(sum).expect("a session's state takes any function");
}

/// The type in which sums of this type are added up; `None` where that is their own.
fn wide(ty: &DataType) -> Option<DataType> {
    match ty {
        DataType::Int64 | DataType::UInt64 => Some(DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0)),
        // A sum has ten digits more than its values where there is room for them, and that is never too few.
        DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale) => {
            Some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale))
        }
        _ => None,
    }
}

fn widened(values: &[ArrayRef], wide: &DataType) -> Result<Vec<ArrayRef>> {
    values.iter().map(|values| Ok(strict_cast(values, wide)?)).collect()
}

fn narrowed(sums: &ArrayRef, narrow: &DataType) -> Result<ArrayRef> {
    strict_cast(sums, narrow).map_err(|error| DataFusionError::Execution(format!("overflow in a sum: {error}")))
}

/// DataFusion's `sum`, told that its result is of a wider type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Sum {
    narrow: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        self.narrow.name()
    }

    fn signature(&self) -> &Signature {
        self.narrow.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.narrow.return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let narrow = args.return_field.data_type().clone();
        let Some(wide) = wide(&narrow) else { return self.narrow.accumulator(args) };
        let sums =
            self.narrow.accumulator(AccumulatorArgs { return_field: retyped(&args.return_field, &wide), ..args })?;
        Ok(Box::new(Widened { sums, wide, narrow }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let return_field = match wide(args.return_field.data_type()) {
            Some(wide) => retyped(&args.return_field, &wide),
            None => Arc::clone(&args.return_field),
        };
        self.narrow.state_fields(StateFieldsArgs { return_field, ..args })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.narrow.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let narrow = args.return_field.data_type().clone();
        let Some(wide) = wide(&narrow) else { return self.narrow.create_groups_accumulator(args) };
        let return_field = retyped(&args.return_field, &wide);
        let sums = self.narrow.create_groups_accumulator(AccumulatorArgs { return_field, ..args })?;
        Ok(Box::new(Widened { sums, wide, narrow }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let narrow = args.return_field.data_type().clone();
        let Some(wide) = wide(&narrow).filter(|_| !args.is_distinct) else {
            return self.narrow.create_sliding_accumulator(args);
        };
        let return_field = retyped(&args.return_field, &wide);
        let sums = self.narrow.create_sliding_accumulator(AccumulatorArgs { return_field, ..args })?;
        Ok(Box::new(Widened { sums, wide, narrow }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.narrow.reverse_udf()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.narrow.order_sensitivity()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.narrow.documentation()
    }

    fn set_monotonicity(&self, ty: &DataType) -> SetMonotonicity {
        self.narrow.inner().set_monotonicity(ty)
    }

    fn simplify_expr_op_literal(
        &self,
        call: &AggregateFunction,
        argument: &Expr,
        operator: Operator,
        literal: &Expr,
        is_left: bool,
    ) -> Result<Option<Expr>> {
        self.narrow.simplify_expr_op_literal(call, argument, operator, literal, is_left)
    }

    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.narrow.value_from_stats(args)
    }
}

/// The field with another type.
fn retyped(field: &FieldRef, ty: &DataType) -> FieldRef {
    Arc::new(Field::new(field.name(), ty.clone(), field.is_nullable()))
}

/// Sums in a wider type than they are asked in. What they hand on to other accumulators stays in it.
#[derive(Debug)]
struct Widened<S: ?Sized> {
    wide: DataType,
    narrow: DataType,
    sums: Box<S>,
}

impl Accumulator for Widened<dyn Accumulator> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sums.update_batch(&widened(values, &self.wide)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = narrowed(&self.sums.evaluate()?.to_array()?, &self.narrow)?;
        ScalarValue::try_from_array(&sum, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sums.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.sums.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.sums.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sums.retract_batch(&widened(values, &self.wide)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.sums.supports_retract_batch()
    }
}

impl GroupsAccumulator for Widened<dyn GroupsAccumulator> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        group_count: usize,
    ) -> Result<()> {
        self.sums.update_batch(&widened(values, &self.wide)?, groups, filter, group_count)
    }

    fn evaluate(&mut self, emitted: EmitTo) -> Result<ArrayRef> {
        narrowed(&self.sums.evaluate(emitted)?, &self.narrow)
    }

    fn state(&mut self, emitted: EmitTo) -> Result<Vec<ArrayRef>> {
        self.sums.state(emitted)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], group_count: usize) -> Result<()> {
        self.sums.merge_batch(states, groups, group_count)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.sums.convert_to_state(&widened(values, &self.wide)?, filter)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sums.size()
    }
}
