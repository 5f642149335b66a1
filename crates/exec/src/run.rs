//! A pipeline at work.

use crate::aggregate::{AggregatePlan, AggregateSink};
use crate::expr::{Program, compile, compile_condition};
use crate::flow::{Chain, Layout, Rest, Sink, StepPlan, StepsPlan, StepsState};
use crate::group::{GroupPlan, GroupSink};
use crate::join::{BuildPlan, BuildSink, JoinTable, ProbePlan};
use crate::rows::RowSink;
use crate::scan::{Claims, GatheredScanner, ScanPlan, Scanner, Shared, SharedGathered, vector_count};
use crate::sort::{SortPlan, SortSink, SortedRun};
use crate::{
    AggregateState, Batch, Error, Gathered, Groups, LogicalType, Memory, Output, Pipeline, Result, Sorted, Source,
    Step, TableSource,
};
use sinter_codec::{Scalar, VECTOR_LEN};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;

/// What a run has touched so far; for EXPLAIN ANALYZE and SHOW. Counted per vector, so reading them is cheap and exact
/// once all workers are done.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub struct Counters {
    pub groups_total: AtomicU64,
    /// Row groups never opened: their zone maps or delete marks rule them out.
    pub groups_pruned: AtomicU64,
    /// Row groups never opened: their statistics answer the aggregates.
    pub groups_answered: AtomicU64,
    /// Row groups left out because a column of them cannot be read, as [`crate::OnDamage::LeaveOut`] says.
    pub groups_left_out: AtomicU64,
    /// The rows of these, without deleted ones.
    pub rows_left_out: AtomicU64,
    pub vectors_total: AtomicU64,
    /// Vectors of opened groups in which the filter left no row; none of their output columns was decoded.
    pub vectors_rejected: AtomicU64,
    /// Filter tests on a vector answered on the encoded form.
    pub filters_encoded: AtomicU64,
    /// Filter tests on a vector for which values had to be decoded.
    pub filters_decoded: AtomicU64,
    /// Vectors of which values were decoded, per column.
    pub vectors_decoded: AtomicU64,
    pub rows_scanned: AtomicU64,
    pub rows_selected: AtomicU64,
    /// Bytes of the segments that were opened.
    pub bytes_compressed: AtomicU64,
    /// Bytes of the values that were decoded, as they lie in memory then.
    pub bytes_decoded: AtomicU64,
}

/// A started pipeline, shared by its workers.
#[derive(Debug)]
pub struct Run {
    /// What runs.
    pub pipeline: Pipeline,
    /// What it has touched, build sides of joins included.
    pub counters: Arc<Counters>,
    scan: ScanPlan,
    steps: StepsPlan,
    /// Of which join each column beyond those of the scan is, and which of its payload.
    payload: Vec<(usize, usize)>,
    /// Where rows come from, if not from a table, and these rows once they are there.
    input: Option<Arc<Run>>,
    gathered: OnceLock<Gathered>,
    /// The build sides, by join.
    builds: Vec<Arc<Run>>,
    tables: OnceLock<Vec<Arc<JoinTable>>>,
    preparation: Mutex<Preparation>,
    output: OutputPlan,
    claims: Claims,
    next_vector: AtomicUsize,
    next_announced: AtomicUsize,
    /// Vectors of the source that are done, and whether somebody has taken what comes after all of them.
    vectors_done: AtomicUsize,
    rest_is_taken: AtomicBool,
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
            OutputPlan::Sorted(plan) => plan.columns(),
            OutputPlan::Build(plan) => plan.columns(),
        }
    }
}

/// One thread's part in a run.
#[derive(Debug)]
pub struct Worker {
    run: Arc<Run>,
    feed: Feed,
    rows: RowSink,
}

impl Pipeline {
    /// Makes the pipeline ready; nothing is read before a worker asks.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where an expression is none of ours.
    pub fn start(self) -> Result<Arc<Run>> {
        let output = OutputPlan::new(&self, &self.column_types())?;
        Run::new(self, output, Arc::default(), Arc::default())
    }
}

impl Run {
    fn new(
        pipeline: Pipeline,
        output: OutputPlan,
        counters: Arc<Counters>,
        cancelled: Arc<AtomicBool>,
    ) -> Result<Arc<Run>> {
        let scan = ScanPlan::new(&pipeline)?;
        let input = match &pipeline.source {
            Source::Table(_) => None,
            Source::Gathered(inner) => {
                let plan = OutputPlan::new(inner, &inner.column_types())?;
                Some(Run::new((**inner).clone(), plan, Arc::clone(&counters), Arc::clone(&cancelled))?)
            }
        };
        let mut types = pipeline.scan_types();
        let (mut steps, mut payload, mut probes) = (Vec::new(), Vec::new(), 0);
        for step in &pipeline.steps {
            steps.push(match step {
                Step::Filter(condition) => StepPlan::Filter(compile_condition(condition, &types)?),
                Step::Join(join) => StepPlan::Join(ProbePlan::new(probes, join, &types)?),
            });
            if let Step::Join(join) = step {
                payload.extend((0..join.payload().len()).map(|column| (probes, column)));
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
            let (counters, cancelled) = (Arc::clone(&counters), Arc::clone(&cancelled));
            builds.push(Run::new((*join.build).clone(), plan, counters, cancelled)?);
        }
        Ok(Arc::new(Run {
            claims: Claims::new(&pipeline),
            pipeline,
            counters,
            scan,
            steps,
            payload,
            input,
            gathered: OnceLock::new(),
            builds,
            tables: OnceLock::new(),
            preparation: Mutex::default(),
            output,
            next_vector: AtomicUsize::new(0),
            next_announced: AtomicUsize::new(0),
            vectors_done: AtomicUsize::new(0),
            rest_is_taken: AtomicBool::new(false),
            rows_out: AtomicUsize::new(0),
            cancelled,
        }))
    }
}

impl Run {
    /// A worker; take one per thread.
    pub fn worker(self: &Arc<Run>) -> Worker {
        Worker { run: Arc::clone(self), feed: Feed::default(), rows: RowSink::default() }
    }

    /// Makes every worker stop with [`Error::Cancelled`] at its next vector.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
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
        if let Some(input) = &self.input {
            let gathered = input.gathered(threads, memory)?;
            self.gathered.get_or_init(|| gathered);
        }
        let tables = self.builds.iter().map(|build| build.table(threads, memory).map(Arc::new));
        let tables = tables.collect::<Result<Vec<_>>>()?;
        self.tables.get_or_init(|| tables);
        Ok(())
    }

    /// The table of this build side.
    fn table(self: &Arc<Run>, threads: usize, memory: &Arc<dyn Memory>) -> Result<JoinTable> {
        let OutputPlan::Build(plan) = &self.output else {
            return Err(Error::Unsupported("rows as a join's table".into()));
        };
        self.prepare(threads, memory)?;
        let sinks = self.on_threads(threads, |worker| worker.build(memory))?;
        plan.finish(sinks, memory)
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
        let groups = self.on_threads(threads, |worker| worker.groups(memory))?;
        let merged = groups.into_iter().map(Ok).reduce(|all, other| {
            let (all, other) = (all?, other?);
            let (mut more, fewer) = if all.len() < other.len() { (other, all) } else { (all, other) };
            more.merge(fewer)?;
            Ok(more)
        });
        merged.unwrap_or_else(|| Err(Error::Unsupported("groups of no thread".into())))
    }

    /// Sorts on this many threads, this one included. For [`Output::Sorted`].
    ///
    /// # Errors
    /// As [`Run::groups`].
    pub fn sorted(self: &Arc<Run>, threads: usize, memory: &Arc<dyn Memory>) -> Result<Sorted> {
        let OutputPlan::Sorted(plan) = &self.output else {
            return Err(Error::Unsupported("rows without an order as sorted ones".into()));
        };
        self.prepare(threads, memory)?;
        let runs = self.on_threads(threads, |worker| worker.sort(plan, memory))?;
        Sorted::new(plan, runs, memory)
    }

    /// What it makes of all its rows, on this many threads, this one included. Not for [`Output::Rows`].
    ///
    /// # Errors
    /// As [`Run::groups`].
    pub fn gathered(self: &Arc<Run>, threads: usize, memory: &Arc<dyn Memory>) -> Result<Gathered> {
        Ok(match &self.output {
            OutputPlan::Groups(_) => Gathered::Groups(Box::new(self.groups(threads, memory)?)),
            OutputPlan::Sorted(_) => Gathered::Sorted(self.sorted(threads, memory)?),
            _ => {
                self.prepare(threads, memory)?;
                Gathered::Row(self.aggregate(threads)?, self.pipeline.output_types())
            }
        })
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
            plan: &self.scan,
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

/// A panic is our own mistake; whoever asked for the query still gets an answer.
fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Error::Foreign(format!("a worker panicked: {}", text.unwrap_or_default()))
}

impl Worker {
    /// Fills `batch` with the next rows (at least one); false when nothing is left. For [`Output::Rows`].
    ///
    /// # Errors
    /// What the data brings about, [`Error::Source`], [`Error::Damaged`], and [`Error::Cancelled`].
    pub fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        loop {
            if let Poll::Ready(more) = self.poll(batch)? {
                return Ok(more);
            }
        }
    }

    /// The same, but comes back from time to time though there is nothing yet: whoever runs other work on this thread, or
    /// may lose interest, asks again.
    ///
    /// # Errors
    /// As [`Worker::next`].
    pub fn poll(&mut self, batch: &mut Batch) -> Result<Poll<bool>> {
        let run = Arc::clone(&self.run);
        let OutputPlan::Rows(program) = &run.output else {
            return Err(Error::Unsupported("aggregates as rows".into()));
        };
        let enough = || run.pipeline.limit.is_some_and(|limit| run.rows_out.load(Ordering::Relaxed) >= limit);
        if self.rows.is_empty() {
            if enough() {
                return Ok(Poll::Ready(false));
            }
            let mut sink = self.rows.sink(program, run.pipeline.limit);
            let more = self.feed.run(&run, &mut sink)?;
            if self.rows.is_empty() {
                return Ok(if more { Poll::Pending } else { Poll::Ready(false) });
            }
        }
        self.rows.pop(batch);
        match run.admit(batch.rows) {
            0 => return Ok(Poll::Ready(false)),
            rows if rows < batch.rows => batch.truncate(rows),
            _ => {}
        }
        Ok(Poll::Ready(true))
    }

    /// Hands every batch of this worker's share to `take`, until nothing is left or `take` breaks off.
    ///
    /// # Errors
    /// As [`Worker::next`], and those of `take`.
    pub fn for_each(&mut self, mut take: impl FnMut(&mut Batch) -> Result<ControlFlow<()>>) -> Result<()> {
        let mut batch = Batch::default();
        while self.next(&mut batch)? {
            if take(&mut batch)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Aggregates until no row group is left. For [`Output::Aggregate`].
    ///
    /// # Errors
    /// As [`Worker::next`].
    pub fn aggregate(mut self) -> Result<AggregateState> {
        let OutputPlan::Aggregate(plan) = &self.run.output else {
            return Err(Error::Unsupported("rows as aggregates".into()));
        };
        let mut sink = AggregateSink::new(plan, self.run.pipeline.source.table().map(|table| &**table));
        while self.feed.run(&self.run, &mut sink)? {}
        Ok(sink.into_state())
    }

    /// Groups until no row group is left. For [`Output::Groups`].
    fn groups(mut self, memory: &Arc<dyn Memory>) -> Result<Groups> {
        let OutputPlan::Groups(plan) = &self.run.output else {
            return Err(Error::Unsupported("rows as groups".into()));
        };
        let mut sink = GroupSink::new(plan, memory);
        while self.feed.run(&self.run, &mut sink)? {}
        Ok(sink.into_groups())
    }

    /// Keeps and sorts rows until no row group is left. For [`Output::Sorted`].
    fn sort(mut self, plan: &Arc<SortPlan>, memory: &Arc<dyn Memory>) -> Result<Vec<SortedRun>> {
        let mut sink = SortSink::new(plan, memory)?;
        while self.feed.run(&self.run, &mut sink)? {}
        sink.into_runs()
    }

    /// Keeps rows until no row group is left. For build sides.
    fn build(mut self, memory: &Arc<dyn Memory>) -> Result<BuildSink> {
        let OutputPlan::Build(plan) = &self.run.output else {
            return Err(Error::Unsupported("rows as a join's table".into()));
        };
        let mut sink = BuildSink::new(plan, memory)?;
        while self.feed.run(&self.run, &mut sink)? {}
        Ok(sink)
    }
}

/// What a worker keeps between two pauses, apart from its sink.
#[derive(Debug, Default)]
struct Feed {
    scanner: Scanner,
    groups: GatheredScanner,
    steps: StepsState,
    /// Once all others are done, if it is us who do that.
    rest: Option<Rest>,
}

impl Feed {
    /// Feeds `sink` through the steps until it pauses or a while has passed (true) or no rows are left (false).
    fn run(&mut self, run: &Run, sink: &mut dyn Sink) -> Result<bool> {
        let layout = run.layout()?;
        let Feed { scanner, groups, steps: state, rest } = self;
        if run.steps.is_empty() {
            return feed(run, layout, scanner, groups, sink);
        }
        let mut chain = Chain { plan: &run.steps, layout, state, cancelled: &run.cancelled, sink };
        if rest.is_none() {
            if feed(run, layout, scanner, groups, &mut chain)? {
                return Ok(true);
            }
            if run.steps.has_rest() && run.is_last(scanner.take_done() + groups.take_done()) {
                *rest = Some(Rest::default());
            }
        }
        match rest {
            Some(rest) => chain.run_rest(rest),
            None => Ok(false),
        }
    }
}

/// The same from the source alone.
fn feed(
    run: &Run,
    layout: Layout<'_>,
    scanner: &mut Scanner,
    groups_scanner: &mut GatheredScanner,
    sink: &mut dyn Sink,
) -> Result<bool> {
    match (&run.pipeline.source, run.gathered.get()) {
        (Source::Table(table), _) => {
            let more = scanner.run(&run.shared(&**table, layout), sink);
            scanner.tally.flush(&run.counters);
            more
        }
        (Source::Gathered(_), Some(gathered)) => {
            let (plan, next_vector, cancelled) = (&run.scan, &run.next_vector, &*run.cancelled);
            groups_scanner.run(&SharedGathered { plan, layout, gathered, next_vector, cancelled }, sink)
        }
        (Source::Gathered(_), None) => Err(Error::Unsupported("gathered rows that are not there yet".into())),
    }
}

impl Run {
    /// Notes that a worker is done with so many vectors of the source, and will take no more. True for the one after whom
    /// nobody is left.
    fn is_last(&self, vectors: usize) -> bool {
        let done = self.vectors_done.fetch_add(vectors, Ordering::AcqRel) + vectors;
        done >= self.vector_count() && !self.rest_is_taken.swap(true, Ordering::AcqRel)
    }

    /// How many of `rows` more rows the limit lets out.
    fn admit(&self, rows: usize) -> usize {
        let Some(limit) = self.pipeline.limit else { return rows };
        let before = self.rows_out.fetch_add(rows, Ordering::Relaxed);
        rows.min(limit.saturating_sub(before))
    }
}
