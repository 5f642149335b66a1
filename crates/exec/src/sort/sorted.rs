//! The rows of all workers, in order.

use super::plan::SortPlan;
use super::sink::{SortedRun, head, row};
use super::ties::{self, TieKey};
use crate::error::check_cancelled;
use crate::memory::Held;
use crate::parallel;
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

    /// Merges what the workers sorted, on so many threads.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::OutOfMemory`] for more rows than 32 bits can number.
    pub(crate) fn new(
        plan: &Arc<SortPlan>,
        runs: Vec<SortedRun>,
        room: Held,
        threads: usize,
        cancelled: &AtomicBool,
    ) -> Result<Sorted> {
        let (mut firsts, mut all) = (Vec::with_capacity(runs.len()), 0);
        for run in &runs {
            firsts.push(u32::try_from(all).map_err(|_| too_many())?);
            all += run.store.rows();
        }
        let mut rows = merge(plan, &runs, &firsts, threads, cancelled)?;
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
    threads: usize,
    cancelled: &AtomicBool,
) -> Result<Vec<u32>> {
    let wanted = wanted(plan, runs);
    if let [run] = runs {
        return Ok(run.entries.iter().take(wanted).map(|&entry| row(entry)).collect());
    }
    let ties = plan.ties(runs.iter().any(|run| run.has_cut));
    let merging = Merging { runs, firsts, ties, cancelled };
    let mut rows = vec![0; wanted];
    let (mut pieces, mut left) = (Vec::new(), &mut rows[..]);
    let cuts = merging.cuts(wanted, parallel::threads_for(wanted, threads));
    for (number, cut) in cuts.iter().enumerate() {
        let end = cuts.get(number + 1).map_or(wanted, |next| next.iter().sum::<usize>().min(wanted));
        let len = end.saturating_sub(cut.iter().sum::<usize>());
        let (piece, others) = std::mem::take(&mut left).split_at_mut(len);
        left = others;
        pieces.push((cut.clone(), piece));
    }
    parallel::try_on_each(pieces, |(at, rows)| merging.write(at, rows))?;
    Ok(rows)
}

/// Sorted runs on their way to one.
#[derive(Clone, Copy)]
struct Merging<'a> {
    runs: &'a [SortedRun],
    firsts: &'a [u32],
    ties: &'a [TieKey],
    cancelled: &'a AtomicBool,
}

impl Merging<'_> {
    /// Which of two entries of runs comes first; of equal ones, that of the first run.
    fn compare(&self, one: (usize, u128), other: (usize, u128)) -> Ordering {
        let place = |(run, entry): (usize, u128)| (&self.runs[run].store, row(entry) as usize);
        let by_values = || ties::compare(self.ties, place(one), place(other));
        head(one.1).cmp(&head(other.1)).then_with(by_values).then(one.0.cmp(&other.0))
    }

    /// Where each of so many pieces of the first `wanted` rows begins in each run: all rows of a piece come before those of the
    /// next. Pieces are as long as each other where runs are alike.
    fn cuts(&self, wanted: usize, pieces: usize) -> Vec<Vec<usize>> {
        let mut cuts = vec![vec![0; self.runs.len()]];
        let all: usize = self.runs.iter().map(|run| run.entries.len()).sum();
        let Some(longest) = (0..self.runs.len()).max_by_key(|&run| self.runs[run].entries.len()) else { return cuts };
        for piece in 1..pieces {
            let entries = &self.runs[longest].entries;
            let share = (wanted as f64 / all as f64) * (piece as f64 / pieces as f64);
            let Some(&entry) = entries.get((share * entries.len() as f64) as usize) else { break };
            let before = |(run, other): (usize, &SortedRun)| {
                other.entries.partition_point(|&other| self.compare((run, other), (longest, entry)).is_lt())
            };
            cuts.push(self.runs.iter().enumerate().map(before).collect());
        }
        cuts
    }

    /// Writes the rows that come next, from these entries of the runs on.
    fn write(&self, mut at: Vec<usize>, rows: &mut [u32]) -> Result<()> {
        for vector in rows.chunks_mut(VECTOR_LEN) {
            check_cancelled(self.cancelled)?;
            for out in vector {
                let next = |run: usize| self.runs[run].entries.get(at[run]).map(|&entry| (run, entry));
                // As many runs as threads, unless there are billions of rows.
                let candidates = (0..self.runs.len()).filter_map(next);
                let best =
                    candidates.reduce(|best, other| if self.compare(other, best).is_lt() { other } else { best });
                if let Some((run, entry)) = best {
                    at[run] += 1;
                    *out = self.firsts[run] + row(entry);
                }
            }
        }
        Ok(())
    }
}

#[cold]
fn too_many() -> Error {
    Error::OutOfMemory("a sort keeps more rows than 32 bits can number; filter them, or add LIMIT".into())
}
