//! Reading files one after the other as record batches of one schema.

use super::sniff::{Files, sniff};
use super::{FileError, ReadOptions, Result, Skipped};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use std::path::PathBuf;
use std::sync::Arc;

/// The rows of a batch, at most. Batches of wide rows hold fewer.
pub(crate) const BATCH_ROWS: usize = 8192;

/// One file being read.
pub(crate) trait Scan: Send {
    /// The next rows, or `None` at the end. Rows that are left out are added to `skipped`.
    fn next_batch(&mut self, skipped: &mut Skipped) -> Result<Option<RecordBatch>>;
}

/// Record batches from files, one file after the other.
///
/// After an error the reader yields nothing more. `Send`, so that it can be moved to a worker.
pub struct Reader {
    schema: SchemaRef,
    files: Files,
    projection: Vec<usize>,
    next_file: usize,
    scan: Option<Box<dyn Scan>>,
    skipped: Skipped,
}

/// Looks at `paths` and starts reading all columns; see [`sniff`].
///
/// # Errors
/// As [`sniff`].
pub fn open(paths: &[PathBuf], options: &ReadOptions, expected: Option<SchemaRef>) -> Result<Reader> {
    sniff(paths, options, expected)?.read(None)
}

/// Looks at `paths` and starts reading the columns of `projection`, by index into the schema of [`sniff`].
///
/// # Errors
/// As [`sniff`], or an index is out of range.
pub fn open_projected(
    paths: &[PathBuf],
    options: &ReadOptions,
    expected: Option<SchemaRef>,
    projection: &[usize],
) -> Result<Reader> {
    sniff(paths, options, expected)?.read(Some(projection))
}

impl Reader {
    pub(crate) fn new(files: Files, projection: Option<&[usize]>) -> Result<Self> {
        let fields = files.schema().fields();
        let projection = projection.map_or_else(|| (0..fields.len()).collect(), <[usize]>::to_vec);
        let projected = projection.iter().map(|&column| {
            fields.get(column).cloned().ok_or_else(|| {
                FileError::Option(format!("column index {column} is out of range; there are {} columns", fields.len()))
            })
        });
        let schema = Arc::new(Schema::new(projected.collect::<Result<Vec<_>>>()?));
        let mut reader = Self { schema, files, projection, next_file: 0, scan: None, skipped: Skipped::default() };
        reader.open_next()?;
        Ok(reader)
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What sniffing guessed; see [`Files::notes`].
    pub fn notes(&self) -> &[String] {
        self.files.notes()
    }

    /// The rows left out so far.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Opens the next file; `false` after the last.
    fn open_next(&mut self) -> Result<bool> {
        self.scan = None;
        if self.next_file == self.files.file_count() {
            return Ok(false);
        }
        self.scan = Some(self.files.scan(self.next_file, &self.projection)?);
        self.next_file += 1;
        Ok(true)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(scan) = &mut self.scan {
            match scan.next_batch(&mut self.skipped)? {
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => {
                    let row_count = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                    let columns = batch.columns().to_vec();
                    let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &row_count)
                        .map_err(|error| FileError::Option(error.to_string()))?;
                    return Ok(Some(batch));
                }
                None => {
                    self.open_next()?;
                }
            }
        }
        Ok(None)
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch();
        if next.is_err() {
            self.scan = None;
            self.next_file = self.files.file_count();
        }
        next.transpose()
    }
}
