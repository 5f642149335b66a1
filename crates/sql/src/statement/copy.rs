//! COPY FROM and COPY TO.

use super::assign::{Assigner, storage_type};
use super::databases::{self, TABLE_NAME_PARTS};
use super::insert::pull;
use super::names::{normal, quoted};
use super::target::{Receiver, Target};
use super::{done, table_name};
use crate::batches::{Outcome, outer_batch, outer_schema};
use crate::parse::{Copy, CopyTarget, FileOption, parse_one};
use crate::physical::FilesExec;
use crate::planner::{Planned, keeping_order};
use crate::progress::Notes;
use crate::{Error, Result, Session};
use arrow::datatypes::{Field, Schema};
use datafusion::sql::sqlparser::ast;
use sinter_column::TableSchema;
use sinter_files::{ReadOptions, WriteOptions, create, expand, sniff};
use std::path::Path;
use std::sync::Arc;

pub(super) fn run(session: &Session, copy: &Copy) -> Result<Outcome> {
    match copy {
        Copy::From { table, columns, path, options } => {
            let mut table = table.clone();
            match databases::taken_from(session, &mut table, TABLE_NAME_PARTS)? {
                Some(attached) => from(&session.at(&attached)?, &table, columns, path, options),
                None => from(session, &table, columns, path, options),
            }
        }
        Copy::To { target, path, options } => to(session, target, path, options),
    }
}

fn from(
    session: &Session,
    table: &ast::ObjectName,
    columns: &[ast::Ident],
    path: &str,
    options: &[FileOption],
) -> Result<Outcome> {
    let name = table_name(table)?;
    let mut read = ReadOptions::default();
    for FileOption { name, values } in options {
        if matches!(name.as_str(), "types" | "columns") {
            return Err(Error::Sql(format!("COPY reads the types of the table's columns; leave out '{name}'")));
        }
        for value in values {
            read.set(name, value)?;
        }
    }
    session.change(|transaction| {
        let notes = Notes::default();
        let target = Target::find(transaction, &name)?;
        let schema = target.schema();
        let wanted = wanted_columns(schema, columns)?;
        let fields = wanted.iter().map(|&index| {
            let column = &schema.columns[index];
            Field::new(&column.name, storage_type(&column.ty), true)
        });
        let expected = Schema::new(fields.collect::<Vec<_>>());
        let files = sniff(&expand(path)?, &read, Some(Arc::new(expected)))?;
        let sources = (0..schema.columns.len()).map(|index| wanted.iter().position(|&wanted| wanted == index));
        let state = session.statement_state(session.seen_by(transaction), notes.clone());
        let assigner = Assigner::new(target.name(), schema, sources.collect(), &state)?.with_defaults(session)?;
        let rows = FilesExec::new(files.clone(), path.to_owned(), None, Arc::clone(files.schema()), notes.clone());
        let planned = Planned::new(Arc::new(rows), &state).sorted_for(schema, assigner.sources())?;
        let mut receiver = Receiver::new(&target, transaction, session.settings().threads)?;
        pull(session, planned, target.name(), |batch| receiver.take(transaction, &assigner.assign(&batch)?))?;
        Ok(done("COPY", Some(receiver.finish(transaction)?), &notes))
    })
}

fn wanted_columns(schema: &TableSchema, names: &[ast::Ident]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..schema.columns.len()).collect());
    }
    names
        .iter()
        .map(|name| {
            let name = normal(name);
            schema.index_of(&name).ok_or_else(|| Error::Sql(format!("the table has no column '{name}'")))
        })
        .collect()
}

fn to(session: &Session, target: &CopyTarget, path: &str, options: &[FileOption]) -> Result<Outcome> {
    let notes = Notes::default();
    let mut write = WriteOptions::default();
    for FileOption { name, values } in options {
        for value in values {
            write.set(name, value)?;
        }
    }
    let sql = match target {
        CopyTarget::Query(query) => ast::Statement::Query(query.clone()),
        CopyTarget::Table(name, columns) => {
            let columns: Vec<String> = columns.iter().map(|column| quoted(&normal(column))).collect();
            let columns = if columns.is_empty() { "*".to_owned() } else { columns.join(", ") };
            // Names print as they were written, quotes and all.
            parse_one(&format!("SELECT {columns} FROM {name}"))?
        }
    };
    let state = keeping_order(session.query_state(session.readable()?, notes.clone()));
    let planned = session.plan(&state, sql)?;
    let schema = outer_schema(&planned.schema());
    let mut writer = create(Path::new(path), Arc::clone(&schema), &write)?;
    pull(session, planned, path, |batch| Ok(writer.write(&outer_batch(&batch, &schema)?)?))?;
    let rows = writer.finish()?;
    Ok(done("COPY", Some(rows), &notes))
}
