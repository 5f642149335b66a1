//! How a file is to be read, as far as the statement says.

use super::format::promised_delimiter;
use super::{Compression, FileError, Format, OnError, Result, sql_type};
use arrow::datatypes::DataType;

/// How much of a file is looked at before its types are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleSize {
    /// About this many bytes: files up to this size as a whole, larger ones in stretches spread over the file.
    Bytes(u64),
    /// Every byte, which takes a second pass over the file.
    All,
}

impl Default for SampleSize {
    /// 16 MiB: a tenth of a second, and more rows than most files have.
    fn default() -> Self {
        Self::Bytes(16 << 20)
    }
}

/// Options for reading. What is left open is sniffed from the file.
///
/// In SQL they follow the file in parentheses, each a name and a value:
/// `COPY t FROM 'x.csv' (delimiter '|', header false, null 'null', on_error 'skip')`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadOptions {
    /// The format; by default as the file's name says.
    pub format: Option<Format>,
    /// The compression; by default as the file's name says.
    pub compression: Option<Compression>,
    /// CSV and JSON: whether the bytes are Latin-1 (ISO 8859-1) rather than UTF-8.
    pub is_latin1: bool,
    /// CSV: the byte between fields.
    pub delimiter: Option<u8>,
    /// CSV: the byte around fields; `Some(None)` where quotes mean nothing.
    pub quote: Option<Option<u8>>,
    /// CSV: the byte before a quote inside quotes; by default the quote itself.
    pub escape: Option<u8>,
    /// CSV: whether the first line holds names.
    pub header: Option<bool>,
    /// CSV: lines to pass over at the start.
    pub skip_lines: u64,
    /// CSV: the unquoted texts that mean NULL, exactly these. Left empty, an empty field means NULL, and so does a
    /// marker such as `NA` in a column that holds numbers, dates or booleans otherwise.
    pub null: Vec<String>,
    /// CSV: names of the columns, from the left.
    pub names: Vec<String>,
    /// Types that are not to be sniffed, by column name.
    pub types: Vec<(String, DataType)>,
    /// CSV and JSON: how dates are written, in the letters of strftime.
    pub date_format: Option<String>,
    /// CSV and JSON: how timestamps are written, in the letters of strftime.
    pub timestamp_format: Option<String>,
    /// How much to look at.
    pub sample: SampleSize,
    /// What a malformed row does.
    pub on_error: OnError,
    /// JSON: whether keys that have no column are passed over rather than refused.
    pub ignore_unknown_keys: bool,
}

/// The options' names in SQL, for the message about an unknown one.
const KNOWN: &str = "format, compression, encoding, delimiter (or sep), quote, escape, header, skip, null (or nullstr), names, types, \
                     dateformat, timestampformat, sample, on_error, unknown_keys";

impl ReadOptions {
    /// Sets the option called `name` in SQL to `value`.
    ///
    /// A list (`null`, `names`) is written `['NA', '-']`, or as the bare value if it is only one; `null` adds to what
    /// was set before. `types` is a list of columns, `'price DOUBLE, zip VARCHAR'`. `quote ''` switches quoting off.
    /// `sample` takes `'all'` or a number of bytes.
    ///
    /// # Errors
    /// The name is unknown, or the value is not one that the option can take; the message lists what is known.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name.to_ascii_lowercase().as_str() {
            "format" => {
                self.format = Some(Format::from_name(value)?);
                self.delimiter = self.delimiter.or_else(|| promised_delimiter(value));
            }
            "compression" => self.compression = Some(compression(value)?),
            "encoding" => {
                self.is_latin1 = match value.to_ascii_lowercase().as_str() {
                    "utf-8" | "utf8" => false,
                    "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" => true,
                    _ => return Err(refused(name, value, "'utf-8' or 'latin-1'")),
                }
            }
            "delimiter" | "delim" | "sep" => self.delimiter = Some(byte(name, value)?),
            "quote" if value.is_empty() => self.quote = Some(None),
            "quote" => self.quote = Some(Some(byte(name, value)?)),
            "escape" => self.escape = Some(byte(name, value)?),
            "header" => self.header = Some(boolean(name, value)?),
            "skip" => self.skip_lines = number(name, value)?,
            "null" | "nullstr" => self.null.extend(list(value)),
            "names" => self.names = list(value),
            "types" | "columns" => self.types = column_types(value)?,
            "dateformat" | "date_format" => self.date_format = Some(value.to_string()),
            "timestampformat" | "timestamp_format" => self.timestamp_format = Some(value.to_string()),
            "sample" | "sample_bytes" if value.eq_ignore_ascii_case("all") || value == "-1" => {
                self.sample = SampleSize::All;
            }
            "sample" | "sample_bytes" => self.sample = SampleSize::Bytes(number(name, value)?),
            "on_error" => {
                self.on_error = match value.to_ascii_lowercase().as_str() {
                    "fail" | "stop" => OnError::Fail,
                    "skip" | "ignore" => OnError::Skip,
                    _ => return Err(refused(name, value, "'fail' or 'skip'")),
                }
            }
            "unknown_keys" => {
                self.ignore_unknown_keys = match value.to_ascii_lowercase().as_str() {
                    "ignore" => true,
                    "fail" => false,
                    _ => return Err(refused(name, value, "'fail' or 'ignore'")),
                }
            }
            _ => return Err(unknown(name, "reading", KNOWN)),
        }
        Ok(())
    }
}

/// The error for an option that there is not.
pub(super) fn unknown(name: &str, purpose: &str, known: &str) -> FileError {
    FileError::Option(format!("unknown option '{name}' for {purpose} a file; known: {known}"))
}

/// The error for a value that option `name` cannot take.
pub(super) fn refused(name: &str, value: &str, wanted: &str) -> FileError {
    FileError::Option(format!("option '{name}' cannot be '{value}'; it takes {wanted}"))
}

/// A single byte of ASCII, written as itself or as `\t`.
pub(super) fn byte(name: &str, value: &str) -> Result<u8> {
    match value.as_bytes() {
        b"\\t" => Ok(b'\t'),
        b"\\0" => Ok(0),
        [byte] if byte.is_ascii() && *byte != b'\n' && *byte != b'\r' => Ok(*byte),
        _ => Err(refused(name, value, "one character of ASCII")),
    }
}

/// `true` or `false` in any of SQL's spellings; an empty value is `true`, as in `(header)`.
pub(super) fn boolean(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "" | "true" | "on" | "1" | "yes" => Ok(true),
        "false" | "off" | "0" | "no" => Ok(false),
        _ => Err(refused(name, value, "true or false")),
    }
}

/// A whole number, not negative.
pub(super) fn number(name: &str, value: &str) -> Result<u64> {
    value.parse().map_err(|_| refused(name, value, "a whole number"))
}

/// The compression called `value`.
pub(super) fn compression(value: &str) -> Result<Compression> {
    match value.to_ascii_lowercase().as_str() {
        "none" | "uncompressed" => Ok(Compression::None),
        "gzip" | "gz" => Ok(Compression::Gzip),
        "zstd" | "zst" => Ok(Compression::Zstd),
        _ => Err(refused("compression", value, "'none', 'gzip' or 'zstd'")),
    }
}

/// `['a', 'b']` as two texts; anything else as one.
fn list(value: &str) -> Vec<String> {
    let Some(inner) = value.trim().strip_prefix(['[', '(']).and_then(|rest| rest.strip_suffix([']', ')'])) else {
        return vec![value.to_string()];
    };
    let unquote = |item: &str| {
        let item = item.trim();
        item.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(item).replace("''", "'")
    };
    sql_type::split_outside_brackets(inner).into_iter().map(unquote).collect()
}

/// `price DOUBLE, zip VARCHAR` as names and types.
fn column_types(value: &str) -> Result<Vec<(String, DataType)>> {
    let inner = value.trim().trim_start_matches('{').trim_end_matches('}');
    let mut types = Vec::new();
    for item in sql_type::split_outside_brackets(inner) {
        let item = item.trim();
        let (name, data_type) = match item.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            Some(parts) => parts,
            None => item
                .split_once([' ', ':', '='])
                .ok_or_else(|| refused("types", value, "columns and types, such as 'price DOUBLE, zip VARCHAR'"))?,
        };
        let data_type = data_type.trim_start_matches([' ', ':', '=']);
        types.push((name.to_string(), sql_type::parse(data_type)?));
    }
    Ok(types)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_set_by_name() {
        let mut options = ReadOptions::default();
        for (name, value) in [
            ("Delimiter", "|"),
            ("header", "false"),
            ("null", "['NA', '-']"),
            ("on_error", "skip"),
            ("format", "csv"),
            ("types", "price DECIMAL(10,2), \"a b\" BIGINT"),
            ("quote", ""),
            ("sample", "all"),
        ] {
            options.set(name, value).unwrap();
        }
        assert_eq!(options.delimiter, Some(b'|'));
        assert_eq!(options.header, Some(false));
        assert_eq!(options.null, ["NA", "-"]);
        assert_eq!(options.on_error, OnError::Skip);
        assert_eq!(options.quote, Some(None));
        assert_eq!(options.sample, SampleSize::All);
        assert_eq!(
            options.types,
            [("price".to_string(), DataType::Decimal128(10, 2)), ("a b".to_string(), DataType::Int64)]
        );
    }

    #[test]
    fn wrong_options_say_what_is_right() {
        let message = |name: &str, value: &str| ReadOptions::default().set(name, value).unwrap_err().to_string();
        assert_eq!(
            message("delimeter", "|"),
            "unknown option 'delimeter' for reading a file; known: format, compression, encoding, delimiter (or sep), quote, \
             escape, header, skip, null (or nullstr), names, types, dateformat, timestampformat, sample, on_error, \
             unknown_keys"
        );
        assert_eq!(message("delimiter", "||"), "option 'delimiter' cannot be '||'; it takes one character of ASCII");
        assert_eq!(message("header", "maybe"), "option 'header' cannot be 'maybe'; it takes true or false");
        assert_eq!(message("format", "xls"), "unknown format 'xls'; known: csv, json, parquet, arrow");
        assert_eq!(message("on_error", "x"), "option 'on_error' cannot be 'x'; it takes 'fail' or 'skip'");
    }
}
