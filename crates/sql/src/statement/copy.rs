//! COPY FROM and COPY TO.

use super::assign::{Assigner, storage_type};
use super::insert::pull;
use super::names::{find, normal, quoted};
use super::{done, table_name};
use crate::batches::{Outcome, named, outer_batch, outer_schema};
use crate::files::{ReadOptions, WriteOptions, create, expand, open};
use crate::parse::{Copy, CopyTarget, FileOption, column_names, parse_one};
use crate::progress::{Notes, Progress};
use crate::{Error, Result, Session};
use arrow::datatypes::{Field, Schema};
use datafusion::sql::sqlparser::ast;
use sinter_column::TableSchema;
use std::path::Path;
use std::sync::Arc;

pub(super) fn run(session: &Session, copy: &Copy) -> Result<Outcome> {
    match copy {
        Copy::From { table, columns, path, options } => from(session, table, columns, path, options),
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
        let catalog = transaction.catalog();
        let table = Arc::clone(find(&catalog, &name)?);
        let schema = table.schema();
        let wanted = wanted_columns(schema, columns)?;
        let fields = wanted.iter().map(|&index| {
            let column = &schema.columns[index];
            Field::new(&column.name, storage_type(&column.ty), true)
        });
        let expected = Schema::new(fields.collect::<Vec<_>>());
        let mut reader = open(&expand(path)?, &read, Some(Arc::new(expected)))?;
        let sources = (0..schema.columns.len()).map(|index| wanted.iter().position(|&wanted| wanted == index));
        let state = session.statement_state(catalog, transaction.reads(), notes.clone());
        let assigner = Assigner::new(&table, sources.collect(), &state)?.with_defaults(session)?;
        let mut change = transaction.change(&table, session.settings().threads)?;
        let running = session.running();
        let mut rows = 0;
        for batch in reader.by_ref() {
            let batch = batch?;
            if running.is_cancelled() {
                return Err(Error::Cancelled);
            }
            rows += batch.num_rows() as u64;
            change.insert(&assigner.assign(&batch)?)?;
            session.report(Some(Progress { label: format!("reading {path}, rows"), done: rows, total: None }));
        }
        for note in reader.notes() {
            notes.add(note.clone());
        }
        let skipped = reader.skipped();
        if skipped.row_count() > 0 {
            notes.add(format!("{} malformed rows were skipped", skipped.row_count()));
            for message in skipped.messages().iter().take(5) {
                notes.add(message.to_string());
            }
        }
        transaction.put(change.finish()?)?;
        Ok(done("COPY", Some(rows), &notes))
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
    let names = match &sql {
        ast::Statement::Query(query) => column_names(query),
        _ => Vec::new(),
    };
    let (catalog, reads) = session.readable()?;
    let state = session.statement_state(catalog, reads, notes.clone());
    let planned = session.plan(&state, sql)?;
    let schema = named(&outer_schema(&planned.physical.schema()), &names);
    let mut writer = create(Path::new(path), Arc::clone(&schema), &write)?;
    pull(session, planned, path, |batch| Ok(writer.write(&outer_batch(&batch, &schema)?)?))?;
    let rows = writer.finish()?;
    Ok(done("COPY", Some(rows), &notes))
}
