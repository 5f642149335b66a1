//! A pipeline at work.

mod counters;
mod feed;
mod worker;

pub use counters::Counters;
pub use worker::Worker;

use crate::aggregate::AggregatePlan;
use crate::estimate::bounds;
use crate::expr::{Program, compile, compile_condition};
use crate::flow::{Layout, StepPlan, StepsPlan};
use crate::group::GroupPlan;
use crate::join::{BuildPlan, JoinTable, ProbePlan};
use crate::measure::{Measured, NotedMemory};
use crate::scan::{Claims, ScanPlan, Shared, vector_count};
use crate::sort::SortPlan;
use crate::window::WindowPlan;
use crate::{
    AggregateState, Error, Expr, Gathered, Groups, LogicalType, Memory, Output, Pipeline, Result, ScanColumn, Sorted,
    Source, Step, TableSource, Windowed,
};
use sinter_codec::{CompareOp, Scalar, VECTOR_LEN};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// A started pipeline, shared by its workers.
#[derive(Debug)]
pub struct Run {
    /// What runs.
    pub pipeline: Pipeline,
    /// What it has touched, build sides of joins included.
    pub counters: Arc<Counters>,
    /// The same of its scan alone.
    pub(crate) own_counters: Counters,
    pub(crate) measured: Option<Arc<Measured>>,
    scan: ScanPlan,
    /// In its place, once tables of joins tell which rows meet nobody.
    narrowed_scan: OnceLock<ScanPlan>,
    steps: StepsPlan,
    /// Of which join each column beyond those of the scan is, and which of its payload.
    payload: Vec<(usize, usize)>,
    /// Where rows come from, if not from a table, and those that were gathered once they are there.
    pub(crate) inputs: Vec<Arc<Run>>,
    gathered: OnceLock<Gathered>,
    /// The build sides, by join.
    pub(crate) builds: Vec<Arc<Run>>,
    tables: OnceLock<Vec<Arc<JoinTable>>>,
    preparation: Mutex<Preparation>,
    output: OutputPlan,
    claims: Claims,
    next_vector: AtomicUsize,
    next_announced: AtomicUsize,
    /// Vectors of the source that are done, and whether somebody has taken what comes after all of them.
    vectors_done: AtomicUsize,
    rest_is_taken: AtomicBool,
    /// Workers that feed rows of a union.
    feeders: AtomicUsize,
    rows_out: AtomicUsize,
    /// Shared with the build sides.
    cancelled: Arc<AtomicBool>,
}

/// How far the build sides are.
#[derive(Debug, Default)]
enum Preparation {
    #[default]
    Pending,
    Done,
    /// With this error, or one as [`Error::again`] has it.
    Failed(Error),
}

#[derive(Debug)]
enum OutputPlan {
    Rows(Program),
    Aggregate(AggregatePlan),
    Groups(Arc<GroupPlan>),
    Sorted(Arc<SortPlan>),
    Windows(WindowPlan),
    /// The table of a join.
    Build(Arc<BuildPlan>),
}

impl OutputPlan {
    /// What a pipeline hands out.
    fn new(pipeline: &Pipeline, types: &[LogicalType]) -> Result<OutputPlan> {
        Ok(match &pipeline.output {
            Output::Rows(exprs) => OutputPlan::Rows(compile(&exprs.iter().collect::<Vec<_>>(), types)?),
            Output::Aggregate(aggregates) => {
                OutputPlan::Aggregate(AggregatePlan::new(aggregates, &pipeline.columns, types)?)
            }
            Output::Groups { keys, aggregates } => {
                OutputPlan::Groups(Arc::new(GroupPlan::new(keys, aggregates, types, pipeline)?))
            }
            Output::Windows { rows, window } => OutputPlan::Windows(WindowPlan::new(rows, window, types, pipeline)?),
            Output::Sorted { rows, order } => {
                OutputPlan::Sorted(Arc::new(SortPlan::new(rows, order, types, pipeline)?))
            }
        })
    }

    /// The columns that it reads.
    fn columns(&self) -> &[usize] {
        match self {
            OutputPlan::Rows(program) => &program.columns,
            OutputPlan::Aggregate(plan) => plan.columns(),
            OutputPlan::Groups(plan) => plan.columns(),
            OutputPlan::Sorted(plan) => plan.all_columns(),
            OutputPlan::Windows(plan) => plan.columns(),
            OutputPlan::Build(plan) => plan.columns(),
        }
    }
}

impl Pipeline {
    /// Makes the pipeline ready; nothing is read before a worker asks.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where an expression is none of ours.
    pub fn start(self) -> Result<Arc<Run>> {
        let output = OutputPlan::new(&self, &self.column_types())?;
        Run::new(self, output, &Shares::default())
    }

    /// The same, and notes what each operator does, for [`Run::explain`].
    ///
    /// # Errors
    /// As [`Pipeline::start`].
    pub fn start_measured(self) -> Result<Arc<Run>> {
        let output = OutputPlan::new(&self, &self.column_types())?;
        Run::new(self, output, &Shares { is_measured: true, ..Shares::default() })
    }
}

/// What all runs of a plan share.
#[derive(Default)]
struct Shares {
    counters: Arc<Counters>,
    cancelled: Arc<AtomicBool>,
    is_measured: bool,
}

impl Run {
    fn new(pipeline: Pipeline, output: OutputPlan, shares: &Shares) -> Result<Arc<Run>> {
        let scan = ScanPlan::new(&pipeline)?;
        let inner: &[Pipeline] = match &pipeline.source {
            Source::Table(_) => &[],
            Source::Gathered(inner) => std::slice::from_ref(inner),
            Source::Union(all) => all,
        };
        let input = |inner: &Pipeline| {
            let plan = OutputPlan::new(inner, &inner.column_types())?;
            Run::new(inner.clone(), plan, shares)
        };
        let inputs = inner.iter().map(input).collect::<Result<Vec<_>>>()?;
        let mut types = pipeline.scan_types();
        let payload: Vec<(usize, usize)> = pipeline.payload().collect();
        let (mut steps, mut probes) = (Vec::new(), 0);
        for step in &pipeline.steps {
            steps.push(match step {
                Step::Filter(condition) => StepPlan::Filter(compile_condition(condition, &types)?),
                Step::Join(join) => StepPlan::Join(ProbePlan::new(probes, join, &types)?),
            });
            if let Step::Join(join) = step {
                types.extend(join.payload_types());
                probes += 1;
            }
        }
        let steps = StepsPlan::new(steps, output.columns(), pipeline.columns.len());
        let mut builds = Vec::with_capacity(probes);
        for (number, join) in pipeline.joins().enumerate() {
            let mine = (0..payload.len()).filter(|&column| payload[column].0 == number);
            let is_wanted = |column: usize| steps.wants(column) || output.columns().contains(&column);
            let is_wanted: Vec<bool> = mine.map(|column| is_wanted(pipeline.columns.len() + column)).collect();
            let key_types: Vec<LogicalType> = join.keys.iter().map(|key| key.type_over(&types)).collect();
            let plan = OutputPlan::Build(Arc::new(BuildPlan::new(join, &key_types, &is_wanted)?));
            builds.push(Run::new((*join.build).clone(), plan, shares)?);
        }
        Ok(Arc::new(Run {
            claims: Claims::new(&pipeline),
            counters: Arc::clone(&shares.counters),
            own_counters: Counters::default(),
            measured: shares.is_measured.then(|| Arc::new(Measured::new(pipeline.steps.len()))),
            pipeline,
            scan,
            narrowed_scan: OnceLock::new(),
            steps,
            payload,
            inputs,
            gathered: OnceLock::new(),
            builds,
            tables: OnceLock::new(),
            preparation: Mutex::default(),
            output,
            next_vector: AtomicUsize::new(0),
            next_announced: AtomicUsize::new(0),
            vectors_done: AtomicUsize::new(0),
            rest_is_taken: AtomicBool::new(false),
            feeders: AtomicUsize::new(0),
            rows_out: AtomicUsize::new(0),
            cancelled: Arc::clone(&shares.cancelled),
        }))
    }
}

impl Run {
    /// A worker; take one per thread.
    pub fn worker(self: &Arc<Run>) -> Worker {
        if let Some(measured) = &self.measured {
            measured.workers.fetch_add(1, Ordering::Relaxed);
        }
        Worker { run: Arc::clone(self), feed: Default::default(), rows: Default::default() }
    }

    /// Makes every worker stop with [`Error::Cancelled`] at its next vector.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// How many of the [vectors to scan](Pipeline::vectors_to_scan) are done or under way. Cheap enough to be asked many times
    /// a second.
    pub fn vectors_scanned(&self) -> usize {
        let own = self.pipeline.source.table().map_or(0, |table| self.claims.taken(&**table));
        own + self.inputs.iter().chain(&self.builds).map(|run| run.vectors_scanned()).sum::<usize>()
    }

    /// Makes the tables of all joins and the groups that rows come from, on this many threads, this one included. Whoever
    /// comes later waits. Not all pipelines [need it](Pipeline::needs_preparation).
    ///
    /// # Errors
    /// As [`Run::groups`]; when another caller's preparation failed, its error, or [`Error::FailedBefore`] with the text.
    pub fn prepare(&self, threads: usize, memory: &Arc<dyn Memory>) -> Result<()> {
        let mut preparation = self.preparation.lock().unwrap_or_else(PoisonError::into_inner);
        match &*preparation {
            Preparation::Pending => {}
            Preparation::Done => return Ok(()),
            Preparation::Failed(error) => return Err(error.again()),
        }
        let prepared = self.prepare_here(threads, memory);
        *preparation = match &prepared {
            Ok(()) => Preparation::Done,
            Err(error) => Preparation::Failed(error.again()),
        };
        prepared
    }

    fn prepare_here(&self, threads: usize, memory: &Arc<dyn Memory>) -> Result<()> {
        for input in &self.inputs {
            match &self.pipeline.source {
                Source::Gathered(_) => {
                    let gathered = input.gathered(threads, memory)?;
                    self.gathered.get_or_init(|| gathered);
                }
                Source::Table(_) | Source::Union(_) => input.prepare(threads, memory)?,
            }
        }
        let tables = self.builds.iter().map(|build| build.table(threads, memory).map(Arc::new));
        let tables = tables.collect::<Result<Vec<_>>>()?;
        let conditions = self.pipeline.conditions_of_joins(&tables);
        if !conditions.is_empty() {
            let narrowed = ScanPlan::narrowed(&self.pipeline, &conditions)?;
            self.narrowed_scan.get_or_init(|| narrowed);
        }
        self.tables.get_or_init(|| tables);
        Ok(())
    }

    /// The table of this build side.
    fn table(self: &Arc<Run>, threads: usize, memory: &Arc<dyn Memory>) -> Result<JoinTable> {
        let OutputPlan::Build(plan) = &self.output else {
            return Err(Error::Unsupported("rows as a join's table".into()));
        };
        self.prepare(threads, memory)?;
        let memory = &self.noted(memory);
        let sinks = self.on_threads(threads, |worker| worker.build(memory))?;
        self.finished(|| plan.finish(sinks, memory))
    }

    /// Merges what the workers found into the one row of results, in the order of the aggregates.
    ///
    /// # Errors
    /// [`Error::Overflow`] where a result does not fit its type.
    pub fn finish(&self, states: Vec<AggregateState>) -> Result<Vec<Scalar>> {
        match &self.output {
            OutputPlan::Aggregate(plan) => AggregateState::finish(plan, states),
            _ => Err(Error::Unsupported("rows as one row of aggregates".into())),
        }
    }

    /// Aggregates on this many threads, this one included, and returns the one row of results. Joins have been
    /// [prepared](Run::prepare).
    ///
    /// # Errors
    /// The first error of any worker; the others stop then. A panic becomes [`Error::Foreign`].
    pub fn aggregate(self: &Arc<Run>, threads: usize) -> Result<Vec<Scalar>> {
        let states = self.on_threads(threads, Worker::aggregate)?;
        self.finish(states)
    }

    /// Groups on this many threads, this one included. For [`Output::Groups`].
    ///
    /// # Errors
    /// As [`Run::aggregate`], and what `memory` says when it has no more.
    pub fn groups(self: &Arc<Run>, threads: usize, memory: &Arc<dyn Memory>) -> Result<Groups> {
        self.prepare(threads, memory)?;
        let memory = &self.noted(memory);
        let groups = self.on_threads(threads, |worker| worker.groups(memory))?;
        self.finished(|| merged(groups, &self.cancelled))
    }

    /// Sorts on this many threads, this one included. For [`Output::Sorted`], and what comes before [`Output::Windows`].
    ///
    /// # Errors
    /// As [`Run::groups`].
    pub fn sorted(self: &Arc<Run>, threads: usize, memory: &Arc<dyn Memory>) -> Result<Sorted> {
        let plan = match &self.output {
            OutputPlan::Sorted(plan) => plan,
            OutputPlan::Windows(plan) => plan.sort(),
            _ => return Err(Error::Unsupported("rows without an order as sorted ones".into())),
        };
        self.prepare(threads, memory)?;
        let memory = &self.noted(memory);
        let runs = self.on_threads(threads, |worker| worker.sort(plan, memory))?;
        self.finished(|| Sorted::new(plan, runs, memory, &self.cancelled))
    }

    /// What it makes of all its rows, on this many threads, this one included. Not for [`Output::Rows`].
    ///
    /// # Errors
    /// As [`Run::groups`].
    pub fn gathered(self: &Arc<Run>, threads: usize, memory: &Arc<dyn Memory>) -> Result<Gathered> {
        Ok(match &self.output {
            OutputPlan::Groups(_) => Gathered::Groups(Box::new(self.groups(threads, memory)?)),
            OutputPlan::Sorted(_) => Gathered::Sorted(self.sorted(threads, memory)?),
            OutputPlan::Windows(plan) => {
                let (sorted, memory) = (self.sorted(threads, memory)?, &self.noted(memory));
                Gathered::Windowed(self.finished(|| Windowed::new(plan, sorted, memory, &self.cancelled))?)
            }
            _ => {
                self.prepare(threads, memory)?;
                Gathered::Row(self.aggregate(threads)?, self.pipeline.output_types())
            }
        })
    }

    /// The memory, with a note of how much of it is held where that is wanted.
    fn noted(&self, memory: &Arc<dyn Memory>) -> Arc<dyn Memory> {
        match &self.measured {
            Some(measured) => Arc::new(NotedMemory { memory: Arc::clone(memory), measured: Arc::clone(measured) }),
            None => Arc::clone(memory),
        }
    }

    /// Does what is left when all workers are done; the time is that of the output.
    fn finished<T>(&self, finish: impl FnOnce() -> Result<T>) -> Result<T> {
        let begun = self.measured.as_ref().map(|_| Instant::now());
        let finished = finish();
        if let Some((measured, begun)) = self.measured.as_ref().zip(begun) {
            measured.finished(begun);
        }
        finished
    }

    /// Does `work` with a worker on each thread, and returns what all of them brought.
    fn on_threads<T: Send>(
        self: &Arc<Run>,
        threads: usize,
        work: impl Fn(Worker) -> Result<T> + Send + Sync,
    ) -> Result<Vec<T>> {
        self.layout()?;
        let work = || {
            let done = catch_unwind(AssertUnwindSafe(|| work(self.worker())));
            let done = done.unwrap_or_else(|panic| Err(panicked(&*panic)));
            if done.is_err() {
                self.cancel();
            }
            done
        };
        let all = std::thread::scope(|scope| {
            let helper_count = threads.min(self.worker_count_max()).saturating_sub(1);
            let helpers: Vec<_> = (0..helper_count).map(|_| scope.spawn(work)).collect();
            let mut all = vec![work()];
            let joined = helpers.into_iter().map(|helper| helper.join().unwrap_or_else(|panic| Err(panicked(&*panic))));
            all.extend(joined);
            all
        });
        // A worker that failed cancelled the others, so their errors say less.
        let (good, bad): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
        let mut errors: Vec<Error> = bad.into_iter().filter_map(Result::err).collect();
        errors.sort_by_key(|error| matches!(error, Error::Cancelled));
        match errors.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(good.into_iter().filter_map(Result::ok).collect()),
        }
    }

    /// What its scan does, as far as that is known.
    pub(crate) fn scan_plan(&self) -> &ScanPlan {
        self.narrowed_scan.get().unwrap_or(&self.scan)
    }

    fn layout(&self) -> Result<Layout<'_>> {
        let tables = match self.tables.get() {
            Some(tables) => tables,
            None if self.builds.is_empty() => &[][..],
            None => return Err(Error::Unsupported("a join whose table is not there yet".into())),
        };
        let (scan_columns, scan_types) = (self.pipeline.columns.len(), self.scan.types());
        Ok(Layout { scan_columns, scan_types, payload: &self.payload, tables })
    }

    /// How many workers find something to do.
    fn worker_count_max(&self) -> usize {
        match self.gathered.get() {
            Some(gathered) => gathered.len().div_ceil(VECTOR_LEN),
            None => self.pipeline.worker_count_max(),
        }
    }

    /// How many vectors workers share.
    fn vector_count(&self) -> usize {
        match (self.gathered.get(), self.pipeline.source.table()) {
            (None, Some(table)) => vector_count(&**table),
            (gathered, _) => gathered.map_or(0, |gathered| gathered.len().div_ceil(VECTOR_LEN)),
        }
    }

    fn shared<'a>(&'a self, table: &'a dyn TableSource, layout: Layout<'a>) -> Shared<'a> {
        Shared {
            plan: self.scan_plan(),
            layout,
            source: table,
            claims: &self.claims,
            next_announced: &self.next_announced,
            is_limited: self.pipeline.limit.is_some(),
            cancelled: &self.cancelled,
            on_damage: &self.pipeline.on_damage,
        }
    }
}

/// Which part of its own bounds a key must be within for the bounds of a join's table to be worth a test.
const NARROWER: f64 = 0.75;

impl Pipeline {
    /// Conditions on the table that it scans without which its rows come to nothing, as the tables of its joins tell: a row
    /// whose key is beyond all of theirs has no partner. Only what drops much is worth a test.
    fn conditions_of_joins(&self, tables: &[Arc<JoinTable>]) -> Vec<Expr> {
        let mut conditions = Vec::new();
        if self.source.table().is_none() {
            return conditions;
        }
        for (join, table) in self.joins().zip(tables) {
            if join.kind.needs_partner() && table.is_empty() {
                return vec![Expr::Literal(Scalar::Int(0), LogicalType::Boolean)];
            }
            if join.kind.needs_partner() && !join.nulls_are_equal {
                let keys = join.keys.iter().enumerate();
                conditions.extend(keys.filter_map(|(key, expr)| self.condition(expr, table.key_bounds(key)?)));
            }
            if join.kind.has_rest() {
                // Of whom it meets depends what comes out after all rows.
                break;
            }
        }
        conditions
    }

    /// That a key lies between these, where it is a column of the table and its own bounds are wider.
    fn condition(&self, key: &Expr, (low, high): (i128, i128)) -> Option<Expr> {
        let Expr::Column(column) = key else { return None };
        let ScanColumn::Table(_) = self.columns.get(*column)? else { return None };
        let (least, greatest) = bounds(key, self)?;
        let span = |low: i128, high: i128| high as f64 - low as f64 + 1.0;
        if span(low.max(least), high.min(greatest)) > NARROWER * span(least, greatest) {
            return None;
        }
        let ty = self.scan_types().swap_remove(*column);
        let compare = |op, bound| {
            let bound = Expr::Literal(Scalar::Int(bound), ty.clone());
            Expr::Compare(op, Box::new(key.clone()), Box::new(bound))
        };
        Some(Expr::And(vec![compare(CompareOp::GreaterOrEqual, low), compare(CompareOp::LessOrEqual, high)]))
    }
}

/// The groups that all workers found.
fn merged(groups: Vec<Groups>, cancelled: &AtomicBool) -> Result<Groups> {
    let merged = groups.into_iter().map(Ok).reduce(|all, other| {
        let (all, other) = (all?, other?);
        let (mut more, fewer) = if all.len() < other.len() { (other, all) } else { (all, other) };
        more.merge(fewer, cancelled)?;
        Ok(more)
    });
    let mut merged = merged.unwrap_or_else(|| Err(Error::Unsupported("groups of no thread".into())))?;
    merged.finish(cancelled)?;
    Ok(merged)
}

/// A panic is our own mistake; whoever asked for the query still gets an answer.
fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Error::Foreign(format!("a worker panicked: {}", text.unwrap_or_default()))
}
