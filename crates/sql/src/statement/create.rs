//! CREATE TABLE and CREATE TABLE AS.

use super::assign::Assigner;
use super::definitions::{Defined, IfTaken, may_define};
use super::indexes::Declared;
use super::insert::pull;
use super::names::normal;
use super::target::{Receiver, Target};
use super::trees;
use super::types::logical_type;
use super::values::default_text;
use super::{done, table_name};
use crate::batches::Outcome;
use crate::catalog::TableName;
use crate::kv::TreeRows;
use crate::planner::{Planned, keeping_order};
use crate::progress::Notes;
use crate::{Error, Result, Session};
use datafusion::sql::sqlparser::ast;
use sinter_codec::Request;
use sinter_column::{Check, ColumnSchema, TableSchema};
use sinter_exec::{LogicalType, edge};
use std::collections::BTreeSet;

pub(super) fn run(session: &Session, create: &ast::CreateTable) -> Result<Outcome> {
    let name = table_name(&create.name)?;
    if create.temporary {
        return Err(Error::Sql("temporary tables are not supported yet; leave out TEMPORARY".to_owned()));
    }
    session.change(|transaction| {
        let notes = Notes::default();
        let if_taken = IfTaken { if_not_exists: create.if_not_exists, or_replace: create.or_replace };
        let kind = if is_tree(&create.table_options) { Defined::Tree } else { Defined::Table };
        if !may_define(transaction, &name, kind, if_taken, &notes)? {
            return Ok(done("CREATE TABLE", None, &notes));
        }
        let seen = session.seen_by(transaction);
        // Rows that cannot be read must not go with the table that gives way.
        let state = keeping_order(match create.or_replace {
            true => session.statement_state(seen, notes.clone()),
            false => session.query_state(seen, notes.clone()),
        });
        let planned = match &create.query {
            Some(query) => Some(session.plan(&state, ast::Statement::Query(query.clone()))?),
            None => None,
        };
        let settings = session.settings();
        let (mut schema, indexes) = declared_schema(&name, create, planned.as_ref(), settings.compression.as_deref())?;
        if !indexes.is_empty() && Defined::of(transaction, &name).is_some() {
            // The names of its indexes are free again.
            transaction.drop(&name)?;
        }
        let target = match trees::declared(&name, &schema, &indexes)? {
            Some(options) => {
                transaction.drop(&name)?;
                let tree = transaction.create_tree(&session.database, name.clone(), options.shape()?)?;
                Target::Tree(TreeRows::new(&name, &tree))
            }
            None => {
                for index in indexes {
                    let index = index.make(transaction, &session.database, &name, &schema)?;
                    schema.indexes.push(index);
                }
                Target::Table(transaction.create_table(&session.database, name.clone(), schema)?)
            }
        };
        let assigner = Assigner::in_order(target.name(), target.schema(), &state)?;
        let mut rows = None;
        if let Some(planned) = planned {
            let planned = planned.sorted_for(target.schema(), assigner.sources())?;
            let mut receiver = Receiver::new(&target, transaction, settings.threads)?;
            pull(session, planned, target.name(), |batch| receiver.take(transaction, &assigner.assign(&batch)?))?;
            rows = Some(receiver.finish(transaction)?);
        }
        Ok(done("CREATE TABLE", rows, &notes))
    })
}

/// The columns, rules and options of a new table: as declared, or as its query yields them. Columns that name no scheme get
/// the one of `compression` where it suits them.
fn declared_schema(
    name: &TableName,
    create: &ast::CreateTable,
    planned: Option<&Planned>,
    compression: Option<&str>,
) -> Result<(TableSchema, Vec<Declared>)> {
    let mut columns = Vec::new();
    let mut rules = Rules::default();
    for column in &create.columns {
        columns.push(declared_column(column, &mut rules)?);
    }
    for constraint in &create.constraints {
        match Declared::of_constraint(constraint)? {
            Some(index) => rules.indexes.push(index),
            None => rules.checks.push(declared_check(constraint)?),
        }
    }
    if let Some(planned) = planned {
        let schema = planned.schema();
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
    let mut schema = TableSchema::new(columns);
    let Rules { checks, indexes } = rules;
    for check in checks {
        let check = with_name(check, &schema.checks);
        schema.checks.push(check);
    }
    for name in indexes.iter().flat_map(Declared::primary_columns) {
        let of_key = schema.columns.iter_mut().filter(|column| column.name == *name);
        of_key.for_each(|column| column.nullable = false);
    }
    if indexes.iter().filter(|index| !index.primary_columns().is_empty()).count() > 1 {
        return Err(Error::Sql(format!("table '{name}' has two PRIMARY KEYs; there is one at most, use UNIQUE")));
    }
    if let Some(scheme) = compression {
        let request = Request::parse(scheme).map_err(|error| Error::Sql(error.to_string()))?;
        let suited = schema.columns.iter_mut().filter(|column| suits(&request, &column.ty).is_ok());
        suited.for_each(|column| column.compression = Some(scheme.to_owned()));
    }
    set_options(&mut schema, &create.table_options)?;
    schema.validate()?;
    Ok((schema, indexes))
}

/// A rule with a name, so that it can be dropped.
pub(super) fn with_name(check: Check, known: &[Check]) -> Check {
    let is_free = |name: &str| !known.iter().any(|check| check.name.as_deref() == Some(name));
    let name = check.name.or_else(|| (1..).map(|number| format!("check_{number}")).find(|name| is_free(name)));
    Check { name, sql: check.sql }
}

/// `CONSTRAINT c CHECK (a > 0)`.
pub(super) fn declared_check(constraint: &ast::TableConstraint) -> Result<Check> {
    match constraint {
        ast::TableConstraint::Check(check) => {
            Ok(Check { name: check.name.as_ref().map(normal), sql: check.expr.to_string() })
        }
        other => Err(Error::Sql(format!("constraint not supported yet: {other}; leave it out"))),
    }
}

/// What columns and constraints of a table say of its rows.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) checks: Vec<Check>,
    pub(super) indexes: Vec<Declared>,
}

/// One column of CREATE TABLE or ALTER TABLE; what it says of rows goes to `rules`.
pub(super) fn declared_column(column: &ast::ColumnDef, rules: &mut Rules) -> Result<ColumnSchema> {
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
            ast::ColumnOption::Check(check) => {
                rules.checks.push(Check { name: option.name.as_ref().map(normal), sql: check.expr.to_string() });
            }
            ast::ColumnOption::PrimaryKey(_) | ast::ColumnOption::Unique(_) => {
                rules.indexes.extend(Declared::of_column(column, option)?);
            }
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

/// `WITH (storage = 'column', layout = 'dsm', compression_c = 'pfor')`, `WITH (storage = 'tree', codec = 'bp128')`.
fn set_options(schema: &mut TableSchema, options: &ast::CreateTableOptions) -> Result<()> {
    for (name, value) in options_of(options)? {
        match (name.as_str(), value.as_str()) {
            ("storage", "column" | "tree")
            | ("layout", "dsm" | "pax")
            | ("codec" | "value_bytes" | "duplicates", _) => {
                schema.options.push((name, value));
            }
            ("order_by", _) => {
                let unknown = value.split(',').map(str::trim).find(|column| schema.index_of(column).is_none());
                if let Some(unknown) = unknown {
                    return Err(Error::Sql(format!("order_by names '{unknown}', but there is no such column")));
                }
                schema.options.push((name, value));
            }
            ("storage" | "layout", _) => {
                return Err(Error::Sql(format!("{name} = '{value}' is not supported yet; leave it out")));
            }
            _ => match name.strip_prefix("compression_") {
                Some(column) => set_compression(schema, column, value)?,
                None => {
                    return Err(Error::Sql(format!(
                        "there is no table option '{name}'; there are: storage, layout, order_by, compression_<column>; of trees: \
                         codec, value_bytes, duplicates"
                    )));
                }
            },
        }
    }
    Ok(())
}

/// Whether the options say so: WITH (storage = 'tree').
fn is_tree(options: &ast::CreateTableOptions) -> bool {
    options_of(options).is_ok_and(|options| options.iter().any(|(name, value)| name == "storage" && value == "tree"))
}

/// The options of a table, by name, as texts.
fn options_of(options: &ast::CreateTableOptions) -> Result<Vec<(String, String)>> {
    let options = match options {
        ast::CreateTableOptions::None => return Ok(Vec::new()),
        ast::CreateTableOptions::With(options) | ast::CreateTableOptions::Options(options) => options,
        other => return Err(Error::Sql(format!("table options are written WITH (...), not {other}"))),
    };
    let named = options.iter().map(|option| {
        let ast::SqlOption::KeyValue { key, value } = option else {
            return Err(Error::Sql(format!("table option {option} is not of the form name = 'value'")));
        };
        let value = match value {
            ast::Expr::Value(value) => value.value.clone().into_string().unwrap_or_else(|| value.to_string()),
            other => other.to_string(),
        };
        Ok((normal(key), value))
    });
    named.collect()
}

fn set_compression(schema: &mut TableSchema, column: &str, scheme: String) -> Result<()> {
    let Some(index) = schema.index_of(column) else {
        return Err(Error::Sql(format!("compression_{column} is set, but there is no column '{column}'")));
    };
    let ty = &schema.columns[index].ty;
    if scheme != "auto" {
        let request = Request::parse(&scheme).map_err(|error| match error {
            sinter_codec::Error::NoSuchScheme { .. } => Error::Sql(format!("column '{column}': {error}, auto")),
            other => Error::Sql(format!("column '{column}': {other}")),
        })?;
        suits(&request, ty).map_err(|unsuited| {
            Error::Sql(match unsuited {
                Unsuited::NotHeld => {
                    format!("column '{column}': scheme '{scheme}' cannot hold {ty}; leave the choice to us")
                }
                Unsuited::NotRounded => {
                    format!("column '{column}': values of {ty} cannot be rounded, as '{scheme}' asks for")
                }
            })
        })?;
    }
    schema.columns[index].compression = (scheme != "auto").then_some(scheme);
    Ok(())
}

/// Why a scheme is not for values of a type.
enum Unsuited {
    NotHeld,
    NotRounded,
}

fn suits(request: &Request, ty: &LogicalType) -> std::result::Result<(), Unsuited> {
    if !ty.physical().is_some_and(|physical| request.holds(physical)) {
        return Err(Unsuited::NotHeld);
    }
    match request.is_lossy() && matches!(ty, LogicalType::Boolean | LogicalType::Uuid | LogicalType::Interval) {
        true => Err(Unsuited::NotRounded),
        false => Ok(()),
    }
}
