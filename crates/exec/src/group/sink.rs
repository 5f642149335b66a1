//! Groups of one worker, and how they become the rows of a result.

use super::index::GroupIndex;
use super::merge::{GROUPS_MIN, Merging};
use super::parted;
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
use crate::parallel::threads_for;
use crate::{Batch, Error, Memory, Result, Vector};
use foldhash::fast::RandomState;
use sinter_codec::{Bitmap, Scalar, VECTOR_LEN};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The groups of one worker, or of all of them.
#[derive(Debug)]
pub struct Groups {
    plan: Arc<GroupPlan>,
    /// The plan's, in its order; of all workers' groups each in one part or several.
    sets: Vec<GroupSet>,
    memory: Held,
}

/// The groups by one set of keys, or a part of them.
#[derive(Debug)]
pub(super) struct GroupSet {
    /// Which of the plan's.
    pub(super) number: usize,
    pub(super) index: Index,
    pub(super) rows: Counts,
    pub(super) states: Vec<State>,
}

/// What a row's group is found by.
#[derive(Debug)]
pub(super) enum Index {
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

    /// No group yet, of a part of the keys.
    pub(super) fn emptied(&self, plan: &GroupPlan, set: &SetPlan) -> Result<Index> {
        match (self, &plan.partner_keys) {
            (Index::Partners(partners), Some(keys)) => Ok(Index::Partners(partners.emptied(keys))),
            (Index::Keys(_), _) => Ok(Index::Keys(GroupIndex::new(&set.index.without_array()))),
            (Index::Partners(_), None) => Err(mixed()),
        }
    }

    pub(super) fn len(&self) -> usize {
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

    /// Writes over `hashes` one for the keys of each of these groups, the same for the same keys.
    pub(super) fn hashes(&self, groups: Range<usize>, hasher: &RandomState, hashes: &mut Vec<u64>) {
        match self {
            Index::Keys(index) => index.hashes(groups, hasher, hashes),
            Index::Partners(partners) => partners.hashes(groups, hasher, hashes),
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
        self.merge_some(other, 0..other.len() as u32, key_count, merging.cancelled)
    }

    /// Takes over some of another worker's groups; returns which of ours they are.
    pub(super) fn merge_some(
        &mut self,
        other: &Index,
        mut groups: impl ExactSizeIterator<Item = u32>,
        key_count: usize,
        cancelled: &AtomicBool,
    ) -> Result<Vec<u32>> {
        let mut map = Vec::with_capacity(groups.len());
        let (mut some, mut numbers) = (Vec::new(), Vec::new());
        let mut keys = vec![Vector::default(); key_count];
        while groups.len() > 0 {
            check_cancelled(cancelled)?;
            some.clear();
            some.extend(groups.by_ref().take(VECTOR_LEN));
            match (&mut *self, other) {
                (Index::Partners(partners), Index::Partners(other)) if partners.shares_table(other) => {
                    some.iter_mut().for_each(|group| *group = other.rows()[*group as usize]);
                    partners.find(&some, &mut numbers)?;
                }
                (Index::Keys(index), Index::Keys(other)) => {
                    other.keys_of(&some, &mut keys);
                    let arguments: Vec<_> = keys.iter().map(|key| Argument::of(key, some.len())).collect();
                    index.number(&arguments, some.len(), &mut numbers)?;
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
        let set = |(number, set)| GroupSet::new(plan, number, Index::new(plan, set, tables));
        let sets = plan.sets.iter().enumerate().map(set).collect::<Result<_>>()?;
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

    /// The groups that all workers found; so many threads are free.
    ///
    /// # Errors
    /// Those of aggregates, what memory says when it has no more, and [`crate::Error::Cancelled`].
    pub(crate) fn merged(groups: Vec<Groups>, threads: usize, cancelled: &AtomicBool) -> Result<Groups> {
        let mut groups = groups.into_iter();
        let first = groups.next().ok_or_else(|| Error::Unsupported("groups of no thread".into()))?;
        let Groups { plan, sets, mut memory } = first;
        let mut of_sets: Vec<Vec<GroupSet>> = sets.into_iter().map(|set| vec![set]).collect();
        for Groups { sets, memory: more, .. } in groups {
            memory.take_over(more);
            of_sets.iter_mut().zip(sets).for_each(|(workers, set)| workers.push(set));
        }
        let mut merged = Groups { plan, sets: Vec::new(), memory };
        let mut waiting: usize = of_sets.iter().flatten().map(GroupSet::bytes).sum();
        for workers in of_sets {
            waiting -= workers.iter().map(GroupSet::bytes).sum::<usize>();
            merged.add_set(workers, waiting, threads, cancelled)?;
        }
        Ok(merged)
    }

    /// Adds a set of which these are the groups that workers found; so many bytes are of sets that come after it.
    fn add_set(
        &mut self,
        workers: Vec<GroupSet>,
        waiting: usize,
        threads: usize,
        cancelled: &AtomicBool,
    ) -> Result<()> {
        let lens = workers.iter().map(|worker| worker.index.len());
        let parts = threads_for(lens.clone().sum::<usize>() - lens.max().unwrap_or(0), threads);
        let by_group = workers.iter().flat_map(|worker| &worker.states).all(State::merges_by_group);
        let parted = match parts >= parted::PARTS_MIN && by_group {
            true => parted::merged(&self.plan, &workers, parts, &self.memory, cancelled).map(Some),
            false => Ok(None),
        };
        match parted {
            Ok(Some((sets, memory))) => {
                drop(workers);
                self.sets.extend(sets);
                self.memory.take_over(memory);
            }
            // There may be room for one after the other: each is given back once it is merged.
            Ok(None) | Err(Error::OutOfMemory(_)) => self.add_in_turn(workers, waiting, threads, cancelled)?,
            Err(error) => return Err(error),
        }
        let bytes = self.bytes() + waiting;
        self.memory.keep(bytes);
        self.memory.need(bytes)
    }

    /// The same, by looking the groups of one worker up among those of another one.
    fn add_in_turn(
        &mut self,
        workers: Vec<GroupSet>,
        waiting: usize,
        threads: usize,
        cancelled: &AtomicBool,
    ) -> Result<()> {
        let (done, mut workers) = (self.bytes() + waiting, workers.into_iter());
        let Some(mut merged) = workers.next() else { return Ok(()) };
        while let Some(other) = workers.next() {
            let (mut more, fewer) =
                if merged.index.len() < other.index.len() { (other, merged) } else { (merged, other) };
            let there =
                |all: &GroupSet| done + all.bytes() + workers.as_slice().iter().map(GroupSet::bytes).sum::<usize>();
            // What tells which are whose takes four bytes for each of the other's groups, keys and pairs, which take 16 and more.
            self.memory.need(there(&more) + fewer.bytes() + fewer.bytes() / 4)?;
            let is_last = workers.as_slice().is_empty();
            more.merge(fewer, &self.plan, Merging { threads, is_last, cancelled })?;
            let bytes = there(&more);
            self.memory.keep(bytes);
            self.memory.need(bytes)?;
            merged = more;
        }
        merged.finish(&self.plan, cancelled)?;
        self.sets.push(merged);
        Ok(())
    }

    /// Writes groups over `batch`, a vector's worth at most: keys, of GROUPING SETS the number of the set, then
    /// aggregates. `first` is a multiple of [`VECTOR_LEN`]; the groups of each set, and each part of them, begin at the next
    /// one. False when none is left.
    ///
    /// # Errors
    /// [`crate::Error::Overflow`] where a result does not fit its type.
    pub fn read(&self, first: usize, batch: &mut Batch) -> Result<bool> {
        let mut first = first;
        for set in &self.sets {
            let len = set.index.len();
            if first < len {
                let groups = first..len.min(first + VECTOR_LEN);
                batch.rows = groups.len();
                set.read(&self.plan, groups, batch)?;
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
    /// With what groups are found by, of which there are none yet.
    pub(super) fn new(plan: &GroupPlan, number: usize, index: Index) -> Result<GroupSet> {
        let set = &plan.sets[number];
        let has_keys = !set.keys.is_empty();
        let state = |&part: &usize| State::new(&plan.parts[part], set.pairs[part].as_ref(), has_keys);
        let states = plan.states.iter().map(state).collect::<Result<_>>()?;
        Ok(GroupSet { number, index, rows: Counts::default(), states })
    }

    /// Takes over the groups of another worker.
    fn merge(&mut self, other: GroupSet, plan: &GroupPlan, merging: Merging<'_>) -> Result<()> {
        let GroupSet { mut index, rows, states, .. } = other;
        let map = self.index.merge(&mut index, plan.sets[self.number].keys.len(), merging)?;
        let group_count = self.index.len();
        drop(index);
        let GroupSet { rows: counts, states: own_states, .. } = self;
        let pairs = map.iter().map(|&ours| ours as usize).enumerate();
        std::thread::scope(|scope| -> Result<()> {
            let mut count = || counts.merge(&rows, pairs.clone(), group_count);
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

    /// Makes what can only be made once no more rows come.
    ///
    /// # Errors
    /// As [`Groups::merged`].
    pub(super) fn finish(&mut self, plan: &GroupPlan, cancelled: &AtomicBool) -> Result<()> {
        if let (true, Index::Keys(index)) = (plan.sets[self.number].keys.is_empty(), &mut self.index) {
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
    fn read(&self, plan: &GroupPlan, groups: Range<usize>, batch: &mut Batch) -> Result<()> {
        let (set, key_count) = (&plan.sets[self.number], plan.key_types.len());
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

    pub(super) fn bytes(&self) -> usize {
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
        let (Some(keys), [GroupSet { index: Index::Partners(partners), rows: counts, states, .. }]) =
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
        for (GroupSet { index, rows: counts, states, .. }, set) in sets.iter_mut().zip(&plan.sets) {
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
pub(super) fn mixed() -> Error {
    Error::Unsupported("groups of different plans as one".into())
}
