//! Typed expressions over the columns of a batch.
//!
//! [`Expr`] is the tree that plans are made of; `compile` turns trees into a `program`, which a `machine` runs over
//! vectors. The other files are the operations, one idea each.

mod arithmetic;
mod case;
mod cast;
mod compare;
mod compile;
mod decimal;
mod decimal_bounds;
mod entries;
mod failing;
mod foreign;
mod guarded;
mod key;
mod like;
mod like_stretch;
mod logic;
mod machine;
mod membership;
mod numbering;
mod program;
mod runs;
mod slot;
mod text;
mod type_of;

pub(crate) use compare::{float_key, float_of_key, holds};
pub(crate) use compile::{compile, compile_condition};
pub(crate) use decimal::{digits, divide_rounded, power_of_ten};
pub(crate) use failing::always_fits;
pub(crate) use foreign::operand_to_arrow;
pub(crate) use like::{LikePattern, Shape};
pub(crate) use machine::{Frame, Machine};
pub(crate) use program::{Operand, Program};
pub use text::TextFunction;
pub(crate) use text::lengths;

use crate::join::KeyFilter;
use crate::{LogicalType, Result};
use arrow::array::ArrayRef;
use sinter_codec::{CompareOp, Scalar};
use std::sync::Arc;

/// Arithmetic of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArithmeticOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

impl ArithmeticOp {
    /// As SQL writes it.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            ArithmeticOp::Add => "+",
            ArithmeticOp::Subtract => "-",
            ArithmeticOp::Multiply => "*",
            ArithmeticOp::Divide => "/",
            ArithmeticOp::Modulo => "%",
        }
    }
}

/// Something that only code outside this room can evaluate, such as a scalar function of the SQL library.
pub trait Foreign: Send + Sync + std::fmt::Debug {
    /// One result per row from arguments that hold only rows the filter left alive, or, since it must depend on its
    /// arguments alone, entries of a dictionary, or one row of each run of equal ones.
    ///
    /// # Errors
    /// [`crate::Error::Foreign`] with the function's own message.
    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef>;
    /// For plans.
    fn text(&self) -> String;
}

/// An expression. SQL's three-valued logic throughout; sides of comparisons and arithmetic have been cast to the
/// types that the operator needs by whoever lowered the plan.
#[derive(Clone, Debug)]
pub enum Expr {
    /// By position in [`crate::Pipeline::columns`].
    Column(usize),
    /// A constant of a type.
    Literal(Scalar, LogicalType),
    /// Both sides have the same type, or are decimals of any scale.
    Compare(CompareOp, Box<Expr>, Box<Expr>),
    /// The result type is given: decimals carry the SQL library's precision and scale.
    Arithmetic {
        /// Which.
        op: ArithmeticOp,
        /// Left side.
        left: Box<Expr>,
        /// Right side.
        right: Box<Expr>,
        /// Type of the result.
        ty: LogicalType,
    },
    /// Three-valued AND over any number of parts. One that may fail is asked only where none before it, and none that
    /// cannot fail, is false.
    And(Vec<Expr>),
    /// Three-valued OR over any number of parts. One that may fail is asked only where none before it, and none that
    /// cannot fail, is true.
    Or(Vec<Expr>),
    /// Three-valued NOT.
    Not(Box<Expr>),
    /// Never NULL itself.
    IsNull(Box<Expr>),
    /// Never NULL itself.
    IsNotNull(Box<Expr>),
    /// `expr [NOT] IN (constants)`; `has_null` when NULL was among them.
    InList {
        /// The tested value.
        expr: Box<Expr>,
        /// The constants, without NULL, of the tested value's type.
        list: Vec<Scalar>,
        /// NULL was in the list: no match then means unknown.
        has_null: bool,
        /// NOT IN.
        negated: bool,
    },
    /// Whether the value is, or may be, a key of a join's build side; NULL of NULL. Not in plans: a join's table brings it.
    IsKey {
        /// The tested value, of the keys' type.
        expr: Box<Expr>,
        /// The keys.
        keys: Arc<KeyFilter>,
    },
    /// `expr [NOT] LIKE pattern`, `%` and `_` as wildcards, `\` escapes.
    Like {
        /// The text.
        expr: Box<Expr>,
        /// The pattern.
        pattern: String,
        /// NOT LIKE.
        negated: bool,
        /// ILIKE.
        case_insensitive: bool,
    },
    /// A function of a text; NULL of NULL.
    Text {
        /// Which.
        function: TextFunction,
        /// Of what.
        expr: Box<Expr>,
    },
    /// Between numeric types, and of decimals; anything else arrives as `Foreign`.
    Cast {
        /// What is cast.
        expr: Box<Expr>,
        /// To which type.
        ty: LogicalType,
    },
    /// `CASE WHEN c THEN r ... ELSE e END`; a result is computed only for the rows that take it.
    Case {
        /// Conditions with their results, in order.
        branches: Vec<(Expr, Expr)>,
        /// The result when none holds; NULL when absent.
        otherwise: Option<Box<Expr>>,
        /// Type of the result.
        ty: LogicalType,
    },
    /// Evaluated outside.
    Foreign {
        /// By whom.
        function: Arc<dyn Foreign>,
        /// On what.
        arguments: Vec<Expr>,
        /// Type of the result.
        ty: LogicalType,
    },
}
