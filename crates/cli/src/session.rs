//! A connection and how its user wants to see results.

use crate::failure::Result;
use crate::interrupt::Signals;
use crate::notice;
use crate::output::{Mode, Screen, counted};
use crate::progress::Watch;
use console::style;
use sinterdb::arrow::array::RecordBatch;
use sinterdb::{Connection, Error, Outcome, Query, Statement};
use std::io::{BufWriter, Write};
use std::time::{Duration, Instant};

/// What the shell knows between statements.
pub(crate) struct Session {
    /// The way into the database.
    pub(crate) connection: Connection,
    /// How results are written.
    pub(crate) mode: Mode,
    /// Say after each statement how long it took.
    pub(crate) timer: bool,
    /// Show a bar while a statement runs.
    pub(crate) progress: bool,
    /// Somebody types: say what commands did.
    pub(crate) interactive: bool,
    signals: Signals,
}

impl Session {
    /// A session with nothing special switched on.
    pub(crate) fn new(connection: Connection, mode: Mode) -> Session {
        let signals = Signals::install(connection.interrupt());
        Session { connection, mode, timer: false, progress: false, interactive: false, signals }
    }

    /// Runs statements and prints what they give.
    ///
    /// # Errors
    /// The first error; what ran before it stays.
    pub(crate) fn run(&self, sql: &str) -> Result<()> {
        let statements = self.connection.statements(sql)?;
        statements.iter().try_for_each(|statement| self.run_statement(statement))
    }

    fn run_statement(&self, statement: &Statement) -> Result<()> {
        let _running = self.signals.running();
        let watch = self.progress.then(|| Watch::start(&self.connection));
        let started = Instant::now();
        match self.connection.run(statement, &[])? {
            Outcome::Rows(query) => self.print(query, watch)?,
            Outcome::Done { tag, rows, notes } => {
                drop(watch);
                notes.iter().for_each(|note| notice::note(note));
                if self.interactive {
                    let rows = rows.map_or(String::new(), |rows| format!(", {}", counted(rows as usize, "row")));
                    writeln!(std::io::stdout(), "{}", style(format!("{tag}{rows}")).dim())?;
                }
            }
        }
        if self.timer {
            notice::time(&seconds(started.elapsed()));
        }
        Ok(())
    }

    /// Runs a query and writes its rows as they come. The progress bar goes before the first character is written.
    fn print(&self, query: Query, watch: Option<Watch>) -> Result<()> {
        let mut watch = watch;
        let mut out = BufWriter::new(std::io::stdout().lock());
        let mut batches = query.stream()?;
        let mut writer = self.mode.writer(&batches.schema(), Screen::stdout());
        for batch in batches.by_ref() {
            let batch = batch?;
            if self.signals.is_interrupted() {
                return Err(Error::Cancelled.into());
            }
            if self.mode != Mode::Table {
                watch.take();
            }
            writer.write(&batch, &mut out)?;
        }
        drop(watch);
        writer.finish(&mut out)?;
        out.flush()?;
        batches.notes().iter().for_each(|note| notice::note(note));
        Ok(())
    }

    /// Runs a query of the shell's own and returns its rows.
    pub(crate) fn rows(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        let _running = self.signals.running();
        Ok(self.connection.sql(sql)?.collect()?)
    }
}

/// `0.012 s`, `73 s`: three digits that mean something.
pub(crate) fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        0.0..0.1 => format!("{:.1} ms", seconds * 1e3),
        0.1..1.0 => format!("{:.0} ms", seconds * 1e3),
        1.0..100.0 => format!("{seconds:.2} s"),
        _ => format!("{seconds:.0} s"),
    }
}

/// A name as SQL takes it: in quotes where it is not plain.
pub(crate) fn quote_name(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !crate::words::KEYWORDS.contains(&name.to_ascii_uppercase().as_str());
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A string as SQL takes it.
pub(crate) fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_only_where_they_must_be() {
        assert_eq!(quote_name("l_orderkey"), "l_orderkey");
        assert_eq!(quote_name("Order"), "\"Order\"");
        assert_eq!(quote_name("order"), "\"order\"");
        assert_eq!(quote_name("a\"b"), "\"a\"\"b\"");
        assert_eq!(quote_text("it's"), "'it''s'");
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        assert_eq!(seconds(Duration::from_micros(1234)), "1.2 ms");
        assert_eq!(seconds(Duration::from_millis(123)), "123 ms");
        assert_eq!(seconds(Duration::from_millis(12_345)), "12.35 s");
    }
}
