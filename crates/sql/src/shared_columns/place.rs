//! Which columns tables in FROM have, as the planner finds them at their place.
//!
//! A table of the catalog has those that it has there. A query of WITH is planned behind those before it, and a query in
//! FROM within the queries around it, whose columns it may name: as `SELECT 1 FROM around WHERE EXISTS (SELECT * FROM (...)
//! AS t)`, of which the inner plan has the columns.

use super::Rewriting;
use super::from::is_lateral;
use super::level::{Column, Level, NamedQuery};
use crate::parse::parse_one;
use crate::statement::normal;
use crate::{Error, Result};
use datafusion::common::TableReference;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    self, ObjectName, Query, Select, SetExpr, Statement, TableAlias, TableFactor, TableWithJoins, With,
};

impl Rewriting<'_> {
    /// The columns of a table in the FROM clause of the innermost query.
    pub(super) fn columns_of(&mut self, factor: &TableFactor) -> Result<Vec<Column>> {
        if let TableFactor::Table { name, alias, args: None, .. } = factor {
            return match self.query_called(name) {
                Some(place) => self.columns_of_query(place, factor, alias.as_ref()),
                None => match self.columns_of_table(name, alias.as_ref())? {
                    Some(columns) => Ok(columns),
                    None => self.columns_at(0, None, vec![alone(factor)]),
                },
            };
        }
        let here = self.levels.len() - 1;
        let before = if is_lateral(factor) { self.levels[here].from.clone() } else { Vec::new() };
        let column_count = match before.is_empty() {
            true => 0,
            false => self.columns_at(here, Some(&self.levels[here]), before.clone())?.len(),
        };
        let from = before.into_iter().chain([alone(factor)]).collect();
        let mut columns = self.columns_at(here, Some(&self.levels[here]), from)?;
        Ok(columns.split_off(column_count.min(columns.len())))
    }

    /// The columns of a table or view of the catalog; `None` where there is none of this name, or its columns have others.
    fn columns_of_table(&self, name: &ObjectName, alias: Option<&TableAlias>) -> Result<Option<Vec<Column>>> {
        if alias.is_some_and(|alias| !alias.columns.is_empty()) {
            return Ok(None);
        }
        let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(normal)).collect();
        let table = match parts.as_deref() {
            Some([table]) => TableReference::bare(table.as_str()),
            Some([schema, table]) => TableReference::partial(schema.as_str(), table.as_str()),
            Some([database, schema, table]) => TableReference::full(database.as_str(), schema.as_str(), table.as_str()),
            _ => return Ok(None),
        };
        let Ok(schema) = self.state.schema_for_ref(table.clone()) else { return Ok(None) };
        let Some(found) = pollster::block_on(schema.table(table.table()))? else { return Ok(None) };
        let relation = alias.map_or(table, |alias| TableReference::bare(normal(&alias.name)));
        let column = |name: &String| Column::new(Some(relation.clone()), name.clone());
        Ok(Some(found.schema().fields().iter().map(|field| column(field.name())).collect()))
    }

    /// Finds the columns in sight of a query that shares none.
    pub(super) fn look_at(&mut self, index: usize) -> Result<()> {
        self.levels[index].columns = Some(self.all_columns(index)?);
        Ok(())
    }

    /// All columns of the tables in sight of a query.
    pub(super) fn all_columns(&self, index: usize) -> Result<Vec<Column>> {
        let level = &self.levels[index];
        match level.from.is_empty() {
            true => Ok(Vec::new()),
            false => self.columns_at(index, Some(level), level.from.clone()),
        }
    }

    /// The level and the place in its WITH of the query that a plain name means.
    fn query_called(&self, name: &ObjectName) -> Option<(usize, usize)> {
        let [part] = &name.0[..] else { return None };
        let name = normal(part.as_ident()?);
        self.levels.iter().enumerate().rev().find_map(|(index, level)| {
            let place = level.with.iter().rposition(|query| normal(&query.cte.alias.name) == name)?;
            Some((index, place))
        })
    }

    /// The columns of a query of WITH, which are asked for once, unless they are renamed.
    fn columns_of_query(
        &mut self,
        (index, place): (usize, usize),
        factor: &TableFactor,
        alias: Option<&TableAlias>,
    ) -> Result<Vec<Column>> {
        let is_renamed = alias.is_some_and(|alias| !alias.columns.is_empty());
        let query = &self.levels[index].with[place];
        if let Some(known) = &query.columns
            && !is_renamed
        {
            let relation = TableReference::bare(normal(&alias.unwrap_or(&query.cte.alias).name));
            return Ok(known.iter().map(|name| Column::new(Some(relation.clone()), name.clone())).collect());
        }
        let level = &self.levels[index];
        let columns = self.columns_within(index, with_clause(&level.with[..=place], level), vec![alone(factor)])?;
        if !is_renamed {
            let names = columns.iter().map(|column| column.name.clone()).collect();
            self.levels[index].with[place].columns = Some(names);
        }
        Ok(columns)
    }

    /// The columns of `SELECT * FROM from` in a query with the WITH of `level`, within the outer `level_count` queries.
    fn columns_at(&self, level_count: usize, level: Option<&Level>, from: Vec<TableWithJoins>) -> Result<Vec<Column>> {
        let with = level.and_then(|level| with_clause(&level.with, level));
        self.columns_within(level_count, with, from)
    }

    fn columns_within(&self, level_count: usize, with: Option<With>, from: Vec<TableWithJoins>) -> Result<Vec<Column>> {
        let mut query = selecting("SELECT * FROM t", |select| select.from = from)?;
        query.with = with;
        let mut depth = 0;
        for level in self.levels[..level_count].iter().rev() {
            if level.with.is_empty() && level.from.is_empty() {
                continue;
            }
            let exists = ast::Expr::Exists { subquery: Box::new(query), negated: false };
            query = selecting("SELECT 1", |select| {
                select.from = level.from.clone();
                select.selection = Some(exists);
            })?;
            query.with = with_clause(&level.with, level);
            depth += 1;
        }
        let query = Box::new(Statement::Query(Box::new(query)));
        let statement = datafusion::sql::parser::Statement::Statement(query);
        let plan = pollster::block_on(self.state.statement_to_plan(statement))?;
        let mut inner = &plan;
        for _ in 0..depth {
            inner = asked_about(inner)
                .ok_or_else(|| Error::Internal(format!("no subquery in {}", inner.display_indent())))?;
        }
        let columns = inner.schema().iter();
        Ok(columns.map(|(relation, field)| Column::new(relation.cloned(), field.name().clone())).collect())
    }
}

/// A table without joins.
fn alone(factor: &TableFactor) -> TableWithJoins {
    TableWithJoins { relation: factor.clone(), joins: Vec::new() }
}

/// WITH of some queries of a level.
fn with_clause(queries: &[NamedQuery], level: &Level) -> Option<With> {
    let cte_tables: Vec<_> = queries.iter().map(|query| query.cte.clone()).collect();
    let with = With { with_token: AttachedToken::empty(), recursive: level.is_recursive, cte_tables };
    (!with.cte_tables.is_empty()).then_some(with)
}

/// A query of ours, with changes.
pub(super) fn selecting(sql: &str, change: impl FnOnce(&mut Select)) -> Result<Query> {
    let no_select = || Error::Internal(format!("a query of ours is no SELECT: {sql}"));
    let Statement::Query(mut query) = parse_one(sql)? else { return Err(no_select()) };
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(no_select()) };
    change(select.as_mut());
    Ok(*query)
}

/// The plan of the subquery in the WHERE clause of a query of ours.
fn asked_about(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    let LogicalPlan::Projection(projection) = plan else { return None };
    let LogicalPlan::Filter(filter) = projection.input.as_ref() else { return None };
    let Expr::Exists(exists) = &filter.predicate else { return None };
    Some(exists.subquery.subquery.as_ref())
}
