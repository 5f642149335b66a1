//! CREATE VIEW and DROP VIEW.

use super::names::{normal, quoted};
use super::{done, table_name};
use crate::batches::{Outcome, named};
use crate::parse::column_names;
use crate::progress::Notes;
use crate::{Error, Result, Session};
use datafusion::sql::sqlparser::ast;
use std::collections::BTreeSet;

pub(super) fn create(session: &Session, create: &ast::CreateView) -> Result<Outcome> {
    if create.materialized || create.temporary {
        return Err(Error::Sql("views that are MATERIALIZED or TEMPORARY are not supported yet".to_owned()));
    }
    let name = table_name(&create.name)?;
    session.change(|transaction| {
        let notes = Notes::default();
        let catalog = transaction.catalog();
        if !catalog.has_schema(&name.schema) {
            return Err(Error::Sql(format!("there is no schema '{}'; CREATE SCHEMA makes one", name.schema)));
        }
        if catalog.tables.contains_key(&name) {
            return Err(Error::Sql(format!("'{name}' is a table; drop it first, or use another name")));
        }
        if catalog.views.contains_key(&name) {
            if create.if_not_exists {
                notes.add(format!("view '{name}' exists already"));
                return Ok(done("CREATE VIEW", None, &notes));
            }
            if !create.or_replace {
                return Err(Error::Sql(format!(
                    "view '{name}' exists already; use CREATE OR REPLACE VIEW or another name"
                )));
            }
        }
        // Planned now, so that a view that could never be read is refused, and its columns have names that stay.
        let state = session.statement_state(catalog, transaction.reads(), notes.clone());
        let planned = session.plan(&state, ast::Statement::Query(create.query.clone()))?;
        let schema = named(&planned.physical.schema(), &column_names(&create.query));
        let names: Vec<String> = match create.columns.len() {
            0 => schema.fields().iter().map(|field| field.name().clone()).collect(),
            given if given == schema.fields().len() => {
                create.columns.iter().map(|column| normal(&column.name)).collect()
            }
            given => {
                return Err(Error::Sql(format!(
                    "{given} columns are named, but the query yields {}",
                    schema.fields().len()
                )));
            }
        };
        let mut known = BTreeSet::new();
        if let Some(twice) = names.iter().find(|name| !known.insert(name.as_str())) {
            return Err(Error::Sql(format!("column '{twice}' is there twice; rename one with AS")));
        }
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let sql = format!("SELECT * FROM ({}) AS {} ({})", create.query, quoted(&name.table), names.join(", "));
        transaction.create_view(&session.database, name.clone(), sql)?;
        Ok(done("CREATE VIEW", None, &notes))
    })
}

pub(super) fn drop(session: &Session, names: &[ast::ObjectName], if_exists: bool) -> Result<Outcome> {
    let names = names.iter().map(table_name).collect::<Result<Vec<_>>>()?;
    session.change(|transaction| {
        let notes = Notes::default();
        for name in &names {
            let catalog = transaction.catalog();
            if catalog.tables.contains_key(name) {
                return Err(Error::Sql(format!("'{name}' is a table; use DROP TABLE")));
            }
            match (catalog.views.contains_key(name), if_exists) {
                (true, _) => transaction.drop(name)?,
                (false, true) => notes.add(format!("there is no view '{name}'")),
                (false, false) => return Err(Error::Sql(format!("there is no view '{name}'"))),
            }
        }
        Ok(done("DROP VIEW", None, &notes))
    })
}
