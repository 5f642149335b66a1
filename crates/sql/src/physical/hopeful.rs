//! A plan of our engine, and one of the same rows whose joins, groups and sorts are DataFusion's, for where ours does not fit
//! the memory.
//!
//! Ours spill what they can part; what has no keys, or all rows of one key, they cannot. How much that is is known only from
//! estimates, which have to be generous where the plan has no way back. Who keeps rows asks for memory before the first row
//! comes out: until then there is a way back.

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
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Runs the one, and if memory runs out before its first row, the other.
#[derive(Debug)]
pub(crate) struct HopefulExec {
    hopeful: Arc<dyn ExecutionPlan>,
    careful: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    gave_up: Arc<AtomicBool>,
}

/// How often it is looked whether a plan that gave up has given back its memory, and how long each time.
const PATIENCE: usize = 100;
const PAUSE: Duration = Duration::from_millis(5);

impl HopefulExec {
    /// The plan that is tried, and the other one.
    pub(crate) fn both(&self) -> [&Arc<dyn ExecutionPlan>; 2] {
        [&self.hopeful, &self.careful]
    }

    /// Whether the first has been given up, as it will be seen.
    pub(super) fn gave_up(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.gave_up)
    }

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
            true => write!(f, "DataFusion's plan, since ours did not fit the memory"),
            false => write!(f, "DataFusion's plan if ours does not fit the memory"),
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
            let pool = Arc::new(SomeLeft::of(context.memory_pool()));
            let begun = match hopeful.execute(partition, with_pool(&context, pool.clone())) {
                Ok(rows) => first_rows(rows).await,
                Err(error) => Err(error),
            };
            match begun {
                Err(error) if may_be_for_memory(&error) => {}
                begun => {
                    pool.takes_all.store(true, Ordering::Relaxed);
                    return begun;
                }
            }
            gave_up.store(true, Ordering::Relaxed);
            forget_runs(&hopeful);
            for _ in 0..PATIENCE {
                if pool.taken.load(Ordering::Relaxed) == 0 {
                    break;
                }
                // Some of its workers have not noticed yet.
                _ = tokio::task::spawn_blocking(|| std::thread::sleep(PAUSE)).await;
            }
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

/// Whether memory was refused, among the few other things that the other plan meets as well.
fn may_be_for_memory(error: &DataFusionError) -> bool {
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

/// The same context with another pool.
fn with_pool(context: &TaskContext, memory_pool: Arc<dyn MemoryPool>) -> Arc<TaskContext> {
    let runtime = RuntimeEnv { memory_pool, ..context.runtime_env().as_ref().clone() };
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

/// A pool for a plan that may fail for want of memory: a quarter stays free, so that others do not fail for it, until it has
/// handed out rows.
#[derive(Debug)]
struct SomeLeft {
    pool: Arc<dyn MemoryPool>,
    /// Bytes, by this plan alone.
    taken: AtomicUsize,
    takes_all: AtomicBool,
}

impl SomeLeft {
    fn of(pool: &Arc<dyn MemoryPool>) -> SomeLeft {
        SomeLeft { pool: Arc::clone(pool), taken: AtomicUsize::new(0), takes_all: AtomicBool::new(false) }
    }
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
        self.taken.fetch_add(additional, Ordering::Relaxed);
        self.pool.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.taken.fetch_sub(shrink, Ordering::Relaxed);
        self.pool.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if !self.takes_all.load(Ordering::Relaxed)
            && let MemoryLimit::Finite(bytes) = self.pool.memory_limit()
            && self.pool.reserved().saturating_add(additional) > bytes / 4 * 3
        {
            return Err(DataFusionError::ResourcesExhausted("a quarter of the memory stays free".into()));
        }
        self.pool.try_grow(reservation, additional)?;
        self.taken.fetch_add(additional, Ordering::Relaxed);
        Ok(())
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
