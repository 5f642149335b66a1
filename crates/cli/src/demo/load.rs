//! Tables made and filled through the front door.

use super::Stage;
use super::report::{self, bytes};
use crate::failure::Result;
use crate::output::types::sql_type;
use crate::output::{Align, Column, Frame, Grid, grouped};
use crate::progress::style;
use crate::session::{Session, quote_name, seconds};
use indicatif::{ProgressBar, ProgressDrawTarget};
use sinterdb::arrow::array::RecordBatch;
use sinterdb::arrow::datatypes::SchemaRef;
use std::time::{Duration, Instant};

/// A table to load.
pub(super) struct Source {
    pub(super) name: &'static str,
    pub(super) schema: SchemaRef,
    /// About how many rows will come, for the progress bar.
    pub(super) rows: u64,
    pub(super) batches: Box<dyn Iterator<Item = sinterdb::Result<RecordBatch>>>,
}

/// A table that is there.
pub(super) struct Loaded {
    name: &'static str,
    pub(super) rows: u64,
    took: Duration,
}

/// Loads tables one after the other, each in one commit.
pub(super) fn load(session: &Session, sources: Vec<Source>) -> Result<Vec<Loaded>> {
    sources.into_iter().map(|source| load_one(session, source)).collect()
}

fn load_one(session: &Session, source: Source) -> Result<Loaded> {
    let started = Instant::now();
    let columns = source.schema.fields().iter();
    let columns: Vec<String> =
        columns.map(|field| format!("{} {}", quote_name(field.name()), sql_type(field))).collect();
    session.connection.execute(&format!("CREATE TABLE {} ({})", source.name, columns.join(", ")), &[])?;

    let bar = bar(session, source.name, source.rows);
    let count = |batch: &sinterdb::Result<RecordBatch>| {
        bar.inc(batch.as_ref().map_or(0, |batch| batch.num_rows() as u64));
    };
    let rows = session.connection.append(source.name, &mut source.batches.inspect(count));
    bar.finish_and_clear();
    Ok(Loaded { name: source.name, rows: rows?, took: started.elapsed() })
}

fn bar(session: &Session, name: &str, rows: u64) -> ProgressBar {
    let target = if session.progress { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(rows), target);
    bar.set_style(style("  {msg:10} {bar:30.cyan/dim} {human_pos} of {human_len} rows {elapsed:.dim}"));
    bar.set_message(name.to_owned());
    bar
}

/// One line per table: rows, bytes before and after, time.
pub(super) fn print(stage: &mut Stage, loaded: &[Loaded]) -> Result<()> {
    let right = |name: &str| Column { name: name.into(), type_name: String::new(), align: Align::Right };
    let left = |name: &str| Column { name: name.into(), type_name: String::new(), align: Align::Left };
    let columns = vec![left("table"), right("rows"), right("plain"), right("pressed"), right("ratio"), right("time")];
    let mut rows = Vec::new();
    let (mut row_count, mut plain, mut pressed, mut took) = (0, 0, 0, Duration::ZERO);
    let mut line = |name: &str, rows_in: u64, plain: u64, pressed: u64, took: Duration| {
        let ratio = report::ratio(plain, pressed);
        let values = [name.into(), grouped(rows_in), bytes(plain), bytes(pressed), ratio, seconds(took)];
        rows.push(values.map(Some).to_vec());
    };
    for table in loaded {
        let costs = report::costs(&stage.session, table.name)?;
        let table_plain = costs.iter().map(|cost| cost.plain_bytes).sum();
        let table_pressed = costs.iter().map(|cost| cost.bytes).sum();
        line(table.name, table.rows, table_plain, table_pressed, table.took);
        row_count += table.rows;
        plain += table_plain;
        pressed += table_pressed;
        took += table.took;
    }
    line("total", row_count, plain, pressed, took);
    let grid = Grid { columns, rows, gap_before: None };
    grid.write(Frame::Open, stage.screen.width, stage.screen.colour, &mut stage.out)?;
    Ok(())
}
