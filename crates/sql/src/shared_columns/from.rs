//! FROM: conditions in the places of USING and NATURAL, and the columns that there are behind them.

use super::expressions::Outputs;
use super::level::Column;
use super::place::selecting;
use super::{Rewriting, full_join};
use crate::statement::normal;
use crate::{Error, Result};
use datafusion::common::TableReference;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, TableAlias, TableFactor,
    TableWithJoins, Value,
};

/// Which rows a join keeps that have no partner, or of which side it keeps anything at all.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Inner,
    Left,
    Right,
    Full,
    OnlyLeft,
    OnlyRight,
}

/// A column of USING or NATURAL.
pub(super) struct SharedColumn {
    pub(super) left: Column,
    pub(super) right: Column,
    /// What its plain name means.
    pub(super) merged: Column,
}

impl SharedColumn {
    /// `own` is what calls the columns that a FULL JOIN makes.
    fn of(
        name: &str,
        kind: Kind,
        left: &[Column],
        right: &[Column],
        own: Option<&TableReference>,
    ) -> Result<SharedColumn> {
        let (left, right) = (only(left, name, "left")?.clone(), only(right, name, "right")?.clone());
        let merged = match kind {
            Kind::Full => {
                Column { parts: [left.parts(), right.parts()].concat(), ..Column::new(own.cloned(), name.to_owned()) }
            }
            Kind::Right | Kind::OnlyRight => right.clone(),
            Kind::Inner | Kind::Left | Kind::OnlyLeft => left.clone(),
        };
        Ok(SharedColumn { left, right, merged: Column { is_shared: true, ..merged } })
    }
}

impl Rewriting<'_> {
    /// Rewrites a FROM clause, whose tables are in sight then.
    pub(super) fn tables(&mut self, from: &mut [TableWithJoins]) -> Result<()> {
        from.iter_mut().try_for_each(|tables| self.joined(tables))
    }

    /// Rewrites a table and what is joined to it.
    fn joined(&mut self, tables: &mut TableWithJoins) -> Result<()> {
        let first = self.level().column_count();
        let columns = self.factor(&mut tables.relation)?;
        let level = self.level();
        level.from.push(TableWithJoins { relation: tables.relation.clone(), joins: Vec::new() });
        level.add(columns);
        for join in std::mem::take(&mut tables.joins) {
            self.join(tables, join, first)?;
        }
        Ok(())
    }

    /// Joins one more to `tables`, whose columns are the level's from the `first` on.
    fn join(&mut self, tables: &mut TableWithJoins, mut join: Join, first: usize) -> Result<()> {
        let right = self.factor(&mut join.relation)?;
        self.level().see_join(join.relation.clone());
        let (kind, shared) = self.condition(&mut join.join_operator, &right, first)?;
        self.level().see_operator(join.join_operator.clone());
        tables.joins.push(join);
        let left = self.level().take_from(first);
        self.level().add(behind_join(kind, left, right, &shared));
        if kind == Kind::Full && !shared.is_empty() {
            let relation = full_join::table(tables.clone(), &shared)?;
            *tables = TableWithJoins { relation, joins: Vec::new() };
            self.level().see_instead(tables.clone());
        }
        Ok(())
    }

    /// Rewrites the condition of a join. Returns which kind of join it is, and the columns that it shares.
    fn condition(
        &mut self,
        operator: &mut JoinOperator,
        right: &[Column],
        first: usize,
    ) -> Result<(Kind, Vec<SharedColumn>)> {
        let Some((kind, constraint)) = constraint_of(operator) else { return Ok((Kind::Inner, Vec::new())) };
        let names = match constraint {
            JoinConstraint::Using(names) => names.iter().map(name_of).collect::<Result<Vec<String>>>()?,
            JoinConstraint::Natural => names_of_both(self.level().columns_from(first), right),
            JoinConstraint::On(condition) => {
                self.on(condition, right, first)?;
                return Ok((kind, Vec::new()));
            }
            JoinConstraint::None => return Ok((kind, Vec::new())),
        };
        let shared = self.shared(&names, kind, right, first)?;
        match all_equal(&shared) {
            Some(condition) => *constraint = JoinConstraint::On(condition),
            None if kind == Kind::Inner => *operator = JoinOperator::CrossJoin(JoinConstraint::None),
            None => *constraint = JoinConstraint::On(Expr::value(Value::Boolean(true))),
        }
        Ok((kind, shared))
    }

    /// Rewrites ON, which sees the two sides of its join alone.
    fn on(&mut self, condition: &mut Expr, right: &[Column], first: usize) -> Result<()> {
        let level = self.level();
        let column_count = level.column_count();
        level.add(right.to_vec());
        level.first = first;
        let rewritten = self.expressions(condition, Outputs::None);
        let level = self.level();
        level.first = 0;
        level.take_from(column_count);
        rewritten
    }

    /// The columns of these names on both sides of a join.
    fn shared(&mut self, names: &[String], kind: Kind, right: &[Column], first: usize) -> Result<Vec<SharedColumn>> {
        let own = match kind {
            Kind::Full => Some(TableReference::bare(self.new_name("full_join"))),
            _ => None,
        };
        let left = self.level().columns_from(first);
        let pairs = names.iter().map(|name| SharedColumn::of(name, kind, left, right, own.as_ref()));
        let pairs: Vec<SharedColumn> = pairs.collect::<Result<_>>()?;
        for pair in &pairs {
            check_told_apart(&pair.left, left.iter().chain(right))?;
            check_told_apart(&pair.right, left.iter().chain(right))?;
        }
        Ok(pairs)
    }

    /// Rewrites what is within a table of FROM. Returns its columns where they are kept up with.
    fn factor(&mut self, factor: &mut TableFactor) -> Result<Vec<Column>> {
        if let TableFactor::NestedJoin { table_with_joins, alias: None } = factor {
            return self.nested(table_with_joins);
        }
        if let TableFactor::NestedJoin { table_with_joins, alias } = factor {
            let (tables, alias) = ((**table_with_joins).clone(), alias.take());
            let subquery = Box::new(selecting("SELECT * FROM t", |select| select.from = vec![tables])?);
            *factor = TableFactor::Derived { lateral: false, subquery, alias, sample: None };
        }
        let shares = self.level().shares;
        if let TableFactor::Derived { alias: alias @ None, .. } = factor
            && shares
        {
            *alias = Some(alias_of(&self.new_name("subquery")));
        }
        if is_lateral(factor) {
            self.expressions(factor, Outputs::None)?;
        } else {
            let hidden = self.level().hide();
            let rewritten = self.expressions(factor, Outputs::None);
            self.level().show(hidden);
            rewritten?;
        }
        if shares { self.columns_of(factor) } else { Ok(Vec::new()) }
    }

    /// `(a JOIN b USING (k))`, whose tables keep their names.
    fn nested(&mut self, tables: &mut TableWithJoins) -> Result<Vec<Column>> {
        let (table_count, first) = (self.level().from.len(), self.level().column_count());
        self.joined(tables)?;
        self.level().from.truncate(table_count);
        Ok(self.level().take_from(first))
    }

    /// A name for what has none, which nothing in the statement is called.
    fn new_name(&mut self, of: &str) -> String {
        loop {
            self.name_count += 1;
            let name = format!("{of}_{}", self.name_count);
            if !self.text.contains(&name) {
                return name;
            }
        }
    }
}

/// Whether a table of FROM sees those before it.
pub(super) fn is_lateral(factor: &TableFactor) -> bool {
    matches!(
        factor,
        TableFactor::Derived { lateral: true, .. }
            | TableFactor::Function { lateral: true, .. }
            | TableFactor::UNNEST { .. }
    )
}

pub(super) fn alias_of(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::with_quote('"', name), columns: Vec::new(), at: None }
}

/// The kind of a join and its condition, where it has one that may name columns.
fn constraint_of(operator: &mut JoinOperator) -> Option<(Kind, &mut JoinConstraint)> {
    match operator {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => Some((Kind::Inner, constraint)),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => Some((Kind::Left, constraint)),
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => Some((Kind::Right, constraint)),
        JoinOperator::FullOuter(constraint) => Some((Kind::Full, constraint)),
        JoinOperator::LeftSemi(constraint) | JoinOperator::LeftAnti(constraint) => Some((Kind::OnlyLeft, constraint)),
        JoinOperator::RightSemi(constraint) | JoinOperator::RightAnti(constraint) => {
            Some((Kind::OnlyRight, constraint))
        }
        _ => None,
    }
}

/// One name of USING.
fn name_of(name: &ObjectName) -> Result<String> {
    let plain = match &name.0[..] {
        [part] => part.as_ident().map(normal),
        _ => None,
    };
    plain.ok_or_else(|| Error::Sql(format!("USING wants the plain names of columns, not '{name}'")))
}

/// The names of NATURAL, in the order of the left side.
fn names_of_both(left: &[Column], right: &[Column]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for Column { name, .. } in left {
        if !names.contains(name) && right.iter().any(|column| column.name == *name) {
            names.push(name.clone());
        }
    }
    names
}

/// The one column of a side that is called so.
fn only<'c>(columns: &'c [Column], name: &str, side: &str) -> Result<&'c Column> {
    let mut found = columns.iter().filter(|column| column.name == name);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column),
        (None, _) => Err(Error::Sql(format!("No field named {name} on the {side} side of JOIN ... USING ({name})"))),
        (Some(one), Some(other)) => Err(Error::Sql(format!(
            "the {side} side of a JOIN with USING or NATURAL has column '{name}' twice, {} and {}; write ON with the one \
             that is meant",
            one.expr(),
            other.expr()
        ))),
    }
}

/// Whether a column can be written with its table: names of two tables that differ in their schemas alone are taken for one
/// where one of them has none.
pub(super) fn check_told_apart<'c>(column: &Column, beside: impl IntoIterator<Item = &'c Column>) -> Result<()> {
    let Some(relation) = &column.relation else { return Ok(()) };
    let others = beside.into_iter().filter_map(|column| column.relation.as_ref());
    match others.filter(|other| *other != relation).find(|other| other.resolved_eq(relation)) {
        None => Ok(()),
        Some(other) => Err(Error::Sql(format!(
            "columns of '{other}' and '{relation}' are not told apart in joins with USING or NATURAL; give one of the \
             tables another name with AS"
        ))),
    }
}

/// The condition that all pairs are equal; not one below the other, since a NATURAL JOIN may have a thousand of them.
fn all_equal(shared: &[SharedColumn]) -> Option<Expr> {
    let equal = |pair: &SharedColumn| binary(pair.left.expr(), BinaryOperator::Eq, pair.right.expr());
    let mut conditions: Vec<Expr> = shared.iter().map(equal).collect();
    while conditions.len() > 1 {
        let mut rest = conditions.into_iter();
        let mut pairs = Vec::new();
        while let Some(first) = rest.next() {
            pairs.push(match rest.next() {
                Some(second) => binary(first, BinaryOperator::And, second),
                None => first,
            });
        }
        conditions = pairs;
    }
    conditions.pop()
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// The columns behind a join: those of the left side, with the shared ones at their places, and the others of the right side.
fn behind_join(kind: Kind, left: Vec<Column>, right: Vec<Column>, shared: &[SharedColumn]) -> Vec<Column> {
    match kind {
        Kind::OnlyLeft => return left,
        Kind::OnlyRight => return right,
        Kind::Inner | Kind::Left | Kind::Right | Kind::Full => {}
    }
    let merged = |column: &Column| shared.iter().find(|pair| pair.merged.name == column.name).map(|pair| &pair.merged);
    let mut columns: Vec<Column> = left.into_iter().map(|column| merged(&column).cloned().unwrap_or(column)).collect();
    columns.extend(right.into_iter().filter(|column| merged(column).is_none()));
    columns
}
