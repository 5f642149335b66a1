//! From the tree to the program.
//!
//! Every value is computed once per program, by its [`super::numbering`]. Operands come before what is made of them from
//! a list of open nodes, not by recursion, so that `a + b + c + ...` may be of any length; only the branches of CASE, and
//! parts of AND and OR that may fail, which are programs of their own, go one level deeper each.

use super::arithmetic::NumberPlan;
use super::cast::CastPlan;
use super::decimal::{DecimalPlan, digits};
use super::like::LikePattern;
use super::membership::Membership;
use super::numbering::{Numbering, ValueNumber};
use super::program::{Constant, Instruction, Operand, Operation, Program};
use super::{ArithmeticOp, Expr};
use crate::{Error, LogicalType, Result};
use sinter_codec::{CompareOp, Physical};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Digits that fit an `i128`, whatever they are.
const SAFE_DIGITS: u32 = 38;

/// Compiles expressions over columns of these types.
///
/// # Errors
/// [`Error::Unsupported`] for what only a mistaken plan contains.
pub(crate) fn compile(exprs: &[&Expr], column_types: &[LogicalType]) -> Result<Program> {
    compile_with(exprs, &Numbering::new(exprs, column_types), column_types, true, Want::Anything)
}

/// Compiles a condition; its one output is bits.
///
/// # Errors
/// As [`compile`].
pub(crate) fn compile_condition(expr: &Expr, column_types: &[LogicalType]) -> Result<Program> {
    compile_with(&[expr], &Numbering::new(&[expr], column_types), column_types, true, Want::Bits)
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
fn compile_with(
    exprs: &[&Expr],
    numbering: &Numbering<'_>,
    column_types: &[LogicalType],
    entries: bool,
    want: Want,
) -> Result<Program> {
    let program = Program::default();
    let (known, converted) = (HashMap::new(), HashMap::new());
    let mut compiler = Compiler { column_types, numbering, entries, program, known, converted };
    for expr in exprs {
        let operand = match want {
            Want::Anything => compiler.operand(expr)?,
            Want::Bits => compiler.bits(expr)?,
            Want::Values => compiler.values(expr)?,
        };
        let ty = expr.type_over(column_types);
        compiler.program.outputs.push((operand, ty));
    }
    compiler.program.columns.sort_unstable();
    compiler.program.columns.dedup();
    Ok(compiler.program)
}

struct Compiler<'a> {
    column_types: &'a [LogicalType],
    numbering: &'a Numbering<'a>,
    entries: bool,
    program: Program,
    /// Where the values computed so far are.
    known: HashMap<ValueNumber, Operand>,
    /// Where their other forms are.
    converted: HashMap<Conversion, Operand>,
}

/// Another form of an operand.
#[derive(PartialEq, Eq, Hash)]
enum Conversion {
    ToBits(Operand),
    ToValues(Operand),
    /// From one type to another.
    Cast(Operand, LogicalType, LogicalType),
}

impl Compiler<'_> {
    /// Wherever the result is: bits or values, a column as it is.
    fn operand(&mut self, expr: &Expr) -> Result<Operand> {
        let wanted = self.numbering.number(expr);
        if let Some(&known) = self.known.get(&wanted) {
            return Ok(known);
        }
        let mut open = vec![(expr, false)];
        while let Some((expr, has_operands)) = open.pop() {
            let number = self.numbering.number(expr);
            if self.known.contains_key(&number) {
                continue;
            }
            let operands = if has_operands { Vec::new() } else { self.operands(expr) };
            if operands.is_empty() {
                let operand = self.node(expr)?;
                self.known.insert(number, operand);
            } else {
                open.push((expr, true));
                open.extend(operands.into_iter().rev().map(|operand| (operand, false)));
            }
        }
        Ok(self.known[&wanted])
    }

    /// What this program computes before it computes the expression.
    fn operands<'e>(&self, expr: &'e Expr) -> Vec<&'e Expr> {
        match expr {
            _ if self.single_column(expr).is_some() => Vec::new(),
            Expr::Case { .. } => Vec::new(),
            Expr::And(_) | Expr::Or(_) => self.parts(expr).0,
            _ => expr.children(),
        }
    }

    /// The parts of AND and OR that are computed for all rows, and in groups those that may fail, which only some rows need.
    /// What has been computed fails no more for being computed again, so a part that adds nothing new to what may fail
    /// belongs to those before it.
    fn parts<'e>(&self, expr: &'e Expr) -> (Vec<&'e Expr>, Vec<Vec<&'e Expr>>) {
        let may_fail = |part: &&Expr| part.may_fail(self.column_types);
        let (mut failing, mut group): (Vec<&Expr>, Vec<&Expr>) = expr.children().into_iter().partition(may_fail);
        if failing.is_empty() {
            return (group, Vec::new());
        }
        if group.is_empty() {
            group.push(failing.remove(0));
        }
        let mut computed = HashSet::new();
        let mut groups = Vec::new();
        group.iter().for_each(|part| self.add_computed(part, &mut computed));
        for part in failing {
            if self.adds_failures(part, &computed) {
                groups.push(std::mem::replace(&mut group, vec![part]));
                self.add_computed(part, &mut computed);
            } else {
                group.push(part);
            }
        }
        groups.push(group);
        (groups.remove(0), groups)
    }

    /// Adds what is computed wherever an expression is.
    fn add_computed(&self, expr: &Expr, computed: &mut HashSet<ValueNumber>) {
        let mut open = vec![expr];
        while let Some(expr) = open.pop() {
            let is_split = match expr {
                Expr::Case { .. } => true,
                Expr::And(_) | Expr::Or(_) => expr.may_fail(self.column_types),
                _ => self.single_column(expr).is_some(),
            };
            if computed.insert(self.numbering.number(expr)) && !is_split {
                open.extend(expr.children());
            }
        }
    }

    /// Whether an expression may fail where all that is computed did not.
    fn adds_failures(&self, expr: &Expr, computed: &HashSet<ValueNumber>) -> bool {
        let mut open = vec![expr];
        while let Some(expr) = open.pop() {
            if computed.contains(&self.numbering.number(expr)) {
                continue;
            }
            if expr.may_fail_itself(self.column_types) {
                return true;
            }
            open.extend(expr.children());
        }
        false
    }

    /// An expression whose operands are known.
    fn node(&mut self, expr: &Expr) -> Result<Operand> {
        let Some(column) = self.single_column(expr) else { return self.compute(expr) };
        let program = compile_with(&[expr], self.numbering, self.column_types, false, Want::Anything)?;
        self.program.columns.push(column);
        let ty = expr.type_over(self.column_types);
        let is_truth = ty == LogicalType::Boolean;
        Ok(self.push(Operation::Entries { column, program: Box::new(program) }, ty, is_truth))
    }

    /// The one column that a function worth moving to a dictionary reads.
    fn single_column(&self, expr: &Expr) -> Option<usize> {
        let column = self.numbering.entries_column(expr).filter(|_| self.entries)?;
        let ty = self.column_types.get(column)?;
        let result = expr.type_over(self.column_types);
        let movable = ty.physical().is_some() && result.physical().is_some() && *ty != LogicalType::Boolean;
        movable.then_some(column)
    }

    fn column(&mut self, column: usize) -> Result<Operand> {
        if column >= self.column_types.len() {
            return Err(Error::Unsupported(format!("column {column} of {}", self.column_types.len())));
        }
        self.program.columns.push(column);
        Ok(Operand::Column(column))
    }

    fn compute(&mut self, expr: &Expr) -> Result<Operand> {
        Ok(match expr {
            Expr::Column(column) => self.column(*column)?,
            Expr::Literal(scalar, ty) => self.constant(scalar, ty)?,
            Expr::Compare(op, left, right) => self.compare(*op, left, right)?,
            Expr::Arithmetic { op, left, right, ty } => self.arithmetic(*op, left, right, ty)?,
            Expr::And(_) | Expr::Or(_) => {
                let is_or = matches!(expr, Expr::Or(_));
                let (always, failing) = self.parts(expr);
                let always = always.into_iter().map(|part| self.bits(part)).collect::<Result<_>>()?;
                let first = self.truth(if is_or { Operation::Or(always) } else { Operation::And(always) });
                if failing.is_empty() {
                    return Ok(first);
                }
                let rest = failing.iter().map(|group| self.within(group, Want::Bits)).collect::<Result<_>>()?;
                self.truth(Operation::Guarded { first, rest, decisive: is_or })
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
            Expr::IsKey { expr: inner, keys } => {
                let operand = self.values(inner)?;
                self.truth(Operation::IsKey(operand, Arc::clone(keys)))
            }
            Expr::Like { expr: inner, pattern, negated, case_insensitive } => {
                let operand = self.values(inner)?;
                let pattern = Arc::new(LikePattern::new(pattern, *case_insensitive));
                self.truth(Operation::Like { operand, pattern, negated: *negated })
            }
            Expr::Text { function, expr: inner } => {
                let operand = self.values(inner)?;
                self.push(Operation::Text(*function, operand), function.ty(), false)
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
        Ok(self.once(Conversion::ToBits(operand), Operation::Truth(operand), LogicalType::Boolean, true))
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
            let values = Operation::FromTruth(operand);
            return Ok(self.once(Conversion::ToValues(operand), values, LogicalType::Boolean, false));
        }
        Ok(self.flat(operand))
    }

    fn flat(&mut self, operand: Operand) -> Operand {
        if let Operand::Column(column) = operand
            && self.column_types[column].physical().is_some()
            && !self.program.flat_registers.contains_key(&column)
        {
            let ty = self.column_types[column].clone();
            let Operand::Register(register) = self.push(Operation::Flatten { column, may_narrow: false }, ty, false)
            else {
                return operand;
            };
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
        let conversion = Conversion::Cast(operand, from.clone(), to.clone());
        Ok(self.once(conversion, Operation::Cast(plan, operand), to.clone(), false))
    }

    /// A CASE as the ELSE of a CASE only adds branches.
    fn case(&mut self, branches: &[(Expr, Expr)], mut otherwise: Option<&Expr>, ty: &LogicalType) -> Result<Operand> {
        if ty.physical().is_none() {
            return Err(Error::Unsupported(format!("CASE of type {ty}")));
        }
        let mut branches: Vec<&(Expr, Expr)> = branches.iter().collect();
        while let Some(inner @ Expr::Case { branches: more, otherwise: last, ty: inner_type }) = otherwise
            && inner_type == ty
            && self.single_column(inner).is_none()
        {
            branches.extend(more);
            otherwise = last.as_deref();
        }
        let mut programs = Vec::with_capacity(branches.len());
        for (condition, result) in branches {
            let condition = self.within(&[condition], Want::Bits)?;
            programs.push((condition, self.result(result, ty)?));
        }
        let otherwise = match otherwise {
            Some(result) => Some(Box::new(self.result(result, ty)?)),
            None => None,
        };
        Ok(self.push(Operation::Case { branches: programs, otherwise }, ty.clone(), false))
    }

    /// A result of a CASE.
    fn result(&mut self, expr: &Expr, ty: &LogicalType) -> Result<Program> {
        let found = expr.type_over(self.column_types);
        if found.physical() != ty.physical() && !matches!(expr, Expr::Literal(sinter_codec::Scalar::Null, _)) {
            return Err(Error::Unsupported(format!("CASE of type {ty} with a result of type {found}")));
        }
        self.within(&[expr], Want::Values)
    }

    /// A program within this one.
    fn within(&mut self, exprs: &[&Expr], want: Want) -> Result<Program> {
        let program = compile_with(exprs, self.numbering, self.column_types, self.entries, want)?;
        self.program.columns.extend(&program.columns);
        Ok(program)
    }

    fn truth(&mut self, operation: Operation) -> Operand {
        self.push(operation, LogicalType::Boolean, true)
    }

    fn once(&mut self, conversion: Conversion, operation: Operation, ty: LogicalType, is_truth: bool) -> Operand {
        if let Some(&known) = self.converted.get(&conversion) {
            return known;
        }
        let operand = self.push(operation, ty, is_truth);
        self.converted.insert(conversion, operand);
        operand
    }

    fn push(&mut self, operation: Operation, ty: LogicalType, is_truth: bool) -> Operand {
        self.program.instructions.push(Instruction { operation, ty, is_truth });
        Operand::Register(self.program.instructions.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Foreign, TextFunction};
    use arrow::array::ArrayRef;
    use sinter_codec::Scalar;

    const INTEGER: LogicalType = LogicalType::Int64;
    const TYPES: [LogicalType; 4] = [INTEGER, INTEGER, LogicalType::Utf8, LogicalType::Boolean];

    fn column(column: usize) -> Box<Expr> {
        Box::new(Expr::Column(column))
    }

    fn integer(value: i128) -> Expr {
        Expr::Literal(Scalar::Int(value), INTEGER)
    }

    fn sum(left: Expr, right: Expr) -> Expr {
        Expr::Arithmetic { op: ArithmeticOp::Add, left: Box::new(left), right: Box::new(right), ty: INTEGER }
    }

    fn less(left: Expr, right: Expr) -> Expr {
        Expr::Compare(CompareOp::Less, Box::new(left), Box::new(right))
    }

    fn like(pattern: &str, case_insensitive: bool) -> Expr {
        Expr::Like { expr: column(2), pattern: pattern.into(), negated: false, case_insensitive }
    }

    fn is_one_of(list: &[i128]) -> Expr {
        let list = list.iter().map(|&value| Scalar::Int(value)).collect();
        Expr::InList { expr: Box::new(sum(Expr::Column(0), Expr::Column(1))), list, has_null: false, negated: false }
    }

    fn case(condition: Expr, otherwise: Option<Expr>) -> Expr {
        Expr::Case { branches: vec![(condition, Expr::Column(0))], otherwise: otherwise.map(Box::new), ty: INTEGER }
    }

    #[derive(Debug)]
    struct Same;

    impl Foreign for Same {
        fn evaluate(&self, arguments: &[ArrayRef], _rows: usize) -> Result<ArrayRef> {
            Ok(arguments[0].clone())
        }

        fn text(&self) -> String {
            "same".into()
        }
    }

    fn foreign(function: &Arc<Same>) -> Expr {
        let function: Arc<dyn Foreign> = function.clone();
        Expr::Foreign { function, arguments: vec![sum(Expr::Column(0), Expr::Column(1))], ty: INTEGER }
    }

    fn program(exprs: &[Expr]) -> Program {
        compile(&exprs.iter().collect::<Vec<_>>(), &TYPES).expect("a program")
    }

    /// Expressions of every kind, no two of them alike.
    fn all_kinds() -> Vec<Expr> {
        let float = |value: f64| Expr::Literal(Scalar::Float(value), LogicalType::Float64);
        let is_float = |value: f64| Expr::Compare(CompareOp::Equal, Box::new(float(value)), Box::new(float(1.5)));
        let (one, other) = (Arc::new(Same), Arc::new(Same));
        let first = less(Expr::Column(0), Expr::Column(1));
        let second = less(Expr::Column(1), Expr::Column(0));
        vec![
            Expr::Column(0),
            Expr::Column(3),
            integer(7),
            Expr::Literal(Scalar::Int(7), LogicalType::Int32),
            Expr::Literal(Scalar::Null, INTEGER),
            is_float(0.0),
            is_float(-0.0),
            first.clone(),
            second.clone(),
            Expr::Compare(CompareOp::LessOrEqual, column(0), column(1)),
            sum(Expr::Column(0), Expr::Column(1)),
            Expr::Arithmetic { op: ArithmeticOp::Subtract, left: column(0), right: column(1), ty: INTEGER },
            Expr::And(vec![first.clone(), second.clone()]),
            Expr::Or(vec![first.clone(), second.clone()]),
            Expr::Or(vec![second.clone(), first.clone()]),
            Expr::And(vec![Expr::Column(3)]),
            Expr::Not(Box::new(first.clone())),
            Expr::Not(Box::new(second.clone())),
            Expr::IsNull(column(0)),
            Expr::IsNotNull(column(0)),
            is_one_of(&[1, 2]),
            is_one_of(&[1, 3]),
            like("a%", false),
            like("a%", true),
            like("b%", false),
            Expr::Text { function: TextFunction::Length, expr: column(2) },
            Expr::Text { function: TextFunction::Substring { skipped: 0, taken: 1 }, expr: column(2) },
            Expr::Text { function: TextFunction::Substring { skipped: 1, taken: 1 }, expr: column(2) },
            Expr::Cast { expr: column(0), ty: LogicalType::Float64 },
            Expr::Cast { expr: column(0), ty: LogicalType::Int32 },
            case(first.clone(), None),
            case(first.clone(), Some(integer(7))),
            case(second, Some(integer(7))),
            foreign(&one),
            foreign(&other),
        ]
    }

    #[test]
    fn what_occurs_twice_is_computed_once() {
        let once = program(&all_kinds());
        let twice = [all_kinds(), all_kinds()].concat();
        // Functions from outside are told by who they are.
        let twice: Vec<Expr> = twice.into_iter().filter(|expr| !matches!(expr, Expr::Foreign { .. })).collect();
        let twice = program(&twice);
        let kinds = twice.outputs.len() / 2;
        for (first, second) in twice.outputs[..kinds].iter().zip(&twice.outputs[kinds..]) {
            assert_eq!(first, second);
        }
        assert_eq!(
            (twice.instructions.len(), twice.constants.len()),
            (once.instructions.len() - 2, once.constants.len())
        );
        let one = Arc::new(Same);
        assert_eq!(
            program(&[foreign(&one), foreign(&one)]).instructions.len(),
            program(&[foreign(&one)]).instructions.len()
        );
    }

    #[test]
    fn what_differs_is_computed_apart() {
        let program = program(&all_kinds());
        for (index, (output, _)) in program.outputs.iter().enumerate() {
            assert!(program.outputs[..index].iter().all(|(other, _)| other != output), "output {index}");
        }
    }

    #[test]
    fn a_tree_of_equal_halves_has_one_instruction_per_level() {
        let mut expr = sum(Expr::Column(0), Expr::Column(1));
        for _ in 1..16 {
            expr = sum(expr.clone(), expr);
        }
        // And two that make the columns flat.
        assert_eq!(program(&[expr]).instructions.len(), 16 + 2);
    }

    #[test]
    fn branches_share_the_numbers_but_not_the_registers() {
        let shared = sum(Expr::Column(0), Expr::Column(1));
        let condition = less(shared.clone(), integer(0));
        let program = program(&[shared, case(condition.clone(), None), case(condition, None)]);
        // Two columns, the sum, and one CASE, whose condition computes the sum again, for its own rows.
        assert_eq!(program.instructions.len(), 4);
        assert_eq!(program.columns, [0, 1]);
        let Operation::Case { branches, .. } = &program.instructions[3].operation else { panic!("{program:?}") };
        assert_eq!((branches[0].0.instructions.len(), &branches[0].0.columns[..]), (4, &[0, 1][..]));
    }

    #[test]
    fn nested_ands_and_ors_are_one() {
        let part = |value: i128| less(sum(Expr::Column(0), Expr::Column(1)), integer(value));
        let any = Expr::Or(vec![part(3), Expr::Or(vec![part(4), part(5)])]);
        let nested = Expr::And(vec![Expr::And(vec![part(1), Expr::And(vec![part(2)])]), any, part(6)]);
        let program = program(&[nested]);
        let parts = |operation: &Operation| match operation {
            Operation::And(parts) | Operation::Or(parts) => Some(parts.len()),
            _ => None,
        };
        let parts: Vec<usize> = program.instructions.iter().filter_map(|one| parts(&one.operation)).collect();
        assert_eq!(parts, [3, 4]);
    }

    fn on_stack(bytes: usize, work: impl FnOnce() + Send + 'static) {
        let thread = std::thread::Builder::new().stack_size(bytes).spawn(work).expect("a thread");
        thread.join().expect("enough stack");
    }

    /// `c0 < c1 AND 1 < c0 AND 2 < c0 AND ...` as a parser nests it.
    fn long_and(parts: usize) -> Expr {
        let part = |number: usize| match number {
            0 => less(Expr::Column(0), Expr::Column(1)),
            number => less(integer(number as i128), Expr::Column(0)),
        };
        (1..parts).fold(part(0), |left, number| Expr::And(vec![left, part(number)]))
    }

    fn long_sum(terms: usize) -> Expr {
        (1..terms).fold(Expr::Column(0), |left, number| sum(left, integer(number as i128)))
    }

    /// `CASE WHEN c0 < 1 THEN c0 ELSE CASE ... END END`
    fn deep_case(levels: usize) -> Expr {
        (0..levels)
            .fold(integer(0), |otherwise, number| case(less(Expr::Column(0), integer(number as i128)), Some(otherwise)))
    }

    /// `CASE WHEN c0 < 1 THEN CASE ... END END`
    fn deep_then(levels: usize) -> Expr {
        (0..levels).fold(integer(0), |then, number| {
            let branches = vec![(less(Expr::Column(0), integer(number as i128)), then)];
            Expr::Case { branches, otherwise: None, ty: INTEGER }
        })
    }

    #[test]
    fn long_expressions_take_linear_work() {
        // Dropping them is what takes the stack.
        on_stack(64 << 20, || {
            const LENGTH: usize = 40_000;
            // A comparison per part, the AND and two flat columns.
            assert_eq!(program(&[long_and(LENGTH)]).instructions.len(), LENGTH + 3);
            assert_eq!(program(&[long_sum(LENGTH)]).instructions.len(), LENGTH);
        });
    }

    #[test]
    fn what_may_fail_is_computed_where_others_have_not_decided() {
        let guarded =
            |parts: Vec<Expr>| match program(&[Expr::And(parts)]).instructions.pop().map(|last| last.operation) {
                Some(Operation::Guarded { rest, .. }) => rest.iter().map(|group| group.outputs.len()).collect(),
                _ => Vec::new(),
            };
        let is_less = |term: i128, than: i128| less(sum(Expr::Column(0), integer(term)), integer(than));
        let sure = less(Expr::Column(0), Expr::Column(1));
        assert_eq!(guarded(vec![sure.clone(), sure.clone()]), [0; 0]);
        // The first that may fail is asked about all rows where there is no other.
        assert_eq!(guarded(vec![is_less(1, 5)]), [0; 0]);
        assert_eq!(guarded(vec![is_less(1, 5), sure.clone()]), [1]);
        assert_eq!(guarded(vec![is_less(1, 5), is_less(2, 5)]), [1]);
        // What is computed already may be asked again.
        assert_eq!(guarded(vec![is_less(1, 5), is_less(1, 6)]), [0; 0]);
        assert_eq!(guarded(vec![sure.clone(), is_less(1, 5), is_less(1, 6), is_less(2, 5)]), [2, 1]);
        assert_eq!(guarded(vec![sure, is_less(1, 5), is_less(2, 5), is_less(1, 6)]), [1, 2]);
    }

    #[test]
    fn deep_expressions_take_little_stack() {
        // Not optimised, what recurses takes several times as much.
        let factor = if cfg!(debug_assertions) { 8 } else { 1 };
        on_stack(factor * (512 << 10), || {
            assert_eq!(program(&[long_and(2000)]).instructions.len(), 2003);
            assert_eq!(program(&[long_sum(2000)]).instructions.len(), 2000);
            let program = program(&[deep_case(2000)]);
            let Operation::Case { branches, .. } = &program.instructions[0].operation else { panic!("{program:?}") };
            assert_eq!(branches.len(), 2000);
        });
        on_stack(factor * (16 << 20), || assert_eq!(program(&[deep_then(2000)]).instructions.len(), 1));
    }
}
