//! Random statements that fit a state, mostly.

use super::action::{Action, Assigned, BULK_ROWS_MIN, Series, Source};
use super::model::{Cell, Check, Column, Condition, Kind, Name, State, Table, View};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::path::Path;
use std::sync::Arc;

/// Tables with more rows than this only become smaller.
const ROWS_MAX: usize = 3000;

/// More than a row group of a table.
const ROWS_OF_LARGE: i64 = 140_000;

/// Draws statements.
#[derive(Debug)]
pub(super) struct Generator {
    pub(super) random: SmallRng,
    /// Where the files of COPY go.
    csv: Arc<Path>,
    /// How many very large INSERTs may still come.
    large_left: u32,
    next_column: u32,
}

impl Generator {
    pub(super) fn new(seed: u64, csv: &Path, large: u32) -> Generator {
        Generator { random: SmallRng::seed_from_u64(seed), csv: csv.into(), large_left: large, next_column: 0 }
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        all.choose(&mut self.random).cloned()
    }

    fn chance(&mut self, one_in: u32) -> bool {
        self.random.random_ratio(1, one_in)
    }

    /// A statement that changes something, for somebody who sees this state.
    pub(super) fn action(&mut self, state: &State) -> Action {
        loop {
            let tables = state.tables.len();
            let drawn = match self.random.random_range(0..100) {
                _ if tables == 0 => self.create(state),
                0..3 if tables < 5 => self.create(state),
                3..6 if tables < 6 => self.create_as(state),
                6..8 => self.table_name(state).filter(|_| tables > 2).map(|name| Action::DropTable { name }),
                8..20 => self.insert(state),
                20..26 => self.insert_select(state),
                26..33 => self.insert_many(state),
                33..37 => self.copy(state),
                37..48 => self.update(state),
                48..54 => self.delete(state),
                54..59 => self.delete_many(state),
                59..63 => self.add_column(state),
                63..66 => self.of_column(state, |name, column, _| Action::DropColumn { name, column }),
                66..69 => {
                    let (int, text) = (self.column_name(Kind::Int), self.column_name(Kind::Text));
                    self.of_column(state, |name, column, of| {
                        let to = if of.kind == Kind::Int { int } else { text };
                        Action::RenameColumn { name, column, to }
                    })
                }
                69..72 => self.rename_table(state),
                72..75 => self.set_default(state),
                75..79 => self.set_nullable(state),
                79..83 => self.add_check(state),
                83..86 => self.drop_check(state),
                86..90 => self.create_view(state),
                90..93 => self.drop_view(state),
                93..96 => Some(Action::CreateSchema { name: self.schema_name() }),
                96..98 => Some(Action::DropSchema { name: self.schema_name(), cascade: self.chance(3) }),
                // As it comes, whether it is there or not.
                _ => Some(Action::DropTable { name: self.name() }),
            };
            if let Some(action) = drawn {
                return action;
            }
        }
    }

    /// One that changes rows that are there, where there are any.
    pub(super) fn action_on_rows(&mut self, state: &State) -> Action {
        let drawn = match self.random.random_range(0..4) {
            0 => self.delete(state),
            1 => self.delete_many(state),
            _ => self.update(state),
        };
        drawn.unwrap_or_else(|| self.action(state))
    }

    fn schema_name(&mut self) -> String {
        format!("s{}", self.random.random_range(0..2))
    }

    fn name(&mut self) -> Name {
        let schema = if self.chance(5) { self.schema_name() } else { "public".to_owned() };
        Name { schema, table: format!("t{}", self.random.random_range(0..7)) }
    }

    /// A name in a schema that is there, in most cases.
    fn new_name(&mut self, state: &State) -> Name {
        let mut name = self.name();
        if !state.has_schema(&name.schema) && !self.chance(8) {
            name.schema = "public".to_owned();
        }
        name
    }

    /// Views have names of their own, so that none comes to read another, or itself.
    fn view_name(&mut self, state: &State) -> Name {
        Name { table: format!("v{}", self.random.random_range(0..4)), ..self.new_name(state) }
    }

    fn table_name(&mut self, state: &State) -> Option<Name> {
        let names: Vec<Name> = state.tables.keys().cloned().collect();
        self.one_of(&names)
    }

    fn table<'a>(&mut self, state: &'a State) -> Option<(Name, &'a Table)> {
        let name = self.table_name(state)?;
        let table = state.tables.get(&name)?;
        Some((name, table))
    }

    fn growing<'a>(&mut self, state: &'a State) -> Option<(Name, &'a Table)> {
        self.table(state).filter(|(_, table)| table.rows.len() < ROWS_MAX)
    }

    fn column_name(&mut self, kind: Kind) -> String {
        self.next_column += 1;
        kind.column_name(self.next_column)
    }

    fn cell(&mut self, kind: Kind) -> Cell {
        match kind {
            Kind::Int => Cell::Int(self.random.random_range(0..60)),
            Kind::Text => {
                let repeats = if self.chance(12) { 400 } else { 1 };
                Cell::Text(format!("w{}", self.random.random_range(0..7)).repeat(repeats).into())
            }
        }
    }

    fn cell_or_null(&mut self, column: &Column) -> Cell {
        // Now and then where it is not allowed.
        match self.cell(column.kind) {
            _ if self.chance(if column.is_nullable { 6 } else { 60 }) => Cell::Null,
            // Of a key-value tree too long for a leaf; a DEFAULT may not be so long.
            Cell::Text(text) if text.len() < 10 && self.chance(30) => Cell::Text(text.repeat(3000).into()),
            cell => cell,
        }
    }

    fn column(&mut self, kind: Kind) -> Column {
        let default = self.chance(3).then(|| self.cell(kind));
        Column { name: self.column_name(kind), kind, is_nullable: !self.chance(5), default }
    }

    fn kind(&mut self) -> Kind {
        if self.chance(3) { Kind::Text } else { Kind::Int }
    }

    fn create(&mut self, state: &State) -> Option<Action> {
        if self.chance(3) {
            let (value, has_duplicates) = (self.kind(), self.chance(3));
            let (name, or_replace) = (self.new_name(state), self.chance(3));
            return Some(Action::CreateTree { name, value, has_duplicates, or_replace });
        }
        let mut columns = vec![self.column(Kind::Int)];
        for _ in 0..self.random.random_range(1..4) {
            let kind = self.kind();
            columns.push(self.column(kind));
        }
        let checks = match self.chance(4) {
            true => vec![self.check(&columns)],
            false => Vec::new(),
        };
        let layout = if self.chance(4) { "pax" } else { "dsm" };
        Some(Action::CreateTable { name: self.new_name(state), columns, checks, or_replace: self.chance(3), layout })
    }

    fn create_as(&mut self, state: &State) -> Option<Action> {
        let source = match self.chance(3) {
            true => Source::Series(self.series_of(vec![Kind::Int, Kind::Text])),
            false => Source::Table(self.query(state)?),
        };
        Some(Action::CreateTableAs { name: self.new_name(state), source, or_replace: self.chance(3) })
    }

    fn check(&mut self, columns: &[Column]) -> Check {
        let ints: Vec<&Column> = columns.iter().filter(|column| column.kind == Kind::Int).collect();
        let column = ints.choose(&mut self.random).map_or_else(String::new, |column| column.name.clone());
        let bound = if self.chance(2) { 58 } else { 1_000_000_000 };
        Check { name: format!("k{}", self.random.random_range(0..3)), column, bound }
    }

    fn insert(&mut self, state: &State) -> Option<Action> {
        let (name, table) = self.growing(state)?;
        let columns: Vec<&Column> =
            table.columns.iter().filter(|column| !column.is_nullable || !self.random.random_ratio(1, 5)).collect();
        let columns = if columns.is_empty() { vec![&table.columns[0]] } else { columns };
        let rows = (0..self.random.random_range(1..6)).map(|_| {
            let cells = columns.iter().map(|column| match column.default.is_some() && self.chance(4) {
                true => None,
                false => Some(self.cell_or_null(column)),
            });
            cells.collect()
        });
        let rows = rows.collect();
        Some(Action::Insert { name, columns: columns.iter().map(|column| column.name.clone()).collect(), rows })
    }

    fn query(&mut self, state: &State) -> Option<View> {
        let (name, table) = self.growing(state)?;
        let mut columns: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
        columns.truncate(self.random.random_range(1..4));
        Some(View { table: name, columns, condition: self.condition(table) })
    }

    fn insert_select(&mut self, state: &State) -> Option<Action> {
        let (name, table) = self.growing(state)?;
        let query = self.query(state)?;
        let kinds: Vec<Kind> = state.select(&query)?.columns.iter().map(|column| column.kind).collect();
        let columns = matching(table, &kinds)?;
        Some(Action::InsertSelect { name, columns, source: Source::Table(query) })
    }

    fn series_of(&mut self, kinds: Vec<Kind>) -> Series {
        let count = match self.large_left > 0 && self.chance(3) {
            true => ROWS_OF_LARGE,
            false => self.random.random_range(BULK_ROWS_MIN..BULK_ROWS_MIN + 200),
        };
        self.large_left -= u32::from(count == ROWS_OF_LARGE);
        // Texts of a megabyte and more in one go, so that there are several chunks.
        let is_wide = count != ROWS_OF_LARGE && kinds.contains(&Kind::Text) && self.chance(12);
        Series { kinds, first: self.random.random_range(0..50), count, repeats: if is_wide { 600 } else { 1 } }
    }

    fn insert_many(&mut self, state: &State) -> Option<Action> {
        let (name, table) = self.growing(state)?;
        let columns: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
        let series = self.series_of(table.columns.iter().map(|column| column.kind).collect());
        Some(Action::InsertSelect { name, columns, source: Source::Series(series) })
    }

    fn copy(&mut self, state: &State) -> Option<Action> {
        let (name, table) = self.growing(state)?;
        let kinds = table.columns.iter().map(|column| column.kind).collect();
        let count = if self.chance(3) { BULK_ROWS_MIN } else { self.random.random_range(1..20) };
        let series = Series { kinds, first: self.random.random_range(0..50), count, repeats: 1 };
        Some(Action::Copy { name, series, path: Arc::clone(&self.csv) })
    }

    fn condition(&mut self, table: &Table) -> Condition {
        let Some(column) = self.one_of(&table.columns) else { return Condition::All };
        let from = self.random.random_range(0..60);
        match (column.kind, self.random.random_range(0..8)) {
            (_, 0) => Condition::IsNull(column.name),
            (Kind::Text, _) => Condition::Is(column.name, format!("w{}", from % 7).into()),
            (_, 1..4) => Condition::Equal(column.name, from),
            (_, 4..7) => Condition::Between(column.name, from, from + 15),
            _ => Condition::Remainder(column.name, 7, from % 7),
        }
    }

    fn update(&mut self, state: &State) -> Option<Action> {
        let (name, table) = self.table(state)?;
        let column = self.one_of(&table.columns)?;
        let to = match (column.kind, self.random.random_range(0..6)) {
            (_, 0) => Assigned::Default,
            (Kind::Int, 1..4) => Assigned::Plus(self.random.random_range(1..9)),
            _ => Assigned::Cell(self.cell_or_null(&column)),
        };
        Some(Action::Update { name, column: column.name, to, condition: self.condition(table) })
    }

    fn delete(&mut self, state: &State) -> Option<Action> {
        let (name, table) = self.table(state)?;
        let condition = self.condition(table);
        let is_many = matches!(condition, Condition::All | Condition::Remainder(..));
        (!is_many).then_some(Action::Delete { name, condition })
    }

    fn delete_many(&mut self, state: &State) -> Option<Action> {
        let (name, table) = self.table(state)?;
        let ints: Vec<&Column> = table.columns.iter().filter(|column| column.kind == Kind::Int).collect();
        let condition = match ints.choose(&mut self.random) {
            Some(column) if !self.chance(4) => {
                let divisor = self.random.random_range(2..4);
                Condition::Remainder(column.name.clone(), divisor, self.random.random_range(0..divisor))
            }
            _ => Condition::All,
        };
        Some(Action::Delete { name, condition })
    }

    fn add_column(&mut self, state: &State) -> Option<Action> {
        let (name, table) = self.table(state)?;
        let kind = self.kind();
        (table.columns.len() < 6).then(|| Action::AddColumn { name, column: self.column(kind) })
    }

    fn of_column(&mut self, state: &State, make: impl FnOnce(Name, String, &Column) -> Action) -> Option<Action> {
        let (name, table) = self.table(state)?;
        let column = self.one_of(&table.columns)?;
        // A table of one column would soon be none.
        (table.columns.len() > 1).then(|| make(name, column.name.clone(), &column))
    }

    fn rename_table(&mut self, state: &State) -> Option<Action> {
        let names: Vec<Name> = state.tables.keys().chain(state.views.keys()).cloned().collect();
        let name = self.one_of(&names)?;
        let to = if state.views.contains_key(&name) { self.view_name(state) } else { self.name() };
        Some(Action::RenameTable { name, to: to.table })
    }

    fn set_default(&mut self, state: &State) -> Option<Action> {
        let with_default = !self.chance(3);
        let (int, text) = (self.cell(Kind::Int), self.cell(Kind::Text));
        self.of_column(state, |name, column, of| {
            let cell = if of.kind == Kind::Int { int } else { text };
            Action::SetDefault { name, column, default: with_default.then_some(cell) }
        })
    }

    fn set_nullable(&mut self, state: &State) -> Option<Action> {
        let is_nullable = self.chance(2);
        self.of_column(state, |name, column, _| Action::SetNullable { name, column, is_nullable })
    }

    fn add_check(&mut self, state: &State) -> Option<Action> {
        let (name, table) = self.table(state)?;
        let check = self.check(&table.columns);
        table.index_of(&check.column).map(|_| Action::AddCheck { name, check })
    }

    fn drop_check(&mut self, state: &State) -> Option<Action> {
        let with_checks: Vec<Name> =
            state.tables.iter().filter(|(_, table)| !table.checks.is_empty()).map(|(name, _)| name.clone()).collect();
        let name = self.one_of(&with_checks)?;
        let check = self.one_of(&state.tables[&name].checks)?.name;
        Some(Action::DropCheck { name, check })
    }

    fn create_view(&mut self, state: &State) -> Option<Action> {
        let view = self.query(state)?;
        Some(Action::CreateView { name: self.view_name(state), view, or_replace: self.chance(2) })
    }

    fn drop_view(&mut self, state: &State) -> Option<Action> {
        let names: Vec<Name> = state.views.keys().cloned().collect();
        Some(Action::DropView { name: self.one_of(&names)? })
    }
}

/// Columns that can take these, if there are any.
fn matching(table: &Table, kinds: &[Kind]) -> Option<Vec<String>> {
    let mut taken: Vec<String> = Vec::new();
    for kind in kinds {
        let free = table.columns.iter().find(|column| column.kind == *kind && !taken.contains(&column.name))?;
        taken.push(free.name.clone());
    }
    Some(taken)
}
