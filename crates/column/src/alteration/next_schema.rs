//! What an alteration makes of a schema, and which alterations a schema does not allow.

use super::Alteration;
use super::fill::check_fill;
use crate::{Check, Error, Index, IndexRule, Result, TableSchema};

impl Alteration {
    /// The schema with this alteration, one version later; `table` is for messages.
    ///
    /// # Errors
    /// [`Error::Data`] naming the column and the remedy.
    pub(super) fn next_schema(&self, table: &str, schema: &TableSchema) -> Result<TableSchema> {
        let refused = |what: String| Err(Error::Data(format!("table '{table}': {what}")));
        let position = |name: &str| match schema.index_of(name) {
            Some(index) => Ok(index),
            None => {
                let names: Vec<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
                Err(Error::Data(format!("table '{table}' has no column '{name}'; it has {}", names.join(", "))))
            }
        };
        let taken = |name: &str| {
            Err(Error::Data(format!("table '{table}' has a column '{name}' already; choose another name")))
        };
        let index_with =
            |column: &str| schema.indexes.iter().find(|index| index.columns.iter().any(|name| name == column));
        let mut next = schema.clone();
        next.version = schema.version.wrapping_add(1);
        match self {
            Alteration::AddColumn { column, fill } => {
                if schema.index_of(&column.name).is_some() {
                    return taken(&column.name);
                }
                if let Some(fill) = fill {
                    check_fill(table, column, fill)?;
                }
                next.columns.push(column.clone());
                next.validate()?;
            }
            Alteration::DropColumn { name } => {
                let index = position(name)?;
                if schema.columns.len() == 1 {
                    return refused(format!("'{name}' is its only column; drop the table instead"));
                }
                if let Some(Index { name: index, .. }) = index_with(name) {
                    return refused(format!("column '{name}' is in the index '{index}'; DROP INDEX that first"));
                }
                next.columns.remove(index);
            }
            Alteration::RenameColumn { from, to } => {
                let index = position(from)?;
                if schema.index_of(to).is_some() {
                    return taken(to);
                }
                next.columns[index].name.clone_from(to);
                let indexed = next.indexes.iter_mut().flat_map(|index| &mut index.columns);
                indexed.filter(|name| *name == from).for_each(|name| name.clone_from(to));
            }
            Alteration::SetNullable { column, nullable } => {
                let position = position(column)?;
                let primary = schema.indexes.iter().find(|index| index.rule == IndexRule::Primary);
                if *nullable && primary.is_some_and(|index| index.columns.contains(column)) {
                    return refused(format!("column '{column}' is of the PRIMARY KEY, whose columns are NOT NULL"));
                }
                next.columns[position].nullable = *nullable;
            }
            Alteration::SetDefault { column, default } => next.columns[position(column)?].default.clone_from(default),
            Alteration::AddCheck { check } => {
                if check.name.is_some() && schema.checks.iter().any(|other| other.name == check.name) {
                    let name = check.name.as_deref().unwrap_or_default();
                    return refused(format!("it has a check '{name}' already; choose another name"));
                }
                next.checks.push(check.clone());
            }
            Alteration::DropCheck { name } => {
                let is_meant = |check: &Check| check.name.as_deref() == Some(name);
                let Some(index) = schema.checks.iter().position(is_meant) else {
                    let names: Vec<&str> = schema.checks.iter().filter_map(|check| check.name.as_deref()).collect();
                    let known = if names.is_empty() { "none with a name".to_owned() } else { names.join(", ") };
                    return refused(format!("it has no check '{name}'; it has {known}"));
                };
                next.checks.remove(index);
            }
            Alteration::AddIndex { index, .. } => {
                index.columns.iter().try_for_each(|column| position(column).map(drop))?;
                if let Some(twice) =
                    index.columns.iter().enumerate().find(|(at, name)| index.columns[..*at].contains(name))
                {
                    return refused(format!("column '{}' is in the index '{}' twice", twice.1, index.name));
                }
                if index.rule == IndexRule::Primary
                    && schema.indexes.iter().any(|known| known.rule == IndexRule::Primary)
                {
                    return refused("it has a PRIMARY KEY already; there is one at most, use UNIQUE".to_owned());
                }
                next.indexes.push(index.clone());
            }
            Alteration::DropIndex { name } => {
                let Some(index) = schema.indexes.iter().position(|index| index.name == *name) else {
                    return refused(format!("it has no index '{name}'"));
                };
                next.indexes.remove(index);
            }
        }
        Ok(next)
    }
}
