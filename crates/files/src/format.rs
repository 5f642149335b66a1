//! Which format and which compression a file has, judged from its name.

use super::{FileError, Result};
use std::path::Path;

/// The formats that files come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text with a delimiter: comma, tab, bar or semicolon.
    Csv,
    /// JSON: one object per line, an array of objects, or objects one after the other.
    Json,
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC, file or stream.
    Arrow,
}

/// How a text file's bytes are compressed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
}

impl Format {
    /// The format that `path` promises by its extension, looking through `.gz` and `.zst`.
    pub fn from_path(path: &Path) -> Option<Self> {
        match extension(&inner_name(path)).as_str() {
            "csv" | "tsv" | "tab" | "psv" | "tbl" | "txt" => Some(Self::Csv),
            "json" | "jsonl" | "ndjson" => Some(Self::Json),
            "parquet" | "pq" => Some(Self::Parquet),
            "arrow" | "arrows" | "feather" | "ipc" => Some(Self::Arrow),
            _ => None,
        }
    }

    /// The format called `name` in SQL.
    ///
    /// # Errors
    /// The name is none of ours.
    pub fn from_name(name: &str) -> Result<Self> {
        match name.to_ascii_lowercase().as_str() {
            "csv" | "tsv" | "psv" | "text" => Ok(Self::Csv),
            "json" | "jsonl" | "ndjson" => Ok(Self::Json),
            "parquet" => Ok(Self::Parquet),
            "arrow" | "feather" | "ipc" => Ok(Self::Arrow),
            _ => Err(FileError::Option(format!("unknown format '{name}'; known: csv, json, parquet, arrow"))),
        }
    }

    /// `choice`, or else what the name of `path` promises.
    pub(crate) fn choose(choice: Option<Self>, path: &Path) -> Result<Self> {
        choice.or_else(|| Self::from_path(path)).ok_or_else(|| FileError::UnknownFormat { path: path.to_path_buf() })
    }
}

impl Compression {
    /// The compression that `path` promises by its last extension.
    pub fn from_path(path: &Path) -> Self {
        match extension(&path.to_string_lossy()).as_str() {
            "gz" | "gzip" => Self::Gzip,
            "zst" | "zstd" => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// The byte between fields that the extension of a text file, or its format's name in SQL, promises; `csv` alone leaves
/// it open.
pub(crate) fn promised_delimiter(kind: &str) -> Option<u8> {
    match kind.to_ascii_lowercase().as_str() {
        "tsv" | "tab" => Some(b'\t'),
        "psv" | "tbl" => Some(b'|'),
        _ => None,
    }
}

/// The extension inside a compressed name: `psv` for `lake.psv.zst`.
pub(crate) fn inner_extension(path: &Path) -> String {
    extension(&inner_name(path))
}

/// The name of `path` without the extension of its compression.
fn inner_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match (Compression::from_path(path), name.rfind('.')) {
        (Compression::None, _) | (_, None) => name,
        (_, Some(dot)) => name[..dot].to_string(),
    }
}

fn extension(name: &str) -> String {
    Path::new(name).extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_format_and_compression() {
        let format = |name: &str| Format::from_path(Path::new(name));
        assert_eq!(format("a/b.CSV"), Some(Format::Csv));
        assert_eq!(format("b.psv.zst"), Some(Format::Csv));
        assert_eq!(format("b.jsonl.gz"), Some(Format::Json));
        assert_eq!(format("b.feather"), Some(Format::Arrow));
        assert_eq!(format("b.gz"), None);
        assert_eq!(format("csv"), None);
        assert_eq!(Compression::from_path(Path::new("b.csv.gz")), Compression::Gzip);
        assert_eq!(Compression::from_path(Path::new("b.csv")), Compression::None);
    }
}
