//! The walk over what the SQL parser made of a statement.
//!
//! The parser's crate has its own, which is compiled anew, with all of SQL, for each type of visitor. Here it is compiled once
//! for all of them, as it is a large part of what a build of this crate has to do.

use crate::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// Shows a statement, or a part of one, to a visitor.
///
/// # Errors
/// With which the visitor breaks off.
pub(crate) fn walk_mut<T: VisitMut>(sql: &mut T, visitor: &mut dyn VisitorMut<Break = Error>) -> Result<()> {
    sql.visit(&mut AnyMut(visitor)).break_value().map_or(Ok(()), Err)
}

/// Calls `visit` with each expression, the inner ones before those that they are in.
///
/// # Errors
/// The first of `visit`'s.
pub(crate) fn each_expr_mut<T: VisitMut>(sql: &mut T, visit: &mut dyn FnMut(&mut Expr) -> Result<()>) -> Result<()> {
    walk_mut(sql, &mut ExprsMut(visit))
}

/// Whether an expression is one of those that `is_wanted` is true of; it is asked from the outer ones to the inner, until then.
pub(crate) fn has_expr<T: Visit>(sql: &T, is_wanted: &mut dyn FnMut(&Expr) -> bool) -> bool {
    sql.visit(&mut Exprs(is_wanted)).is_break()
}

struct AnyMut<'v>(&'v mut dyn VisitorMut<Break = Error>);

impl VisitorMut for AnyMut<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.0.pre_visit_query(query)
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.0.post_visit_query(query)
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        self.0.pre_visit_select(select)
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        self.0.post_visit_select(select)
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Error> {
        self.0.pre_visit_relation(relation)
    }

    fn post_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Error> {
        self.0.post_visit_relation(relation)
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        self.0.pre_visit_table_factor(factor)
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        self.0.post_visit_table_factor(factor)
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        self.0.pre_visit_expr(expr)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        self.0.post_visit_expr(expr)
    }

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Error> {
        self.0.pre_visit_statement(statement)
    }

    fn post_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Error> {
        self.0.post_visit_statement(statement)
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Error> {
        self.0.pre_visit_value(value)
    }

    fn post_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Error> {
        self.0.post_visit_value(value)
    }
}

struct ExprsMut<'v>(&'v mut dyn FnMut(&mut Expr) -> Result<()>);

impl VisitorMut for ExprsMut<'_> {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        match (self.0)(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

struct Exprs<'v>(&'v mut dyn FnMut(&Expr) -> bool);

impl Visitor for Exprs<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if (self.0)(expr) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
