//! Tests over whole files: out and back, messages, and bytes that mean harm.

mod damaged_files_are_errors;
mod malformed_rows_are_named_or_skipped;
mod what_is_written_reads_back;

use super::{ReadOptions, Result, open};
use arrow::record_batch::RecordBatch;
use std::path::{Path, PathBuf};

/// A file called `name` with `content` in a directory of its own.
fn file(name: &str, content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    (directory, path)
}

fn options(settings: &[(&str, &str)]) -> ReadOptions {
    let mut options = ReadOptions::default();
    settings.iter().for_each(|(name, value)| options.set(name, value).unwrap());
    options
}

fn read(path: &Path, options: &ReadOptions) -> Result<Vec<RecordBatch>> {
    open(&[path.to_path_buf()], options, None)?.collect()
}

/// The values as lines, columns parted by a bar and NULL as `∅`.
fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let options = arrow::util::display::FormatOptions::default().with_null("∅");
    let mut all = Vec::new();
    for batch in batches {
        let formatter = |array| arrow::util::display::ArrayFormatter::try_new(array, &options).unwrap();
        let columns: Vec<_> = batch.columns().iter().map(|array| formatter(array.as_ref())).collect();
        let line = |row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|");
        all.extend((0..batch.num_rows()).map(line));
    }
    all
}

/// The message of an error with the directory taken out.
fn message<T>(path: &Path, result: Result<T>) -> String {
    let directory = format!("{}/", path.parent().unwrap().display());
    result.err().expect("an error").to_string().replace(&directory, "")
}
