//! CASE: conditions in order, and each result only for the rows that take it, so that
//! `CASE WHEN x <> 0 THEN 1 / x END` divides by no zero.
//!
//! Results of all branches go into one pool, branch after branch; the output picks them from there by row.

use super::machine::{Frame, Machine, reset};
use super::program::Program;
use super::slot::{Scratch, Slot};
use crate::vector::{gather_values, gather_vector};
use crate::{LogicalType, Result, Vector};
use sinter_codec::{Bitmap, ValuesBuf};

/// Memory of one CASE.
#[derive(Debug, Default)]
pub(crate) struct CaseScratch {
    /// Two per branch: condition and result; then one for ELSE.
    machines: Vec<Machine>,
    /// Columns gathered for the rows at hand.
    gathered: Vec<Vector>,
    /// Rows that no branch has taken yet, and those that the branch at hand takes.
    open: Vec<u32>,
    taken: Vec<u32>,
    truth: Bitmap,
    /// For each row, which value of the pool it gets; `NO_VALUE` for NULL.
    picks: Vec<u32>,
    pool: Option<ValuesBuf>,
}

const NO_VALUE: u32 = u32::MAX;

pub(super) fn case(
    branches: &[(Program, Program)],
    otherwise: Option<&Program>,
    ty: &LogicalType,
    frame: Frame<'_>,
    out: &mut Slot,
) -> Result<()> {
    if !matches!(out.scratch, Scratch::Case(_)) {
        out.scratch = Scratch::Case(Box::default());
    }
    let Scratch::Case(scratch) = &mut out.scratch else { return Ok(()) };
    scratch.machines.resize_with(2 * branches.len() + 1, Machine::default);
    scratch.open.clear();
    scratch.open.extend(0..frame.rows as u32);
    scratch.picks.clear();
    scratch.picks.resize(frame.rows, NO_VALUE);
    let mut pool = scratch.pool.take().unwrap_or_else(|| ValuesBuf::U8(Vec::new()));
    reset(&mut pool, ty);

    for (index, (condition, result)) in branches.iter().enumerate() {
        if scratch.open.is_empty() {
            break;
        }
        scratch.split(2 * index, condition, frame)?;
        scratch.take(2 * index + 1, result, frame, &mut pool)?;
    }
    if let Some(otherwise) = otherwise {
        std::mem::swap(&mut scratch.taken, &mut scratch.open);
        scratch.take(2 * branches.len(), otherwise, frame, &mut pool)?;
    }

    reset(&mut out.values, ty);
    gather_values(pool.as_values(), scratch.picks.iter().map(|&pick| pick as usize), &mut out.values);
    out.has_nulls = scratch.picks.contains(&NO_VALUE);
    if out.has_nulls {
        out.validity.reset(frame.rows, true);
        for (row, _) in scratch.picks.iter().enumerate().filter(|(_, pick)| **pick == NO_VALUE) {
            out.validity.set(row, false);
        }
    }
    scratch.pool = Some(pool);
    Ok(())
}

impl CaseScratch {
    /// Moves the open rows for which the condition is true to `taken`.
    fn split(&mut self, machine: usize, condition: &Program, frame: Frame<'_>) -> Result<()> {
        let rows = self.open.len();
        let columns = gather_columns(condition, frame, &self.open, &mut self.gathered)?;
        let machine = &mut self.machines[machine];
        machine.run(condition, columns, rows)?;
        self.truth.clone_from(machine.frame(condition, columns, rows).bits(condition.outputs[0].0).0);
        self.taken.clear();
        let mut row = 0;
        self.open.retain(|&open| {
            let holds = self.truth.get(row);
            if holds {
                self.taken.push(open);
            }
            row += 1;
            !holds
        });
        Ok(())
    }

    /// Computes the result for the taken rows.
    fn take(&mut self, machine: usize, result: &Program, frame: Frame<'_>, pool: &mut ValuesBuf) -> Result<()> {
        let rows = self.taken.len();
        let first = pool.len() as u32;
        if rows == 0 {
            return Ok(());
        }
        if let Some(constant) = result.as_constant() {
            if !constant.is_null {
                pool.extend(constant.values.as_values());
                for &row in &self.taken {
                    self.picks[row as usize] = first;
                }
            }
            return Ok(());
        }
        let columns = gather_columns(result, frame, &self.taken, &mut self.gathered)?;
        let machine = &mut self.machines[machine];
        machine.run(result, columns, rows)?;
        let frame = machine.frame(result, columns, rows);
        let operand = result.outputs[0].0;
        let input = frame.input(operand);
        pool.extend(input.values);
        pick(&mut self.picks, &self.taken, first, input.validity, input.constant);
        Ok(())
    }
}

/// Lets the taken rows have the values that were added to the pool for them, from `first` on.
fn pick(picks: &mut [u32], taken: &[u32], first: u32, validity: Option<&Bitmap>, constant: bool) {
    for (index, &row) in taken.iter().enumerate() {
        if validity.is_none_or(|validity| validity.get(index)) {
            picks[row as usize] = first + if constant { 0 } else { index as u32 };
        }
    }
}

/// The columns that a program reads, at these rows; the frame's own where these are all of them.
pub(super) fn gather_columns<'a>(
    program: &Program,
    frame: Frame<'a>,
    rows: &[u32],
    gathered: &'a mut Vec<Vector>,
) -> Result<&'a [Vector]> {
    if rows.len() == frame.rows {
        return Ok(frame.columns);
    }
    gathered.resize_with(frame.columns.len(), Vector::default);
    for &column in &program.columns {
        gather_vector(&frame.columns[column], rows, &mut gathered[column])?;
    }
    Ok(gathered)
}
