//! Parquet in and out, by the crate `parquet`. Columns that are not asked for are not read.

use super::contain::contain;
use super::reader::{BATCH_ROWS, Scan};
use super::selection::Selection;
use super::sniff::{Naming, Sniffed, Wanted};
use super::writer::{Output, Sink};
use super::{FileError, Result, Skipped, WriteOptions, normalise};
use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use ::parquet::arrow::arrow_writer::ArrowWriter;
use ::parquet::file::properties::WriterProperties;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A Parquet file whose footer has been read.
struct ParquetFile {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    schema: Schema,
}

/// Looks at the Parquet file `path`.
pub(crate) fn sniff(path: &Path) -> Result<Box<dyn Sniffed>> {
    let file = File::open(path).map_err(FileError::io(path))?;
    let metadata = contain(path, || {
        ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(|error| FileError::damaged(path, error))
    })?;
    let schema = normalise::schema(path, metadata.schema())?;
    Ok(Box::new(ParquetFile { path: path.to_path_buf(), metadata, schema }))
}

impl Sniffed for ParquetFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn naming(&self) -> Naming {
        Naming::Name
    }

    fn row_count(&self) -> Option<u64> {
        u64::try_from(self.metadata.metadata().file_metadata().num_rows()).ok()
    }

    fn scan(&self, columns: &[Wanted], projection: &[usize]) -> Result<Box<dyn Scan>> {
        let file = File::open(&self.path).map_err(FileError::io(&self.path))?;
        let selection = Selection::new(columns, projection);
        let reader = contain(&self.path, || {
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
            let mask = ProjectionMask::roots(builder.parquet_schema(), selection.read.iter().copied());
            let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
            reader.map_err(|error| FileError::damaged(&self.path, error))
        })?;
        Ok(Box::new(ParquetScan { path: self.path.clone(), reader, selection }))
    }
}

/// One Parquet file being read.
struct ParquetScan {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    selection: Selection,
}

impl Scan for ParquetScan {
    fn next_batch(&mut self, _skipped: &mut Skipped) -> Result<Option<RecordBatch>> {
        contain(&self.path, || match self.reader.next() {
            Some(Ok(batch)) => self.selection.apply(&self.path, &batch).map(Some),
            Some(Err(error)) => Err(FileError::damaged(&self.path, error)),
            None => Ok(None),
        })
    }
}

/// A Parquet file being written.
pub(crate) struct ParquetSink {
    path: PathBuf,
    writer: ArrowWriter<Output>,
    schema: SchemaRef,
}

impl ParquetSink {
    pub(crate) fn new(path: &Path, output: Output, schema: &SchemaRef, options: &WriteOptions) -> Result<Self> {
        let field = |field: &FieldRef| Field::new(field.name(), storable(field.data_type()), field.is_nullable());
        let schema = Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()));
        let properties = WriterProperties::builder()
            .set_compression(options.page_compression)
            .set_max_row_group_row_count(Some(options.row_group_rows))
            .build();
        let writer = ArrowWriter::try_new(output, Arc::clone(&schema), Some(properties));
        let writer = writer.map_err(|error| FileError::damaged(path, error))?;
        Ok(Self { path: path.to_path_buf(), writer, schema })
    }
}

/// What Parquet can hold of a type: it has no intervals of months, days and nanoseconds, so they are written as text.
fn storable(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Interval(_) => DataType::Utf8,
        other => other.clone(),
    }
}

impl Sink for ParquetSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let failed = |error: String| FileError::damaged(&self.path, error);
        let arrays = batch.columns().iter().zip(self.schema.fields()).map(|(array, field)| match array.data_type() {
            kind if kind == field.data_type() => Ok(Arc::clone(array)),
            _ => cast(array, field.data_type()).map_err(|error| failed(error.to_string())),
        });
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options);
        let batch = batch.map_err(|error| failed(error.to_string()))?;
        self.writer.write(&batch).map_err(|error| failed(error.to_string()))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let output = self.writer.into_inner().map_err(|error| FileError::damaged(&self.path, error))?;
        output.finish().map_err(FileError::io(&self.path))
    }
}
