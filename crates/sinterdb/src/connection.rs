//! Statements in, Arrow out.

use crate::{Result, Value};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

/// One user's way into a database. `Sync`: several threads may use it, each statement on its own snapshot.
#[derive(Clone, Debug)]
pub struct Connection {}

/// One parsed statement of a script.
#[derive(Clone, Debug)]
pub struct Statement {
    /// As it was written, without the semicolon.
    pub text: String,
}

/// What running a statement gave.
#[derive(Debug)]
pub enum Outcome {
    /// A query, planned and ready to run.
    Rows(Query),
    /// A command that ran; `tag` says what it did (`INSERT`, `CREATE TABLE`), `rows` how many rows it changed.
    Done {
        /// In capitals, as PostgreSQL's command tags.
        tag: String,
        /// Rows changed, where the command changes rows.
        rows: Option<u64>,
        /// Things to tell the user, such as rows skipped by `on_error 'skip'`.
        notes: Vec<String>,
    },
}

/// A planned query. Runs when collected or streamed.
#[derive(Debug)]
pub struct Query {}

/// Record batches of a running query. Dropping it stops the query.
pub struct Batches {}

/// Stops what a connection is running, from any thread.
#[derive(Clone, Debug)]
pub struct Interrupt {}

/// How far the running statement is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// What is going on, such as `reading lineitem.csv`.
    pub label: String,
    /// Units done (bytes or row groups).
    pub done: u64,
    /// Units in all, where known.
    pub total: Option<u64>,
}

impl Connection {
    /// Runs one statement to its end and returns the number of rows it changed (0 for those that change none; the
    /// rows of a query are thrown away).
    ///
    /// # Errors
    /// [`crate::Error`], with nothing half done.
    pub fn execute(&self, sql: &str, params: &[Value]) -> Result<u64> {
        let _ = (sql, params);
        todo!()
    }

    /// Runs one statement once per row of parameters, in one commit; returns the rows changed.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn execute_many(&self, sql: &str, rows: &[Vec<Value>]) -> Result<u64> {
        let _ = (sql, rows);
        todo!()
    }

    /// Plans one query. Commands (INSERT, CREATE, ...) run at once and yield no rows (or their report).
    ///
    /// # Errors
    /// [`crate::Error::Sql`] where the statement cannot be planned.
    pub fn sql(&self, sql: &str) -> Result<Query> {
        self.query(sql, &[])
    }

    /// Like [`Connection::sql`], with parameters for `?` or `$1`.
    ///
    /// # Errors
    /// As [`Connection::sql`].
    pub fn query(&self, sql: &str, params: &[Value]) -> Result<Query> {
        let _ = (sql, params);
        todo!()
    }

    /// Parses a script into its statements.
    ///
    /// # Errors
    /// [`crate::Error::Sql`] with line and column.
    pub fn statements(&self, script: &str) -> Result<Vec<Statement>> {
        let _ = script;
        todo!()
    }

    /// Runs one statement of a script.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn run(&self, statement: &Statement, params: &[Value]) -> Result<Outcome> {
        let _ = (statement, params);
        todo!()
    }

    /// Appends record batches to a table in one commit; columns by name. Returns the rows appended.
    ///
    /// # Errors
    /// [`crate::Error::Data`] where types do not fit; then nothing is kept.
    pub fn append(&self, table: &str, batches: &mut dyn Iterator<Item = Result<RecordBatch>>) -> Result<u64> {
        let _ = (table, batches);
        todo!()
    }

    /// Makes Arrow data visible under a name, to this connection's statements; a name in the catalog wins over it.
    ///
    /// # Errors
    /// [`crate::Error::Data`] for types that we cannot read.
    pub fn register(&self, name: &str, schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<()> {
        let _ = (name, schema, batches);
        todo!()
    }

    /// Forgets a registered name; false when there was none.
    pub fn unregister(&self, name: &str) -> bool {
        let _ = name;
        todo!()
    }

    /// Names that statements can refer to: (schema, table), sorted. For completion.
    pub fn table_names(&self) -> Vec<(String, String)> {
        todo!()
    }

    /// Names of the columns of a table; empty when there is no such table. For completion.
    pub fn column_names(&self, table: &str) -> Vec<String> {
        let _ = table;
        todo!()
    }

    /// A handle that stops this connection's running statements.
    pub fn interrupt(&self) -> Interrupt {
        todo!()
    }

    /// How far the running statement is; `None` when nothing runs that can tell.
    pub fn progress(&self) -> Option<Progress> {
        todo!()
    }
}

impl Interrupt {
    /// Makes running statements end with [`crate::Error::Cancelled`].
    pub fn interrupt(&self) {
        todo!()
    }
}

impl Query {
    /// Names and types of the result.
    pub fn schema(&self) -> SchemaRef {
        todo!()
    }

    /// Runs it and returns all batches (at least one, possibly empty, so that the schema is known).
    ///
    /// # Errors
    /// [`crate::Error`].
    pub fn collect(self) -> Result<Vec<RecordBatch>> {
        todo!()
    }

    /// Runs it and hands out batches as they come.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub fn stream(self) -> Result<Batches> {
        todo!()
    }
}

impl Batches {
    /// Names and types of the result.
    pub fn schema(&self) -> SchemaRef {
        todo!()
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        todo!()
    }
}

impl std::fmt::Debug for Batches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Batches")
    }
}
