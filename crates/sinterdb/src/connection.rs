//! Statements in, Arrow out.

use crate::database::Open;
use crate::{AnyKv, AnyLoad, Interrupt, Key, Kv, KvOptions, Load, Outcome, Progress, Query, Result, Statement, Value};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use sinter_sql::Session;
use std::sync::Arc;

/// One user's way into a database. `Sync`: several threads may use it, each statement on its own snapshot.
#[derive(Clone, Debug)]
pub struct Connection {
    session: Arc<Session>,
    /// Keeps the database open.
    _open: Arc<Open>,
}

impl Connection {
    pub(crate) fn new(session: Session, open: Arc<Open>) -> Connection {
        Connection { session: Arc::new(session), _open: open }
    }

    /// Runs one statement to its end and returns the number of rows it changed (0 for those that change none; the
    /// rows of a query are thrown away).
    ///
    /// # Errors
    /// [`crate::Error`], with nothing half done.
    pub fn execute(&self, sql: &str, params: &[Value]) -> Result<u64> {
        match self.session.query(sql, params)? {
            Outcome::Done { rows, .. } => Ok(rows.unwrap_or(0)),
            Outcome::Rows(query) => query.stream()?.try_for_each(|batch| batch.map(drop)).map(|()| 0),
        }
    }

    /// Runs one statement once per row of parameters; an INSERT of plain values in one commit. Returns the rows
    /// changed.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn execute_many(&self, sql: &str, rows: &[Vec<Value>]) -> Result<u64> {
        self.session.run_many(sql, rows)
    }

    /// Plans one query. Commands (INSERT, CREATE, ...) run at once; their result has no rows, but may have notes
    /// ([`crate::Batches::notes`]).
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
        match self.session.query(sql, params)? {
            Outcome::Rows(query) => Ok(query),
            Outcome::Done { notes, .. } => Ok(Query::empty(notes)),
        }
    }

    /// Parses a script into its statements.
    ///
    /// # Errors
    /// [`crate::Error::Sql`] with line and column.
    pub fn statements(&self, script: &str) -> Result<Vec<Statement>> {
        sinter_sql::parse(script)
    }

    /// Runs one statement of a script.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn run(&self, statement: &Statement, params: &[Value]) -> Result<Outcome> {
        self.session.run(statement, params)
    }

    /// Appends record batches to a table in one commit; columns by name, NULL where one is missing. Returns the rows
    /// appended.
    ///
    /// # Errors
    /// [`crate::Error::Data`] where types do not fit; then nothing is kept.
    pub fn append(&self, table: &str, batches: &mut dyn Iterator<Item = Result<RecordBatch>>) -> Result<u64> {
        self.session.append(table, batches)
    }

    /// Begins a transaction on this connection, as BEGIN does; [`crate::Database::begin`] gives one of its own.
    ///
    /// # Errors
    /// [`crate::Error::Sql`] when one is under way already.
    pub fn begin(&self, is_read_only: bool) -> Result<()> {
        self.session.begin(is_read_only)
    }

    /// Ends the transaction: all of it is durable and visible then.
    ///
    /// # Errors
    /// As [`crate::Transaction::commit`]; [`crate::Error::Sql`] when there is none.
    pub fn commit(&self) -> Result<()> {
        self.session.commit()
    }

    /// Ends the transaction as if it had never begun.
    ///
    /// # Errors
    /// [`crate::Error::Sql`] when there is none.
    pub fn roll_back(&self) -> Result<()> {
        self.session.roll_back()
    }

    /// Whether a transaction is under way.
    pub fn in_transaction(&self) -> bool {
        self.session.in_transaction()
    }

    /// Opens the key-value tree of that name, whose keys are `K`; makes one where there is none.
    ///
    /// # Errors
    /// [`crate::Error::Sql`] where a table or view has the name, or the tree has other keys.
    pub fn kv<K: Key + ?Sized>(&self, name: &str) -> Result<Kv<K>> {
        self.kv_with(name, KvOptions::default())
    }

    /// [`Connection::kv`] with what its values are, and in which codec its keys.
    ///
    /// # Errors
    /// As [`Connection::kv`], and where the tree is another than `options` say.
    pub fn kv_with<K: Key + ?Sized>(&self, name: &str, options: KvOptions) -> Result<Kv<K>> {
        Kv::open(self.clone(), name, options)
    }

    /// Begins to load a key-value tree of that name, which is not there yet, with keys in their order.
    ///
    /// # Errors
    /// [`crate::Error::Sql`]: something has the name already.
    pub fn load_kv<K: Key + ?Sized>(&self, name: &str, options: KvOptions) -> Result<Load<K>> {
        Load::begin(self.clone(), name, options)
    }

    /// [`Connection::load_kv`] for who learns the types only when the program runs.
    ///
    /// # Errors
    /// As [`Connection::load_kv`].
    pub fn load_any_kv(&self, name: &str, options: &KvOptions) -> Result<AnyLoad> {
        AnyLoad::begin(self.clone(), name, options)
    }

    /// [`Connection::kv_with`] for who learns the types only when the program runs.
    ///
    /// # Errors
    /// As [`Connection::kv_with`].
    pub fn any_kv(&self, name: &str, options: &KvOptions) -> Result<AnyKv> {
        AnyKv::open(self.clone(), name, options)
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Makes Arrow data visible under a name, to this connection's statements; a table of the catalog wins over it.
    ///
    /// # Errors
    /// [`crate::Error::Data`] where batches do not fit the schema.
    pub fn register(&self, name: &str, schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<()> {
        self.session.register(name, schema, batches)
    }

    /// Forgets a registered name; false when there was none.
    pub fn unregister(&self, name: &str) -> bool {
        self.session.unregister(name)
    }

    /// Names that statements can refer to: (schema, table), sorted. For completion.
    pub fn table_names(&self) -> Vec<(String, String)> {
        self.session.table_names()
    }

    /// Names of the columns of a table; empty when there is no such table. For completion.
    pub fn column_names(&self, table: &str) -> Vec<String> {
        self.session.column_names(table)
    }

    /// A handle that stops this connection's running statements.
    pub fn interrupt(&self) -> Interrupt {
        self.session.interrupt()
    }

    /// How far the running statement is; `None` when nothing runs that can tell.
    pub fn progress(&self) -> Option<Progress> {
        self.session.progress()
    }
}
