//! Names as they stand in statements.

use crate::catalog::{Catalog, DEFAULT_SCHEMA, TableName};
use crate::parse::DIALECT;
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use sinter_column::{ColumnTable, TableSchema};
use std::sync::Arc;

/// An identifier as it is stored: lower case unless it was quoted, as PostgreSQL does.
pub(crate) fn normal(ident: &ast::Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// `t` or `s.t`.
pub(crate) fn table_name(name: &ast::ObjectName) -> Result<TableName> {
    let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident().map(normal)).collect();
    match &parts[..] {
        [table] if name.0.len() == 1 => Ok(TableName::new(DEFAULT_SCHEMA, table)),
        [schema, table] if name.0.len() == 2 => Ok(TableName::new(schema, table)),
        _ => Err(Error::Sql(format!("'{name}' is no table name; write table or schema.table"))),
    }
}

/// A name as applications write it in a call: `t`, `s.t`, `"T"`.
pub(crate) fn parse_object_name(text: &str) -> Result<ast::ObjectName> {
    let name = Parser::new(&DIALECT).try_with_sql(text).and_then(|mut parser| {
        let name = parser.parse_object_name(false)?;
        parser.expect_token(&Token::EOF)?;
        Ok(name)
    });
    name.map_err(|_| Error::Sql(format!("'{text}' is no table name; put odd names in double quotes")))
}

/// [`parse_object_name`] for a table of the database itself.
pub(crate) fn parse_table_name(text: &str) -> Result<TableName> {
    table_name(&parse_object_name(text)?)
}

/// A name that means the same wherever it stands.
pub(crate) fn full_name(database: &str, name: &TableName) -> String {
    format!("{}.{}.{}", quoted(database), quoted(&name.schema), quoted(&name.table))
}

/// The table of that name, or an error that lists near ones.
pub(crate) fn find<'a>(catalog: &'a Catalog, name: &TableName) -> Result<&'a Arc<ColumnTable>> {
    catalog.table(name).ok_or_else(|| {
        if let Some(damaged) = catalog.damaged.get(name) {
            return damaged.error(name);
        }
        if catalog.views.contains_key(name) {
            return Error::Sql(format!("'{name}' is a view; only tables can be changed or described so"));
        }
        if let Some((table, ..)) = catalog.index(name) {
            return Error::Sql(format!("'{name}' is an index of table '{table}'; only tables can be read or changed"));
        }
        if catalog.trees.contains_key(name) {
            return Error::Sql(format!("'{name}' is a key-value tree; only tables can be changed so"));
        }
        let known: Vec<String> = catalog.tables.keys().take(10).map(ToString::to_string).collect();
        match known.is_empty() {
            true => Error::Sql(format!("there is no table '{name}'; the database is empty")),
            false => Error::Sql(format!("there is no table '{name}'; there are: {}", known.join(", "))),
        }
    })
}

/// The column of a table that an assignment is to, where the statement calls the table `alias`.
///
/// # Errors
/// [`Error::Sql`]: it is to several, or to none of the table's.
pub(super) fn assigned_column(
    target: &ast::AssignmentTarget,
    table: &str,
    schema: &TableSchema,
    alias: &str,
) -> Result<usize> {
    let ast::AssignmentTarget::ColumnName(name) = target else {
        return Err(Error::Sql("to set several columns at once is not supported yet; set them one by one".to_owned()));
    };
    let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident()).map(normal).collect();
    let column = match &parts[..] {
        [column] => column,
        [table, column] if table == alias => column,
        _ => return Err(Error::Sql(format!("'{name}' is no column of table '{table}'"))),
    };
    let position = schema.index_of(column);
    position.ok_or_else(|| Error::Sql(format!("table '{table}' has no column '{name}'")))
}

/// An identifier in double quotes, for statements that we write ourselves.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
