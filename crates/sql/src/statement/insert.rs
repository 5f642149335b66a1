//! INSERT, and the pulling of a query's rows into a table.

use super::assign::{Assigner, sources_by_name};
use super::databases::{self, TABLE_NAME_PARTS};
use super::names::{normal, parse_object_name, quoted};
use super::target::{Receiver, Target};
use super::values::{
    constant_rows, nothing_but_values, write_defaults, write_floats_as_decimals, write_mixed_columns_as_text,
};
use super::{done, table_name};
use crate::batches::Outcome;
use crate::catalog::TableName;
use crate::parse::parse_one;
use crate::planner::{Planned, keeping_order};
use crate::progress::{Notes, Progress};
use crate::session::Awaited;
use crate::transaction::Transaction;
use crate::{Error, Result, Session};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::SessionState;
use datafusion::physical_plan::execute_stream;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use sinter_column::TableSchema;

pub(super) fn run(session: &Session, insert: &ast::Insert) -> Result<Outcome> {
    if insert.returning.is_some() || insert.overwrite {
        return Err(Error::Sql("INSERT with RETURNING or OVERWRITE is not supported yet".to_owned()));
    }
    let ast::TableObject::TableName(name) = &insert.table else {
        return Err(Error::Sql("INSERT wants the name of a table".to_owned()));
    };
    let name = table_name(name)?;
    let threads = session.settings().threads;
    session.change(|transaction| {
        let notes = Notes::default();
        let target = Target::find(transaction, &name)?;
        let schema = target.schema();
        if let Some((rows, sources)) = constants(schema, insert)? {
            let assigned = Assigner::unchecked(target.name(), schema, sources)?.assign(&rows)?;
            let state =
                |transaction: &Transaction| session.statement_state(session.seen_by(transaction), notes.clone());
            let mut receiver = Receiver::of_insert(insert, &name, &target, transaction, threads, state)?;
            receiver.take(transaction, &assigned)?;
            return Ok(done("INSERT", Some(receiver.finish(transaction)?), &notes));
        }
        let state = keeping_order(session.query_state(session.seen_by(transaction), notes.clone()));
        let (planned, sources) = planned(session, &state, schema, insert)?;
        let width = planned.physical.schema().fields().len();
        if matches!(sources.iter().flatten().max(), Some(&last) if last >= width)
            || width > sources.iter().flatten().count()
        {
            let given = given_columns(schema, &insert.columns)?.len();
            return Err(Error::Sql(format!("{given} columns are to be filled, but the query yields {width}")));
        }
        let assigner = Assigner::new(target.name(), schema, sources, &state)?;
        let planned = planned.sorted_for(schema, assigner.sources())?;
        let mut receiver = Receiver::of_insert(insert, &name, &target, transaction, threads, |_| state.clone())?;
        pull(session, planned, target.name(), |batch| receiver.take(transaction, &assigner.assign(&batch)?))?;
        Ok(done("INSERT", Some(receiver.finish(transaction)?), &notes))
    })
}

/// The rows of an INSERT of nothing but constants into a table without rules or order, and for each column of the table its
/// place in them; `None` for all others. They need no plan: planning takes much longer than the insert.
fn constants(schema: &TableSchema, insert: &ast::Insert) -> Result<Option<(RecordBatch, Vec<Option<usize>>)>> {
    let given = given_columns(schema, &insert.columns)?;
    let Some(source) = &insert.source else { return Ok(None) };
    let Some(values) = nothing_but_values(source) else { return Ok(None) };
    if !schema.checks.is_empty() || !schema.order_by().is_empty() {
        return Ok(None);
    }
    let Columns::Plain(sources) = source_columns(schema, &given) else { return Ok(None) };
    Ok(constant_rows(values, given.len())?.map(|rows| (rows, sources)))
}

/// The query for the rows of an INSERT, and for each column of the table its place in what the query yields; NULL where
/// none.
fn planned(
    session: &Session,
    state: &SessionState,
    schema: &TableSchema,
    insert: &ast::Insert,
) -> Result<(Planned, Vec<Option<usize>>)> {
    let given = given_columns(schema, &insert.columns)?;
    let Some(mut source) = insert.source.clone() else {
        return Err(Error::Sql(
            "INSERT wants VALUES or a query; for a row of defaults, VALUES (DEFAULT, ...)".to_owned(),
        ));
    };
    if let ast::SetExpr::Values(values) = source.body.as_mut() {
        write_defaults(values, schema, &given)?;
        write_mixed_columns_as_text(values);
        write_floats_as_decimals(values, schema, &given);
    }
    match source_columns(schema, &given) {
        Columns::Plain(sources) => Ok((session.plan(state, ast::Statement::Query(source))?, sources)),
        Columns::WithDefaults(defaults) => {
            // Defaults are expressions of SQL, so SQL evaluates them, beside the given columns.
            let names: Vec<String> = (0..given.len()).map(|index| quoted(&format!("c{index}"))).collect();
            let sql = format!("SELECT *, {} FROM (SELECT 1) AS given ({})", defaults.join(", "), names.join(", "));
            let mut sql = parse_one(&sql)?;
            put_source(&mut sql, source)?;
            let mut next = given.len();
            let sources = schema.columns.iter().enumerate().map(|(index, column)| {
                let position = given.iter().position(|&given| given == index);
                position.or_else(|| {
                    column.default.as_ref()?;
                    next += 1;
                    Some(next - 1)
                })
            });
            let sources = sources.collect();
            Ok((session.plan(state, sql)?, sources))
        }
    }
}

/// Appends record batches to the table of that name, columns by name.
pub(crate) fn append(
    session: &Session,
    table: &str,
    batches: &mut dyn Iterator<Item = Result<RecordBatch>>,
) -> Result<u64> {
    let mut name = parse_object_name(table)?;
    if let Some(attached) = databases::taken_from(session, &mut name, TABLE_NAME_PARTS)? {
        return append_to(&session.at(&attached)?, &table_name(&name)?, batches);
    }
    append_to(session, &table_name(&name)?, batches)
}

fn append_to(
    session: &Session,
    name: &TableName,
    batches: &mut dyn Iterator<Item = Result<RecordBatch>>,
) -> Result<u64> {
    session.change_once(|transaction| {
        let target = Target::find(transaction, name)?;
        let state = session.statement_state(session.seen_by(transaction), Notes::default());
        let running = session.running();
        let mut receiver = Receiver::new(&target, transaction, session.settings().threads)?;
        let mut assigner: Option<(SchemaRef, Assigner)> = None;
        for batch in batches {
            let batch = batch?;
            if running.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let assigner = match &mut assigner {
                Some((schema, assigner)) if *schema == batch.schema() => assigner,
                other => {
                    let sources = sources_by_name(target.schema(), &batch.schema())?;
                    let assigner = Assigner::new(target.name(), target.schema(), sources, &state)?;
                    let assigner = assigner.with_defaults(session)?;
                    &mut other.insert((batch.schema(), assigner)).1
                }
            };
            receiver.take(transaction, &assigner.assign(&batch)?)?;
            let label = format!("pressing {}, rows", target.name());
            session.report(Some(Progress { label, done: receiver.row_count(), total: None }));
        }
        receiver.finish(transaction)
    })
}

/// Positions of the columns that the statement fills, in its order.
fn given_columns(schema: &TableSchema, names: &[ast::ObjectName]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..schema.columns.len()).collect());
    }
    let mut given = Vec::with_capacity(names.len());
    for name in names {
        let column = match &name.0[..] {
            [part] => part.as_ident().map(normal),
            _ => None,
        };
        let index = column.as_ref().and_then(|column| schema.index_of(column)).ok_or_else(|| {
            let known: Vec<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
            Error::Sql(format!("the table has no column '{name}'; it has: {}", known.join(", ")))
        })?;
        if given.contains(&index) {
            return Err(Error::Sql(format!("column '{name}' is there twice")));
        }
        given.push(index);
    }
    Ok(given)
}

/// Puts `source` in the place of the subquery of `sql`, as a tree: what users wrote is not read twice.
fn put_source(sql: &mut ast::Statement, source: Box<ast::Query>) -> Result<()> {
    if let ast::Statement::Query(query) = sql
        && let ast::SetExpr::Select(select) = query.body.as_mut()
        && let Some(from) = select.from.first_mut()
        && let ast::TableFactor::Derived { subquery, .. } = &mut from.relation
    {
        *subquery = source;
        return Ok(());
    }
    Err(Error::Internal("a rewritten INSERT has no subquery".to_owned()))
}

enum Columns {
    /// For each column of the table, its place in the source; NULL where none.
    Plain(Vec<Option<usize>>),
    /// Some column has a default and is not given: the defaults, as SQL.
    WithDefaults(Vec<String>),
}

fn source_columns(schema: &TableSchema, given: &[usize]) -> Columns {
    let defaults: Vec<String> = schema
        .columns
        .iter()
        .enumerate()
        .filter(|(index, _)| !given.contains(index))
        .filter_map(|(_, column)| column.default.clone())
        .collect();
    if !defaults.is_empty() {
        return Columns::WithDefaults(defaults);
    }
    Columns::Plain((0..schema.columns.len()).map(|index| given.iter().position(|&given| given == index)).collect())
}

/// Runs a plan and gives each batch to `take`, on this thread.
pub(super) fn pull(
    session: &Session,
    planned: Planned,
    label: &str,
    mut take: impl FnMut(RecordBatch) -> Result<()>,
) -> Result<()> {
    let running = planned.running()?;
    let awaited = Awaited::new(&running);
    let runtime = running.runtime()?;
    let context = planned.context;
    let (sender, mut receiver) = tokio::sync::mpsc::channel(2);
    let plan = planned.physical;
    let producer = runtime.spawn(async move {
        let mut stream = match execute_stream(plan, context) {
            Ok(stream) => stream,
            Err(error) => return drop(sender.send(Err(Error::from(error))).await),
        };
        loop {
            let next = tokio::select! {
                biased;
                () = running.cancelled() => Some(Err(Error::Cancelled)),
                () = sender.closed() => return,
                next = stream.next() => next.map(|batch| batch.map_err(Error::from)),
            };
            let Some(item) = next else { return };
            let failed = item.is_err();
            if sender.send(item).await.is_err() || failed {
                return;
            }
        }
    });
    let mut done = 0;
    while let Some(batch) = pollster::block_on(awaited.next_of(&mut receiver)) {
        let batch = batch?;
        done += batch.num_rows() as u64;
        take(batch)?;
        session.report(Some(Progress { label: format!("pressing {label}, rows"), done, total: None }));
    }
    // The channel also closes when the producer dies: a panic in it is not the end of the rows.
    pollster::block_on(producer).map_err(|error| Error::Internal(error.to_string()))
}
