//! CREATE SCHEMA and DROP SCHEMA.

use super::done;
use super::names::normal;
use crate::batches::Outcome;
use crate::catalog::{DEFAULT_SCHEMA, TableName};
use crate::progress::Notes;
use crate::{Error, Result, Session};
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::sql::sqlparser::ast;

fn schema_name(name: &ast::ObjectName) -> Result<String> {
    match &name.0[..] {
        [part] => part.as_ident().map(normal),
        _ => None,
    }
    .ok_or_else(|| Error::Sql(format!("'{name}' is no name for a schema; it has one part")))
}

pub(super) fn create(session: &Session, name: &ast::SchemaName, if_not_exists: bool) -> Result<Outcome> {
    let ast::SchemaName::Simple(name) = name else {
        return Err(Error::Sql("CREATE SCHEMA with AUTHORIZATION is not supported; leave it out".to_owned()));
    };
    let name = schema_name(name)?;
    if name == INFORMATION_SCHEMA {
        return Err(Error::Sql(format!("schema '{name}' describes what there is; use another name")));
    }
    session.change(|transaction| {
        let notes = Notes::default();
        if session.database.attached().get(&name).is_some() {
            return Err(Error::Sql(format!("'{name}' is an attached database; use another name, or DETACH it first")));
        }
        transaction.reads().schema(&name);
        match (transaction.catalog().has_schema(&name), if_not_exists) {
            (false, _) => transaction.create_schema(&session.database, name.as_str().into())?,
            (true, true) => notes.add(format!("schema '{name}' exists already")),
            (true, false) => return Err(Error::Sql(format!("schema '{name}' exists already"))),
        }
        Ok(done("CREATE SCHEMA", None, &notes))
    })
}

pub(super) fn drop(session: &Session, names: &[ast::ObjectName], if_exists: bool, cascade: bool) -> Result<Outcome> {
    let names = names.iter().map(schema_name).collect::<Result<Vec<_>>>()?;
    session.change(|transaction| {
        let notes = Notes::default();
        for name in &names {
            if name == DEFAULT_SCHEMA {
                return Err(Error::Sql(format!("schema '{name}' is always there and cannot be dropped")));
            }
            transaction.reads().schema(name);
            let catalog = transaction.catalog();
            if !catalog.has_schema(name) {
                match if_exists {
                    true => notes.add(format!("there is no schema '{name}'")),
                    false => return Err(Error::Sql(format!("there is no schema '{name}'"))),
                }
                continue;
            }
            transaction.reads().within(name);
            let within: Vec<TableName> = catalog.within(name).map(|(name, _)| name.clone()).collect();
            if let (Some(first), false) = (within.first(), cascade) {
                return Err(Error::Sql(format!(
                    "schema '{name}' is not empty: it holds {first}{}; drop that first, or use DROP SCHEMA ... CASCADE",
                    if within.len() > 1 { " and others" } else { "" }
                )));
            }
            within.iter().try_for_each(|table| transaction.drop(table))?;
            transaction.drop_schema(name)?;
        }
        Ok(done("DROP SCHEMA", None, &notes))
    })
}
