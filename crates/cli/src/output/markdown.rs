//! A table for documents, padded so that it can be read before it is rendered.

use super::types::is_number;
use super::{Cells, ResultWriter, sanitize};
use crate::failure::Result;
use console::measure_text_width;
use sinterdb::arrow::array::RecordBatch;
use sinterdb::arrow::datatypes::SchemaRef;
use std::io::Write;

/// Streams rows; columns get the widths of the first batch that has rows, and later rows may stand out.
pub(super) struct MarkdownWriter {
    schema: SchemaRef,
    widths: Vec<usize>,
}

impl MarkdownWriter {
    pub(super) fn new(schema: SchemaRef) -> MarkdownWriter {
        MarkdownWriter { schema, widths: Vec::new() }
    }

    fn header(&mut self, rows: &[Vec<String>], out: &mut dyn Write) -> Result<()> {
        if !self.widths.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = self.schema.fields().iter().map(|field| escape(field.name())).collect();
        let widest = |column: usize, name: &String| {
            let values = rows.iter().map(|row| measure_text_width(&row[column]));
            values.chain([measure_text_width(name), 3]).max().unwrap_or(3)
        };
        self.widths = names.iter().enumerate().map(|(column, name)| widest(column, name)).collect();
        self.row(&names, out)?;
        for (field, width) in self.schema.fields().iter().zip(&self.widths) {
            let colon = if is_number(field.data_type()) { "-:" } else { "--" };
            write!(out, "|{}{colon}", "-".repeat(*width))?;
        }
        writeln!(out, "|")?;
        Ok(())
    }

    fn row(&self, values: &[String], out: &mut dyn Write) -> Result<()> {
        for ((value, width), field) in values.iter().zip(&self.widths).zip(self.schema.fields()) {
            let padding = " ".repeat(width.saturating_sub(measure_text_width(value)));
            if is_number(field.data_type()) {
                write!(out, "| {padding}{value} ")?;
            } else {
                write!(out, "| {value}{padding} ")?;
            }
        }
        writeln!(out, "|")?;
        Ok(())
    }
}

impl ResultWriter for MarkdownWriter {
    fn write(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let schema = self.schema.clone();
        let cells = Cells::new(batch, &schema)?;
        let mut rows = Vec::with_capacity(cells.row_count());
        for row in 0..cells.row_count() {
            let values = (0..cells.column_count()).map(|column| Ok(escape(&cells.text(column, row)?)));
            rows.push(values.collect::<Result<Vec<String>>>()?);
        }
        self.header(&rows, out)?;
        rows.iter().try_for_each(|row| self.row(row, out))
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        self.header(&[], out)
    }
}

/// A bar would end the cell, a line end the row.
fn escape(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| sanitize(line).replace('|', "\\|")).collect();
    lines.join("<br>")
}

#[cfg(test)]
mod tests {
    use crate::output::{Mode, tests::written};
    use sinterdb::arrow::array::*;
    use std::sync::Arc;

    #[test]
    fn numbers_stand_right_and_bars_are_escaped() {
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("name", Arc::new(StringArray::from(vec![Some("a|b"), None])) as ArrayRef, true),
            ("n", Arc::new(Int64Array::from(vec![1, 12345])) as ArrayRef, true),
        ]);
        let expected = "\
| name |     n |
|------|------:|
| a\\|b |     1 |
| NULL | 12345 |
";
        assert_eq!(written(Mode::Markdown, &[batch.unwrap()]), expected);
    }
}
