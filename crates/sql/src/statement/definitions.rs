//! What CREATE and DROP of tables and of views have in common: they share their names.

use super::names::find;
use super::{done, table_name};
use crate::batches::Outcome;
use crate::catalog::{Catalog, TableName};
use crate::progress::Notes;
use crate::transaction::Transaction;
use crate::{Error, Result, Session};
use datafusion::sql::sqlparser::ast;

/// A kind of object that has a table's name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Defined {
    Table,
    View,
}

impl Defined {
    /// What stands under a name.
    fn of(catalog: &Catalog, name: &TableName) -> Option<Defined> {
        match (catalog.tables.contains_key(name), catalog.views.contains_key(name)) {
            (true, _) => Some(Defined::Table),
            (_, true) => Some(Defined::View),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Defined::Table => "table",
            Defined::View => "view",
        }
    }
}

/// How a CREATE takes it that the name is taken.
#[derive(Clone, Copy)]
pub(super) struct IfTaken {
    pub(super) if_not_exists: bool,
    pub(super) or_replace: bool,
}

/// Whether a name may get a new table or view; false where one is there already and that is well.
///
/// # Errors
/// [`Error::Sql`]: the name is taken, or there is no such schema.
pub(super) fn may_define(
    transaction: &Transaction,
    name: &TableName,
    kind: Defined,
    if_taken: IfTaken,
    notes: &Notes,
) -> Result<bool> {
    let catalog = transaction.catalog();
    check_schema(&catalog, name)?;
    let word = kind.word();
    match Defined::of(&catalog, name) {
        None => Ok(true),
        Some(other) if other != kind => {
            Err(Error::Sql(format!("'{name}' is a {}; drop it first, or use another name", other.word())))
        }
        Some(_) if if_taken.if_not_exists => {
            let id = catalog.table(name).map(|table| table.id());
            let id = id.or_else(|| catalog.views.get(name).map(|view| view.id));
            id.into_iter().for_each(|id| transaction.reads().definition(id));
            notes.add(format!("{word} '{name}' exists already"));
            Ok(false)
        }
        Some(_) if if_taken.or_replace => Ok(true),
        Some(_) => Err(Error::Sql(format!(
            "{word} '{name}' exists already; use CREATE OR REPLACE {} or another name",
            word.to_uppercase()
        ))),
    }
}

/// Whether a table or view may get this name from another.
///
/// # Errors
/// [`Error::Sql`]: the name is taken, or there is no such schema.
pub(super) fn check_free(catalog: &Catalog, name: &TableName) -> Result<()> {
    check_schema(catalog, name)?;
    match Defined::of(catalog, name) {
        None => Ok(()),
        Some(_) => Err(Error::Sql(format!("'{name}' exists already; drop it first, or use another name"))),
    }
}

fn check_schema(catalog: &Catalog, name: &TableName) -> Result<()> {
    match catalog.has_schema(&name.schema) {
        true => Ok(()),
        false => Err(Error::Sql(format!("there is no schema '{}'; CREATE SCHEMA makes one", name.schema))),
    }
}

/// DROP TABLE and DROP VIEW.
pub(super) fn drop(session: &Session, kind: Defined, names: &[ast::ObjectName], if_exists: bool) -> Result<Outcome> {
    let names = names.iter().map(table_name).collect::<Result<Vec<_>>>()?;
    let word = kind.word();
    session.change(|transaction| {
        let notes = Notes::default();
        for name in &names {
            let catalog = transaction.catalog();
            match Defined::of(&catalog, name) {
                Some(found) if found == kind => transaction.drop(name)?,
                Some(other) => {
                    let other = other.word();
                    return Err(Error::Sql(format!("'{name}' is a {other}; use DROP {}", other.to_uppercase())));
                }
                None if if_exists => notes.add(format!("there is no {word} '{name}'")),
                // The error says which tables there are.
                None if kind == Defined::Table => find(&catalog, name).map(|_| ())?,
                None => return Err(Error::Sql(format!("there is no view '{name}'"))),
            }
        }
        Ok(done(&format!("DROP {}", word.to_uppercase()), None, &notes))
    })
}
