//! Looking at a CSV file: its dialect, its names, its types.

use super::dialect::{self, Found};
use super::header::{self, Evidence};
use super::rows::RowReader;
use super::scan::CsvScan;
use super::split::Dialect;
use crate::format::inner_extension;
use crate::input::{Input, Sample};
use crate::reader::{BATCH_ROWS, Scan};
use crate::sniff::{Naming, Sniffed, Wanted};
use crate::value::guess::Guess;
use crate::{FileError, ReadOptions, Result};
use arrow::datatypes::{DataType, Field, Schema};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The bytes that the dialect is told from.
const HEAD_BYTES: u64 = 1 << 20;

/// The same where lines are so long that the usual head holds only a few.
const LONG_HEAD_BYTES: u64 = 16 << 20;

/// As many lines as tell a table from ragged lists.
const HEAD_LINES: usize = 10;

/// A CSV file of which dialect, names and types are known.
#[derive(Debug)]
pub(super) struct CsvFile {
    pub(super) input: Input,
    pub(super) options: ReadOptions,
    pub(super) dialect: Dialect,
    /// The fields of a row. One more than the schema has where every row ends with a delimiter.
    pub(super) width: usize,
    pub(super) has_header: bool,
    pub(super) schema: Schema,
    /// Per column, the texts that mean NULL beside the empty field.
    pub(super) null_markers: Vec<Vec<&'static str>>,
    /// Whether the types come from every row of the file.
    pub(super) is_whole: bool,
    notes: Vec<String>,
}

/// What the rows of a sample showed.
struct Columns {
    guesses: Vec<Guess>,
    /// The first row's texts, and per column whether its text came again.
    first: Vec<Vec<u8>>,
    recurs: Vec<bool>,
    row_count: u64,
    /// Whether the last field was empty in every row.
    ends_empty: bool,
    /// Whether there were rows of another width, or with quotes out of place.
    has_malformed: bool,
    /// The texts that mean NULL by the statement.
    null: Vec<Vec<u8>>,
}

/// Looks at the CSV file `path`.
pub(crate) fn sniff(path: &Path, options: &ReadOptions, expected: Option<&Schema>) -> Result<Box<dyn Sniffed>> {
    let input = Input::open(path, options)?;
    let extension = inner_extension(path);
    let (mut head, mut is_all) = input.head(HEAD_BYTES)?;
    if !is_all && memchr::memchr_iter(b'\n', &head).take(HEAD_LINES).count() < HEAD_LINES {
        (head, is_all) = input.head(LONG_HEAD_BYTES)?;
    }
    let expected_width = expected.map(|schema| schema.fields().len());
    let Found { mut dialect, width, mut notes } =
        dialect::find(path, &extension, &head, is_all, options, expected_width)?;
    // In a file of one column a blank line is a row.
    let mut width = if width == 0 { expected_width.unwrap_or(0) } else { width };
    if width == 0 {
        return Err(FileError::schema(path, "empty: there is no row to tell columns from"));
    }
    let mut columns = Columns::new(width, options);
    let sample = input.sample(options.sample)?;
    let is_whole = matches!(sample, Sample::Whole);
    columns.read_sample(&input, &sample, dialect, options)?;
    if columns.has_malformed && extension == "txt" && options.delimiter.is_none() && dialect.delimiter.is_some() {
        // The head looked like a table, the whole does not: it is text, line by line.
        dialect = dialect::line_dialect(options, dialect.line_end);
        (width, notes) = (1, Vec::new());
        columns = Columns::new(width, options);
        columns.read_sample(&input, &sample, dialect, options)?;
    }
    let has_rest = columns.row_count > 1;
    let evidence = Evidence {
        first: &columns.first,
        rest: &columns.guesses,
        recurs: &columns.recurs,
        has_rest,
        extension: &extension,
        null: &columns.null,
        expected,
    };
    // Lines that are one value each have no name above them, unless it is the expected one.
    let may_have_header = dialect.delimiter.is_some() || expected.is_some();
    let has_header = options.header.unwrap_or_else(|| may_have_header && header::is_header(&evidence));
    if has_header && columns.first.len() > width {
        let problem = format!("{} names in the header, but {width} fields in most rows", columns.first.len());
        return Err(FileError::schema(path, problem));
    }
    if !has_header {
        columns.add_first_row();
    }
    let has_last_delimiter =
        columns.ends_empty && (expected_width == Some(width.wrapping_sub(1)) || extension == "tbl");
    let column_count = if has_last_delimiter { width - 1 } else { width };
    let names = if has_header { header::names(&columns.first, column_count) } else { header::names(&[], column_count) };
    let names = with_given_names(path, names, &options.names)?;
    let null_markers = columns.null_markers(column_count, options);
    note_markers(path, &names, &columns.guesses, &null_markers, options, &mut notes);
    let field = |(name, guess): (String, &Guess)| Field::new(name, guess.data_type(), true);
    let schema = Schema::new(names.into_iter().zip(&columns.guesses).map(field).collect::<Vec<_>>());
    let options = options.clone();
    let file = CsvFile { input, options, dialect, width, has_header, schema, null_markers, is_whole, notes };
    Ok(Box::new(Arc::new(file)))
}

impl Sniffed for Arc<CsvFile> {
    fn path(&self) -> &Path {
        self.input.path()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn naming(&self) -> Naming {
        if self.has_header || !self.options.names.is_empty() { Naming::Name } else { Naming::Position }
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn scan(&self, columns: &[Wanted], projection: &[usize]) -> Result<Box<dyn Scan>> {
        Ok(Box::new(CsvScan::new(Arc::clone(self), columns, projection)?))
    }
}

impl Columns {
    fn new(width: usize, options: &ReadOptions) -> Self {
        Self {
            guesses: vec![Guess::default(); width],
            first: Vec::new(),
            recurs: vec![false; width],
            row_count: 0,
            ends_empty: true,
            has_malformed: false,
            null: options.null.iter().map(|text| text.as_bytes().to_vec()).collect(),
        }
    }

    fn read_sample(&mut self, input: &Input, sample: &Sample, dialect: Dialect, options: &ReadOptions) -> Result<()> {
        let width = self.guesses.len();
        let failed = FileError::io(input.path());
        match sample {
            Sample::Whole => {
                let mut reader = RowReader::new(input.reader()?, dialect, width, 1);
                reader.skip_lines(options.skip_lines).and_then(|()| self.read(reader, true))
            }
            Sample::Stretches(stretches) => {
                let last = stretches.len() - 1;
                let mut stretches = stretches.iter().enumerate();
                stretches.try_for_each(|(index, stretch)| {
                    let end = memchr::memrchr(dialect.line_end, stretch).filter(|_| index < last);
                    let stretch = &stretch[..end.map_or(stretch.len(), |at| at + 1)];
                    let start = if index == 0 { Some(0) } else { first_row_in(stretch, dialect, width) };
                    let Some(start) = start else { return Ok(()) };
                    let mut reader = RowReader::new(&stretch[start..], dialect, width, 1 + index as u64);
                    if index == 0 {
                        reader.skip_lines(options.skip_lines)?;
                    }
                    self.read(reader, index == 0)
                })
            }
        }
        .map_err(failed)
    }

    /// Takes all rows of `reader` into account; with `has_first` its first row is kept apart.
    fn read<R: Read>(&mut self, mut reader: RowReader<R>, has_first: bool) -> std::io::Result<()> {
        if has_first {
            self.first = reader.first_row()?.unwrap_or_default();
            self.row_count += 1;
        }
        while let Some(rows) = reader.next_rows(BATCH_ROWS)? {
            self.row_count += rows.len() as u64;
            self.has_malformed |= !rows.malformed.is_empty();
            for column in 0..self.guesses.len() {
                let is_last = column + 1 == self.guesses.len();
                let first = self.first.get(column);
                for (text, field) in rows.column(column) {
                    self.recurs[column] |= first.is_some_and(|first| first == text);
                    self.ends_empty &= !is_last || (text.is_empty() && !field.is_quoted);
                    Self::add(&mut self.guesses[column], &self.null, text);
                }
            }
        }
        Ok(())
    }

    fn add(guess: &mut Guess, null: &[Vec<u8>], text: &[u8]) {
        if null.is_empty() {
            if !text.is_empty() {
                guess.add(text);
            }
        } else if !null.iter().any(|null| null == text) {
            guess.add_value(text);
        }
    }

    /// The first row holds values, not names.
    fn add_first_row(&mut self) {
        if self.first.len() != self.guesses.len() {
            return;
        }
        for (guess, text) in self.guesses.iter_mut().zip(&self.first) {
            Self::add(guess, &self.null, text);
        }
        self.ends_empty &= self.first.last().is_some_and(Vec::is_empty);
    }

    /// Per column the markers that were seen, where they can be nothing but NULL.
    fn null_markers(&self, column_count: usize, options: &ReadOptions) -> Vec<Vec<&'static str>> {
        let markers = |guess: &Guess| match guess.data_type() {
            _ if !options.null.is_empty() => Vec::new(),
            DataType::Utf8 | DataType::Null => Vec::new(),
            _ => guess.markers().collect(),
        };
        let mut markers: Vec<_> = self.guesses.iter().take(column_count).map(markers).collect();
        markers.resize(column_count, Vec::new());
        markers
    }
}

/// Where in a piece of a file rows start: the first line after which a number of rows are in order. `None` where there
/// is no such place, as inside a long quoted text.
fn first_row_in(stretch: &[u8], dialect: Dialect, width: usize) -> Option<usize> {
    const STARTS_TRIED: usize = 32;
    const ROWS_TRIED: usize = 50;
    memchr::memchr_iter(dialect.line_end, stretch).take(STARTS_TRIED).map(|at| at + 1).find(|&start| {
        let end = stretch.len().min(start + (256 << 10));
        let mut reader = RowReader::new(&stretch[start..end], dialect, width, 2);
        match reader.next_rows(ROWS_TRIED) {
            // The last row may be cut.
            Ok(Some(rows)) => rows.malformed.len() <= usize::from(end == stretch.len()) && rows.len() > 0,
            _ => false,
        }
    })
}

fn with_given_names(path: &Path, mut names: Vec<String>, given: &[String]) -> Result<Vec<String>> {
    if given.len() > names.len() {
        let problem = format!("option 'names' gives {} names, but there are {} columns", given.len(), names.len());
        return Err(FileError::schema(path, problem));
    }
    names[..given.len()].clone_from_slice(given);
    Ok(names)
}

/// Says which markers are read as NULL, and which stand as text in other columns.
fn note_markers(
    path: &Path,
    names: &[String],
    guesses: &[Guess],
    null_markers: &[Vec<&'static str>],
    options: &ReadOptions,
    notes: &mut Vec<String>,
) {
    let mut markers: Vec<&str> = null_markers.iter().flatten().copied().collect();
    markers.sort_unstable();
    markers.dedup();
    let list = |columns: Vec<&str>| columns.join(", ");
    for marker in markers {
        let read = (0..names.len()).filter(|&column| null_markers[column].contains(&marker));
        notes.push(format!(
            "{}: '{marker}' is read as NULL in {}",
            path.display(),
            list(read.map(|column| names[column].as_str()).collect())
        ));
        let kept = (0..names.len()).filter(|&column| {
            !null_markers[column].contains(&marker) && guesses[column].markers().any(|seen| seen == marker)
        });
        let kept: Vec<&str> = kept.map(|column| names[column].as_str()).collect();
        if !kept.is_empty() && options.null.is_empty() {
            notes.push(format!(
                "{}: '{marker}' is kept as text in {}; (null '{marker}') reads it as NULL everywhere",
                path.display(),
                list(kept)
            ));
        }
    }
}
