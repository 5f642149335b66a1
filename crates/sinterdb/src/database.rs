//! A database: one file, or memory.

use crate::{Config, Connection, Result};
use std::path::Path;

/// An open database. Cheap to clone; all clones are the same database, which closes with the last of them and of its
/// connections.
#[derive(Clone, Debug)]
pub struct Database {}

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
        let _ = (path, config);
        todo!()
    }

    /// A database that lives in memory only: the same engine over a heap file.
    ///
    /// # Errors
    /// None in practice.
    pub fn memory() -> Result<Database> {
        Database::memory_with(Config::default())
    }

    /// A memory database with options.
    ///
    /// # Errors
    /// None in practice.
    pub fn memory_with(config: Config) -> Result<Database> {
        let _ = config;
        todo!()
    }

    /// A new connection: settings and running queries of its own.
    pub fn connect(&self) -> Connection {
        todo!()
    }

    /// The file; `None` for a memory database.
    pub fn path(&self) -> Option<&Path> {
        todo!()
    }

    /// The file did not exist before this opening.
    pub fn is_new(&self) -> bool {
        todo!()
    }

    /// What the opening had to do or noticed, such as transactions replayed from the log. For people.
    pub fn notes(&self) -> &[String] {
        todo!()
    }

    /// Checkpoints and closes now, so that errors are not lost. Further use of clones and connections fails.
    ///
    /// # Errors
    /// [`crate::Error::Io`] when the last checkpoint could not be written; the log then holds what is missing.
    pub fn close(&self) -> Result<()> {
        todo!()
    }
}
