//! MERGE, as a query for row ids: the source joined with the table, and of each row which clause is for it.

use super::assign::Assigner;
use super::delete::Rewriting;
use super::done;
use super::insert::pull;
use super::names::{assigned_column, normal};
use super::on_conflict::say_of_table;
use super::values::{default_of, is_default};
use crate::attached::Seen;
use crate::batches::Outcome;
use crate::parse::{each_expr_mut, parse_expr, parse_one};
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
pub(super) struct Rewritten {
    table: Arc<ColumnTable>,
    /// Yields the id of a row of the table, if there is one; the number of its clause, if one is for it; and for each clause that
    /// has a row what that is then.
    pub(super) query: ast::Statement,
    /// By clause.
    does: Vec<Does>,
}

/// The columns of the query that are before the rows of clauses.
const COLUMNS_BEFORE: usize = 2;

pub(super) fn run(session: &Session, merge: &ast::Merge) -> Result<Outcome> {
    session.change(|transaction| {
        let notes = Notes::default();
        let seen = session.seen_by(transaction);
        let Rewritten { table, query, does } = rewritten_merge(&seen, merge.clone())?;
        let state = keeping_order(session.statement_state(seen, notes.clone()));
        let planned = session.plan(&state, query)?;
        let (width, mut before) = (table.schema().columns.len(), COLUMNS_BEFORE);
        let mut assigners = Vec::with_capacity(does.len());
        for does in &does {
            assigners.push(match does {
                Does::Delete => None,
                Does::Insert | Does::Update => {
                    let sources = (before..before + width).map(Some).collect();
                    before += width;
                    Some(Assigner::new(table.name(), table.schema(), sources, &state)?)
                }
            });
        }
        let mut change = transaction.change(&table, session.settings().threads)?;
        let (mut ids, mut known, mut rows) = (Vec::new(), HashSet::new(), 0);
        pull(session, planned, table.name(), |batch| {
            let (row_ids, clauses) = columns_of(&batch)?;
            for (clause, (does, assigner)) in does.iter().zip(&assigners).enumerate() {
                let is_of = |row: usize| clauses.is_valid(row) && clauses.value(row) as usize == clause;
                let of_clause: BooleanArray = (0..batch.num_rows()).map(|row| Some(is_of(row))).collect();
                rows += of_clause.true_count() as u64;
                if *does != Does::Insert {
                    for row in (0..batch.num_rows()).filter(|row| of_clause.value(*row)) {
                        if !known.insert(row_ids.value(row)) {
                            return Err(Error::Data(format!(
                                "MERGE would change a row of table '{}' twice: more than one row of the source matches it",
                                table.name()
                            )));
                        }
                        ids.push(row_ids.value(row));
                    }
                }
                if let Some(assigner) = assigner.as_ref().filter(|_| of_clause.true_count() > 0) {
                    change.insert(&assigner.assign(&filter_record_batch(&batch, &of_clause)?)?)?;
                }
            }
            Ok(())
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

/// # Errors
/// [`Error::Sql`]: it says something that is not supported, or names what is not there.
pub(super) fn rewritten_merge(seen: &Seen, merge: ast::Merge) -> Result<Rewritten> {
    let ast::Merge { table, source, on, clauses, output, .. } = merge;
    if output.is_some() {
        return Err(Error::Sql("MERGE with OUTPUT or RETURNING is not supported yet".to_owned()));
    }
    let mut target = Rewriting::new(seen, &table)?;
    let (table, alias) = (Arc::clone(target.target.table("MERGE")?), target.alias.clone());
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
    let of_source = name_of_source(&source);
    let (source, is_there) = match with_all {
        true => marked(source, of_source.clone())?,
        false => (named_so(source, &of_source), None),
    };
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
    let (mut certain, mut conditions, mut rows, mut does) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for mut clause in clauses {
        // Where there is no row of one side, names are of the other.
        let one_side = match clause.clause_kind {
            ast::MergeClauseKind::Matched => None,
            ast::MergeClauseKind::NotMatchedBySource => Some(&alias),
            ast::MergeClauseKind::NotMatched | ast::MergeClauseKind::NotMatchedByTarget => Some(&of_source),
        };
        if let Some(side) = one_side {
            let values = values_of(&mut clause.action).filter(|value| !is_default(value));
            for expr in values.chain(&mut clause.predicate) {
                say_of_table(expr, &schema, side)?;
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
        let mut of_all = condition.clone();
        if let Some(predicate) = clause.predicate {
            let parts = parts_of(&predicate).into_iter().filter(|part| !is_volatile(part));
            of_all = parts.fold(of_all, |all, part| and(all, part.clone()));
            condition = and(condition, predicate);
        }
        certain.push(of_all);
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
    let case = |whens: Vec<(ast::Expr, ast::Expr)>| {
        let mut case = parse_expr("CASE WHEN true THEN 1 END")?;
        if let ast::Expr::Case { conditions, .. } = &mut case {
            let when = |(condition, result)| ast::CaseWhen { condition, result };
            *conditions = whens.into_iter().map(when).collect();
        }
        Ok::<_, Error>(case)
    };
    let named = |expr, name: String| ast::SelectItem::ExprWithAlias { expr, alias: ast::Ident::with_quote('"', name) };
    let number = |clause: usize| ast::Expr::value(ast::Value::Number(clause.to_string(), false));
    let numbers = (0..conditions.len()).map(|clause| (conditions[clause].clone(), number(clause)));
    select.projection = vec![named(row_id, "row".to_owned()), named(case(numbers.collect())?, "clause".to_owned())];
    for (clause, row) in rows.iter().enumerate() {
        for (column, value) in row.iter().flatten().enumerate() {
            // What fails for rows of other clauses is not asked of them; what is said by chance is said once, by the number.
            let earlier = conditions[..clause].iter().filter(|condition| !is_volatile(condition));
            let mut whens: Vec<_> = earlier.map(|of| (of.clone(), ast::Expr::value(ast::Value::Null))).collect();
            whens.push((certain[clause].clone(), value.clone()));
            select.projection.push(named(case(whens)?, format!("c{clause}_{column}")));
        }
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

/// The parts that all have to hold.
fn parts_of(condition: &ast::Expr) -> Vec<&ast::Expr> {
    match condition {
        ast::Expr::BinaryOp { left, op: ast::BinaryOperator::And, right } => [parts_of(left), parts_of(right)].concat(),
        ast::Expr::Nested(inner) => parts_of(inner),
        other => vec![other],
    }
}

/// A query without a name gets one.
fn named_so(mut source: ast::TableFactor, name: &ast::Ident) -> ast::TableFactor {
    if let ast::TableFactor::Derived { alias: alias @ None, .. } = &mut source {
        let columns = Vec::new();
        *alias = Some(ast::TableAlias { explicit: true, name: name.clone(), columns, at: None });
    }
    source
}

/// What a source is called.
fn name_of_source(source: &ast::TableFactor) -> ast::Ident {
    match source {
        ast::TableFactor::Table { alias: Some(alias), .. }
        | ast::TableFactor::Derived { alias: Some(alias), .. }
        | ast::TableFactor::TableFunction { alias: Some(alias), .. }
        | ast::TableFactor::Function { alias: Some(alias), .. }
        | ast::TableFactor::UNNEST { alias: Some(alias), .. }
        | ast::TableFactor::NestedJoin { alias: Some(alias), .. } => alias.name.clone(),
        ast::TableFactor::Table { name, .. } => match name.0.last().and_then(|part| part.as_ident()) {
            Some(name) => name.clone(),
            None => ast::Ident::with_quote('"', SOURCE),
        },
        _ => ast::Ident::with_quote('"', SOURCE),
    }
}

/// The values that an action gives to columns.
fn values_of(action: &mut ast::MergeAction) -> Box<dyn Iterator<Item = &mut ast::Expr> + '_> {
    match action {
        ast::MergeAction::Update(update) => {
            Box::new(update.assignments.iter_mut().map(|assignment| &mut assignment.value))
        }
        ast::MergeAction::Insert(ast::MergeInsertExpr { kind: ast::MergeInsertKind::Values(values), .. }) => {
            Box::new(values.rows.iter_mut().flat_map(|row| &mut row.content))
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// Whether an expression may have another value each time.
fn is_volatile(expr: &ast::Expr) -> bool {
    let mut is_volatile = false;
    let walked = each_expr_mut(&mut expr.clone(), &mut |expr| {
        if let ast::Expr::Function(function) = expr {
            let name = function.name.0.last().and_then(|part| part.as_ident()).map(|name| name.value.to_lowercase());
            is_volatile |= name.is_some_and(|name| ["random", "uuid", "gen_random_uuid"].contains(&&*name));
        }
        Ok(())
    });
    debug_assert!(walked.is_ok());
    is_volatile
}

/// The source with a column that says that it is there, under its name.
fn marked(source: ast::TableFactor, name: ast::Ident) -> Result<(ast::TableFactor, Option<ast::Expr>)> {
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
        let position = assigned_column(&assignment.target, table.name(), table.schema(), &alias.value)?;
        let value = match is_default(&assignment.value) {
            true => default_of(&schema.columns[position])?,
            false => assignment.value,
        };
        if row[position].replace(value).is_some() {
            return Err(Error::Sql(format!("column '{}' is set twice", assignment.target)));
        }
    }
    let unchanged = |name: &str| ast::Expr::CompoundIdentifier(vec![alias.clone(), ast::Ident::with_quote('"', name)]);
    let row = row.into_iter().zip(&schema.columns);
    Ok(row.map(|(value, column)| value.unwrap_or_else(|| unchanged(&column.name))).collect())
}
