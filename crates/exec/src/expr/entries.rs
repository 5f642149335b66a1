//! A function of one column, computed on the entries of its dictionary, or on runs of equal values, instead of on its rows.
//!
//! The entries get one companion, NULL, so that functions that make something of NULL need no other treatment. Results
//! are kept until the column brings another dictionary. An error on an entry that no row may refer to is no error: then
//! the rows themselves are computed.
//!
//! Where there is no dictionary, or none that is worth it, a value that stands in several rows in a row is computed once for
//! all of them ([`Runs`]).

use super::machine::{Frame, Machine, reset};
use super::program::{Operand, Program};
use super::runs::Runs;
use super::slot::{Scratch, Slot};
use crate::dispatch::each_narrow;
use crate::vector::{gather_values, gather_vector};
use crate::{LogicalType, Result, Vector};
use sinter_codec::{Bitmap, Encoded, ValuesBuf};

/// Memory of one such function.
#[derive(Debug, Default)]
pub(crate) struct EntriesScratch {
    machine: Machine,
    /// The dictionary whose results are in `results`.
    known: Option<u64>,
    /// The dictionary that was seen last, and how many rows it has had: it must have enough to be worth it.
    seen: (u64, usize),
    /// The function failed on some entry of this dictionary.
    failed: Option<u64>,
    results: Vector,
    runs: Runs,
    /// The last is the function's own column, with a row for each run; the others are empty.
    run_columns: Vec<Vector>,
    /// By run.
    run_results: Vector,
}

pub(super) fn evaluate(
    column: usize,
    program: &Program,
    ty: &LogicalType,
    frame: Frame<'_>,
    out: &mut Slot,
) -> Result<()> {
    if !matches!(out.scratch, Scratch::Entries(_)) {
        out.scratch = Scratch::Entries(Box::default());
    }
    let mut scratch = std::mem::take(&mut out.scratch);
    let Scratch::Entries(entries) = &mut scratch else { return Ok(()) };
    let vector = &frame.columns[column];
    let done = match (&vector.values, &vector.dictionary) {
        (Encoded::Codes(codes), Some(dictionary)) if entries.prepare(column, program, dictionary, frame) => {
            each_narrow!(codes, codes => pick(&entries.results, codes, vector.validity.as_ref(), ty, frame.rows, out));
            Ok(())
        }
        _ if is_computed(program) && entries.runs.find(vector, frame.rows) => {
            entries.on_runs(column, program, ty, frame, out)
        }
        _ => entries.on_rows(program, ty, frame, out),
    };
    out.scratch = scratch;
    done
}

/// Whether there is anything to save.
fn is_computed(program: &Program) -> bool {
    matches!(program.outputs[0].0, Operand::Register(_))
}

impl EntriesScratch {
    /// Makes the results for this dictionary; false where they are not to be had, or not worth it yet.
    fn prepare(&mut self, column: usize, program: &Program, dictionary: &crate::Dictionary, frame: Frame<'_>) -> bool {
        if self.known == Some(dictionary.id) {
            return true;
        }
        if self.failed == Some(dictionary.id) {
            return false;
        }
        if self.seen.0 != dictionary.id {
            self.seen = (dictionary.id, 0);
        }
        self.seen.1 += frame.rows;
        if self.seen.1 * 2 < dictionary.values.len() {
            return false;
        }
        let mut values = dictionary.values.clone();
        values.push_default(1);
        let rows = values.len();
        let mut validity = Bitmap::new(rows, true);
        validity.set(rows - 1, false);
        let mut columns = Vec::new();
        columns.resize_with(column + 1, Vector::default);
        columns[column] = Vector { values: Encoded::Flat(values), validity: Some(validity), ..Vector::default() };
        if self.machine.run(program, &columns, rows).is_err() {
            self.failed = Some(dictionary.id);
            return false;
        }
        self.machine.output(program, &columns, rows, 0, &mut self.results);
        self.known = Some(dictionary.id);
        true
    }

    /// Run by run.
    fn on_runs(
        &mut self,
        column: usize,
        program: &Program,
        ty: &LogicalType,
        frame: Frame<'_>,
        out: &mut Slot,
    ) -> Result<()> {
        let heads = self.runs.heads();
        self.run_columns.resize_with(column + 1, Vector::default);
        gather_vector(&frame.columns[column], heads, &mut self.run_columns[column])?;
        self.machine.run(program, &self.run_columns, heads.len())?;
        self.machine.output(program, &self.run_columns, heads.len(), 0, &mut self.run_results);
        pick(&self.run_results, self.runs.numbers(), None, ty, frame.rows, out);
        Ok(())
    }

    /// Row by row.
    fn on_rows(&mut self, program: &Program, ty: &LogicalType, frame: Frame<'_>, out: &mut Slot) -> Result<()> {
        self.machine.run(program, frame.columns, frame.rows)?;
        let operand = program.outputs[0].0;
        let inner = self.machine.frame(program, frame.columns, frame.rows);
        if program.is_truth(operand) {
            let (truth, known) = inner.bits(operand);
            out.truth.clone_from(truth);
            out.has_nulls = known.is_some();
            if let Some(known) = known {
                out.validity.clone_from(known);
            }
            return Ok(());
        }
        let input = inner.input(operand);
        out.set_strict(&[input], frame.rows);
        if *ty == LogicalType::Boolean {
            super::logic::truth(input, frame.rows, out);
            return Ok(());
        }
        reset(&mut out.values, ty);
        if input.constant {
            for _ in 0..frame.rows {
                out.values.extend(input.values);
            }
        } else if let Operand::Register(register) = operand {
            // Results that nobody else will read.
            self.machine.swap_values(register, &mut out.values);
        } else {
            out.values.extend(input.values);
        }
        Ok(())
    }
}

/// The results of the rows' entries, or runs.
fn pick<C: Copy + Into<u32>>(
    results: &Vector,
    codes: &[C],
    validity: Option<&Bitmap>,
    ty: &LogicalType,
    rows: usize,
    out: &mut Slot,
) {
    let constant;
    let (values, count) = match &results.values {
        Encoded::Flat(values) => (values.as_values(), values.len()),
        Encoded::Constant(one) => {
            constant = one;
            (constant.as_values(), 0)
        }
        _ => return,
    };
    // NULL is the last entry. A constant function has its one value for all of them.
    let null = count.saturating_sub(1);
    let entry = |row: usize, code: usize| match validity {
        _ if count == 0 => 0,
        Some(validity) if !validity.get(row) => null,
        _ => code,
    };
    let entry = |row: usize| entry(row, codes[row].into() as usize);
    match &results.validity {
        Some(known) => {
            out.has_nulls = true;
            out.validity.reset(rows, false);
            super::compare::fill(&mut out.validity, |row| known.get(entry(row)));
        }
        None => out.has_nulls = false,
    }
    match (ty, values) {
        (LogicalType::Boolean, sinter_codec::Values::U8(values)) => {
            out.truth.reset(rows, false);
            super::compare::fill(&mut out.truth, |row| values[entry(row)] != 0);
            super::logic::known_only(out);
        }
        _ => {
            reset(&mut out.values, ty);
            gather_values(values, (0..rows).map(entry), &mut out.values);
        }
    }
}

impl Machine {
    fn swap_values(&mut self, register: usize, values: &mut ValuesBuf) {
        std::mem::swap(self.values_mut(register), values);
    }
}
