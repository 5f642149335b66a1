//! SQLite with a write-ahead log, through rusqlite: each client has a connection and prepared statements of its own.
//!
//! `synchronous = FULL` syncs the log at each commit, `NORMAL` at checkpoints only, `OFF` never.
//! <https://www.sqlite.org/pragma.html#pragma_synchronous>

use super::{Body, Client, Engine, Level, Row};
use crate::Failure;
use rusqlite::{Connection, Statement, params};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A writer that finds another one at work tries again for so long.
const PATIENCE: Duration = Duration::from_secs(60);

struct Sqlite {
    path: PathBuf,
    level: Level,
}

struct OfOne<'a> {
    insert: Statement<'a>,
    update: Statement<'a>,
}

pub(super) fn open(folder: &Path, level: Level) -> Result<Box<dyn Engine>, Failure> {
    Ok(Box::new(Sqlite { path: folder.join("t.sqlite"), level }))
}

impl Sqlite {
    fn connect(&self) -> Result<Connection, Failure> {
        let connection = Connection::open(&self.path)?;
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        let level = match self.level {
            Level::Full => "FULL",
            Level::Normal => "NORMAL",
            Level::Off => "OFF",
        };
        connection.pragma_update(None, "synchronous", level)?;
        Ok(connection)
    }
}

impl Engine for Sqlite {
    fn fill(&self, rows: &[Row]) -> Result<(), Failure> {
        let mut connection = self.connect()?;
        connection.execute_batch(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL, text TEXT NOT NULL) STRICT",
        )?;
        let transaction = connection.transaction()?;
        for row in rows {
            transaction.execute("INSERT INTO t VALUES (?, ?, ?)", params![row.key, row.amount, row.text])?;
        }
        Ok(transaction.commit()?)
    }

    fn with_client(&self, body: &mut Body<'_>) -> Result<(), Failure> {
        let connection = self.connect()?;
        body(&mut OfOne {
            insert: connection.prepare("INSERT INTO t VALUES (?, ?, ?)")?,
            update: connection.prepare("UPDATE t SET amount = ?, text = ? WHERE id = ?")?,
        })
    }

    fn totals(&self) -> Result<(i64, i64), Failure> {
        let totals = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        Ok(self.connect()?.query_row("SELECT count(*), sum(amount) FROM t", [], totals)?)
    }

    /// The last connection of a process has made the checkpoint when it went.
    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Client for OfOne<'_> {
    fn insert(&mut self, row: &Row) -> Result<(), Failure> {
        self.insert.execute(params![row.key, row.amount, row.text])?;
        Ok(())
    }

    fn update(&mut self, row: &Row) -> Result<(), Failure> {
        match self.update.execute(params![row.amount, row.text, row.key])? {
            1 => Ok(()),
            rows => Err(format!("{rows} rows with the key {}", row.key).into()),
        }
    }
}
