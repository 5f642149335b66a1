//! Writes Arrow batches to a CSV file with a header line.

use arrow::array::RecordBatchReader;
use arrow::csv::WriterBuilder;
use arrow::error::ArrowError;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Writes all of `batches` to `path` and returns the rows written.
///
/// # Errors
/// Where the file cannot be written or a batch cannot be had.
pub fn write_csv(path: &Path, batches: impl RecordBatchReader) -> Result<u64, ArrowError> {
    let mut writer =
        WriterBuilder::new().with_header(true).build(BufWriter::with_capacity(1 << 20, File::create(path)?));
    let mut row_count = 0;
    for batch in batches {
        let batch = batch?;
        row_count += batch.num_rows() as u64;
        writer.write(&batch)?;
    }
    writer.into_inner().flush()?;
    Ok(row_count)
}
