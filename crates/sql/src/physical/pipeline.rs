//! A pipeline of our engine as a leaf of a physical plan.

use crate::query_memory::OperatorMemory;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::{StreamExt, TryFutureExt};
use sinter_codec::VECTOR_LEN;
use sinter_exec::{Batch, LogicalType, Output, Pipeline, Reader, Run, Worker, edge};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Poll;

/// Vectors joined into one record batch: DataFusion's operators want about 8192 rows at a time.
const VECTORS_PER_BATCH: usize = 8;

/// Runs a [`Pipeline`]. Partitions are its workers; aggregates have one partition and start their workers themselves.
#[derive(Debug)]
pub(crate) struct PipelineExec {
    pipeline: Pipeline,
    types: Vec<LogicalType>,
    schema: SchemaRef,
    statistics: Arc<Statistics>,
    threads: usize,
    properties: Arc<PlanProperties>,
    /// Whether its runs note what each operator does.
    is_measured: AtomicBool,
    /// The run that partitions join, as long as one is to come. A partition that asks a second time begins a new run.
    current: Mutex<Current>,
}

#[derive(Debug, Default)]
struct Current {
    run: Option<Arc<Run>>,
    /// Gone once nobody wants anything of the run any more.
    wanted: Weak<Wanted>,
    joined: Vec<bool>,
}

impl Current {
    /// The run, if somebody still wants something of it.
    fn alive(&self) -> Option<Arc<Run>> {
        self.run.clone().or_else(|| self.wanted.upgrade().map(|wanted| Arc::clone(&wanted.run)))
    }
}

impl PipelineExec {
    pub(crate) fn new(
        mut pipeline: Pipeline,
        schema: SchemaRef,
        statistics: Statistics,
        threads: usize,
    ) -> Result<PipelineExec> {
        pipeline.bring_lengths();
        let types = pipeline.output_types();
        let partitions = match &pipeline.output {
            Output::Rows(_) => threads.min(pipeline.worker_count_max()).max(1),
            _ => 1,
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(PipelineExec {
            pipeline,
            types,
            schema,
            statistics: Arc::new(statistics),
            threads,
            properties: Arc::new(properties),
            is_measured: AtomicBool::new(false),
            current: Mutex::default(),
        })
    }

    /// Makes its next runs note what each operator does.
    pub(crate) fn measure(&self) {
        self.is_measured.store(true, Ordering::Relaxed);
    }

    /// The latest run of those that are measured, for its counters.
    pub(crate) fn latest_run(&self) -> Option<Arc<Run>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).run.clone()
    }

    /// How many vectors of tables the latest run has scanned, and how many there are.
    pub(super) fn scanned(&self) -> (usize, usize) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let total = self.pipeline.vectors_to_scan();
        let done = match current.alive() {
            Some(run) => run.vectors_scanned(),
            None if current.joined.is_empty() => 0,
            None => total,
        };
        (done, total)
    }

    /// Ends the latest run, and lets go of it; whoever asks next begins a new one.
    pub(super) fn forget_run(&self) {
        let current = std::mem::take(&mut *self.current.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(run) = current.alive() {
            run.cancel();
        }
    }

    fn join(&self, partition: usize) -> Result<(Arc<Run>, Arc<Wanted>)> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let partitions = self.properties.partitioning.partition_count();
        let joined = current.joined.get(partition).copied().unwrap_or(true);
        let run = match &current.run {
            Some(run) if !joined => Arc::clone(run),
            _ => {
                let run = match self.is_measured.load(Ordering::Relaxed) {
                    true => self.pipeline.clone().start_measured(),
                    false => self.pipeline.clone().start(),
                };
                let run = run.map_err(crate::Error::from)?;
                current.joined = vec![false; partitions];
                current.run = Some(Arc::clone(&run));
                current.wanted = Weak::new();
                run
            }
        };
        if let Some(joined) = current.joined.get_mut(partition) {
            *joined = true;
        }
        let wanted = current.wanted.upgrade().unwrap_or_else(|| {
            let wanted = Arc::new(Wanted { run: Arc::clone(&run), by_all: AtomicBool::new(false) });
            current.wanted = Arc::downgrade(&wanted);
            wanted
        });
        let all_joined = current.joined.iter().all(|joined| *joined);
        wanted.by_all.store(all_joined, Ordering::Relaxed);
        if all_joined && !self.is_measured.load(Ordering::Relaxed) {
            // Whoever runs holds it, and what it keeps goes with them.
            current.run = None;
        }
        Ok((run, wanted))
    }
}

impl DisplayAs for PipelineExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pipeline)
    }
}

impl ExecutionPlan for PipelineExec {
    fn name(&self) -> &str {
        "PipelineExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
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

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let statistics = (*self.statistics).clone();
        let exec = PipelineExec::new(self.pipeline.clone(), Arc::clone(&self.schema), statistics, self.threads)?;
        Ok(Arc::new(exec))
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        Ok(match partition {
            None => Arc::clone(&self.statistics),
            Some(_) => Arc::new(Statistics::new_unknown(&self.schema)),
        })
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let Output::Rows(_) = self.pipeline.output else { return None };
        let mut pipeline = self.pipeline.clone();
        pipeline.limit = match (pipeline.limit, limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let statistics = (*self.statistics).clone().to_inexact();
        let exec = PipelineExec::new(pipeline, Arc::clone(&self.schema), statistics, self.threads).ok()?;
        Some(Arc::new(exec))
    }

    fn fetch(&self) -> Option<usize> {
        self.pipeline.limit
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (run, wanted) = self.join(partition)?;
        let threads = self.threads;
        let (types, schema) = (self.types.clone(), Arc::clone(&self.schema));
        let operator = match &self.pipeline.output {
            Output::Sorted { .. } => "ORDER BY",
            Output::Windows { .. } => "a window",
            Output::Rows(_) | Output::Aggregate(_) if self.pipeline.source.table().is_some() => "a join",
            _ => "GROUP BY",
        };
        let memory = OperatorMemory::of(operator, &context);
        let stream = match &self.pipeline.output {
            Output::Rows(_) if self.pipeline.needs_preparation() => {
                let kept = Arc::clone(&wanted);
                let prepared = blocking(run, kept, move |run| {
                    run.prepare(threads, &memory).map_err(crate::Error::from)?;
                    Ok(run.worker())
                });
                let rows = prepared
                    .map_ok(move |worker| Rows { worker, _wanted: wanted, types, schema, done: false }.into_stream());
                rows.try_flatten_stream().boxed()
            }
            Output::Rows(_) => {
                let worker = run.worker();
                let rows = Rows { worker, _wanted: wanted, types, schema, done: false };
                rows.into_stream().boxed()
            }
            Output::Aggregate(_) => {
                let row = blocking(run, wanted, move |run| {
                    run.prepare(threads, &memory).map_err(crate::Error::from)?;
                    aggregate(run, threads, &types, &schema)
                });
                futures::stream::once(row).boxed()
            }
            Output::Groups { .. } | Output::GroupingSets { .. } | Output::Sorted { .. } | Output::Windows { .. } => {
                let kept = Arc::clone(&wanted);
                let gathered = blocking(run, kept, move |run| {
                    let gathered = run.gathered(threads, &memory).map_err(crate::Error::from)?;
                    let reader = Reader::new(gathered).map_err(crate::Error::from)?;
                    Ok(GatheredRows { reader, _wanted: wanted, types, schema, done: false })
                });
                gathered.map_ok(futures::stream::iter).try_flatten_stream().boxed()
            }
        };
        Ok(make_cooperative(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream))))
    }
}

/// Does `work` where waiting is allowed. Whoever drops the future does not want it any more.
async fn blocking<T: Send + 'static>(
    run: Arc<Run>,
    _wanted: Arc<Wanted>,
    work: impl FnOnce(&Arc<Run>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(move || work(&run));
    done.await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?
}

/// Held by those who wait for something of a run. Its workers stop when the last of them goes away, whether it has all it
/// wanted or not, unless a partition is still to come.
#[derive(Debug)]
struct Wanted {
    run: Arc<Run>,
    by_all: AtomicBool,
}

impl Drop for Wanted {
    fn drop(&mut self) {
        if *self.by_all.get_mut() {
            self.run.cancel();
        }
    }
}

/// One worker's rows as record batches.
struct Rows {
    worker: Worker,
    _wanted: Arc<Wanted>,
    types: Vec<LogicalType>,
    schema: SchemaRef,
    done: bool,
}

impl Rows {
    fn into_stream(self) -> impl futures::Stream<Item = Result<RecordBatch>> + Send {
        futures::stream::unfold(self, |mut rows| async move {
            loop {
                match rows.read() {
                    Ok(Poll::Ready(batch)) => return batch.map(|batch| (Ok(batch), rows)),
                    // Others want the thread, too, and here it shows if nobody wants the rows any more.
                    Ok(Poll::Pending) => tokio::task::yield_now().await,
                    Err(error) => {
                        rows.done = true;
                        return Some((Err(error), rows));
                    }
                }
            }
        })
    }

    fn read(&mut self) -> Result<Poll<Option<RecordBatch>>> {
        let mut parts = Vec::new();
        let mut batch = Batch::default();
        let mut rows = 0;
        while !self.done && parts.len() < VECTORS_PER_BATCH && rows < VECTORS_PER_BATCH * VECTOR_LEN {
            match self.worker.poll(&mut batch).map_err(crate::Error::from)? {
                Poll::Ready(true) => {}
                Poll::Ready(false) => self.done = true,
                Poll::Pending if parts.is_empty() => return Ok(Poll::Pending),
                Poll::Pending => break,
            }
            if self.done {
                break;
            }
            rows += batch.rows;
            parts.push(record_batch(to_arrow(&batch, &self.types)?, batch.rows, &self.schema)?);
        }
        joined(parts, &self.schema).map(Poll::Ready)
    }
}

/// Groups or sorted rows as record batches.
struct GatheredRows {
    reader: Reader,
    _wanted: Arc<Wanted>,
    types: Vec<LogicalType>,
    schema: SchemaRef,
    done: bool,
}

impl GatheredRows {
    fn read(&mut self) -> Result<Option<RecordBatch>> {
        let mut parts = Vec::new();
        let mut batch = Batch::default();
        let mut rows = 0;
        while !self.done && rows + VECTOR_LEN <= VECTORS_PER_BATCH * VECTOR_LEN {
            if !self.reader.next(&mut batch).map_err(crate::Error::from)? {
                self.done = true;
                break;
            }
            rows += batch.rows;
            parts.push(record_batch(to_arrow(&batch, &self.types)?, batch.rows, &self.schema)?);
        }
        joined(parts, &self.schema)
    }
}

impl Iterator for GatheredRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let batch = self.read().transpose()?;
        self.done |= batch.is_err();
        Some(batch)
    }
}

/// Few vectors as one record batch; `None` for none.
fn joined(mut parts: Vec<RecordBatch>, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
    Ok(match parts.len() {
        0 | 1 => parts.pop(),
        _ => Some(concat_batches(schema, &parts)?),
    })
}

fn to_arrow(batch: &Batch, types: &[LogicalType]) -> Result<Vec<ArrayRef>> {
    let columns = batch.columns.iter().zip(types).map(|(vector, ty)| edge::to_arrow(vector, ty, batch.rows));
    Ok(columns.collect::<sinter_exec::Result<Vec<_>>>().map_err(crate::Error::from)?)
}

/// The columns as the plan knows them.
fn record_batch(mut columns: Vec<ArrayRef>, rows: usize, schema: &SchemaRef) -> Result<RecordBatch> {
    for (column, field) in columns.iter_mut().zip(schema.fields()) {
        *column = as_field(Arc::clone(column), field.data_type())?;
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// The plan may know a column by a sibling of the type in which it leaves the engine, such as `Utf8` for text.
fn as_field(array: ArrayRef, ty: &arrow::datatypes::DataType) -> Result<ArrayRef> {
    if array.data_type() == ty { Ok(array) } else { Ok(cast(&array, ty)?) }
}

fn aggregate(run: &Arc<Run>, threads: usize, types: &[LogicalType], schema: &SchemaRef) -> Result<RecordBatch> {
    let row = run.aggregate(threads).map_err(crate::Error::from)?;
    let columns = row.iter().zip(types).map(|(value, ty)| edge::scalar_to_arrow(value, ty));
    record_batch(columns.collect::<sinter_exec::Result<Vec<_>>>().map_err(crate::Error::from)?, 1, schema)
}
