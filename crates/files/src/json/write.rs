//! Writing rows as JSON, one object per line.
//!
//! Dates, times, intervals, UUIDs and bytes are strings in the form that reading takes. NaN and the infinities, which
//! JSON has no numbers for, are the strings `NaN`, `Infinity` and `-Infinity`, which reading takes for numbers again.

use crate::value::print::{Printer, printer};
use crate::writer::{Output, Sink};
use crate::{FileError, Result};
use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type, SchemaRef};
use arrow::record_batch::RecordBatch;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A JSON file being written.
pub(crate) struct JsonSink {
    path: PathBuf,
    output: Output,
    /// The keys with what stands before and after them: `{"a":`, `,"b":`.
    keys: Vec<Vec<u8>>,
    /// The text of the rows at hand; kept for its memory.
    text: Vec<u8>,
}

impl JsonSink {
    pub(crate) fn new(path: &Path, output: Output, schema: &SchemaRef) -> Result<Self> {
        let keys = schema.fields().iter().enumerate().map(|(index, field)| key(index, field.name())).collect();
        Ok(Self { path: path.to_path_buf(), output, keys, text: Vec::new() })
    }
}

impl Sink for JsonSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let printers: Vec<Printer<'_>> = batch.columns().iter().map(|array| value_printer(array.as_ref())).collect();
        for row in 0..batch.num_rows() {
            for (key, print) in self.keys.iter().zip(&printers) {
                self.text.extend_from_slice(key);
                print(row, &mut self.text);
            }
            self.text.extend_from_slice(if self.keys.is_empty() { b"{}\n" } else { b"}\n" });
        }
        self.output.write_all(&self.text).map_err(FileError::io(&self.path))?;
        self.text.clear();
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.output.finish().map_err(FileError::io(&self.path))
    }
}

fn key(index: usize, name: &str) -> Vec<u8> {
    let mut text = vec![if index == 0 { b'{' } else { b',' }];
    string(name.as_bytes(), &mut text);
    text.push(b':');
    text
}

/// A printer of `array`'s values as JSON, NULL included.
pub(crate) fn value_printer(array: &dyn Array) -> Printer<'_> {
    let print: Printer<'_> = match array.data_type() {
        DataType::Struct(fields) => {
            let array = array.as_struct();
            let parts = fields.iter().zip(array.columns()).enumerate();
            let parts: Vec<(Vec<u8>, Printer<'_>)> = parts
                .map(|(index, (field, column))| (key(index, field.name()), value_printer(column.as_ref())))
                .collect();
            Box::new(move |row, out| {
                for (key, print) in &parts {
                    out.extend_from_slice(key);
                    print(row, out);
                }
                out.extend_from_slice(if parts.is_empty() { b"{}" } else { b"}" });
            })
        }
        DataType::List(_) => {
            let array = array.as_list::<i32>();
            let element = value_printer(array.values().as_ref());
            Box::new(move |row, out| {
                let offsets = array.value_offsets();
                out.push(b'[');
                for index in offsets[row]..offsets[row + 1] {
                    if index > offsets[row] {
                        out.push(b',');
                    }
                    element(index as usize, out);
                }
                out.push(b']');
            })
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            number_or_word(array, move |row| f64::from(values.value(row)))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            number_or_word(array, move |row| values.value(row))
        }
        kind if kind.is_integer() || matches!(kind, DataType::Decimal128(..) | DataType::Boolean) => text_of(array),
        _ => {
            let print = text_of(array);
            Box::new(move |row, out| {
                let mut text = Vec::new();
                print(row, &mut text);
                string(&text, out);
            })
        }
    };
    Box::new(move |row, out| {
        if array.is_null(row) {
            out.extend_from_slice(b"null");
        } else {
            print(row, out);
        }
    })
}

/// The text of a type that is not nested. Tables hold no type without one.
fn text_of(array: &dyn Array) -> Printer<'_> {
    printer(array).unwrap_or_else(|| Box::new(|_, _| {}))
}

fn number_or_word<'a>(array: &'a dyn Array, value: impl Fn(usize) -> f64 + 'a) -> Printer<'a> {
    let print = text_of(array);
    Box::new(move |row, out| match value(row) {
        value if value.is_finite() => print(row, out),
        value if value.is_nan() => out.extend_from_slice(b"\"NaN\""),
        value if value > 0.0 => out.extend_from_slice(b"\"Infinity\""),
        _ => out.extend_from_slice(b"\"-Infinity\""),
    })
}

/// `text` in quotes, with escapes where JSON asks for them.
fn string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut plain = 0;
    for (at, &byte) in text.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0..=31 => b"",
            _ => continue,
        };
        out.extend_from_slice(&text[plain..at]);
        plain = at + 1;
        if escape.is_empty() {
            // Writing to memory cannot fail.
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            out.extend_from_slice(escape);
        }
    }
    out.extend_from_slice(&text[plain..]);
    out.push(b'"');
}
