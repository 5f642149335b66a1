//! Names, types and options of a table's columns.

use crate::wire::{Reader, Writer};
use crate::{Error, Result};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema, SchemaRef};
use sinter_codec::Choice;
use sinter_exec::{LogicalType, edge};
use sinter_storage::ObjectId;
use std::sync::Arc;

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSchema {
    /// As the user wrote it.
    pub name: String,
    /// What it holds.
    pub ty: LogicalType,
    /// NULL is allowed.
    pub nullable: bool,
    /// `WITH (compression_name = '...')`; automatic when absent.
    pub compression: Option<String>,
    /// `DEFAULT ...`, as SQL text.
    pub default: Option<String>,
}

/// A condition that every row keeps to: true or NULL for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// `CONSTRAINT name`, if it has one.
    pub name: Option<String>,
    /// The condition, as SQL text.
    pub sql: String,
}

/// A key-value tree that leads from the values of some columns to row ids. Kept here, kept up by the rooms above.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// What the tree is called in the table's schema.
    pub name: String,
    /// The columns by name, the first one first.
    pub columns: Vec<String>,
    /// What rows have to be for it.
    pub rule: IndexRule,
    /// The tree.
    pub tree: ObjectId,
}

/// What an index says of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexRule {
    /// Nothing.
    Any,
    /// No two have the same values; rows with a NULL among them have none: `UNIQUE`.
    Unique,
    /// The same, and none of the columns is NULL: `PRIMARY KEY`.
    Primary,
}

/// All columns of a table, its options and its rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableSchema {
    /// In table order.
    pub columns: Vec<ColumnSchema>,
    /// Options that no column owns, as written: `layout`, `order_by` and whatever later versions add.
    pub options: Vec<(String, String)>,
    /// How many alterations led to it.
    pub version: u32,
    /// `CHECK (...)`. Kept here, held to by the rooms above.
    pub checks: Vec<Check>,
    /// In the order in which they were made.
    pub indexes: Vec<Index>,
}

/// Which segments share chunks: `WITH (layout = '...')`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Those of one column, of one row group after the other: the default.
    Dsm,
    /// Those of the same rows.
    Pax,
}

/// The first byte of a schema: its own version. What [`TableSchema::read_v1`] reads had none.
const SCHEMA_VERSION: u8 = 2;

/// That of a schema with indexes, which are behind all else.
const INDEXED_SCHEMA_VERSION: u8 = 3;

impl ColumnSchema {
    /// The scheme to press with.
    pub fn choice(&self) -> Choice {
        self.compression.clone().map_or(Choice::Auto, Choice::Forced)
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.text(&self.name);
        out.u8(u8::from(self.nullable));
        out.logical_type(&self.ty);
        out.optional_text(self.compression.as_deref());
        out.optional_text(self.default.as_deref());
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<ColumnSchema> {
        Ok(ColumnSchema {
            name: input.text()?,
            nullable: input.flag()?,
            ty: input.logical_type()?,
            compression: input.optional_text()?,
            default: input.optional_text()?,
        })
    }
}

impl Check {
    pub(crate) fn write(&self, out: &mut Writer) {
        out.optional_text(self.name.as_deref());
        out.text(&self.sql);
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Check> {
        Ok(Check { name: input.optional_text()?, sql: input.text()? })
    }
}

impl IndexRule {
    /// Whether no two rows may have the same values.
    pub fn is_unique(self) -> bool {
        self != IndexRule::Any
    }
}

impl Index {
    pub(crate) fn write(&self, out: &mut Writer) {
        out.text(&self.name);
        out.u8(match self.rule {
            IndexRule::Any => 0,
            IndexRule::Unique => 1,
            IndexRule::Primary => 2,
        });
        out.u64(self.tree.0);
        out.count(self.columns.len());
        self.columns.iter().for_each(|column| out.text(column));
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Index> {
        let name = input.text()?;
        let rule = match input.u8()? {
            0 => IndexRule::Any,
            1 => IndexRule::Unique,
            2 => IndexRule::Primary,
            other => return Err(input.damaged(format!("index rule {other} is unknown; a newer SinterDB wrote it"))),
        };
        let tree = ObjectId(input.u64()?);
        let columns = (0..input.count()?).map(|_| input.text()).collect::<Result<_>>()?;
        Ok(Index { name, columns, rule, tree })
    }
}

impl TableSchema {
    /// These columns, without rules and options.
    pub fn new(columns: Vec<ColumnSchema>) -> TableSchema {
        TableSchema { columns, ..TableSchema::default() }
    }

    /// The index whose tree has this number.
    pub fn index_of_tree(&self, tree: ObjectId) -> Option<&Index> {
        self.indexes.iter().find(|index| index.tree == tree)
    }

    /// Positions of an index's columns.
    ///
    /// # Panics
    /// When the index is of another schema.
    pub fn columns_of(&self, index: &Index) -> Vec<usize> {
        let position = |name: &String| self.index_of(name).unwrap_or_else(|| panic!("an index of no column '{name}'"));
        index.columns.iter().map(position).collect()
    }

    /// Positions of the columns by which rows are sorted when they are loaded, `order_by = 'a, b'`; none without.
    pub fn order_by(&self) -> Vec<usize> {
        let wanted = self.options.iter().find(|(name, _)| name == "order_by");
        let names = wanted.into_iter().flat_map(|(_, columns)| columns.split(','));
        names.filter_map(|name| self.index_of(name.trim())).collect()
    }

    /// The schema in which the table's rows leave the engine: text as `Utf8View`.
    pub fn arrow(&self) -> SchemaRef {
        let fields =
            self.columns.iter().map(|column| Field::new(&column.name, edge::arrow_type(&column.ty), column.nullable));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// True for the same schema, by its address or by all that is in it, version included.
    pub fn is_same(self: &Arc<Self>, other: &Arc<TableSchema>) -> bool {
        Arc::ptr_eq(self, other) || self == other
    }

    /// Position of a column.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    pub(crate) fn layout(&self) -> Layout {
        match self.option("layout") {
            Some("pax") => Layout::Pax,
            _ => Layout::Dsm,
        }
    }

    fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|option| option.0 == name).map(|option| option.1.as_str())
    }

    /// Whether a table of this schema can be kept: to be asked before one is made, because what [`TableSchema::write`]
    /// writes of others [`TableSchema::read`] refuses.
    ///
    /// # Errors
    /// [`Error::Data`] naming the column or the option.
    pub fn validate(&self) -> Result<()> {
        if let Some(layout) = self.option("layout").filter(|layout| !["dsm", "pax"].contains(layout)) {
            return Err(Error::Data(format!("layout '{layout}' is unknown; there are 'dsm' and 'pax'")));
        }
        match self.columns.iter().find(|column| column.ty.depth() > LogicalType::DEPTH_MAX) {
            None => Ok(()),
            Some(column) => Err(Error::Data(format!(
                "column '{}' has {} lists and structs inside one another; {} are possible",
                column.name,
                column.ty.depth(),
                LogicalType::DEPTH_MAX
            ))),
        }
    }

    /// The columns of `batch` in table order, checked against types and NOT NULL.
    ///
    /// # Errors
    /// [`Error::Data`] naming the column.
    pub fn check(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        if batch.num_columns() != self.columns.len() {
            return Err(Error::Data(format!(
                "{} columns were given for a table of {}",
                batch.num_columns(),
                self.columns.len()
            )));
        }
        for (column, array) in self.columns.iter().zip(batch.columns()) {
            if !edge::logical_type(array.data_type()).is_some_and(|ty| accepts(&column.ty, &ty)) {
                return Err(Error::Data(format!(
                    "column '{}' is {}, but {} was given",
                    column.name,
                    column.ty,
                    array.data_type()
                )));
            }
            if !column.nullable && array.null_count() > 0 {
                return Err(Error::Data(format!("column '{}' is NOT NULL, but a row has NULL there", column.name)));
            }
        }
        Ok(batch.columns().to_vec())
    }

    /// Writes the schema (docs/format/table.md).
    pub fn write(&self, out: &mut Writer) {
        out.u8(if self.indexes.is_empty() { SCHEMA_VERSION } else { INDEXED_SCHEMA_VERSION });
        out.count(self.columns.len());
        self.columns.iter().for_each(|column| column.write(out));
        out.count(self.options.len());
        for (name, value) in &self.options {
            out.text(name);
            out.text(value);
        }
        out.u32(self.version);
        out.count(self.checks.len());
        self.checks.iter().for_each(|check| check.write(out));
        if !self.indexes.is_empty() {
            out.count(self.indexes.len());
            self.indexes.iter().for_each(|index| index.write(out));
        }
    }

    /// Reads what [`TableSchema::write`] wrote.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn read(input: &mut Reader<'_>) -> Result<TableSchema> {
        let version = input.u8()?;
        if ![SCHEMA_VERSION, INDEXED_SCHEMA_VERSION].contains(&version) {
            return Err(input.damaged(format!(
                "schema of version {version}; this SinterDB reads {SCHEMA_VERSION} and {INDEXED_SCHEMA_VERSION} here, a \
                 newer one wrote it"
            )));
        }
        let mut schema = TableSchema::read_v1(input)?;
        schema.version = input.u32()?;
        for _ in 0..input.count()? {
            schema.checks.push(Check::read(input)?);
        }
        if version == INDEXED_SCHEMA_VERSION {
            for _ in 0..input.count()? {
                let index = Index::read(input)?;
                if let Some(column) = index.columns.iter().find(|column| schema.index_of(column).is_none()) {
                    return Err(
                        input.damaged(format!("index '{}' of column '{column}', which is not there", index.name))
                    );
                }
                schema.indexes.push(index);
            }
        }
        Ok(schema)
    }

    /// Reads a schema of before tables could be altered. It has no version byte: who embeds it knows by its own.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn read_v1(input: &mut Reader<'_>) -> Result<TableSchema> {
        let mut schema = TableSchema::default();
        for _ in 0..input.count()? {
            schema.columns.push(ColumnSchema::read(input)?);
        }
        for _ in 0..input.count()? {
            schema.options.push((input.text()?, input.text()?));
        }
        Ok(schema)
    }
}

/// True where a segment of `ty` can be made from values of `given`: the same type, names and zones of nested members
/// apart.
pub(crate) fn accepts(ty: &LogicalType, given: &LogicalType) -> bool {
    match (ty, given) {
        (LogicalType::List(a), LogicalType::List(b)) => accepts(&a.ty, &b.ty),
        (LogicalType::Struct(a), LogicalType::Struct(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.name == b.name && accepts(&a.ty, &b.ty))
        }
        (LogicalType::Timestamp(a, zone_a), LogicalType::Timestamp(b, zone_b)) => {
            a == b && zone_a.is_some() == zone_b.is_some()
        }
        _ => ty == given,
    }
}
