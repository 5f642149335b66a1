//! The databases that this process has open, so that opening a file again shares it.
//!
//! One process may write a file at a time, and a lock sees to that. Within the process a notebook cell that runs twice,
//! or a library beside the main program, asks for the same file again; both get the same database, each its own
//! connection, and the file is closed with the last of them.

use sinterdb::{Config, Database, Error, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

/// How a database was asked for; sharing needs the same wishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wishes {
    pub(crate) memory_limit_bytes: Option<u64>,
    pub(crate) threads: Option<usize>,
    pub(crate) synchronous: sinterdb::Synchronous,
    pub(crate) read_only: bool,
    pub(crate) create: bool,
}

/// A database, shared by the connections of this process.
pub(crate) struct Shared {
    pub(crate) database: Database,
    wishes: Wishes,
}

/// By canonical path. An entry whose database is gone stays until its path is opened again.
static OPEN: LazyLock<Mutex<HashMap<PathBuf, Weak<Shared>>>> = LazyLock::new(Mutex::default);

impl Wishes {
    fn config(&self) -> Config {
        let mut config = Config::builder().synchronous(self.synchronous).read_only(self.read_only).create(self.create);
        if let Some(bytes) = self.memory_limit_bytes {
            config = config.memory_limit_bytes(bytes);
        }
        if let Some(threads) = self.threads {
            config = config.threads(threads);
        }
        config
    }
}

/// Opens a file, or memory for `None`; may wait for a closing of the same file.
pub(crate) fn open(path: Option<&Path>, wishes: Wishes) -> Result<Arc<Shared>> {
    let Some(path) = path else {
        return Ok(Arc::new(Shared { database: Database::memory_with(wishes.config())?, wishes }));
    };
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(shared) = path.canonicalize().ok().and_then(|path| open.get(&path)?.upgrade()) {
        if (Wishes { create: true, ..shared.wishes.clone() }) != (Wishes { create: true, ..wishes }) {
            let path = path.display();
            let message =
                format!("{path} is open in this process with other options; close it first or ask for the same");
            return Err(Error::Unavailable(message));
        }
        return Ok(shared);
    }
    let database = Database::open_with(path, wishes.config())?;
    let shared = Arc::new(Shared { database, wishes });
    if let Ok(path) = path.canonicalize() {
        open.insert(path, Arc::downgrade(&shared));
    }
    Ok(shared)
}

/// Gives up one share; the last one closes the file.
pub(crate) fn close(shared: Arc<Shared>) -> Result<()> {
    // Held, so that an opening of the same file waits until it is free.
    let _open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    match Arc::into_inner(shared) {
        Some(last) => last.database.close(),
        None => Ok(()),
    }
}
