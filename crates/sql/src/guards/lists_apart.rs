//! `SimplifyExpressions` without what it makes of two lists in which one value is looked for.
//!
//! `x NOT IN (1) OR x NOT IN (2)` becomes true, though it is NULL where `x` is. Of `x IN (1, b) AND x IN (1, c)` the elements
//! that look alike are left, though `b` and `c` may both be `x`. In `x IN (..) AND x NOT IN (..)`, NULL in the second list
//! counts for nothing. Comparisons with constants between ORs become such lists before. So each list looks for the value by
//! a name of its own while the rule runs.

use super::Rule;
use crate::walk::{WalkPlan, WalkTree};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, Result, internal_err};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::split_binary;
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TryCast, Volatility,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::collections::HashMap;
use std::sync::Arc;

/// The name of the rule.
pub(super) const SIMPLIFY: &str = "simplify_expressions";

/// The rule, kept from what it gets wrong.
#[derive(Debug)]
pub(super) struct ListsApart {
    pub(super) rule: Rule,
}

impl OptimizerRule for ListsApart {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let Some(lists) = Lists::of(&plan)? else { return self.rule.rewrite(plan, config) };
        // Names of aggregates say what they are filtered by.
        let (preserver, mut names) = (NamePreserver::new(&plan), Vec::new());
        let apart = plan.rewrite_exprs(&mut |expr| {
            names.push((expr.schema_name().to_string(), preserver.save(&expr)));
            expr.rewrite_up(&mut |expr| Ok(lists.apart(expr)))
        })?;
        let simplified = self.rule.rewrite(apart.data, config)?;
        let mut names = names.into_iter();
        let together = simplified.data.rewrite_exprs(&mut |expr| {
            let expr = expr.rewrite_up(&mut |expr| Ok(together(expr)))?;
            Ok(match names.next() {
                Some((text, name)) => expr.update_data(|expr| name.restore(without_other_alias(expr, &text))),
                None => expr,
            })
        })?;
        Ok(Transformed { data: together.data, ..simplified })
    }
}

/// An expression without a name that the rule gave it, unless it is this one.
fn without_other_alias(expr: Expr, name: &str) -> Expr {
    match expr {
        Expr::Alias(alias) if alias.name != name => *alias.expr,
        expr => expr,
    }
}

/// The lists of a node's expressions, and the comparisons that become lists, with the numbers of their values' names. A list
/// that is there twice has one, and so have the comparisons between ORs that become one list.
#[derive(Debug, Default)]
struct Lists {
    numbers: HashMap<Expr, usize>,
    /// The numbers of each column's names.
    columns: HashMap<Column, Vec<usize>>,
    /// Whether a value is no column. It may become one.
    others: bool,
}

impl Lists {
    /// Those of a node in which a value may be looked for in several; `None` where there is none.
    fn of(plan: &LogicalPlan) -> Result<Option<Lists>> {
        let mut count = 0;
        plan.visit_exprs(&mut |expr| {
            expr.visit_nodes(&mut |expr| {
                count += usize::from(matches!(expr, Expr::InList(_)) || is_or(expr));
                Ok(if count > 1 { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })?;
        if count < 2 {
            return Ok(None);
        }
        let mut lists = Lists::default();
        plan.visit_exprs(&mut |expr| {
            lists.note(expr)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        let meet = lists.others && lists.numbers.len() > 1 || lists.columns.values().any(|names| names.len() > 1);
        Ok(meet.then_some(lists))
    }

    /// Notes the lists of an expression.
    fn note(&mut self, expr: &Expr) -> Result<()> {
        expr.visit_nodes(&mut |expr| {
            match expr {
                Expr::InList(list) => _ = self.add(&list.expr, expr, None),
                _ if is_or(expr) => {
                    self.note_alternatives(expr)?;
                    return Ok(TreeNodeRecursion::Jump);
                }
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    /// Notes the lists of what stands between ORs.
    fn note_alternatives(&mut self, or: &Expr) -> Result<()> {
        let mut numbers = HashMap::new();
        for expr in split_binary(or, Operator::Or) {
            match compared_column(expr) {
                Some(column) => {
                    let number = self.add(column, expr, numbers.get(column).copied());
                    numbers.insert(column.clone(), number);
                }
                None => self.note(expr)?,
            }
        }
        Ok(())
    }

    /// Gives a list this number, or another one, unless it has one; returns it.
    fn add(&mut self, value: &Expr, list: &Expr, number: Option<usize>) -> usize {
        if let Some(&number) = self.numbers.get(list) {
            return number;
        }
        let number = number.unwrap_or(self.numbers.len());
        self.numbers.insert(list.clone(), number);
        match without_casts(value) {
            Expr::Column(column) => {
                let names = self.columns.entry(column.clone()).or_default();
                if !names.contains(&number) {
                    names.push(number);
                }
            }
            _ => self.others = true,
        }
        number
    }

    /// A list that looks for its value by a name of its own; other expressions as they are.
    fn apart(&self, expr: Expr) -> Transformed<Expr> {
        let may_be_one = matches!(expr, Expr::InList(_)) || compared_column(&expr).is_some();
        let number = if may_be_one { self.numbers.get(&expr).copied() } else { None };
        let Some(number) = number else { return Transformed::no(expr) };
        let named = |value: Box<Expr>| Box::new(named(*value, number));
        Transformed::yes(match expr {
            Expr::InList(list) => Expr::InList(InList { expr: named(list.expr), ..list }),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match *left {
                Expr::Literal(..) => Expr::BinaryExpr(BinaryExpr { left, op, right: named(right) }),
                _ => Expr::BinaryExpr(BinaryExpr { left: named(left), op, right }),
            },
            expr => expr,
        })
    }
}

fn is_or(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }))
}

/// The column that is compared with a constant, be it in another type.
fn compared_column(expr: &Expr) -> Option<&Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = expr else { return None };
    match (&**left, &**right) {
        (value, Expr::Literal(..)) | (Expr::Literal(..), value) => {
            matches!(without_casts(value), Expr::Column(_)).then_some(value)
        }
        _ => None,
    }
}

/// What a value is before it is cast, which it may not need to be.
fn without_casts(value: &Expr) -> &Expr {
    match value {
        Expr::Cast(cast) => without_casts(&cast.expr),
        Expr::TryCast(cast) => without_casts(&cast.expr),
        value => value,
    }
}

/// A value by the name of this number, which it has before it is cast.
fn named(value: Expr, number: usize) -> Expr {
    match value {
        Expr::Cast(cast) => Expr::Cast(Cast { expr: Box::new(named(*cast.expr, number)), ..cast }),
        Expr::TryCast(cast) => Expr::TryCast(TryCast { expr: Box::new(named(*cast.expr, number)), ..cast }),
        value => ScalarUDF::from(Named::new(number)).call(vec![value]),
    }
}

/// The value without its name.
fn together(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, mut args })
            if func.inner().downcast_ref::<Named>().is_some() && args.len() == 1 =>
        {
            Transformed::yes(args.remove(0))
        }
        expr => Transformed::no(expr),
    }
}

/// A value by another name.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Named {
    number: usize,
    signature: Signature,
}

impl Named {
    fn new(number: usize) -> Named {
        Named { number, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Named {
    fn name(&self) -> &str {
        "named"
    }

    /// That of the value, so that columns keep their names.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [value] => Ok(value.schema_name().to_string()),
            _ => internal_err!("a name of {} values", args.len()),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [value] => Ok(value.clone()),
            _ => internal_err!("a name of {} values", types.len()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, is_nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match <[ColumnarValue; 1]>::try_from(args.args) {
            Ok([value]) => Ok(value),
            Err(values) => internal_err!("a name of {} values", values.len()),
        }
    }
}
