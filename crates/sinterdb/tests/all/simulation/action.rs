//! The statements that change something: as SQL, and what they do to the model.

use super::model::{Cell, Check, Column, Condition, Kind, Name, Row, State, Storage, Table, View};
use sinter_column::PRESS_ROWS_MIN;
use std::path::Path;
use std::sync::Arc;

/// A statement.
#[derive(Clone, Debug)]
pub(super) enum Action {
    CreateTable {
        name: Name,
        columns: Vec<Column>,
        checks: Vec<Check>,
        or_replace: bool,
        layout: &'static str,
    },
    CreateTableAs {
        name: Name,
        source: Source,
        or_replace: bool,
    },
    /// A key-value tree.
    CreateTree {
        name: Name,
        value: Kind,
        has_duplicates: bool,
        or_replace: bool,
    },
    DropTable {
        name: Name,
    },
    /// `None` is the word DEFAULT; columns that are not named take theirs too.
    Insert {
        name: Name,
        columns: Vec<String>,
        rows: Vec<Vec<Option<Cell>>>,
    },
    InsertSelect {
        name: Name,
        columns: Vec<String>,
        source: Source,
    },
    /// All columns, from a CSV file; the rows are those of the series.
    Copy {
        name: Name,
        series: Series,
        path: Arc<Path>,
    },
    Update {
        name: Name,
        column: String,
        to: Assigned,
        condition: Condition,
    },
    Delete {
        name: Name,
        condition: Condition,
    },
    AddColumn {
        name: Name,
        column: Column,
    },
    DropColumn {
        name: Name,
        column: String,
    },
    RenameColumn {
        name: Name,
        column: String,
        to: String,
    },
    RenameTable {
        name: Name,
        to: String,
    },
    SetDefault {
        name: Name,
        column: String,
        default: Option<Cell>,
    },
    SetNullable {
        name: Name,
        column: String,
        is_nullable: bool,
    },
    AddCheck {
        name: Name,
        check: Check,
    },
    DropCheck {
        name: Name,
        check: String,
    },
    CreateView {
        name: Name,
        view: View,
        or_replace: bool,
    },
    DropView {
        name: Name,
    },
    CreateSchema {
        name: String,
    },
    DropSchema {
        name: String,
        cascade: bool,
    },
}

/// Where the rows of an INSERT or CREATE TABLE AS come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Table(View),
    Series(Series),
}

/// So many rows out of nothing: column k of row i holds `first + i * (k + 1)`, or one of some words, or a long text.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) kinds: Vec<Kind>,
    pub(super) first: i64,
    pub(super) count: i64,
    /// Texts are that many times as long.
    pub(super) repeats: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Assigned {
    Cell(Cell),
    Plus(i64),
    Default,
}

/// The statement names what is not there, or what is there already, or breaks a rule: it does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused;

/// From so many rows on, INSERT presses them at once.
pub(super) const BULK_ROWS_MIN: i64 = PRESS_ROWS_MIN as i64;

impl Series {
    fn cell(&self, kind: Kind, column: usize, row: i64) -> Cell {
        match kind {
            Kind::Int => Cell::Int(self.first + row * (column as i64 + 1)),
            Kind::Text => Cell::Text(format!("w{}", (self.first + row) % 7).repeat(self.repeats).into()),
        }
    }

    fn expressions(&self) -> Vec<String> {
        let expression = |(column, kind): (usize, &Kind)| match kind {
            Kind::Int => format!("{} + value * {}", self.first, column + 1),
            Kind::Text => {
                format!("repeat('w' || CAST(({} + value) % 7 AS VARCHAR), {})", self.first, self.repeats)
            }
        };
        self.kinds.iter().enumerate().map(expression).collect()
    }

    fn names(&self) -> Vec<String> {
        (0..).zip(&self.kinds).map(|(number, kind)| kind.column_name(number)).collect()
    }

    fn rows(&self) -> Vec<Row> {
        let kinds = || self.kinds.iter().enumerate();
        (0..self.count).map(|row| kinds().map(|(column, kind)| self.cell(*kind, column, row)).collect()).collect()
    }

    /// As a CSV file, with a line of names.
    fn csv(&self) -> String {
        let mut text = self.names().join(",");
        for row in self.rows() {
            let cells = row.iter().map(|cell| match cell {
                Cell::Null => String::new(),
                Cell::Int(value) => value.to_string(),
                Cell::Text(text) => text.to_string(),
            });
            text.push('\n');
            text.push_str(&cells.collect::<Vec<_>>().join(","));
        }
        text.push('\n');
        text
    }
}

impl Source {
    fn sql(&self) -> String {
        match self {
            Source::Table(query) => query.to_string(),
            Source::Series(series) => {
                let named = series.expressions().into_iter().zip(series.names());
                let named = named.map(|(sql, name)| format!("{sql} AS {name}")).collect::<Vec<_>>().join(", ");
                format!("SELECT {named} FROM generate_series(0, {})", series.count - 1)
            }
        }
    }

    fn table(&self, state: &State) -> Result<Table, Refused> {
        match self {
            Source::Table(query) => state.select(query).ok_or(Refused),
            Source::Series(series) => {
                let columns = series.names().into_iter().zip(&series.kinds).map(|(name, kind)| Column {
                    name,
                    kind: *kind,
                    is_nullable: true,
                    default: None,
                });
                Ok(Table { columns: columns.collect(), rows: series.rows(), ..Table::default() })
            }
        }
    }

    fn is_bulk(&self) -> bool {
        matches!(self, Source::Series(series) if series.count >= BULK_ROWS_MIN)
    }
}

fn list(names: &[String]) -> String {
    names.join(", ")
}

impl Action {
    /// What is counted together.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Action::CreateTable { or_replace: true, .. } | Action::CreateTableAs { or_replace: true, .. } => {
                "CREATE OR REPLACE"
            }
            Action::CreateTable { .. } => "CREATE TABLE",
            Action::CreateTableAs { .. } => "CREATE TABLE AS",
            Action::CreateTree { .. } => "CREATE TREE",
            Action::DropTable { .. } => "DROP TABLE",
            Action::Insert { .. } => "INSERT VALUES",
            Action::InsertSelect { source, .. } if source.is_bulk() => "INSERT of many",
            Action::InsertSelect { .. } => "INSERT SELECT",
            Action::Copy { .. } => "COPY FROM",
            Action::Update { .. } => "UPDATE",
            Action::Delete { condition: Condition::All | Condition::Remainder(..), .. } => "DELETE of many",
            Action::Delete { .. } => "DELETE",
            Action::AddColumn { .. } => "ADD COLUMN",
            Action::DropColumn { .. } => "DROP COLUMN",
            Action::RenameColumn { .. } => "RENAME COLUMN",
            Action::RenameTable { .. } => "RENAME TABLE",
            Action::SetDefault { .. } => "SET DEFAULT",
            Action::SetNullable { .. } => "SET NOT NULL",
            Action::AddCheck { .. } => "ADD CHECK",
            Action::DropCheck { .. } => "DROP CONSTRAINT",
            Action::CreateView { .. } => "CREATE VIEW",
            Action::DropView { .. } => "DROP VIEW",
            Action::CreateSchema { .. } => "CREATE SCHEMA",
            Action::DropSchema { .. } => "DROP SCHEMA",
        }
    }

    /// The table that it changes or leaves.
    pub(super) fn table(&self) -> Option<&Name> {
        match self {
            Action::CreateView { .. } | Action::DropView { .. } => None,
            Action::CreateSchema { .. } | Action::DropSchema { .. } => None,
            Action::CreateTable { name, .. }
            | Action::CreateTableAs { name, .. }
            | Action::CreateTree { name, .. }
            | Action::DropTable { name }
            | Action::Insert { name, .. }
            | Action::InsertSelect { name, .. }
            | Action::Copy { name, .. }
            | Action::Update { name, .. }
            | Action::Delete { name, .. }
            | Action::AddColumn { name, .. }
            | Action::DropColumn { name, .. }
            | Action::RenameColumn { name, .. }
            | Action::RenameTable { name, .. }
            | Action::SetDefault { name, .. }
            | Action::SetNullable { name, .. }
            | Action::AddCheck { name, .. }
            | Action::DropCheck { name, .. } => Some(name),
        }
    }

    /// Writes the file that it reads, if it reads one.
    pub(super) fn prepare(&self) {
        if let Action::Copy { series, path, .. } = self {
            std::fs::write(path, series.csv()).unwrap();
        }
    }

    pub(super) fn sql(&self) -> String {
        let or_replace = |yes: &bool| if *yes { "OR REPLACE " } else { "" };
        match self {
            Action::CreateTable { name, columns, checks, or_replace: replace, layout } => {
                let columns = columns.iter().map(Column::declaration);
                let checks = checks.iter().map(check_sql);
                let all = columns.chain(checks).collect::<Vec<_>>().join(", ");
                format!("CREATE {}TABLE {name} ({all}) WITH (layout = '{layout}')", or_replace(replace))
            }
            Action::CreateTableAs { name, source, or_replace: replace } => {
                format!("CREATE {}TABLE {name} AS {}", or_replace(replace), source.sql())
            }
            Action::CreateTree { name, value, has_duplicates, or_replace: replace } => {
                let (value, duplicates) = (value.sql(), if *has_duplicates { ", duplicates = true" } else { "" });
                format!(
                    "CREATE {}TABLE {name} (key BIGINT, value {value}) WITH (storage = 'tree'{duplicates})",
                    or_replace(replace)
                )
            }
            Action::DropTable { name } => format!("DROP TABLE {name}"),
            Action::Insert { name, columns, rows } => {
                let rows = rows.iter().map(|row| {
                    let cells = row.iter().map(|cell| cell.as_ref().map_or("DEFAULT".to_owned(), Cell::to_string));
                    format!("({})", cells.collect::<Vec<_>>().join(", "))
                });
                format!("INSERT INTO {name} ({}) VALUES {}", list(columns), rows.collect::<Vec<_>>().join(", "))
            }
            Action::InsertSelect { name, columns, source } => {
                format!("INSERT INTO {name} ({}) {}", list(columns), source.sql())
            }
            Action::Copy { name, path, .. } => format!("COPY {name} FROM '{}' (header true)", path.display()),
            Action::Update { name, column, to, condition } => {
                let to = match to {
                    Assigned::Cell(cell) => cell.to_string(),
                    Assigned::Plus(more) => format!("{column} + {more}"),
                    Assigned::Default => "DEFAULT".to_owned(),
                };
                format!("UPDATE {name} SET {column} = {to} WHERE {condition}")
            }
            Action::Delete { name, condition } => format!("DELETE FROM {name} WHERE {condition}"),
            Action::AddColumn { name, column } => format!("ALTER TABLE {name} ADD COLUMN {}", column.declaration()),
            Action::DropColumn { name, column } => format!("ALTER TABLE {name} DROP COLUMN {column}"),
            Action::RenameColumn { name, column, to } => format!("ALTER TABLE {name} RENAME COLUMN {column} TO {to}"),
            Action::RenameTable { name, to } => format!("ALTER TABLE {name} RENAME TO {to}"),
            Action::SetDefault { name, column, default } => {
                let what =
                    default.as_ref().map_or("DROP DEFAULT".to_owned(), |default| format!("SET DEFAULT {default}"));
                format!("ALTER TABLE {name} ALTER COLUMN {column} {what}")
            }
            Action::SetNullable { name, column, is_nullable } => {
                let what = if *is_nullable { "DROP" } else { "SET" };
                format!("ALTER TABLE {name} ALTER COLUMN {column} {what} NOT NULL")
            }
            Action::AddCheck { name, check } => format!("ALTER TABLE {name} ADD {}", check_sql(check)),
            Action::DropCheck { name, check } => format!("ALTER TABLE {name} DROP CONSTRAINT {check}"),
            Action::CreateView { name, view, or_replace: replace } => {
                format!("CREATE {}VIEW {name} AS {view}", or_replace(replace))
            }
            Action::DropView { name } => format!("DROP VIEW {name}"),
            Action::CreateSchema { name } => format!("CREATE SCHEMA {name}"),
            Action::DropSchema { name, cascade } => {
                format!("DROP SCHEMA {name}{}", if *cascade { " CASCADE" } else { "" })
            }
        }
    }

    /// Does it to the model; returns how many rows it changed.
    ///
    /// # Errors
    /// It is to be refused, and has done nothing.
    pub(super) fn run_on(&self, state: &mut State) -> Result<u64, Refused> {
        match self {
            Action::CreateTable { name, columns, checks, or_replace, .. } => {
                check_free(state, name, Storage::Columns, *or_replace)?;
                let table = Table { columns: columns.clone(), checks: checks.clone(), ..Table::default() };
                state.tables.insert(name.clone(), Arc::new(table));
                Ok(0)
            }
            Action::CreateTableAs { name, source, or_replace } => {
                check_free(state, name, Storage::Columns, *or_replace)?;
                let mut table = source.table(state)?;
                table.seal();
                let rows = table.rows.len() as u64;
                state.tables.insert(name.clone(), Arc::new(table));
                Ok(rows)
            }
            Action::CreateTree { name, value, has_duplicates, or_replace } => {
                let storage = if *has_duplicates { Storage::Pairs } else { Storage::Tree };
                check_free(state, name, storage, *or_replace)?;
                let column =
                    |name: &str, kind| Column { name: name.to_owned(), kind, is_nullable: false, default: None };
                let columns = vec![column("key", Kind::Int), column("value", *value)];
                state.tables.insert(name.clone(), Arc::new(Table { storage, columns, ..Table::default() }));
                Ok(0)
            }
            Action::DropTable { name } => state.tables.remove(name).map(|_| 0).ok_or(Refused),
            Action::Insert { name, columns, rows } => {
                let table = state.tables.get(name).ok_or(Refused)?;
                let with_defaults = |row: &Vec<Option<Cell>>| -> Result<Row, Refused> {
                    let of = |cell: &Option<Cell>, name: &String| -> Result<Cell, Refused> {
                        let column = &table.columns[table.index_of(name).ok_or(Refused)?];
                        Ok(cell.clone().unwrap_or_else(|| column.default_cell()))
                    };
                    row.iter().zip(columns).map(|(cell, name)| of(cell, name)).collect()
                };
                let rows = rows.iter().map(with_defaults).collect::<Result<_, _>>()?;
                insert(state, name, columns, rows)
            }
            Action::InsertSelect { name, columns, source } => {
                let rows = source.table(state)?.rows;
                insert(state, name, columns, rows)
            }
            Action::Copy { name, series, .. } => {
                let table = state.tables.get(name).ok_or(Refused)?;
                let columns: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
                if table.columns.iter().map(|column| column.kind).ne(series.kinds.iter().copied()) {
                    return Err(Refused);
                }
                insert(state, name, &columns, series.rows())
            }
            Action::Update { name, column, to, condition } => {
                let (table, index) = column_of(state, name, column)?;
                let holds = condition.over(table).ok_or(Refused)?;
                let mut next = table.clone();
                let mut changed = 0;
                for (row, _) in next.rows.iter_mut().zip(holds).filter(|(_, holds)| *holds) {
                    row[index] = match (to, &row[index]) {
                        (Assigned::Cell(cell), _) => cell.clone(),
                        (Assigned::Default, _) => table.columns[index].default_cell(),
                        (Assigned::Plus(more), Cell::Int(value)) => Cell::Int(value + more),
                        (Assigned::Plus(_), other) => other.clone(),
                    };
                    if table.breach(row).is_some() {
                        return Err(Refused);
                    }
                    changed += 1;
                }
                if next.has_twins() {
                    return Err(Refused);
                }
                next.seal();
                state.tables.insert(name.clone(), Arc::new(next));
                Ok(changed)
            }
            Action::Delete { name, condition } => {
                let table = state.tables.get(name).ok_or(Refused)?;
                let holds = condition.over(table).ok_or(Refused)?;
                let mut next = (**table).clone();
                let mut holds = holds.into_iter();
                next.rows.retain(|_| holds.next() == Some(false));
                next.seal();
                let deleted = table.rows.len() - next.rows.len();
                state.tables.insert(name.clone(), Arc::new(next));
                Ok(deleted as u64)
            }
            Action::AddColumn { name, column } => alter(state, name, |table| {
                if table.index_of(&column.name).is_some() {
                    return Err(Refused);
                }
                if !column.is_nullable && column.default.is_none() && !table.rows.is_empty() {
                    return Err(Refused);
                }
                table.rows.iter_mut().for_each(|row| row.push(column.default_cell()));
                table.columns.push(column.clone());
                Ok(())
            }),
            Action::DropColumn { name, column } => alter(state, name, |table| {
                if table.checks.iter().any(|check| check.column == *column) {
                    return Err(Refused);
                }
                let index = table.index_of(column).ok_or(Refused)?;
                if table.columns.len() == 1 {
                    return Err(Refused);
                }
                table.columns.remove(index);
                table.rows.iter_mut().for_each(|row| drop(row.remove(index)));
                Ok(())
            }),
            Action::RenameColumn { name, column, to } => alter(state, name, |table| {
                let index = table.index_of(column).ok_or(Refused)?;
                if table.index_of(to).is_some() {
                    return Err(Refused);
                }
                table.columns[index].name.clone_from(to);
                let of_column = table.checks.iter_mut().filter(|check| check.column == *column);
                of_column.for_each(|check| check.column.clone_from(to));
                Ok(())
            }),
            Action::RenameTable { name, to } => {
                let to = Name { schema: name.schema.clone(), table: to.clone() };
                if !state.is_taken(name) || state.is_taken(&to) {
                    return Err(Refused);
                }
                if let Some(table) = state.tables.remove(name) {
                    state.tables.insert(to, table);
                } else if let Some(view) = state.views.remove(name) {
                    state.views.insert(to, view);
                }
                Ok(0)
            }
            Action::SetDefault { name, column, default } => alter(state, name, |table| {
                let index = table.index_of(column).ok_or(Refused)?;
                table.columns[index].default.clone_from(default);
                Ok(())
            }),
            Action::SetNullable { name, column, is_nullable } => alter(state, name, |table| {
                let index = table.index_of(column).ok_or(Refused)?;
                if !is_nullable && table.rows.iter().any(|row| row[index] == Cell::Null) {
                    return Err(Refused);
                }
                table.columns[index].is_nullable = *is_nullable;
                Ok(())
            }),
            Action::AddCheck { name, check } => alter(state, name, |table| {
                if table.checks.iter().any(|known| known.name == check.name) {
                    return Err(Refused);
                }
                table.checks.push(check.clone());
                match table.rows.iter().any(|row| table.breach(row).is_some()) {
                    true => Err(Refused),
                    false => Ok(()),
                }
            }),
            Action::DropCheck { name, check } => alter(state, name, |table| {
                let index = table.checks.iter().position(|known| known.name == *check).ok_or(Refused)?;
                table.checks.remove(index);
                Ok(())
            }),
            Action::CreateView { name, view, or_replace } => {
                if !state.has_schema(&name.schema) || state.tables.contains_key(name) {
                    return Err(Refused);
                }
                if state.views.contains_key(name) && !or_replace {
                    return Err(Refused);
                }
                state.select(view).ok_or(Refused)?;
                state.views.insert(name.clone(), view.clone());
                Ok(0)
            }
            Action::DropView { name } => state.views.remove(name).map(|_| 0).ok_or(Refused),
            Action::CreateSchema { name } => match state.schemas.insert(name.clone()) {
                true => Ok(0),
                false => Err(Refused),
            },
            Action::DropSchema { name, cascade } => {
                let is_within = |known: &Name| known.schema == *name;
                let is_empty = !state.tables.keys().chain(state.views.keys()).any(is_within);
                if !state.schemas.contains(name) || !(is_empty || *cascade) {
                    return Err(Refused);
                }
                state.tables.retain(|known, _| !is_within(known));
                state.views.retain(|known, _| !is_within(known));
                state.schemas.remove(name);
                Ok(0)
            }
        }
    }
}

fn check_sql(check: &Check) -> String {
    format!("CONSTRAINT {} CHECK ({} < {})", check.name, check.column, check.bound)
}

/// Whether a table may be created, which may give way to another of its kind.
fn check_free(state: &State, name: &Name, storage: Storage, or_replace: bool) -> Result<(), Refused> {
    let is_tree = |storage| storage != Storage::Columns;
    let gives_way = |table: &Arc<Table>| or_replace && is_tree(table.storage) == is_tree(storage);
    let is_free = !state.views.contains_key(name) && state.tables.get(name).is_none_or(gives_way);
    if is_free && state.has_schema(&name.schema) { Ok(()) } else { Err(Refused) }
}

fn column_of<'a>(state: &'a State, name: &Name, column: &str) -> Result<(&'a Table, usize), Refused> {
    let table = state.tables.get(name).ok_or(Refused)?;
    Ok((table, table.index_of(column).ok_or(Refused)?))
}

/// Rows of the named columns; the others take their defaults.
fn insert(state: &mut State, name: &Name, columns: &[String], rows: Vec<Row>) -> Result<u64, Refused> {
    let table = state.tables.get(name).ok_or(Refused)?;
    if columns.iter().any(|column| table.index_of(column).is_none()) {
        return Err(Refused);
    }
    let places: Vec<Option<usize>> =
        table.columns.iter().map(|column| columns.iter().position(|given| *given == column.name)).collect();
    let mut next = (**table).clone();
    let count = rows.len() as u64;
    for row in rows {
        let cells = places.iter().zip(&table.columns);
        let row: Row = cells.map(|(place, column)| place.map_or(column.default_cell(), |at| row[at].clone())).collect();
        if table.breach(&row).is_some() {
            return Err(Refused);
        }
        next.rows.push(row);
    }
    if next.has_twins() {
        return Err(Refused);
    }
    next.seal();
    state.tables.insert(name.clone(), Arc::new(next));
    Ok(count)
}

fn alter(state: &mut State, name: &Name, body: impl FnOnce(&mut Table) -> Result<(), Refused>) -> Result<u64, Refused> {
    let mut table = (**state.tables.get(name).ok_or(Refused)?).clone();
    if table.storage != Storage::Columns {
        return Err(Refused);
    }
    body(&mut table)?;
    table.seal();
    state.tables.insert(name.clone(), Arc::new(table));
    Ok(0)
}
