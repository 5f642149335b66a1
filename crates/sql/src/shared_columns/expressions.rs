//! Plain names in expressions.
//!
//! A name means a column of the innermost query around it that has one so called. Where that is a shared column, it gets its
//! table; others the planner finds itself. Where a query has several columns of a name, the planner says so.

use super::Rewriting;
use super::from::check_told_apart;
use super::level::Column;
use crate::parse::walk_mut;
use crate::statement::normal;
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast::{AccessExpr, Expr, Ident, Query, SetExpr, Values, VisitMut, VisitorMut};
use std::iter::once;
use std::ops::ControlFlow;

/// What the select list calls its columns, as far as a clause knows of it.
#[derive(Clone, Copy)]
pub(super) enum Outputs<'a> {
    /// It does not: the select list itself, WHERE, ON.
    None,
    /// These, where no table of the query has such a column: GROUP BY, HAVING, QUALIFY.
    BehindColumns(&'a [String]),
    /// These first: ORDER BY, DISTINCT ON.
    BeforeColumns(&'a [String]),
    /// It knows of nothing else: ORDER BY of a UNION.
    Only,
}

impl Rewriting<'_> {
    /// Rewrites the names in a clause of the innermost query, and the queries in it.
    pub(super) fn expressions<T: VisitMut>(&mut self, clause: &mut T, outputs: Outputs<'_>) -> Result<()> {
        walk_mut(clause, &mut Expressions { rewriting: self, outputs, done: Vec::new() })
    }

    /// The shared column that a plain name means, if it means one.
    fn shared_column(&mut self, name: &str, outputs: Outputs<'_>) -> Result<Option<Column>> {
        let is_output = |outputs: &[String]| outputs.iter().any(|output| output == name);
        match outputs {
            Outputs::Only => return Ok(None),
            Outputs::BeforeColumns(outputs) if is_output(outputs) => return Ok(None),
            _ => {}
        }
        let innermost = self.levels.len().saturating_sub(1);
        for index in (0..self.levels.len()).rev() {
            if self.levels[index].columns.is_none() {
                if !self.levels[..index].iter().any(|level| level.has_shared(name)) {
                    return Ok(None);
                }
                self.look_at(index)?;
            }
            let mut found = self.levels[index].in_sight().iter().filter(|column| column.name == name);
            if let Some(column) = found.next() {
                if !column.is_shared || found.next().is_some() {
                    return Ok(None);
                }
                check_told_apart(column, self.levels[index].in_sight())?;
                return Ok(Some(column.clone()));
            }
            if index == innermost && matches!(outputs, Outputs::BehindColumns(outputs) if is_output(outputs)) {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

struct Expressions<'r, 's> {
    rewriting: &'r mut Rewriting<'s>,
    outputs: Outputs<'r>,
    /// Queries around the place that are rewritten.
    done: Vec<Query>,
}

impl VisitorMut for Expressions<'_, '_> {
    type Break = Error;

    /// Rewrites a query with what it knows, and has the walk find an empty one in its place.
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if let Err(error) = self.rewriting.query(query) {
            return ControlFlow::Break(error);
        }
        self.done.push(std::mem::replace(query, nothing()));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if let Some(done) = self.done.pop() {
            *query = done;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::CompoundFieldAccess { root, access_chain } = expr {
            gather_name(root, access_chain);
        }
        let Expr::Identifier(name) = &*expr else { return ControlFlow::Continue(()) };
        match self.rewriting.shared_column(&normal(name), self.outputs) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(column)) => {
                *expr = column.expr();
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// `a.k[1]`: the parser keeps a name in pieces where something else than a name follows, and k is no plain name there.
fn gather_name(root: &mut Expr, access_chain: &mut Vec<AccessExpr>) {
    let Expr::Identifier(first) = &*root else { return };
    let rest = access_chain.iter().map_while(|access| match access {
        AccessExpr::Dot(Expr::Identifier(name)) => Some(name.clone()),
        _ => None,
    });
    let parts: Vec<Ident> = once(first.clone()).chain(rest).collect();
    if parts.len() > 1 {
        access_chain.drain(..parts.len() - 1);
        *root = Expr::CompoundIdentifier(parts);
    }
}

fn nothing() -> Query {
    let values = Values { explicit_row: false, value_keyword: false, rows: Vec::new() };
    Query {
        with: None,
        body: Box::new(SetExpr::Values(values)),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}
