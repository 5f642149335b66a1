//! Looking at files before reading them: one schema for all, without keeping a row.
//!
//! Each format looks at its own files ([`Sniffed`]); this file makes one schema of what they found. Types that differ
//! between files widen: BIGINT and DOUBLE to DOUBLE, DATE and TIMESTAMP to TIMESTAMP, in text files anything else to
//! VARCHAR. When the statement says what it expects (COPY into a table), that is the schema, and each file's columns
//! are matched to it: by name where the file has names and all of them fit, else by position.

use super::reader::Scan;
use super::{FileError, Format, ReadOptions, Reader, Result, csv, ipc, json, normalise, parquet, sql_type};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One file that has been looked at.
pub(crate) trait Sniffed: Send + Sync {
    /// The file.
    fn path(&self) -> &Path;
    /// The columns found. A column without any value has the type Null.
    fn schema(&self) -> &Schema;
    /// How columns are told apart.
    fn naming(&self) -> Naming;
    /// What the user should know about guesses that were made.
    fn notes(&self) -> &[String] {
        &[]
    }
    /// The number of rows, where the file says so.
    fn row_count(&self) -> Option<u64> {
        None
    }
    /// Reads those of `columns` that `projection` names, in its order, from the start.
    fn scan(&self, columns: &[Wanted], projection: &[usize]) -> Result<Box<dyn Scan>>;
}

/// How the columns of a file are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// By position alone: CSV without a header.
    Position,
    /// By name, and position where the names differ: CSV with a header, Parquet, Arrow.
    Name,
    /// By name, and a missing one is NULL: JSON.
    Key,
}

/// A column that the caller wants, and where this file has it.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// Its place in the file, or `None` where the file lacks it and it reads as NULL.
    pub(crate) source: Option<usize>,
    /// Its name and type in the batches.
    pub(crate) field: FieldRef,
}

/// Files that have been looked at and can be read, any number of times. Cheap to clone, `Send` and `Sync`.
#[derive(Clone)]
pub struct Files {
    inner: Arc<Inner>,
}

struct Inner {
    schema: SchemaRef,
    files: Vec<Box<dyn Sniffed>>,
    /// Of each file, where it has the columns of `schema`.
    sources: Vec<Vec<Option<usize>>>,
    notes: Vec<String>,
}

/// Looks at `paths` and settles the schema: `expected`, or else what the files hold.
///
/// # Errors
/// A file cannot be read, its format is unknown, it is damaged, or the files do not fit together or to `expected`.
pub fn sniff(paths: &[PathBuf], options: &ReadOptions, expected: Option<SchemaRef>) -> Result<Files> {
    let expected = expected.as_deref();
    let files = paths.iter().map(|path| sniff_one(path, options, expected)).collect::<Result<Vec<_>>>()?;
    let schema = match expected {
        Some(schema) => schema.clone(),
        None => common_schema(&files, options)?,
    };
    let sources = files.iter().map(|file| match_columns(file.as_ref(), &schema, expected.is_some(), options));
    let sources = sources.collect::<Result<Vec<_>>>()?;
    let notes = files.iter().flat_map(|file| file.notes().iter().cloned()).collect();
    Ok(Files { inner: Arc::new(Inner { schema: Arc::new(schema), files, sources, notes }) })
}

fn sniff_one(path: &Path, options: &ReadOptions, expected: Option<&Schema>) -> Result<Box<dyn Sniffed>> {
    Ok(match Format::choose(options.format, path)? {
        Format::Csv => csv::sniff(path, options, expected)?,
        Format::Json => json::sniff(path, options)?,
        Format::Parquet => parquet::sniff(path)?,
        Format::Arrow => ipc::sniff(path)?,
    })
}

impl Files {
    /// The schema of the batches that reading yields.
    pub fn schema(&self) -> &SchemaRef {
        &self.inner.schema
    }

    /// What was guessed and the user should know: null markers, trimmed spaces, text read line by line.
    pub fn notes(&self) -> &[String] {
        &self.inner.notes
    }

    /// The number of rows in all, where every file says so without being read (Parquet and Arrow).
    pub fn row_count(&self) -> Option<u64> {
        self.inner.files.iter().map(|file| file.row_count()).sum()
    }

    /// Starts reading: all columns, or those of `projection` by index into [`Files::schema`], in its order.
    ///
    /// # Errors
    /// The first file cannot be opened, or an index is out of range.
    pub fn read(&self, projection: Option<&[usize]>) -> Result<Reader> {
        Reader::new(self.clone(), projection)
    }

    pub(crate) fn file_count(&self) -> usize {
        self.inner.files.len()
    }

    /// Reads the columns `projection` of file `file_index`.
    pub(crate) fn scan(&self, file_index: usize, projection: &[usize]) -> Result<Box<dyn Scan>> {
        let sources = &self.inner.sources[file_index];
        let wanted =
            |(field, source): (&FieldRef, &Option<usize>)| Wanted { source: *source, field: Arc::clone(field) };
        let columns: Vec<Wanted> = self.inner.schema.fields().iter().zip(sources).map(wanted).collect();
        self.inner.files[file_index].scan(&columns, projection)
    }
}

/// One schema for all `files`: the columns of the first, of JSON those of all, each as wide as needed.
fn common_schema(files: &[Box<dyn Sniffed>], options: &ReadOptions) -> Result<Schema> {
    let mut fields: Vec<Field> = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let text = file.naming() == Naming::Key || options.format == Some(Format::Csv) || is_csv(file.as_ref());
        for (position, field) in file.schema().fields().iter().enumerate() {
            let known = match file.naming() {
                Naming::Position => fields.get_mut(position),
                Naming::Name | Naming::Key => fields.iter_mut().find(|known| known.name() == field.name()),
            };
            match known {
                Some(known) => {
                    let widened = widen(known.data_type(), field.data_type(), text).ok_or_else(|| {
                        let problem = format!(
                            "column \"{}\" is {} here and {} in earlier files",
                            field.name(),
                            sql_type::name(field.data_type()),
                            sql_type::name(known.data_type())
                        );
                        FileError::schema(file.path(), problem)
                    })?;
                    known.set_data_type(widened);
                }
                // What other files have in addition is refused by `match_columns`, except keys of JSON.
                None if index == 0 || file.naming() == Naming::Key => fields.push(field.as_ref().clone()),
                None => {}
            }
        }
    }
    for (name, data_type) in &options.types {
        match fields.iter_mut().find(|field| field.name().eq_ignore_ascii_case(name)) {
            Some(field) => field.set_data_type(data_type.clone()),
            None => {
                let known = fields.iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
                return Err(FileError::Option(format!("option 'types': no column \"{name}\"; there are: {known}")));
            }
        }
    }
    let settled = fields.into_iter().map(|field| {
        let data_type = normalise::null_to_text(field.data_type());
        Field::new(field.name(), data_type, true)
    });
    Ok(Schema::new(settled.collect::<Vec<_>>()))
}

fn is_csv(file: &dyn Sniffed) -> bool {
    Format::from_path(file.path()) == Some(Format::Csv)
}

/// The type that holds the values of both, or `None`; `text` files can always fall back on VARCHAR.
fn widen(a: &DataType, b: &DataType, text: bool) -> Option<DataType> {
    use DataType::{Date32, Decimal128, Float64, Int64, List, Null, Struct, Timestamp, UInt64, Utf8};
    let pair = match (a, b) {
        _ if a == b => Some(a.clone()),
        (Null, other) | (other, Null) => Some(other.clone()),
        (Decimal128(_, 0), Int64) | (Int64, Decimal128(_, 0)) if text => Some(Decimal128(38, 0)),
        (Timestamp(unit, zone), Date32) | (Date32, Timestamp(unit, zone)) => Some(Timestamp(*unit, zone.clone())),
        (Timestamp(left, zone), Timestamp(right, other)) if zone == other => {
            Some(Timestamp(*left.max(right), zone.clone()))
        }
        (Float64, other) | (other, Float64) if other.is_numeric() => Some(Float64),
        (UInt64, other) | (other, UInt64) if other.is_signed_integer() => Some(Decimal128(20, 0)),
        (left, right) if left.is_integer() && right.is_integer() => Some(wider_integer(left, right)),
        (List(left), List(right)) => {
            let element = widen(left.data_type(), right.data_type(), text)?;
            Some(List(Arc::new(left.as_ref().clone().with_data_type(element).with_nullable(true))))
        }
        (Struct(left), Struct(right)) => {
            let mut fields: Vec<Field> = left.iter().map(|field| field.as_ref().clone()).collect();
            for field in right {
                match fields.iter_mut().find(|known| known.name() == field.name()) {
                    Some(known) => known.set_data_type(widen(known.data_type(), field.data_type(), text)?),
                    None => fields.push(field.as_ref().clone()),
                }
            }
            Some(Struct(fields.into_iter().map(|field| field.with_nullable(true)).collect()))
        }
        _ => None,
    };
    pair.or(text.then_some(Utf8))
}

/// The smallest signed type for both, or the wider unsigned one where both are unsigned.
fn wider_integer(a: &DataType, b: &DataType) -> DataType {
    let bits = |data_type: &DataType| {
        let width = data_type.primitive_width().unwrap_or(8) * 8;
        if data_type.is_unsigned_integer() && !(a.is_unsigned_integer() && b.is_unsigned_integer()) {
            width * 2
        } else {
            width
        }
    };
    let unsigned = a.is_unsigned_integer() && b.is_unsigned_integer();
    match (bits(a).max(bits(b)), unsigned) {
        (16, true) => DataType::UInt16,
        (32, true) => DataType::UInt32,
        (_, true) => DataType::UInt64,
        (16, false) => DataType::Int16,
        (32, false) => DataType::Int32,
        (_, false) => DataType::Int64,
    }
}

/// Where `file` has each column of `schema`.
fn match_columns(
    file: &dyn Sniffed,
    schema: &Schema,
    is_expected: bool,
    options: &ReadOptions,
) -> Result<Vec<Option<usize>>> {
    let found = file.schema().fields();
    let place_of = |name: &str| {
        let exact = found.iter().position(|field| field.name() == name);
        exact.or_else(|| found.iter().position(|field| field.name().eq_ignore_ascii_case(name)))
    };
    let wanted = schema.fields();
    let by_name: Vec<Option<usize>> = wanted.iter().map(|field| place_of(field.name())).collect();
    match file.naming() {
        Naming::Key => {
            let unknown = found.iter().enumerate().find(|(place, _)| !by_name.contains(&Some(*place)));
            match unknown {
                Some((_, field)) if is_expected && !options.ignore_unknown_keys => {
                    let problem = format!(
                        "key \"{}\" has no column in {}; (unknown_keys 'ignore') passes over such keys",
                        field.name(),
                        names(schema)
                    );
                    Err(FileError::schema(file.path(), problem))
                }
                _ => Ok(by_name),
            }
        }
        Naming::Name if found.len() == wanted.len() && by_name.iter().all(Option::is_some) => Ok(by_name),
        Naming::Name | Naming::Position
            if found.len() == wanted.len() && (is_expected || file.naming() == Naming::Position) =>
        {
            Ok((0..found.len()).map(Some).collect())
        }
        _ => {
            let counterpart = if is_expected { "the target" } else { "the first file" };
            let problem = format!(
                "{} columns, {}, but {counterpart} has {}, {}",
                found.len(),
                names(file.schema()),
                wanted.len(),
                names(schema)
            );
            Err(FileError::schema(file.path(), problem))
        }
    }
}

/// The names of the first columns, for messages.
fn names(schema: &Schema) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<&str> = schema.fields().iter().take(SHOWN).map(|field| field.name().as_str()).collect();
    if schema.fields().len() > SHOWN {
        names.push("…");
    }
    format!("({})", names.join(", "))
}
