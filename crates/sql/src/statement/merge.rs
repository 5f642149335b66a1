//! MERGE, as a query for row ids: the source joined with the table, and of each row which clause is for it.

use super::assign::Assigner;
use super::delete::Rewriting;
use super::done;
use super::insert::pull;
use super::names::normal;
use super::on_conflict::say_of_table;
use super::values::{default_of, is_default};
use crate::attached::Seen;
use crate::batches::Outcome;
use crate::parse::{parse_expr, parse_one};
use crate::planner::keeping_order;
use crate::progress::Notes;
use crate::{Error, Result, Session};
use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Int64Type, UInt64Type};
use datafusion::sql::sqlparser::ast;
use sinter_column::{ColumnTable, TableSchema};
use std::collections::HashSet;
use std::sync::Arc;

/// In the source: it is there. Not a name that a user can define.
const IS_THERE: &str = "\u{1}is there";

/// What the source is called where it has no name.
const SOURCE: &str = "source";

/// What a clause does with a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Insert,
    Update,
    Delete,
}

/// A MERGE as a query.
struct Rewritten {
    table: Arc<ColumnTable>,
    /// Yields the id of a row of the table, if there is one; the number of its clause, if one is for it; and what the row is
    /// then.
    query: ast::Statement,
    /// By clause.
    does: Vec<Does>,
}

pub(super) fn run(session: &Session, merge: &ast::Merge) -> Result<Outcome> {
    session.change(|transaction| {
        let notes = Notes::default();
        let seen = session.seen_by(transaction);
        let Rewritten { table, query, does } = rewritten(&seen, merge.clone())?;
        let state = keeping_order(session.statement_state(seen, notes.clone()));
        let planned = session.plan(&state, query)?;
        let sources = (2..table.schema().columns.len() + 2).map(Some).collect();
        let assigner = Assigner::new(&table, sources, &state)?;
        let mut change = transaction.change(&table, session.settings().threads)?;
        let (mut ids, mut known, mut rows) = (Vec::new(), HashSet::new(), 0);
        pull(session, planned, table.name(), |batch| {
            let (row_ids, clauses) = columns_of(&batch)?;
            let mut goes_in = Vec::with_capacity(batch.num_rows());
            for row in 0..batch.num_rows() {
                let does = clauses.is_valid(row).then(|| does[clauses.value(row) as usize]);
                goes_in.push(matches!(does, Some(Does::Insert | Does::Update)));
                rows += u64::from(does.is_some());
                if matches!(does, Some(Does::Update | Does::Delete)) {
                    let id = row_ids.value(row);
                    if !known.insert(id) {
                        return Err(Error::Data(format!(
                            "MERGE would change a row of table '{}' twice: more than one row of the source matches it",
                            table.name()
                        )));
                    }
                    ids.push(id);
                }
            }
            let batch = filter_record_batch(&batch, &BooleanArray::from(goes_in))?;
            match batch.num_rows() {
                0 => Ok(()),
                _ => Ok(change.insert(&assigner.assign(&batch)?)?),
            }
        })?;
        change.delete(ids)?;
        transaction.put(change.finish()?)?;
        Ok(done("MERGE", Some(rows), &notes))
    })
}

fn columns_of(batch: &RecordBatch) -> Result<(&arrow::array::UInt64Array, &arrow::array::Int64Array)> {
    let row_ids = batch.columns().first().and_then(|ids| ids.as_primitive_opt::<UInt64Type>());
    let clauses = batch.columns().get(1).and_then(|clauses| clauses.as_primitive_opt::<Int64Type>());
    row_ids
        .zip(clauses)
        .ok_or_else(|| Error::Internal("a rewritten MERGE did not yield row ids and clauses".to_owned()))
}

fn rewritten(seen: &Seen, merge: ast::Merge) -> Result<Rewritten> {
    let ast::Merge { table, source, on, clauses, output, .. } = merge;
    if output.is_some() {
        return Err(Error::Sql("MERGE with OUTPUT or RETURNING is not supported yet".to_owned()));
    }
    let mut target = Rewriting::new(seen, &table)?;
    let (table, alias) = (Arc::clone(&target.table), target.alias.clone());
    let schema = Arc::clone(table.schema());
    let row_id = match target.select()?.projection.pop() {
        Some(ast::SelectItem::UnnamedExpr(row_id)) => row_id,
        _ => return Err(Error::Internal("a rewritten statement yields no row id".to_owned())),
    };
    let target_relation = match target.select()?.from.pop() {
        Some(from) => from.relation,
        None => return Err(Error::Internal("a rewritten statement reads no table".to_owned())),
    };
    let is_of_source = |clause: &ast::MergeClause| clause.clause_kind == ast::MergeClauseKind::NotMatchedBySource;
    let with_all = clauses.iter().any(is_of_source);
    let (source, is_there) = if with_all { marked(source)? } else { (source, None) };
    let skeleton = if with_all { "SELECT 1 FROM s FULL JOIN t ON true" } else { "SELECT 1 FROM s LEFT JOIN t ON true" };
    let mut query = parse_one(skeleton)?;
    let select = select_of(&mut query)?;
    let from = &mut select.from[0];
    from.relation = source;
    from.joins[0].relation = target_relation;
    if let ast::JoinOperator::Left(constraint)
    | ast::JoinOperator::LeftOuter(constraint)
    | ast::JoinOperator::FullOuter(constraint) = &mut from.joins[0].join_operator
    {
        *constraint = ast::JoinConstraint::On(*on);
    }
    let is_null = |expr: &ast::Expr| ast::Expr::IsNull(Box::new(expr.clone()));
    let is_not_null = |expr: &ast::Expr| ast::Expr::IsNotNull(Box::new(expr.clone()));
    let (mut conditions, mut rows, mut does) = (Vec::new(), Vec::new(), Vec::new());
    for mut clause in clauses {
        if clause.clause_kind == ast::MergeClauseKind::NotMatchedBySource {
            // Of the source there is nothing to be said.
            let of_update = match &mut clause.action {
                ast::MergeAction::Update(update) => &mut update.assignments[..],
                _ => &mut [],
            };
            let values = of_update.iter_mut().map(|assignment| &mut assignment.value);
            for expr in values.filter(|value| !is_default(value)).chain(&mut clause.predicate) {
                say_of_table(expr, &schema, &alias)?;
            }
        }
        let mut condition = match (clause.clause_kind, &is_there) {
            (ast::MergeClauseKind::Matched, None) => is_not_null(&row_id),
            (ast::MergeClauseKind::Matched, Some(there)) => and(is_not_null(&row_id), is_not_null(there)),
            (ast::MergeClauseKind::NotMatched | ast::MergeClauseKind::NotMatchedByTarget, _) => is_null(&row_id),
            (ast::MergeClauseKind::NotMatchedBySource, Some(there)) => is_null(there),
            (ast::MergeClauseKind::NotMatchedBySource, None) => {
                return Err(Error::Internal("a source of which is not known where it is".to_owned()));
            }
        };
        if let Some(predicate) = clause.predicate {
            condition = and(condition, predicate);
        }
        let inserts = matches!(clause.action, ast::MergeAction::Insert(_));
        let is_of_no_row =
            matches!(clause.clause_kind, ast::MergeClauseKind::NotMatched | ast::MergeClauseKind::NotMatchedByTarget);
        if inserts != is_of_no_row {
            return Err(Error::Sql(format!("MERGE: {} cannot be WHEN {}", clause.action, clause.clause_kind)));
        }
        let (row, what) = match clause.action {
            ast::MergeAction::Delete { .. } => (None, Does::Delete),
            ast::MergeAction::Insert(insert) => (Some(inserted(insert, &schema)?), Does::Insert),
            ast::MergeAction::Update(update) => (Some(updated(update, &table, &alias)?), Does::Update),
        };
        conditions.push(condition);
        rows.push(row);
        does.push(what);
    }
    let cases = |result: &dyn Fn(usize) -> ast::Expr| {
        let mut case = parse_expr("CASE WHEN true THEN 1 END")?;
        if let ast::Expr::Case { conditions: whens, .. } = &mut case {
            *whens = conditions
                .iter()
                .enumerate()
                .map(|(clause, condition)| ast::CaseWhen { condition: condition.clone(), result: result(clause) })
                .collect();
        }
        Ok::<_, Error>(case)
    };
    let named = |expr, name: String| ast::SelectItem::ExprWithAlias { expr, alias: ast::Ident::with_quote('"', name) };
    let number = |clause: usize| ast::Expr::value(ast::Value::Number(clause.to_string(), false));
    select.projection = vec![named(row_id, "row".to_owned()), named(cases(&number)?, "clause".to_owned())];
    for column in 0..schema.columns.len() {
        let value = |clause: usize| {
            let row: &Option<Vec<ast::Expr>> = &rows[clause];
            row.as_ref().map_or_else(|| ast::Expr::value(ast::Value::Null), |row| row[column].clone())
        };
        select.projection.push(named(cases(&value)?, format!("c{column}")));
    }
    Ok(Rewritten { table, query, does })
}

fn select_of(query: &mut ast::Statement) -> Result<&mut ast::Select> {
    if let ast::Statement::Query(query) = query
        && let ast::SetExpr::Select(select) = query.body.as_mut()
    {
        return Ok(select);
    }
    Err(Error::Internal("a rewritten MERGE is no SELECT".to_owned()))
}

/// The source with a column that says that it is there.
fn marked(source: ast::TableFactor) -> Result<(ast::TableFactor, Option<ast::Expr>)> {
    let name = match &source {
        ast::TableFactor::Table { alias: Some(alias), .. } | ast::TableFactor::Derived { alias: Some(alias), .. } => {
            alias.name.clone()
        }
        ast::TableFactor::Table { name, .. } => match name.0.last().and_then(|part| part.as_ident()) {
            Some(name) => name.clone(),
            None => ast::Ident::with_quote('"', SOURCE),
        },
        _ => ast::Ident::with_quote('"', SOURCE),
    };
    let marker = ast::Ident::with_quote('"', IS_THERE);
    let mut query = parse_one(&format!("SELECT *, true AS {marker} FROM s"))?;
    select_of(&mut query)?.from[0].relation = source;
    let mut wrapped = parse_one("SELECT 1 FROM (SELECT 1) AS s")?;
    let mut relation = select_of(&mut wrapped)?.from.remove(0).relation;
    if let (ast::TableFactor::Derived { subquery, alias: Some(alias), .. }, ast::Statement::Query(query)) =
        (&mut relation, query)
    {
        *subquery = query;
        alias.name = name.clone();
    }
    Ok((relation, Some(ast::Expr::CompoundIdentifier(vec![name, marker]))))
}

fn and(left: ast::Expr, right: ast::Expr) -> ast::Expr {
    let nested = |expr| Box::new(ast::Expr::Nested(Box::new(expr)));
    ast::Expr::BinaryOp { left: nested(left), op: ast::BinaryOperator::And, right: nested(right) }
}

/// The values of a row that is inserted, in table order.
fn inserted(insert: ast::MergeInsertExpr, schema: &TableSchema) -> Result<Vec<ast::Expr>> {
    let ast::MergeInsertKind::Values(values) = insert.kind else {
        return Err(Error::Sql("MERGE: INSERT ROW is not supported; write INSERT (columns) VALUES (...)".to_owned()));
    };
    if insert.insert_predicate.is_some() {
        return Err(Error::Sql("MERGE: INSERT with WHERE is not supported; write WHEN NOT MATCHED AND ...".to_owned()));
    }
    let [row] = &values.rows[..] else {
        return Err(Error::Sql("MERGE inserts one row of values for each of the source".to_owned()));
    };
    let mut given: Vec<usize> = Vec::new();
    for column in &insert.columns {
        let name = column.0.last().and_then(|part| part.as_ident()).map(normal).unwrap_or_default();
        match schema.index_of(&name) {
            Some(position) if !given.contains(&position) => given.push(position),
            Some(_) => return Err(Error::Sql(format!("column '{column}' is there twice"))),
            None => return Err(Error::Sql(format!("the table has no column '{column}'"))),
        }
    }
    if insert.columns.is_empty() {
        given = (0..schema.columns.len()).collect();
    }
    if given.len() != row.content.len() {
        let (given, values) = (given.len(), row.content.len());
        return Err(Error::Sql(format!("{given} columns are to be filled, but there are {values} values")));
    }
    let value = |(position, column)| match given.iter().position(|given| *given == position) {
        Some(place) if !is_default(&row.content[place]) => Ok(row.content[place].clone()),
        _ => default_of(column),
    };
    schema.columns.iter().enumerate().map(value).collect()
}

/// The values of a row that is changed, in table order.
fn updated(update: ast::MergeUpdateExpr, table: &ColumnTable, alias: &ast::Ident) -> Result<Vec<ast::Expr>> {
    if update.update_predicate.is_some() || update.delete_predicate.is_some() {
        return Err(Error::Sql("MERGE: UPDATE with WHERE is not supported; write WHEN MATCHED AND ...".to_owned()));
    }
    let schema = table.schema();
    let mut row: Vec<Option<ast::Expr>> = vec![None; schema.columns.len()];
    for assignment in update.assignments {
        let ast::AssignmentTarget::ColumnName(column) = &assignment.target else {
            return Err(Error::Sql("MERGE sets columns one by one".to_owned()));
        };
        let name = column.0.last().and_then(|part| part.as_ident()).map(normal).unwrap_or_default();
        let Some(position) = schema.index_of(&name) else {
            return Err(Error::Sql(format!("table '{}' has no column '{column}'", table.name())));
        };
        let value = match is_default(&assignment.value) {
            true => default_of(&schema.columns[position])?,
            false => assignment.value,
        };
        if row[position].replace(value).is_some() {
            return Err(Error::Sql(format!("column '{column}' is set twice")));
        }
    }
    let unchanged = |name: &str| ast::Expr::CompoundIdentifier(vec![alias.clone(), ast::Ident::with_quote('"', name)]);
    let row = row.into_iter().zip(&schema.columns);
    Ok(row.map(|(value, column)| value.unwrap_or_else(|| unchanged(&column.name))).collect())
}
