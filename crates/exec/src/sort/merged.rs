//! Spilled runs on their way out, as one.

use super::plan::SortPlan;
use super::spilled::{Merge, SpilledRun, Stretch, merge_some};
use crate::error::check_cancelled;
use crate::measure::Measured;
use crate::run::Stop;
use crate::spill::SpillFile;
use crate::{Batch, Error, Result, Vector};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Sorted rows that did not fit the memory: runs in a file, which are merged as they are read, from the first row to the
/// last and once. So they are not written once more. One who reads alone has them in their order; several merge at the same
/// time, each a part of the rows while there are any, and then what others have left.
#[derive(Debug)]
pub struct Merged {
    plan: Arc<SortPlan>,
    runs: Arc<[SpilledRun]>,
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

/// Parts for each thread, so that none has much more to do than others; and row groups of each run in a part, at least.
const PARTS_PER_THREAD: usize = 4;
const GROUPS_PER_STRETCH: usize = 16;

impl Merged {
    /// Of these runs, whose number is brought down before, for one who reads.
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
        let (parts, next_part) = (Vec::new(), AtomicUsize::new(0));
        let (plan, stop) = (Arc::clone(plan), Arc::clone(stop));
        Merged { plan, runs: runs.into(), parts, next_part, stop, measured }.in_parts(1)
    }

    /// The same rows, none of which was read, for so many who read.
    ///
    /// # Errors
    /// Those of reading; [`Error::Cancelled`].
    pub(crate) fn for_threads(&self, threads: usize) -> Result<Merged> {
        let groups: usize = self.runs.iter().map(|run| run.groups().count()).sum();
        let most = groups / (GROUPS_PER_STRETCH * self.runs.len().max(1));
        self.in_parts(if threads > 1 { (threads * PARTS_PER_THREAD).min(most) } else { 1 })
    }

    fn in_parts(&self, part_count: usize) -> Result<Merged> {
        let (skip, wanted) = (self.plan.order.skip, self.plan.order.row_count().unwrap_or(usize::MAX));
        let (mut parts, mut first) = (Vec::new(), 0);
        for stretches in cut(&self.runs, part_count, wanted, &self.stop)? {
            let end = first + stretches.iter().map(|stretch| stretch.len).sum::<usize>();
            let (from, to) = (first.max(skip), end.min(wanted));
            if from < to {
                parts.push(Part::new(stretches.into(), from - first, to - from));
            }
            first = end;
        }
        Ok(self.with_parts(parts))
    }

    /// The same rows, none of which was read.
    pub(crate) fn again(&self) -> Merged {
        let part = |part: &Part| Part::new(Arc::clone(&part.stretches), part.skip, part.len);
        self.with_parts(self.parts.iter().map(part).collect())
    }

    fn with_parts(&self, parts: Vec<Part>) -> Merged {
        Merged {
            plan: Arc::clone(&self.plan),
            runs: Arc::clone(&self.runs),
            parts,
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
            let Some(part) = self.parts.get(number) else { return self.read_any(batch) };
            if self.go_on(part, |merge| self.read_next(merge, batch))? {
                return Ok(true);
            }
            *taken = None;
        }
    }

    /// The next rows of a part that somebody else has taken.
    fn read_any(&self, batch: &mut Batch) -> Result<bool> {
        for part in &self.parts {
            if self.go_on(part, |merge| self.read_next(merge, batch))? {
                return Ok(true);
            }
        }
        Ok(false)
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
        let mut progress = part.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = self.measured.as_ref().map(|_| Instant::now());
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
        let has_cut = self.runs.iter().any(|run| run.has_cut);
        let mut merge = Merge::new(&self.plan, has_cut, &part.stretches, part.len)?;
        merge.skip(part.skip, self.stop.flag())?;
        Ok(merge)
    }
}

impl Part {
    fn new(stretches: Arc<[Stretch]>, skip: usize, len: usize) -> Part {
        Part { stretches, skip, len, progress: Mutex::new(Progress::Pending) }
    }
}

/// Cuts the first `wanted` rows of runs, and a few more, into parts of about as many rows, so many at most: of each part the
/// stretches of runs. Rows with equal heads stay together.
fn cut(runs: &[SpilledRun], part_count: usize, wanted: usize, stop: &Stop) -> Result<Vec<Vec<Stretch>>> {
    let mut groups: Vec<(i128, usize)> = runs.iter().flat_map(SpilledRun::groups).collect();
    groups.sort_unstable();
    let all = groups.iter().map(|(_, rows)| rows).sum::<usize>().min(wanted);
    let (mut starts, mut seen) = (vec![vec![0; runs.len()]], 0);
    let mut last = None;
    for (head, rows) in groups {
        if starts.len() < part_count && seen * part_count >= starts.len() * all && last.is_some_and(|last| last < head)
        {
            check_cancelled(stop.flag())?;
            starts.push(runs.iter().map(|run| run.rows_below(head)).collect::<Result<_>>()?);
        }
        (seen, last) = (seen + rows, Some(head));
    }
    starts.push(runs.iter().map(SpilledRun::len).collect());
    let part = |bounds: &[Vec<usize>]| {
        let rows = bounds[0].iter().zip(&bounds[1]).map(|(&start, &end)| start..end);
        let stretches = runs.iter().zip(rows).map(|(run, rows)| run.stretch(rows));
        stretches.filter(|stretch| stretch.len > 0).collect()
    };
    Ok(starts.windows(2).map(part).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expr, LogicalType, Order, Output, Pipeline, SortKey, Spilled, Vector};
    use sinter_codec::{Encoded, ValuesBuf};

    #[derive(Debug, Default)]
    struct InMemory(Mutex<Vec<u8>>);

    impl SpillFile for InMemory {
        fn append(&self, bytes: &[u8]) -> Result<u64> {
            let mut all = self.0.lock().expect("no panic");
            all.extend_from_slice(bytes);
            Ok((all.len() - bytes.len()) as u64)
        }

        fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
            let all = self.0.lock().expect("no panic");
            bytes.copy_from_slice(&all[offset as usize..offset as usize + bytes.len()]);
            Ok(())
        }

        fn compression(&self) -> crate::SpillCompression {
            crate::SpillCompression::Auto
        }
    }

    /// Runs of these numbers, which are their own heads, in row groups of these lengths in turn.
    fn merged(runs: &[Vec<i64>], group_rows: &[usize], skip: usize, fetch: Option<usize>) -> Result<Merged> {
        let file: Arc<dyn SpillFile> = Arc::new(InMemory::default());
        let key = SortKey { expr: Expr::Column(0), descending: false, nulls_first: false };
        let order = Order { keys: vec![key], skip, fetch };
        let columns =
            crate::spill::SpilledColumns { names: ["n".to_owned()].into(), types: [LogicalType::Int64].into() };
        let nothing = Arc::new(Spilled::new(columns, Vec::new()));
        let pipeline = Pipeline::of_table(nothing, Output::Rows(Vec::new()));
        let plan = Arc::new(SortPlan::new(&[Expr::Column(0)], &order, &[LogicalType::Int64], &pipeline)?);
        let run = |numbers: &Vec<i64>| {
            let (mut left, mut groups) = (&numbers[..], Vec::new());
            for rows in group_rows.iter().cycle() {
                if left.is_empty() {
                    break;
                }
                let (group, rest) = left.split_at(left.len().min(*rows));
                groups.push(group);
                left = rest;
            }
            SpilledRun::of_groups(&plan, &groups, &file)
        };
        let runs = runs.iter().map(run).collect::<Result<Vec<_>>>()?;
        Merged::new(&plan, runs, &file, &Arc::default(), None)
    }

    fn numbers(batch: &Batch) -> Vec<i64> {
        let [Vector { values: Encoded::Flat(ValuesBuf::I64(values)), .. }] = &batch.columns[..] else { panic!("flat") };
        assert_eq!(values.len(), batch.rows);
        values.clone()
    }

    /// Several lists of sorted numbers, some of which are often there.
    fn lists() -> Vec<Vec<Vec<i64>>> {
        let spread = |run: i64, len: i64| (0..len).map(|row| row * 7 + run).collect::<Vec<_>>();
        let steps = |run: i64, len: i64| (0..len).map(|row| (row + run) / 60 * 60).collect::<Vec<_>>();
        vec![
            vec![],
            vec![spread(0, 5000)],
            vec![spread(0, 3000), vec![], spread(3, 700), spread(-9000, 2500)],
            vec![steps(0, 2000), steps(11, 3000), vec![240; 1500]],
            vec![vec![7; 3000], vec![7; 10]],
        ]
    }

    #[test]
    fn one_who_reads_has_all_rows_in_order_however_they_are_cut() -> Result<()> {
        for (list, runs) in lists().into_iter().enumerate() {
            let mut all = runs.concat();
            all.sort_unstable();
            let len = all.len();
            for (skip, fetch) in
                [(0, None), (1, Some(1)), (len / 3, None), (len / 2, Some(len / 4)), (len, None), (9, Some(0))]
            {
                let merged = merged(&runs, &[100, 7, 1500], skip, fetch)?;
                for part_count in [0, 1, 2, 3, 7, 100] {
                    let parts = merged.in_parts(part_count)?;
                    let wanted: Vec<i64> = all.iter().copied().skip(skip).take(fetch.unwrap_or(len)).collect();
                    assert!(parts.parts.len() <= part_count.max(1));
                    assert_eq!(parts.len(), wanted.len());
                    let (mut batch, mut taken, mut found) = (Batch::default(), None, Vec::new());
                    parts.begin()?;
                    while parts.read(&mut taken, &mut batch)? {
                        found.extend(numbers(&batch));
                    }
                    assert!(!parts.read(&mut taken, &mut batch)?, "nothing comes after the end");
                    assert!(found == wanted, "list {list} in {part_count} parts, skip {skip}, fetch {fetch:?}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn several_who_read_have_each_row_once() -> Result<()> {
        for runs in lists() {
            let merged = merged(&runs, &[50, 300], 0, None)?;
            let mut all = runs.concat();
            all.sort_unstable();
            for part_count in [1, 2, 5] {
                let parts = merged.in_parts(part_count)?;
                let mut found = Vec::new();
                let mut readers: [(Option<usize>, Batch); 3] = Default::default();
                let mut is_done = false;
                while !is_done {
                    is_done = true;
                    for (taken, batch) in &mut readers {
                        if parts.read(taken, batch)? {
                            found.extend(numbers(batch));
                            is_done = false;
                        }
                    }
                }
                found.sort_unstable();
                assert!(found == all, "in {part_count} parts");
            }
        }
        Ok(())
    }

    #[test]
    fn rows_are_cut_where_there_are_many() -> Result<()> {
        let runs: Vec<Vec<i64>> = (0..3).map(|run| (0..5000).map(|row| row * 3 + run).collect()).collect();
        let merged = merged(&runs, &[100], 0, None)?;
        let lens = |merged: &Merged| merged.parts.iter().map(|part| part.len).collect::<Vec<_>>();
        assert_eq!(lens(&merged), [15_000]);
        assert_eq!(lens(&merged.for_threads(1)?), [15_000]);
        let parts = lens(&merged.for_threads(2)?);
        assert!(parts.len() == 3 && parts.iter().all(|len| (4500..5500).contains(len)), "{parts:?}");
        Ok(())
    }
}
