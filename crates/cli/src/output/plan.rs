//! EXPLAIN's answer: a tree of lines, which reads better without a frame.

use super::{Cells, ResultWriter};
use crate::failure::Result;
use sinterdb::arrow::array::RecordBatch;
use sinterdb::arrow::datatypes::{DataType, Schema};
use std::io::Write;

/// The one column is that of EXPLAIN.
pub(super) fn is_plan(schema: &Schema) -> bool {
    matches!(schema.fields().as_ref(), [field] if field.name() == "plan" && *field.data_type() == DataType::Utf8)
}

/// Writes each row as a line of text.
pub(super) struct PlanWriter;

impl ResultWriter for PlanWriter {
    fn write(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        let schema = batch.schema();
        let cells = Cells::new(batch, &schema)?;
        for row in 0..cells.row_count() {
            writeln!(out, "{}", cells.text(0, row)?)?;
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}
