//! A connection to a database: statements in, outcomes out.

use crate::capsule;
use crate::error::{ProgrammingError, raise};
use crate::frame::Frame;
use crate::from_python;
use crate::kv::{Kv, loaded};
use crate::open::{self, Shared, Wishes};
use crate::outcome::Outcome;
use crate::rows::Rows;
use crate::run::{detached, guard, run};
use pyo3::prelude::*;
use sinterdb::{Interrupt, KeyType, KvOptions, Synchronous, ValueType};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// One user's way into a database. Several threads may use it at once, each statement on its own snapshot.
#[pyclass(frozen, module = "sinterdb._sinterdb")]
pub(crate) struct Connection {
    /// `None` once closed.
    session: Mutex<Option<Session>>,
}

#[derive(Clone)]
struct Session {
    connection: sinterdb::Connection,
    interrupt: Interrupt,
    shared: Arc<Shared>,
}

impl Connection {
    fn session(&self) -> PyResult<Session> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        session.ok_or_else(|| ProgrammingError::new_err("the connection is closed"))
    }

    /// Runs `work` on the connection, away from the interpreter, stopped by Ctrl-C and by [`Connection::interrupt`].
    fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&sinterdb::Connection) -> sinterdb::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        // Not the whole session: a statement that outlives `close` must not hold the file open.
        let Session { connection, interrupt, .. } = self.session()?;
        run(py, || interrupt.interrupt(), move || work(&connection))
    }
}

#[pymethods]
impl Connection {
    /// Opens a file, or memory where `path` is None.
    #[staticmethod]
    #[pyo3(signature = (path, *, memory_limit_bytes, threads, synchronous, read_only, create))]
    fn open(
        py: Python<'_>,
        path: Option<PathBuf>,
        memory_limit_bytes: Option<u64>,
        threads: Option<usize>,
        synchronous: &str,
        read_only: bool,
        create: bool,
    ) -> PyResult<Connection> {
        let synchronous = match synchronous.to_ascii_lowercase().as_str() {
            "full" => Synchronous::Full,
            "normal" => Synchronous::Normal,
            "off" => Synchronous::Off,
            _ => {
                let message = format!("synchronous is 'full', 'normal' or 'off', not '{synchronous}'");
                return Err(ProgrammingError::new_err(message));
            }
        };
        if threads == Some(0) {
            return Err(ProgrammingError::new_err("threads is 1 or more, not 0"));
        }
        let wishes = Wishes { memory_limit_bytes, threads, synchronous, read_only, create };
        let open = move || {
            let shared = open::open(path.as_deref(), wishes)?;
            let connection = shared.database.connect();
            Ok(Session { interrupt: connection.interrupt(), connection, shared })
        };
        let session = run(py, || (), open)?;
        Ok(Connection { session: Mutex::new(Some(session)) })
    }

    /// Another connection to the same database.
    fn another(&self, py: Python<'_>) -> PyResult<Connection> {
        let Session { shared, .. } = self.session()?;
        let open = move || {
            let connection = shared.database.connect();
            Ok(Session { interrupt: connection.interrupt(), connection, shared })
        };
        Ok(Connection { session: Mutex::new(Some(run(py, || (), open)?)) })
    }

    /// Begins a transaction, which lasts until `commit` or `roll_back`.
    fn begin(&self, py: Python<'_>, read_only: bool) -> PyResult<()> {
        self.with(py, move |connection| connection.begin(read_only))
    }

    /// Ends the transaction: all of it is durable and visible then.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |connection| connection.commit())
    }

    /// Ends the transaction as if it had never begun.
    fn roll_back(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |connection| connection.roll_back())
    }

    /// Whether a transaction is under way.
    fn in_transaction(&self) -> PyResult<bool> {
        Ok(self.session()?.connection.in_transaction())
    }

    /// The statements of a script, without their semicolons.
    fn statements(&self, py: Python<'_>, sql: String) -> PyResult<Vec<String>> {
        let statements = self.with(py, move |connection| connection.statements(&sql))?;
        Ok(statements.into_iter().map(|statement| statement.text).collect())
    }

    /// Runs one statement. A query is only planned: its rows come from the outcome.
    #[pyo3(signature = (sql, parameters=None))]
    fn run(&self, py: Python<'_>, sql: String, parameters: Option<&Bound<'_, PyAny>>) -> PyResult<Outcome> {
        let values = parameters.map(from_python::row).transpose()?.unwrap_or_default();
        let outcome = self.with(py, move |connection| match connection.statements(&sql)?.as_slice() {
            [statement] => connection.run(statement, &values),
            [] => Err(sinterdb::Error::Sql("there is no statement to run".to_owned())),
            several => {
                let count = several.len();
                Err(sinterdb::Error::Sql(format!("{count} statements where one is expected")))
            }
        })?;
        Ok(match outcome {
            sinterdb::Outcome::Rows(query) => {
                let rows = Py::new(py, Rows::new(query, self.session()?.interrupt))?;
                Outcome { rows: Some(rows), tag: "SELECT".to_owned(), changed: None, notes: Vec::new() }
            }
            sinterdb::Outcome::Done { tag, rows, notes } => Outcome { rows: None, tag, changed: rows, notes },
        })
    }

    /// Runs one statement once per row of parameters; an INSERT of one row of VALUES in one commit, any other in one
    /// commit per row. Returns the rows changed.
    fn run_many(&self, py: Python<'_>, sql: String, rows: &Bound<'_, PyAny>) -> PyResult<u64> {
        let rows: Vec<_> = rows.try_iter()?.map(|row| from_python::row(&row?)).collect::<PyResult<_>>()?;
        self.with(py, move |connection| connection.execute_many(&sql, &rows))
    }

    /// Appends an object that has `__arrow_c_stream__` to a table, in one commit; returns the rows appended.
    fn append(&self, py: Python<'_>, table: String, source: &Bound<'_, PyAny>) -> PyResult<u64> {
        let reader = capsule::import(source)?;
        self.with(py, move |connection| {
            let mut batches = reader.map(|batch| batch.map_err(|error| sinterdb::Error::Data(error.to_string())));
            connection.append(&table, &mut batches)
        })
    }

    /// Makes a frame visible to statements under a name.
    fn register(&self, py: Python<'_>, name: String, frame: &Bound<'_, Frame>) -> PyResult<()> {
        let (schema, batches) = (frame.get().schema.clone(), frame.get().batches.clone());
        self.with(py, move |connection| connection.register(&name, schema, batches))
    }

    /// Forgets a registered name; False when there was none.
    fn unregister(&self, py: Python<'_>, name: String) -> PyResult<bool> {
        self.with(py, move |connection| Ok(connection.unregister(&name)))
    }

    /// Opens the key-value tree of that name, which is made where there is none.
    #[pyo3(signature = (name, *, key, value, codec, duplicates))]
    fn kv(
        &self,
        py: Python<'_>,
        name: String,
        key: Option<String>,
        value: Option<String>,
        codec: Option<String>,
        duplicates: Option<bool>,
    ) -> PyResult<Kv> {
        let open = move |connection: &sinterdb::Connection| {
            connection.any_kv(&name, &kv_options(key, value, codec, duplicates)?)
        };
        let kv = self.with(py, open)?;
        Ok(Kv::new(kv))
    }

    /// Makes a key-value tree of pairs of a key and its value, which come in the order of keys.
    #[pyo3(signature = (name, pairs, *, key, value, codec, duplicates))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn load_kv(
        &self,
        py: Python<'_>,
        name: String,
        pairs: &Bound<'_, PyAny>,
        key: Option<String>,
        value: Option<String>,
        codec: Option<String>,
        duplicates: Option<bool>,
    ) -> PyResult<Kv> {
        let begin = move |connection: &sinterdb::Connection| {
            connection.load_any_kv(&name, &kv_options(key, value, codec, duplicates)?)
        };
        let load = self.with(py, begin)?;
        Ok(Kv::new(loaded(py, load, pairs)?))
    }

    /// (schema, table) of all that statements can refer to.
    fn table_names(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.with(py, move |connection| Ok(connection.table_names()))
    }

    /// What opening the file had to do or noticed.
    #[getter]
    fn notes(&self) -> PyResult<Vec<String>> {
        Ok(self.session()?.shared.database.notes().to_vec())
    }

    /// The file; None in memory.
    #[getter]
    fn path(&self) -> PyResult<Option<OsString>> {
        Ok(self.session()?.shared.database.path().map(OsString::from))
    }

    #[getter]
    fn closed(&self) -> bool {
        self.session().is_err()
    }

    /// Ends what the connection is running, in whatever thread, with CancelledError.
    fn interrupt(&self, py: Python<'_>) -> PyResult<()> {
        let interrupt = self.session()?.interrupt;
        py.detach(|| interrupt.interrupt());
        Ok(())
    }

    /// Closes the connection, and the database with its last one. Closing again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Session { connection, shared, .. }) = session else {
            return Ok(());
        };
        let close = move || {
            drop(connection);
            open::close(shared)
        };
        py.detach(move || guard(close)).map_err(raise)
    }
}

/// What a key-value tree is to be like, by the names that users have for it.
fn kv_options(
    key: Option<String>,
    value: Option<String>,
    codec: Option<String>,
    duplicates: Option<bool>,
) -> sinterdb::Result<KvOptions> {
    let key = key.map(|key| KeyType::by_name(&key)).transpose()?;
    let value = value.map(|value| ValueType::by_name(&value)).transpose()?;
    let options = KvOptions { key, value, duplicates, codec: None };
    match codec {
        Some(codec) => options.with_codec(&codec),
        None => Ok(options),
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(session) = self.session.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            // Nobody is there to hear of an error; `close` tells it.
            let close = move || {
                drop(session.connection);
                open::close(session.shared)
            };
            let _ = detached(move || guard(close));
        }
    }
}
