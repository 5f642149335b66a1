//! SinterDB as applications use it: SQL with parameters, outside of a transaction. The text is parsed at each call.

use super::{Body, Client, Engine, Level, Row};
use crate::Failure;
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use sinterdb::{Config, Connection, Database, Synchronous, Value, params};
use std::path::Path;

struct Sinter(Database);

pub(super) fn open(folder: &Path, level: Level) -> Result<Box<dyn Engine>, Failure> {
    let level = match level {
        Level::Full => Synchronous::Full,
        Level::Normal => Synchronous::Normal,
        Level::Off => Synchronous::Off,
    };
    Ok(Box::new(Sinter(Database::open_with(folder.join("t.sinter"), Config::builder().synchronous(level))?)))
}

impl Engine for Sinter {
    fn fill(&self, rows: &[Row]) -> Result<(), Failure> {
        let connection = self.0.connect();
        connection
            .execute("CREATE TABLE t (id BIGINT NOT NULL, amount BIGINT NOT NULL, text VARCHAR NOT NULL)", &[])?;
        let values = |row: &Row| -> Vec<Value> { params![row.key, row.amount, row.text.clone()].to_vec() };
        connection.execute_many("INSERT INTO t VALUES (?, ?, ?)", &rows.iter().map(values).collect::<Vec<_>>())?;
        Ok(())
    }

    fn with_client(&self, body: &mut Body<'_>) -> Result<(), Failure> {
        body(&mut self.0.connect())
    }

    fn totals(&self) -> Result<(i64, i64), Failure> {
        let totals = self.0.connect().sql("SELECT count(*), CAST(sum(amount) AS BIGINT) FROM t")?.collect()?;
        let number = |column: usize| totals[0].column(column).as_primitive::<Int64Type>().value(0);
        Ok((number(0), number(1)))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.close()?)
    }
}

impl Client for Connection {
    fn insert(&mut self, row: &Row) -> Result<(), Failure> {
        self.execute("INSERT INTO t VALUES (?, ?, ?)", params![row.key, row.amount, &row.text[..]])?;
        Ok(())
    }

    fn update(&mut self, row: &Row) -> Result<(), Failure> {
        let sql = "UPDATE t SET amount = ?, text = ? WHERE id = ?";
        match self.execute(sql, params![row.amount, &row.text[..], row.key])? {
            1 => Ok(()),
            rows => Err(format!("{rows} rows with the key {}", row.key).into()),
        }
    }
}
