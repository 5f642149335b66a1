//! What can go wrong in this room.

use std::io;
use std::path::{Path, PathBuf};

use crate::budget::Usage;
use crate::ids::PageId;
use crate::page_kind::PageKind;

/// Sorted by what the caller can do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // -- come in another way, or later --
    /// Another process or handle has the file.
    #[error("{}: in use by {}; {remedy}", path.display(), holders_in_words(holders))]
    Locked {
        /// The database file.
        path: PathBuf,
        /// Process ids, as far as they are known.
        holders: Vec<u32>,
        /// The ways out.
        remedy: &'static str,
    },

    // -- ask for less, or allow more --
    /// Memory cannot be reserved within the limit.
    #[error(
        "out of memory: {wants} wants {bytes} bytes more; {}; raise memory_limit, or do less at once",
        usage_in_words(usage)
    )]
    OutOfMemory {
        /// Who wanted it.
        wants: &'static str,
        /// How much, beyond what it has.
        bytes: u64,
        /// Who holds what.
        usage: Box<Usage>,
    },

    // -- fix the argument --
    /// There is no such file.
    #[error("{}: there is no such database; opening it for writing would create it", path.display())]
    NotFound {
        /// The path asked for.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{}: not a SinterDB database: {what}; check the path", path.display())]
    NotADatabase {
        /// The path asked for.
        path: PathBuf,
        /// What was found, and what a database would have there.
        what: String,
    },
    /// There is something where a backup was to be.
    #[error(
        "{}: a backup needs a name of its own, and there is {} already; choose another path, or move that away",
        path.display(), found.display()
    )]
    Exists {
        /// The path asked for.
        path: PathBuf,
        /// What is there: a file, or a log of one.
        found: PathBuf,
    },
    /// The store was opened for reading.
    #[error("{}: opened for reading only; open it for writing to change it", path.display())]
    ReadOnly {
        /// The database file.
        path: PathBuf,
    },
    /// Whoever began a checkpoint, a backup or a vacuum gave it up; the reason is theirs to tell.
    #[error("{}: the checkpoint, backup or vacuum was given up by who began it", path.display())]
    GivenUp {
        /// The database, or the backup.
        path: PathBuf,
    },
    /// The store was closed.
    #[error("{}: the database is closed; open it again", path.display())]
    Closed {
        /// The database file.
        path: PathBuf,
    },
    /// No page has this id.
    #[error("{}: there is no page {page}", path.display())]
    NoSuchPage {
        /// The database file.
        path: PathBuf,
        /// The id asked for.
        page: PageId,
    },
    /// More bytes than a page or a commit can hold.
    #[error("{what} of {bytes} bytes is larger than the {bytes_max} bytes allowed; cut it into several")]
    TooLarge {
        /// A page, a record, ...
        what: &'static str,
        /// Its size.
        bytes: u64,
        /// The most there can be.
        bytes_max: u64,
    },
    /// A record with one of storage's own tags.
    #[error("record tag {tag} belongs to storage; other rooms use tags from 16 on")]
    ReservedTag {
        /// The tag given.
        tag: u16,
    },

    // -- upgrade --
    /// Written by a newer SinterDB.
    #[error("{}: has format version {found}, this SinterDB reads up to {known}; use a newer SinterDB", path.display())]
    NewerFormat {
        /// The database or log file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
        /// The newest version this build reads.
        known: u32,
    },
    /// Uses a feature that must be understood to read the file.
    #[error("{}: uses features {unknown:#x} that this SinterDB does not know; use a newer SinterDB", path.display())]
    UnknownFeature {
        /// The database file.
        path: PathBuf,
        /// The bits that are not known.
        unknown: u32,
    },

    // -- repair the file: restore a backup, put a missing part back --
    /// The file is shorter than its header says.
    #[error(
        "{}: truncated: {bytes} bytes, but checkpoint {checkpoint} needs {bytes_expected}; restore the whole file",
        path.display()
    )]
    Truncated {
        /// The database file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
        /// What it should be at least.
        bytes_expected: u64,
        /// According to this checkpoint.
        checkpoint: u64,
    },
    /// Neither header copy is whole.
    #[error("{}: both header copies are damaged (at 0: {first}; at 4096: {second}); restore a backup", path.display())]
    HeadersDamaged {
        /// The database file.
        path: PathBuf,
        /// What is wrong with the copy at 0.
        first: String,
        /// What is wrong with the copy at 4096.
        second: String,
    },
    /// A page is not what its map entry says, or not whole.
    #[error("{}: {} at byte {offset} is damaged: {what}; restore a backup", path.display(), page_in_words(*page, *kind))]
    DamagedPage {
        /// The database file.
        path: PathBuf,
        /// Which page; `None` for a node of the page map.
        page: Option<PageId>,
        /// What the page map says it holds.
        kind: PageKind,
        /// Where in the file.
        offset: u64,
        /// Both sides: what was found, what should be there.
        what: String,
    },
    /// The log that the database needs is not there.
    #[error(
        "{}: the log {} is missing, which holds the commits since checkpoint {checkpoint}; \
         put it back beside the database, or restore a backup",
        path.display(), log.display()
    )]
    LogMissing {
        /// The database file.
        path: PathBuf,
        /// The log's path.
        log: PathBuf,
        /// The checkpoint that it follows.
        checkpoint: u64,
    },
    /// The log belongs to another database.
    #[error(
        "{}: belongs to database {found}, not to {expected} beside it; put the right log in its place",
        log.display()
    )]
    LogForeign {
        /// The log's path.
        log: PathBuf,
        /// The UUID in the log.
        found: uuid::Uuid,
        /// The database's UUID.
        expected: uuid::Uuid,
    },
    /// The log belongs to a later state of the database than the file.
    #[error(
        "{}: follows a later state of the database than the file beside it, which was closed at checkpoint {checkpoint}; \
         put the right file in its place, or move the log away to give up what it holds",
        log.display()
    )]
    LogStray {
        /// The log's path.
        log: PathBuf,
        /// The file's checkpoint.
        checkpoint: u64,
    },
    /// The log's bytes are not a log, or not whole where they must be.
    #[error("{}: damaged at byte {offset}: {what}; restore the log or a backup", log.display())]
    DamagedLog {
        /// The log's path.
        log: PathBuf,
        /// Where in the log.
        offset: u64,
        /// Both sides.
        what: String,
    },

    // -- make room, or look at the disk --
    /// No space left. What was asked for did not happen; the database stays open.
    #[error("{}: no space left while {during}; nothing was changed: free some space and try again", path.display())]
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
        /// What was going on.
        during: &'static str,
    },
    /// The operating system refused.
    #[error("{}: {during}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was going on.
        during: &'static str,
        /// The operating system's word.
        source: io::Error,
    },

    // -- reopen --
    /// A write or sync failed earlier, so that nothing more can be promised.
    #[error(
        "{}: refuses further changes, because {why}; what was synced before is safe, \
         reading goes on; reopen the database once the disk is well",
        path.display()
    )]
    Poisoned {
        /// The database file.
        path: PathBuf,
        /// The failure that came first.
        why: String,
    },

    // -- said by the caller itself --
    /// The closure given to a checkpoint failed for a reason of its own.
    #[error("checkpoint abandoned: {0}")]
    Caller(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Shorthand.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Wraps an error of an upper room, so that a checkpoint's closure can return it.
    pub fn caller(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Caller(error.into())
    }

    /// Whether bytes on disk are not what was written.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Error::Truncated { .. }
                | Error::HeadersDamaged { .. }
                | Error::DamagedPage { .. }
                | Error::DamagedLog { .. }
                | Error::LogMissing { .. }
                | Error::LogForeign { .. }
                | Error::LogStray { .. }
        )
    }
}

/// Turns an I/O error into ours.
pub(crate) fn failed(path: &Path, during: &'static str) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::DiskFull { path, during },
        _ => Error::Io { path, during, source },
    }
}

fn holders_in_words(holders: &[u32]) -> String {
    let own = std::process::id();
    match holders {
        [] => "another process".to_string(),
        [one] if *one == own => format!("another handle of this process ({own})"),
        [one] => format!("process {one}"),
        many => format!("processes {}", many.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    }
}

fn usage_in_words(usage: &Usage) -> String {
    let Usage { limit, reservable, table, scratch, query, leaf, pool, .. } = usage;
    format!(
        "memory_limit is {limit} bytes, of which {reservable} can be reserved: tables hold {table}, loads {scratch}, \
         queries {query}, trees {leaf}, pages {pool}"
    )
}

fn page_in_words(page: Option<PageId>, kind: PageKind) -> String {
    match page {
        Some(page) => format!("page {page} ({kind})"),
        None => format!("a {kind}"),
    }
}
