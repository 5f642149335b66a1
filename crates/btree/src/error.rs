//! What can go wrong with a tree.

use sinter_storage::PageId;
use std::path::PathBuf;

/// Sorted by what the caller can do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A page of the tree is whole, but not what the tree has there.
    #[error("{}: page {page}, {part} of a key-value tree, is damaged: {what}; restore a backup", path.display())]
    DamagedPage {
        /// The database file.
        path: PathBuf,
        /// The page.
        page: PageId,
        /// A leaf, or what leads to them.
        part: &'static str,
        /// What was found, and what would be right.
        what: String,
    },
    /// The log holds a change that cannot be one of this tree.
    #[error("the log's change of a key-value tree is damaged: {what}; restore a backup")]
    DamagedChange {
        /// What was found, and what would be right.
        what: String,
    },
    /// The tree is in memory only, and has no pages.
    #[error("this key-value tree is in memory only, and has no pages")]
    InMemory,
    /// A leaf could not be written: the keys that were to be in it are lost.
    #[error("this load of a key-value tree has failed before, and cannot go on; begin it anew")]
    FailedLoad,
    /// The file failed.
    #[error(transparent)]
    Storage(#[from] sinter_storage::Error),
}

impl Error {
    /// Whether it is the stored bytes that are at fault, or the disk that does not give them.
    pub fn is_damage(&self) -> bool {
        match self {
            Error::DamagedPage { .. } | Error::DamagedChange { .. } => true,
            Error::InMemory | Error::FailedLoad => false,
            Error::Storage(error) => error.is_damage() || matches!(error, sinter_storage::Error::Io { .. }),
        }
    }
}

/// Shorthand.
pub type Result<T, E = Error> = std::result::Result<T, E>;
