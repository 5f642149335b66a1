//! `VALUES (0.5), (1e30)`: constants beside a float are floats.
//!
//! Of a float and `0.5`, which is exact, the SQL library makes two decimals, and knows none for NaN, infinities and great
//! numbers; when its rules run, rows have their types already. So constants in a column with a cast to a float become DOUBLE here,
//! also beside a REAL. Expressions of decimals do not. Runs when parameters are in their places.

use super::rewrite::double;
use super::walk::walk_mut;
use crate::Error;
use datafusion::sql::sqlparser::ast::{self, VisitMut, VisitorMut};
use std::ops::ControlFlow;

/// Does so in all VALUES of a statement.
pub(crate) fn with_rows_of_floats<T: VisitMut>(sql: &mut T) {
    let walked = walk_mut(sql, &mut Rows);
    debug_assert!(walked.is_ok());
}

struct Rows;

impl VisitorMut for Rows {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Error> {
        within(&mut query.body);
        ControlFlow::Continue(())
    }
}

fn within(body: &mut ast::SetExpr) {
    let rows = match body {
        ast::SetExpr::Values(values) => &mut values.rows,
        ast::SetExpr::SetOperation { left, right, .. } => {
            within(left);
            return within(right);
        }
        _ => return,
    };
    for column in 0..rows.first().map_or(0, |row| row.content.len()) {
        let mut cells = rows.iter().filter_map(|row| row.content.get(column));
        if !cells.any(is_cast_to_float) {
            continue;
        }
        for cell in rows.iter_mut().filter_map(|row| row.content.get_mut(column)) {
            if let Some(digits) = digits_of_decimal(cell) {
                *cell = double(digits);
            }
        }
    }
}

/// Whether an expression is a cast to a float, or such a one with a sign.
pub(crate) fn is_cast_to_float(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Nested(inner) => is_cast_to_float(inner),
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus | ast::UnaryOperator::Plus, expr } => is_cast_to_float(expr),
        ast::Expr::Cast { data_type, array: false, .. } => matches!(
            data_type,
            ast::DataType::Double(_)
                | ast::DataType::DoublePrecision
                | ast::DataType::Float(_)
                | ast::DataType::Float4
                | ast::DataType::Float8
                | ast::DataType::Float32
                | ast::DataType::Float64
                | ast::DataType::Real
        ),
        _ => false,
    }
}

/// The digits, with their sign, of a constant that would be a decimal: it has a point, or no integer has room for it.
fn digits_of_decimal(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) if digits.parse::<u64>().is_err() => Some(digits.clone()),
            _ => None,
        },
        ast::Expr::Nested(inner) | ast::Expr::UnaryOp { op: ast::UnaryOperator::Plus, expr: inner } => {
            digits_of_decimal(inner)
        }
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => {
            let digits = digits_of_decimal(expr)?;
            Some(digits.strip_prefix('-').map_or_else(|| format!("-{digits}"), str::to_owned))
        }
        _ => None,
    }
}
