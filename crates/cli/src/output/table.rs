//! The readable form: a frame, types below the names, numbers right, and the count below.

use super::grid::{Align, Column, Frame, Grid, Value};
use super::types::{is_number, sql_type};
use super::{Cells, ResultWriter, Screen, sanitize};
use crate::failure::Result;
use console::Style;
use sinterdb::arrow::array::RecordBatch;
use sinterdb::arrow::datatypes::SchemaRef;
use std::collections::VecDeque;
use std::io::Write;

/// Rows shown on a terminal, half from the start and half from the end.
const ROWS_ON_TERMINAL: usize = 40;
/// Rows shown elsewhere. All rows must be in memory to know the widths; formats that stream have no limit.
const ROWS_ELSEWHERE: usize = 10_000;
/// [`BoxWriter`] shows all rows, and starts a new frame after so many.
const ROWS_PER_BOX: usize = 10_000;

/// Shows the first and the last rows, fitted to the terminal.
pub(super) struct TableWriter {
    schema: SchemaRef,
    screen: Screen,
    rows_shown_max: usize,
    row_count: usize,
    head: Vec<Vec<Value>>,
    /// Batches that hold the last rows seen, sliced so that none is kept whose rows will not be shown.
    tail: VecDeque<RecordBatch>,
    tail_rows: usize,
}

impl TableWriter {
    pub(super) fn new(schema: SchemaRef, screen: Screen) -> TableWriter {
        let rows_shown_max = if screen.width.is_some() { ROWS_ON_TERMINAL } else { ROWS_ELSEWHERE };
        let (head, tail) = (Vec::new(), VecDeque::new());
        TableWriter { schema, screen, rows_shown_max, row_count: 0, head, tail, tail_rows: 0 }
    }

    /// Keeps the last `rows_shown_max / 2` rows, and a few more while all could still be shown.
    fn keep_tail(&mut self, batch: RecordBatch) {
        self.tail_rows += batch.num_rows();
        self.tail.push_back(batch);
        let half = self.rows_shown_max / 2;
        while let Some(first) = self.tail.front().map(RecordBatch::num_rows)
            && self.tail_rows - first >= half
        {
            self.tail.pop_front();
            self.tail_rows -= first;
        }
    }
}

impl ResultWriter for TableWriter {
    fn write(&mut self, batch: &RecordBatch, _out: &mut dyn Write) -> Result<()> {
        self.row_count += batch.num_rows();
        let head_rows = (self.rows_shown_max / 2 - self.head.len()).min(batch.num_rows());
        self.head.extend(rows_of(&batch.slice(0, head_rows), &self.schema)?);
        if batch.num_rows() > head_rows {
            self.keep_tail(batch.slice(head_rows, batch.num_rows() - head_rows));
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        let mut rows = std::mem::take(&mut self.head);
        let mut tail = Vec::new();
        for batch in &self.tail {
            tail.extend(rows_of(batch, &self.schema)?);
        }
        let left_out = self.row_count > self.rows_shown_max;
        let gap_before = left_out.then_some(rows.len());
        let tail_skipped = if left_out { tail.len().saturating_sub(self.rows_shown_max / 2) } else { 0 };
        rows.extend(tail.into_iter().skip(tail_skipped));
        let rows_shown = rows.len();

        let grid = Grid { columns: columns(&self.schema), rows, gap_before };
        let columns_shown = grid.write(Frame::Full, self.screen.width, self.screen.colour, out)?;
        let footer = footer((self.row_count, rows_shown), (self.schema.fields().len(), columns_shown));
        writeln!(out, "{}", Style::new().dim().force_styling(self.screen.colour).apply_to(footer))?;
        Ok(())
    }
}

/// `336,776 rows (40 shown), 19 columns (8 shown)`.
fn footer((rows, rows_shown): (usize, usize), (columns, columns_shown): (usize, usize)) -> String {
    let mut footer = counted(rows, "row");
    if rows_shown < rows {
        footer += &format!(" ({} shown)", grouped(rows_shown as u64));
    }
    if columns_shown < columns {
        footer += &format!(", {} ({columns_shown} shown)", counted(columns, "column"));
    }
    footer
}

/// `1 row`, `2,000 rows`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// Digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Shows everything, in frames of up to [`ROWS_PER_BOX`] rows.
pub(super) struct BoxWriter {
    schema: SchemaRef,
    screen: Screen,
    rows: Vec<Vec<Value>>,
    written: bool,
}

impl BoxWriter {
    pub(super) fn new(schema: SchemaRef, screen: Screen) -> BoxWriter {
        BoxWriter { schema, screen, rows: Vec::new(), written: false }
    }

    fn write_box(&mut self, rows: Vec<Vec<Value>>, out: &mut dyn Write) -> Result<()> {
        self.written = true;
        let grid = Grid { columns: columns(&self.schema), rows, gap_before: None };
        grid.write(Frame::Full, None, self.screen.colour, out)?;
        Ok(())
    }
}

impl ResultWriter for BoxWriter {
    fn write(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        self.rows.extend(rows_of(batch, &self.schema)?);
        while self.rows.len() > ROWS_PER_BOX {
            let rest = self.rows.split_off(ROWS_PER_BOX);
            let rows = std::mem::replace(&mut self.rows, rest);
            self.write_box(rows, out)?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        if !rows.is_empty() || !self.written {
            self.write_box(rows, out)?;
        }
        Ok(())
    }
}

/// Headings with the names of the types.
pub(crate) fn columns(schema: &SchemaRef) -> Vec<Column> {
    let column = |field: &sinterdb::arrow::datatypes::FieldRef| Column {
        name: sanitize(field.name()).into_owned(),
        type_name: sql_type(field),
        align: if is_number(field.data_type()) { Align::Right } else { Align::Left },
    };
    schema.fields().iter().map(column).collect()
}

/// The values of a batch as text without control characters.
pub(crate) fn rows_of(batch: &RecordBatch, schema: &SchemaRef) -> Result<Vec<Vec<Value>>> {
    let cells = Cells::new(batch, schema)?;
    let value = |column: usize, row: usize| -> Result<Value> {
        if cells.is_null(column, row) {
            return Ok(None);
        }
        Ok(Some(sanitize(&cells.text(column, row)?).into_owned()))
    };
    (0..cells.row_count()).map(|row| (0..cells.column_count()).map(|column| value(column, row)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Mode;
    use crate::output::tests::{written, written_on};
    use sinterdb::arrow::array::*;
    use std::sync::Arc;

    fn numbers(count: i64) -> RecordBatch {
        let numbers: ArrayRef = Arc::new((0..count).collect::<Int64Array>());
        RecordBatch::try_from_iter([("n", numbers)]).unwrap()
    }

    #[test]
    fn names_types_values_and_the_count() {
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("name", Arc::new(StringArray::from(vec![Some("é"), None])) as ArrayRef, true),
            ("n", Arc::new(Int32Array::from(vec![1, -20])) as ArrayRef, true),
        ]);
        let expected = "\
┌─────────┬─────────┐
│ name    │       n │
│ varchar │ integer │
├─────────┼─────────┤
│ é       │       1 │
│ NULL    │     -20 │
└─────────┴─────────┘
2 rows
";
        assert_eq!(written(Mode::Table, &[batch.unwrap()]), expected);
    }

    #[test]
    fn long_results_show_their_two_ends_on_a_terminal() {
        let screen = Screen { width: Some(80), colour: false };
        for batches in [vec![numbers(1000)], numbers_in_slices(1000, 7), numbers_in_slices(1000, 1)] {
            let text = written_on(Mode::Table, &batches, screen);
            let values: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
            assert_eq!(values[0..2], ["n", "bigint"]);
            assert_eq!(values[2], "0");
            assert_eq!(values[21..24], ["19", "⋮", "980"]);
            assert_eq!(values[43], "rows");
            assert!(text.ends_with("1,000 rows (40 shown)\n"), "{text}");
        }
    }

    #[test]
    fn results_that_just_fit_are_shown_whole() {
        let screen = Screen { width: Some(80), colour: false };
        for batches in [vec![numbers(40)], numbers_in_slices(40, 3)] {
            let text = written_on(Mode::Table, &batches, screen);
            assert_eq!(text.lines().count(), 4 + 40 + 2);
            assert!(!text.contains('⋮') && text.ends_with("40 rows\n"));
        }
    }

    #[test]
    fn a_box_shows_everything_and_no_result_is_too_long_for_it() {
        let text = written(Mode::Box, &[numbers(25_000)]);
        assert_eq!(text.lines().count(), 25_000 + 3 * 5);
        assert_eq!(written(Mode::Box, &[numbers(0)]).lines().count(), 5);
    }

    #[test]
    fn null_and_headings_are_dimmed_where_colours_are_welcome() {
        let batch = RecordBatch::try_from_iter_with_nullable([(
            "x",
            Arc::new(StringArray::from(vec![None::<&str>])) as ArrayRef,
            true,
        )]);
        let text = written_on(Mode::Table, &[batch.unwrap()], Screen { width: Some(80), colour: true });
        assert!(text.contains("\u{1b}[2mNULL\u{1b}[0m"), "{text:?}");
    }

    #[test]
    fn digits_stand_in_groups() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    fn numbers_in_slices(count: usize, rows: usize) -> Vec<RecordBatch> {
        let all = numbers(count as i64);
        (0..count).step_by(rows).map(|start| all.slice(start, rows.min(count - start))).collect()
    }
}
