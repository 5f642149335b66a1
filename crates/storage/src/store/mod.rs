//! The store: pages, commits and checkpoints of one database file.

mod pages;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::error::Result;
use crate::fs::{File, FileSystem, HeapFileSystem, OpenMode};
use crate::ids::{CheckpointNumber, CommitNumber, PageId};
use crate::map::{PageEntry, PageMap};
use crate::options::Options;
use crate::pool::Pool;
use crate::record::Record;
use crate::space::Space;

const HEADER_UNITS: u64 = 2;

/// What kind of store this is, for its whole life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A file with a log beside it.
    Durable,
    /// A file that is only read.
    ReadOnly,
    /// A heap file: no log, and freed places return at once.
    Memory,
}

/// One database file and its log.
///
/// Thread-safe: any number of threads may pin, write pages, commit and free at once; commits are put in order by a mutex.
pub struct Store {
    path: PathBuf,
    mode: Mode,
    data: Arc<dyn File>,
    pages: RwLock<Pages>,
    pool: Pool,
    journal: Mutex<Journal>,
    /// The last commit, readable without the journal's lock.
    last_commit: AtomicU64,
    /// Whether pages were written since the data file was last synced.
    unsynced_pages: AtomicBool,
}

#[derive(Debug)]
struct Pages {
    /// Pages that are committed or checkpointed.
    map: PageMap,
    /// Pages that were written and that no commit has named yet.
    fresh: HashMap<PageId, PageEntry>,
    space: Space,
    next_page: PageId,
    /// The log that is being written; what is freed now may be named by it, or by the checkpoint before it.
    epoch: CheckpointNumber,
}

#[derive(Debug)]
struct Journal;

impl Store {
    /// A database in memory: no log, no checkpoints, nothing to recover.
    ///
    /// # Panics
    /// Never: a new heap file can always be made.
    pub fn memory() -> Store {
        let options = Options::default();
        let path = PathBuf::from(":memory:");
        let data = HeapFileSystem::new().open(&path, OpenMode::Create).expect("a heap file can always be created");
        let pages = Pages {
            map: PageMap::default(),
            fresh: HashMap::new(),
            space: Space::new(HEADER_UNITS, HEADER_UNITS),
            next_page: PageId(1),
            epoch: CheckpointNumber(0),
        };
        Store {
            path,
            mode: Mode::Memory,
            data,
            pages: RwLock::new(pages),
            pool: Pool::new(options.pool_bytes_max),
            journal: Mutex::new(Journal),
            last_commit: AtomicU64::new(0),
            unsynced_pages: AtomicBool::new(false),
        }
    }

    /// The database file; `:memory:` for a database in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last commit.
    pub fn last_commit(&self) -> CommitNumber {
        CommitNumber(self.last_commit.load(Ordering::Acquire))
    }

    /// Makes `records` durable under one number, and with them the `pages` that they name.
    ///
    /// # Errors
    /// After an error nothing of it is committed.
    pub fn commit(&self, records: &[Record], pages: &[PageId]) -> Result<CommitNumber> {
        let _journal = self.journal();
        let _ = records;
        let commit = CommitNumber(self.last_commit().0 + 1);
        let mut all = self.pages_mut();
        for page in pages {
            if let Some(entry) = all.fresh.remove(page) {
                all.map.replace(*page, entry, &mut Vec::new());
            }
        }
        self.last_commit.store(commit.0, Ordering::Release);
        Ok(commit)
    }

    fn pages(&self) -> RwLockReadGuard<'_, Pages> {
        self.pages.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn pages_mut(&self) -> RwLockWriteGuard<'_, Pages> {
        self.pages.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.path).field("mode", &self.mode).finish_non_exhaustive()
    }
}
