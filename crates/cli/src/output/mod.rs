//! Results for people and for programs: one file per format.
//!
//! A writer takes record batches as they come, so `csv`, `json`, `line` and `markdown` need no more memory than a batch,
//! however long the result is; `table` keeps only the rows that it will show.

mod cell;
mod csv;
mod grid;
mod json;
mod line;
mod markdown;
mod plan;
mod table;
pub(crate) mod types;

use crate::failure::Result;
use clap::ValueEnum;
use sinterdb::arrow::array::RecordBatch;
use sinterdb::arrow::datatypes::SchemaRef;
use std::io::Write;

pub(crate) use cell::{Cells, sanitize};
pub(crate) use grid::{Align, Column, Frame, Grid};
pub(crate) use table::{columns, counted, grouped, rows_of};

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Fitted to the terminal; the middle of long results is left out, and said so.
    #[default]
    Table,
    /// Every row and column, in a frame.
    Box,
    /// RFC 4180 with a header line; NULL is empty, an empty string is `""`.
    Csv,
    /// An array of objects, one per line; whole numbers and decimals keep all their digits.
    Json,
    /// A table for documents.
    Markdown,
    /// One `column = value` per line, a blank line between rows.
    Line,
}

/// What results are written onto.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Screen {
    /// Characters per line; `None` when it is no terminal.
    pub(crate) width: Option<usize>,
    /// Escape sequences for colours are welcome.
    pub(crate) colour: bool,
}

impl Screen {
    /// Standard output, as it is now.
    pub(crate) fn stdout() -> Screen {
        let width = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns).max(20));
        Screen { width, colour: console::colors_enabled() }
    }
}

/// Writes one result.
pub(crate) trait ResultWriter {
    /// Takes the next rows.
    fn write(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()>;

    /// Writes what is left once all rows are in.
    fn finish(&mut self, out: &mut dyn Write) -> Result<()>;
}

impl Mode {
    /// A writer for one result with these columns.
    pub(crate) fn writer(self, schema: &SchemaRef, screen: Screen) -> Box<dyn ResultWriter> {
        match self {
            Mode::Table if plan::is_plan(schema) => Box::new(plan::PlanWriter),
            Mode::Table => Box::new(table::TableWriter::new(schema.clone(), screen)),
            Mode::Box => Box::new(table::BoxWriter::new(schema.clone(), screen)),
            Mode::Csv => Box::new(csv::CsvWriter::new(schema.clone())),
            Mode::Json => Box::new(json::JsonWriter::new()),
            Mode::Markdown => Box::new(markdown::MarkdownWriter::new(schema.clone())),
            Mode::Line => Box::new(line::LineWriter::new(schema)),
        }
    }

    /// The name in `.mode`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Table => "table",
            Mode::Box => "box",
            Mode::Csv => "csv",
            Mode::Json => "json",
            Mode::Markdown => "markdown",
            Mode::Line => "line",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a mode makes of batches, without a terminal.
    pub(super) fn written(mode: Mode, batches: &[RecordBatch]) -> String {
        written_on(mode, batches, Screen::default())
    }

    /// What a mode makes of batches on a screen.
    pub(super) fn written_on(mode: Mode, batches: &[RecordBatch], screen: Screen) -> String {
        let mut out = Vec::new();
        let mut writer = mode.writer(&batches[0].schema(), screen);
        for batch in batches {
            writer.write(batch, &mut out).unwrap();
        }
        writer.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }
}
