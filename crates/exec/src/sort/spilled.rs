//! Sorted runs in a file, and how they become one.
//!
//! A run that does not fit the memory is written in its order, with the head of each row as the first column, and is read
//! again a vector at a time. Runs are merged when somebody reads the rows: to write them once more would take longer.

use super::plan::SortPlan;
use super::sink::{SortedRun, head, row};
use super::ties;
use crate::error::check_cancelled;
use crate::measure::Measured;
use crate::run::{Reader, Stop};
use crate::spill::{SpillFile, SpillWriter, Spilled, SpilledColumns};
use crate::store::{RowStore, gather_from};
use crate::vector::append;
use crate::{Batch, Error, LogicalType, Memory, Result, Unlimited, Vector};
use sinter_codec::{Encoded, VECTOR_LEN, ValuesBuf};
use std::cmp::Ordering;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Heads have 96 bits.
const HEAD_TYPE: LogicalType = LogicalType::Decimal { precision: 38, scale: 0 };

/// A run in a file.
#[derive(Clone, Debug)]
pub(crate) struct SpilledRun {
    /// Head, then the columns of the store.
    rows: Arc<Spilled>,
    has_cut: bool,
}

impl SpilledRun {
    /// Writes a run.
    ///
    /// # Errors
    /// Those of writing; [`Error::Cancelled`].
    pub(crate) fn write(
        plan: &SortPlan,
        run: &SortedRun,
        file: &Arc<dyn SpillFile>,
        cancelled: &AtomicBool,
    ) -> Result<SpilledRun> {
        let columns = run_columns(plan);
        let mut writer = SpillWriter::new(file, &columns, 1)?;
        let mut vectors = vec![Vector::default(); columns.types.len()];
        let mut rows = Vec::with_capacity(VECTOR_LEN);
        for entries in run.entries.chunks(VECTOR_LEN) {
            check_cancelled(cancelled)?;
            rows.clear();
            rows.extend(entries.iter().map(|&entry| row(entry)));
            put_heads(entries.iter().map(|&entry| head(entry) as i128), &mut vectors[0]);
            for (column, vector) in vectors[1..].iter_mut().enumerate() {
                run.store.gather(column, &rows, vector);
            }
            writer.push(0, &vectors, rows.len())?;
        }
        let rows = Arc::new(Spilled::new(columns, writer.finish()?.concat()));
        Ok(SpilledRun { rows, has_cut: run.has_cut })
    }
}

/// Where a run is that is being merged.
#[derive(Debug)]
struct Cursor {
    reader: Reader,
    batch: Batch,
    /// Of the rows of the vector that was read.
    heads: Vec<i128>,
    /// The first of them that was not taken.
    at: usize,
}

impl Cursor {
    /// Reads the next vector of the run into `store`; false when none is left.
    fn read(&mut self, store: &mut RowStore) -> Result<bool> {
        store.clear();
        self.heads.clear();
        self.at = 0;
        if !self.reader.next(&mut self.batch)? {
            return Ok(false);
        }
        let Some((heads, columns)) = self.batch.columns.split_first() else { return Ok(false) };
        let mut values = ValuesBuf::I128(std::mem::take(&mut self.heads));
        append(heads, self.batch.rows, &mut values)?;
        let ValuesBuf::I128(heads) = values else { return Ok(false) };
        self.heads = heads;
        store.push(columns, self.batch.rows)?;
        Ok(true)
    }
}

/// So many runs are merged at a time: of each as much is in memory as a row group has. That is not asked for.
const FAN_IN: usize = 64;

/// Runs on their way into one.
#[derive(Debug)]
struct Merge {
    plan: Arc<SortPlan>,
    has_cut: bool,
    cursors: Vec<Cursor>,
    /// Of each cursor, the vector that was read.
    stores: Vec<RowStore>,
    /// The number of each store's first row.
    firsts: Vec<u32>,
    /// The next head of each cursor that has rows left, the one that comes first at the end.
    open: Vec<(i128, usize)>,
    /// A cursor that has to read before others go on.
    used_up: Option<usize>,
    /// How many more rows are wanted.
    left: usize,
    /// Those that came last: rows of the stores in their order, and their heads.
    rows: Vec<u32>,
    heads: Vec<i128>,
}

impl Merge {
    /// Of the rows of these runs so many.
    fn new(plan: &Arc<SortPlan>, runs: &[SpilledRun], left: usize) -> Result<Merge> {
        let unlimited: Arc<dyn Memory> = Arc::new(Unlimited);
        let mut merge = Merge {
            plan: Arc::clone(plan),
            has_cut: runs.iter().any(|run| run.has_cut),
            cursors: Vec::with_capacity(runs.len()),
            stores: Vec::with_capacity(runs.len()),
            firsts: (0..runs.len()).map(|cursor| (cursor * VECTOR_LEN) as u32).collect(),
            open: Vec::with_capacity(runs.len()),
            used_up: None,
            left,
            rows: Vec::with_capacity(VECTOR_LEN),
            heads: Vec::with_capacity(VECTOR_LEN),
        };
        for run in runs {
            let reader = Reader::by_group(Arc::clone(&run.rows))?;
            merge.cursors.push(Cursor { reader, batch: Batch::default(), heads: Vec::new(), at: 0 });
            merge.stores.push(plan.store(&unlimited)?);
        }
        (0..runs.len()).try_for_each(|cursor| merge.read(cursor))?;
        Ok(merge)
    }

    /// Reads the next vector of a cursor that has no row left.
    fn read(&mut self, cursor: usize) -> Result<()> {
        if self.cursors[cursor].read(&mut self.stores[cursor])? {
            self.put(cursor);
        }
        Ok(())
    }

    /// Puts a cursor where its next row belongs.
    fn put(&mut self, cursor: usize) {
        let Cursor { heads, at, .. } = &self.cursors[cursor];
        let (head, ties) = (heads[*at], self.plan.ties(self.has_cut));
        let place = |cursor: usize| (&self.stores[cursor], self.cursors[cursor].at);
        let comes_later = |&(of_other, other): &(i128, usize)| {
            of_other.cmp(&head).then_with(|| ties::compare(ties, place(other), place(cursor))) == Ordering::Greater
        };
        let at = self.open.partition_point(comes_later);
        self.open.insert(at, (head, cursor));
    }

    /// Passes over so many rows.
    fn skip(&mut self, mut count: usize, cancelled: &AtomicBool) -> Result<()> {
        while count > 0 {
            check_cancelled(cancelled)?;
            match self.advance(count, |_, _, _| {})? {
                0 => return Ok(()),
                passed => count -= passed,
            }
        }
        Ok(())
    }

    /// Leaves in `self.rows` those that come next, a vector's worth at most; false when none is left.
    fn next(&mut self, cancelled: &AtomicBool) -> Result<bool> {
        check_cancelled(cancelled)?;
        self.rows.clear();
        self.heads.clear();
        let count = self.advance(self.left.min(VECTOR_LEN), |merge, row, head| {
            merge.rows.push(row);
            merge.heads.push(head);
        })?;
        self.left -= count;
        Ok(count > 0)
    }

    /// Takes so many rows, or fewer where a cursor must read before others go on; returns how many, 0 when none is left.
    fn advance(&mut self, count_max: usize, mut take: impl FnMut(&mut Merge, u32, i128)) -> Result<usize> {
        if let Some(cursor) = self.used_up.take() {
            self.read(cursor)?;
        }
        for taken in 0..count_max {
            let Some((head, next)) = self.open.pop() else { return Ok(taken) };
            take(self, self.firsts[next] + self.cursors[next].at as u32, head);
            let cursor = &mut self.cursors[next];
            cursor.at += 1;
            if cursor.at == cursor.heads.len() {
                self.used_up = Some(next);
                return Ok(taken + 1);
            }
            self.put(next);
        }
        Ok(count_max)
    }

    /// Writes a column of the rows that came last over `out`.
    fn gather(&self, column: usize, out: &mut Vector) {
        gather_from(&self.stores, &self.firsts, column, &self.rows, out);
    }
}

/// Makes runs so few that they can be merged at once; those that have become one are of no more than `wanted` rows.
fn merge_some(
    plan: &Arc<SortPlan>,
    mut runs: Vec<SpilledRun>,
    wanted: usize,
    file: &Arc<dyn SpillFile>,
    cancelled: &AtomicBool,
) -> Result<Vec<SpilledRun>> {
    while runs.len() > FAN_IN {
        // No more than have to become one.
        let some: Vec<SpilledRun> = runs.drain(..FAN_IN.min(runs.len() - FAN_IN + 1)).collect();
        let mut merge = Merge::new(plan, &some, wanted)?;
        let columns = run_columns(plan);
        let mut writer = SpillWriter::new(file, &columns, 1)?;
        let mut vectors = vec![Vector::default(); columns.types.len()];
        while merge.next(cancelled)? {
            put_heads(merge.heads.iter().copied(), &mut vectors[0]);
            for (column, vector) in vectors[1..].iter_mut().enumerate() {
                merge.gather(column, vector);
            }
            writer.push(0, &vectors, merge.rows.len())?;
        }
        let rows = Arc::new(Spilled::new(columns, writer.finish()?.concat()));
        runs.push(SpilledRun { rows, has_cut: merge.has_cut });
    }
    Ok(runs)
}

/// Sorted rows that did not fit the memory: runs in a file, which are merged as they are read, from the first row to the
/// last and once. So they are not written once more. Of several who read, one at a time merges.
#[derive(Debug)]
pub struct Merged {
    plan: Arc<SortPlan>,
    runs: Vec<SpilledRun>,
    len: usize,
    stop: Arc<Stop>,
    measured: Option<Arc<Measured>>,
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

impl Merged {
    /// Of these runs, whose number is brought down before.
    ///
    /// # Errors
    /// Those of reading and writing; [`Error::Cancelled`].
    pub(crate) fn new(
        plan: &Arc<SortPlan>,
        runs: Vec<SpilledRun>,
        file: &Arc<dyn SpillFile>,
        stop: &Arc<Stop>,
        measured: Option<Arc<Measured>>,
    ) -> Result<Merged> {
        let wanted = plan.order.row_count().unwrap_or(usize::MAX);
        let runs = merge_some(plan, runs, wanted, file, stop.flag())?;
        let all: usize = runs.iter().map(|run| run.rows.rows()).sum();
        let len = wanted.min(all).saturating_sub(plan.order.skip);
        let (plan, stop, progress) = (Arc::clone(plan), Arc::clone(stop), Mutex::new(Progress::Pending));
        Ok(Merged { plan, runs, len, stop, measured, progress })
    }

    /// The same rows, none of which was read.
    pub(crate) fn again(&self) -> Merged {
        Merged {
            plan: Arc::clone(&self.plan),
            runs: self.runs.clone(),
            len: self.len,
            stop: Arc::clone(&self.stop),
            measured: self.measured.clone(),
            progress: Mutex::new(Progress::Pending),
        }
    }

    /// How many rows there are, read or not.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Does what comes before the first row: where many are skipped, that takes a while.
    ///
    /// # Errors
    /// As [`Merged::read`].
    pub(crate) fn begin(&self) -> Result<()> {
        self.go_on(|_| Ok(true)).map(drop)
    }

    /// Writes the next rows over `batch`, a vector's worth at most; false when none is left.
    ///
    /// # Errors
    /// Those of reading, and for whoever reads after that; [`Error::Cancelled`].
    pub(crate) fn read(&self, batch: &mut Batch) -> Result<bool> {
        self.go_on(|merge| {
            if !merge.next(self.stop.flag())? {
                return Ok(false);
            }
            batch.rows = merge.rows.len();
            batch.columns.resize_with(self.plan.columns.len(), Vector::default);
            for (&column, vector) in self.plan.columns.iter().zip(&mut batch.columns) {
                merge.gather(column, vector);
            }
            Ok(true)
        })
    }

    /// Lets `read` do the next step, which says whether another may follow.
    fn go_on(&self, read: impl FnOnce(&mut Merge) -> Result<bool>) -> Result<bool> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = self.measured.as_ref().map(|_| Instant::now());
        let step = || -> Result<bool> {
            if let Progress::Pending = *progress {
                let skip = self.plan.order.skip;
                let mut merge = Merge::new(&self.plan, &self.runs, self.len)?;
                merge.skip(skip, self.stop.flag())?;
                *progress = Progress::Reading(Box::new(merge));
            }
            match &mut *progress {
                Progress::Reading(merge) => read(merge),
                Progress::Failed(error) => Err(error.again()),
                Progress::Pending | Progress::Done => Ok(false),
            }
        };
        let more = step();
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
}

/// Writes heads over a vector.
fn put_heads(heads: impl Iterator<Item = i128>, vector: &mut Vector) {
    if let Encoded::Flat(ValuesBuf::I128(values)) = &mut vector.values {
        values.clear();
        values.extend(heads);
    } else {
        vector.values = Encoded::Flat(ValuesBuf::I128(heads.collect()));
    }
}

/// Those of a run: its heads, then what is kept of its rows.
fn run_columns(plan: &SortPlan) -> SpilledColumns {
    let types = plan.rows.outputs.iter().map(|(_, ty)| ty.clone());
    SpilledColumns {
        types: std::iter::once(HEAD_TYPE).chain(types).collect(),
        names: (0..=plan.rows.outputs.len()).map(|column| format!("column {column}")).collect(),
    }
}
