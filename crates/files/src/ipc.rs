//! Arrow IPC in and out: files (also called Feather version 2) and streams.

use super::contain::contain;
use super::reader::{BATCH_ROWS, Scan};
use super::selection::Selection;
use super::sniff::{Naming, Sniffed, Wanted};
use super::writer::{Output, Sink};
use super::{FileError, Result, Skipped, normalise};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::{FileReader, StreamReader};
use arrow::ipc::writer::FileWriter;
use arrow::record_batch::RecordBatch;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// An Arrow file whose schema has been read.
struct IpcFile {
    path: PathBuf,
    schema: Schema,
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// Opens `path`, reading only the columns `read`, and yields its schema and batches.
fn open(path: &Path, read: Option<Vec<usize>>) -> Result<(SchemaRef, Batches)> {
    let mut mark = [0; 8];
    let mut file = File::open(path).map_err(FileError::io(path))?;
    let length = file.by_ref().take(8).read(&mut mark).map_err(FileError::io(path))?;
    if mark[..length].starts_with(b"FEA1") {
        return Err(FileError::damaged(path, "Feather version 1, which is not read; write it again as version 2"));
    }
    let file = File::open(path).map_err(FileError::io(path))?;
    let damaged = |error: ArrowError| FileError::damaged(path, error);
    contain(path, || {
        if mark.starts_with(b"ARROW1") {
            let reader = FileReader::try_new(BufReader::new(file), read).map_err(damaged)?;
            Ok((reader.schema(), Box::new(reader) as Batches))
        } else {
            let reader = StreamReader::try_new(BufReader::new(file), read).map_err(damaged)?;
            Ok((reader.schema(), Box::new(reader) as Batches))
        }
    })
}

/// Looks at the Arrow file `path`.
pub(crate) fn sniff(path: &Path) -> Result<Box<dyn Sniffed>> {
    let (schema, _) = open(path, None)?;
    Ok(Box::new(IpcFile { path: path.to_path_buf(), schema: normalise::schema(path, &schema)? }))
}

impl Sniffed for IpcFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn naming(&self) -> Naming {
        Naming::Name
    }

    fn scan(&self, columns: &[Wanted], projection: &[usize]) -> Result<Box<dyn Scan>> {
        let selection = Selection::new(columns, projection);
        let (_, batches) = open(&self.path, Some(selection.read.clone()))?;
        Ok(Box::new(IpcScan { path: self.path.clone(), batches, selection, rest: None }))
    }
}

/// One Arrow file being read.
struct IpcScan {
    path: PathBuf,
    batches: Batches,
    selection: Selection,
    /// What is left of a batch that was longer than ours.
    rest: Option<RecordBatch>,
}

impl Scan for IpcScan {
    fn next_batch(&mut self, _skipped: &mut Skipped) -> Result<Option<RecordBatch>> {
        contain(&self.path, || {
            let batch = match self.rest.take() {
                Some(rest) => rest,
                None => match self.batches.next() {
                    Some(Ok(batch)) => batch,
                    Some(Err(error)) => return Err(FileError::damaged(&self.path, error)),
                    None => return Ok(None),
                },
            };
            let row_count = batch.num_rows().min(BATCH_ROWS);
            if row_count < batch.num_rows() {
                self.rest = Some(batch.slice(row_count, batch.num_rows() - row_count));
            }
            self.selection.apply(&self.path, &batch.slice(0, row_count)).map(Some)
        })
    }
}

/// An Arrow file being written.
pub(crate) struct IpcSink {
    path: PathBuf,
    writer: FileWriter<Output>,
}

impl IpcSink {
    pub(crate) fn new(path: &Path, output: Output, schema: &SchemaRef) -> Result<Self> {
        let writer = FileWriter::try_new(output, schema).map_err(|error| FileError::damaged(path, error))?;
        Ok(Self { path: path.to_path_buf(), writer })
    }
}

impl Sink for IpcSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).map_err(|error| FileError::damaged(&self.path, error))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let output = self.writer.into_inner().map_err(|error| FileError::damaged(&self.path, error))?;
        output.finish().map_err(FileError::io(&self.path))
    }
}
