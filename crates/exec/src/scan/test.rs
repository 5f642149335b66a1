//! Conditions that encoded blocks and zone maps can answer: a column against constants, and AND and OR of such.
//!
//! A WHERE clause keeps only rows for which it is true, so unknown counts as false here; below NOT that would be wrong,
//! and NOT is pushed to the leaves or not taken at all.

use crate::expr::{LikePattern, Shape, digits};
use crate::{Expr, LogicalType, ScanColumn};
use sinter_codec::{CompareOp, Physical, Predicate, Scalar};
use std::fmt;

/// True or false for every row, and both for whole groups where zone maps know.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// The column is present and passes, or with `negated` is present and does not.
    Column { column: usize, predicate: Predicate, negated: bool },
    /// The column is NULL, or with `negated` is not.
    Null { column: usize, negated: bool },
    /// All of them.
    All(Vec<Test>),
    /// One of them.
    Any(Vec<Test>),
    /// No row.
    Never,
}

impl Test {
    /// The test that an expression is; `None` where it is none.
    pub(super) fn new(expr: &Expr, columns: &[ScanColumn], types: &[LogicalType]) -> Option<Test> {
        let test = Reader { columns, types }.test(expr)?;
        Some(test)
    }

    /// Every leaf, in order.
    pub(super) fn leaves<'a>(&'a self, out: &mut Vec<&'a Test>) {
        match self {
            Test::All(parts) | Test::Any(parts) => parts.iter().for_each(|part| part.leaves(out)),
            Test::Column { .. } | Test::Null { .. } => out.push(self),
            Test::Never => {}
        }
    }

    /// Whether a leaf searches texts.
    pub(super) fn is_search(&self) -> bool {
        matches!(self, Test::Column { predicate: Predicate::Contains(_) | Predicate::Like(_), .. })
    }

    /// The columns that it reads.
    pub(super) fn columns(&self) -> Vec<usize> {
        let mut leaves = Vec::new();
        self.leaves(&mut leaves);
        let column = |leaf: &Test| match leaf {
            Test::Column { column, .. } | Test::Null { column, .. } => Some(*column),
            _ => None,
        };
        leaves.into_iter().filter_map(column).collect()
    }

    /// About how much a vector costs; only the order matters.
    pub(super) fn cost(&self, types: &[LogicalType]) -> u32 {
        match self {
            Test::Never => 0,
            Test::Null { .. } => 1,
            Test::All(parts) | Test::Any(parts) => parts.iter().map(|part| part.cost(types)).sum(),
            Test::Column { column, predicate, .. } => {
                let width = match types[*column].physical() {
                    Some(Physical::Bytes) => 8,
                    Some(Physical::I128 | Physical::F32 | Physical::F64) => 3,
                    _ => 2,
                };
                width
                    * match predicate {
                        Predicate::Compare(..) | Predicate::Between(..) => 1,
                        Predicate::In(_) | Predicate::Prefix(_) => 2,
                        Predicate::Contains(_) | Predicate::Like(_) => 8,
                    }
            }
        }
    }

    /// Both, as one test where they bound the same column.
    pub(super) fn merge(&self, other: &Test) -> Option<Test> {
        let (
            Test::Column { column, predicate: Predicate::Between(low, high), negated: false },
            Test::Column { column: same, predicate: Predicate::Between(other_low, other_high), negated: false },
        ) = (self, other)
        else {
            return None;
        };
        if column != same {
            return None;
        }
        let tighter = |a: &Scalar, b: &Scalar, want: std::cmp::Ordering| match (a, b) {
            (Scalar::Null, bound) | (bound, Scalar::Null) => bound.clone(),
            (a, b) => {
                if super::zone::order(a, b) == want {
                    a.clone()
                } else {
                    b.clone()
                }
            }
        };
        let low = tighter(low, other_low, std::cmp::Ordering::Greater);
        let high = tighter(high, other_high, std::cmp::Ordering::Less);
        Some(Test::Column { column: *column, predicate: Predicate::Between(low, high), negated: false })
    }
}

struct Reader<'a> {
    columns: &'a [ScanColumn],
    types: &'a [LogicalType],
}

impl Reader<'_> {
    fn test(&self, expr: &Expr) -> Option<Test> {
        match expr {
            Expr::Literal(Scalar::Null, _) => Some(Test::Never),
            Expr::Literal(Scalar::Int(value), LogicalType::Boolean) => {
                Some(if *value == 0 { Test::Never } else { Test::All(Vec::new()) })
            }
            Expr::Column(_) => Some(self.truth(expr, 1)?),
            Expr::Not(inner) => match &**inner {
                Expr::Column(_) => self.truth(inner, 0),
                Expr::IsNull(part) => self.null(part, true),
                Expr::IsNotNull(part) => self.null(part, false),
                Expr::Not(inner) => self.test(inner),
                Expr::Compare(op, left, right) => self.compare(opposite(*op), left, right),
                Expr::Like { expr, pattern, negated, case_insensitive } => {
                    self.like(expr, pattern, !negated, *case_insensitive)
                }
                Expr::InList { expr, list, has_null, negated } => self.in_list(expr, list, *has_null, !negated),
                Expr::And(parts) => self.parts(&parts.iter().cloned().map(not).collect::<Vec<_>>()).map(Test::Any),
                Expr::Or(parts) => self.parts(&parts.iter().cloned().map(not).collect::<Vec<_>>()).map(Test::All),
                _ => None,
            },
            Expr::And(parts) => self.parts(parts).map(Test::All),
            Expr::Or(parts) => self.parts(parts).map(Test::Any),
            Expr::IsNull(inner) => self.null(inner, false),
            Expr::IsNotNull(inner) => self.null(inner, true),
            Expr::Compare(op, left, right) => self.compare(*op, left, right),
            Expr::InList { expr, list, has_null, negated } => self.in_list(expr, list, *has_null, *negated),
            Expr::Like { expr, pattern, negated, case_insensitive } => {
                self.like(expr, pattern, *negated, *case_insensitive)
            }
            _ => None,
        }
    }

    fn parts(&self, parts: &[Expr]) -> Option<Vec<Test>> {
        parts.iter().map(|part| self.test(part)).collect()
    }

    /// A column of the table, of a plain type: those are blocks.
    fn column(&self, expr: &Expr) -> Option<(usize, &LogicalType)> {
        let Expr::Column(column) = expr else { return None };
        let ty = self.types.get(*column)?;
        ty.physical()?;
        matches!(self.columns.get(*column)?, ScanColumn::Table(_)).then_some((*column, ty))
    }

    fn truth(&self, expr: &Expr, value: i128) -> Option<Test> {
        let (column, ty) = self.column(expr)?;
        let predicate = Predicate::Compare(CompareOp::Equal, Scalar::Int(value));
        (*ty == LogicalType::Boolean).then_some(Test::Column { column, predicate, negated: false })
    }

    fn null(&self, expr: &Expr, negated: bool) -> Option<Test> {
        let (column, _) = self.column(expr)?;
        Some(Test::Null { column, negated })
    }

    fn compare(&self, op: CompareOp, left: &Expr, right: &Expr) -> Option<Test> {
        match (left, right) {
            (Expr::Column(_), Expr::Literal(scalar, ty)) => self.compare_with(op, left, scalar, ty),
            (Expr::Literal(scalar, ty), Expr::Column(_)) => self.compare_with(op.mirrored(), right, scalar, ty),
            _ => None,
        }
    }

    fn compare_with(&self, op: CompareOp, column: &Expr, scalar: &Scalar, ty: &LogicalType) -> Option<Test> {
        let (column, column_type) = self.column(column)?;
        if scalar.is_null() {
            return Some(Test::Never);
        }
        let (op, scalar) = match (digits(column_type), digits(ty), scalar) {
            (Some((_, to)), Some((_, from)), Scalar::Int(value)) if from != to => match at_scale(*value, from, to)? {
                (value, true) => (op, Scalar::Int(value)),
                // Between two numbers of the column's scale, of which `value` is the lower one.
                (value, false) => match op {
                    CompareOp::Equal => return Some(Test::Never),
                    CompareOp::NotEqual => return Some(Test::Null { column, negated: true }),
                    CompareOp::Less | CompareOp::LessOrEqual => (CompareOp::LessOrEqual, Scalar::Int(value)),
                    CompareOp::Greater | CompareOp::GreaterOrEqual => (CompareOp::Greater, Scalar::Int(value)),
                },
            },
            (Some(_), Some(_), Scalar::Int(_)) => (op, scalar.clone()),
            _ if column_type.physical() == ty.physical() && fits(scalar, column_type) => (op, scalar.clone()),
            _ => return None,
        };
        Some(Test::Column { column, predicate: bounded(op, scalar), negated: false })
    }

    fn in_list(&self, expr: &Expr, list: &[Scalar], has_null: bool, negated: bool) -> Option<Test> {
        let (column, ty) = self.column(expr)?;
        if negated && has_null {
            return Some(Test::Never);
        }
        if !list.iter().all(|scalar| fits(scalar, ty)) {
            return None;
        }
        Some(Test::Column { column, predicate: Predicate::In(list.to_vec()), negated })
    }

    fn like(&self, expr: &Expr, pattern: &str, negated: bool, case_insensitive: bool) -> Option<Test> {
        let (column, ty) = self.column(expr)?;
        if !matches!(ty, LogicalType::Utf8 | LogicalType::Binary) {
            return None;
        }
        let pattern = LikePattern::new(pattern, case_insensitive);
        let predicate = match pattern.shape()? {
            Shape::Anything if negated => return Some(Test::Never),
            Shape::Anything => return Some(Test::Null { column, negated: true }),
            Shape::Exact(text) => Predicate::Compare(CompareOp::Equal, Scalar::Bytes(text.clone())),
            Shape::Prefix(text) => Predicate::Prefix(text.clone()),
            Shape::Contains(finder) => Predicate::Contains(finder.needle().to_vec()),
            Shape::Suffix(_) | Shape::Stretches { .. } => Predicate::Like(pattern.on_encoded()?),
            // What is no text has no characters for `_`, which only values of this type are known to be.
            Shape::General(_) if *ty == LogicalType::Utf8 => Predicate::Like(pattern.on_encoded()?),
            Shape::General(_) => return None,
        };
        Some(Test::Column { column, predicate, negated })
    }
}

fn not(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}

/// True for a constant that the codec can compare with values of the type.
fn fits(scalar: &Scalar, ty: &LogicalType) -> bool {
    match scalar {
        Scalar::Int(_) => ty.physical().is_some_and(Physical::is_integer),
        Scalar::Float(_) => ty.is_float(),
        Scalar::Bytes(_) => ty.physical() == Some(Physical::Bytes),
        Scalar::Null => false,
    }
}

/// The number at another scale, and whether that is exact; rounded down where it is not. `None` where it has no room.
fn at_scale(value: i128, from: i8, to: i8) -> Option<(i128, bool)> {
    let power = 10i128.checked_pow((i32::from(to) - i32::from(from)).unsigned_abs())?;
    if to > from {
        return Some((value.checked_mul(power)?, true));
    }
    Some((value.div_euclid(power), value.rem_euclid(power) == 0))
}

/// A comparison as a range where it is one, so that two of them can become one.
fn bounded(op: CompareOp, scalar: Scalar) -> Predicate {
    match (op, scalar) {
        (CompareOp::GreaterOrEqual, scalar) => Predicate::Between(scalar, Scalar::Null),
        (CompareOp::LessOrEqual, scalar) => Predicate::Between(Scalar::Null, scalar),
        (CompareOp::Greater, Scalar::Int(value)) if value < i128::MAX => {
            Predicate::Between(Scalar::Int(value + 1), Scalar::Null)
        }
        (CompareOp::Less, Scalar::Int(value)) if value > i128::MIN => {
            Predicate::Between(Scalar::Null, Scalar::Int(value - 1))
        }
        (op, scalar) => Predicate::Compare(op, scalar),
    }
}

fn opposite(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Equal => CompareOp::NotEqual,
        CompareOp::NotEqual => CompareOp::Equal,
        CompareOp::Less => CompareOp::GreaterOrEqual,
        CompareOp::LessOrEqual => CompareOp::Greater,
        CompareOp::Greater => CompareOp::LessOrEqual,
        CompareOp::GreaterOrEqual => CompareOp::Less,
    }
}

/// A text in a pattern and in quotes.
fn literally(text: &[u8]) -> String {
    let mut pattern = String::new();
    for symbol in String::from_utf8_lossy(text).chars() {
        match symbol {
            '%' | '_' | '\\' => pattern.push('\\'),
            '\'' => pattern.push('\''),
            _ => {}
        }
        pattern.push(symbol);
    }
    pattern
}

/// Writes a test with names for the columns.
pub(super) struct Named<'a>(pub(super) &'a Test, pub(super) &'a dyn Fn(usize) -> (String, LogicalType));

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Named(test, name) = self;
        let list = |f: &mut fmt::Formatter<'_>, parts: &[Test], word: &str| {
            f.write_str("(")?;
            for (index, part) in parts.iter().enumerate() {
                write!(f, "{}{}", if index == 0 { "" } else { word }, Named(part, name))?;
            }
            f.write_str(")")
        };
        match test {
            Test::Never => f.write_str("FALSE"),
            Test::Null { column, negated } => {
                write!(f, "{} IS {}NULL", name(*column).0, if *negated { "NOT " } else { "" })
            }
            Test::All(parts) if parts.is_empty() => f.write_str("TRUE"),
            Test::All(parts) => list(f, parts, " AND "),
            Test::Any(parts) => list(f, parts, " OR "),
            Test::Column { column, predicate, negated } => {
                let (name, ty) = name(*column);
                let text = |scalar: &Scalar| crate::explain::scalar_text(scalar, &ty);
                let not = if *negated { "NOT " } else { "" };
                match predicate {
                    Predicate::Compare(op, scalar) => {
                        write!(f, "{not}{name} {} {}", crate::explain::compare_sign(*op), text(scalar))
                    }
                    Predicate::Between(Scalar::Null, high) => write!(f, "{name} <= {}", text(high)),
                    Predicate::Between(low, Scalar::Null) => write!(f, "{name} >= {}", text(low)),
                    Predicate::Between(low, high) => write!(f, "{name} BETWEEN {} AND {}", text(low), text(high)),
                    Predicate::In(list) => {
                        let list: Vec<String> = list.iter().map(text).collect();
                        write!(f, "{name} {not}IN ({})", list.join(", "))
                    }
                    Predicate::Prefix(text) => write!(f, "{name} {not}LIKE '{}%'", literally(text)),
                    Predicate::Contains(text) => write!(f, "{name} {not}LIKE '%{}%'", literally(text)),
                    Predicate::Like(pattern) => {
                        write!(f, "{name} {not}LIKE '{}'", pattern.to_string().replace('\'', "''"))
                    }
                }
            }
        }
    }
}
