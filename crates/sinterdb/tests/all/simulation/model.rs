//! What a database should hold: tables as lists of rows, in no order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// A value; the columns of the simulation are BIGINT or VARCHAR.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cell {
    Null,
    Int(i64),
    Text(Arc<str>),
}

/// As SQL writes it.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Null => f.write_str("NULL"),
            Cell::Int(value) => write!(f, "{value}"),
            Cell::Text(text) => write!(f, "'{text}'"),
        }
    }
}

pub(super) type Row = Vec<Cell>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Text,
}

impl Kind {
    /// The name tells the kind, so that a view finds a column of the same kind, or none.
    pub(super) fn column_name(self, number: u32) -> String {
        match self {
            Kind::Int => format!("i{number}"),
            Kind::Text => format!("s{number}"),
        }
    }

    pub(super) fn sql(self) -> &'static str {
        match self {
            Kind::Int => "BIGINT",
            Kind::Text => "VARCHAR",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) is_nullable: bool,
    pub(super) default: Option<Cell>,
}

impl Column {
    pub(super) fn default_cell(&self) -> Cell {
        self.default.clone().unwrap_or(Cell::Null)
    }

    pub(super) fn declaration(&self) -> String {
        let not_null = if self.is_nullable { "" } else { " NOT NULL" };
        let default = self.default.as_ref().map_or_else(String::new, |default| format!(" DEFAULT {default}"));
        format!("{} {}{not_null}{default}", self.name, self.kind.sql())
    }
}

/// `CONSTRAINT name CHECK (column < bound)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) name: String,
    pub(super) column: String,
    pub(super) bound: i64,
}

/// Which rows a statement means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    All,
    Equal(String, i64),
    Between(String, i64, i64),
    Remainder(String, i64, i64),
    Is(String, Arc<str>),
    IsNull(String),
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::All => f.write_str("true"),
            Condition::Equal(column, value) => write!(f, "{column} = {value}"),
            Condition::Between(column, from, to) => write!(f, "{column} BETWEEN {from} AND {to}"),
            Condition::Remainder(column, divisor, rest) => write!(f, "{column} % {divisor} = {rest}"),
            Condition::Is(column, text) => write!(f, "{column} = '{text}'"),
            Condition::IsNull(column) => write!(f, "{column} IS NULL"),
        }
    }
}

impl Condition {
    fn column(&self) -> Option<&str> {
        match self {
            Condition::All => None,
            Condition::Equal(column, _)
            | Condition::Between(column, ..)
            | Condition::Remainder(column, ..)
            | Condition::Is(column, _)
            | Condition::IsNull(column) => Some(column),
        }
    }

    /// Whether it holds, for each row of a table; `None` where that has no such column.
    pub(super) fn over(&self, table: &Table) -> Option<Vec<bool>> {
        let index = match self.column() {
            Some(column) => table.index_of(column)?,
            None => 0,
        };
        let holds = |row: &Row| match (self, &row[index]) {
            (Condition::All, _) => true,
            (Condition::Equal(_, wanted), Cell::Int(value)) => value == wanted,
            (Condition::Between(_, from, to), Cell::Int(value)) => (from..=to).contains(&value),
            (Condition::Remainder(_, divisor, rest), Cell::Int(value)) => value % divisor == *rest,
            (Condition::Is(_, wanted), Cell::Text(text)) => text == wanted,
            (Condition::IsNull(_), cell) => *cell == Cell::Null,
            _ => false,
        };
        Some(table.rows.iter().map(holds).collect())
    }
}

/// What keeps the rows of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Storage {
    #[default]
    Columns,
    /// A key-value tree: the first column is its key.
    Tree,
    /// One whose keys have any number of values, each once.
    Pairs,
}

/// A key and its value take so many bytes together at most, where a key has several.
const PAIR_BYTES_MAX: usize = 2041;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) storage: Storage,
    pub(super) columns: Vec<Column>,
    pub(super) checks: Vec<Check>,
    pub(super) rows: Vec<Row>,
    /// Of the rows, whatever their order.
    pub(super) fingerprint: u64,
}

impl Table {
    pub(super) fn index_of(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|known| known.name == column)
    }

    /// To be called after a change of rows or columns.
    pub(super) fn seal(&mut self) {
        self.fingerprint = self.rows.iter().map(row_hash).fold(0, u64::wrapping_add);
    }

    /// Why a row cannot be in the table.
    pub(super) fn breach(&self, row: &Row) -> Option<String> {
        let null = self.columns.iter().zip(row).find(|(column, cell)| !column.is_nullable && **cell == Cell::Null);
        if let Some((column, _)) = null {
            return Some(format!("{} is NULL", column.name));
        }
        let broken = |check: &&Check| match self.index_of(&check.column).map(|index| &row[index]) {
            Some(Cell::Int(value)) => *value >= check.bound,
            _ => false,
        };
        if let (Storage::Pairs, Some(Cell::Text(text))) = (self.storage, row.last())
            && size_of::<i64>() + text.len() > PAIR_BYTES_MAX
        {
            return Some("the value is too long".to_owned());
        }
        self.checks.iter().find(broken).map(|check| format!("{} is broken", check.name))
    }

    /// Whether two rows are alike in what is there once only.
    pub(super) fn has_twins(&self) -> bool {
        let identity = match self.storage {
            Storage::Columns => return false,
            Storage::Tree => 1,
            Storage::Pairs => 2,
        };
        let mut seen = BTreeSet::new();
        !self.rows.iter().all(|row| seen.insert(&row[..identity]))
    }
}

/// The hash of a row, from its cells' hashes.
pub(super) fn row_hash(row: &Row) -> u64 {
    row.iter().fold(ROW_HASH, |hash, cell| {
        mixed(
            hash,
            match cell {
                Cell::Null => NULL_HASH,
                Cell::Int(value) => int_hash(*value),
                Cell::Text(text) => text_hash(text),
            },
        )
    })
}

pub(super) const ROW_HASH: u64 = 0x5351_4C44_4953_4B53;
pub(super) const NULL_HASH: u64 = 0x4E55_4C4C;

pub(super) fn int_hash(value: i64) -> u64 {
    value.cast_unsigned() ^ 0x1111_0000_1111_0000
}

pub(super) fn text_hash(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}

/// The order of the cells counts.
pub(super) fn mixed(hash: u64, cell: u64) -> u64 {
    let mixed = (hash.rotate_left(23) ^ cell).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 29
}

/// `SELECT columns FROM table WHERE condition`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) table: Name,
    pub(super) columns: Vec<String>,
    pub(super) condition: Condition,
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SELECT {} FROM {} WHERE {}", self.columns.join(", "), self.table, self.condition)
    }
}

/// Schema and table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) schema: String,
    pub(super) table: String,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.table)
    }
}

/// Everything, after some commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Beside `public`.
    pub(super) schemas: BTreeSet<String>,
    pub(super) tables: BTreeMap<Name, Arc<Table>>,
    pub(super) views: BTreeMap<Name, View>,
}

impl State {
    pub(super) fn has_schema(&self, name: &str) -> bool {
        name == "public" || self.schemas.contains(name)
    }

    pub(super) fn is_taken(&self, name: &Name) -> bool {
        self.tables.contains_key(name) || self.views.contains_key(name)
    }

    /// The rows of a query, as a table without rules; `None` where it names what is not there.
    pub(super) fn select(&self, query: &View) -> Option<Table> {
        let table = self.tables.get(&query.table)?;
        let indices = query.columns.iter().map(|column| table.index_of(column)).collect::<Option<Vec<_>>>()?;
        let columns = indices.iter().map(|&index| {
            let Column { name, kind, .. } = table.columns[index].clone();
            Column { name, kind, is_nullable: true, default: None }
        });
        let holds = query.condition.over(table)?;
        let rows = table.rows.iter().zip(holds).filter(|(_, holds)| *holds);
        let rows = rows.map(|(row, _)| indices.iter().map(|&index| row[index].clone()).collect()).collect();
        let mut selected = Table { columns: columns.collect(), rows, ..Table::default() };
        selected.seal();
        Some(selected)
    }
}
