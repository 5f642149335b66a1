//! DataFusion's expressions as ours.

use super::scalar::from_datafusion;
use super::subquery::is_same;
use crate::checked::Operation;
use crate::foreign::ScalarFunction;
use crate::scalar_subquery::PERHAPS;
use crate::walk::WalkTree;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{InList, ScalarFunction as ScalarFunctionCall};
use datafusion::logical_expr::{BinaryExpr, Case, Expr as DfExpr, ExprSchemable, Like, Operator, Subquery, Volatility};
use sinter_codec::{CompareOp, Scalar};
use sinter_exec::{ArithmeticOp, Expr, LogicalType, TextFunction, edge};
use std::sync::Arc;

/// What the columns of an input stand for.
pub(crate) struct Scope<'a> {
    /// Names and types of the input.
    pub(crate) schema: &'a DFSchema,
    /// One per field of the schema: the expression over the scanned columns that yields it.
    pub(crate) columns: &'a [Expr],
    /// What has become of scalar subqueries.
    pub(crate) subqueries: &'a [(&'a Subquery, Expr)],
}

impl<'a> Scope<'a> {
    /// Without subqueries.
    pub(crate) fn new(schema: &'a DFSchema, columns: &'a [Expr]) -> Scope<'a> {
        Scope { schema, columns, subqueries: &[] }
    }
}

impl Scope<'_> {
    /// The expression in our terms; `None` where only DataFusion can run it.
    pub(crate) fn lower(&self, expr: &DfExpr) -> Option<Expr> {
        match expr {
            DfExpr::Alias(alias) => self.lower(&alias.expr),
            DfExpr::Column(column) => self.column(column),
            DfExpr::Literal(value, _) => match from_datafusion(value) {
                Some((scalar, ty)) => Some(Expr::Literal(scalar, ty)),
                None => self.foreign(expr),
            },
            DfExpr::BinaryExpr(binary) => self.binary(expr, binary),
            DfExpr::Not(inner) => self.not(inner),
            DfExpr::IsNull(inner) | DfExpr::IsUnknown(inner) => Some(Expr::IsNull(Box::new(self.lower(inner)?))),
            DfExpr::IsNotNull(inner) | DfExpr::IsNotUnknown(inner) => {
                Some(Expr::IsNotNull(Box::new(self.lower(inner)?)))
            }
            DfExpr::Between(between) => {
                let ty = self.type_of(&between.expr)?;
                if !comparable(&ty, &self.type_of(&between.low)?) || !comparable(&ty, &self.type_of(&between.high)?) {
                    return self.foreign(expr);
                }
                let value = Box::new(self.lower(&between.expr)?);
                if !is_small(&value) {
                    return self.foreign(expr);
                }
                let inside = Expr::And(vec![
                    Expr::Compare(CompareOp::GreaterOrEqual, value.clone(), Box::new(self.lower(&between.low)?)),
                    Expr::Compare(CompareOp::LessOrEqual, value, Box::new(self.lower(&between.high)?)),
                ]);
                Some(if between.negated { Expr::Not(Box::new(inside)) } else { inside })
            }
            DfExpr::IsTrue(inner) => self.settled(expr, inner, true),
            DfExpr::IsFalse(inner) => self.settled(expr, inner, false),
            DfExpr::IsNotTrue(inner) => self.not(&DfExpr::IsTrue(inner.clone())),
            DfExpr::IsNotFalse(inner) => self.not(&DfExpr::IsFalse(inner.clone())),
            DfExpr::InList(list) => self.in_list(expr, list),
            DfExpr::ScalarSubquery(subquery) => {
                let found = self.subqueries.iter().find(|(known, _)| is_same(known, subquery));
                found.map(|(_, value)| value.clone())
            }
            DfExpr::Like(like) => self.like(expr, like),
            DfExpr::Case(case) => self.case(expr, case),
            DfExpr::Cast(cast) => {
                let ty = edge::logical_type(cast.field.data_type())?;
                let from = self.type_of(&cast.expr)?;
                if from == ty {
                    return self.lower(&cast.expr);
                }
                let is_of_truth = from == LogicalType::Boolean && !matches!(ty, LogicalType::Decimal { .. });
                if !(is_number(&from) || is_of_truth) || !is_number(&ty) || float_and_decimal(&from, &ty) {
                    return self.foreign(expr);
                }
                Some(Expr::Cast { expr: Box::new(self.lower(&cast.expr)?), ty })
            }
            DfExpr::Negative(inner) if is_signed_integer(&self.type_of(inner)?) => self.negated(inner),
            DfExpr::ScalarFunction(function) => match (Operation::of(&function.func), &function.args[..]) {
                (None, [only]) if function.func == *PERHAPS => self.lower(only),
                (Some(Operation::Negate), [inner]) => self.negated(inner),
                (Some(operation), [left, right]) => {
                    let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
                    let binary = BinaryExpr { left, op: operation.operator()?, right };
                    self.binary(&DfExpr::BinaryExpr(binary.clone()), &binary)
                }
                (None, [value, other]) if function.func.name() == "nullif" => self.null_if(expr, value, other),
                _ => {
                    let ours = self
                        .text_function(function)
                        .and_then(|(function, text)| Some(Expr::Text { function, expr: Box::new(self.lower(text)?) }));
                    ours.or_else(|| self.foreign(expr))
                }
            },
            _ => self.foreign(expr),
        }
    }

    /// A function of a text that we have, and the text.
    fn text_function<'e>(&self, call: &'e ScalarFunctionCall) -> Option<(TextFunction, &'e DfExpr)> {
        let (text, numbers) = call.args.split_first()?;
        if self.type_of(text)? != LogicalType::Utf8 {
            return None;
        }
        let number = |expr: &DfExpr| match expr {
            DfExpr::Literal(ScalarValue::Int64(number), _) => *number,
            _ => None,
        };
        let numbers = numbers.iter().map(number).collect::<Option<Vec<i64>>>()?;
        let function = match (call.func.name(), &numbers[..]) {
            ("character_length", []) => TextFunction::Length,
            ("substr", [first]) => {
                let skipped = u32::try_from(first.checked_sub(1)?.max(0)).ok()?;
                TextFunction::Substring { skipped, taken: u32::MAX }
            }
            // Characters before the first one count, though there are none.
            ("substr", [first, count]) if *count >= 0 => {
                let skipped = first.checked_sub(1)?;
                let end = skipped.checked_add(*count)?.max(0);
                let skipped = u32::try_from(skipped.max(0)).ok()?;
                TextFunction::Substring { skipped, taken: u32::try_from(end).ok()?.saturating_sub(skipped) }
            }
            _ => return None,
        };
        // The SQL library may have another type for it.
        let ty = self.type_of(&DfExpr::ScalarFunction(call.clone()))?;
        (ty == function.ty()).then_some((function, text))
    }

    /// Nothing less an integer.
    fn negated(&self, inner: &DfExpr) -> Option<Expr> {
        let ty = self.type_of(inner)?;
        Some(Expr::Arithmetic {
            op: ArithmeticOp::Subtract,
            left: Box::new(Expr::Literal(Scalar::Int(0), ty.clone())),
            right: Box::new(self.lower(inner)?),
            ty,
        })
    }

    fn column(&self, column: &Column) -> Option<Expr> {
        self.columns.get(self.schema.maybe_index_of_column(column)?).cloned()
    }

    /// What a value of the expression means; `None` where our tables have no such type.
    pub(crate) fn type_of(&self, expr: &DfExpr) -> Option<LogicalType> {
        edge::logical_type(&expr.get_type(self.schema).ok()?)
    }

    fn binary(&self, expr: &DfExpr, binary: &BinaryExpr) -> Option<Expr> {
        let compare = |op| {
            if !comparable(&self.type_of(&binary.left)?, &self.type_of(&binary.right)?) {
                return self.foreign(expr);
            }
            Some(Expr::Compare(op, Box::new(self.lower(&binary.left)?), Box::new(self.lower(&binary.right)?)))
        };
        let arithmetic = |op| {
            let (left, right) = (self.type_of(&binary.left)?, self.type_of(&binary.right)?);
            let ty = self.type_of(expr)?;
            let decimals = matches!((&left, &right), (LogicalType::Decimal { .. }, LogicalType::Decimal { .. }));
            if !(is_number(&ty) && (left == right || decimals) && is_number(&left)) {
                return self.foreign(expr);
            }
            Some(Expr::Arithmetic {
                op,
                left: Box::new(self.lower(&binary.left)?),
                right: Box::new(self.lower(&binary.right)?),
                ty,
            })
        };
        match binary.op {
            Operator::And => Some(Expr::And(vec![self.lower(&binary.left)?, self.lower(&binary.right)?])),
            Operator::Or => Some(Expr::Or(vec![self.lower(&binary.left)?, self.lower(&binary.right)?])),
            Operator::Eq => compare(CompareOp::Equal),
            Operator::NotEq => compare(CompareOp::NotEqual),
            Operator::Lt => compare(CompareOp::Less),
            Operator::LtEq => compare(CompareOp::LessOrEqual),
            Operator::Gt => compare(CompareOp::Greater),
            Operator::GtEq => compare(CompareOp::GreaterOrEqual),
            Operator::IsNotDistinctFrom => self.same(expr, binary),
            Operator::IsDistinctFrom => {
                let same = BinaryExpr { op: Operator::IsNotDistinctFrom, ..binary.clone() };
                self.not(&DfExpr::BinaryExpr(same))
            }
            Operator::Plus => arithmetic(ArithmeticOp::Add),
            Operator::Minus => arithmetic(ArithmeticOp::Subtract),
            Operator::Multiply => arithmetic(ArithmeticOp::Multiply),
            Operator::Divide => arithmetic(ArithmeticOp::Divide),
            Operator::Modulo => arithmetic(ArithmeticOp::Modulo),
            _ => self.foreign(expr),
        }
    }

    fn not(&self, condition: &DfExpr) -> Option<Expr> {
        Some(Expr::Not(Box::new(self.lower(condition)?)))
    }

    /// Whether a condition is known to be `wanted`; never NULL.
    fn settled(&self, expr: &DfExpr, condition: &DfExpr, wanted: bool) -> Option<Expr> {
        let lowered = self.lower(condition)?;
        let is_known = match is_never_null(condition) {
            true => None,
            false if is_small(&lowered) => Some(Expr::IsNotNull(Box::new(lowered.clone()))),
            false => return self.foreign(expr),
        };
        let is_wanted = if wanted { lowered } else { Expr::Not(Box::new(lowered)) };
        Some(match is_known {
            Some(is_known) => Expr::And(vec![is_known, is_wanted]),
            None => is_wanted,
        })
    }

    /// Whether both sides are equal, or both NULL; never NULL.
    fn same(&self, expr: &DfExpr, binary: &BinaryExpr) -> Option<Expr> {
        let (left, right) = (&*binary.left, &*binary.right);
        match (left, right) {
            (condition, DfExpr::Literal(ScalarValue::Boolean(Some(wanted)), _))
            | (DfExpr::Literal(ScalarValue::Boolean(Some(wanted)), _), condition) => {
                return self.settled(expr, condition, *wanted);
            }
            _ if !comparable(&self.type_of(left)?, &self.type_of(right)?) => return self.foreign(expr),
            _ => {}
        }
        let (has_left, has_right) = (is_never_null(left), is_never_null(right));
        let (left, right) = (self.lower(left)?, self.lower(right)?);
        if !(has_left || is_small(&left)) || !(has_right || is_small(&right)) {
            return self.foreign(expr);
        }
        let mut equal = Vec::with_capacity(3);
        equal.extend((!has_left).then(|| Expr::IsNotNull(Box::new(left.clone()))));
        equal.extend((!has_right).then(|| Expr::IsNotNull(Box::new(right.clone()))));
        let no_value = (!has_left && !has_right)
            .then(|| Expr::And(vec![Expr::IsNull(Box::new(left.clone())), Expr::IsNull(Box::new(right.clone()))]));
        equal.push(Expr::Compare(CompareOp::Equal, Box::new(left), Box::new(right)));
        let equal = Expr::And(equal);
        Some(match no_value {
            Some(no_value) => Expr::Or(vec![no_value, equal]),
            None => equal,
        })
    }

    fn in_list(&self, expr: &DfExpr, list: &InList) -> Option<Expr> {
        let ty = self.type_of(&list.expr)?;
        let tested = Box::new(self.lower(&list.expr)?);
        let may_repeat = is_small(&tested);
        let (mut has_null, mut constants, mut others) = (false, Vec::new(), Vec::new());
        for item in &list.list {
            let constant = match item {
                DfExpr::Literal(value, _) => from_datafusion(value),
                _ => None,
            };
            match constant {
                Some((Scalar::Null, _)) => has_null = true,
                Some((constant, item_ty)) if item_ty == ty => constants.push(constant),
                _ if may_repeat && comparable(&ty, &self.type_of(item)?) => {
                    others.push(Expr::Compare(CompareOp::Equal, tested.clone(), Box::new(self.lower(item)?)));
                }
                _ => return self.foreign(expr),
            }
        }
        if others.is_empty() {
            return Some(Expr::InList { expr: tested, list: constants, has_null, negated: list.negated });
        }
        if has_null || !constants.is_empty() {
            others.push(Expr::InList { expr: tested, list: constants, has_null, negated: false });
        }
        let found = Expr::Or(others);
        Some(if list.negated { Expr::Not(Box::new(found)) } else { found })
    }

    /// The value, or NULL where it equals the other. The SQL library's own does so too, with the value computed once, but for
    /// floats.
    fn null_if(&self, expr: &DfExpr, value: &DfExpr, other: &DfExpr) -> Option<Expr> {
        let ty = self.type_of(expr)?;
        if self.type_of(value)? != ty || ty.physical().is_none() || !comparable(&ty, &self.type_of(other)?) {
            return self.foreign(expr);
        }
        let value = self.lower(value)?;
        let is_at_hand = matches!(value, Expr::Column(_) | Expr::Literal(..));
        let is_float = ty.is_float();
        if !(is_at_hand || is_float && is_small(&value)) {
            return self.foreign(expr);
        }
        let other = Box::new(self.lower(other)?);
        let is_equal = Expr::Compare(CompareOp::Equal, Box::new(value.clone()), other);
        let null = Expr::Literal(Scalar::Null, ty.clone());
        Some(Expr::Case { branches: vec![(is_equal, null)], otherwise: Some(Box::new(value)), ty })
    }

    fn like(&self, expr: &DfExpr, like: &Like) -> Option<Expr> {
        let pattern = match like.pattern.as_ref() {
            DfExpr::Literal(value, _) => value.try_as_str().flatten(),
            _ => None,
        };
        match pattern {
            Some(pattern)
                if like.escape_char.is_none_or(|escape| escape == '\\')
                    && self.type_of(&like.expr)? == LogicalType::Utf8 =>
            {
                Some(Expr::Like {
                    expr: Box::new(self.lower(&like.expr)?),
                    pattern: pattern.to_owned(),
                    negated: like.negated,
                    case_insensitive: like.case_insensitive,
                })
            }
            _ => self.foreign(expr),
        }
    }

    fn case(&self, expr: &DfExpr, case: &Case) -> Option<Expr> {
        let ty = self.type_of(expr)?;
        let same_type = |result: &DfExpr| self.type_of(result).as_ref() == Some(&ty);
        if ty.physical().is_none()
            || !case.when_then_expr.iter().all(|(_, then)| same_type(then))
            || !case.else_expr.as_ref().is_none_or(|otherwise| same_type(otherwise))
        {
            return self.foreign(expr);
        }
        let mut branches = Vec::with_capacity(case.when_then_expr.len());
        for (when, then) in &case.when_then_expr {
            let condition = match &case.expr {
                None => self.lower(when)?,
                Some(subject) if comparable(&self.type_of(subject)?, &self.type_of(when)?) => {
                    Expr::Compare(CompareOp::Equal, Box::new(self.lower(subject)?), Box::new(self.lower(when)?))
                }
                Some(_) => return self.foreign(expr),
            };
            branches.push((condition, self.lower(then)?));
        }
        let otherwise = match &case.else_expr {
            Some(otherwise) => Some(Box::new(self.lower(otherwise)?)),
            None => None,
        };
        Some(Expr::Case { branches, otherwise, ty })
    }

    /// The whole expression as one call into DataFusion, on the columns that it names.
    fn foreign(&self, expr: &DfExpr) -> Option<Expr> {
        if !can_run_anywhere(expr) {
            return None;
        }
        let ty = self.type_of(expr)?;
        let mut names: Vec<Column> = expr.column_refs().into_iter().cloned().collect();
        names.sort();
        let arguments = names.iter().map(|column| self.column(column)).collect::<Option<Vec<_>>>()?;
        let function = ScalarFunction::new(expr, self.schema, &names)?;
        Some(Expr::Foreign { function: Arc::new(function), arguments, ty })
    }
}

/// How much of an expression may stand in a plan twice. What nests deep would else double with each level.
const REPEATED_PARTS_MAX: usize = 32;

/// Whether an expression is small enough to stand in a plan twice.
fn is_small(expr: &Expr) -> bool {
    let (mut open, mut count) = (vec![expr], 0);
    while let Some(part) = open.pop() {
        count += 1;
        if count > REPEATED_PARTS_MAX {
            return false;
        }
        open.extend(part.children());
    }
    true
}

/// Whether it can be told from an expression alone that it is never NULL.
fn is_never_null(expr: &DfExpr) -> bool {
    match expr {
        DfExpr::Literal(value, _) => !value.is_null(),
        DfExpr::IsNull(_)
        | DfExpr::IsNotNull(_)
        | DfExpr::IsTrue(_)
        | DfExpr::IsNotTrue(_)
        | DfExpr::IsFalse(_)
        | DfExpr::IsNotFalse(_)
        | DfExpr::IsUnknown(_)
        | DfExpr::IsNotUnknown(_) => true,
        DfExpr::Not(inner) => is_never_null(inner),
        DfExpr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => true,
            Operator::And | Operator::Or => is_never_null(left) && is_never_null(right),
            _ => false,
        },
        _ => false,
    }
}

/// True where the expression depends on nothing but its row: no subquery, no outer row, no placeholder, no chance.
pub(crate) fn can_run_anywhere(expr: &DfExpr) -> bool {
    let mut free = true;
    let visited = expr.visit_nodes(&mut |expr| {
        free &= !matches!(
            expr,
            DfExpr::Exists(_)
                | DfExpr::InSubquery(_)
                | DfExpr::SetComparison(_)
                | DfExpr::ScalarSubquery(_)
                | DfExpr::OuterReferenceColumn(..)
                | DfExpr::Placeholder(_)
                | DfExpr::AggregateFunction(_)
                | DfExpr::WindowFunction(_)
                | DfExpr::Unnest(_)
                | DfExpr::GroupingSet(_)
        );
        if let DfExpr::ScalarFunction(function) = expr {
            free &= function.func.signature().volatility != Volatility::Volatile;
        }
        Ok(if free { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    visited.is_ok() && free
}

/// Types that our arithmetic and casts know.
pub(super) fn is_number(ty: &LogicalType) -> bool {
    matches!(
        ty,
        LogicalType::Int8
            | LogicalType::Int16
            | LogicalType::Int32
            | LogicalType::Int64
            | LogicalType::UInt8
            | LogicalType::UInt16
            | LogicalType::UInt32
            | LogicalType::UInt64
            | LogicalType::Float32
            | LogicalType::Float64
            | LogicalType::Decimal { .. }
    )
}

fn is_signed_integer(ty: &LogicalType) -> bool {
    matches!(ty, LogicalType::Int8 | LogicalType::Int16 | LogicalType::Int32 | LogicalType::Int64)
}

/// Casts between these round in their own way; the SQL library's way is kept.
fn float_and_decimal(from: &LogicalType, to: &LogicalType) -> bool {
    let is_decimal = matches!(from, LogicalType::Decimal { .. });
    from.is_float() && !to.is_float() || is_decimal && to.is_float()
}

/// Types whose values our comparisons order.
fn comparable(left: &LogicalType, right: &LogicalType) -> bool {
    match (left, right) {
        (LogicalType::Decimal { .. }, LogicalType::Decimal { .. }) => true,
        (LogicalType::Timestamp(a, _), LogicalType::Timestamp(b, _)) => a == b,
        (LogicalType::Interval | LogicalType::List(_) | LogicalType::Struct(_), _) => false,
        _ => left == right,
    }
}

/// The Arrow type in which a value of this Arrow type reaches foreign code.
pub(crate) fn argument_type(arrow: &DataType) -> Option<DataType> {
    Some(edge::arrow_type(&edge::logical_type(arrow)?))
}
