//! The rows of VALUES on their way into a table, and columns' defaults.

use crate::parse::{is_cast_to_float, parse_expr, walk_mut};
use crate::{Error, Result};
use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, StringArray};
use arrow::datatypes::{Field, Schema};
use datafusion::sql::sqlparser::ast;
use sinter_column::{ColumnSchema, TableSchema};
use sinter_exec::LogicalType;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The word DEFAULT in the place of a value.
pub(super) fn is_default(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(ident)
        if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

/// What DEFAULT stands for: NULL where nothing was declared.
pub(super) fn default_of(column: &ColumnSchema) -> Result<ast::Expr> {
    match &column.default {
        Some(default) => parse_expr(default),
        None => Ok(ast::Expr::value(ast::Value::Null)),
    }
}

/// Puts the defaults of the columns `given` in the places of DEFAULT.
pub(super) fn write_defaults(values: &mut ast::Values, schema: &TableSchema, given: &[usize]) -> Result<()> {
    for row in &mut values.rows {
        for (cell, &column) in row.content.iter_mut().zip(given) {
            if is_default(cell) {
                *cell = default_of(&schema.columns[column])?;
            }
        }
    }
    Ok(())
}

/// A declared default as the text that the catalog keeps.
///
/// # Errors
/// [`Error::Sql`] where the text would not read as what was written.
pub(super) fn default_text(column: &str, default: &ast::Expr) -> Result<String> {
    let mut default = default.clone();
    // The SQL parser prints quotes behind backslashes as they are; escaped literals it prints right.
    let walked = walk_mut(&mut default, &mut EscapeTexts);
    debug_assert!(walked.is_ok());
    let text = default.to_string();
    match parse_expr(&text) {
        Ok(read) if read == default => Ok(text),
        _ => {
            Err(Error::Sql(format!("column '{column}': the default {text} cannot be kept; write it in simpler words")))
        }
    }
}

struct EscapeTexts;

impl ast::VisitorMut for EscapeTexts {
    type Break = Error;

    fn pre_visit_value(&mut self, value: &mut ast::ValueWithSpan) -> ControlFlow<Error> {
        if let ast::Value::SingleQuotedString(text) = &value.value
            && text.contains(['\'', '\\'])
        {
            value.value = ast::Value::EscapedStringLiteral(text.clone());
        }
        ControlFlow::Continue(())
    }
}

/// `VALUES (1), ('NaN')`: the SQL library types a column by its own rows, and text beside numbers as numbers. In such a column
/// every constant becomes text here, which the table's type then reads.
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

/// `VALUES (0.285), (1e1)` on their way into a column of decimals: floats become such decimals by themselves, so that others
/// stay exact.
pub(super) fn write_floats_as_decimals(values: &mut ast::Values, schema: &TableSchema, given: &[usize]) {
    for (column, &place) in given.iter().enumerate() {
        let LogicalType::Decimal { precision, scale } = schema.columns[place].ty else { continue };
        let mut cells = values.rows.iter().filter_map(|row| row.content.get(column));
        if cells.all(is_cast_to_float) {
            continue;
        }
        let info = ast::ExactNumberInfo::PrecisionAndScale(precision.into(), scale.into());
        for cell in
            values.rows.iter_mut().filter_map(|row| row.content.get_mut(column)).filter(|cell| is_cast_to_float(cell))
        {
            let float = std::mem::replace(cell, ast::Expr::value(ast::Value::Null));
            *cell = ast::Expr::Cast {
                kind: ast::CastKind::Cast,
                expr: Box::new(float),
                data_type: ast::DataType::Decimal(info),
                format: None,
                array: false,
            };
        }
    }
}

/// The VALUES that a query is, if there is nothing around them that could change their rows.
pub(super) fn nothing_but_values(query: &ast::Query) -> Option<&ast::Values> {
    let ast::Query {
        with: None,
        body,
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = query
    else {
        return None;
    };
    match body.as_ref() {
        ast::SetExpr::Values(values) if locks.is_empty() && pipe_operators.is_empty() => Some(values),
        _ => None,
    }
}

/// The rows of VALUES where each column holds constants of one kind that need no evaluation, each of `width` columns.
pub(super) fn constant_rows(values: &ast::Values, width: usize) -> Result<Option<RecordBatch>> {
    if width == 0 || values.rows.iter().any(|row| row.content.len() != width) {
        return Ok(None);
    }
    let columns = (0..width).map(|column| constant_column(values.rows.iter().map(|row| &row.content[column])));
    let Some(columns) = columns.collect::<Option<Vec<ArrayRef>>>() else { return Ok(None) };
    let fields = columns.iter().enumerate();
    let fields = fields.map(|(index, column)| Field::new(format!("c{index}"), column.data_type().clone(), true));
    Ok(Some(RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns)?))
}

/// Constants of one kind, of the type that planning them would give.
fn constant_column<'a>(cells: impl Iterator<Item = &'a ast::Expr> + Clone) -> Option<ArrayRef> {
    let mut known = cells.clone().map(literal).filter(|cell| !matches!(cell, Some(Literal::Null)));
    Some(match known.next() {
        None => Arc::new(NullArray::new(cells.count())),
        Some(first) => match first? {
            Literal::Null => return None,
            Literal::Int(_) => Arc::new(column::<Int64Array, _>(cells, |cell| match cell {
                Literal::Int(value) => Some(value),
                _ => None,
            })?),
            Literal::Double(_) => Arc::new(column::<Float64Array, _>(cells, |cell| match cell {
                Literal::Double(value) => Some(value),
                _ => None,
            })?),
            Literal::Boolean(_) => Arc::new(column::<BooleanArray, _>(cells, |cell| match cell {
                Literal::Boolean(value) => Some(value),
                _ => None,
            })?),
            Literal::Text(_) => Arc::new(column::<StringArray, _>(cells, |cell| match cell {
                Literal::Text(value) => Some(value),
                _ => None,
            })?),
        },
    })
}

/// All cells as values of one kind; `None` where one is of another.
fn column<'a, A: FromIterator<Option<T>>, T>(
    cells: impl Iterator<Item = &'a ast::Expr>,
    of_kind: impl Fn(Literal<'a>) -> Option<T>,
) -> Option<A> {
    let values = cells.map(|cell| match literal(cell)? {
        Literal::Null => Some(None),
        other => of_kind(other).map(Some),
    });
    values.collect()
}

/// A constant that stands for itself.
enum Literal<'a> {
    Null,
    Int(i64),
    Double(f64),
    Boolean(bool),
    Text(&'a str),
}

fn literal(expr: &ast::Expr) -> Option<Literal<'_>> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Null => Some(Literal::Null),
            ast::Value::Boolean(value) => Some(Literal::Boolean(*value)),
            ast::Value::Number(digits, false) => digits.parse().ok().map(Literal::Int),
            ast::Value::SingleQuotedString(text) => Some(Literal::Text(text)),
            _ => None,
        },
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => match literal(expr)? {
            Literal::Int(value) => value.checked_neg().map(Literal::Int),
            _ => None,
        },
        // As numbers with an exponent and floating parameters are written.
        ast::Expr::Cast {
            kind: ast::CastKind::Cast,
            data_type: ast::DataType::Double(_) | ast::DataType::DoublePrecision,
            expr,
            format: None,
            array: false,
        } => match literal(expr)? {
            Literal::Text(digits) => digits.parse().ok().map(Literal::Double),
            _ => None,
        },
        _ => None,
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
            ast::Value::SingleQuotedString(_) | ast::Value::EscapedStringLiteral(_) => Some(Constant::Text),
            _ => None,
        },
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => match constant(expr)? {
            Constant::Other(digits) if digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
                Some(Constant::Other(format!("-{digits}")))
            }
            _ => None,
        },
        // As numbers with an exponent and floating parameters are written.
        ast::Expr::Cast {
            kind: ast::CastKind::Cast,
            data_type: ast::DataType::Double(_) | ast::DataType::DoublePrecision,
            expr,
            ..
        } => match expr.as_ref() {
            ast::Expr::Value(value) => match &value.value {
                ast::Value::SingleQuotedString(digits) if digits.parse::<f64>().is_ok() => {
                    Some(Constant::Other(digits.clone()))
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}
