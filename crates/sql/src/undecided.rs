//! AND and OR in what DataFusion evaluates for us, row by row.
//!
//! DataFusion asks all parts about all rows of a batch, or nearly so, and `x <> 0 AND 1 / x > y` fails at the first zero. As
//! in our own programs (`sinter_exec::Expr::And`), a part that may fail is asked here only about rows that the parts before
//! it, and those that cannot fail, leave undecided.

use crate::coercion::is_text;
use crate::simplify::keeps_each_value;
use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{and_kleene, or_kleene};
use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NotExpr,
};
use std::fmt;
use std::sync::Arc;

type Part = Arc<dyn PhysicalExpr>;

/// The expression over rows of this schema, with parts of AND and OR that may fail asked as late as they can be.
///
/// # Errors
/// None of its own; DataFusion's tree walk wants to be able to fail.
pub(crate) fn asked_late(expr: Part, schema: &Schema) -> Result<Part> {
    let rewritten = expr.transform_down(|expr| {
        let operator = match expr.downcast_ref::<BinaryExpr>().map(BinaryExpr::op) {
            Some(operator @ (Operator::And | Operator::Or)) => *operator,
            _ => return Ok(Transformed::no(expr)),
        };
        let (sure, failing): (Vec<Part>, Vec<Part>) =
            parts(&expr, operator).into_iter().partition(|part| cannot_fail(part, schema));
        if failing.is_empty() {
            return Ok(Transformed::new(expr, false, TreeNodeRecursion::Jump));
        }
        let parts = [sure, failing].concat();
        Ok(Transformed::yes(Arc::new(Undecided { parts, is_or: operator == Operator::Or }) as Part))
    })?;
    Ok(rewritten.data)
}

/// The parts of an AND or OR, and of those of the same kind within it, in order.
fn parts(expr: &Part, operator: Operator) -> Vec<Part> {
    let (mut parts, mut open) = (Vec::new(), vec![Arc::clone(expr)]);
    while let Some(expr) = open.pop() {
        match expr.downcast_ref::<BinaryExpr>() {
            Some(binary) if *binary.op() == operator => {
                open.extend([Arc::clone(binary.right()), Arc::clone(binary.left())]);
            }
            _ => parts.push(expr),
        }
    }
    parts
}

/// Whether an expression is made of columns, constants, comparisons and wider types alone.
fn cannot_fail(expr: &Part, schema: &Schema) -> bool {
    let is_sure = |expr: &Part| {
        let is_widening = |cast: &CastExpr| {
            cast.expr().data_type(schema).is_ok_and(|from| {
                let to = cast.cast_type();
                let are = |is: fn(&DataType) -> bool| is(&from) && is(to);
                are(is_text) || are(|ty| ty.is_integer() || ty.is_decimal()) && keeps_each_value(&from, to)
            })
        };
        let is_condition = |binary: &BinaryExpr| {
            use Operator::{And, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq, Or};
            matches!(binary.op(), And | Or | Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
        };
        expr.is::<Column>()
            || expr.is::<Literal>()
            || expr.is::<NotExpr>()
            || expr.is::<IsNullExpr>()
            || expr.is::<IsNotNullExpr>()
            || expr.is::<InListExpr>()
            || expr.is::<LikeExpr>()
            || expr.downcast_ref().is_some_and(is_condition)
            || expr.downcast_ref().is_some_and(is_widening)
    };
    expr.exists(|expr| Ok(!is_sure(expr))).is_ok_and(|may_fail| !may_fail)
}

/// AND or OR of two parts or more.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Undecided {
    parts: Vec<Part>,
    is_or: bool,
}

impl Undecided {
    /// The rows that a further part may decide.
    fn open_rows(&self, known: &BooleanArray) -> BooleanArray {
        (0..known.len()).map(|row| Some(known.is_null(row) || known.value(row) != self.is_or)).collect()
    }
}

impl PhysicalExpr for Undecided {
    fn data_type(&self, _schema: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _schema: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let mut known = BooleanArray::from(vec![!self.is_or; rows]);
        for part in &self.parts {
            let open = self.open_rows(&known);
            if !open.has_true() {
                break;
            }
            let found = part.evaluate_selection(batch, &open)?.into_array(rows)?;
            let Some(found) = found.as_boolean_opt() else {
                return internal_err!("{part} is a part of a condition");
            };
            known = if self.is_or { or_kleene(&known, found)? } else { and_kleene(&known, found)? };
        }
        Ok(ColumnarValue::Array(Arc::new(known)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.parts.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Undecided { parts: children, is_or: self.is_or }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_or { " OR " } else { " AND " };
        let parts: Vec<String> = self.parts.iter().map(|part| format!("({part})")).collect();
        f.write_str(&parts.join(word))
    }
}
