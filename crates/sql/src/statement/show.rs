//! SHOW and DESCRIBE, as queries on table functions.

use super::databases::{self, TABLE_NAME_PARTS};
use super::{run_sql, table_name};
use crate::batches::{Outcome, Query};
use crate::kv::KvShape;
use crate::parse::parse_one;
use crate::{Error, Result, Session};
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;

pub(super) fn run(session: &Session, what: &str, name: Option<&ast::ObjectName>) -> Result<Outcome> {
    let sql = match (what, name) {
        ("tables", None) => "SELECT * FROM tables()".to_owned(),
        ("trees", None) => "SELECT * FROM trees()".to_owned(),
        ("indexes", None) => "SELECT * FROM indexes()".to_owned(),
        ("databases", None) => "SELECT * FROM databases()".to_owned(),
        ("memory", None) => "SELECT * FROM memory()".to_owned(),
        ("storage", None) => "SELECT * FROM storage()".to_owned(),
        ("storage", Some(name)) => {
            let mut name = name.clone();
            if let Some(attached) = databases::taken_from(session, &mut name, TABLE_NAME_PARTS)? {
                return run(&session.at(&attached)?, what, Some(&name));
            }
            let name = table_name(&name)?;
            let seen = session.readable()?;
            if seen.catalog.kv_tree(&name).is_none() {
                seen.find(&name)?;
            }
            format!("SELECT * FROM storage('{}')", name.to_string().replace('\'', "''"))
        }
        _ => {
            return Err(Error::Sql(format!(
                "SHOW {} is not known; there are: SHOW TABLES, SHOW INDEXES, SHOW TREES, SHOW DATABASES, SHOW STORAGE [t], SHOW \
                 MEMORY",
                what.to_uppercase()
            )));
        }
    };
    run_sql(session, parse_one(&sql)?)
}

/// The columns of a table.
pub(super) fn describe(session: &Session, name: &ast::ObjectName) -> Result<Outcome> {
    let mut name = name.clone();
    if let Some(attached) = databases::taken_from(session, &mut name, TABLE_NAME_PARTS)? {
        return describe(&session.at(&attached)?, &name);
    }
    let seen = session.readable()?;
    let name = table_name(&name)?;
    if let Some(tree) = seen.catalog.kv_tree(&name) {
        seen.reads.name(&name);
        return describe_tree(tree.shape());
    }
    let schema = seen.find(&name)?.schema();
    let names: StringArray = schema.columns.iter().map(|column| Some(column.name.as_str())).collect();
    let types: StringArray = schema.columns.iter().map(|column| Some(column.ty.to_string())).collect();
    let nullable: BooleanArray = schema.columns.iter().map(|column| Some(column.nullable)).collect();
    let defaults: StringArray = schema.columns.iter().map(|column| column.default.as_deref()).collect();
    let compression: StringArray =
        schema.columns.iter().map(|column| Some(column.compression.as_deref().unwrap_or("auto"))).collect();
    let batch = RecordBatch::try_from_iter([
        ("column", Arc::new(names) as ArrayRef),
        ("type", Arc::new(types)),
        ("null", Arc::new(nullable)),
        ("default", Arc::new(defaults)),
        ("compression", Arc::new(compression)),
    ])?;
    Ok(Outcome::Rows(Query::ready(batch)))
}

/// The same of a key-value tree.
fn describe_tree(shape: &KvShape) -> Result<Outcome> {
    let columns = shape.columns();
    let len = columns.len();
    let texts = |texts: Vec<String>| Arc::new(StringArray::from(texts)) as ArrayRef;
    let codecs = [shape.codec_name().to_owned(), "raw".to_owned()];
    let batch = RecordBatch::try_from_iter([
        ("column", texts(columns.iter().map(|(name, _)| (*name).to_owned()).collect())),
        ("type", texts(columns.iter().map(|(_, ty)| ty.to_string()).collect())),
        ("null", Arc::new(BooleanArray::from(vec![false; len]))),
        ("default", Arc::new(StringArray::new_null(len))),
        ("compression", texts(codecs.into_iter().take(len).collect())),
    ])?;
    Ok(Outcome::Rows(Query::ready(batch)))
}
