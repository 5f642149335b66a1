//! Groups of one worker, and how they become the rows of a result.

use super::index::GroupIndex;
use super::merge::{GROUPS_MIN, Merging};
use super::partners::Partners;
use super::plan::{GroupPlan, SetPlan};
use super::rows::{Grouped, RowGroups};
use super::states::{Counts, State};
use crate::aggregate::Argument;
use crate::error::check_cancelled;
use crate::expr::{Frame, Machine};
use crate::flow::{Flow, Sink};
use crate::join::JoinTable;
use crate::memory::Held;
use crate::{Batch, Error, Memory, Result, Vector};
use sinter_codec::{Bitmap, Scalar, VECTOR_LEN};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The groups of one worker, or of all of them.
#[derive(Debug)]
pub struct Groups {
    plan: Arc<GroupPlan>,
    /// As many as the plan has.
    sets: Vec<GroupSet>,
    memory: Held,
}

/// The groups by one set of keys.
#[derive(Debug)]
struct GroupSet {
    index: Index,
    rows: Counts,
    states: Vec<State>,
}

/// What a row's group is found by.
#[derive(Debug)]
enum Index {
    Keys(GroupIndex),
    /// One join brings all keys.
    Partners(Partners),
}

impl Index {
    fn new(plan: &GroupPlan, set: &SetPlan, tables: &[Arc<JoinTable>]) -> Index {
        match &plan.partner_keys {
            Some(keys) => Index::Partners(Partners::new(keys, &tables[keys.join])),
            None => Index::Keys(GroupIndex::new(&set.index)),
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
        let sets = plan.sets.iter().map(|set| GroupSet::new(plan, set, tables)).collect::<Result<_>>()?;
        Ok(Groups { plan: Arc::clone(plan), sets, memory: Held::new(memory) })
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.sets.iter().map(|set| set.index.len()).sum()
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
        let Groups { sets, memory: _memory, .. } = other;
        for ((set, other), plan) in self.sets.iter_mut().zip(sets).zip(&self.plan.sets) {
            set.merge(other, plan.keys.len(), merging)?;
        }
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
        for (set, plan) in self.sets.iter_mut().zip(&self.plan.sets) {
            set.finish(&self.plan, plan, cancelled)?;
        }
        self.memory.need(self.bytes())
    }

    /// Writes groups over `batch`, a vector's worth at most: keys, of GROUPING SETS the number of the set, then
    /// aggregates. `first` is a multiple of [`VECTOR_LEN`]; the groups of each set begin at the next one. False when none is
    /// left.
    ///
    /// # Errors
    /// [`crate::Error::Overflow`] where a result does not fit its type.
    pub fn read(&self, first: usize, batch: &mut Batch) -> Result<bool> {
        let mut first = first;
        for (set, plan) in self.sets.iter().zip(&self.plan.sets) {
            let len = set.index.len();
            if first < len {
                let groups = first..len.min(first + VECTOR_LEN);
                batch.rows = groups.len();
                set.read(&self.plan, plan, groups, batch)?;
                return Ok(true);
            }
            match first.checked_sub(len.next_multiple_of(VECTOR_LEN)) {
                Some(beyond) => first = beyond,
                None => break,
            }
        }
        batch.rows = 0;
        Ok(false)
    }

    fn bytes(&self) -> usize {
        self.sets.iter().map(GroupSet::bytes).sum()
    }
}

impl GroupSet {
    fn new(plan: &GroupPlan, set: &SetPlan, tables: &[Arc<JoinTable>]) -> Result<GroupSet> {
        let has_keys = !set.keys.is_empty();
        let state = |&part: &usize| State::new(&plan.parts[part], set.pairs[part].as_ref(), has_keys);
        let states = plan.states.iter().map(state).collect::<Result<_>>()?;
        Ok(GroupSet { index: Index::new(plan, set, tables), rows: Counts::default(), states })
    }

    /// As [`Groups::merge`].
    fn merge(&mut self, other: GroupSet, key_count: usize, merging: Merging<'_>) -> Result<()> {
        let GroupSet { mut index, rows, states } = other;
        let map = self.index.merge(&mut index, key_count, merging)?;
        let group_count = self.index.len();
        drop(index);
        let GroupSet { rows: counts, states: own_states, .. } = self;
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
        })
    }

    /// As [`Groups::finish`].
    fn finish(&mut self, plan: &GroupPlan, set: &SetPlan, cancelled: &AtomicBool) -> Result<()> {
        if let (true, Index::Keys(index)) = (set.keys.is_empty(), &mut self.index) {
            // All rows are one group, even where there are none.
            index.number(&[], 1, &mut Vec::new())?;
        }
        let group_count = self.index.len();
        for (state, &part) in self.states.iter_mut().zip(&plan.states) {
            state.finish(&plan.parts[part], group_count, cancelled)?;
        }
        self.index.settle();
        Ok(())
    }

    /// Writes some groups, as [`Groups::read`] says.
    fn read(&self, plan: &GroupPlan, set: &SetPlan, groups: Range<usize>, batch: &mut Batch) -> Result<()> {
        let key_count = plan.key_types.len();
        let number_count = usize::from(plan.number_type.is_some());
        batch.columns.resize_with(key_count + number_count + plan.parts.len(), Vector::default);
        let (keys, others) = batch.columns.split_at_mut(key_count);
        let (number, results) = others.split_at_mut(number_count);
        match (&plan.number_type, number) {
            (Some(number_type), [number]) => {
                let mut present = vec![Vector::default(); set.keys.len()];
                self.index.keys(groups.clone(), &mut present);
                for (key, (out, ty)) in keys.iter_mut().zip(&plan.key_types).enumerate() {
                    *out = match set.keys.iter().position(|&own| own == key) {
                        Some(place) => std::mem::take(&mut present[place]),
                        None => Vector::of_nulls(ty, groups.len())?,
                    };
                }
                *number = Vector::of_equal(&Scalar::Int(set.number), number_type)?;
            }
            _ => self.index.keys(groups.clone(), keys),
        }
        for ((part, &state), out) in plan.parts.iter().zip(&plan.state_of).zip(results) {
            self.states[state].results(part, &self.rows, groups.clone(), out)?;
        }
        Ok(())
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
        // Of several sets, one may be able to leave dead rows out where another is not.
        let takes_spread = match &groups.sets[..] {
            [set] => set.states.iter().all(State::takes_dead_rows),
            _ => false,
        };
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
        if self.takes_spread && self.groups.sets[0].index.are_few() && flow.load_spread(columns)? {
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
        let Groups { plan, sets, .. } = &mut self.groups;
        let (Some(keys), [GroupSet { index: Index::Partners(partners), rows: counts, states }]) =
            (&plan.partner_keys, &mut sets[..])
        else {
            return Err(mixed());
        };
        let grouped = self.rows.find_by_partners(partners, flow.met(keys.join))?;
        flow.load(&keys.arguments)?;
        let (columns, rows) = (flow.columns(), flow.rows());
        self.machine.run(&plan.program, columns, rows)?;
        let frame = self.machine.frame(&plan.program, columns, rows);
        take_grouped(plan, states, counts, frame, grouped)?;
        self.groups.memory.need(self.groups.bytes())
    }

    /// Takes rows of which all, or those that are `alive`, count. False, and nothing happens, where dead ones cannot be left
    /// out, which is asked of one set only.
    fn take_rows(&mut self, columns: &[Vector], rows: usize, alive: Option<&Bitmap>) -> Result<bool> {
        let Groups { plan, sets, .. } = &mut self.groups;
        debug_assert!(alive.is_none() || sets.len() == 1, "others would have taken the rows already");
        match self.machine.run(&plan.program, columns, rows) {
            Err(_) if alive.is_some() => {
                // Perhaps only for a row that is dead; but it may happen again.
                self.takes_spread = false;
                return Ok(false);
            }
            done => done?,
        }
        let frame = self.machine.frame(&plan.program, columns, rows);
        for (GroupSet { index, rows: counts, states }, set) in sets.iter_mut().zip(&plan.sets) {
            let Index::Keys(index) = index else { return Err(mixed()) };
            let keys: Vec<_> = set.keys.iter().map(|&key| Argument::new(frame, plan.key_operand(key))).collect();
            let Some(grouped) = self.rows.find(index, &keys, rows, alive)? else { return Ok(false) };
            take_grouped(plan, states, counts, frame, grouped)?;
        }
        self.groups.memory.need(self.groups.bytes())?;
        Ok(true)
    }
}

/// Takes what the plan's program made of rows into their groups.
fn take_grouped(
    plan: &GroupPlan,
    states: &mut [State],
    counts: &mut Counts,
    frame: Frame<'_>,
    grouped: Grouped<'_>,
) -> Result<()> {
    counts.add(grouped);
    let mut states = states.iter_mut().zip(&plan.states);
    states.try_for_each(|(state, &part)| state.take(plan, &plan.parts[part], frame, grouped))
}

/// Whoever makes groups makes them all of one plan.
#[cold]
fn mixed() -> Error {
    Error::Unsupported("groups of different plans as one".into())
}
