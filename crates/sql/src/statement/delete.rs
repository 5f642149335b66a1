//! DELETE and UPDATE, as queries for row ids.
//!
//! DataFusion hands a provider the filters that it could push down and drops the rest, so that `WHERE id IN (SELECT
//! ...)` or `WHERE false` would change every row (apache/datafusion #24654). So nothing of its DML is used: the statement
//! becomes an ordinary query over the table with its row ids, and what that query yields is deleted, or deleted and
//! inserted anew.

use super::assign::Assigner;
use super::insert::pull;
use super::names::{assigned_column, full_name, normal, quoted};
use super::target::Target;
use super::trees::{self, TreeUpdate};
use super::values::{default_of, is_default};
use super::{done, table_name};
use crate::attached::Seen;
use crate::batches::Outcome;
use crate::catalog::TableName;
use crate::parse::parse_one;
use crate::progress::Notes;
use crate::provider::{ROW_ID, ROW_ID_SCHEMA};
use crate::{Error, Result, Session};
use arrow::array::{AsArray, RecordBatch, UInt64Array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::UInt64Type;
use datafusion::sql::sqlparser::ast;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// A statement that changes rows, as the query for them.
pub(super) struct Rewritten {
    target: Target,
    /// Yields the ids of the rows that go, or their keys in a tree, and behind them what an UPDATE puts in their places.
    pub(super) query: ast::Statement,
    /// Whether other tables are joined, so that a row may come several times.
    joined: bool,
}

/// The query under construction. It is put together as a tree, never as text: what users wrote is not read twice.
pub(super) struct Rewriting {
    pub(super) target: Target,
    /// How other parts of the statement name the table.
    pub(super) alias: ast::Ident,
    query: Box<ast::Query>,
}

impl Rewriting {
    /// `SELECT alias."row id" FROM t AS alias`; of a tree what tells its entries from each other.
    pub(super) fn new(seen: &Seen, relation: &ast::TableFactor) -> Result<Rewriting> {
        let not_a_table = || Error::Sql(format!("'{relation}' is no table that can be changed"));
        let ast::TableFactor::Table { name, alias, args, with_hints, version, partitions, sample, .. } = relation
        else {
            return Err(not_a_table());
        };
        if args.is_some() || version.is_some() || sample.is_some() || !with_hints.is_empty() || !partitions.is_empty() {
            return Err(not_a_table());
        }
        let full = table_name(name)?;
        let target = Target::seen(seen, &full)?;
        let alias = alias.as_ref().map_or_else(|| full.table.to_string(), |alias| normal(&alias.name));
        let named = quoted(&alias);
        let (ids, from) = match &target {
            Target::Table(table) => {
                (vec![ROW_ID], full_name(&seen.name, &TableName::new(ROW_ID_SCHEMA, &table.id().0.to_string())))
            }
            Target::Tree(tree) => {
                let names = tree.identity().iter().map(|column| column.name.as_str());
                (names.collect(), full_name(&seen.name, &full))
            }
        };
        let ids: Vec<String> = ids.into_iter().map(|id| format!("{named}.{}", quoted(id))).collect();
        let sql = format!("SELECT {} FROM {from} AS {named}", ids.join(", "));
        match parse_one(&sql)? {
            ast::Statement::Query(query) => {
                let alias = ast::Ident::with_quote('"', alias);
                Ok(Rewriting { target, alias, query })
            }
            _ => Err(Error::Internal(format!("a rewritten statement is no query: {sql}"))),
        }
    }

    pub(super) fn select(&mut self) -> Result<&mut ast::Select> {
        match self.query.body.as_mut() {
            ast::SetExpr::Select(select) => Ok(select),
            _ => Err(Error::Internal("a rewritten statement is no SELECT".to_owned())),
        }
    }

    fn finish(mut self, others: Vec<ast::TableWithJoins>, condition: Option<ast::Expr>) -> Result<Rewritten> {
        let joined = !others.is_empty();
        let select = self.select()?;
        select.from.extend(others);
        select.selection = condition;
        Ok(Rewritten { target: self.target, query: ast::Statement::Query(self.query), joined })
    }
}

/// A DELETE as a query.
pub(super) fn rewritten_delete(seen: &Seen, delete: ast::Delete) -> Result<Rewritten> {
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
    Rewriting::new(seen, &from.relation)?.finish(delete.using.unwrap_or_default(), delete.selection)
}

pub(super) fn run(session: &Session, delete: &ast::Delete) -> Result<Outcome> {
    session.change(|transaction| {
        let notes = Notes::default();
        let seen = session.seen_by(transaction);
        let Rewritten { target, query, .. } = rewritten_delete(&seen, delete.clone())?;
        let state = session.statement_state(seen, notes.clone());
        let planned = session.plan(&state, query)?;
        let table = match &target {
            Target::Table(table) => table,
            Target::Tree(tree) => {
                transaction.check_changeable()?;
                let mut rows = 0;
                pull(session, planned, tree.name(), |batch| {
                    rows += trees::delete(transaction, tree, &batch)?;
                    Ok(())
                })?;
                return Ok(done("DELETE", Some(rows), &notes));
            }
        };
        let mut ids = Vec::new();
        pull(session, planned, table.name(), |batch| {
            ids.extend_from_slice(row_ids(&batch)?.values());
            Ok(())
        })?;
        let mut change = transaction.change(table, session.settings().threads)?;
        change.delete(ids)?;
        let rows = change.rows_deleted();
        transaction.put(change.finish()?)?;
        Ok(done("DELETE", Some(rows), &notes))
    })
}

/// An UPDATE as a query.
pub(super) fn rewritten_update(seen: &Seen, update: ast::Update) -> Result<Rewritten> {
    if update.returning.is_some() || update.limit.is_some() || update.or.is_some() || !update.order_by.is_empty() {
        return Err(Error::Sql("UPDATE with RETURNING, LIMIT or ORDER BY is not supported yet".to_owned()));
    }
    if !update.table.joins.is_empty() {
        return Err(Error::Sql("UPDATE changes one table; join others with FROM".to_owned()));
    }
    let mut rewriting = Rewriting::new(seen, &update.table.relation)?;
    let schema = Arc::clone(rewriting.target.schema());
    let mut assigned: BTreeMap<usize, ast::Expr> = BTreeMap::new();
    for assignment in update.assignments {
        let index = assigned_column(&assignment.target, rewriting.target.name(), &schema, &rewriting.alias.value)?;
        let value = if is_default(&assignment.value) { default_of(&schema.columns[index])? } else { assignment.value };
        if assigned.insert(index, value).is_some() {
            return Err(Error::Sql(format!("column '{}' is set twice", assignment.target)));
        }
    }
    for (index, column) in schema.columns.iter().enumerate() {
        let unchanged = || {
            let name = ast::Ident::with_quote('"', column.name.clone());
            ast::Expr::CompoundIdentifier(vec![rewriting.alias.clone(), name])
        };
        let expr = assigned.remove(&index).unwrap_or_else(unchanged);
        let alias = ast::Ident::with_quote('"', format!("c{index}"));
        rewriting.select()?.projection.push(ast::SelectItem::ExprWithAlias { expr, alias });
    }
    let others = match update.from {
        Some(ast::UpdateTableFromKind::BeforeSet(from) | ast::UpdateTableFromKind::AfterSet(from)) => from,
        None => Vec::new(),
    };
    rewriting.finish(others, update.selection)
}

pub(super) fn update(session: &Session, update: &ast::Update) -> Result<Outcome> {
    session.change(|transaction| {
        let notes = Notes::default();
        let seen = session.seen_by(transaction);
        let Rewritten { target, query, joined } = rewritten_update(&seen, update.clone())?;
        let state = session.statement_state(seen, notes.clone());
        let planned = session.plan(&state, query)?;
        let behind = if let Target::Tree(tree) = &target { tree.identity().len() } else { 1 };
        let sources = (behind..behind + target.schema().columns.len()).map(Some).collect();
        let assigner = Assigner::new(target.name(), target.schema(), sources, &state)?;
        let table = match &target {
            Target::Table(table) => table,
            Target::Tree(tree) => {
                transaction.check_changeable()?;
                let mut update = TreeUpdate::new(tree, joined);
                pull(session, planned, tree.name(), |batch| {
                    let batch = update.counting(batch)?;
                    update.take(transaction, &batch, &assigner.assign(&batch)?)
                })?;
                return Ok(done("UPDATE", Some(update.finish(transaction)?), &notes));
            }
        };
        let mut change = transaction.change(table, session.settings().threads)?;
        let mut ids = Vec::new();
        let mut seen = HashSet::new();
        pull(session, planned, table.name(), |batch| {
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
        transaction.put(change.finish()?)?;
        Ok(done("UPDATE", Some(rows), &notes))
    })
}

fn row_ids(batch: &RecordBatch) -> Result<&UInt64Array> {
    batch
        .columns()
        .first()
        .and_then(|ids| ids.as_primitive_opt::<UInt64Type>())
        .ok_or_else(|| Error::Internal("a rewritten statement did not yield row ids".to_owned()))
}
