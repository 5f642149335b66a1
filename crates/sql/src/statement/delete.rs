//! DELETE and UPDATE, as queries for row ids.
//!
//! DataFusion hands a provider the filters that it could push down and drops the rest, so that `WHERE id IN (SELECT
//! ...)` or `WHERE false` would change every row (apache/datafusion #24654). So nothing of its DML is used: the statement
//! becomes an ordinary query over the table with its row ids, and what that query yields is deleted, or deleted and
//! inserted anew.

use super::assign::Assigner;
use super::insert::pull;
use super::names::{find, normal, quoted};
use super::{done, table_name};
use crate::batches::Outcome;
use crate::parse::parse_one;
use crate::progress::Notes;
use crate::provider::{ROW_ID, ROW_ID_SCHEMA};
use crate::{Error, Result, Session};
use arrow::array::{AsArray, RecordBatch, UInt64Array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::UInt64Type;
use datafusion::sql::sqlparser::ast;
use sinter_column::{Change, ColumnTable};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The table that a statement changes, as it stands in its FROM.
struct Target {
    table: Arc<ColumnTable>,
    /// How other parts of the statement name it, quoted.
    alias: String,
    /// The FROM item that yields its rows with their ids.
    from: String,
}

fn target(session: &Session, relation: &ast::TableFactor) -> Result<Target> {
    let ast::TableFactor::Table { name, alias, .. } = relation else {
        return Err(Error::Sql(format!("'{relation}' is no table that can be changed")));
    };
    let catalog = session.database.catalog();
    let full = table_name(name)?;
    let table = Arc::clone(find(&catalog, &full)?);
    let alias = alias.as_ref().map_or_else(|| quoted(&full.table), |alias| quoted(&normal(&alias.name)));
    let from = format!("{}.{} AS {alias}", quoted(ROW_ID_SCHEMA), quoted(&full.to_string()));
    Ok(Target { table, alias, from })
}

/// ` FROM target, others WHERE condition`, as SQL.
fn rest(target: &Target, others: &[ast::TableWithJoins], condition: Option<&ast::Expr>) -> String {
    let mut sql = format!(" FROM {}", target.from);
    for other in others {
        sql += &format!(", {other}");
    }
    if let Some(condition) = condition {
        sql += &format!(" WHERE {condition}");
    }
    sql
}

pub(super) fn run(session: &Session, delete: ast::Delete) -> Result<Outcome> {
    let notes = Notes::default();
    if delete.returning.is_some() || delete.limit.is_some() || !delete.order_by.is_empty() || !delete.tables.is_empty()
    {
        return Err(Error::Sql("DELETE with RETURNING, LIMIT or ORDER BY is not supported yet".to_owned()));
    }
    let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
    let [from] = &from[..] else {
        return Err(Error::Sql("DELETE changes one table; join others with USING".to_owned()));
    };
    if !from.joins.is_empty() {
        return Err(Error::Sql("DELETE changes one table; join others with USING".to_owned()));
    }
    let mut write = session.database.write()?;
    let target = target(session, &from.relation)?;
    let others = delete.using.unwrap_or_default();
    let sql =
        format!("SELECT {}.{}", target.alias, quoted(ROW_ID)) + &rest(&target, &others, delete.selection.as_ref());
    let state = session.statement_state(session.database.catalog(), notes.clone());
    let planned = session.plan(&state, parse_one(&sql)?)?;
    let mut ids = Vec::new();
    pull(session, planned, target.table.name(), |batch| {
        ids.extend_from_slice(row_ids(&batch)?.values());
        Ok(())
    })?;
    let mut change = Change::new(&target.table, session.settings().threads);
    change.delete(ids)?;
    let rows = change.rows_deleted();
    write.commit(vec![change])?;
    Ok(done("DELETE", Some(rows), &notes))
}

pub(super) fn update(session: &Session, update: ast::Update) -> Result<Outcome> {
    let notes = Notes::default();
    if update.returning.is_some() || update.limit.is_some() || update.or.is_some() || !update.order_by.is_empty() {
        return Err(Error::Sql("UPDATE with RETURNING, LIMIT or ORDER BY is not supported yet".to_owned()));
    }
    if !update.table.joins.is_empty() {
        return Err(Error::Sql("UPDATE changes one table; join others with FROM".to_owned()));
    }
    let mut write = session.database.write()?;
    let target = target(session, &update.table.relation)?;
    let schema = target.table.schema();
    let mut assigned: BTreeMap<usize, String> = BTreeMap::new();
    for assignment in &update.assignments {
        let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
            return Err(Error::Sql(
                "UPDATE of several columns at once is not supported yet; set them one by one".to_owned(),
            ));
        };
        let column = name.0.last().and_then(|part| part.as_ident()).map(normal).unwrap_or_default();
        let index = schema
            .index_of(&column)
            .ok_or_else(|| Error::Sql(format!("table '{}' has no column '{name}'", target.table.name())))?;
        if assigned.insert(index, assignment.value.to_string()).is_some() {
            return Err(Error::Sql(format!("column '{name}' is set twice")));
        }
    }
    let mut items = vec![format!("{}.{}", target.alias, quoted(ROW_ID))];
    for (index, column) in schema.columns.iter().enumerate() {
        let value = match assigned.get(&index) {
            Some(value) => value.clone(),
            None => format!("{}.{}", target.alias, quoted(&column.name)),
        };
        items.push(format!("{value} AS {}", quoted(&format!("c{index}"))));
    }
    let others = match update.from {
        Some(ast::UpdateTableFromKind::BeforeSet(from) | ast::UpdateTableFromKind::AfterSet(from)) => from,
        None => Vec::new(),
    };
    let sql = format!("SELECT {}", items.join(", ")) + &rest(&target, &others, update.selection.as_ref());
    let state = session.statement_state(session.database.catalog(), notes.clone());
    let planned = session.plan(&state, parse_one(&sql)?)?;
    let assigner = Assigner::new(&schema, (1..=schema.columns.len()).map(Some).collect())?;
    let joined = !others.is_empty();
    let mut change = Change::new(&target.table, session.settings().threads);
    let mut ids = Vec::new();
    let mut seen = HashSet::new();
    pull(session, planned, target.table.name(), |batch| {
        let mut batch = batch;
        if joined {
            // A row that matches several others is changed once, by the first of them, as in PostgreSQL.
            let first: arrow::array::BooleanArray =
                row_ids(&batch)?.values().iter().map(|id| Some(seen.insert(*id))).collect();
            batch = filter_record_batch(&batch, &first)?;
        }
        ids.extend_from_slice(row_ids(&batch)?.values());
        Ok(change.insert(&assigner.assign(&batch)?)?)
    })?;
    change.delete(ids)?;
    let rows = change.rows_deleted();
    write.commit(vec![change])?;
    Ok(done("UPDATE", Some(rows), &notes))
}

fn row_ids(batch: &RecordBatch) -> Result<&UInt64Array> {
    batch
        .columns()
        .first()
        .and_then(|ids| ids.as_primitive_opt::<UInt64Type>())
        .ok_or_else(|| Error::Internal("a rewritten statement did not yield row ids".to_owned()))
}
