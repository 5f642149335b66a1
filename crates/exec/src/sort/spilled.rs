//! Sorted runs in a file, and how they become one.
//!
//! A run that does not fit the memory is written in its order, with the head of each row as the first column, and is read
//! again a vector at a time. Runs are merged when somebody reads the rows: to write them once more would take longer.

use super::plan::SortPlan;
use super::sink::{SortedRun, head, row};
use super::ties;
use crate::error::check_cancelled;
use crate::run::Reader;
use crate::spill::{SpillFile, SpillWriter, Spilled, SpilledColumns};
use crate::store::{RowStore, gather_from};
use crate::vector::append;
use crate::{Batch, Error, LogicalType, Memory, Result, TableSource, Unlimited, Vector};
use sinter_codec::{Block, Encoded, Physical, Scalar, VECTOR_LEN, ValuesBuf};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Heads have 96 bits.
const HEAD_TYPE: LogicalType = LogicalType::Decimal { precision: 38, scale: 0 };

/// A run in a file.
#[derive(Clone, Debug)]
pub(crate) struct SpilledRun {
    /// Head, then the columns of the store.
    rows: Arc<Spilled>,
    pub(super) has_cut: bool,
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

    /// Of numbers that are their own heads, by row group.
    #[cfg(test)]
    pub(super) fn of_groups(plan: &SortPlan, groups: &[&[i64]], file: &Arc<dyn SpillFile>) -> Result<SpilledRun> {
        let (columns, mut all) = (run_columns(plan), Vec::new());
        for numbers in groups {
            let mut writer = SpillWriter::new(file, &columns, 1)?;
            for numbers in numbers.chunks(VECTOR_LEN) {
                let mut heads = Vector::default();
                put_heads(numbers.iter().map(|&number| number.into()), &mut heads);
                let values = Vector { values: Encoded::Flat(ValuesBuf::I64(numbers.to_vec())), ..Vector::default() };
                writer.push(0, &[heads, values], numbers.len())?;
            }
            all.extend(writer.finish()?.concat());
        }
        Ok(SpilledRun { rows: Arc::new(Spilled::new(columns, all)), has_cut: false })
    }

    /// How many rows it has.
    pub(super) fn len(&self) -> usize {
        self.rows.rows()
    }

    /// All of them.
    pub(super) fn all(&self) -> Stretch {
        Stretch { rows: Arc::clone(&self.rows), before: 0, len: self.len() }
    }

    /// These of them.
    pub(super) fn stretch(&self, rows: Range<usize>) -> Stretch {
        let (mut groups, mut first, mut before) = (0..0, 0, 0);
        for group in 0..self.rows.group_count() {
            let end = first + self.rows.group_rows(group);
            if first < rows.end && rows.start < end {
                if groups.is_empty() {
                    (groups.start, before) = (group, rows.start - first);
                }
                groups.end = group + 1;
            }
            first = end;
        }
        Stretch { rows: Arc::new(self.rows.some(groups)), before, len: rows.len() }
    }

    /// The head with which each row group begins, and how many rows that has. The least of integers is exact.
    pub(super) fn groups(&self) -> impl Iterator<Item = (i128, usize)> {
        (0..self.rows.group_count()).map(|group| {
            let head = self.rows.zone(group, 0).map(|zone| &zone.min);
            (if let Some(Scalar::Int(head)) = head { *head } else { i128::MIN }, self.rows.group_rows(group))
        })
    }

    /// How many rows have a lesser head.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) fn rows_below(&self, head: i128) -> Result<usize> {
        let (mut before, mut last) = (0, None);
        for (group, (_, rows)) in self.groups().enumerate().take_while(|(_, (first, _))| *first < head) {
            before += rows;
            last = Some((group, rows));
        }
        let Some((group, rows)) = last else { return Ok(0) };
        let (segment, mut heads) = (self.rows.segment(group, 0)?, ValuesBuf::new(Physical::I128));
        Block::open(&segment)?.decode(0..rows, &mut heads)?;
        let ValuesBuf::I128(heads) = heads else { return Err(Error::Unsupported("heads of another type".into())) };
        Ok(before - rows + heads.partition_point(|&other| other < head))
    }
}

/// Some rows of a run, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    /// The row groups in which they lie.
    rows: Arc<Spilled>,
    /// So many rows of these come before them.
    before: usize,
    pub(super) len: usize,
}

/// Where a run is that is being merged.
#[derive(Debug)]
struct Cursor {
    reader: Reader,
    batch: Batch,
    /// How many rows come before those that are wanted, and how many of these were not read.
    before: usize,
    left: usize,
    /// Of the rows of the vector that was read, up to the last that is wanted.
    heads: Vec<i128>,
    /// The first of them that was not taken.
    at: usize,
}

impl Cursor {
    fn new(stretch: &Stretch) -> Result<Cursor> {
        let reader = Reader::by_group(Arc::clone(&stretch.rows))?;
        let (before, left) = (stretch.before, stretch.len);
        Ok(Cursor { reader, batch: Batch::default(), before, left, heads: Vec::new(), at: 0 })
    }

    /// Reads the next vector of the run into `store`; false when none is left.
    fn read(&mut self, store: &mut RowStore) -> Result<bool> {
        store.clear();
        self.heads.clear();
        loop {
            if self.left == 0 || !self.reader.next(&mut self.batch)? {
                return Ok(false);
            }
            if self.before < self.batch.rows {
                break;
            }
            self.before -= self.batch.rows;
        }
        let Some((heads, columns)) = self.batch.columns.split_first() else { return Ok(false) };
        let mut values = ValuesBuf::I128(std::mem::take(&mut self.heads));
        append(heads, self.batch.rows, &mut values)?;
        let ValuesBuf::I128(heads) = values else { return Ok(false) };
        self.heads = heads;
        store.push(columns, self.batch.rows)?;
        self.at = std::mem::take(&mut self.before);
        self.heads.truncate(self.at.saturating_add(self.left));
        self.left -= self.heads.len() - self.at;
        Ok(true)
    }
}

/// So many runs are merged at a time: of each as much is in memory as a row group has, for each worker. That is not asked for.
const FAN_IN: usize = 64;

/// Runs on their way into one.
#[derive(Debug)]
pub(super) struct Merge {
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
    pub(super) rows: Vec<u32>,
    heads: Vec<i128>,
}

impl Merge {
    /// Of the rows of these stretches so many. Did a run have to cut keys?
    pub(super) fn new(plan: &Arc<SortPlan>, has_cut: bool, runs: &[Stretch], left: usize) -> Result<Merge> {
        let unlimited: Arc<dyn Memory> = Arc::new(Unlimited);
        let mut merge = Merge {
            plan: Arc::clone(plan),
            has_cut,
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
            merge.cursors.push(Cursor::new(run)?);
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
    pub(super) fn skip(&mut self, mut count: usize, cancelled: &AtomicBool) -> Result<()> {
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
    pub(super) fn next(&mut self, cancelled: &AtomicBool) -> Result<bool> {
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
        if count_max == 0 {
            return Ok(0);
        }
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
    pub(super) fn gather(&self, column: usize, out: &mut Vector) {
        gather_from(&self.stores, &self.firsts, column, &self.rows, out);
    }
}

/// Makes runs so few that they can be merged at once; those that have become one are of no more than `wanted` rows.
pub(super) fn merge_some(
    plan: &Arc<SortPlan>,
    mut runs: Vec<SpilledRun>,
    wanted: usize,
    file: &Arc<dyn SpillFile>,
    cancelled: &AtomicBool,
) -> Result<Vec<SpilledRun>> {
    while runs.len() > FAN_IN {
        // No more than have to become one.
        let some: Vec<SpilledRun> = runs.drain(..FAN_IN.min(runs.len() - FAN_IN + 1)).collect();
        let (has_cut, stretches) = (some.iter().any(|run| run.has_cut), some.iter().map(SpilledRun::all));
        let mut merge = Merge::new(plan, has_cut, &stretches.collect::<Vec<_>>(), wanted)?;
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
        runs.push(SpilledRun { rows, has_cut });
    }
    Ok(runs)
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
