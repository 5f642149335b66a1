//! Writing rows as CSV.
//!
//! A value stands in quotes only where it must: when it holds the delimiter, a quote or a line end, starts with a space
//! or a byte order mark, is empty, or reads like NULL.

use crate::value::print::{Printer, printer};
use crate::writer::{Output, Sink};
use crate::{FileError, Format, Result, WriteOptions, format, json};
use arrow::array::Array;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A CSV file being written.
pub(crate) struct CsvSink {
    path: PathBuf,
    output: Output,
    delimiter: u8,
    quote: u8,
    null: Vec<u8>,
    /// The text of the rows at hand; kept for its memory.
    text: Vec<u8>,
}

impl CsvSink {
    pub(crate) fn new(path: &Path, output: Output, schema: &SchemaRef, options: &WriteOptions) -> Result<Self> {
        let promised = format::promised_delimiter(&format::inner_extension(path)).unwrap_or(b',');
        debug_assert!(Format::choose(options.format, path).is_ok());
        let mut sink = Self {
            path: path.to_path_buf(),
            output,
            delimiter: options.delimiter.unwrap_or(promised),
            quote: options.quote,
            null: options.null.as_bytes().to_vec(),
            text: Vec::new(),
        };
        if options.header {
            for (index, field) in schema.fields().iter().enumerate() {
                sink.delimit(index);
                let start = sink.text.len();
                sink.text.extend_from_slice(field.name().as_bytes());
                sink.quote_from(start);
            }
            sink.text.push(b'\n');
            sink.hand_over()?;
        }
        Ok(sink)
    }

    fn delimit(&mut self, index: usize) {
        if index > 0 {
            self.text.push(self.delimiter);
        }
    }

    /// Puts the text from `start` on in quotes if it needs them.
    fn quote_from(&mut self, start: usize) {
        let value = &self.text[start..];
        let is_special = |byte: &u8| *byte == self.delimiter || *byte == self.quote || matches!(byte, b'\n' | b'\r');
        let starts_oddly = value.starts_with(b" ") || value.starts_with(b"\xEF\xBB\xBF");
        if !value.is_empty() && value != self.null && !starts_oddly && !value.iter().any(is_special) {
            return;
        }
        let value = value.to_vec();
        self.text.truncate(start);
        self.text.push(self.quote);
        for byte in value {
            if byte == self.quote {
                self.text.push(byte);
            }
            self.text.push(byte);
        }
        self.text.push(self.quote);
    }

    fn hand_over(&mut self) -> Result<()> {
        self.output.write_all(&self.text).map_err(FileError::io(&self.path))?;
        self.text.clear();
        Ok(())
    }
}

impl Sink for CsvSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let printers: Vec<Printer<'_>> = batch.columns().iter().map(|array| text_or_json(array.as_ref())).collect();
        for row in 0..batch.num_rows() {
            for (index, (array, print)) in batch.columns().iter().zip(&printers).enumerate() {
                self.delimit(index);
                let start = self.text.len();
                if array.is_null(row) {
                    self.text.extend_from_slice(&self.null);
                } else {
                    print(row, &mut self.text);
                    self.quote_from(start);
                }
            }
            self.text.push(b'\n');
        }
        self.hand_over()
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.output.finish().map_err(FileError::io(&self.path))
    }
}

/// Nested values stand in a field as JSON.
fn text_or_json(array: &dyn Array) -> Printer<'_> {
    printer(array).unwrap_or_else(|| json::value_printer(array))
}
