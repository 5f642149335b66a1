//! A database: one file, or memory.

use crate::{Config, Connection, Error, Result, Transaction};
use std::path::Path;
use std::sync::Arc;

/// An open database. Cheap to clone; all clones are the same database, which closes with the last of them and of its
/// connections. A result that is still being read then ends with an error.
#[derive(Clone, Debug)]
pub struct Database {
    inner: Arc<Open>,
}

/// What clones and connections share. The last of them closes the database before it is gone, whatever else is still busy
/// with it: who opens the file next finds it free.
#[derive(Debug)]
pub(crate) struct Open(Arc<sinter_sql::Database>);

impl Open {
    fn shared(database: Arc<sinter_sql::Database>) -> Database {
        Database { inner: Arc::new(Open(database)) }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // Whoever wants to know of errors calls `close`; the log keeps every commit in any case.
        let _ = self.0.close();
    }
}

impl Database {
    /// Opens `path`, creating it where it is absent.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] when another process holds it, [`crate::Error::Damaged`] when it is no database
    /// or a broken one, [`crate::Error::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<Database> {
        Database::open_with(path, Config::default())
    }

    /// Opens `path` with options.
    ///
    /// # Errors
    /// As for [`Database::open`].
    pub fn open_with(path: impl AsRef<Path>, config: Config) -> Result<Database> {
        Ok(Open::shared(sinter_sql::Database::open(Some(path.as_ref()), config.options())?))
    }

    /// A database that lives in memory only: the same engine over a heap file.
    ///
    /// # Errors
    /// [`crate::Error::Io`] where no thread can be started.
    pub fn memory() -> Result<Database> {
        Database::memory_with(Config::default())
    }

    /// A memory database with options.
    ///
    /// # Errors
    /// As for [`Database::memory`].
    pub fn memory_with(config: Config) -> Result<Database> {
        Ok(Open::shared(sinter_sql::Database::open(None, config.options())?))
    }

    /// A new connection: settings and running queries of its own.
    pub fn connect(&self) -> Connection {
        Connection::new(self.inner.0.session(), Arc::clone(&self.inner))
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] when the database is closed.
    pub fn begin(&self) -> Result<Transaction> {
        Transaction::begin(self.connect(), false)
    }

    /// Begins a transaction that only reads: one state from beginning to end. It never conflicts.
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub fn begin_read_only(&self) -> Result<Transaction> {
        Transaction::begin(self.connect(), true)
    }

    /// Runs `body` in a transaction and commits it; where it conflicts with another, begins anew, up to `retries` times.
    ///
    /// # Errors
    /// Those of `body`, and of the last commit. Nothing has happened then.
    pub fn transaction<T>(&self, retries: usize, mut body: impl FnMut(&Transaction) -> Result<T>) -> Result<T> {
        let mut left = retries;
        loop {
            let transaction = self.begin()?;
            match body(&transaction).and_then(|value| transaction.commit().map(|()| value)) {
                Err(Error::Conflict(_)) if left > 0 => left -= 1,
                outcome => return outcome,
            }
        }
    }

    /// The file; `None` for a memory database.
    pub fn path(&self) -> Option<&Path> {
        self.inner.0.path()
    }

    /// The file did not exist before this opening.
    pub fn is_new(&self) -> bool {
        self.inner.0.is_new()
    }

    /// What the opening had to do or noticed, such as transactions replayed from the log. For people.
    pub fn notes(&self) -> &[String] {
        self.inner.0.notes()
    }

    /// Checkpoints and closes now, so that errors are not lost. Further use of clones and connections fails. After an error
    /// it can be called again, and does what is still to be done.
    ///
    /// # Errors
    /// [`crate::Error::Io`] when the last checkpoint could not be written; the log then holds what is missing. Or when rows
    /// could not be compressed: then they are in the file as they are, and it is closed.
    pub fn close(&self) -> Result<()> {
        self.inner.0.close()
    }
}
