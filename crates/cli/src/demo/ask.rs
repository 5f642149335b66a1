//! One question: its SQL, its answer, and what the answer took.

use super::Stage;
use super::queries::Question;
use super::report::bytes;
use super::touched::touched;
use crate::failure::Result;
use crate::highlight::coloured;
use crate::lex::Inside;
use crate::output::{Frame, Grid, columns, rows_of};
use crate::progress::Watch;
use crate::session::seconds;
use console::style;
use std::io::Write;
use std::time::Instant;

/// Asks and prints. The counters come from a second run under EXPLAIN ANALYZE, so that counting costs the first no time.
pub(super) fn print(stage: &mut Stage, question: &Question) -> Result<()> {
    writeln!(stage.out, "\n{}", style(question.title).bold())?;
    let sql = if stage.screen.colour { coloured(question.sql, &Inside::Nothing) } else { question.sql.to_owned() };
    for line in sql.lines() {
        writeln!(stage.out, "  {line}")?;
    }
    writeln!(stage.out)?;

    let watch = stage.session.progress.then(|| Watch::start(&stage.session.connection));
    let started = Instant::now();
    let answer = stage.session.rows(question.sql)?;
    let took = started.elapsed();
    let touched = touched(&stage.session.rows(&format!("EXPLAIN ANALYZE {}", question.sql))?)?;
    drop(watch);

    let schema = answer[0].schema();
    let mut grid = Grid { columns: columns(&schema), rows: Vec::new(), gap_before: None };
    grid.columns.iter_mut().for_each(|column| column.type_name.clear());
    for batch in &answer {
        grid.rows.extend(rows_of(batch, &schema)?);
    }
    grid.write(Frame::Open, stage.screen.width, stage.screen.colour, &mut stage.out)?;

    let mut took = format!("  {}", seconds(took));
    if let Some(touched) = touched {
        took += &format!("; {} read compressed, {} decoded", bytes(touched.compressed), bytes(touched.decoded));
    }
    writeln!(stage.out, "{}", style(took).green())?;
    Ok(())
}
