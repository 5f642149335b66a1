//! USING and NATURAL as SQL means them.
//!
//! The column k of `a RIGHT JOIN b USING (k)` is b's, that of an inner or a LEFT JOIN is a's, and that of a FULL JOIN is
//! `coalesce(a.k, b.k)`; `a.k` and `b.k` are there as well. `*` has the columns of the left side, the shared ones at their
//! places, then the others of the right side, as in DuckDB (SQL would have the shared ones first). DataFusion takes a's for
//! each of them, has `*` keep that of the table which comes first in the alphabet, takes k for ambiguous in most places, and
//! makes all pairs of a NATURAL LEFT JOIN without a column in common. So such a statement is rewritten before it is planned:
//! USING and NATURAL become ON, plain names of shared columns get their tables, and `*` becomes a list. Other statements stay
//! as they are.
//!
//! ```text
//! SELECT *, k + 1 FROM a RIGHT JOIN b USING (k) WHERE k > 2
//! SELECT b.k, a.x, b.y, b.k + 1 FROM a RIGHT JOIN b ON a.k = b.k WHERE b.k > 2
//! ```
//!
//! The shared columns of a FULL JOIN become columns of a table of their own ([`full_join`]). Queries are walked over from the
//! outer ones to the inner, each clause with the tables in sight that it may name ([`level`], [`query`], [`from`],
//! [`expressions`]); which columns a table in FROM has is asked of the planner ([`place`]), so that there is one answer to it.
//!
//! A select list may have a column twice, or beside another one of its name, which the planner refuses: `SELECT *, k`, `SELECT k,
//! k + 1 AS k`. Where it does, the statement is rewritten once more, with `*` as a list and names for those that come again
//! (`k_2`, [`wildcard`]). ORDER BY and DISTINCT ON mean the alias, if there is one. Pipes (`|> SELECT k, k`) are left as they are.
//!
//! Refused are, with an error: `|> JOIN` with USING or NATURAL, `* ILIKE` and `* RENAME` beside them, a column that one side
//! has twice, and tables whose columns no name tells apart (`t JOIN s.t`).

mod expressions;
mod from;
mod full_join;
mod level;
mod place;
mod query;
#[cfg(test)]
mod tests;
mod wildcard;

pub(crate) use full_join::FullJoins;

use crate::parse::walk_mut;
use crate::{Error, Result};
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, PipeOperator, Query, Select, SetExpr, Statement, TableFactor, TableWithJoins,
    VisitorMut,
};
use level::Level;
use std::ops::ControlFlow;

/// The plan of a statement, in which shared columns mean what they mean in SQL, and each column has a name of its own.
///
/// # Errors
/// [`Error::Sql`] for shared columns that no side has, or one side twice, and for what is not supported; and those of planning.
pub(crate) async fn planned(state: &SessionState, mut sql: Statement) -> Result<LogicalPlan> {
    let kept = has_select_list(&sql).then(|| sql.clone());
    rewrite(state, &mut sql, false)?;
    let refused = match state.statement_to_plan(as_planned(sql)).await {
        Err(error) if is_about_names(&error) => error,
        plan => return Ok(plan?),
    };
    if let Some(mut apart) = kept
        && rewrite(state, &mut apart, true).is_ok()
        && let Ok(plan) = state.statement_to_plan(as_planned(apart)).await
    {
        return Ok(plan);
    }
    Err(refused.into())
}

/// Whether a statement is a query of more than rows of VALUES, of which there may be many.
fn has_select_list(sql: &Statement) -> bool {
    matches!(sql, Statement::Query(query) if !matches!(*query.body, SetExpr::Values(_)))
}

fn as_planned(sql: Statement) -> datafusion::sql::parser::Statement {
    datafusion::sql::parser::Statement::Statement(Box::new(sql))
}

/// Whether the planner would not tell columns apart.
fn is_about_names(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::SchemaError(error, _) => !matches!(**error, SchemaError::FieldNotFound { .. }),
        DataFusionError::Plan(message) => message.starts_with("Projections require unique expression names"),
        _ => false,
    }
}

/// Rewrites a query with USING or NATURAL in it, or any query so that it `tells_apart` what its select lists have twice; what
/// else there is stays as it is. `state` is to plan it then.
fn rewrite(state: &SessionState, sql: &mut Statement, tells_apart: bool) -> Result<()> {
    let Statement::Query(query) = sql else { return Ok(()) };
    let mut found = Found(tells_apart);
    walk_mut(query.as_mut(), &mut found)?;
    if !found.0 {
        return Ok(());
    }
    let text = query.to_string().to_lowercase();
    Rewriting { state, tells_apart, levels: Vec::new(), text, name_count: 0 }.query(query)
}

/// The rewriting, at one place of a statement.
struct Rewriting<'s> {
    state: &'s SessionState,
    /// Whether columns that select lists have twice get names of their own.
    tells_apart: bool,
    /// The queries around the place, the innermost last.
    levels: Vec<Level>,
    /// The statement as it was, in lower case.
    text: String,
    /// Names that were given to what had none, or were tried.
    name_count: usize,
}

impl Rewriting<'_> {
    /// The innermost query.
    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("whatever is rewritten is in a query")
    }
}

/// Whether there is USING or NATURAL anywhere.
struct Found(bool);

impl VisitorMut for Found {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.0 |= query.pipe_operators.iter().any(is_shared_pipe);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        self.0 |= select.from.iter().any(shares_columns);
        ControlFlow::Continue(())
    }
}

/// Whether joins of a part of FROM have USING or NATURAL; queries within are of no concern.
fn shares_columns(tables: &TableWithJoins) -> bool {
    let factors = std::iter::once(&tables.relation).chain(tables.joins.iter().map(|join| &join.relation));
    let mut nested = factors.filter_map(|factor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => Some(table_with_joins),
        _ => None,
    });
    tables.joins.iter().any(is_shared) || nested.any(|tables| shares_columns(tables))
}

fn is_shared_pipe(operator: &PipeOperator) -> bool {
    matches!(operator, PipeOperator::Join(join) if is_shared(join))
}

/// Whether a join has USING or NATURAL.
fn is_shared(join: &Join) -> bool {
    match &join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint) => {
            matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural)
        }
        _ => false,
    }
}
