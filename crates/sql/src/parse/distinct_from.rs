//! `a IS DISTINCT FROM b AND c` as `(a IS DISTINCT FROM b) AND c`.
//!
//! The SQL parser takes all that follows FROM, to the end of the expression, for the right side, so that AND and OR would
//! be asked before IS. Such an expression is read anew from left to right: IS binds tighter than NOT, NOT tighter than
//! AND, and AND tighter than OR. What stands in parentheses, or has been read before the first IS, is one operand.

use super::walk::walk_mut;
use crate::Error;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, VisitMut, VisitorMut};
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::vec::IntoIter;

/// All such expressions of a statement.
pub(super) fn read_anew<T: VisitMut>(sql: &mut T) {
    let walked = walk_mut(sql, &mut Misread);
    debug_assert!(walked.is_ok());
}

struct Misread;

impl VisitorMut for Misread {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if is_misread(expr) {
            let mut words = Vec::new();
            write_down(expr.clone(), &mut words);
            if let Some(read) = disjunction(&mut words.into_iter().peekable()) {
                *expr = read;
            }
        }
        ControlFlow::Continue(())
    }
}

/// What an expression is made of, as it was written.
#[expect(clippy::large_enum_variant, reason = "there are few of them, for a moment")]
enum Word {
    Operand(Expr),
    Not,
    Is { distinct: bool },
    And,
    Or,
}

/// Whether the last IS DISTINCT FROM of an expression has AND or OR on its right side.
fn is_misread(mut expr: &Expr) -> bool {
    loop {
        expr = match expr {
            Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, right, .. } => right,
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => expr,
            Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => {
                if let Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. } = right.as_ref() {
                    return true;
                }
                right
            }
            _ => return false,
        }
    }
}

/// The words of an expression, of which what is last may have been misread.
fn write_down(expr: Expr, words: &mut Vec<Word>) {
    match expr {
        Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
            words.extend([Word::Operand(*left), word_of(&op)]);
            write_down(*right, words);
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            words.push(Word::Not);
            write_down(*expr, words);
        }
        Expr::IsDistinctFrom(left, right) => {
            words.extend([Word::Operand(*left), Word::Is { distinct: true }]);
            write_down_right_side(*right, words);
        }
        Expr::IsNotDistinctFrom(left, right) => {
            words.extend([Word::Operand(*left), Word::Is { distinct: false }]);
            write_down_right_side(*right, words);
        }
        operand => words.push(Word::Operand(operand)),
    }
}

/// The words of a right side: its first operand belongs to the IS before it.
fn write_down_right_side(mut expr: Expr, words: &mut Vec<Word>) {
    let mut more = Vec::new();
    while let Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } = expr {
        more.push((word_of(&op), *right));
        expr = *left;
    }
    match more.is_empty() {
        true => return write_down(expr, words),
        false => words.push(Word::Operand(expr)),
    }
    while let Some((word, right)) = more.pop() {
        words.push(word);
        match more.is_empty() {
            true => write_down(right, words),
            false => words.push(Word::Operand(right)),
        }
    }
}

fn word_of(op: &BinaryOperator) -> Word {
    if *op == BinaryOperator::And { Word::And } else { Word::Or }
}

type Words = Peekable<IntoIter<Word>>;

fn disjunction(words: &mut Words) -> Option<Expr> {
    let mut expr = conjunction(words)?;
    while words.next_if(|word| matches!(word, Word::Or)).is_some() {
        expr = joined(expr, BinaryOperator::Or, conjunction(words)?);
    }
    Some(expr)
}

fn conjunction(words: &mut Words) -> Option<Expr> {
    let mut expr = negation(words)?;
    while words.next_if(|word| matches!(word, Word::And)).is_some() {
        expr = joined(expr, BinaryOperator::And, negation(words)?);
    }
    Some(expr)
}

fn joined(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn negation(words: &mut Words) -> Option<Expr> {
    let mut count = 0;
    while words.next_if(|word| matches!(word, Word::Not)).is_some() {
        count += 1;
    }
    let mut expr = comparison(words)?;
    for _ in 0..count {
        expr = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) };
    }
    Some(expr)
}

fn comparison(words: &mut Words) -> Option<Expr> {
    let mut expr = operand(words)?;
    while let Some(Word::Is { distinct }) = words.next_if(|word| matches!(word, Word::Is { .. })) {
        let (left, right) = (Box::new(expr), Box::new(operand(words)?));
        expr = if distinct { Expr::IsDistinctFrom(left, right) } else { Expr::IsNotDistinctFrom(left, right) };
    }
    Some(expr)
}

fn operand(words: &mut Words) -> Option<Expr> {
    match words.next()? {
        Word::Operand(expr) => Some(expr),
        Word::Not => Some(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(operand(words)?) }),
        Word::Is { .. } | Word::And | Word::Or => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_expr;
    use super::Expr;

    /// With parentheses where AND, OR, NOT and IS have operands.
    fn read(text: &str) -> String {
        fn write(expr: &Expr) -> String {
            match expr {
                Expr::BinaryOp { left, op, right } => format!("({} {op} {})", write(left), write(right)),
                Expr::UnaryOp { op, expr } => format!("({op} {})", write(expr)),
                Expr::IsDistinctFrom(left, right) => format!("({} <> {})", write(left), write(right)),
                Expr::IsNotDistinctFrom(left, right) => format!("({} == {})", write(left), write(right)),
                Expr::Nested(inner) => format!("[{}]", write(inner)),
                other => other.to_string(),
            }
        }
        write(&parse_expr(text).unwrap())
    }

    #[test]
    fn and_and_or_come_after_is() {
        assert_eq!(read("a IS DISTINCT FROM b AND c"), "((a <> b) AND c)");
        assert_eq!(read("a IS NOT DISTINCT FROM b OR c AND d"), "((a == b) OR (c AND d))");
        assert_eq!(read("x AND a IS DISTINCT FROM b OR c"), "((x AND (a <> b)) OR c)");
        assert_eq!(read("x OR a IS DISTINCT FROM b AND c"), "(x OR ((a <> b) AND c))");
        assert_eq!(read("NOT a IS DISTINCT FROM b AND c"), "((NOT (a <> b)) AND c)");
        assert_eq!(read("a IS DISTINCT FROM b AND c AND d OR e"), "((((a <> b) AND c) AND d) OR e)");
        assert_eq!(read("a IS DISTINCT FROM b + 1 AND c = d"), "((a <> (b + 1)) AND (c = d))");
        assert_eq!(
            read("a IS DISTINCT FROM b AND NOT c IS NOT DISTINCT FROM d OR e"),
            "(((a <> b) AND (NOT (c == d))) OR e)"
        );
    }

    #[test]
    fn parentheses_stay() {
        assert_eq!(read("a IS DISTINCT FROM (b AND c)"), "(a <> [(b AND c)])");
        assert_eq!(read("(a IS DISTINCT FROM b OR c) AND d"), "([((a <> b) OR c)] AND d)");
        assert_eq!(read("a IS DISTINCT FROM b"), "(a <> b)");
    }
}
