//! How a file is to be written, as far as the statement says.

use super::format::promised_delimiter;
use super::read_options::{boolean, byte, compression, number, refused, unknown};
use super::{Compression, Format, Result};
use ::parquet::basic::{Compression as PageCompression, GzipLevel, ZstdLevel};

/// Options for writing. What is left open follows the file's name.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteOptions {
    /// The format; by default as the file's name says.
    pub format: Option<Format>,
    /// CSV: the byte between fields; by default as the file's name says, a tab for `.tsv`, a bar for `.psv`.
    pub delimiter: Option<u8>,
    /// CSV: the byte around fields that need it.
    pub quote: u8,
    /// CSV: whether the first line holds the names.
    pub header: bool,
    /// CSV: the text for NULL; a value that reads the same is put in quotes.
    pub null: String,
    /// CSV and JSON: the compression of the file; by default as its name says.
    pub compression: Option<Compression>,
    /// Parquet: the compression of pages.
    pub page_compression: PageCompression,
    /// Parquet: rows in a row group.
    pub row_group_rows: usize,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            format: None,
            delimiter: None,
            quote: b'"',
            header: true,
            null: String::new(),
            compression: None,
            page_compression: PageCompression::SNAPPY,
            // DuckDB's habit, and about that of our own row groups.
            row_group_rows: 122_880,
        }
    }
}

/// The options' names in SQL, for the message about an unknown one.
const KNOWN: &str = "format, compression, delimiter (or sep), quote, header, null (or nullstr), row_group_size";

impl WriteOptions {
    /// Sets the option called `name` in SQL to `value`.
    ///
    /// # Errors
    /// The name is unknown, or the value is not one that the option can take; the message lists what is known.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name.to_ascii_lowercase().as_str() {
            "format" => {
                self.format = Some(Format::from_name(value)?);
                self.delimiter = self.delimiter.or_else(|| promised_delimiter(value));
            }
            "compression" | "codec" => self.set_compression(value)?,
            "delimiter" | "delim" | "sep" => self.delimiter = Some(byte(name, value)?),
            "quote" => self.quote = byte(name, value)?,
            "header" => self.header = boolean(name, value)?,
            "null" | "nullstr" => self.null = value.to_string(),
            "row_group_size" => {
                self.row_group_rows = match number(name, value)? {
                    0 => return Err(refused(name, value, "a number of rows, at least 1")),
                    rows => usize::try_from(rows).unwrap_or(usize::MAX),
                }
            }
            _ => return Err(unknown(name, "writing", KNOWN)),
        }
        Ok(())
    }

    /// One word for both kinds of compression: that of Parquet's pages and that of a text file.
    fn set_compression(&mut self, value: &str) -> Result<()> {
        let page = match value.to_ascii_lowercase().as_str() {
            "none" | "uncompressed" => PageCompression::UNCOMPRESSED,
            "snappy" => PageCompression::SNAPPY,
            "gzip" | "gz" => PageCompression::GZIP(GzipLevel::default()),
            "zstd" | "zst" => PageCompression::ZSTD(ZstdLevel::default()),
            "lz4" | "lz4_raw" => PageCompression::LZ4_RAW,
            _ => return Err(refused("compression", value, "'none', 'snappy', 'gzip', 'zstd' or 'lz4'")),
        };
        self.page_compression = page;
        // Snappy and LZ4 exist only inside Parquet; `create` refuses them for text.
        self.compression = compression(value).ok();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_set_by_name() {
        let mut options = WriteOptions::default();
        for (name, value) in [("sep", "\\t"), ("header", ""), ("compression", "zstd"), ("row_group_size", "10")] {
            options.set(name, value).unwrap();
        }
        assert_eq!(options.delimiter, Some(b'\t'));
        assert_eq!(options.compression, Some(Compression::Zstd));
        assert_eq!(options.row_group_rows, 10);
        let message = |name: &str, value: &str| WriteOptions::default().set(name, value).unwrap_err().to_string();
        assert_eq!(
            message("on_error", "skip"),
            "unknown option 'on_error' for writing a file; known: format, compression, delimiter (or sep), quote, \
             header, null (or nullstr), row_group_size"
        );
        assert_eq!(
            message("compression", "rar"),
            "option 'compression' cannot be 'rar'; it takes 'none', 'snappy', 'gzip', 'zstd' or 'lz4'"
        );
    }
}
