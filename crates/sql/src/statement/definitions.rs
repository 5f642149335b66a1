//! What CREATE and DROP of tables and of views have in common: they share their names.

use super::{done, table_name};
use crate::batches::Outcome;
use crate::catalog::TableName;
use crate::progress::Notes;
use crate::transaction::Transaction;
use crate::{Error, Result, Session};
use datafusion::sql::sqlparser::ast;

/// A kind of object that has a table's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defined {
    Table,
    View,
    Tree,
    Index,
}

impl Defined {
    /// What stands under a name.
    pub(super) fn of(transaction: &Transaction, name: &TableName) -> Option<Defined> {
        transaction.reads().name(name);
        let catalog = transaction.catalog();
        let of_tree = || {
            let is_index = catalog.trees.get(name)?.shape().is_index();
            Some(if is_index { Defined::Index } else { Defined::Tree })
        };
        match (catalog.tables.contains_key(name), catalog.views.contains_key(name)) {
            (true, _) => Some(Defined::Table),
            (_, true) => Some(Defined::View),
            _ => of_tree(),
        }
    }

    fn article(self) -> &'static str {
        if self == Defined::Index { "an" } else { "a" }
    }

    fn word(self) -> &'static str {
        match self {
            Defined::Table => "table",
            Defined::View => "view",
            Defined::Tree => "key-value tree",
            Defined::Index => "index",
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
    check_schema(transaction, name)?;
    let word = kind.word();
    match Defined::of(transaction, name) {
        None => Ok(true),
        Some(other) if other != kind => Err(Error::Sql(format!(
            "'{name}' is {} {}; drop it first, or use another name",
            other.article(),
            other.word()
        ))),
        Some(_) if if_taken.if_not_exists => {
            notes.add(format!("{word} '{name}' exists already"));
            Ok(false)
        }
        Some(_) if if_taken.or_replace => Ok(true),
        Some(_) => Err(Error::Sql(format!(
            "{word} '{name}' exists already; use CREATE OR REPLACE {} or another name",
            if kind == Defined::View { "VIEW" } else { "TABLE" }
        ))),
    }
}

/// Whether a table or view may get this name from another.
///
/// # Errors
/// [`Error::Sql`]: the name is taken, or there is no such schema.
pub(super) fn check_free(transaction: &Transaction, name: &TableName) -> Result<()> {
    check_schema(transaction, name)?;
    match Defined::of(transaction, name) {
        None => Ok(()),
        Some(_) => Err(Error::Sql(format!("'{name}' exists already; drop it first, or use another name"))),
    }
}

fn check_schema(transaction: &Transaction, name: &TableName) -> Result<()> {
    transaction.reads().schema(&name.schema);
    match transaction.catalog().has_schema(&name.schema) {
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
            match Defined::of(transaction, name) {
                Some(found) if found == kind => transaction.drop(name)?,
                // It is a table to SQL.
                Some(Defined::Tree) if kind == Defined::Table => transaction.drop(name)?,
                Some(other) => {
                    let statement = match other {
                        Defined::View => "DROP VIEW",
                        Defined::Index => "DROP INDEX",
                        Defined::Table | Defined::Tree => "DROP TABLE",
                    };
                    let (article, word) = (other.article(), other.word());
                    return Err(Error::Sql(format!("'{name}' is {article} {word}; use {statement}")));
                }
                None if if_exists => notes.add(format!("there is no {word} '{name}'")),
                // The error says which tables there are.
                None if kind == Defined::Table => transaction.find(name).map(|_| ())?,
                None => return Err(Error::Sql(format!("there is no view '{name}'"))),
            }
        }
        Ok(done(&format!("DROP {}", word.to_uppercase()), None, &notes))
    })
}
