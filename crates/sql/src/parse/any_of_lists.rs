//! `x = ANY(ARRAY[1, 2])` as `x IN (1, 2)`, and `x = ANY(v)` of a column as `NOT x <> ALL(v)`: the same, and what the SQL
//! library knows that a NULL among the elements may be anything. It writes ALL as a CASE that has both sides several times, so
//! that only plain ones become one.

use super::walk::each_expr_mut;
use crate::Result;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, VisitMut};

/// All comparisons with ANY of such lists; others, and those with ANY of a query, stay.
///
/// # Errors
/// None.
pub(super) fn written_out<T: VisitMut>(sql: &mut T) -> Result<()> {
    each_expr_mut(sql, &mut |expr| {
        if let Expr::AnyOp { left, compare_op, right, .. } = expr {
            let other = match (right.as_mut(), negated(compare_op)) {
                (Expr::Array(list), _) if *compare_op == BinaryOperator::Eq && !list.elem.is_empty() => {
                    Expr::InList { expr: left.clone(), list: std::mem::take(&mut list.elem), negated: false }
                }
                (list, Some(compare_op)) if is_plain(list) && (is_plain(left) || matches!(**left, Expr::Value(_))) => {
                    let all = Expr::AllOp { left: left.clone(), compare_op, right: right.clone() };
                    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(all))) }
                }
                _ => return Ok(()),
            };
            *expr = Expr::Nested(Box::new(other));
        }
        Ok(())
    })
}

/// A column, in parentheses or not.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => true,
        Expr::Nested(inner) => is_plain(inner),
        _ => false,
    }
}

fn negated(op: &BinaryOperator) -> Option<BinaryOperator> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    Some(match op {
        Eq => NotEq,
        NotEq => Eq,
        Lt => GtEq,
        LtEq => Gt,
        Gt => LtEq,
        GtEq => Lt,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse_expr;

    #[test]
    fn lists_that_are_written_out_or_columns_are_asked_otherwise() {
        for (any, wanted) in [
            ("a = ANY(ARRAY[1, NULL])", "(a IN (1, NULL))"),
            ("a = ANY([1, 2])", "(a IN (1, 2))"),
            ("1 >= ANY(v)", "(NOT (1 < ALL(v)))"),
            ("a + 1 = ANY(v)", "a + 1 = ANY(v)"),
            ("a = ANY(f(v))", "a = ANY(f(v))"),
        ] {
            assert_eq!(parse_expr(any).unwrap().to_string(), wanted);
        }
    }
}
