//! Scalar expressions that DataFusion evaluates inside our pipelines.

use crate::checked::checked_expr;
use crate::lower::argument_type;
use crate::one_zero::expr_with_one_zero;
use crate::regex_once::compiled_once;
use crate::undecided::asked_late;
use crate::walk::WalkTree;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Cast, Expr as DfExpr, ExprSchemable};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use sinter_exec::{Foreign, edge};
use std::sync::Arc;

/// One expression of DataFusion over its own few columns.
#[derive(Debug)]
pub(crate) struct ScalarFunction {
    physical: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    result: DataType,
    text: String,
}

impl ScalarFunction {
    /// `expr` over the columns `names` of `schema`, in that order; `None` where DataFusion cannot plan it so. It gets them in
    /// the types that it was planned with: texts have several in Arrow, which do not mix.
    pub(crate) fn new(expr: &DfExpr, schema: &DFSchema, names: &[Column]) -> Option<ScalarFunction> {
        let name = |index: usize| format!("c{index}");
        let (mut fields, mut values) = (Vec::with_capacity(names.len()), Vec::with_capacity(names.len()));
        for (index, column) in names.iter().enumerate() {
            let declared = schema.field(schema.maybe_index_of_column(column)?).data_type();
            let given = argument_type(declared)?;
            let value = DfExpr::Column(Column::from_name(name(index)));
            values.push(match given == *declared {
                true => value,
                false => DfExpr::Cast(Cast::new(Box::new(value), declared.clone())),
            });
            fields.push(Field::new(name(index), given, true));
        }
        let arguments = Schema::new(fields);
        let renamed = expr
            .clone()
            .rewrite_up(&mut |expr| {
                let DfExpr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
                let index = names.iter().position(|name| name == column);
                Ok(index.map_or_else(|| Transformed::no(expr), |index| Transformed::yes(values[index].clone())))
            })
            .ok()?
            .data;
        let inner = DFSchema::try_from(arguments.clone()).ok()?;
        let result = argument_type(&renamed.get_type(&inner).ok()?)?;
        let physical = physical_expr(renamed, &inner).ok()?;
        Some(ScalarFunction { physical, schema: Arc::new(arguments), result, text: expr.to_string() })
    }
}

/// What DataFusion evaluates for an expression of ours over rows of this schema: integers and decimals have room, -0.0 is 0.0,
/// what may fail is asked late, and regular expressions are compiled once.
///
/// # Errors
/// Where DataFusion cannot evaluate it.
pub(crate) fn physical_expr(expr: DfExpr, schema: &DFSchema) -> datafusion::common::Result<Arc<dyn PhysicalExpr>> {
    let expr = expr_with_one_zero(checked_expr(expr, schema)?, schema)?.data;
    let expr = create_physical_expr(&expr, schema, &ExecutionProps::new(), &PhysicalPlanningContext::default())?;
    compiled_once(asked_late(expr, schema.as_arrow())?, schema.as_arrow())
}

impl Foreign for ScalarFunction {
    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> sinter_exec::Result<ArrayRef> {
        let foreign = |error: &dyn std::fmt::Display| sinter_exec::Error::Foreign(error.to_string());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arguments.to_vec(), &options)
            .map_err(|error| foreign(&error))?;
        let array = self
            .physical
            .evaluate(&batch)
            .and_then(|value| value.into_array(rows))
            .map_err(|error| foreign(&crate::Error::from(error)))?;
        if array.data_type() == &self.result {
            return Ok(array);
        }
        edge::strict_cast(&array, &self.result).map_err(|error| foreign(&error))
    }

    fn text(&self) -> String {
        self.text.clone()
    }
}
