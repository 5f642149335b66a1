//! `(a, b) < (c, d)` as `a < c OR a = c AND b < d`.
//!
//! The SQL library compares rows as values in one order of all, in which NULL is one of them; in SQL a comparison that a
//! NULL decides is NULL. `=` becomes an AND of `=`, of which joins find their keys, `<>` an OR.

use super::walk::{each_expr_mut, has_expr};
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, VisitMut};

/// Fields of rows that are compared, at most: each is two levels of AND and OR.
const FIELDS_MAX: usize = 32;

/// Parts of such a field, at most: all but the last are written twice.
const PARTS_MAX: usize = 1000;

/// All comparisons of rows, BETWEEN included.
///
/// # Errors
/// [`Error::Sql`] for rows of very many fields.
pub(super) fn by_field<T: VisitMut>(sql: &mut T) -> Result<()> {
    each_expr_mut(sql, &mut |expr| {
        let compared = match expr {
            Expr::BinaryOp { left, op, right } => compared(left, op, right)?,
            Expr::Between { expr, negated, low, high } => {
                let bounds = [(&BinaryOperator::GtEq, &*low), (&BinaryOperator::LtEq, &*high)];
                let [low, high] = bounds.map(|(op, bound)| compared(expr, op, bound));
                match (low?, high?) {
                    (Some(low), Some(high)) => {
                        let is_between = both(nested(low), BinaryOperator::And, nested(high));
                        Some(if *negated { negation(is_between) } else { is_between })
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        if let Some(compared) = compared {
            *expr = nested(compared);
        }
        Ok(())
    })
}

/// The comparison of two rows of equally many fields, field by field; `None` for all else.
fn compared(left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Option<Expr>> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    let (Some(left), Some(right)) = (fields(left), fields(right)) else { return Ok(None) };
    let strict = match op {
        Eq | NotEq => op,
        Lt | LtEq => &Lt,
        Gt | GtEq => &Gt,
        _ => return Ok(None),
    };
    if left.len() != right.len() {
        return Ok(None);
    }
    if left.len() > FIELDS_MAX {
        return Err(Error::Sql(format!("rows that are compared have {FIELDS_MAX} fields at most, not {}", left.len())));
    }
    if left.iter().chain(right).any(is_large) {
        return Err(Error::Sql(format!(
            "rows that are compared have fields of {PARTS_MAX} parts at most; compute them in a subquery"
        )));
    }
    let by = |op: &BinaryOperator, field: usize| match compared(&left[field], op, &right[field])? {
        Some(inner) => Ok(nested(inner)),
        None => Ok::<_, Error>(both(operand(&left[field]), op.clone(), operand(&right[field]))),
    };
    let last = left.len() - 1;
    match op {
        Eq | NotEq => {
            let with = if *op == Eq { And } else { Or };
            (1..=last).try_fold(by(op, 0)?, |before, field| Ok(both(before, with.clone(), by(op, field)?))).map(Some)
        }
        _ => {
            let first = by(op, last)?;
            let with = |rest: Expr, field: usize| {
                let equal = both(by(&Eq, field)?, And, nested(rest));
                Ok::<_, Error>(both(by(strict, field)?, Or, nested(equal)))
            };
            (0..last).rev().try_fold(first, with).map(Some)
        }
    }
}

/// Whether a field has so many parts that writing it twice, and what is around it twice, could come to very many.
fn is_large(field: &Expr) -> bool {
    let mut parts = 0;
    has_expr(field, &mut |_| {
        parts += 1;
        parts > PARTS_MAX
    })
}

/// The fields of a row, in parentheses or more of them.
fn fields(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Tuple(fields) if !fields.is_empty() => Some(fields),
        Expr::Nested(inner) => fields(inner),
        _ => None,
    }
}

/// A field that can stand beside an operator, also as text.
fn operand(field: &Expr) -> Expr {
    match field {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) | Expr::Function(_) | Expr::Nested(_) => {
            field.clone()
        }
        _ => nested(field.clone()),
    }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn both(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn negation(expr: Expr) -> Expr {
    use datafusion::sql::sqlparser::ast::UnaryOperator::Not;
    Expr::UnaryOp { op: Not, expr: Box::new(nested(expr)) }
}

#[cfg(test)]
mod tests {
    use super::super::{parse, parse_expr};

    #[test]
    fn rows_are_compared_by_their_fields() {
        for (rows, wanted) in [
            ("(a, b) = (1, 2)", "(a = 1 AND b = 2)"),
            ("(a, b) <> (1, 2)", "(a <> 1 OR b <> 2)"),
            ("(a, b, c) < (1, 2, 3)", "(a < 1 OR (a = 1 AND (b < 2 OR (b = 2 AND (c < 3)))))"),
            ("(a, b) >= ((1, 2))", "(a > 1 OR (a = 1 AND (b >= 2)))"),
            (
                "(a, b) NOT BETWEEN (1, 2) AND (3, 4)",
                "(NOT ((a > 1 OR (a = 1 AND (b >= 2))) AND (a < 3 OR (a = 3 AND (b <= 4)))))",
            ),
            ("(a OR b, c) = (d, e)", "((a OR b) = d AND c = e)"),
            ("(a, b, c) = (1, 2, 3)", "(a = 1 AND b = 2 AND c = 3)"),
            ("(a, (b, c)) < (1, (2, 3))", "(a < 1 OR (a = 1 AND ((b < 2 OR (b = 2 AND (c < 3))))))"),
            ("a < 1", "a < 1"),
        ] {
            assert_eq!(parse_expr(rows).unwrap().to_string(), wanted);
        }
        let row = vec!["1"; 40].join(", ");
        assert!(parse(&format!("SELECT ({row}) < ({row})")).unwrap_err().to_string().contains("32 fields at most"));
        // Nested, they would double at each level.
        let nested = (0..40).fold("true".to_owned(), |inner, _| format!("({inner}, true) < (true, false)"));
        assert!(parse(&format!("SELECT {nested}")).unwrap_err().to_string().contains("parts at most"));
    }
}
