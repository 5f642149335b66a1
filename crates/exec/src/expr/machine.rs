//! Runs a program over the rows of a batch.

use super::program::{Operand, Operation, Program};
use super::slot::{Input, Slot};
use super::{
    arithmetic, case, cast, compare, decimal, decimal_bounds, entries, foreign, guarded, key, logic, membership, text,
};
use crate::vector::flatten;
use crate::{LogicalType, Result, Vector};
use sinter_codec::{Bitmap, Encoded, Values, ValuesBuf};

/// One register per instruction of a program.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    registers: Vec<Slot>,
}

/// What an instruction can read.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) program: &'a Program,
    pub(crate) columns: &'a [Vector],
    pub(crate) rows: usize,
    registers: &'a [Slot],
}

impl Machine {
    /// Computes all registers for `rows` rows of `columns` (by the program's own column numbers).
    ///
    /// # Errors
    /// What the data brings about: overflow, division by zero, a cast out of range, a foreign function's message.
    pub(crate) fn run(&mut self, program: &Program, columns: &[Vector], rows: usize) -> Result<()> {
        self.registers.resize_with(program.instructions.len(), Slot::default);
        for (index, instruction) in program.instructions.iter().enumerate() {
            let (done, rest) = self.registers.split_at_mut(index);
            let frame = Frame { program, columns, rows, registers: done };
            execute(&instruction.operation, &instruction.ty, frame, &mut rest[0])?;
        }
        Ok(())
    }

    pub(super) fn values_mut(&mut self, register: usize) -> &mut ValuesBuf {
        &mut self.registers[register].values
    }

    /// A view of the registers after [`Machine::run`] with the same arguments.
    pub(crate) fn frame<'a>(&'a self, program: &'a Program, columns: &'a [Vector], rows: usize) -> Frame<'a> {
        Frame { program, columns, rows, registers: &self.registers }
    }

    /// Moves an output into `out`, which gives its memory in exchange. A column that is an output comes as a copy.
    pub(crate) fn output(
        &mut self,
        program: &Program,
        columns: &[Vector],
        rows: usize,
        index: usize,
        out: &mut Vector,
    ) {
        let (operand, ty) = &program.outputs[index];
        match *operand {
            Operand::Column(column) => out.clone_from(&columns[column]),
            Operand::Constant(constant) => {
                let constant = &program.constants[constant];
                out.values = Encoded::Constant(constant.values.clone());
                out.validity = constant.is_null.then(|| Bitmap::new(rows, false));
                (out.dictionary, out.nested) = (None, None);
            }
            Operand::Register(register) => self.registers[register].move_to(out, ty, program.is_truth(*operand)),
        }
    }
}

impl Machine {
    /// Moves all outputs into `out`. The last one to want a column or a result has it without a copy; `columns` are of no
    /// use to anybody afterwards.
    pub(crate) fn outputs(&mut self, program: &Program, columns: &mut [Vector], rows: usize, out: &mut [Vector]) {
        let outputs = &program.outputs;
        for (index, out) in out.iter_mut().enumerate() {
            let again = outputs[index + 1..].iter().any(|(operand, _)| *operand == outputs[index].0);
            match outputs[index].0 {
                Operand::Column(column) if !again => std::mem::swap(out, &mut columns[column]),
                Operand::Register(_) if again => self.copy_output(program, rows, index, out),
                _ => self.output(program, columns, rows, index, out),
            }
        }
    }

    /// Like [`Machine::output`] for a register that is an output more than once.
    fn copy_output(&self, program: &Program, rows: usize, index: usize, out: &mut Vector) {
        let (operand, ty) = &program.outputs[index];
        if let Operand::Register(register) = *operand {
            let slot = &self.registers[register];
            let mut copy = Slot {
                values: slot.values.clone(),
                truth: slot.truth.clone(),
                validity: slot.validity.clone(),
                has_nulls: slot.has_nulls,
                nested: slot.nested.clone(),
                ..Slot::default()
            };
            debug_assert!(slot.nested.is_some() || program.is_truth(*operand) || slot.values.len() == rows);
            copy.move_to(out, ty, program.is_truth(*operand));
        }
    }
}

impl Slot {
    /// Hands the result over. Truth values become 0 and 1.
    fn move_to(&mut self, out: &mut Vector, ty: &LogicalType, is_truth: bool) {
        out.dictionary = None;
        out.nested = self.nested.take();
        if is_truth {
            debug_assert_eq!(*ty, LogicalType::Boolean);
            logic::truth_values(&self.truth, &mut self.values);
        }
        if !matches!(out.values, Encoded::Flat(_)) {
            out.values = Encoded::default();
        }
        if let Encoded::Flat(values) = &mut out.values {
            std::mem::swap(values, &mut self.values);
        }
        if self.has_nulls {
            std::mem::swap(out.validity.get_or_insert_default(), &mut self.validity);
        } else {
            out.validity = None;
        }
    }
}

impl<'a> Frame<'a> {
    /// An operand's values. Truth values must have gone through [`Operation::FromTruth`].
    pub(crate) fn input(&self, operand: Operand) -> Input<'a> {
        match operand {
            Operand::Register(register) => {
                let slot = &self.registers[register];
                let validity = slot.validity();
                Input {
                    values: slot.values.as_values(),
                    constant: false,
                    null_constant: false,
                    validity,
                    bounds: slot.bounds,
                }
            }
            Operand::Constant(constant) => {
                let constant = &self.program.constants[constant];
                let values = constant.values.as_values();
                Input { values, constant: true, null_constant: constant.is_null, validity: None, bounds: None }
            }
            Operand::Column(column) => {
                let vector = &self.columns[column];
                let (values, constant, bounds) = match &vector.values {
                    Encoded::Flat(values) => (values.as_values(), false, None),
                    Encoded::Constant(one) => (one.as_values(), true, None),
                    _ => match self.program.flat_registers.get(&column) {
                        Some(&register) => {
                            let slot = &self.registers[register];
                            (slot.values.as_values(), false, slot.bounds)
                        }
                        None => (Values::U8(&[]), false, None),
                    },
                };
                Input { values, constant, null_constant: false, validity: vector.validity.as_ref(), bounds }
            }
        }
    }

    /// An operand's truth values: 1 where true, and where it is known.
    pub(crate) fn bits(&self, operand: Operand) -> (&'a Bitmap, Option<&'a Bitmap>) {
        static NONE: std::sync::LazyLock<Bitmap> = std::sync::LazyLock::new(Bitmap::default);
        match operand {
            Operand::Register(register) => (&self.registers[register].truth, self.registers[register].validity()),
            _ => (&NONE, None),
        }
    }

    /// Where an operand is present; `None` when everywhere. `Some(None)` when nowhere.
    pub(crate) fn presence(&self, operand: Operand) -> Presence<'a> {
        match operand {
            Operand::Constant(constant) if self.program.constants[constant].is_null => Presence::Nowhere,
            Operand::Constant(_) => Presence::Everywhere,
            Operand::Column(column) => match (&self.columns[column].nested, &self.columns[column].validity) {
                (Some(array), _) => Presence::of_array(array),
                (None, Some(validity)) => Presence::Where(std::borrow::Cow::Borrowed(validity)),
                (None, None) => Presence::Everywhere,
            },
            Operand::Register(register) => {
                let slot = &self.registers[register];
                match (&slot.nested, slot.validity()) {
                    (Some(array), _) => Presence::of_array(array),
                    (None, Some(validity)) => Presence::Where(std::borrow::Cow::Borrowed(validity)),
                    (None, None) => Presence::Everywhere,
                }
            }
        }
    }

    pub(crate) fn slot(&self, register: usize) -> &'a Slot {
        &self.registers[register]
    }
}

/// Which rows have a value.
pub(crate) enum Presence<'a> {
    Everywhere,
    Nowhere,
    Where(std::borrow::Cow<'a, Bitmap>),
}

impl Presence<'_> {
    fn of_array(array: &arrow::array::ArrayRef) -> Presence<'static> {
        match crate::edge::from_null_buffer(array.logical_nulls().as_ref()) {
            Some(validity) => Presence::Where(std::borrow::Cow::Owned(validity)),
            None => Presence::Everywhere,
        }
    }
}

fn execute(operation: &Operation, ty: &LogicalType, frame: Frame<'_>, out: &mut Slot) -> Result<()> {
    let rows = frame.rows;
    match operation {
        Operation::Flatten { column, may_narrow } => {
            let vector = &frame.columns[*column];
            out.bounds = None;
            if *may_narrow && decimal_bounds::flatten_narrow(vector, out) {
                return Ok(());
            }
            if matches!(vector.values, Encoded::BaseDelta { .. } | Encoded::Codes(_)) {
                reset(&mut out.values, ty);
                flatten(&vector.values, vector.dictionary.as_deref(), rows, &mut out.values);
            }
        }
        Operation::Truth(operand) => logic::truth(frame.input(*operand), rows, out),
        Operation::FromTruth(operand) => {
            let (truth, known) = frame.bits(*operand);
            logic::truth_values(truth, &mut out.values);
            out.has_nulls = known.is_some();
            if let Some(known) = known {
                out.validity.clone_from(known);
            }
        }
        Operation::Number(plan, left, right) => {
            arithmetic::numbers(plan, frame.input(*left), frame.input(*right), rows, out)?;
        }
        Operation::Decimal(plan, left, right) => {
            decimal::decimals(plan, frame.input(*left), frame.input(*right), rows, ty, out)?;
        }
        Operation::Compare(op, left, right) => {
            compare::compare(*op, frame.input(*left), frame.input(*right), rows, out)
        }
        Operation::CompareScaled(op, left, right) => {
            let (left, right) = ((frame.input(left.0), left.1), (frame.input(right.0), right.1));
            compare::compare_scaled(*op, left, right, rows, out);
        }
        Operation::And(parts) => logic::and(parts, frame, out),
        Operation::Or(parts) => logic::or(parts, frame, out),
        Operation::Guarded { first, rest, decisive } => guarded::guarded(*first, rest, *decisive, frame, out)?,
        Operation::Not(part) => logic::not(*part, frame, out),
        Operation::IsNull { operand, negated } => logic::is_null(frame.presence(*operand), *negated, rows, out),
        Operation::In { operand, list, has_null, negated } => {
            membership::in_list(frame.input(*operand), list, *has_null, *negated, rows, out);
        }
        Operation::IsKey(operand, keys) => key::is_key(frame.input(*operand), keys, rows, out),
        Operation::Like { operand, pattern, negated } => {
            super::like::like(frame.input(*operand), pattern, *negated, rows, out);
        }
        Operation::Text(function, operand) => text::text(*function, frame.input(*operand), rows, out)?,
        Operation::Cast(plan, operand) => cast::cast(plan, frame.input(*operand), rows, out)?,
        Operation::Case { branches, otherwise } => case::case(branches, otherwise.as_deref(), ty, frame, out)?,
        Operation::Foreign { function, arguments } => foreign::evaluate(function.as_ref(), arguments, ty, frame, out)?,
        Operation::Entries { column, program } => entries::evaluate(*column, program, ty, frame, out)?,
    }
    Ok(())
}

/// Makes the buffer one for values of `ty`.
pub(crate) fn reset(values: &mut ValuesBuf, ty: &LogicalType) {
    values.reset(ty.physical().unwrap_or(sinter_codec::Physical::U8));
}
