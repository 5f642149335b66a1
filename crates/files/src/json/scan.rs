//! Reading the values of a JSON file as record batches.

use super::build::{Misfit, Object};
use super::cursor::{Cursor, check};
use super::records::{Framing, Record, Records};
use super::sniff::JsonFile;
use crate::error::excerpt;
use crate::reader::{BATCH_ROWS, Scan};
use crate::sniff::Wanted;
use crate::value::column::Patterns;
use crate::{FileError, OnError, Result, RowError, Skipped};
use arrow::array::{ArrayRef, BooleanArray};
use arrow::compute::filter;
use arrow::datatypes::{Fields, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use std::io::Read;
use std::sync::Arc;

/// One JSON file being read.
pub(super) struct JsonScan {
    file: Arc<JsonFile>,
    records: Records<Box<dyn Read + Send>>,
    columns: Object,
    /// For each column of the batches, its place in `columns`.
    outputs: Vec<usize>,
    schema: Arc<Schema>,
}

impl JsonScan {
    pub(super) fn new(file: Arc<JsonFile>, wanted: &[Wanted], projection: &[usize]) -> Result<Self> {
        let records = Records::new(file.input.reader()?, file.framing);
        let patterns =
            Patterns { date: file.options.date_format.clone(), timestamp: file.options.timestamp_format.clone() };
        // Malformed rows are skipped by the same rule whatever the query asks for.
        let is_read = |index: &usize| projection.contains(index) || file.options.on_error == OnError::Skip;
        let read: Vec<usize> = (0..wanted.len()).filter(is_read).collect();
        let fields: Fields = read.iter().map(|&index| Arc::clone(&wanted[index].field)).collect();
        let columns = Object::new(&fields, &patterns, file.options.ignore_unknown_keys);
        let mut columns = columns.ok_or_else(|| {
            FileError::schema(file.input.path(), format!("JSON cannot fill one of the types of {fields:?}"))
        })?;
        // Keys by the names in the file, which may differ in case, and those that are known but not read.
        for (index, column) in wanted.iter().enumerate() {
            if let Some(source) = column.source {
                columns.know(file.schema.field(source).name(), read.iter().position(|&place| place == index));
            }
        }
        if !file.options.ignore_unknown_keys {
            for (source, field) in file.schema.fields().iter().enumerate() {
                if !wanted.iter().any(|column| column.source == Some(source)) {
                    columns.know(field.name(), None);
                }
            }
        }
        let place = |index: &usize| read.iter().position(|place| place == index).expect("read above");
        let outputs = projection.iter().map(place).collect();
        let projected: Vec<_> = projection.iter().map(|&index| Arc::clone(&wanted[index].field)).collect();
        Ok(Self { file, records, columns, outputs, schema: Arc::new(Schema::new(projected)) })
    }
}

impl Scan for JsonScan {
    fn next_batch(&mut self, skipped: &mut Skipped) -> Result<Option<RecordBatch>> {
        let file = &self.file;
        let failed = FileError::io(file.input.path());
        let Some(batch) = self.records.next_batch(BATCH_ROWS).map_err(failed)? else { return Ok(None) };
        let mut stays = Vec::with_capacity(batch.records().len());
        let mut misfits = Vec::new();
        for (record, text) in batch.records() {
            let error = match append(&mut self.columns, text, &mut misfits) {
                Err((at, problem)) => Some(broken(file, record, &text[at.min(text.len())..], problem)),
                Ok(()) => misfits.first().map(|misfit| wrong_value(file, record, misfit)),
            };
            misfits.clear();
            stays.push(error.is_none());
            match error {
                Some(error) if file.options.on_error == OnError::Fail => return Err(error.into()),
                Some(error) => skipped.add(error),
                None => {}
            }
        }
        if let Some(end) = batch.broken {
            // What follows cannot be told apart, so there is nothing to skip to.
            let remedy = (file.framing != Framing::Lines)
                .then(|| "mend the file; only with one object per line can broken ones be skipped".to_string());
            let path = file.input.path().to_path_buf();
            let (problem, value) = (end.problem.to_string(), Some(end.value.clone()));
            return Err(RowError { path, line: end.line, column: None, value, problem, remedy }.into());
        }
        let (mut arrays, _) = self.columns.finish();
        let row_count = stays.iter().filter(|stays| **stays).count();
        if row_count < stays.len() {
            let stays = BooleanArray::from(stays);
            for array in &mut arrays {
                *array = filter(array, &stays).map_err(|error| FileError::Option(error.to_string()))?;
            }
        }
        let columns: Vec<ArrayRef> = self.outputs.iter().map(|&place| Arc::clone(&arrays[place])).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(row_count));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
        batch.map(Some).map_err(|error| FileError::schema(file.input.path(), error.to_string()))
    }
}

/// Adds one record, in any case one row. An error names the place in `text` where it is no JSON object.
fn append(columns: &mut Object, text: &[u8], misfits: &mut Vec<Misfit>) -> Result<(), (usize, &'static str)> {
    let checked = check(text).map_err(|syntax| (syntax.at, syntax.problem));
    let start = text.len() - text.trim_ascii_start().len();
    let checked = checked.and_then(|()| match text[start] {
        b'{' => Ok(()),
        _ => Err((start, "an object is expected")),
    });
    if checked.is_err() {
        columns.append_null();
        return checked;
    }
    columns.append(&mut Cursor::new(text), "", misfits).map_err(|syntax| (syntax.at, syntax.problem))
}

fn broken(file: &JsonFile, record: &Record, rest: &[u8], problem: &str) -> RowError {
    RowError {
        path: file.input.path().to_path_buf(),
        line: record.line,
        column: None,
        value: Some(excerpt(rest)),
        problem: problem.to_string(),
        remedy: Some("(on_error 'skip') leaves such rows out and counts them".to_string()),
    }
}

fn wrong_value(file: &JsonFile, record: &Record, misfit: &Misfit) -> RowError {
    let name = misfit.key.split('.').next().unwrap_or_default();
    let remedy = match (file.is_whole, misfit.problem.as_str()) {
        (_, "no column has this key") => {
            "(unknown_keys 'ignore') passes over such keys, (sample 'all') looks for keys in all rows first".to_string()
        }
        (false, _) => format!(
            "(types '{name} VARCHAR') sets another type, (sample 'all') looks at all rows first, (on_error 'skip') \
             leaves such rows out"
        ),
        (true, _) => "(on_error 'skip') leaves such rows out and counts them".to_string(),
    };
    RowError {
        path: file.input.path().to_path_buf(),
        line: record.line,
        column: Some(misfit.key.clone()),
        value: Some(misfit.value.clone()),
        problem: misfit.problem.clone(),
        remedy: Some(remedy),
    }
}
