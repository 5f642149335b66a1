//! Sorted runs in a file, and how they become one.
//!
//! A run that does not fit the memory is written in its order, with the head of each row as the first column, and is read
//! again a vector at a time when all runs are merged.

use super::plan::SortPlan;
use super::sink::{SortedRun, head, row};
use super::ties;
use crate::error::check_cancelled;
use crate::run::Reader;
use crate::spill::{SpillFile, SpillWriter, Spilled, SpilledColumns};
use crate::store::{RowStore, gather_from};
use crate::vector::append;
use crate::{Batch, LogicalType, Memory, Result, Unlimited, Vector};
use sinter_codec::{Encoded, Physical, VECTOR_LEN, ValuesBuf};
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Heads have 96 bits.
const HEAD_TYPE: LogicalType = LogicalType::Decimal { precision: 38, scale: 0 };

/// A run in a file.
#[derive(Debug)]
pub(crate) struct SpilledRun {
    /// Head, then the columns of the store.
    rows: Arc<Spilled>,
    has_cut: bool,
}

impl SpilledRun {
    /// Writes a run.
    ///
    /// # Errors
    /// Those of writing; [`Error::Cancelled`](crate::Error::Cancelled).
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
        let rows = Arc::new(Spilled::new(columns, writer.finish()?.concat(), true));
        Ok(SpilledRun { rows, has_cut: run.has_cut })
    }
}

/// Where a run is that is being merged.
struct Cursor {
    reader: Reader,
    batch: Batch,
    heads: ValuesBuf,
    at: usize,
}

impl Cursor {
    fn head(&self) -> i128 {
        match &self.heads {
            ValuesBuf::I128(heads) => heads.get(self.at).copied().unwrap_or(i128::MAX),
            _ => i128::MAX,
        }
    }

    /// Reads the next vector of the run into `store`; false when none is left.
    fn read(&mut self, store: &mut RowStore) -> Result<bool> {
        store.clear();
        self.heads.clear();
        self.at = 0;
        if !self.reader.next(&mut self.batch)? {
            return Ok(false);
        }
        let Some((heads, columns)) = self.batch.columns.split_first() else { return Ok(false) };
        append(heads, self.batch.rows, &mut self.heads)?;
        store.push(columns, self.batch.rows)?;
        Ok(true)
    }
}

/// So many runs are merged at a time: of each a row group is in memory.
const FAN_IN: usize = 64;

/// Merges runs, and writes of the rows that are wanted the columns that come out.
///
/// # Errors
/// Those of reading and writing; [`Error::Cancelled`](crate::Error::Cancelled).
pub(crate) fn merge_spilled(
    plan: &SortPlan,
    mut runs: Vec<SpilledRun>,
    columns: SpilledColumns,
    file: &Arc<dyn SpillFile>,
    cancelled: &AtomicBool,
) -> Result<Spilled> {
    let (skip, all) = (plan.order.skip, plan.order.row_count().unwrap_or(usize::MAX));
    while runs.len() > FAN_IN {
        // No more than have to become one.
        let some: Vec<SpilledRun> = runs.drain(..FAN_IN.min(runs.len() - FAN_IN + 1)).collect();
        let has_cut = some.iter().any(|run| run.has_cut);
        let places = (0..plan.rows.outputs.len()).collect();
        let mut out = MergeOut::new(run_columns(plan), true, places, file)?;
        merge(plan, some, all, &mut out, cancelled)?;
        let rows = Arc::new(Spilled::new(run_columns(plan), out.writer.finish()?.concat(), true));
        runs.push(SpilledRun { rows, has_cut });
    }
    let mut out = MergeOut { skip, ..MergeOut::new(columns.clone(), false, plan.columns.clone(), file)? };
    merge(plan, runs, all, &mut out, cancelled)?;
    Ok(Spilled::new(columns, out.writer.finish()?.concat(), true))
}

/// Hands the first rows of several runs to `out`, in their order.
fn merge(
    plan: &SortPlan,
    runs: Vec<SpilledRun>,
    mut left: usize,
    out: &mut MergeOut,
    cancelled: &AtomicBool,
) -> Result<()> {
    let unlimited: Arc<dyn Memory> = Arc::new(Unlimited);
    let ties = plan.ties(runs.iter().any(|run| run.has_cut));
    let (mut cursors, mut stores) = (Vec::with_capacity(runs.len()), Vec::with_capacity(runs.len()));
    for run in runs {
        let reader = Reader::by_group(run.rows)?;
        let heads = ValuesBuf::new(Physical::I128);
        let mut cursor = Cursor { reader, batch: Batch::default(), heads, at: 0 };
        let mut store = plan.store(&unlimited)?;
        if cursor.read(&mut store)? {
            cursors.push(cursor);
            stores.push(store);
        }
    }
    out.firsts = (0..stores.len()).map(|cursor| (cursor * VECTOR_LEN) as u32).collect();
    let compare = |cursors: &[Cursor], stores: &[RowStore], one: usize, other: usize| -> Ordering {
        let place = |cursor: usize| (&stores[cursor], cursors[cursor].at);
        let by_heads = cursors[one].head().cmp(&cursors[other].head());
        by_heads.then_with(|| ties::compare(ties, place(one), place(other)))
    };
    // Those that have rows left, the one whose row comes next at the end.
    let mut open: Vec<usize> = (0..cursors.len()).collect();
    open.sort_by(|&one, &other| compare(&cursors, &stores, other, one));
    while let Some(next) = open.pop() {
        if left == 0 {
            break;
        }
        left -= 1;
        out.add(next, cursors[next].at, cursors[next].head(), &stores)?;
        cursors[next].at += 1;
        if cursors[next].at == cursors[next].batch.rows {
            check_cancelled(cancelled)?;
            out.write(&stores)?;
            if !cursors[next].read(&mut stores[next])? {
                continue;
            }
        }
        let place = open.partition_point(|&other| compare(&cursors, &stores, other, next) == Ordering::Greater);
        open.insert(place, next);
    }
    out.write(&stores)
}

/// Rows on their way out of a merge.
struct MergeOut {
    writer: SpillWriter,
    /// Whether heads come first.
    has_heads: bool,
    /// Which columns of the stores come then.
    places: Vec<usize>,
    /// The number of each cursor's first row.
    firsts: Vec<u32>,
    /// That wait to be written.
    rows: Vec<u32>,
    heads: Vec<i128>,
    /// So many are not wanted.
    skip: usize,
    batch: Vec<Vector>,
}

impl MergeOut {
    fn new(
        columns: SpilledColumns,
        has_heads: bool,
        places: Vec<usize>,
        file: &Arc<dyn SpillFile>,
    ) -> Result<MergeOut> {
        let (writer, batch) = (SpillWriter::new(file, &columns, 1)?, vec![Vector::default(); columns.types.len()]);
        let (firsts, rows, heads) = Default::default();
        Ok(MergeOut { writer, has_heads, places, firsts, rows, heads, skip: 0, batch })
    }

    fn add(&mut self, cursor: usize, row: usize, head: i128, stores: &[RowStore]) -> Result<()> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(());
        }
        self.rows.push(self.firsts[cursor] + row as u32);
        if self.has_heads {
            self.heads.push(head);
        }
        if self.rows.len() == VECTOR_LEN { self.write(stores) } else { Ok(()) }
    }

    fn write(&mut self, stores: &[RowStore]) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let (heads, columns) = self.batch.split_at_mut(usize::from(self.has_heads));
        if let [vector] = heads {
            put_heads(self.heads.iter().copied(), vector);
        }
        for (&column, vector) in self.places.iter().zip(columns) {
            gather_from(stores, &self.firsts, column, &self.rows, vector);
        }
        self.writer.push(0, &self.batch, self.rows.len())?;
        self.rows.clear();
        self.heads.clear();
        Ok(())
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
