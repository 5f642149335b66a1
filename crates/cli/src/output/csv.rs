//! Comma-separated values by RFC 4180, with one addition: an empty string is quoted, so that it differs from NULL.

use super::{Cells, ResultWriter};
use crate::failure::Result;
use sinterdb::arrow::array::RecordBatch;
use sinterdb::arrow::datatypes::SchemaRef;
use std::io::Write;

/// Streams rows; lines end with `\n`.
pub(super) struct CsvWriter {
    schema: SchemaRef,
    header_written: bool,
    line: String,
    value: String,
}

impl CsvWriter {
    pub(super) fn new(schema: SchemaRef) -> CsvWriter {
        CsvWriter { schema, header_written: false, line: String::new(), value: String::new() }
    }

    fn header(&mut self, out: &mut dyn Write) -> Result<()> {
        if !std::mem::replace(&mut self.header_written, true) {
            for (index, field) in self.schema.fields().iter().enumerate() {
                separate(index, &mut self.line);
                push_value(field.name(), &mut self.line);
            }
            end_line(&mut self.line, out)?;
        }
        Ok(())
    }
}

impl ResultWriter for CsvWriter {
    fn write(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        self.header(out)?;
        let cells = Cells::new(batch, &self.schema)?;
        for row in 0..cells.row_count() {
            for column in 0..cells.column_count() {
                separate(column, &mut self.line);
                if !cells.is_null(column, row) {
                    self.value.clear();
                    cells.write(column, row, &mut self.value)?;
                    push_value(&self.value, &mut self.line);
                }
            }
            end_line(&mut self.line, out)?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        self.header(out)
    }
}

fn separate(index: usize, line: &mut String) {
    if index > 0 {
        line.push(',');
    }
}

fn push_value(value: &str, line: &mut String) {
    if value.is_empty() || value.contains(['"', ',', '\n', '\r']) {
        line.push('"');
        line.push_str(&value.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(value);
    }
}

fn end_line(line: &mut String, out: &mut dyn Write) -> Result<()> {
    line.push('\n');
    out.write_all(line.as_bytes())?;
    line.clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::output::{Mode, tests::written};
    use sinterdb::arrow::array::*;
    use std::sync::Arc;

    #[test]
    fn null_is_empty_and_an_empty_string_is_quoted() {
        let text = StringArray::from(vec![None, Some(""), Some("a,\"b\"\nc"), Some(" x ")]);
        let number = Int64Array::from(vec![Some(1), None, Some(3), Some(4)]);
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("a,b", Arc::new(text) as ArrayRef, true),
            ("n", Arc::new(number) as ArrayRef, true),
        ]);
        assert_eq!(written(Mode::Csv, &[batch.unwrap()]), "\"a,b\",n\n,1\n\"\",\n\"a,\"\"b\"\"\nc\",3\n x ,4\n");
    }

    #[test]
    fn the_header_is_written_once_and_even_without_rows() {
        let batch = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
        assert_eq!(written(Mode::Csv, &[batch.slice(0, 0)]), "n\n");
        assert_eq!(written(Mode::Csv, &[batch.clone(), batch]), "n\n1\n1\n");
    }
}
