//! Writes Arrow batches to a Parquet file, one batch in memory at a time besides the row group being written.

use arrow::array::RecordBatchReader;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::path::Path;

/// Writes all of `batches` to `path`, compressed with Snappy as most files in the wild are, and returns the rows
/// written. The Arrow schema is left out of the footer, so that readers choose their own string type.
///
/// # Errors
/// Where the file cannot be written or a batch cannot be had.
pub fn write_parquet(path: &Path, batches: impl RecordBatchReader) -> Result<u64> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(File::create(path)?, batches.schema(), options)?;
    let mut row_count = 0;
    for batch in batches {
        let batch = batch?;
        row_count += batch.num_rows() as u64;
        writer.write(&batch)?;
    }
    writer.close()?;
    Ok(row_count)
}
