//! Parts of an expression in whose place DataFusion's simplifier sees a column.

use super::is_condition;
use crate::walk::WalkTree;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, TableReference};
use datafusion::logical_expr::{Expr, ExprSchemable};
use std::collections::HashMap;
use std::sync::Arc;

/// The table of these columns; nobody has one of this name.
const TABLE: &str = "\0hidden";

/// The parts, in the order of their columns. Equal parts have one column, unless each has a value of its own.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    parts: Vec<Expr>,
    numbers: HashMap<Expr, usize>,
}

impl Hidden {
    /// What is seen in place of a part: a column, or the part itself if it is a constant.
    pub(super) fn hide(&mut self, part: Expr) -> Expr {
        if matches!(part, Expr::Literal(..)) {
            return part;
        }
        let known = if part.is_volatile() { None } else { self.numbers.get(&part).copied() };
        let number = known.unwrap_or_else(|| {
            self.numbers.insert(part.clone(), self.parts.len());
            self.parts.push(part);
            self.parts.len() - 1
        });
        Expr::Column(Column::new(Some(TableReference::bare(TABLE)), number.to_string()))
    }

    /// Whether an expression is the column of a part.
    pub(super) fn has(expr: &Expr) -> bool {
        matches!(expr, Expr::Column(column) if is_of_parts(column))
    }

    /// The columns of this schema and those of the parts; `None` if there are none.
    ///
    /// # Errors
    /// If a part has no type over this schema.
    pub(super) fn schema(&self, schema: &DFSchema) -> Result<Option<DFSchema>> {
        if self.parts.is_empty() {
            return Ok(None);
        }
        // Whether it may be NULL is not asked: of conditions within CASE that takes twice as long for each level.
        let field = |(number, part): (usize, &Expr)| -> Result<(Option<TableReference>, FieldRef)> {
            let ty = if is_condition(part) { DataType::Boolean } else { part.get_type(schema)? };
            Ok((Some(TableReference::bare(TABLE)), Arc::new(Field::new(number.to_string(), ty, true))))
        };
        let fields = self.parts.iter().enumerate().map(field).collect::<Result<_>>()?;
        let mut with_parts = schema.clone();
        with_parts.merge(&DFSchema::new_with_metadata(fields, HashMap::new())?);
        Ok(Some(with_parts))
    }

    /// An expression with the parts in their places.
    pub(super) fn put_back(&self, expr: Expr) -> Result<Expr> {
        if self.parts.is_empty() {
            return Ok(expr);
        }
        let part = |column: &Column| {
            is_of_parts(column).then(|| self.parts.get(column.name.parse::<usize>().ok()?).cloned()).flatten()
        };
        let whole = expr.rewrite_up(&mut |expr| {
            Ok(match &expr {
                Expr::Column(column) => part(column).map_or_else(|| Transformed::no(expr), Transformed::yes),
                _ => Transformed::no(expr),
            })
        })?;
        Ok(whole.data)
    }
}

fn is_of_parts(column: &Column) -> bool {
    column.relation.as_ref().is_some_and(|table| table.table() == TABLE)
}

/// An expression with others in place of its children.
pub(super) fn with_children(
    expr: Expr,
    rewrite: &mut dyn FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<Expr>> {
    expr.map_children(rewrite)
}
