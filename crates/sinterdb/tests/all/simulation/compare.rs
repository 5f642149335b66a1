//! Whether a database holds one of several states.

use super::life::Outcome;
use super::model::{Cell, NULL_HASH, Name, ROW_HASH, State, Table, int_hash, mixed, text_hash};
use crate::answers::rows_of;
use sinterdb::Connection;
use sinterdb::arrow::array::{Array, AsArray, RecordBatch};
use sinterdb::arrow::datatypes::{DataType, Int64Type};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// What a database answers, each thing asked once.
pub(super) struct Seen {
    conn: Connection,
    read: RefCell<BTreeMap<String, Rc<Outcome<Vec<RecordBatch>>>>>,
}

impl Seen {
    pub(super) fn new(conn: Connection) -> Seen {
        Seen { conn, read: RefCell::default() }
    }

    fn read(&self, sql: &str) -> Rc<Outcome<Vec<RecordBatch>>> {
        let mut read = self.read.borrow_mut();
        let query = || self.conn.sql(sql).and_then(|query| query.collect()).map_err(|error| error.to_string());
        Rc::clone(read.entry(sql.to_owned()).or_insert_with(|| Rc::new(query())))
    }
}

/// Which of `states` the database may hold, as indices. A deep comparison looks at definitions and views too; two states
/// may still look the same.
///
/// # Errors
/// It holds none of them.
pub(super) fn compare(seen: &Seen, states: &[Arc<State>], deeply: bool) -> Outcome<Vec<usize>> {
    let (mut same, mut differences) = (Vec::new(), Vec::new());
    for (index, state) in states.iter().enumerate() {
        match holds(seen, state, deeply) {
            Ok(()) => same.push(index),
            Err(difference) => differences.push(format!("state {index} of {}: {difference}", states.len())),
        }
    }
    match same.is_empty() {
        true => Err(format!("the database holds another state than it should\n{}", differences.join("\n"))),
        false => Ok(same),
    }
}

fn holds(seen: &Seen, state: &State, deeply: bool) -> Outcome<()> {
    let names: BTreeSet<Name> =
        seen.conn.table_names().into_iter().map(|(schema, table)| Name { schema, table }).collect();
    let expected: BTreeSet<Name> = state.tables.keys().chain(state.views.keys()).cloned().collect();
    if names != expected {
        return Err(format!("there are {names:?}, there should be {expected:?}"));
    }
    for (name, table) in &state.tables {
        holds_rows(seen, name, table)?;
        if deeply {
            holds_definition(seen, name, table)?;
        }
    }
    if !deeply {
        return Ok(());
    }
    for (name, view) in &state.views {
        match state.select(view) {
            Some(table) => holds_rows(seen, name, &table)?,
            None if seen.read(&format!("SELECT * FROM {name}")).is_err() => {}
            None => return Err(format!("view {name} can be read")),
        }
    }
    let schemas = texts(seen, "SELECT DISTINCT schema_name FROM information_schema.schemata ORDER BY 1")?;
    let schemas: BTreeSet<String> = schemas.into_iter().map(|row| row.join(" ")).collect();
    let missing = state.schemas.iter().find(|schema| !schemas.contains(*schema));
    let extra = schemas.iter().find(|schema| !state.has_schema(schema) && *schema != "information_schema");
    match (missing, extra) {
        (None, None) => Ok(()),
        _ => Err(format!("there are the schemas {schemas:?}, there should be {:?}", state.schemas)),
    }
}

fn holds_rows(seen: &Seen, name: &Name, table: &Table) -> Outcome<()> {
    let sql = format!("SELECT * FROM {name}");
    let read = seen.read(&sql);
    let batches = read.as_ref().as_ref().map_err(|error| format!("{sql}: {error}"))?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let names: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    if let Some(batch) = batches.first() {
        let found: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        if found != names {
            return Err(format!("{name} has the columns {found:?}, it should have {names:?}"));
        }
    }
    let fingerprint = batches.iter().map(fingerprint).fold(0, u64::wrapping_add);
    if rows == table.rows.len() && fingerprint == table.fingerprint {
        return Ok(());
    }
    Err(format!("{name} has {rows} rows, it should have {}{}", table.rows.len(), differences(batches, table)))
}

/// A few of the rows that are too many or too few.
fn differences(batches: &[RecordBatch], table: &Table) -> String {
    let mut counts: BTreeMap<Vec<String>, i64> = BTreeMap::new();
    for row in batches.iter().flat_map(rows_of) {
        *counts.entry(row).or_default() += 1;
    }
    for row in &table.rows {
        let texts = row.iter().map(|cell| match cell {
            Cell::Text(text) => text.to_string(),
            other => other.to_string(),
        });
        *counts.entry(texts.collect()).or_default() -= 1;
    }
    let differing = counts.iter().filter(|(_, count)| **count != 0).take(6);
    let texts = differing.map(|(row, count)| {
        let row: String = row.join(" ").chars().take(80).collect();
        format!("\n    {count:+} times: {row}")
    });
    texts.collect()
}

/// The same sum as [`Table::seal`] makes.
fn fingerprint(batch: &RecordBatch) -> u64 {
    let mut hashes = vec![ROW_HASH; batch.num_rows()];
    for column in batch.columns() {
        let cell: Box<dyn Fn(usize) -> u64> = match column.data_type() {
            DataType::Int64 => {
                let values = column.as_primitive::<Int64Type>();
                Box::new(|row| int_hash(values.value(row)))
            }
            DataType::Utf8 => {
                let values = column.as_string::<i32>();
                Box::new(|row| text_hash(values.value(row)))
            }
            // None of ours: it will not be the same.
            _ => Box::new(|_| 1),
        };
        for (row, hash) in hashes.iter_mut().enumerate() {
            *hash = mixed(*hash, if column.is_null(row) { NULL_HASH } else { cell(row) });
        }
    }
    hashes.into_iter().fold(0, u64::wrapping_add)
}

fn texts(seen: &Seen, sql: &str) -> Outcome<Vec<Vec<String>>> {
    let read = seen.read(sql);
    let batches = read.as_ref().as_ref().map_err(|error| format!("{sql}: {error}"))?;
    Ok(batches.iter().flat_map(rows_of).collect())
}

fn holds_definition(seen: &Seen, name: &Name, table: &Table) -> Outcome<()> {
    let found = texts(seen, &format!("DESCRIBE {name}"))?;
    let expected: Vec<[String; 4]> = table
        .columns
        .iter()
        .map(|column| {
            let default = column.default.as_ref().map_or("NULL".to_owned(), Cell::to_string);
            [column.name.clone(), column.kind.sql().to_owned(), column.is_nullable.to_string(), default]
        })
        .collect();
    let is_same =
        found.len() == expected.len() && found.iter().zip(&expected).all(|(found, expected)| found[..4] == *expected);
    if is_same { Ok(()) } else { Err(format!("{name} is defined as {found:?}, it should be {expected:?}")) }
}
