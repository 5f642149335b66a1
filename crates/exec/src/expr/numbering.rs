//! Value numbering: expressions that compute the same value get the same number, so that a program computes it once.
//!
//! Cocke and Schwartz, "Programming Languages and Their Compilers", 1970; here over trees. Operands are numbered before
//! what is made of them, so a node is told from all others by its kind, its parameters and the numbers of its operands,
//! whatever stands below those: the work is linear in the size of the expressions. The numbers belong to the
//! expressions, not to a program's registers, because the branches of CASE are programs of their own and yet have to be
//! compared with those of another CASE.

use super::{ArithmeticOp, Expr, TextFunction};
use crate::LogicalType;
use crate::join::KeyFilter;
use sinter_codec::{CompareOp, Scalar};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

/// Which value a node computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ValueNumber(usize);

/// The numbers of all nodes of some expressions. An AND within an AND has none, see [`Expr::children`].
pub(super) struct Numbering<'a> {
    numbers: HashMap<Node<'a>, ValueNumber>,
    /// By number.
    values: Vec<Value>,
}

/// A node, by its address.
struct Node<'a>(&'a Expr);

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Node<'_> {}

impl Hash for Node<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

/// What is known of a value.
#[derive(Clone, Copy)]
struct Value {
    columns: Columns,
    /// It costs enough, or is made of values wide enough, that a dictionary's entries are the better place for it.
    worth_entries: bool,
}

/// The columns that a value is made of.
#[derive(Clone, Copy, PartialEq)]
enum Columns {
    None,
    One(usize),
    Many,
}

/// All that tells a value from others.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a> {
    kind: Kind<'a>,
    operands: Vec<ValueNumber>,
}

/// What a node does with its operands, with all parameters.
#[derive(PartialEq, Eq, Hash)]
enum Kind<'a> {
    Column(usize),
    Literal(Constant<'a>, &'a LogicalType),
    Compare(Discriminant<CompareOp>),
    Arithmetic(ArithmeticOp, &'a LogicalType),
    And,
    Or,
    Not,
    IsNull,
    IsNotNull,
    In {
        list: Vec<Constant<'a>>,
        has_null: bool,
        negated: bool,
    },
    Like {
        pattern: &'a str,
        negated: bool,
        case_insensitive: bool,
    },
    /// By identity.
    IsKey(*const KeyFilter),
    Text(TextFunction),
    Cast(&'a LogicalType),
    /// With an ELSE where the number of operands is odd.
    Case(&'a LogicalType),
    /// By identity: the text of a function need not tell it from another one.
    Foreign(*const (), &'a LogicalType),
}

/// A scalar, floats by their bits.
struct Constant<'a>(&'a Scalar);

impl PartialEq for Constant<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.0, other.0) {
            (Scalar::Float(left), Scalar::Float(right)) => left.to_bits() == right.to_bits(),
            (left, right) => left == right,
        }
    }
}

impl Eq for Constant<'_> {}

impl Hash for Constant<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self.0).hash(state);
        match self.0 {
            Scalar::Null => {}
            Scalar::Int(value) => value.hash(state),
            Scalar::Float(value) => value.to_bits().hash(state),
            Scalar::Bytes(bytes) => bytes.hash(state),
        }
    }
}

impl<'a> Numbering<'a> {
    /// Numbers all nodes, with one list instead of recursion.
    pub(super) fn new(exprs: &[&'a Expr], column_types: &[LogicalType]) -> Numbering<'a> {
        let mut nodes = exprs.to_vec();
        let mut next = 0;
        while let Some(&node) = nodes.get(next) {
            nodes.extend(node.children());
            next += 1;
        }
        let mut numbering = Numbering { numbers: HashMap::with_capacity(nodes.len()), values: Vec::new() };
        let mut known = HashMap::new();
        // Every node stands before those that it is made of.
        for node in nodes.into_iter().rev() {
            let operands: Vec<ValueNumber> = node.children().into_iter().map(|child| numbering.number(child)).collect();
            let value = numbering.value(node, &operands, column_types);
            let number = *known.entry(Key { kind: kind(node), operands }).or_insert_with(|| {
                numbering.values.push(value);
                ValueNumber(numbering.values.len() - 1)
            });
            numbering.numbers.insert(Node(node), number);
        }
        numbering
    }

    /// The number of one of the nodes.
    ///
    /// # Panics
    /// For nodes of other expressions.
    pub(super) fn number(&self, node: &Expr) -> ValueNumber {
        self.numbers[&Node(node)]
    }

    /// The one column that is read by a node whose place is a dictionary's entries.
    pub(super) fn entries_column(&self, node: &Expr) -> Option<usize> {
        match self.values[self.number(node).0] {
            Value { columns: Columns::One(column), worth_entries: true } => Some(column),
            _ => None,
        }
    }

    fn value(&self, node: &Expr, operands: &[ValueNumber], column_types: &[LogicalType]) -> Value {
        let operands = || operands.iter().map(|operand| self.values[operand.0]);
        let columns = match node {
            Expr::Column(column) => Columns::One(*column),
            _ => operands().fold(Columns::None, |all, operand| all.and(operand.columns)),
        };
        let is_text = |column: usize| matches!(column_types.get(column), Some(LogicalType::Utf8 | LogicalType::Binary));
        let worth_entries = match node {
            Expr::Column(_) | Expr::Literal(..) | Expr::IsNull(_) | Expr::IsNotNull(_) => false,
            Expr::Foreign { .. } | Expr::Like { .. } | Expr::Text { .. } => true,
            Expr::InList { .. } | Expr::IsKey { .. } => true,
            _ if matches!(columns, Columns::One(column) if is_text(column)) => true,
            _ => operands().any(|operand| operand.worth_entries),
        };
        Value { columns, worth_entries }
    }
}

impl Columns {
    fn and(self, other: Columns) -> Columns {
        match (self, other) {
            (Columns::None, columns) | (columns, Columns::None) => columns,
            (left, right) if left == right => left,
            _ => Columns::Many,
        }
    }
}

fn kind(node: &Expr) -> Kind<'_> {
    match node {
        Expr::Column(column) => Kind::Column(*column),
        Expr::Literal(scalar, ty) => Kind::Literal(Constant(scalar), ty),
        Expr::Compare(op, ..) => Kind::Compare(discriminant(op)),
        Expr::Arithmetic { op, ty, .. } => Kind::Arithmetic(*op, ty),
        Expr::And(_) => Kind::And,
        Expr::Or(_) => Kind::Or,
        Expr::Not(_) => Kind::Not,
        Expr::IsNull(_) => Kind::IsNull,
        Expr::IsNotNull(_) => Kind::IsNotNull,
        Expr::InList { list, has_null, negated, .. } => {
            Kind::In { list: list.iter().map(Constant).collect(), has_null: *has_null, negated: *negated }
        }
        Expr::Like { pattern, negated, case_insensitive, .. } => {
            Kind::Like { pattern, negated: *negated, case_insensitive: *case_insensitive }
        }
        Expr::IsKey { keys, .. } => Kind::IsKey(Arc::as_ptr(keys)),
        Expr::Text { function, .. } => Kind::Text(*function),
        Expr::Cast { ty, .. } => Kind::Cast(ty),
        Expr::Case { ty, .. } => Kind::Case(ty),
        Expr::Foreign { function, ty, .. } => Kind::Foreign(Arc::as_ptr(function).cast(), ty),
    }
}
