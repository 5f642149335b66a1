//! A query around a place in a statement, and what plain names mean there.

use datafusion::common::TableReference;
use datafusion::sql::sqlparser::ast::{
    Cte, Expr, Ident, Join, JoinConstraint, JoinOperator, TableFactor, TableWithJoins,
};

/// A column of a FROM clause that `*` and plain names know of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    /// What calls its table.
    pub(super) relation: Option<TableReference>,
    pub(super) name: String,
    /// Whether it stands for columns of two tables, of which the planner could not tell by the plain name.
    pub(super) is_shared: bool,
    /// Of one that a FULL JOIN makes, the columns of which it has the first value that is not NULL; of others, none.
    pub(super) parts: Vec<Column>,
}

impl Column {
    pub(super) fn new(relation: Option<TableReference>, name: String) -> Column {
        Column { relation, name, is_shared: false, parts: Vec::new() }
    }

    /// What a FULL JOIN makes a column of: it, or what it is made of itself, so that `coalesce` stays flat.
    pub(super) fn parts(&self) -> &[Column] {
        if self.parts.is_empty() { std::slice::from_ref(self) } else { &self.parts }
    }

    /// Whether its table is called so, by as much of its full name as is given.
    pub(super) fn is_of(&self, table: &[String]) -> bool {
        self.relation.as_ref().map_or_else(Vec::new, TableReference::to_vec).ends_with(table)
    }

    /// It, with its table.
    pub(super) fn expr(&self) -> Expr {
        let relation = self.relation.as_ref().map_or_else(Vec::new, TableReference::to_vec);
        let parts = relation.into_iter().chain([self.name.clone()]);
        let mut parts: Vec<Ident> = parts.map(|part| Ident::with_quote('"', part)).collect();
        match parts.len() {
            1 => Expr::Identifier(parts.remove(0)),
            _ => Expr::CompoundIdentifier(parts),
        }
    }
}

/// A query of a WITH clause.
pub(super) struct NamedQuery {
    pub(super) cte: Cte,
    /// What its columns are called, once that was asked.
    pub(super) columns: Option<Vec<String>>,
}

impl NamedQuery {
    pub(super) fn new(cte: Cte) -> NamedQuery {
        NamedQuery { cte, columns: None }
    }
}

/// A query, as the clause sees it that is being rewritten.
#[derive(Default)]
pub(super) struct Level {
    /// Its WITH, rewritten, as far as it was read.
    pub(super) with: Vec<NamedQuery>,
    pub(super) is_recursive: bool,
    /// The query of WITH RECURSIVE that it is, until its first term was read.
    pub(super) itself: Option<Cte>,
    /// The tables in sight, rewritten.
    pub(super) from: Vec<TableWithJoins>,
    /// Whether they share columns by USING or NATURAL, so that `columns` is kept up with `from`.
    pub(super) shares: bool,
    /// Their columns. Where nothing is shared, they are asked for when they are wanted.
    pub(super) columns: Option<Vec<Column>>,
    /// The first of them that ON may name.
    pub(super) first: usize,
}

impl Level {
    /// The columns that a plain name can mean, as far as they are known.
    pub(super) fn in_sight(&self) -> &[Column] {
        self.columns_from(self.first)
    }

    pub(super) fn has_shared(&self, name: &str) -> bool {
        self.in_sight().iter().any(|column| column.is_shared && column.name == name)
    }

    /// How many columns are kept up with.
    pub(super) fn column_count(&self) -> usize {
        match &self.columns {
            Some(columns) if self.shares => columns.len(),
            _ => 0,
        }
    }

    /// The columns from the `first` on.
    pub(super) fn columns_from(&self, first: usize) -> &[Column] {
        self.columns.as_ref().and_then(|columns| columns.get(first..)).unwrap_or_default()
    }

    /// Tables came into sight that have these columns.
    pub(super) fn add(&mut self, added: Vec<Column>) {
        match &mut self.columns {
            Some(columns) if self.shares => columns.extend(added),
            columns => *columns = None,
        }
    }

    /// Takes those out of sight that are kept from the `first` on.
    pub(super) fn take_from(&mut self, first: usize) -> Vec<Column> {
        match &mut self.columns {
            Some(columns) if self.shares => columns.split_off(first.min(columns.len())),
            columns => {
                *columns = None;
                Vec::new()
            }
        }
    }

    /// A table came into sight beside the last one, whose join has no condition yet.
    pub(super) fn see_join(&mut self, relation: TableFactor) {
        if let Some(tables) = self.from.last_mut() {
            let join_operator = JoinOperator::CrossJoin(JoinConstraint::None);
            tables.joins.push(Join { relation, global: false, join_operator });
        }
    }

    /// That join has one now.
    pub(super) fn see_operator(&mut self, operator: JoinOperator) {
        if let Some(join) = self.from.last_mut().and_then(|tables| tables.joins.last_mut()) {
            join.join_operator = operator;
        }
    }

    /// The last table with its joins has become another one.
    pub(super) fn see_instead(&mut self, tables: TableWithJoins) {
        if let Some(last) = self.from.last_mut() {
            *last = tables;
        }
    }

    /// Takes all tables out of sight, for a query of FROM that may not name its neighbours.
    pub(super) fn hide(&mut self) -> (Vec<TableWithJoins>, Option<Vec<Column>>) {
        (std::mem::take(&mut self.from), self.columns.replace(Vec::new()))
    }

    /// Undoes [`Level::hide`].
    pub(super) fn show(&mut self, (from, columns): (Vec<TableWithJoins>, Option<Vec<Column>>)) {
        (self.from, self.columns) = (from, columns);
    }

    /// Begins with a term of the query, or with a clause that sees no tables.
    pub(super) fn begin(&mut self, shares: bool) {
        self.from.clear();
        (self.shares, self.columns, self.first) = (shares, shares.then(Vec::new), 0);
    }
}
