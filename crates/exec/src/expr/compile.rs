//! From the tree to the program.

use super::arithmetic::NumberPlan;
use super::cast::CastPlan;
use super::decimal::{DecimalPlan, digits};
use super::like::LikePattern;
use super::membership::Membership;
use super::program::{Constant, Instruction, Operand, Operation, Program, worth_entries};
use super::{ArithmeticOp, Expr};
use crate::{Error, LogicalType, Result};
use sinter_codec::{CompareOp, Physical};
use std::collections::HashMap;
use std::sync::Arc;

/// Digits that fit an `i128`, whatever they are.
const SAFE_DIGITS: u32 = 38;

/// Compiles expressions over columns of these types.
///
/// # Errors
/// [`Error::Unsupported`] for what only a mistaken plan contains.
pub(crate) fn compile(exprs: &[&Expr], column_types: &[LogicalType]) -> Result<Program> {
    compile_with(exprs, column_types, true, Want::Anything)
}

/// Compiles a condition; its one output is bits.
///
/// # Errors
/// As [`compile`].
pub(crate) fn compile_condition(expr: &Expr, column_types: &[LogicalType]) -> Result<Program> {
    compile_with(&[expr], column_types, true, Want::Bits)
}

/// The form that outputs must have.
#[derive(Clone, Copy, PartialEq)]
enum Want {
    /// Whatever is there: a column stays in its encoded form.
    Anything,
    Bits,
    Values,
}

/// `entries`: whether functions of one column may move to its dictionary; not within such a function.
fn compile_with(exprs: &[&Expr], column_types: &[LogicalType], entries: bool, want: Want) -> Result<Program> {
    let mut compiler = Compiler { column_types, entries, program: Program::default(), known: HashMap::new() };
    for expr in exprs {
        let operand = match want {
            Want::Anything => compiler.operand(expr)?,
            Want::Bits => compiler.bits(expr)?,
            Want::Values => compiler.values(expr)?,
        };
        let ty = expr.type_over(column_types);
        compiler.program.outputs.push((operand, ty));
        expr.collect_columns(&mut compiler.program.columns);
    }
    compiler.program.columns.sort_unstable();
    compiler.program.columns.dedup();
    Ok(compiler.program)
}

struct Compiler<'a> {
    column_types: &'a [LogicalType],
    entries: bool,
    program: Program,
    /// Where subexpressions seen so far are, by their text.
    known: HashMap<String, Operand>,
}

impl Compiler<'_> {
    /// Wherever the result is: bits or values, a column as it is.
    fn operand(&mut self, expr: &Expr) -> Result<Operand> {
        if let Expr::Column(column) = expr {
            if *column >= self.column_types.len() {
                return Err(Error::Unsupported(format!("column {column} of {}", self.column_types.len())));
            }
            return Ok(Operand::Column(*column));
        }
        // The text of a foreign function need not tell it from another one.
        let key = (!expr.is_foreign()).then(|| format!("{expr:?}"));
        if let Some(&known) = key.as_ref().and_then(|key| self.known.get(key)) {
            return Ok(known);
        }
        let operand = match self.single_column(expr) {
            Some(column) => {
                let program = compile_with(&[expr], self.column_types, false, Want::Anything)?;
                let operation = Operation::Entries { column, program: Box::new(program) };
                let ty = expr.type_over(self.column_types);
                let is_truth = ty == LogicalType::Boolean;
                self.push(operation, ty, is_truth)
            }
            None => self.compute(expr)?,
        };
        if let Some(key) = key {
            self.known.insert(key, operand);
        }
        Ok(operand)
    }

    /// The one column that a function worth moving to a dictionary reads.
    fn single_column(&self, expr: &Expr) -> Option<usize> {
        let mut columns = Vec::new();
        expr.collect_columns(&mut columns);
        let &[column] = &columns[..] else { return None };
        let ty = self.column_types.get(column)?;
        let result = expr.type_over(self.column_types);
        let movable = self.entries && ty.physical().is_some() && result.physical().is_some();
        (movable && *ty != LogicalType::Boolean && worth_entries(expr, ty)).then_some(column)
    }

    fn compute(&mut self, expr: &Expr) -> Result<Operand> {
        Ok(match expr {
            Expr::Column(column) => Operand::Column(*column),
            Expr::Literal(scalar, ty) => self.constant(scalar, ty)?,
            Expr::Compare(op, left, right) => self.compare(*op, left, right)?,
            Expr::Arithmetic { op, left, right, ty } => self.arithmetic(*op, left, right, ty)?,
            Expr::And(parts) => {
                let parts = parts.iter().map(|part| self.bits(part)).collect::<Result<_>>()?;
                self.truth(Operation::And(parts))
            }
            Expr::Or(parts) => {
                let parts = parts.iter().map(|part| self.bits(part)).collect::<Result<_>>()?;
                self.truth(Operation::Or(parts))
            }
            Expr::Not(inner) => {
                let inner = self.bits(inner)?;
                self.truth(Operation::Not(inner))
            }
            Expr::IsNull(inner) | Expr::IsNotNull(inner) => {
                let operand = self.operand(inner)?;
                self.truth(Operation::IsNull { operand, negated: matches!(expr, Expr::IsNotNull(_)) })
            }
            Expr::InList { expr: inner, list, has_null, negated } => {
                let operand = self.values(inner)?;
                let list = Arc::new(Membership::new(list));
                self.truth(Operation::In { operand, list, has_null: *has_null, negated: *negated })
            }
            Expr::Like { expr: inner, pattern, negated, case_insensitive } => {
                let operand = self.values(inner)?;
                let pattern = Arc::new(LikePattern::new(pattern, *case_insensitive));
                self.truth(Operation::Like { operand, pattern, negated: *negated })
            }
            Expr::Cast { expr: inner, ty } => {
                let operand = self.values(inner)?;
                self.cast(operand, &inner.type_over(self.column_types), ty)?
            }
            Expr::Case { branches, otherwise, ty } => self.case(branches, otherwise.as_deref(), ty)?,
            Expr::Foreign { function, arguments, ty } => {
                let argument =
                    |argument: &Expr| Ok((self.any_values(argument)?, argument.type_over(self.column_types)));
                let arguments = arguments.iter().map(argument).collect::<Result<_>>()?;
                self.push(Operation::Foreign { function: Arc::clone(function), arguments }, ty.clone(), false)
            }
        })
    }

    /// The result as bits.
    fn bits(&mut self, expr: &Expr) -> Result<Operand> {
        let ty = expr.type_over(self.column_types);
        if ty != LogicalType::Boolean {
            return Err(Error::Unsupported(format!("{ty} as a condition")));
        }
        let operand = self.operand(expr)?;
        if self.program.is_truth(operand) {
            return Ok(operand);
        }
        let operand = self.flat(operand);
        Ok(self.once(format!("truth {operand:?}"), Operation::Truth(operand), LogicalType::Boolean, true))
    }

    /// The result as plain values of a plain type.
    fn values(&mut self, expr: &Expr) -> Result<Operand> {
        let ty = expr.type_over(self.column_types);
        if ty.physical().is_none() {
            return Err(Error::Unsupported(format!("{ty} as an operand")));
        }
        self.any_values(expr)
    }

    /// The result as plain values, or nested.
    fn any_values(&mut self, expr: &Expr) -> Result<Operand> {
        let operand = self.operand(expr)?;
        if self.program.is_truth(operand) {
            let text = format!("values {operand:?}");
            return Ok(self.once(text, Operation::FromTruth(operand), LogicalType::Boolean, false));
        }
        Ok(self.flat(operand))
    }

    fn flat(&mut self, operand: Operand) -> Operand {
        if let Operand::Column(column) = operand
            && self.column_types[column].physical().is_some()
            && !self.program.flat_registers.contains_key(&column)
        {
            let ty = self.column_types[column].clone();
            let Operand::Register(register) = self.push(Operation::Flatten(column), ty, false) else { return operand };
            self.program.flat_registers.insert(column, register);
        }
        operand
    }

    fn constant(&mut self, scalar: &sinter_codec::Scalar, ty: &LogicalType) -> Result<Operand> {
        let constant = Constant::new(scalar, ty);
        let constant = constant.ok_or_else(|| Error::Unsupported(format!("{scalar:?} as a literal of type {ty}")))?;
        self.program.constants.push(constant);
        Ok(Operand::Constant(self.program.constants.len() - 1))
    }

    fn arithmetic(&mut self, op: ArithmeticOp, left: &Expr, right: &Expr, ty: &LogicalType) -> Result<Operand> {
        let (left_type, right_type) = (left.type_over(self.column_types), right.type_over(self.column_types));
        let (left, right) = (self.values(left)?, self.values(right)?);
        if let LogicalType::Decimal { precision, scale } = ty {
            let unsupported = || Error::Unsupported(format!("{op:?} of {left_type} and {right_type} as {ty}"));
            let (l, r) = (digits(&left_type).ok_or_else(unsupported)?, digits(&right_type).ok_or_else(unsupported)?);
            let plan = DecimalPlan::new(op, l, r, (*precision, *scale))?;
            let left = self.widened(left, &left_type)?;
            let right = self.widened(right, &right_type)?;
            return Ok(self.push(Operation::Decimal(plan, left, right), ty.clone(), false));
        }
        let plan = NumberPlan::new(op, ty);
        let plan = plan.ok_or_else(|| Error::Unsupported(format!("{op:?} of {left_type} and {right_type} as {ty}")))?;
        let (left, right) = (self.cast(left, &left_type, ty)?, self.cast(right, &right_type, ty)?);
        Ok(self.push(Operation::Number(plan, left, right), ty.clone(), false))
    }

    /// Decimals and integers in 64 or 128 bits, the two widths that decimals are computed in.
    fn widened(&mut self, operand: Operand, ty: &LogicalType) -> Result<Operand> {
        match ty.physical() {
            Some(Physical::I64 | Physical::I128) => Ok(operand),
            Some(Physical::U64) => self.cast(operand, ty, &LogicalType::Decimal { precision: 38, scale: 0 }),
            _ => {
                let (_, scale) = digits(ty).ok_or_else(|| Error::Unsupported(format!("{ty} as a decimal")))?;
                self.cast(operand, ty, &LogicalType::Decimal { precision: 18, scale })
            }
        }
    }

    fn compare(&mut self, op: CompareOp, left: &Expr, right: &Expr) -> Result<Operand> {
        let (left_type, right_type) = (left.type_over(self.column_types), right.type_over(self.column_types));
        let (mut l, mut r) = (self.values(left)?, self.values(right)?);
        if let (Some((lp, ls)), Some((rp, rs))) = (digits(&left_type), digits(&right_type))
            && (ls != rs || left_type.physical() != right_type.physical())
        {
            let scale = ls.max(rs);
            let needed = |precision: u8, own: i8| u32::from(precision) + (i32::from(scale) - i32::from(own)) as u32;
            let most = needed(lp, ls).max(needed(rp, rs));
            if most > SAFE_DIGITS {
                let wide = |scale| LogicalType::Decimal { precision: 38, scale };
                l = self.cast(l, &left_type, &wide(ls))?;
                r = self.cast(r, &right_type, &wide(rs))?;
                return Ok(self.truth(Operation::CompareScaled(op, (l, ls), (r, rs))));
            }
            let precision = if most <= 18 { 18 } else { 38 };
            let common = LogicalType::Decimal { precision, scale };
            l = self.cast(l, &left_type, &common)?;
            r = self.cast(r, &right_type, &common)?;
        } else if left_type.physical() != right_type.physical() {
            return Err(Error::Unsupported(format!("comparison of {left_type} with {right_type}")));
        }
        Ok(self.truth(Operation::Compare(op, l, r)))
    }

    /// The operand itself where the bits stay the same.
    fn cast(&mut self, operand: Operand, from: &LogicalType, to: &LogicalType) -> Result<Operand> {
        if from == to {
            return Ok(operand);
        }
        let plan = CastPlan::new(from, to);
        let plan = plan.ok_or_else(|| Error::Unsupported(format!("cast of {from} to {to}")))?;
        let text = format!("cast {operand:?} {to:?} from {from:?}");
        Ok(self.once(text, Operation::Cast(plan, operand), to.clone(), false))
    }

    fn case(&mut self, branches: &[(Expr, Expr)], otherwise: Option<&Expr>, ty: &LogicalType) -> Result<Operand> {
        if ty.physical().is_none() {
            return Err(Error::Unsupported(format!("CASE of type {ty}")));
        }
        let part = |expr: &Expr| {
            let found = expr.type_over(self.column_types);
            if found.physical() != ty.physical() && !matches!(expr, Expr::Literal(sinter_codec::Scalar::Null, _)) {
                return Err(Error::Unsupported(format!("CASE of type {ty} with a result of type {found}")));
            }
            compile_with(&[expr], self.column_types, self.entries, Want::Values)
        };
        let condition = |expr: &Expr| compile_with(&[expr], self.column_types, self.entries, Want::Bits);
        let branches =
            branches.iter().map(|(when, then)| Ok((condition(when)?, part(then)?))).collect::<Result<_>>()?;
        let otherwise = otherwise.map(part).transpose()?.map(Box::new);
        Ok(self.push(Operation::Case { branches, otherwise }, ty.clone(), false))
    }

    fn truth(&mut self, operation: Operation) -> Operand {
        self.push(operation, LogicalType::Boolean, true)
    }

    fn once(&mut self, text: String, operation: Operation, ty: LogicalType, is_truth: bool) -> Operand {
        if let Some(&known) = self.known.get(&text) {
            return known;
        }
        let operand = self.push(operation, ty, is_truth);
        self.known.insert(text, operand);
        operand
    }

    fn push(&mut self, operation: Operation, ty: LogicalType, is_truth: bool) -> Operand {
        self.program.instructions.push(Instruction { operation, ty, is_truth });
        Operand::Register(self.program.instructions.len() - 1)
    }
}
