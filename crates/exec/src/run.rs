//! A pipeline at work.

use crate::aggregate::{AggregatePlan, AggregateSink};
use crate::expr::{Program, compile};
use crate::group::{GroupPlan, GroupSink};
use crate::rows::RowSink;
use crate::scan::{ScanPlan, Scanner, Shared};
use crate::{AggregateState, Batch, Error, Groups, Memory, Output, Pipeline, Result};
use sinter_codec::Scalar;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

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
    /// What it has touched.
    pub counters: Counters,
    scan: ScanPlan,
    output: OutputPlan,
    next_group: AtomicUsize,
    next_announced: AtomicUsize,
    rows_out: AtomicUsize,
    cancelled: AtomicBool,
}

#[derive(Debug)]
enum OutputPlan {
    Rows(Program),
    Aggregate(AggregatePlan),
    Groups(Arc<GroupPlan>),
}

/// One thread's part in a run.
#[derive(Debug)]
pub struct Worker {
    run: Arc<Run>,
    scanner: Scanner,
    rows: RowSink,
}

impl Pipeline {
    /// Makes the pipeline ready; nothing is read before a worker asks.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where an expression is none of ours.
    pub fn start(self) -> Result<Arc<Run>> {
        let scan = ScanPlan::new(&self)?;
        let types = self.scan_types();
        let output = match &self.output {
            Output::Rows(exprs) => OutputPlan::Rows(compile(&exprs.iter().collect::<Vec<_>>(), &types)?),
            Output::Aggregate(aggregates) => {
                OutputPlan::Aggregate(AggregatePlan::new(aggregates, &self.columns, &types)?)
            }
            Output::Groups { keys, aggregates } => {
                let plan = GroupPlan::new(keys, aggregates, &self.columns, &types, &*self.source)?;
                OutputPlan::Groups(Arc::new(plan))
            }
        };
        Ok(Arc::new(Run {
            pipeline: self,
            counters: Counters::default(),
            scan,
            output,
            next_group: AtomicUsize::new(0),
            next_announced: AtomicUsize::new(0),
            rows_out: AtomicUsize::new(0),
            cancelled: AtomicBool::new(false),
        }))
    }
}

impl Run {
    /// A worker; take one per thread.
    pub fn worker(self: &Arc<Run>) -> Worker {
        Worker { run: Arc::clone(self), scanner: Scanner::default(), rows: RowSink::default() }
    }

    /// Makes every worker stop with [`Error::Cancelled`] at its next vector.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Merges what the workers found into the one row of results, in the order of the aggregates.
    ///
    /// # Errors
    /// [`Error::Overflow`] where a result does not fit its type.
    pub fn finish(&self, states: Vec<AggregateState>) -> Result<Vec<Scalar>> {
        match &self.output {
            OutputPlan::Aggregate(plan) => AggregateState::finish(plan, states),
            OutputPlan::Rows(_) | OutputPlan::Groups(_) => {
                Err(Error::Unsupported("rows as one row of aggregates".into()))
            }
        }
    }

    /// Aggregates on this many threads, this one included, and returns the one row of results.
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
        let groups = self.on_threads(threads, |worker| worker.groups(memory))?;
        let merged = groups.into_iter().map(Ok).reduce(|all, other| {
            let (all, other) = (all?, other?);
            let (mut more, fewer) = if all.len() < other.len() { (other, all) } else { (all, other) };
            more.merge(fewer)?;
            Ok(more)
        });
        merged.unwrap_or_else(|| Err(Error::Unsupported("groups of no thread".into())))
    }

    /// Does `work` with a worker on each thread, and returns what all of them brought.
    fn on_threads<T: Send>(
        self: &Arc<Run>,
        threads: usize,
        work: impl Fn(Worker) -> Result<T> + Send + Sync,
    ) -> Result<Vec<T>> {
        let work = || {
            let done = catch_unwind(AssertUnwindSafe(|| work(self.worker())));
            let done = done.unwrap_or_else(|panic| Err(panicked(&*panic)));
            if done.is_err() {
                self.cancel();
            }
            done
        };
        let all = std::thread::scope(|scope| {
            let helper_count = threads.min(self.pipeline.source.group_count()).saturating_sub(1);
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

    fn shared(&self) -> Shared<'_> {
        Shared {
            plan: &self.scan,
            source: &*self.pipeline.source,
            next_group: &self.next_group,
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
        let run = Arc::clone(&self.run);
        let OutputPlan::Rows(program) = &run.output else {
            return Err(Error::Unsupported("aggregates as rows".into()));
        };
        loop {
            if self.rows.pop(batch) {
                match run.admit(batch.rows) {
                    0 => return Ok(false),
                    rows if rows < batch.rows => batch.truncate(rows),
                    _ => {}
                }
                return Ok(true);
            }
            if run.pipeline.limit.is_some_and(|limit| run.rows_out.load(Ordering::Relaxed) >= limit) {
                return Ok(false);
            }
            let mut sink = self.rows.sink(program, run.pipeline.limit);
            let more = self.scanner.run(&run.shared(), &mut sink);
            self.scanner.tally.flush(&run.counters);
            if !more? && self.rows.is_empty() {
                return Ok(false);
            }
        }
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
        let mut sink = AggregateSink::new(plan, &*self.run.pipeline.source);
        let done = self.scanner.run(&self.run.shared(), &mut sink);
        self.scanner.tally.flush(&self.run.counters);
        done.map(|_| sink.into_state())
    }

    /// Groups until no row group is left. For [`Output::Groups`].
    fn groups(mut self, memory: &Arc<dyn Memory>) -> Result<Groups> {
        let OutputPlan::Groups(plan) = &self.run.output else {
            return Err(Error::Unsupported("rows as groups".into()));
        };
        let mut sink = GroupSink::new(plan, memory);
        let done = self.scanner.run(&self.run.shared(), &mut sink);
        self.scanner.tally.flush(&self.run.counters);
        done.map(|_| sink.into_groups())
    }
}

impl Run {
    /// How many of `rows` more rows the limit lets out.
    fn admit(&self, rows: usize) -> usize {
        let Some(limit) = self.pipeline.limit else { return rows };
        let before = self.rows_out.fetch_add(rows, Ordering::Relaxed);
        rows.min(limit.saturating_sub(before))
    }
}
