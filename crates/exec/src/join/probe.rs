//! Rows that look for partners.

use super::index::Lookup;
use super::table::JoinTable;
use super::{Join, JoinKind};
use crate::aggregate::Argument;
use crate::expr::{Machine, Program, compile, compile_condition};
use crate::flow::Survivors;
use crate::store::NONE;
use crate::{Expr, LogicalType, Result, Vector};

/// A join as its probing rows see it; shared by workers.
#[derive(Debug)]
pub(crate) struct ProbePlan {
    /// Which of the pipeline's joins it is.
    pub(crate) join: usize,
    pub(crate) kind: JoinKind,
    keys: Program,
    /// What partners must fulfil, too.
    pub(crate) condition: Option<Program>,
}

impl ProbePlan {
    /// For the `number`-th join of a pipeline whose columns have these types.
    pub(crate) fn new(number: usize, join: &Join, types: &[LogicalType]) -> Result<ProbePlan> {
        let keys = compile(&join.keys.iter().collect::<Vec<&Expr>>(), types)?;
        let condition = match &join.condition {
            Some(condition) => Some(compile_condition(condition, &[types, &join.payload_types()].concat())?),
            None => None,
        };
        Ok(ProbePlan { join: number, kind: join.kind, keys, condition })
    }

    /// The columns that the keys read.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.keys.columns
    }

    /// Whether a row may come out more than once.
    pub(crate) fn may_expand(&self, table: &JoinTable) -> bool {
        self.condition.is_some() || (self.kind.has_pairs() && !table.is_unique())
    }

    /// The columns that the condition reads.
    pub(crate) fn condition_columns(&self) -> &[usize] {
        self.condition.as_ref().map_or(&[], |condition| &condition.columns)
    }
}

/// One worker's part in a join.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    machine: Machine,
    lookup: Lookup,
    /// What each row met; or each of those that are kept, where others come to nothing and were left out at once.
    met: Vec<u32>,
    kept: Vec<u16>,
    is_narrowed: bool,
}

impl Probe {
    /// Looks up what each row meets.
    ///
    /// # Errors
    /// What evaluating the keys brings about.
    pub(crate) fn find(&mut self, plan: &ProbePlan, table: &JoinTable, columns: &[Vector], rows: usize) -> Result<()> {
        self.machine.run(&plan.keys, columns, rows)?;
        let frame = self.machine.frame(&plan.keys, columns, rows);
        let keys: Vec<_> = plan.keys.outputs.iter().map(|(operand, _)| Argument::new(frame, *operand)).collect();
        let Probe { lookup, kept, met, .. } = self;
        let asks_whom = plan.kind != JoinKind::Semi || plan.condition.is_some();
        self.is_narrowed =
            plan.kind.needs_partner() && table.find_partners(&keys, lookup, kept, asks_whom.then_some(&mut *met));
        if self.is_narrowed {
            return Ok(());
        }
        table.find(&keys, rows, lookup, met)?;
        if plan.kind == JoinKind::NotIn {
            table.leave_doubts_out(&keys, met);
        }
        Ok(())
    }

    /// What each row met, for whoever makes several rows of them.
    pub(crate) fn numbers_mut(&mut self) -> &mut Vec<u32> {
        &mut self.met
    }

    /// Keeps the rows that come out, each once, and tells them whom they met; false when there are none.
    pub(crate) fn narrow(&mut self, plan: &ProbePlan, table: &JoinTable, rows: &mut Survivors) -> Result<bool> {
        if plan.kind.has_rest() {
            table.mark(&self.met);
            if !plan.kind.has_pairs() {
                return Ok(false);
            }
        }
        let some = match plan.kind {
            kind if kind.needs_partner() => self.keep_partners(rows)?,
            JoinKind::Anti | JoinKind::NotIn => {
                self.choose(|met| met == NONE);
                self.keep_chosen(rows)?
            }
            _ => true,
        };
        if plan.kind.has_payload() {
            rows.meet(plan.join, &mut self.met);
        }
        Ok(some)
    }

    /// Keeps the rows that met somebody, and whom; false when there are none.
    pub(crate) fn keep_partners(&mut self, rows: &mut Survivors) -> Result<bool> {
        if self.is_narrowed {
            return self.keep_chosen(rows);
        }
        self.choose(|met| met != NONE);
        self.kept.iter().enumerate().for_each(|(row, &from)| self.met[row] = self.met[usize::from(from)]);
        self.met.truncate(self.kept.len());
        self.keep_chosen(rows)
    }

    /// Writes down the rows that stay, by what they met.
    fn choose(&mut self, stays: impl Fn(u32) -> bool) {
        self.kept.resize(self.met.len(), 0);
        // Written whether it stays or not, and written over by the next one that stays.
        let mut count = 0;
        for (row, &met) in self.met.iter().enumerate() {
            self.kept[count] = row as u16;
            count += usize::from(stays(met));
        }
        self.kept.truncate(count);
    }

    fn keep_chosen(&self, rows: &mut Survivors) -> Result<bool> {
        if self.kept.len() < rows.rows() {
            rows.keep(&self.kept)?;
        }
        Ok(!self.kept.is_empty())
    }
}
