//! The store: pages, commits and checkpoints of one database file.
//!
//! | file | idea |
//! |---|---|
//! | `open` | from a path to a store: lock, headers, creation |
//! | `recover` | from a header and its logs to the state at the last commit |
//! | `protect` | what an older header still needs |
//! | `pages` | write, pin, free |
//! | `reading` | from the file into the pool: once, and ahead |
//! | `handle` | pages that live as long as somebody holds on to them |
//! | `page_table` | map, fresh pages and free space, as one |
//! | `group_sync` | one sync for all who wait |
//! | `journal` | log and header, as commits and checkpoints share them |
//! | `commit`, `checkpoint`, `close` | the three ways to become durable |
//! | `cut` | free units at the file's end go back to the operating system |
//! | `vacuum` | pages move down, so that the end becomes free |
//! | `backup` | one state, copied into a file of its own |
//! | `stats`, `check` | looking without touching |
//! | `examine` | looking at what can hardly be opened |

mod backup;
mod check;
mod checkpoint;
mod close;
mod commit;
mod cut;
mod examine;
mod group_sync;
mod handle;
mod journal;
mod open;
mod page_table;
mod pages;
mod protect;
mod reading;
mod recover;
mod stats;
mod vacuum;

pub use backup::BackupProgress;
pub use checkpoint::{Checkpoint, CheckpointWriter, PreparedCheckpoint};
pub use examine::{Damage, Examined, ExtentInfo, HeaderInfo, LogInfo, Part};
pub use handle::PageHandle;
pub use reading::ReadAhead;
pub use recover::{Recovery, Transactions};
pub use stats::{PageCount, PageInfo, Stats};
pub use vacuum::VacuumProgress;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use crate::budget::{Budget, PoolShare};
use crate::error::{Error, Result};
use crate::fs::{File, FileSystem, LockGuard};
use crate::header::Header;
use crate::ids::{CommitNumber, PageId};
use crate::options::Synchronous;
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use group_sync::GroupSync;
use journal::Journal;
use page_table::PageTable;
use reading::{ReadAheadThreads, Reads};

/// What kind of store this is, for its whole life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A file with a log beside it.
    Durable,
    /// A file that is only read.
    ReadOnly,
    /// A heap file: no log, and freed places return at once.
    Memory,
}

/// One database file and its log.
///
/// Thread-safe: any number of threads may pin, write pages, commit and free at once; commits are put in order by a
/// mutex, which nobody holds while syncing but the first commit and the close. Locks are taken in the order checkpoint's
/// turn, journal, rejected header, pages, budget; a leader of `log_sync` takes the journal's and the last two, and is
/// waited for by nobody who holds one.
///
/// Dropping a store without [`Store::close`] is what a crash is: the next open replays the log.
pub struct Store {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    mode: Mode,
    data: Arc<dyn File>,
    pages: RwLock<PageTable>,
    pool: PoolShare,
    reads: Reads,
    read_ahead: ReadAheadThreads,
    journal: Mutex<Journal>,
    /// The header copy that the open passed over, if it did, and what is to be written in its place before all else.
    rejected_header: Mutex<Option<(usize, Header)>>,
    /// Held by the one checkpoint that there is at a time, or by a vacuum that moves pages.
    checkpoint_turn: Mutex<()>,
    /// Held by the one who is next to have the turn: so whoever takes it again and again lets others come between.
    checkpoint_next: Mutex<()>,
    /// The last commit, readable without the journal's lock; written under it.
    last_commit: AtomicU64,
    /// See [`Store::horizon`].
    horizon: AtomicU64,
    /// The last commit that is durable in the logs.
    log_sync: GroupSync,
    /// When the logs were last synced.
    logs_synced_at: Mutex<Instant>,
    /// The last write to the data file that is durable.
    data_sync: GroupSync,
    /// Writes to the data file, counted once they are done.
    data_writes: AtomicU64,
    synchronous: AtomicU8,
    /// The first failure after which nothing can be promised any more.
    poison: OnceLock<String>,
    is_closed: AtomicBool,
    /// The handles that there are.
    handles: Mutex<HashMap<PageId, Weak<PageHandle>>>,
    /// Keeps others out; `None` once closed, and in memory.
    lock: Mutex<Option<LockGuard>>,
}

impl Store {
    /// The database file; `:memory:` for a database in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last commit.
    pub fn last_commit(&self) -> CommitNumber {
        CommitNumber(self.last_commit.load(Ordering::Acquire))
    }

    /// Up to which commit nobody will ask for what was before, as far as the store was told: whoever reads, now or later,
    /// sees all commits up to this one.
    #[inline]
    pub fn horizon(&self) -> CommitNumber {
        CommitNumber(self.horizon.load(Ordering::Acquire))
    }

    /// Tells the store that nobody will ask for what was before this commit. Whoever keeps the order of commits says so:
    /// [`Timeline`](crate::Timeline).
    pub fn raise_horizon(&self, horizon: CommitNumber) {
        self.horizon.fetch_max(horizon.0, Ordering::AcqRel);
    }

    /// Why the store refuses changes since a write or sync failed, if it does.
    pub fn poisoned(&self) -> Option<&str> {
        self.poison.get().map(String::as_str)
    }

    /// What a commit promises now.
    pub fn synchronous(&self) -> Synchronous {
        match self.synchronous.load(Ordering::Acquire) {
            0 => Synchronous::Full,
            1 => Synchronous::Normal,
            _ => Synchronous::Off,
        }
    }

    /// Sets what commits promise from now on. Leaving `off` makes everything so far durable first.
    ///
    /// # Errors
    /// [`Error::Poisoned`]: the sync failed.
    pub fn set_synchronous(&self, level: Synchronous) -> Result<()> {
        if self.synchronous() == Synchronous::Off && level != Synchronous::Off {
            self.check_writable()?;
            return self.sync_all(level);
        }
        self.synchronous.store(level as u8, Ordering::Release);
        Ok(())
    }

    /// The memory that the pool and everybody else share. Its limit can be changed at any time.
    pub fn budget(&self) -> &Arc<Budget> {
        self.pool.budget()
    }

    /// The store, drawing on a budget that others draw on, too, and not on one of its own. To be called before anything
    /// is read from it.
    #[must_use]
    pub fn with_budget(self, budget: &Arc<Budget>) -> Store {
        Store { pool: budget.share(), ..self }
    }

    /// Whether there is no file.
    pub fn is_in_memory(&self) -> bool {
        self.mode == Mode::Memory
    }

    /// Whether nothing can be written.
    pub fn is_read_only(&self) -> bool {
        self.mode == Mode::ReadOnly
    }

    fn check_open(&self) -> Result<()> {
        match self.is_closed.load(Ordering::Acquire) {
            true => Err(Error::Closed { path: self.path.clone() }),
            false => Ok(()),
        }
    }

    fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.mode == Mode::ReadOnly {
            return Err(Error::ReadOnly { path: self.path.clone() });
        }
        self.check_poison()
    }

    fn check_poison(&self) -> Result<()> {
        match self.poison.get() {
            Some(why) => Err(Error::Poisoned { path: self.path.clone(), why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Notes a failure after which nothing can be promised, and returns the error to report.
    fn poison(&self, path: &Path, during: &str, error: io::Error) -> Error {
        let why = self.poison.get_or_init(|| format!("{during} failed ({}: {error})", path.display()));
        Error::Poisoned { path: self.path.clone(), why: why.clone() }
    }

    // A thread that panicked under one of these locks did so between whole steps: what it guards is still sound.

    fn pages(&self) -> RwLockReadGuard<'_, PageTable> {
        self.pages.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn pages_mut(&self) -> RwLockWriteGuard<'_, PageTable> {
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
