//! DataFusion's nested loop joins, which ask about all pairs of their inputs within one poll as long as none is a row of the
//! result. Neither would an interrupt be heard meanwhile, nor would other statements of the process get their turn.

use crate::session::Running;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{Stream, StreamExt};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The same join, which ends when the statement is interrupted, and lets others go on elsewhere while it is at work.
///
/// # Errors
/// None of ours.
pub(crate) fn long_join(join: &NestedLoopJoinExec, running: Option<Arc<Running>>) -> Result<Arc<dyn ExecutionPlan>> {
    let heard = |filter: &JoinFilter| match running {
        Some(running) => {
            let condition = Interruptible { condition: Arc::clone(filter.expression()), running };
            let columns = filter.column_indices().to_vec();
            JoinFilter::new(Arc::new(condition), columns, Arc::clone(filter.schema()))
        }
        None => filter.clone(),
    };
    let filter = join.filter().map(heard);
    let join: Arc<dyn ExecutionPlan> = Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()?);
    Ok(Arc::new(LongPollExec { join }))
}

/// The rows of a join each of whose polls may take long.
#[derive(Debug)]
struct LongPollExec {
    join: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for LongPollExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LongPollExec")
    }
}

impl ExecutionPlan for LongPollExec {
    fn name(&self) -> &str {
        "LongPollExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.join.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.join]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(join) => Ok(Arc::new(LongPollExec { join })),
            None => internal_err!("a join is missing"),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(LongPolls { rows: self.join.execute(partition, context)? }))
    }
}

struct LongPolls {
    rows: SendableRecordBatchStream,
}

impl Stream for LongPolls {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        tokio::task::block_in_place(|| self.rows.poll_next_unpin(cx))
    }
}

impl RecordBatchStream for LongPolls {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

/// A condition that fails once its statement is interrupted.
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
