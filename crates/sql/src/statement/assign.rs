//! Rows of a query in the shape of a table: columns in table order, cast to the table's types, defaults filled in.

use super::row_expr::RowExpr;
use crate::batches::outer_type;
use crate::coercion::is_text;
use crate::parse::{parse_expr, parse_one};
use crate::progress::Notes;
use crate::times_of_text::{parse_intervals, parse_times};
use crate::uuid::parse_uuids;
use crate::{Error, Result, Session};
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array,
};
use arrow::compute::{max, min, take};
use arrow::datatypes::{
    DataType, Field, Schema, SchemaRef, Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType,
};
use arrow::temporal_conversions::timestamp_us_to_datetime;
use arrow::util::display::array_value_to_string;
use datafusion::common::DFSchema;
use datafusion::execution::SessionState;
use sinter_column::{Check, ColumnSchema, TableSchema};
use sinter_exec::{LogicalType, edge};
use std::sync::Arc;

/// Casts batches of one schema to a table's, and holds them against its rules.
pub(crate) struct Assigner {
    /// Of the table.
    name: String,
    schema: Arc<TableSchema>,
    /// For each column of the table, which column of the batch it comes from; NULL where none.
    sources: Vec<Option<usize>>,
    /// For each column without a source, the one value that it takes; NULL where none.
    defaults: Vec<Option<ArrayRef>>,
    checks: Vec<CompiledCheck>,
}

/// A CHECK, ready to be evaluated over the table's columns.
struct CompiledCheck {
    text: String,
    expr: RowExpr,
}

/// Where the columns of a table come from, if `given` has them by name; columns that are missing become NULL.
pub(crate) fn sources_by_name(table: &TableSchema, given: &SchemaRef) -> Result<Vec<Option<usize>>> {
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
    Ok(sources)
}

impl Assigner {
    /// For the table of that name. `sources` says for each of its columns where it comes from; `state` is to compile CHECKs.
    pub(crate) fn new(
        name: &str,
        schema: &Arc<TableSchema>,
        sources: Vec<Option<usize>>,
        state: &SessionState,
    ) -> Result<Assigner> {
        let checks = schema.checks.iter().map(|check| compile(check, schema, state)).collect::<Result<_>>()?;
        Ok(Assigner { checks, ..Assigner::unchecked(name, schema, sources)? })
    }

    /// For rows that have the table's columns in its order.
    pub(crate) fn in_order(name: &str, schema: &Arc<TableSchema>, state: &SessionState) -> Result<Assigner> {
        Assigner::new(name, schema, (0..schema.columns.len()).map(Some).collect(), state)
    }

    /// For a table that has no CHECKs.
    pub(crate) fn unchecked(name: &str, schema: &Arc<TableSchema>, sources: Vec<Option<usize>>) -> Result<Assigner> {
        if sources.len() != schema.columns.len() {
            return Err(Error::Sql(format!(
                "{} values were given for a table of {} columns",
                sources.len(),
                schema.columns.len()
            )));
        }
        let defaults = vec![None; sources.len()];
        Ok(Assigner { name: name.to_owned(), schema: Arc::clone(schema), sources, defaults, checks: Vec::new() })
    }

    /// Where the table's columns come from.
    pub(crate) fn sources(&self) -> &[Option<usize>] {
        &self.sources
    }

    /// The same, where columns without a source take their defaults, evaluated once and now.
    pub(crate) fn with_defaults(mut self, session: &Session) -> Result<Assigner> {
        for (index, column) in self.schema.columns.iter().enumerate() {
            if self.sources[index].is_none() {
                self.defaults[index] = default_value(session, column)?;
            }
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
        for ((source, default), column) in self.sources.iter().zip(&self.defaults).zip(&self.schema.columns) {
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
        let fields = self.schema.columns.iter().zip(&columns);
        let fields = fields.map(|(column, array)| Field::new(&column.name, array.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let assigned = RecordBatch::try_new_with_options(schema, columns, &options)?;
        self.checks.iter().try_for_each(|check| check.hold(&assigned, &self.name, &self.schema))?;
        Ok(assigned)
    }
}

impl CompiledCheck {
    /// A row keeps the rule unless it is plainly false: unknown is no breach.
    fn hold(&self, batch: &RecordBatch, table: &str, schema: &TableSchema) -> Result<()> {
        let values = self.expr.evaluate(batch.columns(), batch.num_rows())?;
        let Some(values) = values.as_boolean_opt() else {
            return Err(Error::Sql(format!("CHECK ({}) is no condition: it is {}", self.text, values.data_type())));
        };
        match (0..values.len()).find(|&row| values.is_valid(row) && !values.value(row)) {
            None => Ok(()),
            Some(row) => {
                let text = |column: &ArrayRef| array_value_to_string(column, row).unwrap_or_default();
                let values: Vec<String> = schema
                    .columns
                    .iter()
                    .zip(batch.columns())
                    .take(8)
                    .map(|(column, values)| {
                        format!(
                            "{} = {}",
                            column.name,
                            if values.is_null(row) { "NULL".to_owned() } else { text(values) }
                        )
                    })
                    .collect();
                Err(Error::Data(format!(
                    "a row breaks CHECK ({}) of table '{}': {}",
                    self.text,
                    table,
                    values.join(", ")
                )))
            }
        }
    }
}

fn compile(check: &Check, schema: &TableSchema, state: &SessionState) -> Result<CompiledCheck> {
    let fields = schema.columns.iter().map(|column| Field::new(&column.name, storage_type(&column.ty), true));
    let df_schema = Arc::new(DFSchema::try_from(Schema::new(fields.collect::<Vec<_>>()))?);
    Ok(CompiledCheck { text: check.sql.clone(), expr: RowExpr::new(parse_expr(&check.sql)?, &df_schema, state)? })
}

/// The default of a column, evaluated now, as one value; `None` where it has none.
pub(super) fn default_value(session: &Session, column: &ColumnSchema) -> Result<Option<ArrayRef>> {
    let Some(default) = &column.default else { return Ok(None) };
    // Defaults name no tables.
    let state = session.statement_state(session.nothing_seen(), Notes::default());
    let batches = session.plan_query(&state, parse_one(&format!("SELECT {default}"))?)?.collect()?;
    let value = batches
        .iter()
        .find(|batch| batch.num_rows() == 1)
        .map(|batch| batch.column(0))
        .ok_or_else(|| Error::Internal(format!("the default of column '{}' has no value", column.name)))?;
    let value = assign_column(value, &column.ty, &storage_type(&column.ty))
        .map_err(|error| Error::Data(format!("default of column '{}' ({}): {error}", column.name, column.ty)))?;
    Ok(Some(value))
}

/// The Arrow type that values of `ty` are cast to before they are encoded; text without views.
pub(crate) fn storage_type(ty: &LogicalType) -> DataType {
    outer_type(&edge::arrow_type(ty))
}

fn assign_column(given: &ArrayRef, ty: &LogicalType, wanted: &DataType) -> std::result::Result<ArrayRef, String> {
    let is_of_type = edge::logical_type(given.data_type()).as_ref() == Some(ty);
    let assigned = match ty {
        _ if is_of_type => Arc::clone(given),
        LogicalType::Uuid if is_text(given.data_type()) => parse_uuids(given)?,
        LogicalType::Time(_) if is_text(given.data_type()) => cast_column(&parse_times(given)?, wanted)?,
        LogicalType::Interval if is_text(given.data_type()) => parse_intervals(given)?,
        _ => cast_column(given, wanted)?,
    };
    are_times(&assigned)?;
    Ok(assigned)
}

fn cast_column(given: &ArrayRef, wanted: &DataType) -> std::result::Result<ArrayRef, String> {
    edge::strict_cast(given, wanted).map_err(|error| {
        error.to_string().trim_start_matches("Cast error: ").trim_start_matches("Invalid argument error: ").to_owned()
    })
}

/// Whether numbers that became times can be shown as such.
fn are_times(values: &ArrayRef) -> std::result::Result<(), String> {
    const MICROS_PER_DAY: i64 = 86_400_000_000;
    let bounds = match values.data_type() {
        DataType::Time64(TimeUnit::Nanosecond) => bounds::<Time64NanosecondType>(values),
        DataType::Time64(_) => bounds::<Time64MicrosecondType>(values),
        DataType::Timestamp(TimeUnit::Microsecond, _) => bounds::<TimestampMicrosecondType>(values),
        _ => return Ok(()),
    };
    let is_one = |value: i64| match values.data_type() {
        DataType::Time64(TimeUnit::Nanosecond) => (0..MICROS_PER_DAY * 1000).contains(&value),
        DataType::Time64(_) => (0..MICROS_PER_DAY).contains(&value),
        _ => timestamp_us_to_datetime(value).is_some(),
    };
    match bounds.into_iter().flatten().find(|value| !is_one(*value)) {
        Some(value) => Err(format!("{value} is no such time, counted in its unit")),
        None => Ok(()),
    }
}

/// The least and the greatest.
fn bounds<T: ArrowPrimitiveType<Native = i64>>(values: &ArrayRef) -> [Option<i64>; 2] {
    let values = values.as_primitive::<T>();
    [min(values), max(values)]
}
