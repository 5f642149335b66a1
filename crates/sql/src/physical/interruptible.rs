//! DataFusion's joins with conditions, which ask about all pairs of their inputs, or of a key, within one poll as long as none
//! is a row of the result: neither an interrupt would be heard, nor that nobody waits any more.

use crate::session::Running;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::{JoinType, Result, internal_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::lit;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
};
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The same join, which ends where its condition is asked once the statement has been interrupted, or nobody waits for it any
/// more. What is no join with a condition stays as it is.
///
/// # Errors
/// None of ours.
pub(crate) fn interruptible(plan: &Arc<dyn ExecutionPlan>, running: &Arc<Running>) -> Result<Arc<dyn ExecutionPlan>> {
    let heard = |filter: &JoinFilter| {
        let condition = Interruptible { condition: Arc::clone(filter.expression()), running: Arc::clone(running) };
        Some(JoinFilter::new(Arc::new(condition), filter.column_indices().to_vec(), Arc::clone(filter.schema())))
    };
    let any = plan.as_ref() as &dyn Any;
    if let Some(join) = any.downcast_ref::<NestedLoopJoinExec>() {
        let filter = match (join.filter(), join.join_type()) {
            (Some(filter), _) => heard(filter),
            // These hand out rows as they find them.
            (None, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full) => return Ok(Arc::clone(plan)),
            (None, _) => heard(&JoinFilter::new(lit(true), Vec::new(), Arc::new(Schema::empty()))),
        };
        return Ok(Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()?));
    }
    if let Some(join) = any.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter()
    {
        return join.builder().with_filter(heard(filter)).build_exec();
    }
    if let Some(join) = any.downcast_ref::<SortMergeJoinExec>()
        && let Some(filter) = join.filter()
    {
        let (left, right) = (Arc::clone(&join.left), Arc::clone(&join.right));
        let (on, sort_options) = (join.on.clone(), join.sort_options.clone());
        let filter = heard(filter);
        let join =
            SortMergeJoinExec::try_new(left, right, on, filter, join.join_type, sort_options, join.null_equality)?;
        return Ok(Arc::new(join));
    }
    Ok(Arc::clone(plan))
}

/// A condition that fails once its statement is cancelled.
struct Interruptible {
    condition: Arc<dyn PhysicalExpr>,
    running: Arc<Running>,
}

impl PartialEq for Interruptible {
    fn eq(&self, other: &Interruptible) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Eq for Interruptible {}

impl Hash for Interruptible {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl PhysicalExpr for Interruptible {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.condition.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.condition.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if self.running.is_cancelled() {
            return Err(crate::Error::Cancelled.into());
        }
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match children.pop() {
            Some(condition) => Ok(Arc::new(Interruptible { condition, running: Arc::clone(&self.running) })),
            None => internal_err!("a condition is missing"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}

impl fmt::Debug for Interruptible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl fmt::Display for Interruptible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.condition, f)
    }
}
