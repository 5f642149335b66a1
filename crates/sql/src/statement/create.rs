//! CREATE TABLE, CREATE TABLE AS, DROP TABLE.

use super::assign::Assigner;
use super::insert::pull;
use super::names::normal;
use super::types::logical_type;
use super::values::default_text;
use super::{done, table_name};
use crate::batches::{Outcome, named};
use crate::parse::column_names;
use crate::progress::Notes;
use crate::{Error, Result, Session};
use datafusion::sql::sqlparser::ast;
use sinter_codec::scheme_by_name;
use sinter_column::{Change, ColumnSchema, TableSchema};
use sinter_exec::edge;
use std::collections::BTreeSet;

pub(super) fn run(session: &Session, create: ast::CreateTable) -> Result<Outcome> {
    let notes = Notes::default();
    let name = table_name(&create.name)?;
    if create.temporary {
        return Err(Error::Sql("temporary tables are not supported yet; leave out TEMPORARY".to_owned()));
    }
    if let Some(constraint) = create.constraints.first() {
        return Err(Error::Sql(format!("constraint not supported yet: {constraint}; leave it out")));
    }
    let mut write = session.database.write()?;
    let catalog = session.database.catalog();
    if catalog.table(&name).is_some() {
        if create.if_not_exists {
            notes.add(format!("table '{name}' exists already"));
            return Ok(done("CREATE TABLE", None, &notes));
        }
        if !create.or_replace {
            return Err(Error::Sql(format!(
                "table '{name}' exists already; use CREATE OR REPLACE TABLE or another name"
            )));
        }
    }
    let planned = match &create.query {
        Some(query) => {
            let state = session.statement_state(catalog, notes.clone());
            Some(session.plan(&state, ast::Statement::Query(query.clone()))?)
        }
        None => None,
    };
    let mut columns = Vec::new();
    for column in &create.columns {
        columns.push(declared_column(column)?);
    }
    if let Some(planned) = &planned {
        let names = create.query.as_ref().map(|query| column_names(query)).unwrap_or_default();
        let schema = named(&planned.physical.schema(), &names);
        if columns.is_empty() {
            for field in schema.fields() {
                let ty = edge::logical_type(field.data_type()).ok_or_else(|| {
                    Error::Sql(format!(
                        "column '{}' is {}, which tables cannot hold; cast it",
                        field.name(),
                        field.data_type()
                    ))
                })?;
                columns.push(ColumnSchema {
                    name: field.name().clone(),
                    ty,
                    nullable: true,
                    compression: None,
                    default: None,
                });
            }
        } else if columns.len() != schema.fields().len() {
            return Err(Error::Sql(format!(
                "{} columns are declared, but the query yields {}",
                columns.len(),
                schema.fields().len()
            )));
        }
    }
    if columns.is_empty() {
        return Err(Error::Sql(format!("table '{name}' has no columns; a table needs at least one")));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = columns.iter().find(|column| !names.insert(column.name.as_str())) {
        return Err(Error::Sql(format!("column '{}' is there twice; rename one with AS", twice.name)));
    }
    let mut schema = TableSchema { columns, options: Vec::new() };
    set_options(&mut schema, &create.table_options)?;
    schema.validate()?;
    let threads = session.settings().threads;
    let mut rows = None;
    write.create_table(name, schema, |table| {
        let Some(planned) = planned else { return Ok(Vec::new()) };
        let mut change = Change::new(table, threads);
        let assigner = Assigner::by_position(&table.schema(), &planned.physical.schema())?;
        pull(session, planned, table.name(), |batch| Ok(change.insert(&assigner.assign(&batch)?)?))?;
        rows = Some(change.rows_inserted());
        Ok(vec![change])
    })?;
    Ok(done("CREATE TABLE", rows, &notes))
}

fn declared_column(column: &ast::ColumnDef) -> Result<ColumnSchema> {
    let mut schema = ColumnSchema {
        name: normal(&column.name),
        ty: logical_type(&column.data_type)?,
        nullable: true,
        compression: None,
        default: None,
    };
    for option in &column.options {
        match &option.option {
            ast::ColumnOption::Null => {}
            ast::ColumnOption::NotNull => schema.nullable = false,
            ast::ColumnOption::Default(value) => schema.default = Some(default_text(&schema.name, value)?),
            other => {
                return Err(Error::Sql(format!(
                    "column '{}': {other} is not supported yet; leave it out",
                    schema.name
                )));
            }
        }
    }
    Ok(schema)
}

/// `WITH (storage = 'column', layout = 'dsm', compression_c = 'pfor')`.
fn set_options(schema: &mut TableSchema, options: &ast::CreateTableOptions) -> Result<()> {
    let options = match options {
        ast::CreateTableOptions::None => return Ok(()),
        ast::CreateTableOptions::With(options) | ast::CreateTableOptions::Options(options) => options,
        other => return Err(Error::Sql(format!("table options are written WITH (...), not {other}"))),
    };
    for option in options {
        let ast::SqlOption::KeyValue { key, value } = option else {
            return Err(Error::Sql(format!("table option {option} is not of the form name = 'value'")));
        };
        let name = normal(key);
        let value = match value {
            ast::Expr::Value(value) => value.value.clone().into_string().unwrap_or_else(|| value.to_string()),
            other => other.to_string(),
        };
        match (name.as_str(), value.as_str()) {
            ("storage", "column") | ("layout", "dsm") => schema.options.push((name, value)),
            ("storage" | "layout" | "order_by", _) => {
                return Err(Error::Sql(format!("{name} = '{value}' is not supported yet; leave it out")));
            }
            _ => match name.strip_prefix("compression_") {
                Some(column) => set_compression(schema, column, value)?,
                None => {
                    return Err(Error::Sql(format!(
                        "there is no table option '{name}'; there are: storage, layout, compression_<column>"
                    )));
                }
            },
        }
    }
    Ok(())
}

fn set_compression(schema: &mut TableSchema, column: &str, scheme: String) -> Result<()> {
    let Some(index) = schema.index_of(column) else {
        return Err(Error::Sql(format!("compression_{column} is set, but there is no column '{column}'")));
    };
    let ty = &schema.columns[index].ty;
    if scheme != "auto" {
        let entry = scheme_by_name(&scheme).map_err(|error| Error::Sql(format!("column '{column}': {error}, auto")))?;
        if !ty.physical().is_some_and(|physical| entry.holds(physical)) {
            return Err(Error::Sql(format!(
                "column '{column}': scheme '{scheme}' cannot hold {ty}; leave the choice to us"
            )));
        }
    }
    schema.columns[index].compression = (scheme != "auto").then_some(scheme);
    Ok(())
}

pub(super) fn drop(session: &Session, names: &[ast::ObjectName], if_exists: bool) -> Result<Outcome> {
    let notes = Notes::default();
    let mut write = session.database.write()?;
    let catalog = session.database.catalog();
    let names = names.iter().map(table_name).collect::<Result<Vec<_>>>()?;
    for name in &names {
        if catalog.table(name).is_none() {
            match if_exists {
                true => notes.add(format!("there is no table '{name}'")),
                false => super::names::find(&catalog, name).map(|_| ())?,
            }
        }
    }
    write.drop_tables(&names)?;
    Ok(done("DROP TABLE", None, &notes))
}
