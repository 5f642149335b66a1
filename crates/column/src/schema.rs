//! Names, types and options of a table's columns.

use crate::wire::{Reader, Writer};
use crate::{Error, Result};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema, SchemaRef};
use sinter_codec::Choice;
use sinter_exec::{LogicalType, edge};
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

/// All columns of a table, and its options.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSchema {
    /// In table order.
    pub columns: Vec<ColumnSchema>,
    /// Options that no column owns, as written: `layout`, `order_by` and whatever later versions add.
    pub options: Vec<(String, String)>,
}

impl ColumnSchema {
    /// The scheme to press with.
    pub fn choice(&self) -> Choice {
        self.compression.clone().map_or(Choice::Auto, Choice::Forced)
    }
}

impl TableSchema {
    /// The schema in which the table's rows leave the engine: text as `Utf8View`.
    pub fn arrow(&self) -> SchemaRef {
        let fields =
            self.columns.iter().map(|column| Field::new(&column.name, edge::arrow_type(&column.ty), column.nullable));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Position of a column.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Whether a table of this schema can be kept: to be asked before one is made, because what [`TableSchema::write`]
    /// writes of others [`TableSchema::read`] refuses.
    ///
    /// # Errors
    /// [`Error::Data`] naming the column.
    pub fn validate(&self) -> Result<()> {
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
        out.count(self.columns.len());
        for column in &self.columns {
            out.text(&column.name);
            out.u8(u8::from(column.nullable));
            out.logical_type(&column.ty);
            out.optional_text(column.compression.as_deref());
            out.optional_text(column.default.as_deref());
        }
        out.count(self.options.len());
        for (name, value) in &self.options {
            out.text(name);
            out.text(value);
        }
    }

    /// Reads what [`TableSchema::write`] wrote.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn read(input: &mut Reader<'_>) -> Result<TableSchema> {
        let count = input.count()?;
        let mut columns = Vec::with_capacity(count.min(1024));
        for _ in 0..count {
            columns.push(ColumnSchema {
                name: input.text()?,
                nullable: input.flag()?,
                ty: input.logical_type()?,
                compression: input.optional_text()?,
                default: input.optional_text()?,
            });
        }
        let count = input.count()?;
        let mut options = Vec::with_capacity(count.min(1024));
        for _ in 0..count {
            options.push((input.text()?, input.text()?));
        }
        Ok(TableSchema { columns, options })
    }
}

/// True where a segment of `ty` can be made from values of `given`: the same type, names and zones of nested members
/// apart.
fn accepts(ty: &LogicalType, given: &LogicalType) -> bool {
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
