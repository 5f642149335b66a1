//! EXPLAIN's answer: plans are trees over many lines, which no table cell can hold.

use super::{Cells, ResultWriter};
use crate::failure::Result;
use sinterdb::arrow::array::RecordBatch;
use sinterdb::arrow::datatypes::Schema;
use std::io::Write;

/// The columns are those of EXPLAIN.
pub(super) fn is_plan(schema: &Schema) -> bool {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    names == ["plan_type", "plan"]
}

/// Writes each plan as text below its heading.
pub(super) struct PlanWriter;

impl ResultWriter for PlanWriter {
    fn write(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        let schema = batch.schema();
        let cells = Cells::new(batch, &schema)?;
        for row in 0..cells.row_count() {
            writeln!(out, "{}:", cells.text(0, row)?)?;
            for line in cells.text(1, row)?.lines() {
                writeln!(out, "  {line}")?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}
