//! Plans and expressions as text, for EXPLAIN.

use crate::scan::ScanPlan;
use crate::{Aggregate, AggregateFunction, Expr, LogicalType, Output, Pipeline, ScanColumn};
use sinter_codec::{CompareOp, Scalar};
use std::fmt;

impl fmt::Display for Pipeline {
    /// One line each for the scan, the two halves of the filter, the output and the limit, as far as they are there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types = self.scan_types();
        let name = |column: usize| (self.column_text(column), types[column].clone());
        let text = |expr: &Expr| ExprText(expr, &|column| self.column_text(column), &types).to_string();
        let list = |exprs: &[Expr]| exprs.iter().map(&text).collect::<Vec<_>>().join(", ");
        let columns: Vec<String> = (0..self.columns.len()).map(|column| self.column_text(column)).collect();
        write!(f, "Scan {} [{}]", self.source.name(), columns.join(", "))?;
        match ScanPlan::new(self) {
            Ok(plan) => {
                let encoded = plan.encoded_text(&name);
                if !encoded.is_empty() {
                    write!(f, "\n  filter pushed to blocks: {}", encoded.join(" AND "))?;
                }
                if !plan.decoded().is_empty() {
                    let decoded: Vec<String> = plan.decoded().iter().map(&text).collect();
                    write!(f, "\n  filter on values: {}", decoded.join(" AND "))?;
                }
            }
            Err(error) => write!(f, "\n  {error}")?,
        }
        match &self.output {
            Output::Rows(exprs) => write!(f, "\n  output: {}", list(exprs))?,
            Output::Aggregate(aggregates) => {
                let parts: Vec<String> = aggregates.iter().map(|aggregate| aggregate_text(aggregate, &text)).collect();
                write!(f, "\n  aggregate: {}", parts.join(", "))?;
            }
        }
        if let Some(limit) = self.limit {
            write!(f, "\n  limit: {limit}")?;
        }
        Ok(())
    }
}

impl Pipeline {
    fn column_text(&self, column: usize) -> String {
        match self.columns.get(column) {
            Some(ScanColumn::Table(column)) => self.source.column_name(*column).to_owned(),
            Some(ScanColumn::RowId) => "row id".to_owned(),
            None => format!("column {column}"),
        }
    }
}

fn aggregate_text(aggregate: &Aggregate, text: &dyn Fn(&Expr) -> String) -> String {
    let name = match aggregate.function {
        AggregateFunction::CountStar | AggregateFunction::Count => "count",
        AggregateFunction::Sum => "sum",
        AggregateFunction::Min => "min",
        AggregateFunction::Max => "max",
        AggregateFunction::Average => "avg",
    };
    let argument = aggregate.argument.as_ref().map_or("*".to_owned(), text);
    match &aggregate.filter {
        Some(filter) => format!("{name}({argument}) FILTER (WHERE {})", text(filter)),
        None => format!("{name}({argument})"),
    }
}

/// An expression with names for the columns.
struct ExprText<'a>(&'a Expr, &'a dyn Fn(usize) -> String, &'a [LogicalType]);

impl fmt::Display for ExprText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |expr: &Expr| ExprText(expr, self.1, self.2).to_string();
        let join = |parts: &[Expr], by: &str| parts.iter().map(&text).collect::<Vec<_>>().join(by);
        match self.0 {
            Expr::Column(column) => f.write_str(&(self.1)(*column)),
            Expr::Literal(scalar, ty) => f.write_str(&scalar_text(scalar, ty)),
            Expr::Compare(op, left, right) => write!(f, "{} {} {}", text(left), compare_sign(*op), text(right)),
            Expr::Arithmetic { op, left, right, .. } => write!(f, "({} {} {})", text(left), op.sign(), text(right)),
            Expr::And(parts) => write!(f, "({})", join(parts, " AND ")),
            Expr::Or(parts) => write!(f, "({})", join(parts, " OR ")),
            Expr::Not(inner) => write!(f, "NOT {}", text(inner)),
            Expr::IsNull(inner) => write!(f, "{} IS NULL", text(inner)),
            Expr::IsNotNull(inner) => write!(f, "{} IS NOT NULL", text(inner)),
            Expr::InList { expr, list, has_null, negated } => {
                let ty = expr.type_over(self.2);
                let list: Vec<String> = list.iter().map(|scalar| scalar_text(scalar, &ty)).collect();
                let null = if *has_null { ", NULL" } else { "" };
                write!(f, "{} {}IN ({}{null})", text(expr), if *negated { "NOT " } else { "" }, list.join(", "))
            }
            Expr::Like { expr, pattern, negated, case_insensitive } => {
                let not = if *negated { "NOT " } else { "" };
                let like = if *case_insensitive { "ILIKE" } else { "LIKE" };
                write!(f, "{} {not}{like} '{}'", text(expr), pattern.replace('\'', "''"))
            }
            Expr::Cast { expr, ty } => write!(f, "CAST({} AS {ty})", text(expr)),
            Expr::Case { branches, otherwise, .. } => {
                f.write_str("CASE")?;
                for (condition, result) in branches {
                    write!(f, " WHEN {} THEN {}", text(condition), text(result))?;
                }
                if let Some(otherwise) = otherwise {
                    write!(f, " ELSE {}", text(otherwise))?;
                }
                f.write_str(" END")
            }
            Expr::Foreign { function, arguments, .. } => write!(f, "{}({})", function.text(), join(arguments, ", ")),
        }
    }
}

/// A comparison as SQL writes it.
pub(crate) fn compare_sign(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Equal => "=",
        CompareOp::NotEqual => "<>",
        CompareOp::Less => "<",
        CompareOp::LessOrEqual => "<=",
        CompareOp::Greater => ">",
        CompareOp::GreaterOrEqual => ">=",
    }
}

/// A value of a type, as readable as is possible without much ado.
pub(crate) fn scalar_text(scalar: &Scalar, ty: &LogicalType) -> String {
    match (scalar, ty) {
        (Scalar::Null, _) => "NULL".to_owned(),
        (Scalar::Bytes(bytes), _) => format!("'{}'", String::from_utf8_lossy(bytes).replace('\'', "''")),
        (Scalar::Float(value), _) => value.to_string(),
        (Scalar::Int(value), LogicalType::Boolean) => if *value == 0 { "FALSE" } else { "TRUE" }.to_owned(),
        (
            Scalar::Int(value),
            LogicalType::Int8
            | LogicalType::Int16
            | LogicalType::Int32
            | LogicalType::Int64
            | LogicalType::UInt8
            | LogicalType::UInt16
            | LogicalType::UInt32
            | LogicalType::UInt64,
        ) => value.to_string(),
        (Scalar::Int(value), _) => {
            let array = crate::edge::scalar_to_arrow(scalar, ty);
            let text = array
                .and_then(|array| arrow::util::display::array_value_to_string(&array, 0).map_err(crate::edge::foreign));
            text.unwrap_or_else(|_| value.to_string())
        }
    }
}
