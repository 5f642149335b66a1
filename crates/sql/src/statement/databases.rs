//! Whole databases: CHECKPOINT, VACUUM, BACKUP, ATTACH and DETACH, and which of them a statement changes.

use super::done;
use super::names::normal;
use crate::batches::Outcome;
use crate::parse::Attach;
use crate::progress::{Notes, Progress};
use crate::session::Running;
use crate::{Database, Error, Result, Session};
use datafusion::sql::sqlparser::ast;
use sinter_storage::BackupProgress;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// `schema.table`.
pub(super) const TABLE_NAME_PARTS: usize = 2;

fn ok(tag: &str) -> Result<Outcome> {
    Ok(done(tag, None, &Notes::default()))
}

fn check_no_transaction(session: &Session) -> Result<()> {
    match session.in_transaction() {
        true => Err(Error::Sql("this cannot be part of a transaction; end it with COMMIT or ROLLBACK".to_owned())),
        false => Ok(()),
    }
}

/// Shows how far a statement is, and says whether it is to go on.
fn telling<'a>(session: &'a Session, running: &'a Running) -> impl FnMut(Progress) -> ControlFlow<()> + 'a {
    move |progress| {
        session.report(Some(progress));
        let is_over = running.is_cancelled() || session.database.is_closed();
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// What was given up since the database was closed is told so.
fn unless_closed(session: &Session, outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(Error::Cancelled) => session.database.runtime().and(Err(Error::Cancelled)),
        outcome => outcome,
    }
}

pub(super) fn checkpoint(session: &Session) -> Result<Outcome> {
    check_no_transaction(session)?;
    let running = session.running();
    let checkpointed = session.database.checkpoint(&mut telling(session, &running));
    unless_closed(session, checkpointed)?;
    ok("CHECKPOINT")
}

pub(super) fn vacuum(session: &Session) -> Result<Outcome> {
    check_no_transaction(session)?;
    let running = session.running();
    let vacuumed = session.database.vacuum(&running, &mut telling(session, &running));
    unless_closed(session, vacuumed)?;
    let notes = Notes::default();
    match session.database.store().unmovable_page_count() {
        0 => {}
        1 => notes.add("a damaged page stays where it is; `sinter check` names it".to_owned()),
        pages => notes.add(format!("{pages} damaged pages stay where they are; `sinter check` names them")),
    }
    Ok(done("VACUUM", None, &notes))
}

pub(super) fn backup(session: &Session, path: &str) -> Result<Outcome> {
    check_no_transaction(session)?;
    let running = session.running();
    let label = format!("writing {path}, bytes");
    let written = session.database.backup(Path::new(path), &mut |BackupProgress { bytes_done, bytes_total }| {
        session.report(Some(Progress { label: label.clone(), done: bytes_done, total: Some(bytes_total) }));
        if running.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match written {
        Err(_) if running.is_cancelled() => Err(Error::Cancelled),
        Err(error) => Err(error),
        Ok(()) => ok("BACKUP"),
    }
}

pub(super) fn attach(session: &Session, attach: &Attach) -> Result<Outcome> {
    check_no_transaction(session)?;
    let database = &session.database;
    let path = Path::new(&attach.path);
    let name = match (&attach.name, path.file_stem().and_then(|stem| stem.to_str())) {
        (Some(name), _) => normal(name),
        (None, Some(stem)) if attach.path != ":memory:" => stem.to_lowercase(),
        _ => return Err(Error::Sql("the attached database needs a name: ATTACH 'file' AS name".to_owned())),
    };
    if attach.if_not_exists && database.attached().get(&name).is_some() {
        let notes = Notes::default();
        notes.add(format!("'{name}' is attached already"));
        return Ok(done("ATTACH", None, &notes));
    }
    database.attached().check_free(&name, &database.catalog())?;
    let mut options = database.options().clone();
    options.read_only |= attach.read_only;
    options.synchronous = database.store().synchronous();
    let path_of_file = (attach.path != ":memory:").then_some(path);
    let opened = Database::open_within(database.store().budget(), path_of_file, options)?;
    let notes = Notes::default();
    if opened.is_new() && opened.path().is_some() {
        notes.add(format!("new database '{}'", attach.path));
    }
    opened.notes().iter().for_each(|note| notes.add(note.clone()));
    database.attached().attach(&name, opened, database.store())?;
    Ok(done("ATTACH", None, &notes))
}

pub(super) fn detach(session: &Session, name: &ast::Ident, if_exists: bool) -> Result<Outcome> {
    check_no_transaction(session)?;
    let name = normal(name);
    match (session.database.attached().detach(&name), if_exists) {
        (Some(database), _) => database.close()?,
        (None, true) => {}
        (None, false) => return Err(Error::Sql(format!("there is no attached database '{name}'"))),
    }
    ok("DETACH")
}

/// The attached database that a statement changes, whose name is taken off the names of what it changes; `None` for the
/// session's own.
///
/// # Errors
/// [`Error::Sql`] where it names objects of several.
pub(super) fn target(session: &Session, sql: &mut ast::Statement) -> Result<Option<Arc<str>>> {
    let (parts, names) = targets(sql);
    let mut found = None;
    for (index, name) in names.into_iter().enumerate() {
        let of_name = taken_from(session, name, parts)?;
        if index > 0 && of_name != found {
            return Err(Error::Sql("a statement changes one database; write one for each".to_owned()));
        }
        found = of_name;
    }
    Ok(found)
}

/// Takes the name of an attached database off a name that begins with it.
pub(super) fn taken_from(session: &Session, name: &mut ast::ObjectName, parts: usize) -> Result<Option<Arc<str>>> {
    match name.0.len() {
        0 | 1 => Ok(None),
        _ => Ok(session.database.attached().take_from(name, parts, &session.readable()?.catalog)),
    }
}

/// The objects that a statement changes, and of how many parts their names are within a database.
fn targets(sql: &mut ast::Statement) -> (usize, Vec<&mut ast::ObjectName>) {
    match sql {
        ast::Statement::Insert(insert) => match &mut insert.table {
            ast::TableObject::TableName(name) => (TABLE_NAME_PARTS, vec![name]),
            _ => (TABLE_NAME_PARTS, Vec::new()),
        },
        ast::Statement::Delete(delete) => {
            let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &mut delete.from;
            (TABLE_NAME_PARTS, from.iter_mut().filter_map(|from| name_of(&mut from.relation)).collect())
        }
        ast::Statement::Update(update) => (TABLE_NAME_PARTS, name_of(&mut update.table.relation).into_iter().collect()),
        ast::Statement::Merge(merge) => (TABLE_NAME_PARTS, name_of(&mut merge.table).into_iter().collect()),
        ast::Statement::CreateTable(create) => (TABLE_NAME_PARTS, vec![&mut create.name]),
        ast::Statement::CreateView(create) => (TABLE_NAME_PARTS, vec![&mut create.name]),
        ast::Statement::AlterTable(alter) => (TABLE_NAME_PARTS, vec![&mut alter.name]),
        ast::Statement::CreateIndex(create) => (TABLE_NAME_PARTS, vec![&mut create.table_name]),
        ast::Statement::CreateSchema { schema_name: ast::SchemaName::Simple(name), .. } => (1, vec![name]),
        ast::Statement::Drop { object_type, names, .. } => {
            (if *object_type == ast::ObjectType::Schema { 1 } else { TABLE_NAME_PARTS }, names.iter_mut().collect())
        }
        _ => (TABLE_NAME_PARTS, Vec::new()),
    }
}

fn name_of(factor: &mut ast::TableFactor) -> Option<&mut ast::ObjectName> {
    match factor {
        ast::TableFactor::Table { name, .. } => Some(name),
        _ => None,
    }
}
