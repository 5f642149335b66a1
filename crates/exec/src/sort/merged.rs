//! Spilled runs on their way out, as one.

use super::plan::SortPlan;
use super::spilled::{Merge, SpilledRun, Stretch, merge_some};
use crate::measure::Measured;
use crate::run::Stop;
use crate::spill::SpillFile;
use crate::{Batch, Error, Result, Vector};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Sorted rows that did not fit the memory: runs in a file, which are merged as they are read, from the first row to the
/// last and once. So they are not written once more. Several who read merge at the same time, each a part of the rows.
#[derive(Debug)]
pub struct Merged {
    plan: Arc<SortPlan>,
    has_cut: bool,
    parts: Vec<Part>,
    /// The first that nobody has taken.
    next_part: AtomicUsize,
    stop: Arc<Stop>,
    measured: Option<Arc<Measured>>,
}

/// Rows that come one after the other.
#[derive(Debug)]
struct Part {
    /// Of each run.
    stretches: Arc<[Stretch]>,
    /// Of these, rows that are not wanted before those that are, and how many are.
    skip: usize,
    len: usize,
    /// Nobody asks but who has taken it.
    progress: Mutex<Progress>,
}

/// How far rows are read.
#[derive(Debug)]
enum Progress {
    Pending,
    Reading(Box<Merge>),
    Done,
    /// With this error, or one as [`Error::again`] has it.
    Failed(Error),
}

/// Parts for each thread, so that none has much more to do than others; and row groups of a part, at least.
const PARTS_PER_THREAD: usize = 4;
const GROUPS_PER_PART: usize = 64;

impl Merged {
    /// Of these runs, whose number is brought down before, for so many threads.
    ///
    /// # Errors
    /// Those of reading and writing; [`Error::Cancelled`].
    pub(crate) fn new(
        plan: &Arc<SortPlan>,
        runs: Vec<SpilledRun>,
        file: &Arc<dyn SpillFile>,
        threads: usize,
        stop: &Arc<Stop>,
        measured: Option<Arc<Measured>>,
    ) -> Result<Merged> {
        let wanted = plan.order.row_count().unwrap_or(usize::MAX);
        let runs = merge_some(plan, runs, wanted, file, stop.flag())?;
        let groups = runs.iter().map(|run| run.groups().count()).sum::<usize>();
        let part_count = if threads > 1 { (threads * PARTS_PER_THREAD).min(groups / GROUPS_PER_PART) } else { 1 };
        let (mut parts, mut first) = (Vec::new(), 0);
        for stretches in cut(&runs, part_count)? {
            let end = first + stretches.iter().map(|stretch| stretch.len).sum::<usize>();
            let (from, to) = (first.max(plan.order.skip), end.min(wanted));
            if from < to {
                parts.push(Part::new(stretches.into(), from - first, to - from));
            }
            first = end;
        }
        let (has_cut, next_part) = (runs.iter().any(|run| run.has_cut), AtomicUsize::new(0));
        Ok(Merged { plan: Arc::clone(plan), has_cut, parts, next_part, stop: Arc::clone(stop), measured })
    }

    /// The same rows, none of which was read.
    pub(crate) fn again(&self) -> Merged {
        Merged {
            plan: Arc::clone(&self.plan),
            has_cut: self.has_cut,
            parts: self.parts.iter().map(|part| Part::new(Arc::clone(&part.stretches), part.skip, part.len)).collect(),
            next_part: AtomicUsize::new(0),
            stop: Arc::clone(&self.stop),
            measured: self.measured.clone(),
        }
    }

    /// How many rows there are, read or not.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len).sum()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Does what comes before the first row: where many are skipped, that takes a while.
    ///
    /// # Errors
    /// As [`Merged::read`].
    pub(crate) fn begin(&self) -> Result<()> {
        self.parts.first().map_or(Ok(()), |part| self.go_on(part, |_| Ok(true)).map(drop))
    }

    /// Writes the next rows over `batch`, a vector's worth at most; false when none is left. `taken` is for a reader to keep
    /// from one call to the next: which part it has taken. One who reads alone has all rows in their order.
    ///
    /// # Errors
    /// Those of reading, and for whoever reads after that; [`Error::Cancelled`].
    pub(crate) fn read(&self, taken: &mut Option<usize>, batch: &mut Batch) -> Result<bool> {
        loop {
            let number = *taken.get_or_insert_with(|| self.next_part.fetch_add(1, Ordering::Relaxed));
            let Some(part) = self.parts.get(number) else { return Ok(false) };
            if self.go_on(part, |merge| self.read_next(merge, batch))? {
                return Ok(true);
            }
            *taken = None;
        }
    }

    fn read_next(&self, merge: &mut Merge, batch: &mut Batch) -> Result<bool> {
        if !merge.next(self.stop.flag())? {
            return Ok(false);
        }
        batch.rows = merge.rows.len();
        batch.columns.resize_with(self.plan.columns.len(), Vector::default);
        for (&column, vector) in self.plan.columns.iter().zip(&mut batch.columns) {
            merge.gather(column, vector);
        }
        Ok(true)
    }

    /// Does a step in a part, which says whether another may follow.
    fn go_on(&self, part: &Part, step: impl FnOnce(&mut Merge) -> Result<bool>) -> Result<bool> {
        let begun = self.measured.as_ref().map(|_| Instant::now());
        let mut progress = part.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if let Progress::Pending = *progress {
            *progress = match self.open(part) {
                Ok(merge) => Progress::Reading(Box::new(merge)),
                Err(error) => Progress::Failed(error),
            };
        }
        let more = match &mut *progress {
            Progress::Reading(merge) => step(merge),
            Progress::Failed(error) => Err(error.again()),
            Progress::Pending | Progress::Done => Ok(false),
        };
        match &more {
            Ok(true) => {}
            Ok(false) => *progress = Progress::Done,
            Err(error) => *progress = Progress::Failed(error.again()),
        }
        if let Some((measured, begun)) = self.measured.as_ref().zip(begun) {
            measured.finished(begun);
        }
        more
    }

    fn open(&self, part: &Part) -> Result<Merge> {
        let mut merge = Merge::new(&self.plan, self.has_cut, &part.stretches, part.len)?;
        merge.skip(part.skip, self.stop.flag())?;
        Ok(merge)
    }
}

impl Part {
    fn new(stretches: Arc<[Stretch]>, skip: usize, len: usize) -> Part {
        Part { stretches, skip, len, progress: Mutex::new(Progress::Pending) }
    }
}

/// Cuts runs into parts of about as many rows, so many at most: of each part the stretch of each run. Rows with equal heads
/// stay together.
fn cut(runs: &[SpilledRun], part_count: usize) -> Result<Vec<Vec<Stretch>>> {
    let mut groups: Vec<(i128, usize)> = runs.iter().flat_map(SpilledRun::groups).collect();
    groups.sort_unstable();
    let all: usize = groups.iter().map(|(_, rows)| rows).sum();
    let (mut starts, mut seen) = (vec![vec![0; runs.len()]], 0);
    let mut last = None;
    for (head, rows) in groups {
        if starts.len() < part_count && seen * part_count >= starts.len() * all && last.is_some_and(|last| last < head)
        {
            starts.push(runs.iter().map(|run| run.rows_below(head)).collect::<Result<_>>()?);
        }
        (seen, last) = (seen + rows, Some(head));
    }
    starts.push(runs.iter().map(SpilledRun::len).collect());
    let part = |bounds: &[Vec<usize>]| {
        let rows = bounds[0].iter().zip(&bounds[1]).map(|(&start, &end)| start..end);
        runs.iter().zip(rows).map(|(run, rows)| run.stretch(rows)).collect()
    };
    Ok(starts.windows(2).map(part).collect())
}
