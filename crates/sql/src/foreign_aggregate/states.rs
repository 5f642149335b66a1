//! What DataFusion keeps of the groups of one worker.

use super::call::{AggregateCall, foreign};
use super::each_group::EachGroup;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::concat;
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use sinter_exec::{Error, ForeignStates};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows after which bytes are counted again, at least. Counting may look at each group.
const ROWS_BETWEEN_COUNTS: usize = 1 << 13;

/// The same for bytes of what rows bring.
const BYTES_BETWEEN_COUNTS: usize = 1 << 20;

/// There may be so many groups for each row that waits.
const GROUPS_PER_ROW: usize = 16;

/// No more rows wait than these.
const ROWS_WAITING_MAX: usize = 1 << 16;

/// The states of a call.
pub(super) struct States {
    call: AggregateCall,
    kept: Kept,
    group_count: usize,
    /// When they were last counted.
    bytes: usize,
    rows: usize,
    /// How many rows there will be when bytes are counted again.
    rows_next: usize,
    /// Bytes of what rows brought since then.
    bytes_new: usize,
    waiting: Waiting,
}

/// Rows that were not given to DataFusion yet. Some of its functions look at each group each time that they are given
/// rows, so where groups are many, they are given many.
#[derive(Default)]
struct Waiting {
    /// By vector, what the function wants.
    values: Vec<Vec<ArrayRef>>,
    filters: Vec<BooleanArray>,
    /// Of each row.
    groups: Vec<usize>,
    /// Of all these.
    bytes: usize,
}

impl Waiting {
    /// Whether these are so many that they need not wait for more.
    fn are_enough(&self, group_count: usize) -> bool {
        self.groups.len() >= (group_count / GROUPS_PER_ROW).min(ROWS_WAITING_MAX)
    }

    /// Gives all of them to where they belong.
    fn give(&mut self, to: &mut dyn GroupsAccumulator, group_count: usize) -> Result<()> {
        if self.groups.is_empty() {
            return Ok(());
        }
        let columns = (0..self.values[0].len()).map(|column| {
            let parts: Vec<&dyn Array> = self.values.iter().map(|values| &*values[column]).collect();
            if let [values] = &self.values[..] { Ok(Arc::clone(&values[column])) } else { concat(&parts) }
        });
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        let filters: Vec<&dyn Array> = self.filters.iter().map(|filter| filter as &dyn Array).collect();
        let filter = if filters.is_empty() { None } else { Some(concat(&filters)?) };
        let filter = filter.as_ref().map(|filter| filter.as_boolean());
        to.update_batch(&columns, &self.groups, filter, group_count)?;
        self.values.clear();
        self.filters.clear();
        self.groups.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// By whom.
pub(super) enum Kept {
    /// One for all groups. They may be sent to another thread, yet looked at by one alone.
    Groups(Mutex<Box<dyn GroupsAccumulator>>),
    /// One for each.
    Each(EachGroup),
}

impl Kept {
    /// With a lock that nobody will ever wait for: whoever changes something has it alone.
    pub(super) fn of_groups(accumulator: Box<dyn GroupsAccumulator>) -> Kept {
        Kept::Groups(Mutex::new(accumulator))
    }

    fn bytes(&mut self) -> usize {
        match self {
            Kept::Groups(accumulator) => unlocked(accumulator).size(),
            Kept::Each(each) => each.bytes(),
        }
    }
}

fn unlocked(accumulator: &mut Mutex<Box<dyn GroupsAccumulator>>) -> &mut dyn GroupsAccumulator {
    &mut **accumulator.get_mut().unwrap_or_else(PoisonError::into_inner)
}

impl States {
    pub(super) fn new(call: AggregateCall, kept: Kept) -> States {
        let group_count = if let Kept::Each(each) = &kept { each.len() } else { 0 };
        States {
            call,
            kept,
            group_count,
            bytes: 0,
            rows: 0,
            rows_next: ROWS_BETWEEN_COUNTS,
            bytes_new: 0,
            waiting: Waiting::default(),
        }
    }

    /// Lets no row wait any more.
    fn give_all(&mut self) -> Result<()> {
        match &mut self.kept {
            Kept::Groups(accumulator) => self.waiting.give(unlocked(accumulator), self.group_count),
            Kept::Each(_) => Ok(()),
        }
    }

    /// Notes what there is more. Bytes are counted each time that rows, or bytes that they brought, have become an eighth
    /// more, so that counting takes no longer than what is counted.
    fn count(&mut self, rows: usize, bytes: usize, group_count: usize) {
        self.group_count = group_count;
        self.rows += rows;
        self.bytes_new += bytes;
        if self.rows >= self.rows_next || self.bytes_new >= (self.bytes / 8).max(BYTES_BETWEEN_COUNTS) {
            self.bytes = self.kept.bytes();
            self.rows_next = self.rows + (self.rows / 8).max(ROWS_BETWEEN_COUNTS);
            self.bytes_new = 0;
        }
    }
}

impl ForeignStates for States {
    fn update(
        &mut self,
        arguments: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: &[u32],
        group_count: usize,
    ) -> sinter_exec::Result<()> {
        let values = self.call.values(arguments, groups.len())?;
        let bytes = values.iter().map(|values| values.get_array_memory_size()).sum();
        let updated = match &mut self.kept {
            Kept::Groups(accumulator) => {
                self.waiting.values.push(values);
                self.waiting.filters.extend(filter.cloned());
                self.waiting.groups.extend(groups.iter().map(|&group| group as usize));
                self.waiting.bytes += bytes + size_of_val(groups);
                match self.waiting.are_enough(group_count) {
                    true => self.waiting.give(unlocked(accumulator), group_count),
                    false => Ok(()),
                }
            }
            Kept::Each(each) => each.update(&values, filter, groups, group_count),
        };
        updated.map_err(foreign)?;
        self.count(groups.len(), bytes, group_count);
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn ForeignStates>, map: &[u32], group_count: usize) -> sinter_exec::Result<()> {
        let other: Box<dyn Any> = other;
        let mut other = other.downcast::<States>().map_err(|_| others())?;
        self.give_all().and_then(|()| other.give_all()).map_err(foreign)?;
        let (rows, bytes) = (other.rows, other.kept.bytes());
        let merged = match (&mut self.kept, other.kept) {
            (Kept::Groups(accumulator), Kept::Groups(mut other)) => {
                let groups: Vec<usize> = map.iter().map(|&group| group as usize).collect();
                let states = unlocked(&mut other).state(EmitTo::All);
                states.and_then(|states| unlocked(accumulator).merge_batch(&states, &groups, group_count))
            }
            (Kept::Each(each), Kept::Each(other)) => each.merge(other, map, group_count),
            _ => return Err(others()),
        };
        merged.map_err(foreign)?;
        self.count(rows, bytes, group_count);
        Ok(())
    }

    fn results(&mut self) -> sinter_exec::Result<ArrayRef> {
        self.give_all().map_err(foreign)?;
        let results = match &mut self.kept {
            _ if self.group_count == 0 => return self.call.no_results(),
            Kept::Groups(accumulator) => unlocked(accumulator).evaluate(EmitTo::All),
            Kept::Each(each) => each.results(),
        };
        self.call.result(results.map_err(foreign)?)
    }

    fn bytes(&self) -> usize {
        self.bytes + self.waiting.bytes
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States")
            .field("call", &self.call)
            .field("group_count", &self.group_count)
            .finish_non_exhaustive()
    }
}

fn others() -> Error {
    Error::Foreign("states of another aggregate".into())
}
