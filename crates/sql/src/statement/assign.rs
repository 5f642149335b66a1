//! Rows of a query in the shape of a table: columns in table order, cast to the table's types, defaults filled in.

use crate::batches::outer_type;
use crate::coercion::is_text;
use crate::parse::parse_one;
use crate::progress::Notes;
use crate::uuid::parse_uuids;
use crate::{Error, Result, Session};
use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow::compute::{CastOptions, cast_with_options, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::util::display::FormatOptions;
use sinter_column::TableSchema;
use sinter_exec::{LogicalType, edge};
use std::sync::Arc;

/// Casts batches of one schema to a table's.
pub(crate) struct Assigner {
    table: Arc<TableSchema>,
    /// For each column of the table, which column of the batch it comes from; NULL where none.
    sources: Vec<Option<usize>>,
    /// For each column without a source, the one value that it takes; NULL where none.
    defaults: Vec<Option<ArrayRef>>,
}

impl Assigner {
    /// The batch's columns are the table's, in order.
    pub(crate) fn by_position(table: &Arc<TableSchema>, given: &SchemaRef) -> Result<Assigner> {
        Assigner::new(table, (0..given.fields().len()).map(Some).collect())
    }

    /// The batch's columns are named as the table's; columns that are missing become NULL.
    pub(crate) fn by_name(table: &Arc<TableSchema>, given: &SchemaRef) -> Result<Assigner> {
        let mut sources = vec![None; table.columns.len()];
        for (index, field) in given.fields().iter().enumerate() {
            let column = table
                .index_of(field.name())
                .or_else(|| table.columns.iter().position(|column| column.name.eq_ignore_ascii_case(field.name())));
            match column {
                Some(column) => sources[column] = Some(index),
                None => return Err(Error::Sql(format!("the table has no column '{}'", field.name()))),
            }
        }
        Assigner::new(table, sources)
    }

    /// `sources` says for each column of the table where it comes from.
    pub(crate) fn new(table: &Arc<TableSchema>, sources: Vec<Option<usize>>) -> Result<Assigner> {
        if sources.len() != table.columns.len() {
            return Err(Error::Sql(format!(
                "{} values were given for a table of {} columns",
                sources.len(),
                table.columns.len()
            )));
        }
        let defaults = vec![None; sources.len()];
        Ok(Assigner { table: Arc::clone(table), sources, defaults })
    }

    /// The same, where columns without a source take their defaults, evaluated once and now.
    pub(crate) fn with_defaults(mut self, session: &Session) -> Result<Assigner> {
        for (index, column) in self.table.columns.iter().enumerate() {
            let (None, Some(default)) = (self.sources[index], &column.default) else { continue };
            let state = session.statement_state(session.database.catalog(), Notes::default());
            let batches = session.plan_query(&state, parse_one(&format!("SELECT {default}"))?)?.collect()?;
            let value = batches
                .iter()
                .find(|batch| batch.num_rows() == 1)
                .map(|batch| batch.column(0))
                .ok_or_else(|| Error::Internal(format!("the default of column '{}' has no value", column.name)))?;
            let value = assign_column(value, &column.ty, &storage_type(&column.ty)).map_err(|error| {
                Error::Data(format!("default of column '{}' ({}): {error}", column.name, column.ty))
            })?;
            self.defaults[index] = Some(value);
        }
        Ok(self)
    }

    /// The batch in the table's shape.
    ///
    /// # Errors
    /// [`Error::Data`] naming the column and the value that does not fit.
    pub(crate) fn assign(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let mut columns = Vec::with_capacity(self.sources.len());
        for ((source, default), column) in self.sources.iter().zip(&self.defaults).zip(&self.table.columns) {
            let wanted = storage_type(&column.ty);
            columns.push(match source {
                None => match default {
                    Some(value) => take(value, &UInt32Array::from(vec![0; rows]), None)?,
                    None => new_null_array(&wanted, rows),
                },
                Some(index) => {
                    let given = batch.columns().get(*index).ok_or_else(|| {
                        Error::Internal(format!("column {index} of a batch of {}", batch.num_columns()))
                    })?;
                    assign_column(given, &column.ty, &wanted)
                        .map_err(|error| Error::Data(format!("column '{}' ({}): {error}", column.name, column.ty)))?
                }
            });
        }
        let fields = self.table.columns.iter().zip(&columns);
        let fields = fields.map(|(column, array)| Field::new(&column.name, array.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }
}

/// The Arrow type that values of `ty` are cast to before they are encoded; text without views.
pub(super) fn storage_type(ty: &LogicalType) -> DataType {
    outer_type(&edge::arrow_type(ty))
}

fn assign_column(given: &ArrayRef, ty: &LogicalType, wanted: &DataType) -> std::result::Result<ArrayRef, String> {
    if edge::logical_type(given.data_type()).as_ref() == Some(ty) {
        return Ok(Arc::clone(given));
    }
    if *ty == LogicalType::Uuid && is_text(given.data_type()) {
        return parse_uuids(given);
    }
    let strict = CastOptions { safe: false, format_options: FormatOptions::default() };
    cast_with_options(given, wanted, &strict).map_err(|error| {
        error.to_string().trim_start_matches("Cast error: ").trim_start_matches("Invalid argument error: ").to_owned()
    })
}
