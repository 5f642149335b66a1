//! The rows of VALUES on their way into a table.

use datafusion::sql::sqlparser::ast;

/// `VALUES (1), ('NaN')`: the SQL library types a column by its own rows and finds no type for numbers beside text. In
/// such a column every constant becomes text here, which the table's type then reads.
pub(super) fn write_mixed_columns_as_text(values: &mut ast::Values) {
    let width = values.rows.iter().map(|row| row.content.len()).max().unwrap_or(0);
    for column in 0..width {
        let cells = || values.rows.iter().filter_map(|row| row.content.get(column));
        let has_text = cells().any(|cell| matches!(constant(cell), Some(Constant::Text)));
        let has_other = cells().any(|cell| matches!(constant(cell), Some(Constant::Other(_))));
        if !(has_text && has_other) {
            continue;
        }
        for cell in values.rows.iter_mut().filter_map(|row| row.content.get_mut(column)) {
            if let Some(Constant::Other(text)) = constant(cell) {
                *cell = ast::Expr::value(ast::Value::SingleQuotedString(text));
            }
        }
    }
}

enum Constant {
    Text,
    /// A number or truth value, as text.
    Other(String),
}

fn constant(expr: &ast::Expr) -> Option<Constant> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => Some(Constant::Other(digits.clone())),
            ast::Value::Boolean(value) => Some(Constant::Other(value.to_string())),
            ast::Value::SingleQuotedString(_) => Some(Constant::Text),
            _ => None,
        },
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => match constant(expr)? {
            Constant::Other(digits) if digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
                Some(Constant::Other(format!("-{digits}")))
            }
            _ => None,
        },
        // As numbers with an exponent and floating parameters are written.
        ast::Expr::Cast { data_type: ast::DataType::Double(_) | ast::DataType::DoublePrecision, expr, .. } => {
            match expr.as_ref() {
                ast::Expr::Value(value) => match &value.value {
                    ast::Value::SingleQuotedString(digits) => Some(Constant::Other(digits.clone())),
                    _ => None,
                },
                _ => None,
            }
        }
        _ => None,
    }
}
