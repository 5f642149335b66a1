//! A pipeline at work.

mod counters;
mod feed;
mod helpers;
mod narrowing;
mod parts;
mod prepared;
mod reader;
mod role;
mod spilling;
mod stop;
mod worker;

pub use counters::Counters;
pub use reader::Reader;
pub(crate) use stop::Stop;
pub use worker::Worker;

use crate::expr::compile_condition;
use crate::flow::{Layout, StepPlan, StepsPlan};
use crate::join::{ProbePlan, WantedTable};
use crate::measure::{Measured, NotedMemory, Stage};
use crate::scan::{Claims, DecodedFields, ScanPlan, Shared, vector_count, worker_count_max};
use crate::sort::{SortPlan, SortedRuns};
use crate::{
    AggregateState, Error, Expr, Gathered, Groups, LogicalType, Memory, Output, Pipeline, Result, Sorted, Source, Step,
    TableSource, Windowed,
};
use prepared::{Preparation, Prepared};
use role::{OutputPlan, Role};
use sinter_codec::{Scalar, VECTOR_LEN};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
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
    /// Of measured runs that spilled rows: what parted them, and what ran over the parts, in order.
    pub(crate) stages: Mutex<Vec<Stage>>,
    scan: ScanPlan,
    /// The scan as joins narrowed it; of measured runs alone.
    explained_scan: OnceLock<Arc<ScanPlan>>,
    /// How keys of joins led to rows of the table, where they did.
    pub(crate) found_by: OnceLock<String>,
    steps: StepsPlan,
    /// Of which join each column beyond those of the scan is, and which of its payload.
    payload: Vec<(usize, usize)>,
    /// Where rows come from, if not from a table.
    pub(crate) inputs: Vec<Arc<Run>>,
    /// The build sides, by join.
    pub(crate) builds: Vec<Arc<Run>>,
    prepared: RwLock<Option<Arc<Prepared>>>,
    preparation: Mutex<Preparation>,
    /// What does the work of this one since rows were spilled.
    pub(crate) replacement: OnceLock<Arc<Run>>,
    role: Role,
    output: OutputPlan,
    claims: Claims,
    next_vector: AtomicUsize,
    next_announced: AtomicUsize,
    /// How much of the source is done, and whether somebody has taken what comes after all of it.
    source_done: AtomicUsize,
    rest_is_taken: AtomicBool,
    /// Workers that feed rows of a union.
    feeders: AtomicUsize,
    rows_out: AtomicUsize,
    stop: Arc<Stop>,
    shares: Shares,
}

impl Pipeline {
    /// Makes the pipeline ready; nothing is read before a worker asks.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where an expression is none of ours.
    pub fn start(self) -> Result<Arc<Run>> {
        Run::new(self, Role::Whole, Shares::default())
    }

    /// The same, and notes what each operator does, for [`Run::explain`].
    ///
    /// # Errors
    /// As [`Pipeline::start`].
    pub fn start_measured(self) -> Result<Arc<Run>> {
        let decoded = Some(Arc::default());
        Run::new(self, Role::Whole, Shares { is_measured: true, decoded, ..Shares::default() })
    }
}

/// What all runs of a plan share.
#[derive(Clone, Debug, Default)]
struct Shares {
    counters: Arc<Counters>,
    stop: Arc<Stop>,
    is_measured: bool,
    /// Of measured runs.
    decoded: Option<Arc<DecodedFields>>,
    /// How often rows have been parted that a part of them comes here.
    depth: u32,
}

/// A join's build side, with NULL for the payload that is not wanted: whoever cuts it in two keeps no columns for that.
fn without_unwanted(build: &Pipeline, key_count: usize, is_wanted: &[bool]) -> Pipeline {
    let (mut build, types) = (build.clone(), build.column_types());
    if let Output::Rows(exprs) = &mut build.output {
        for (expr, _) in exprs.iter_mut().skip(key_count).zip(is_wanted).filter(|(_, wanted)| !**wanted) {
            *expr = Expr::Literal(Scalar::Null, expr.type_over(&types));
        }
    }
    build
}

impl Run {
    fn new(pipeline: Pipeline, role: Role, shares: Shares) -> Result<Arc<Run>> {
        let measured = shares.is_measured.then(|| Arc::new(Measured::new(pipeline.steps.len())));
        Run::with_counters(pipeline, role, shares, measured)
    }

    /// [`Run::new`], measured by these counters alone.
    fn with_counters(
        pipeline: Pipeline,
        role: Role,
        shares: Shares,
        measured: Option<Arc<Measured>>,
    ) -> Result<Arc<Run>> {
        let output = role.plan(&pipeline)?;
        let scan = ScanPlan::new(&pipeline)?;
        let inner: &[Pipeline] = match &pipeline.source {
            Source::Table(_) => &[],
            Source::Gathered(inner) => std::slice::from_ref(inner),
            Source::Union(all) => all,
        };
        let input = |inner: &Pipeline| Run::new(inner.clone(), Role::Whole, shares.clone());
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
            let (kind, nulls_are_equal, has_condition) = (join.kind, join.nulls_are_equal, join.condition.is_some());
            let filter_keys_max = pipeline.filter_keys_max(number, join, scan.has_conditions_on_values());
            let build = without_unwanted(&join.build, key_types.len(), &is_wanted);
            let lists_keys = pipeline.found_by_join(number, join).is_some();
            let wanted =
                WantedTable { kind, nulls_are_equal, has_condition, key_types, is_wanted, filter_keys_max, lists_keys };
            builds.push(Run::new(build, Role::Build(wanted), shares.clone())?);
        }
        let needs_nothing = builds.is_empty() && !matches!(pipeline.source, Source::Gathered(_));
        Ok(Arc::new(Run {
            claims: Claims::new(&pipeline, pipeline.source.table().map(|table| &**table), shares.decoded.clone()),
            counters: Arc::clone(&shares.counters),
            own_counters: Counters::default(),
            measured,
            stages: Mutex::default(),
            pipeline,
            scan,
            explained_scan: OnceLock::new(),
            found_by: OnceLock::new(),
            steps,
            payload,
            inputs,
            builds,
            prepared: RwLock::new(needs_nothing.then(Arc::default)),
            preparation: Mutex::default(),
            replacement: OnceLock::new(),
            role,
            output,
            next_vector: AtomicUsize::new(0),
            next_announced: AtomicUsize::new(0),
            source_done: AtomicUsize::new(0),
            rest_is_taken: AtomicBool::new(false),
            feeders: AtomicUsize::new(0),
            rows_out: AtomicUsize::new(0),
            stop: Arc::clone(&shares.stop),
            shares,
        }))
    }
}

impl Run {
    /// A worker; take one per thread, once everything is [prepared](Run::prepare).
    pub fn worker(self: &Arc<Run>) -> Worker {
        self.current().own_worker()
    }

    /// The run that does the work: this one, or what took its place.
    fn current(self: &Arc<Run>) -> &Arc<Run> {
        let mut run = self;
        while let Some(next) = run.replacement.get() {
            run = next;
        }
        run
    }

    fn own_worker(self: &Arc<Run>) -> Worker {
        self.note_worker();
        Worker { run: Arc::clone(self), feed: Default::default(), rows: Default::default() }
    }

    /// Counts one who works at it, where somebody wants to know.
    fn note_worker(&self) {
        if let Some(measured) = &self.measured {
            measured.workers.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Makes every worker stop with [`Error::Cancelled`] at its next vector.
    pub fn cancel(&self) {
        self.stop.cancel();
    }

    /// How many of the [vectors to scan](Pipeline::vectors_to_scan) are done or under way. Cheap enough to be asked many times
    /// a second. Where rows are spilled, what is read again does not count: it stands still meanwhile.
    pub fn vectors_scanned(&self) -> usize {
        let taken = |table: &Arc<dyn TableSource>| match self.found_by.get() {
            // What is left of it is as good as done.
            Some(_) => vector_count(&**table),
            None => self.claims.taken(&**table),
        };
        let own = self.pipeline.source.table().map_or(0, taken);
        own + self.inputs.iter().chain(&self.builds).map(|run| run.vectors_scanned()).sum::<usize>()
    }

    /// Merges what the workers found into the one row of results, in the order of the aggregates.
    ///
    /// # Errors
    /// [`Error::Overflow`] where a result does not fit its type.
    pub fn finish(self: &Arc<Run>, states: Vec<AggregateState>) -> Result<Vec<Scalar>> {
        match &self.current().output {
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
        let states = self.current().on_threads(threads, Worker::aggregate)?;
        self.finish(states)
    }

    /// Groups on this many threads, this one included. For [`Output::Groups`] and [`Output::GroupingSets`].
    ///
    /// # Errors
    /// As [`Run::aggregate`], and what `memory` says when it has no more.
    pub fn groups(self: &Arc<Run>, threads: usize, memory: &Arc<dyn Memory>) -> Result<Groups> {
        self.prepare(threads, memory)?;
        let (run, memory) = (self.current(), self.noted(memory));
        let groups = run.on_threads(threads, move |worker| worker.groups(&memory))?;
        run.finished(|| Groups::merged(groups, threads, run.stop.flag()))
    }

    /// Sorts on this many threads, this one included. For [`Output::Sorted`], and what comes before [`Output::Windows`].
    ///
    /// # Errors
    /// As [`Run::groups`].
    pub fn sorted(self: &Arc<Run>, threads: usize, memory: &Arc<dyn Memory>) -> Result<Sorted> {
        self.prepare(threads, memory)?;
        let (run, memory) = (self.current(), &self.noted(memory));
        let plan = match &run.output {
            OutputPlan::Sorted(plan) => plan,
            OutputPlan::Windows(plan) => plan.sort(),
            _ => return Err(Error::Unsupported("rows without an order as sorted ones".into())),
        };
        let runs = run.sorted_runs(plan, false, threads, memory)?;
        run.finished(|| {
            let runs: Vec<_> = runs.into_iter().flat_map(|runs| runs.in_memory).collect();
            let room = Sorted::room(plan, &runs, memory)?;
            Sorted::new(plan, runs, room, threads, run.stop.flag())
        })
    }

    /// What it makes of all its rows, on this many threads, this one included; what does not fit the memory it spills, where
    /// that is possible. Not for [`Output::Rows`], and to be called once: what was prepared for it goes.
    ///
    /// # Errors
    /// As [`Run::groups`]; those of files where rows are spilled.
    pub fn gathered(self: &Arc<Run>, threads: usize, memory: &Arc<dyn Memory>) -> Result<Gathered> {
        self.prepare(threads, memory)?;
        let run = self.current();
        let gathered = match run.gathered_in_memory(threads, &run.output_memory(memory)) {
            Err(refused @ (Error::OutOfMemory(_) | Error::TooManyKeys)) => {
                run.gathered_in_parts(refused, threads, memory)
            }
            gathered => gathered,
        };
        if gathered.is_ok() {
            run.release();
        }
        gathered
    }

    fn gathered_in_memory(self: &Arc<Run>, threads: usize, memory: &Arc<dyn Memory>) -> Result<Gathered> {
        Ok(match &self.output {
            OutputPlan::Groups(_) => Gathered::Groups(Box::new(self.groups(threads, memory)?)),
            OutputPlan::Sorted(plan) => self.sorted_or_spilled(plan, threads, memory)?,
            OutputPlan::Windows(plan) => {
                let (sorted, memory) = (self.sorted(threads, memory)?, &self.noted(memory));
                Gathered::Windowed(self.finished(|| Windowed::new(plan, sorted, threads, memory, self.stop.flag()))?)
            }
            _ => Gathered::Row(self.aggregate(threads)?, self.pipeline.output_types()),
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

    /// The runs of all workers, which may spill them or not.
    fn sorted_runs(
        self: &Arc<Run>,
        plan: &Arc<SortPlan>,
        may_spill: bool,
        threads: usize,
        memory: &Arc<dyn Memory>,
    ) -> Result<Vec<SortedRuns>> {
        let (plan, memory) = (Arc::clone(plan), Arc::clone(memory));
        self.on_threads(threads, move |worker| worker.sort(&plan, may_spill, &memory))
    }

    /// Does `work` with a worker on each of so many threads at most, this one included, and returns what they brought.
    fn on_threads<T: Send + 'static>(
        self: &Arc<Run>,
        threads: usize,
        work: impl Fn(Worker) -> Result<T> + Send + Sync + 'static,
    ) -> Result<Vec<T>> {
        self.prepared()?;
        let run = Arc::clone(self);
        let work = move || unless_it_fails(|| work(run.own_worker()), || run.stop.halt());
        brought(helpers::on_threads(threads.min(self.worker_count_max()), work))
    }

    /// What its scan does, or of a [measured](Pipeline::start_measured) run did.
    pub(crate) fn scan_plan(&self) -> &ScanPlan {
        self.explained_scan.get().map_or(&self.scan, |scan| scan)
    }

    fn layout<'a>(&'a self, prepared: &'a Prepared) -> Layout<'a> {
        let (scan_columns, scan_types) = (self.pipeline.columns.len(), self.scan.types());
        Layout { scan_columns, scan_types, payload: &self.payload, tables: &prepared.tables }
    }

    /// How many workers find something to do.
    fn worker_count_max(&self) -> usize {
        let Ok(prepared) = self.prepared() else { return self.pipeline.worker_count_max() };
        match (&prepared.gathered, &prepared.found) {
            (Some(gathered), _) => gathered.len().div_ceil(VECTOR_LEN),
            (None, Some(found)) => worker_count_max(&self.pipeline, &*found.table),
            (None, None) => self.pipeline.worker_count_max(),
        }
    }

    /// How much workers share: vectors of a table, or gathered rows.
    fn source_len(&self, prepared: &Prepared) -> usize {
        match (&prepared.gathered, self.pipeline.source.table()) {
            (None, Some(table)) => vector_count(prepared.found.as_ref().map_or(&**table, |found| &*found.table)),
            (gathered, _) => gathered.as_ref().map_or(0, |gathered| gathered.len()),
        }
    }

    fn shared<'a>(&'a self, prepared: &'a Prepared, table: &'a dyn TableSource, layout: Layout<'a>) -> Shared<'a> {
        let (source, claims) = match &prepared.found {
            Some(found) => (&*found.table, &found.claims),
            None => (table, &self.claims),
        };
        Shared {
            plan: prepared.scan.as_deref().unwrap_or(&self.scan),
            layout,
            source,
            claims,
            next_announced: &self.next_announced,
            is_limited: self.pipeline.limit.is_some(),
            cancelled: self.stop.flag(),
            on_damage: &self.pipeline.on_damage,
        }
    }
}

/// Does `work`. If it fails, or panics, `end` ends what others do.
fn unless_it_fails<T>(work: impl FnOnce() -> Result<T>, end: impl FnOnce()) -> Result<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    let done = done.unwrap_or_else(|panic| Err(panicked(&*panic)));
    if done.is_err() {
        end();
    }
    done
}

/// What all workers brought, or the error of the one that failed.
fn brought<T>(all: Vec<Result<T>>) -> Result<Vec<T>> {
    // One that failed ended the others, so their errors say less.
    let (good, bad): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
    let mut errors: Vec<Error> = bad.into_iter().filter_map(Result::err).collect();
    errors.sort_by_key(|error| matches!(error, Error::Cancelled));
    match errors.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(good.into_iter().filter_map(Result::ok).collect()),
    }
}

/// What a panic said, as an error: it is our own mistake, and whoever asked for the query still gets an answer.
pub fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Error::Foreign(format!("a worker panicked: {}", text.unwrap_or_default()))
}
