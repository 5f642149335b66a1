//! Reading the rows of a CSV file as record batches.
//!
//! A batch of fields is turned into Arrow column by column. Columns that are not asked for are not looked at, unless
//! malformed rows are skipped: then every column decides which rows stay, so that the rows do not depend on the query.

use super::rows::{Malformed, RowReader, Rows};
use super::sniff::CsvFile;
use crate::error::excerpt;
use crate::reader::{BATCH_ROWS, Scan};
use crate::sniff::Wanted;
use crate::value::column::{Patterns, TextColumn, column, misfit};
use crate::{FileError, OnError, Result, RowError, Skipped, json};
use arrow::array::{ArrayRef, BooleanArray, new_null_array};
use arrow::compute::filter;
use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use std::io::Read;
use std::sync::Arc;

/// One CSV file being read.
pub(super) struct CsvScan {
    file: Arc<CsvFile>,
    reader: RowReader<Box<dyn Read + Send>>,
    columns: Vec<Column>,
    /// For each column of the batches, its place in `columns`, or none where the file lacks it.
    outputs: Vec<(FieldRef, Option<usize>)>,
}

/// A column of the file that is read.
struct Column {
    /// Its place in the rows.
    position: usize,
    field: FieldRef,
    builder: Box<dyn TextColumn>,
    null: NullTexts,
}

/// The texts that mean NULL in one column.
struct NullTexts {
    texts: Vec<Vec<u8>>,
    /// Whether they do so in quotes too.
    even_quoted: bool,
}

/// A value that does not fit its column.
struct Misfit {
    row: usize,
    column: usize,
}

impl CsvScan {
    pub(super) fn new(file: Arc<CsvFile>, wanted: &[Wanted], projection: &[usize]) -> Result<Self> {
        let mut reader = RowReader::new(file.input.reader()?, file.dialect, file.width, 1);
        let start = reader.skip_lines(file.options.skip_lines).and_then(|()| match file.has_header {
            true => reader.first_row().map(drop),
            false => Ok(()),
        });
        start.map_err(FileError::io(file.input.path()))?;
        let patterns =
            Patterns { date: file.options.date_format.clone(), timestamp: file.options.timestamp_format.clone() };
        let mut columns = Vec::new();
        let mut places = vec![None; wanted.len()];
        for (index, column) in wanted.iter().enumerate() {
            let Some(position) = column.source else { continue };
            if projection.contains(&index) || file.options.on_error == OnError::Skip {
                places[index] = Some(columns.len());
                columns.push(Column::new(&file, position, &column.field, &patterns)?);
            }
        }
        let outputs = projection.iter().map(|&index| (Arc::clone(&wanted[index].field), places[index])).collect();
        Ok(Self { file, reader, columns, outputs })
    }
}

impl Column {
    fn new(file: &CsvFile, position: usize, field: &FieldRef, patterns: &Patterns) -> Result<Self> {
        let data_type = field.data_type();
        let builder = column(data_type, patterns).or_else(|| json::text_column(data_type, patterns));
        let builder = builder.ok_or_else(|| FileError::Unsupported {
            path: file.input.path().to_path_buf(),
            column: field.name().clone(),
            data_type: data_type.to_string(),
        })?;
        let mut texts: Vec<Vec<u8>> = file.options.null.iter().map(|text| text.as_bytes().to_vec()).collect();
        if texts.is_empty() {
            texts.push(Vec::new());
            let is_text = matches!(data_type, DataType::Utf8 | DataType::Binary);
            let markers = file.null_markers.get(position).filter(|_| !is_text);
            texts.extend(markers.into_iter().flatten().map(|marker| marker.as_bytes().to_vec()));
        }
        let even_quoted = !matches!(data_type, DataType::Utf8 | DataType::Binary);
        Ok(Self { position, field: Arc::clone(field), builder, null: NullTexts { texts, even_quoted } })
    }
}

impl NullTexts {
    #[inline]
    fn holds(&self, text: &[u8], is_quoted: bool) -> bool {
        (!is_quoted || self.even_quoted) && self.texts.iter().any(|null| null == text)
    }
}

impl Scan for CsvScan {
    fn next_batch(&mut self, skipped: &mut Skipped) -> Result<Option<RecordBatch>> {
        let failed = FileError::io(self.file.input.path());
        let Some(rows) = self.reader.next_rows(BATCH_ROWS).map_err(failed)? else { return Ok(None) };
        let mut misfits = Vec::new();
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (index, column) in self.columns.iter_mut().enumerate() {
            arrays.push(convert(&rows, column, index, &mut misfits));
        }
        check_last_delimiter(&self.file, &rows, &mut misfits);
        misfits.sort_by_key(|misfit| misfit.row);
        misfits.dedup_by_key(|misfit| misfit.row);
        let errors = in_order(&self.file, &self.columns, &rows, &misfits);
        let mut row_count = rows.len();
        if !errors.is_empty() && self.file.options.on_error == OnError::Fail {
            return Err(errors.into_iter().next().expect("not empty").into());
        }
        errors.into_iter().for_each(|error| skipped.add(error));
        if !misfits.is_empty() {
            let mut stays = vec![true; row_count];
            misfits.iter().for_each(|misfit| stays[misfit.row] = false);
            row_count -= misfits.len();
            let stays = BooleanArray::from(stays);
            for array in &mut arrays {
                *array = filter(array, &stays).map_err(|error| FileError::Option(error.to_string()))?;
            }
        }
        let array_of = |(field, place): &(FieldRef, Option<usize>)| match place {
            Some(place) => Arc::clone(&arrays[*place]),
            None => new_null_array(field.data_type(), row_count),
        };
        let schema = Schema::new(self.outputs.iter().map(|(field, _)| Arc::clone(field)).collect::<Vec<_>>());
        let batch = RecordBatch::try_new_with_options(
            Arc::new(schema),
            self.outputs.iter().map(array_of).collect(),
            &RecordBatchOptions::new().with_row_count(Some(row_count)),
        );
        batch.map(Some).map_err(|error| FileError::schema(self.file.input.path(), error.to_string()))
    }
}

/// One column of `rows` as an array.
fn convert(rows: &Rows<'_>, column: &mut Column, index: usize, misfits: &mut Vec<Misfit>) -> ArrayRef {
    let null = &column.null;
    let texts: Vec<Option<&[u8]>> = match null.texts.as_slice() {
        // By far the commonest: the empty field and nothing else.
        [text] if text.is_empty() => rows
            .column(column.position)
            .map(|(text, field)| Some(text).filter(|text| !text.is_empty() || (field.is_quoted && !null.even_quoted)))
            .collect(),
        _ => rows
            .column(column.position)
            .map(|(text, field)| Some(text).filter(|text| !null.holds(text, field.is_quoted)))
            .collect(),
    };
    let mut rows_at_fault = Vec::new();
    column.builder.push_all(&texts, &mut rows_at_fault);
    misfits.extend(rows_at_fault.into_iter().map(|row| Misfit { row, column: index }));
    column.builder.finish()
}

/// Where every row of the sample ended with a delimiter, every other row has to.
fn check_last_delimiter(file: &CsvFile, rows: &Rows<'_>, misfits: &mut Vec<Misfit>) {
    if file.width > file.schema.fields().len() && file.width > 1 {
        for (row, (text, _)) in rows.column(file.width - 1).enumerate() {
            if !text.is_empty() {
                misfits.push(Misfit { row, column: usize::MAX });
            }
        }
    }
}

/// All that is wrong with a batch, in the order of the file.
fn in_order(file: &CsvFile, columns: &[Column], rows: &Rows<'_>, misfits: &[Misfit]) -> Vec<RowError> {
    let mut errors: Vec<RowError> = rows.malformed.iter().map(|malformed| broken_row(file, malformed)).collect();
    errors.extend(misfits.iter().map(|misfit| wrong_value(file, columns.get(misfit.column), rows, misfit.row)));
    errors.sort_by_key(|error| error.line);
    errors
}

fn broken_row(file: &CsvFile, malformed: &Malformed) -> RowError {
    RowError {
        path: file.input.path().to_path_buf(),
        line: malformed.line,
        column: None,
        value: Some(malformed.value.clone()),
        problem: malformed.problem.clone(),
        remedy: Some("(on_error 'skip') leaves such rows out and counts them".to_string()),
    }
}

fn wrong_value(file: &CsvFile, column: Option<&Column>, rows: &Rows<'_>, row: usize) -> RowError {
    let row = rows.row(row);
    let fields = rows.fields(row);
    let path = file.input.path().to_path_buf();
    let Some(column) = column else {
        let malformed = Malformed {
            line: row.line,
            problem: format!("{} fields where {} are expected", file.width, file.width - 1),
            value: excerpt(rows.text(fields[file.width - 1])),
        };
        return broken_row(file, &malformed);
    };
    let text = rows.text(fields[column.position]);
    let data_type = column.field.data_type();
    let name = column.field.name();
    let sniffed = file.schema.field(column.position).data_type();
    let is_sniffed = sniffed == data_type && !file.options.types.iter().any(|(known, _)| known == name);
    let mut problem = misfit(text, data_type);
    let remedy = if std::str::from_utf8(text).is_err() {
        "(encoding 'latin-1') reads it if that is what it is, (on_error 'skip') leaves such rows out".to_string()
    } else if is_sniffed && !file.is_whole {
        problem.push_str(", the type of this column in the sample");
        format!(
            "(types '{name} VARCHAR') sets another type, (sample 'all') looks at all rows first, (on_error 'skip') leaves such rows out"
        )
    } else {
        "(on_error 'skip') leaves such rows out and counts them".to_string()
    };
    let value = Some(excerpt(text));
    RowError { path, line: row.line, column: Some(name.clone()), value, problem, remedy: Some(remedy) }
}
