//! A plan that keeps everything in memory, and one of the same rows that can spill, for where that turns out not to fit.
//!
//! How much a join or groups keep is known only from estimates, which have to be generous where the plan has no way back.
//! What cannot spill asks for its memory before its first row comes out: until then there is a way back.

use super::PipelineExec;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs the one, and if memory runs out before its first row, the other.
#[derive(Debug)]
pub(crate) struct HopefulExec {
    hopeful: Arc<dyn ExecutionPlan>,
    careful: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    gave_up: Arc<AtomicBool>,
}

impl HopefulExec {
    /// Of plans of the same rows; the careful one alone where their columns have different types, or where rows come out
    /// before all has asked for its memory.
    pub(crate) fn of(hopeful: Arc<dyn ExecutionPlan>, careful: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let types = |plan: &Arc<dyn ExecutionPlan>| -> Vec<_> {
            plan.schema().fields().iter().map(|field| field.data_type().clone()).collect()
        };
        if types(&hopeful) != types(&careful) || begins_early(&hopeful) {
            return careful;
        }
        let (hopeful, careful) = (in_one_partition(hopeful), in_one_partition(careful));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(careful.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Arc::new(HopefulExec { hopeful, careful, properties: Arc::new(properties), gave_up: Arc::default() })
    }
}

/// Whether something may ask for memory only when others have handed out rows.
fn begins_early(plan: &Arc<dyn ExecutionPlan>) -> bool {
    matches!(plan.name(), "UnionExec" | "InterleaveExec" | "RecursiveQueryExec")
        || plan.children().into_iter().any(begins_early)
}

/// What has an order that matters is in one already.
fn in_one_partition(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}

impl DisplayAs for HopefulExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.gave_up.load(Ordering::Relaxed) {
            true => write!(f, "Spilling, since it did not fit the memory"),
            false => write!(f, "Spilling if it does not fit the memory"),
        }
    }
}

impl ExecutionPlan for HopefulExec {
    fn name(&self) -> &str {
        "HopefulExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    /// The plan that runs.
    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![if self.gave_up.load(Ordering::Relaxed) { &self.careful } else { &self.hopeful }]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (hopeful, careful) = (Arc::clone(&self.hopeful), Arc::clone(&self.careful));
        let gave_up = Arc::clone(&self.gave_up);
        let chosen = async move {
            let begun = match hopeful.execute(partition, with_some_left(&context)) {
                Ok(rows) => first_rows(rows).await,
                Err(error) => Err(error),
            };
            match begun {
                Err(error) if is_out_of_memory(&error) => {}
                begun => return begun,
            }
            gave_up.store(true, Ordering::Relaxed);
            forget_runs(&hopeful);
            careful.execute(partition, context)
        };
        let rows = futures::stream::once(chosen).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// The same rows, of which the first are there.
async fn first_rows(mut rows: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
    let schema = rows.schema();
    let first = loop {
        match rows.next().await.transpose()? {
            Some(batch) if batch.num_rows() == 0 => {}
            first => break first,
        }
    };
    let all = futures::stream::iter(first.map(Ok)).chain(rows);
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, all)))
}

fn is_out_of_memory(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => true,
        DataFusionError::External(error) => {
            matches!(error.downcast_ref(), Some(crate::Error::Unavailable(_)))
        }
        _ => false,
    }
}

/// Lets go of what the runs of a plan have gathered.
fn forget_runs(plan: &Arc<dyn ExecutionPlan>) {
    if let Some(exec) = (plan.as_ref() as &dyn std::any::Any).downcast_ref::<PipelineExec>() {
        exec.forget_run();
    }
    plan.children().into_iter().for_each(forget_runs);
}

/// The context for a plan that may fail for want of memory: others should not fail for it.
fn with_some_left(context: &TaskContext) -> Arc<TaskContext> {
    let runtime = RuntimeEnv {
        memory_pool: Arc::new(SomeLeft { pool: Arc::clone(context.memory_pool()) }),
        ..context.runtime_env().as_ref().clone()
    };
    Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        context.session_config().clone(),
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        Arc::new(runtime),
    ))
}

/// A pool of which a quarter stays free for others.
#[derive(Debug)]
struct SomeLeft {
    pool: Arc<dyn MemoryPool>,
}

impl MemoryPool for SomeLeft {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if let MemoryLimit::Finite(bytes) = self.pool.memory_limit()
            && self.pool.reserved().saturating_add(additional) > bytes / 4 * 3
        {
            return Err(DataFusionError::ResourcesExhausted("a quarter of the memory stays free".into()));
        }
        self.pool.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}

impl fmt::Display for SomeLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
