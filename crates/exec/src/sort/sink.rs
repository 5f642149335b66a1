//! One worker's rows on their way into an order.

use super::head::HeadScratch;
use super::plan::SortPlan;
use super::spilled::SpilledRun;
use super::ties;
use crate::aggregate::Argument;
use crate::expr::Machine;
use crate::flow::{Flow, KeyBound, Sink};
use crate::memory::Held;
use crate::run::Stop;
use crate::store::RowStore;
use crate::{Error, Memory, Result, SpillFile, Vector};
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Bits of the number of a row in its store.
const ROW_BITS: u32 = u32::BITS;

/// Where the first few rows are wanted: so many may come until those that are too many are dropped.
const SPARE_ROWS: usize = 8192;

/// Of so many wanted rows at most is it known with each row which is the last of them so far; of more only when others are
/// dropped.
const HEAP_MAX: usize = 1 << 16;

/// A run ends with so many rows, or so many bytes of text in a column: its store must be able to number them.
const RUN_ROWS_MAX: usize = 1 << 30;
const RUN_TEXT_BYTES_MAX: usize = 1 << 30;

/// A run with fewer bytes is not spilled, unless less is wanted: whoever is refused memory has so much at least, or there
/// would be too many runs.
const RUN_BYTES_MIN: usize = 1 << 23;

/// Rows in the order in which they come out.
#[derive(Debug)]
pub(crate) struct SortedRun {
    pub(super) store: RowStore,
    /// Head and row.
    pub(super) entries: Vec<u128>,
    /// Whether some key was longer than its place in the head.
    pub(super) has_cut: bool,
    _memory: Held,
}

/// All rows of a worker.
#[derive(Debug, Default)]
pub(crate) struct SortedRuns {
    pub(crate) in_memory: Vec<SortedRun>,
    pub(crate) spilled: Vec<SpilledRun>,
}

/// Takes vectors into runs.
pub(crate) struct SortSink {
    plan: Arc<SortPlan>,
    memory: Arc<dyn Memory>,
    runs: SortedRuns,
    /// Where rows go that do not fit the memory, if they may; writing them ends with the run.
    file: Option<Arc<dyn SpillFile>>,
    spills_until: Option<Arc<Stop>>,
    store: RowStore,
    /// Of the rows in the store: head and row.
    entries: Vec<u128>,
    /// For the entries.
    held: Held,
    /// How many rows are wanted, and once there are so many, the head of the last of them.
    wanted: Option<usize>,
    last: Option<u128>,
    /// The heads of these, the last on top.
    best: BinaryHeap<u128>,
    first_key_machine: Machine,
    key_machine: Machine,
    row_machine: Machine,
    scratch: HeadScratch,
    heads: Vec<u128>,
    kept: Vec<u16>,
    vectors: Vec<Vector>,
}

/// The head of an entry.
pub(super) fn head(entry: u128) -> u128 {
    entry >> ROW_BITS
}

/// The row of an entry.
pub(super) fn row(entry: u128) -> u32 {
    entry as u32
}

impl SortSink {
    pub(crate) fn new(
        plan: &Arc<SortPlan>,
        spills_until: Option<&Arc<Stop>>,
        memory: &Arc<dyn Memory>,
    ) -> Result<SortSink> {
        Ok(SortSink {
            plan: Arc::clone(plan),
            memory: Arc::clone(memory),
            runs: SortedRuns::default(),
            file: None,
            spills_until: spills_until.cloned(),
            store: plan.store(memory)?,
            entries: Vec::new(),
            held: Held::new(memory),
            wanted: plan.order.row_count(),
            last: None,
            best: BinaryHeap::new(),
            first_key_machine: Machine::default(),
            key_machine: Machine::default(),
            row_machine: Machine::default(),
            scratch: HeadScratch::default(),
            heads: Vec::new(),
            kept: Vec::new(),
            vectors: plan.rows.outputs.iter().map(|_| Vector::default()).collect(),
        })
    }

    /// The rows as sorted runs.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], and those of writing.
    pub(crate) fn into_runs(mut self) -> Result<SortedRuns> {
        if self.store.rows() > 0 {
            self.end_run()?;
        }
        if !self.runs.spilled.is_empty() {
            self.spill_runs()?;
        }
        Ok(self.runs)
    }

    /// Spills the rows that there are, after more were refused; but not few of them.
    fn make_room(&mut self, refused: Error) -> Result<()> {
        if self.spills_until.is_none() || !matches!(refused, Error::OutOfMemory(_)) {
            return Err(refused);
        }
        if self.file.is_none() {
            self.file = self.memory.spill_file()?;
        }
        let own_bytes = self.store.value_bytes() + self.entries.len() * size_of::<u128>();
        let bytes_min = self.memory.spills_beyond().unwrap_or(RUN_BYTES_MIN).min(RUN_BYTES_MIN);
        match &self.file {
            None => Err(refused),
            Some(_) if self.runs.in_memory.is_empty() && own_bytes < bytes_min => Ok(()),
            Some(_) => {
                self.end_run()?;
                self.spill_runs()
            }
        }
    }

    /// Spills all runs that are in memory.
    fn spill_runs(&mut self) -> Result<()> {
        if let (Some(file), Some(stop)) = (&self.file, &self.spills_until) {
            for run in self.runs.in_memory.drain(..) {
                self.runs.spilled.push(SpilledRun::write(&self.plan, &run, file, stop.flag())?);
            }
        }
        Ok(())
    }

    /// Leaves in `self.kept` which rows have a lesser head, and of these the heads.
    fn keep_below(&mut self, bound: u128) {
        let (mut count, heads) = (0, &mut self.heads);
        self.kept.resize(heads.len(), 0);
        for row in 0..heads.len() {
            let head = heads[row];
            (self.kept[count], heads[count]) = (row as u16, head);
            count += usize::from(head < bound);
        }
        self.kept.truncate(count);
        heads.truncate(count);
    }

    /// Drops rows of which the first key says that they are not wanted, before others are unpacked. False where none is left.
    fn keep_by_first_key(&mut self, plan: &SortPlan, last: u128, flow: &mut Flow<'_>) -> Result<bool> {
        let Some((program, shift)) = &plan.first_key else { return Ok(true) };
        flow.load(&program.columns)?;
        let rows = flow.rows();
        self.first_key_machine.run(program, flow.columns(), rows)?;
        let frame = self.first_key_machine.frame(program, flow.columns(), rows);
        let key = |number: usize| Argument::new(frame, program.outputs[number].0);
        plan.heads.write(1, key, rows, &mut self.scratch, &mut self.heads)?;
        self.keep_below(((last >> shift) + 1) << shift);
        if self.kept.len() < rows && !self.kept.is_empty() {
            flow.keep(&self.kept)?;
        }
        Ok(!self.kept.is_empty())
    }

    /// Learns from the heads of rows that come in which is the last of those that are wanted.
    fn learn(&mut self, wanted: usize) {
        for &head in &self.heads {
            if self.best.len() < wanted {
                self.best.push(head);
            } else if let Some(mut last) = self.best.peek_mut()
                && head < *last
            {
                *last = head;
            }
        }
        if self.best.len() == wanted {
            self.last = self.best.peek().copied();
        }
    }

    fn end_run(&mut self) -> Result<()> {
        self.sort();
        if let Some(wanted) = self.wanted {
            self.entries.truncate(wanted);
        }
        let store = std::mem::replace(&mut self.store, self.plan.store(&self.memory)?);
        let held = std::mem::replace(&mut self.held, Held::new(&self.memory));
        let (entries, has_cut) = (std::mem::take(&mut self.entries), self.scratch.has_cut);
        self.runs.in_memory.push(SortedRun { store, entries, has_cut, _memory: held });
        Ok(())
    }

    /// Brings the entries into order.
    fn sort(&mut self) {
        self.entries.sort_unstable();
        let keys = self.plan.ties(self.scratch.has_cut);
        if keys.is_empty() {
            return;
        }
        let store = &self.store;
        for equal in self.entries.chunk_by_mut(|one, other| head(*one) == head(*other)) {
            if equal.len() > 1 {
                let at = |entry: u128| (store, row(entry) as usize);
                equal.sort_unstable_by(|one, other| ties::compare(keys, at(*one), at(*other)).then(one.cmp(other)));
            }
        }
    }

    /// Forgets the rows that are too many.
    fn drop_unwanted(&mut self, wanted: usize) -> Result<()> {
        self.sort();
        self.entries.truncate(wanted);
        self.last = self.entries.last().copied().map(head).into_iter().chain(self.last).min();
        let rows: Vec<u32> = self.entries.iter().copied().map(row).collect();
        let all = std::mem::replace(&mut self.store, self.plan.store(&self.memory)?);
        let mut refused = None;
        for rows in rows.chunks(sinter_codec::VECTOR_LEN) {
            for (column, vector) in self.vectors.iter_mut().enumerate() {
                all.gather(column, rows, vector);
            }
            // What is refused is there all the same.
            match self.store.push(&self.vectors, rows.len()) {
                Err(error @ Error::OutOfMemory(_)) => refused = Some(error),
                pushed => pushed?,
            }
        }
        for (row, entry) in self.entries.iter_mut().enumerate() {
            *entry = head(*entry) << ROW_BITS | row as u128;
        }
        drop(all);
        refused.map_or(Ok(()), |refused| self.make_room(refused))
    }
}

impl Sink for SortSink {
    fn columns(&self) -> &[usize] {
        self.plan.all_columns()
    }

    fn bound(&self) -> Option<KeyBound> {
        let column = self.plan.bounded_column?;
        let (predicate, keeps_nulls) = self.plan.heads.first_key_until(self.last?)?;
        Some(KeyBound { column, predicate, keeps_nulls })
    }

    fn take(&mut self, flow: &mut Flow<'_>) -> Result<ControlFlow<()>> {
        let plan = Arc::clone(&self.plan);
        if self.wanted == Some(0) {
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(last) = self.last
            && !self.keep_by_first_key(&plan, last, flow)?
        {
            return Ok(ControlFlow::Continue(()));
        }
        flow.load(&plan.keys.columns)?;
        let rows = flow.rows();
        self.key_machine.run(&plan.keys, flow.columns(), rows)?;
        let frame = self.key_machine.frame(&plan.keys, flow.columns(), rows);
        let key = |number: usize| Argument::new(frame, plan.keys.outputs[number].0);
        plan.heads.write(plan.keys.outputs.len(), key, rows, &mut self.scratch, &mut self.heads)?;
        if let Some(last) = self.last {
            self.keep_below(if plan.ties(self.scratch.has_cut).is_empty() { last } else { last + 1 });
            if self.kept.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            flow.keep(&self.kept)?;
        }
        if let Some(wanted) = self.wanted.filter(|wanted| *wanted <= HEAP_MAX) {
            self.learn(wanted);
        }
        flow.load(&plan.rows.columns)?;
        let rows = flow.rows();
        self.row_machine.run(&plan.rows, flow.columns(), rows)?;
        self.row_machine.outputs(&plan.rows, flow.columns_mut(), rows, &mut self.vectors);
        let first = self.store.rows() as u128;
        // What is refused is there all the same, and goes.
        let pushed = self.store.push(&self.vectors, rows);
        let entries = self.heads.iter().zip(first..).map(|(head, row)| head << ROW_BITS | row);
        self.entries.extend(entries);
        let kept = pushed.and_then(|()| self.held.need(self.entries.capacity() * size_of::<u128>()));
        if let Err(refused) = kept {
            self.make_room(refused)?;
        }
        match self.wanted {
            Some(wanted) if self.entries.len() >= wanted.saturating_add(wanted.max(SPARE_ROWS)) => {
                self.drop_unwanted(wanted)?;
            }
            _ if self.store.rows() >= RUN_ROWS_MAX || self.store.text_bytes() >= RUN_TEXT_BYTES_MAX => {
                self.end_run()?
            }
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }
}
