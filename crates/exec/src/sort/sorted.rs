//! The rows of all workers, in order.

use super::plan::SortPlan;
use super::sink::{SortedRun, head, row};
use super::ties;
use crate::error::check_cancelled;
use crate::memory::Held;
use crate::store::{RowStore, gather_from};
use crate::{Batch, Error, Memory, Result, Vector};
use sinter_codec::VECTOR_LEN;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Rows in the order that was asked for.
#[derive(Debug)]
pub struct Sorted {
    plan: Arc<SortPlan>,
    stores: Vec<RowStore>,
    /// Which row of which store comes when: rows of a store count from where those of the stores before it end.
    rows: Vec<u32>,
    /// The first row of each store.
    firsts: Vec<u32>,
    _memory: Held,
}

impl Sorted {
    /// What [`Sorted::new`] needs for these runs.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], also for more rows than 32 bits can number.
    pub(crate) fn room(plan: &SortPlan, runs: &[SortedRun], memory: &Arc<dyn Memory>) -> Result<Held> {
        u32::try_from(runs.iter().map(|run| run.store.rows()).sum::<usize>()).map_err(|_| too_many())?;
        let mut held = Held::new(memory);
        held.need(wanted(plan, runs) * size_of::<u32>())?;
        Ok(held)
    }

    /// Merges what the workers sorted.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::OutOfMemory`] for more rows than 32 bits can number.
    pub(crate) fn new(
        plan: &Arc<SortPlan>,
        runs: Vec<SortedRun>,
        room: Held,
        cancelled: &AtomicBool,
    ) -> Result<Sorted> {
        let (mut firsts, mut all) = (Vec::with_capacity(runs.len()), 0);
        for run in &runs {
            firsts.push(u32::try_from(all).map_err(|_| too_many())?);
            all += run.store.rows();
        }
        let mut rows = merge(plan, &runs, &firsts, wanted(plan, &runs), cancelled)?;
        rows.drain(..plan.order.skip.min(rows.len()));
        let stores = runs.into_iter().map(|run| run.store).collect();
        Ok(Sorted { plan: Arc::clone(plan), stores, rows, firsts, _memory: room })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the rows from `first` on over `batch`, a vector's worth at most. False when none is left.
    pub fn read(&self, first: usize, batch: &mut Batch) -> bool {
        let range = first.min(self.len())..self.len().min(first + VECTOR_LEN);
        batch.rows = range.len();
        batch.columns.resize_with(self.plan.columns.len(), Vector::default);
        self.read_columns(range, 0, &mut batch.columns);
        batch.rows > 0
    }

    /// Writes some rows over `out`: the columns from `first_column` on.
    pub(crate) fn read_columns(&self, range: Range<usize>, first_column: usize, out: &mut [Vector]) {
        let rows = &self.rows[range];
        for (&column, out) in self.plan.columns[first_column..].iter().zip(out) {
            match &self.stores[..] {
                [store] => store.gather(column, rows, out),
                stores => gather_from(stores, &self.firsts, column, rows, out),
            }
        }
    }
}

/// How many rows of these runs have to be known.
fn wanted(plan: &SortPlan, runs: &[SortedRun]) -> usize {
    let count: usize = runs.iter().map(|run| run.entries.len()).sum();
    plan.order.row_count().map_or(count, |wanted| wanted.min(count))
}

/// The first rows of sorted runs together.
fn merge(
    plan: &SortPlan,
    runs: &[SortedRun],
    firsts: &[u32],
    wanted: usize,
    cancelled: &AtomicBool,
) -> Result<Vec<u32>> {
    if let [run] = runs {
        return Ok(run.entries.iter().take(wanted).map(|&entry| row(entry)).collect());
    }
    let ties = plan.ties(runs.iter().any(|run| run.has_cut));
    let mut at = vec![0; runs.len()];
    let mut rows = Vec::with_capacity(wanted);
    let comes_first = |one: (usize, u128), other: (usize, u128)| {
        let place = |(run, entry): (usize, u128)| (&runs[run].store, row(entry) as usize);
        let by_values = || ties::compare(ties, place(one), place(other));
        head(one.1).cmp(&head(other.1)).then_with(by_values) == Ordering::Less
    };
    // As many runs as threads, unless there are billions of rows.
    while rows.len() < wanted {
        if rows.len().is_multiple_of(VECTOR_LEN) {
            check_cancelled(cancelled)?;
        }
        let next = |run: usize| runs[run].entries.get(at[run]).map(|&entry| (run, entry));
        let candidates = (0..runs.len()).filter_map(next);
        let Some(best) = candidates.reduce(|best, other| if comes_first(other, best) { other } else { best }) else {
            break;
        };
        at[best.0] += 1;
        rows.push(firsts[best.0] + row(best.1));
    }
    Ok(rows)
}

#[cold]
fn too_many() -> Error {
    Error::OutOfMemory("a sort keeps more rows than 32 bits can number; filter them, or add LIMIT".into())
}
