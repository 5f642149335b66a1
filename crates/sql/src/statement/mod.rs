//! Running statements, one file a kind.

mod alter;
mod assign;
mod copy;
mod create;
mod databases;
mod definitions;
mod delete;
mod explain;
mod indexes;
mod insert;
mod merge;
mod names;
mod on_conflict;
mod row_expr;
mod schemas;
mod set;
mod show;
mod target;
mod transactions;
mod trees;
mod types;
mod values;
mod views;

pub(crate) use assign::storage_type;
pub(crate) use insert::append;
pub(crate) use names::{find, normal, parse_table_name, table_name};
pub(crate) use types::TypesOfTables;

use crate::batches::Outcome;
use crate::parse::{Copy, CopyTarget, Kind, Statement, each_expr_mut};
use crate::progress::Notes;
use crate::{Error, Result, Session, Value};
use datafusion::sql::sqlparser::ast;
use definitions::Defined;

/// Expressions up to this depth are planned on the caller's stack.
const SHALLOW_DEPTH: usize = 100;

/// Address space for planning the deepest statement that is let through; only what is touched costs memory.
const DEEP_STACK_BYTES: usize = 256 << 20;

/// Runs a statement with its parameters. Planning walks expressions by recursion, so long ones get a stack of their own.
pub(crate) fn run(session: &Session, statement: &Statement, params: &[Value]) -> Result<Outcome> {
    if statement.depth <= SHALLOW_DEPTH {
        return run_here(session, statement, params);
    }
    let outcome = std::thread::scope(|scope| {
        let work = || run_here(session, statement, params);
        let thread = std::thread::Builder::new().stack_size(DEEP_STACK_BYTES).spawn_scoped(scope, work);
        thread.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    outcome.map_err(|error| Error::Io(format!("cannot start a thread: {error}")))?
}

fn run_here(session: &Session, statement: &Statement, params: &[Value]) -> Result<Outcome> {
    let outcome = match &statement.kind {
        Kind::Sql(sql) => run_sql(session, bind((**sql).clone(), params)?),
        Kind::Explain { analyze, inner } => explain::run(session, bind((**inner).clone(), params)?, *analyze),
        Kind::Copy(copy) => copy::run(session, &bind_copy((**copy).clone(), params)?),
        Kind::Show(what, name) => show::run(session, what, name.as_ref()),
        Kind::Describe(name) => show::describe(session, name),
        Kind::Set(name, value) => set::run(session, name, value),
        Kind::Checkpoint => databases::checkpoint(session),
        Kind::Vacuum => databases::vacuum(session),
        Kind::Attach(attach) => databases::attach(session, attach),
        Kind::Detach { name, if_exists } => databases::detach(session, name, *if_exists),
        Kind::Backup { path } => databases::backup(session, path),
    };
    session.report(None);
    outcome
}

fn run_sql(session: &Session, mut sql: ast::Statement) -> Result<Outcome> {
    if let Some(attached) = databases::target(session, &mut sql)? {
        return run_sql(&session.at(&attached)?, sql);
    }
    match sql {
        ast::Statement::Query(_) => {
            let notes = Notes::default();
            let state = session.query_state(session.readable()?, notes.clone());
            Ok(Outcome::Rows(session.plan_query(&state, sql)?.with_notes(notes)))
        }
        ast::Statement::CreateTable(create) => create::run(session, &create),
        ast::Statement::CreateView(create) => views::create(session, &create),
        ast::Statement::CreateSchema { schema_name, if_not_exists, .. } => {
            schemas::create(session, &schema_name, if_not_exists)
        }
        ast::Statement::AlterTable(alter) => alter::run(session, &alter),
        ast::Statement::CreateIndex(create) => indexes::create(session, &create),
        ast::Statement::Drop { object_type, if_exists, names, cascade, .. } => match object_type {
            ast::ObjectType::Table => definitions::drop(session, Defined::Table, &names, if_exists),
            ast::ObjectType::View => definitions::drop(session, Defined::View, &names, if_exists),
            ast::ObjectType::Index => indexes::drop(session, &names, if_exists),
            ast::ObjectType::Schema => schemas::drop(session, &names, if_exists, cascade),
            other => Err(Error::Sql(format!("DROP {other} is not supported yet"))),
        },
        ast::Statement::StartTransaction { modes, statements, .. } if statements.is_empty() => {
            transactions::begin(session, &modes)
        }
        ast::Statement::Commit { chain: false, .. } => transactions::commit(session),
        ast::Statement::Rollback { chain: false, savepoint } => transactions::roll_back(session, savepoint.as_ref()),
        ast::Statement::Savepoint { name } => transactions::savepoint(session, &name),
        ast::Statement::ReleaseSavepoint { name } => transactions::release(session, &name),
        ast::Statement::Insert(insert) => insert::run(session, &insert),
        ast::Statement::Delete(delete) => delete::run(session, &delete),
        ast::Statement::Update(update) => delete::update(session, &update),
        ast::Statement::Merge(merge) => merge::run(session, &merge),
        other => Err(Error::Sql(format!("this statement is not supported yet: {}", first_words(&other.to_string())))),
    }
}

fn first_words(text: &str) -> String {
    text.split_whitespace().take(4).collect::<Vec<_>>().join(" ")
}

pub(crate) fn done(tag: &str, rows: Option<u64>, notes: &Notes) -> Outcome {
    Outcome::Done { tag: tag.to_owned(), rows, notes: notes.take() }
}

/// The statement for all rows of parameters at once, where it is an INSERT of one row of expressions; else `None`.
pub(crate) fn join_rows(statement: &Statement, rows: &[Vec<Value>]) -> Result<Option<Statement>> {
    let Kind::Sql(sql) = &statement.kind else { return Ok(None) };
    let ast::Statement::Insert(insert) = sql.as_ref() else { return Ok(None) };
    let Some(values) = insert.source.as_deref().and_then(values::nothing_but_values) else { return Ok(None) };
    if on_conflict::updates(insert) {
        // Of two statements the second may change the row of the first.
        return Ok(None);
    }
    if values.rows.len() != 1 || rows.is_empty() {
        return Ok(None);
    }
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let ast::Statement::Insert(bound) = bind((**sql).clone(), row)? else { return Ok(None) };
        if let Some(ast::SetExpr::Values(bound)) = bound.source.map(|source| *source.body) {
            all.extend(bound.rows);
        }
    }
    let mut insert = insert.clone();
    if let Some(source) = &mut insert.source {
        *source.body = ast::SetExpr::Values(ast::Values { rows: all, ..values.clone() });
    }
    Ok(Some(Statement {
        text: statement.text.clone(),
        depth: statement.depth,
        kind: Kind::Sql(Box::new(ast::Statement::Insert(insert))),
    }))
}

/// [`bind`] for the query of a COPY, the only part of it that takes parameters.
fn bind_copy(mut copy: Copy, params: &[Value]) -> Result<Copy> {
    if let Copy::To { target: CopyTarget::Query(query), .. } = &mut copy {
        **query = bind((**query).clone(), params)?;
    } else if !params.is_empty() {
        return Err(Error::Sql("COPY of a table takes no parameters".to_owned()));
    }
    Ok(copy)
}

/// Puts parameters in the places of `?` and `$1`.
fn bind<T: ast::VisitMut>(mut sql: T, params: &[Value]) -> Result<T> {
    let mut next = 0;
    let mut used = vec![false; params.len()];
    each_expr_mut(&mut sql, &mut |expr| {
        let ast::Expr::Value(value) = expr else { return Ok(()) };
        let ast::Value::Placeholder(name) = &value.value else { return Ok(()) };
        let index = match name.strip_prefix('$').map(str::parse::<usize>) {
            Some(Ok(number)) if number > 0 => number - 1,
            None if name == "?" => {
                next += 1;
                next - 1
            }
            _ => return Err(Error::Sql(format!("parameter '{name}' is none of ?, $1, $2, ..."))),
        };
        let Some(value) = params.get(index) else {
            let what = format!("parameter {} is missing; {} were given", index + 1, params.len());
            return Err(Error::Sql(what));
        };
        used[index] = true;
        *expr = value.to_sql();
        Ok(())
    })?;
    match used.iter().position(|used| !used) {
        Some(index) => Err(Error::Sql(format!(
            "{} parameters were given, but nothing in the statement takes number {}",
            params.len(),
            index + 1
        ))),
        None => Ok(sql),
    }
}
