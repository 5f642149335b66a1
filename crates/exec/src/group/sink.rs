//! Groups of one worker, and how they become the rows of a result.

use super::index::GroupIndex;
use super::merge::{GROUPS_MIN, Merging};
use super::partners::Partners;
use super::plan::GroupPlan;
use super::rows::RowGroups;
use super::states::{Counts, State};
use crate::aggregate::Argument;
use crate::error::check_cancelled;
use crate::expr::Machine;
use crate::flow::{Flow, Sink};
use crate::join::JoinTable;
use crate::memory::Held;
use crate::{Batch, Error, Memory, Result, Vector};
use sinter_codec::{Bitmap, VECTOR_LEN};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The groups of one worker, or of all of them.
#[derive(Debug)]
pub struct Groups {
    plan: Arc<GroupPlan>,
    index: Index,
    rows: Counts,
    states: Vec<State>,
    memory: Held,
}

/// What a row's group is found by.
#[derive(Debug)]
enum Index {
    Keys(GroupIndex),
    /// One join brings all keys.
    Partners(Partners),
}

impl Index {
    fn new(plan: &GroupPlan, tables: &[Arc<JoinTable>]) -> Index {
        match &plan.partner_keys {
            Some(keys) => Index::Partners(Partners::new(keys, &tables[keys.join])),
            None => Index::Keys(GroupIndex::new(&plan.index)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Index::Keys(index) => index.len(),
            Index::Partners(partners) => partners.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Index::Keys(index) => index.bytes(),
            Index::Partners(partners) => partners.bytes(),
        }
    }

    /// Whether few groups have been met, and are known by where keys stand.
    fn are_few(&self) -> bool {
        matches!(self, Index::Keys(index) if index.are_few())
    }

    /// No more groups come.
    fn settle(&mut self) {
        if let Index::Keys(index) = self {
            index.share_texts();
        }
    }

    /// Writes over `out` the keys of these groups, a vector for each key.
    fn keys(&self, groups: Range<usize>, out: &mut [Vector]) {
        match self {
            Index::Keys(index) => index.keys(groups, out),
            Index::Partners(partners) => partners.keys(groups, out),
        }
    }

    /// Takes over another worker's groups; returns which of ours they are.
    fn merge(&mut self, other: &mut Index, key_count: usize, merging: Merging<'_>) -> Result<Vec<u32>> {
        if let (Index::Keys(index), Index::Keys(other)) = (&mut *self, &mut *other)
            && let Some(map) = index.merge_many(other, None, merging)?
        {
            return Ok(map);
        }
        other.settle();
        let other = &*other;
        let (mut map, mut numbers) = (Vec::with_capacity(other.len()), Vec::new());
        let mut keys = vec![Vector::default(); key_count];
        for first in (0..other.len()).step_by(VECTOR_LEN) {
            check_cancelled(merging.cancelled)?;
            let range = first..other.len().min(first + VECTOR_LEN);
            match (&mut *self, other) {
                (Index::Partners(partners), Index::Partners(other)) if partners.shares_table(other) => {
                    partners.find(other.rows(range), &mut numbers)?;
                }
                (Index::Keys(index), Index::Keys(other)) => {
                    other.keys(range.clone(), &mut keys);
                    let arguments: Vec<_> = keys.iter().map(|key| Argument::of(key, range.len())).collect();
                    index.number(&arguments, range.len(), &mut numbers)?;
                }
                _ => return Err(mixed()),
            }
            map.extend_from_slice(&numbers);
        }
        Ok(map)
    }
}

impl Groups {
    /// Of a run with these tables of joins.
    ///
    /// # Errors
    /// Those of foreign aggregates.
    pub(crate) fn new(plan: &Arc<GroupPlan>, tables: &[Arc<JoinTable>], memory: &Arc<dyn Memory>) -> Result<Groups> {
        let has_keys = plan.key_count > 0;
        let state = |&part: &usize| State::new(&plan.parts[part], plan.pairs[part].as_ref(), has_keys);
        Ok(Groups {
            states: plan.states.iter().map(state).collect::<Result<_>>()?,
            plan: Arc::clone(plan),
            index: Index::new(plan, tables),
            rows: Counts::default(),
            memory: Held::new(memory),
        })
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes over the groups of another worker.
    ///
    /// # Errors
    /// Those of aggregates, what memory says when it has no more, and [`crate::Error::Cancelled`].
    pub(super) fn merge(&mut self, other: Groups, merging: Merging<'_>) -> Result<()> {
        // What tells which are whose takes four bytes for each of the other's groups, keys and pairs, which take 16 and more.
        self.memory.need(self.bytes() + other.bytes() / 4)?;
        let Groups { mut index, rows, states, memory: _memory, .. } = other;
        let map = self.index.merge(&mut index, self.plan.key_count, merging)?;
        let group_count = self.index.len();
        drop(index);
        let Groups { rows: counts, states: own_states, .. } = self;
        std::thread::scope(|scope| -> Result<()> {
            let mut count = || counts.merge(&rows, &map, group_count);
            let counting = match merging.threads > 1 && map.len() >= GROUPS_MIN {
                true => Some(scope.spawn(count)),
                false => {
                    count();
                    None
                }
            };
            let mut both = own_states.iter_mut().zip(states);
            both.try_for_each(|(state, other)| state.merge(other, &map, group_count, merging))?;
            counting.map_or(Ok(()), |counting| counting.join().map_err(|panic| std::panic::resume_unwind(panic)))
        })?;
        self.memory.need(self.bytes())
    }

    /// The groups that all workers found; so many threads are free.
    ///
    /// # Errors
    /// As [`Groups::finish`].
    pub(crate) fn merged(groups: Vec<Groups>, threads: usize, cancelled: &AtomicBool) -> Result<Groups> {
        let mut left = groups.len();
        let mut groups = groups.into_iter();
        let mut merged = groups.next().ok_or_else(|| Error::Unsupported("groups of no thread".into()))?;
        for other in groups {
            left -= 1;
            let (mut more, fewer) = if merged.len() < other.len() { (other, merged) } else { (merged, other) };
            more.merge(fewer, Merging { threads, is_last: left == 1, cancelled })?;
            merged = more;
        }
        merged.finish(cancelled)?;
        Ok(merged)
    }

    /// Makes what can only be made once no more rows come.
    ///
    /// # Errors
    /// As [`Groups::merge`].
    fn finish(&mut self, cancelled: &AtomicBool) -> Result<()> {
        if let (0, Index::Keys(index)) = (self.plan.key_count, &mut self.index) {
            // All rows are one group, even where there are none.
            index.number(&[], 1, &mut Vec::new())?;
        }
        let group_count = self.index.len();
        for (state, &part) in self.states.iter_mut().zip(&self.plan.states) {
            state.finish(&self.plan.parts[part], group_count, cancelled)?;
        }
        self.index.settle();
        self.memory.need(self.bytes())
    }

    /// Writes the groups from `first` on over `batch`, a vector's worth at most: keys, then aggregates. False when none is
    /// left.
    ///
    /// # Errors
    /// [`crate::Error::Overflow`] where a result does not fit its type.
    pub fn read(&self, first: usize, batch: &mut Batch) -> Result<bool> {
        let groups = first.min(self.len())..self.len().min(first + VECTOR_LEN);
        batch.rows = groups.len();
        batch.columns.resize_with(self.plan.key_count + self.plan.parts.len(), Vector::default);
        let (keys, results) = batch.columns.split_at_mut(self.plan.key_count);
        self.index.keys(groups.clone(), keys);
        for ((part, &state), out) in self.plan.parts.iter().zip(&self.plan.state_of).zip(results) {
            self.states[state].results(part, &self.rows, groups.clone(), out)?;
        }
        Ok(batch.rows > 0)
    }

    fn bytes(&self) -> usize {
        self.index.bytes() + self.rows.bytes() + self.states.iter().map(State::bytes).sum::<usize>()
    }
}

/// Takes vectors into a worker's groups.
pub(crate) struct GroupSink {
    groups: Groups,
    machine: Machine,
    rows: RowGroups,
    /// Rows that the scan left out may stay among those that are grouped.
    takes_spread: bool,
}

impl GroupSink {
    /// # Errors
    /// As [`Groups::new`].
    pub(crate) fn new(plan: &Arc<GroupPlan>, tables: &[Arc<JoinTable>], memory: &Arc<dyn Memory>) -> Result<GroupSink> {
        let groups = Groups::new(plan, tables, memory)?;
        let takes_spread = groups.states.iter().all(State::takes_dead_rows);
        Ok(GroupSink { groups, machine: Machine::default(), rows: RowGroups::default(), takes_spread })
    }

    pub(crate) fn into_groups(self) -> Groups {
        self.groups
    }
}

impl Sink for GroupSink {
    fn columns(&self) -> &[usize] {
        self.groups.plan.columns()
    }

    fn take(&mut self, flow: &mut Flow<'_>) -> Result<ControlFlow<()>> {
        let columns = self.groups.plan.columns();
        if self.takes_spread && self.groups.index.are_few() && flow.load_spread(columns)? {
            if let Some((columns, alive)) = flow.spread()
                && self.take_rows(columns, alive.len(), Some(alive))?
            {
                return Ok(ControlFlow::Continue(()));
            }
            flow.gather()?;
        }
        match &self.groups.plan.partner_keys {
            Some(_) => self.take_partners(flow)?,
            None => {
                flow.load(self.groups.plan.columns())?;
                self.take_rows(flow.columns(), flow.rows(), None)?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl GroupSink {
    /// Takes rows whose groups the rows tell that they met.
    fn take_partners(&mut self, flow: &mut Flow<'_>) -> Result<()> {
        let Groups { plan, index, rows: counts, states, .. } = &mut self.groups;
        let (Some(keys), Index::Partners(partners)) = (&plan.partner_keys, index) else { return Err(mixed()) };
        let grouped = self.rows.find_by_partners(partners, flow.met(keys.join))?;
        flow.load(&keys.arguments)?;
        let (columns, rows) = (flow.columns(), flow.rows());
        self.machine.run(&plan.program, columns, rows)?;
        let frame = self.machine.frame(&plan.program, columns, rows);
        counts.add(grouped);
        for (state, &part) in states.iter_mut().zip(&plan.states) {
            state.take(plan, &plan.parts[part], frame, grouped)?;
        }
        self.groups.memory.need(self.groups.bytes())
    }

    /// Takes rows of which all, or those that are `alive`, count. False, and nothing happens, where dead ones cannot be left
    /// out.
    fn take_rows(&mut self, columns: &[Vector], rows: usize, alive: Option<&Bitmap>) -> Result<bool> {
        let Groups { plan, index, rows: counts, states, .. } = &mut self.groups;
        let Index::Keys(index) = index else { return Err(mixed()) };
        match self.machine.run(&plan.program, columns, rows) {
            Err(_) if alive.is_some() => {
                // Perhaps only for a row that is dead; but it may happen again.
                self.takes_spread = false;
                return Ok(false);
            }
            done => done?,
        }
        let frame = self.machine.frame(&plan.program, columns, rows);
        let keys: Vec<_> = (0..plan.key_count).map(|key| Argument::new(frame, plan.key_operand(key))).collect();
        let Some(grouped) = self.rows.find(index, &keys, rows, alive)? else { return Ok(false) };
        counts.add(grouped);
        for (state, &part) in states.iter_mut().zip(&plan.states) {
            state.take(plan, &plan.parts[part], frame, grouped)?;
        }
        self.groups.memory.need(self.groups.bytes())?;
        Ok(true)
    }
}

/// Whoever makes groups makes them all of one plan.
#[cold]
fn mixed() -> Error {
    Error::Unsupported("groups of different plans as one".into())
}
