//! One `column = value` per line, for rows that are wider than a screen.

use super::{Cells, ResultWriter, sanitize};
use crate::failure::Result;
use console::measure_text_width;
use sinterdb::arrow::array::RecordBatch;
use sinterdb::arrow::datatypes::SchemaRef;
use std::io::Write;

/// Streams rows.
pub(super) struct LineWriter {
    schema: SchemaRef,
    /// Padded on the left, so that the equal signs stand below each other.
    labels: Vec<String>,
    rows_written: bool,
}

impl LineWriter {
    pub(super) fn new(schema: &SchemaRef) -> LineWriter {
        let names: Vec<_> = schema.fields().iter().map(|field| sanitize(field.name())).collect();
        let width = names.iter().map(|name| measure_text_width(name)).max().unwrap_or(0);
        let labels =
            names.iter().map(|name| format!("{}{name}", " ".repeat(width - measure_text_width(name)))).collect();
        LineWriter { schema: schema.clone(), labels, rows_written: false }
    }
}

impl ResultWriter for LineWriter {
    fn write(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        let cells = Cells::new(batch, &self.schema)?;
        for row in 0..cells.row_count() {
            if std::mem::replace(&mut self.rows_written, true) {
                writeln!(out)?;
            }
            for (column, label) in self.labels.iter().enumerate() {
                writeln!(out, "{label} = {}", sanitize(&cells.text(column, row)?))?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::output::{Mode, tests::written};
    use sinterdb::arrow::array::*;
    use std::sync::Arc;

    #[test]
    fn equal_signs_stand_below_each_other() {
        let batch = RecordBatch::try_from_iter([
            ("a", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef),
            ("long", Arc::new(StringArray::from(vec!["x\ny", "z"])) as ArrayRef),
        ]);
        assert_eq!(written(Mode::Line, &[batch.unwrap()]), "   a = 1\nlong = x\\ny\n\n   a = 2\nlong = z\n");
    }
}
