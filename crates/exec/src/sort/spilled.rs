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
use crate::{Batch, Gathered, LogicalType, Memory, Result, Unlimited, Vector};
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
    pub(crate) bytes: u64,
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
        let types = plan.rows.outputs.iter().map(|(_, ty)| ty.clone());
        let columns = SpilledColumns {
            types: std::iter::once(HEAD_TYPE).chain(types).collect(),
            names: (0..=plan.rows.outputs.len()).map(|column| format!("column {column}")).collect(),
        };
        let mut writer = SpillWriter::new(file, &columns, 1)?;
        let mut vectors = vec![Vector::default(); columns.types.len()];
        let mut rows = Vec::with_capacity(VECTOR_LEN);
        for entries in run.entries.chunks(VECTOR_LEN) {
            check_cancelled(cancelled)?;
            rows.clear();
            rows.extend(entries.iter().map(|&entry| row(entry)));
            let heads = entries.iter().map(|&entry| head(entry) as i128).collect();
            vectors[0].values = Encoded::Flat(ValuesBuf::I128(heads));
            for (column, vector) in vectors[1..].iter_mut().enumerate() {
                run.store.gather(column, &rows, vector);
            }
            writer.push(0, &vectors, rows.len())?;
        }
        let (groups, bytes) = writer.finish()?;
        let rows = Arc::new(Spilled::new(columns, groups.concat(), true));
        Ok(SpilledRun { rows, has_cut: run.has_cut, bytes })
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

/// Merges runs, and writes of the rows that are wanted the columns that come out.
///
/// # Errors
/// Those of reading and writing; [`Error::Cancelled`](crate::Error::Cancelled).
pub(crate) fn merge_spilled(
    plan: &SortPlan,
    runs: Vec<SpilledRun>,
    columns: SpilledColumns,
    file: &Arc<dyn SpillFile>,
    cancelled: &AtomicBool,
) -> Result<Spilled> {
    let unlimited: Arc<dyn Memory> = Arc::new(Unlimited);
    let ties = plan.ties(runs.iter().any(|run| run.has_cut));
    let (mut cursors, mut stores) = (Vec::with_capacity(runs.len()), Vec::with_capacity(runs.len()));
    for run in runs {
        let reader = Reader::new(Gathered::Spilled(run.rows))?;
        let heads = ValuesBuf::new(Physical::I128);
        let mut cursor = Cursor { reader, batch: Batch::default(), heads, at: 0 };
        let mut store = plan.store(&unlimited)?;
        if cursor.read(&mut store)? {
            cursors.push(cursor);
            stores.push(store);
        }
    }
    let firsts: Vec<u32> = (0..stores.len()).map(|cursor| (cursor * VECTOR_LEN) as u32).collect();
    let compare = |cursors: &[Cursor], stores: &[RowStore], one: usize, other: usize| -> Ordering {
        let place = |cursor: usize| (&stores[cursor], cursors[cursor].at);
        let by_heads = cursors[one].head().cmp(&cursors[other].head());
        by_heads.then_with(|| ties::compare(ties, place(one), place(other)))
    };
    let mut out = Merged {
        writer: SpillWriter::new(file, &columns, 1)?,
        plan,
        firsts,
        rows: Vec::with_capacity(VECTOR_LEN),
        skip: plan.order.skip,
        batch: vec![Vector::default(); plan.columns.len()],
    };
    // Those that have rows left, the one whose row comes next at the end.
    let mut open: Vec<usize> = (0..cursors.len()).collect();
    open.sort_by(|&one, &other| compare(&cursors, &stores, other, one));
    let mut left = plan.order.row_count().unwrap_or(usize::MAX);
    while let Some(next) = open.pop() {
        if left == 0 {
            break;
        }
        left -= 1;
        out.add(next, cursors[next].at, &stores)?;
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
    out.write(&stores)?;
    let (groups, _) = out.writer.finish()?;
    Ok(Spilled::new(columns, groups.concat(), true))
}

/// Rows on their way out of the merge.
struct Merged<'a> {
    writer: SpillWriter,
    plan: &'a SortPlan,
    /// The number of each cursor's first row.
    firsts: Vec<u32>,
    /// That wait to be written.
    rows: Vec<u32>,
    /// So many are not wanted.
    skip: usize,
    batch: Vec<Vector>,
}

impl Merged<'_> {
    fn add(&mut self, cursor: usize, row: usize, stores: &[RowStore]) -> Result<()> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(());
        }
        self.rows.push(self.firsts[cursor] + row as u32);
        if self.rows.len() == VECTOR_LEN { self.write(stores) } else { Ok(()) }
    }

    fn write(&mut self, stores: &[RowStore]) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        for (&column, vector) in self.plan.columns.iter().zip(&mut self.batch) {
            gather_from(stores, &self.firsts, column, &self.rows, vector);
        }
        self.writer.push(0, &self.batch, self.rows.len())?;
        self.rows.clear();
        Ok(())
    }
}
