//! AND, OR and NOT of conditions that are simple themselves. All that is done holds where a condition is NULL.

use super::may_fail;
use crate::one_zero::make_one_zero;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};
use std::collections::{HashMap, HashSet};

/// So many comparisons of a column with constants are left as they are; more become a list. As many as DataFusion makes of a
/// list, or one would undo what the other does.
const COMPARISONS_MAX: usize = 3;

/// The operands of a chain of one operator: of `(a AND b) AND c`, `a`, `b` and `c`.
pub(super) fn split(expr: Expr, op: Operator) -> Vec<Expr> {
    let (mut parts, mut rest) = (Vec::new(), vec![expr]);
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::BinaryExpr(binary) if binary.op == op => rest.extend([*binary.right, *binary.left]),
            expr => parts.push(expr),
        }
    }
    parts
}

/// Conditions with AND or OR between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chain {
    All,
    Any,
}

impl Chain {
    /// That of AND, or of OR.
    pub(super) fn of(op: Operator) -> Chain {
        if op == Operator::And { Chain::All } else { Chain::Any }
    }

    fn op(self) -> Operator {
        match self {
            Chain::All => Operator::And,
            Chain::Any => Operator::Or,
        }
    }

    fn other(self) -> Chain {
        match self {
            Chain::All => Chain::Any,
            Chain::Any => Chain::All,
        }
    }

    /// What a chain of nothing is. Its opposite is what a chain is that contains it.
    fn of_nothing(self) -> bool {
        self == Chain::All
    }

    /// The condition that these make.
    pub(super) fn joined(self, parts: Vec<Expr>) -> Result<Expr> {
        let parts: Vec<Expr> = parts.into_iter().flat_map(|part| split(part, self.op())).collect();
        if parts.iter().any(|part| is_constant(part, !self.of_nothing())) {
            return Ok(lit(!self.of_nothing()));
        }
        let parts = parts.into_iter().filter(|part| !is_constant(part, self.of_nothing())).collect();
        let parts = self.with_lists(without_copies(parts));
        let (common, parts) = self.common(parts)?;
        if common.is_empty() {
            return Ok(self.between(parts));
        }
        let rest = self.joined(parts)?;
        self.other().joined(common.into_iter().chain([rest]).collect())
    }

    fn between(self, parts: Vec<Expr>) -> Expr {
        let between =
            |left: Expr, right: Expr| Expr::BinaryExpr(BinaryExpr::new(Box::new(left), self.op(), Box::new(right)));
        parts.into_iter().reduce(between).unwrap_or_else(|| lit(self.of_nothing()))
    }

    /// What is in each of these, and them without it: of `(a AND b) OR (a AND c)`, `a`, and `b` and `c`. What may fail stays
    /// behind the conditions that it stands behind.
    fn common(self, parts: Vec<Expr>) -> Result<(Vec<Expr>, Vec<Expr>)> {
        let inner = self.other();
        // Filters are pushed down by what stands between ANDs, of which ORs with something in common would be one.
        if self == Chain::All || parts.len() < 2 {
            return Ok((Vec::new(), parts));
        }
        let parts: Vec<Vec<Expr>> = parts.into_iter().map(|part| split(part, inner.op())).collect();
        let mut common: HashSet<&Expr> = parts[0].iter().filter(|expr| !expr.is_volatile()).collect();
        for part in &parts[1..] {
            let here: HashSet<&Expr> = part.iter().collect();
            common.retain(|expr| here.contains(expr));
        }
        let mut movable = HashSet::with_capacity(common.len());
        for expr in common {
            if !may_fail(expr)? {
                movable.insert(expr);
            }
        }
        if movable.is_empty() {
            return Ok((Vec::new(), parts.into_iter().map(|part| inner.between(part)).collect()));
        }
        let of_first: Vec<Expr> = parts[0].iter().filter(|expr| movable.contains(expr)).cloned().collect();
        let rest =
            |part: &Vec<Expr>| inner.between(part.iter().filter(|expr| !movable.contains(expr)).cloned().collect());
        let rest = parts.iter().map(rest).collect();
        Ok((of_first, rest))
    }

    /// Comparisons of a column with more than a few constants as a list, where the first of them is.
    fn with_lists(self, parts: Vec<Expr>) -> Vec<Expr> {
        let mut lists: HashMap<Column, List> = HashMap::new();
        for (place, part) in parts.iter().enumerate() {
            if let Some((column, values)) = self.of_list(part) {
                let list = lists.entry(column.clone()).or_default();
                list.places.push(place);
                list.values.extend(values.iter().cloned());
            }
        }
        lists.retain(|_, list| list.places.len() > 1 && list.values.len() > COMPARISONS_MAX);
        if lists.is_empty() {
            return parts;
        }
        let mut parts: Vec<Option<Expr>> = parts.into_iter().map(Some).collect();
        for (column, list) in lists {
            for &place in &list.places {
                parts[place] = None;
            }
            let values = without_copies(list.values);
            parts[list.places[0]] =
                Some(Expr::InList(InList::new(Box::new(Expr::Column(column)), values, self == Chain::All)));
        }
        parts.into_iter().flatten().collect()
    }

    /// The column and the constants of which it is one (OR), or none (AND).
    fn of_list(self, part: &Expr) -> Option<(&Column, &[Expr])> {
        let is_value = |expr: &Expr| matches!(expr, Expr::Literal(value, _) if !value.is_null());
        let (op, is_negated) = match self {
            Chain::All => (Operator::NotEq, true),
            Chain::Any => (Operator::Eq, false),
        };
        let (column, values) = match part {
            Expr::BinaryExpr(binary) if binary.op == op => (&binary.left, std::slice::from_ref(&*binary.right)),
            Expr::InList(list) if list.negated == is_negated => (&list.expr, &list.list[..]),
            _ => return None,
        };
        let Expr::Column(column) = &**column else { return None };
        values.iter().all(is_value).then_some((column, values))
    }
}

/// Where a column is compared with constants, and they.
#[derive(Debug, Default)]
struct List {
    places: Vec<usize>,
    values: Vec<Expr>,
}

/// Each once, unless it has another value each time.
fn without_copies(parts: Vec<Expr>) -> Vec<Expr> {
    let is_first: Vec<bool> = {
        let mut seen = HashSet::with_capacity(parts.len());
        parts.iter().map(|part| seen.insert(part) || part.is_volatile()).collect()
    };
    parts.into_iter().zip(is_first).filter_map(|(part, is_first)| is_first.then_some(part)).collect()
}

fn is_constant(expr: &Expr, value: bool) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Boolean(Some(constant)), _) if *constant == value)
}

/// What DataFusion made of a condition, with what it made of it between ANDs and ORs put together.
pub(super) fn regrouped(expr: Expr) -> Result<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
            Chain::of(op).joined(split(expr, op).into_iter().map(regrouped).collect::<Result<_>>()?)
        }
        Expr::Not(inner) => negated(regrouped(*inner)?),
        // Zero with a sign equals that without, but later rules look at their bits.
        Expr::BinaryExpr(mut binary) if binary.op.supports_propagation() => {
            make_one_zero(&mut binary.left);
            make_one_zero(&mut binary.right);
            Ok(Expr::BinaryExpr(binary))
        }
        Expr::InList(mut list) => {
            list.list.iter_mut().for_each(make_one_zero);
            Ok(Expr::InList(list))
        }
        expr => Ok(expr),
    }
}

/// NOT of a condition, with NOT further in where it can be.
pub(super) fn negated(expr: Expr) -> Result<Expr> {
    Ok(match expr {
        Expr::Literal(ScalarValue::Boolean(value), metadata) => {
            Expr::Literal(ScalarValue::Boolean(value.map(|value| !value)), metadata)
        }
        Expr::Not(inner) => *inner,
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
            let parts = split(expr, op).into_iter().map(negated).collect::<Result<_>>()?;
            Chain::of(op).other().joined(parts)?
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op.negate() {
            Some(op) => Expr::BinaryExpr(BinaryExpr { left, op, right }),
            None => Expr::Not(Box::new(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
        },
        Expr::Between(mut between) => {
            between.negated = !between.negated;
            Expr::Between(between)
        }
        Expr::IsNull(inner) => Expr::IsNotNull(inner),
        Expr::IsNotNull(inner) => Expr::IsNull(inner),
        Expr::IsTrue(inner) => Expr::IsNotTrue(inner),
        Expr::IsNotTrue(inner) => Expr::IsTrue(inner),
        Expr::IsFalse(inner) => Expr::IsNotFalse(inner),
        Expr::IsNotFalse(inner) => Expr::IsFalse(inner),
        Expr::IsUnknown(inner) => Expr::IsNotUnknown(inner),
        Expr::IsNotUnknown(inner) => Expr::IsUnknown(inner),
        // IN, LIKE and EXISTS have a NOT of their own.
        expr => !expr,
    })
}
