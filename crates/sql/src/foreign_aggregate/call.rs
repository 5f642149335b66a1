//! One call of an aggregate function of DataFusion, over its own few columns.

use super::each_group::EachGroup;
use super::states::{Kept, States};
use crate::one_zero::{compares_arguments, one_floats};
use crate::quantiles::{CENTROIDS, WAITING_MAX};
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::{Column, DFSchema};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Cast, Expr as DfExpr, ExprSchemable};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::{AggregateFunctionExpr, LoweredAggregateBuilder};
use sinter_exec::{ForeignAggregate, ForeignStates, LogicalType, edge};
use std::sync::Arc;

/// Bytes of a group's state where it does not grow with the rows.
const STATE_BYTES: usize = 64;

/// Bytes of a sketch of different values, once it has seen many.
const SKETCH_BYTES: usize = 1 << 14;

/// Bytes of a sketch of quantiles: two numbers for each centroid, and the values that wait.
const DIGEST_BYTES: usize = CENTROIDS as usize * 16 + WAITING_MAX * 8;

/// Bytes of a value that is kept where its type does not say it: a text, and what says where it is.
const TEXT_BYTES: usize = 56;

/// Bytes of a value in a set of different ones, beside its own.
const SET_BYTES: usize = 16;

/// A call, ready to be made.
#[derive(Clone, Debug)]
pub(crate) struct AggregateCall {
    function: Arc<AggregateFunctionExpr>,
    /// What the function wants to be given: its arguments, and what they are ordered by.
    values: Vec<Arc<dyn PhysicalExpr>>,
    /// From which of these on floats are compared.
    compared_from: usize,
    /// Of the columns that these refer to.
    schema: SchemaRef,
    /// In which Arrow type results leave, where that is another one.
    result: Option<DataType>,
    text: String,
}

impl AggregateCall {
    /// The call without its filter, over columns that are the values of `columns`: expressions over `schema`, with the
    /// Arrow types in which the engine hands out their values. `None` where DataFusion cannot plan it so, or it needs rows
    /// in an order.
    pub(crate) fn new(
        call: &AggregateFunction,
        columns: &[(&DfExpr, DataType)],
        schema: &DFSchema,
        ty: &LogicalType,
    ) -> Option<AggregateCall> {
        let name = |index: usize| format!("c{index}");
        let fields = columns.iter().enumerate();
        let fields: Vec<Field> = fields.map(|(index, (_, ty))| Field::new(name(index), ty.clone(), true)).collect();
        let arguments = Arc::new(Schema::new(fields));
        let renamed = |expr: &DfExpr| {
            let Some(index) = columns.iter().position(|(known, _)| *known == expr) else { return Some(expr.clone()) };
            let column = DfExpr::Column(Column::from_name(name(index)));
            let declared = expr.get_type(schema).ok()?;
            let is_same = declared == columns[index].1;
            Some(if is_same { column } else { DfExpr::Cast(Cast::new(Box::new(column), declared)) })
        };
        let mut own = call.clone();
        own.params.filter = None;
        own.params.args = call.params.args.iter().map(renamed).collect::<Option<_>>()?;
        for order in &mut own.params.order_by {
            order.expr = renamed(&order.expr)?;
        }
        let inner = DFSchema::try_from(Schema::clone(&arguments)).ok()?;
        let own = DfExpr::AggregateFunction(own);
        let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
        let function = LoweredAggregateBuilder::new(&own, &inner, &arguments, &props, &context).build().ok()?.aggregate;
        // Some functions look at their literals only now.
        if !takes_any_order(&function) || function.create_accumulator().is_err() {
            return None;
        }
        let found = function.field().data_type().clone();
        if edge::logical_type(&found).as_ref() != Some(ty) {
            return None;
        }
        let is_as_ours = ty.physical().is_some() || found == edge::arrow_type(ty);
        let order = function.order_bys().iter().map(|order| Arc::clone(&order.expr));
        let mut values = function.expressions();
        let compares = compares_arguments(function.fun().name(), function.is_distinct());
        let compared_from = if compares { 0 } else { values.len() };
        values.extend(order);
        let mut text = call.clone();
        text.params.filter = None;
        Some(AggregateCall {
            values,
            compared_from,
            schema: arguments,
            result: (!is_as_ours).then(|| edge::arrow_type(ty)),
            text: DfExpr::AggregateFunction(text).to_string(),
            function,
        })
    }

    /// What the function wants, of columns of so many rows.
    pub(super) fn values(&self, columns: &[ArrayRef], rows: usize) -> sinter_exec::Result<Vec<ArrayRef>> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns.to_vec(), &options);
        let batch = batch.map_err(|error| sinter_exec::Error::Foreign(error.to_string()))?;
        let value = |(place, expr): (usize, &Arc<dyn PhysicalExpr>)| {
            let value = expr.evaluate(&batch)?.into_array(rows)?;
            Ok(if place >= self.compared_from { one_floats(value) } else { value })
        };
        self.values.iter().enumerate().map(value).collect::<datafusion::common::Result<_>>().map_err(foreign)
    }

    /// The results, as the engine takes them.
    pub(super) fn result(&self, results: ArrayRef) -> sinter_exec::Result<ArrayRef> {
        match &self.result {
            Some(ty) if results.data_type() != ty => {
                edge::strict_cast(&results, ty).map_err(|error| foreign(error.into()))
            }
            _ => Ok(results),
        }
    }

    /// The results of no group.
    pub(super) fn no_results(&self) -> sinter_exec::Result<ArrayRef> {
        self.result(arrow::array::new_empty_array(self.function.field().data_type()))
    }
}

impl ForeignAggregate for AggregateCall {
    fn start(&self, has_keys: bool) -> sinter_exec::Result<Box<dyn ForeignStates>> {
        let kept = match has_keys && self.function.groups_accumulator_supported() {
            true => Kept::of_groups(self.function.create_groups_accumulator().map_err(foreign)?),
            false => Kept::Each(EachGroup::new(&self.function, usize::from(!has_keys)).map_err(foreign)?),
        };
        Ok(Box::new(States::new(self.clone(), kept)))
    }

    fn bytes_estimate(&self, groups: usize, rows: usize) -> usize {
        let widths = self.schema.fields().iter().map(|field| field.data_type().primitive_width());
        let row_bytes: usize = widths.map(|width| width.unwrap_or(TEXT_BYTES)).sum();
        let all_rows = |bytes: usize| rows.saturating_mul(bytes).saturating_add(groups.saturating_mul(STATE_BYTES));
        let sketch = |bytes: usize| groups.saturating_mul(bytes).min(all_rows(SET_BYTES));
        match self.function.fun().name() {
            _ if self.function.is_distinct() => all_rows(row_bytes + SET_BYTES),
            "approx_distinct" => sketch(SKETCH_BYTES),
            "approx_median" | "approx_percentile_cont" | "approx_percentile_cont_with_weight" => sketch(DIGEST_BYTES),
            "median" | "percentile_cont" | "array_agg" | "string_agg" | "nth_value" => all_rows(row_bytes),
            _ => groups.saturating_mul(STATE_BYTES + row_bytes),
        }
    }

    fn text(&self) -> String {
        self.text.clone()
    }
}

/// Whether rows may come in any order, be it that the function sorts them itself.
fn takes_any_order(function: &AggregateFunctionExpr) -> bool {
    match function.order_sensitivity() {
        AggregateOrderSensitivity::HardRequirement => matches!(
            function.fun().name(),
            // The first gives rows to array_agg, which sorts. What the others are ordered by is their argument, of which
            // they want to know the direction alone.
            "string_agg" | "percentile_cont" | "approx_percentile_cont" | "approx_percentile_cont_with_weight"
        ),
        AggregateOrderSensitivity::Insensitive
        | AggregateOrderSensitivity::SoftRequirement
        | AggregateOrderSensitivity::Beneficial => true,
    }
}

pub(super) fn foreign(error: datafusion::error::DataFusionError) -> sinter_exec::Error {
    sinter_exec::Error::Foreign(crate::Error::from(error).to_string())
}
