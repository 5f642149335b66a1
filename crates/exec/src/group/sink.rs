//! A pipeline's end at which a worker groups rows.

use super::either_index::{EitherIndex, mixed};
use super::groups::Groups;
use super::plan::GroupPlan;
use super::rows::{Grouped, RowGroups};
use super::set::GroupSet;
use super::states::{Counts, State};
use crate::aggregate::Argument;
use crate::expr::{Frame, Machine};
use crate::flow::{Flow, Sink};
use crate::join::JoinTable;
use crate::{Memory, Result, Vector};
use sinter_codec::Bitmap;
use std::ops::ControlFlow;
use std::sync::Arc;

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
        let (Some(keys), [GroupSet { index: EitherIndex::Partners(partners), rows: counts, states, .. }]) =
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
            let EitherIndex::Keys(index) = index else { return Err(mixed()) };
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
