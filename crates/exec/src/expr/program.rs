//! Expressions compiled to a list of instructions over registers.
//!
//! Every instruction writes a register of its own, so the memory of a result is there again for the next vector, and a
//! subexpression that occurs twice is computed once. Branches of CASE, parts of AND and OR that may fail, and functions of
//! dictionary entries are programs of their own, run on other rows than the rest.

use super::arithmetic::NumberPlan;
use super::cast::CastPlan;
use super::decimal::DecimalPlan;
use super::decimal_bounds::Width;
use super::like::LikePattern;
use super::membership::Membership;
use super::{Foreign, TextFunction};
use crate::LogicalType;
use crate::join::KeyFilter;
use sinter_codec::{CompareOp, Physical, Scalar, ValuesBuf};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Where an instruction finds an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operand {
    /// A column of the batch; its flat form where it is not flat already.
    Column(usize),
    /// The result of an earlier instruction.
    Register(usize),
    /// One of the program's constants.
    Constant(usize),
}

/// A literal, ready for kernels.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    /// One value; the default value where the literal is NULL.
    pub(crate) values: ValuesBuf,
    pub(crate) is_null: bool,
}

/// What an instruction computes. Operands called `bits` are truth values in bitmaps.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// Plain values of a column, where it has another form.
    Flatten {
        column: usize,
        /// In fewer bits than its type has.
        may_narrow: bool,
    },
    /// A boolean's values (0 and 1) as bits.
    Truth(Operand),
    /// Bits as a boolean's values.
    FromTruth(Operand),
    Number(NumberPlan, Operand, Operand),
    Decimal(DecimalPlan, Operand, Operand),
    Compare(CompareOp, Operand, Operand),
    /// Decimals that cannot be brought to one scale in 128 bits, with their scales.
    CompareScaled(CompareOp, (Operand, i8), (Operand, i8)),
    And(Vec<Operand>),
    Or(Vec<Operand>),
    /// AND or OR of one that is computed for all rows and those that may fail, each group of them (the outputs of a program)
    /// on the rows that the ones before it leave undecided.
    Guarded {
        first: Operand,
        rest: Vec<Program>,
        /// What decides a row: true for OR, false for AND.
        decisive: bool,
    },
    Not(Operand),
    IsNull {
        operand: Operand,
        negated: bool,
    },
    In {
        operand: Operand,
        list: Arc<Membership>,
        has_null: bool,
        negated: bool,
    },
    IsKey(Operand, Arc<KeyFilter>),
    Like {
        operand: Operand,
        pattern: Arc<LikePattern>,
        negated: bool,
    },
    Text(TextFunction, Operand),
    Cast(CastPlan, Operand),
    Case {
        branches: Vec<(Program, Program)>,
        otherwise: Option<Box<Program>>,
    },
    Foreign {
        function: Arc<dyn Foreign>,
        arguments: Vec<(Operand, LogicalType)>,
    },
    /// A function of one column, computed on its dictionary where it has one.
    Entries {
        column: usize,
        program: Box<Program>,
    },
}

impl Operation {
    /// Shows the operands that must be as wide as their types.
    fn for_each_wide_operand(&self, visit: &mut dyn FnMut(Operand)) {
        match self {
            Operation::Flatten { .. } | Operation::Decimal(..) | Operation::Case { .. } | Operation::Entries { .. } => {
            }
            Operation::Truth(operand)
            | Operation::FromTruth(operand)
            | Operation::Not(operand)
            | Operation::Guarded { first: operand, .. }
            | Operation::Text(_, operand)
            | Operation::Cast(_, operand)
            | Operation::IsKey(operand, _)
            | Operation::IsNull { operand, .. }
            | Operation::In { operand, .. }
            | Operation::Like { operand, .. } => visit(*operand),
            Operation::Number(_, left, right)
            | Operation::Compare(_, left, right)
            | Operation::CompareScaled(_, (left, _), (right, _)) => [*left, *right].into_iter().for_each(visit),
            Operation::And(parts) | Operation::Or(parts) => parts.iter().copied().for_each(visit),
            Operation::Foreign { arguments, .. } => arguments.iter().for_each(|(operand, _)| visit(*operand)),
        }
    }
}

/// An operation and the type of its result.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    pub(crate) operation: Operation,
    pub(crate) ty: LogicalType,
    /// The result is bits.
    pub(crate) is_truth: bool,
}

/// A compiled list of expressions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    /// The columns it reads.
    pub(crate) columns: Vec<usize>,
    pub(crate) constants: Vec<Constant>,
    /// Instruction `i` writes register `i`.
    pub(crate) instructions: Vec<Instruction>,
    /// Which register holds a column's flat form.
    pub(crate) flat_registers: BTreeMap<usize, usize>,
    /// Where the results are, with their types.
    pub(crate) outputs: Vec<(Operand, LogicalType)>,
}

impl Constant {
    /// `None` where the scalar is not a value of the type.
    pub(crate) fn new(scalar: &Scalar, ty: &LogicalType) -> Option<Constant> {
        let mut values = ValuesBuf::new(ty.physical()?);
        if scalar.is_null() {
            values.push_default(1);
            return Some(Constant { values, is_null: true });
        }
        crate::vector::push_scalar(&mut values, scalar).then_some(Constant { values, is_null: false })
    }
}

impl Program {
    /// True when the result is one constant.
    pub(crate) fn as_constant(&self) -> Option<&Constant> {
        match self.outputs[..] {
            [(Operand::Constant(constant), _)] => Some(&self.constants[constant]),
            _ => None,
        }
    }

    /// Lets decimals be computed in fewer bits than their types have where the values of a vector allow it. Outputs may come
    /// in any width then.
    pub(crate) fn narrow_decimals(&mut self) {
        // Operands that must be as wide as their types, and those that must have 64 bits.
        let (mut wide, mut double) = (HashSet::new(), HashSet::new());
        for instruction in &self.instructions {
            instruction.operation.for_each_wide_operand(&mut |operand| {
                wide.insert(operand);
            });
            if let Operation::Decimal(plan, left, right) = &instruction.operation
                && !plan.is_plain()
            {
                double.extend([*left, *right]);
            }
        }
        let width = |operand: Operand| match (wide.contains(&operand), double.contains(&operand)) {
            (true, _) => Width::Typed,
            (false, true) => Width::Bits64,
            (false, false) => Width::Bits32,
        };
        for (number, constant) in self.constants.iter_mut().enumerate() {
            if let ValuesBuf::I128(values) = &constant.values
                && let [value] = values[..]
                && let Ok(value) = i64::try_from(value)
                && width(Operand::Constant(number)) > Width::Typed
            {
                constant.values = ValuesBuf::I64(vec![value]);
            }
        }
        for (register, instruction) in self.instructions.iter_mut().enumerate() {
            match &mut instruction.operation {
                Operation::Decimal(plan, _, _) => plan.width = width(Operand::Register(register)),
                Operation::Flatten { column, may_narrow } => {
                    let is_decimal = matches!(instruction.ty.physical(), Some(Physical::I64 | Physical::I128));
                    *may_narrow = is_decimal && width(Operand::Column(*column)) == Width::Bits32;
                }
                _ => {}
            }
        }
    }

    /// True for an instruction whose result is bits.
    pub(crate) fn is_truth(&self, operand: Operand) -> bool {
        matches!(operand, Operand::Register(register) if self.instructions[register].is_truth)
    }
}
