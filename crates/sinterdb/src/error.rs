//! What an application can be told.

/// Sorted by what the caller can do. Messages name the thing, the place and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The statement is not SQL that we know, or names what does not exist. Remedy: change the statement.
    #[error("{0}")]
    Sql(String),
    /// A value or row breaks a rule: a type, NOT NULL, a malformed row in a file. Remedy: change the data.
    #[error("{0}")]
    Data(String),
    /// The query was interrupted.
    #[error("query cancelled")]
    Cancelled,
    /// The database is open elsewhere, read-only, or newer than this library. Remedy: in the message.
    #[error("{0}")]
    Unavailable(String),
    /// The file system failed: disk full, permission, I/O. Remedy: mend it and retry.
    #[error("{0}")]
    Io(String),
    /// Stored bytes are damaged; names file, page and table. Remedy: a backup.
    #[error("{0}")]
    Damaged(String),
    /// A mistake of ours. Please report it.
    #[error("internal error: {0}; this is a defect of SinterDB, please report it")]
    Internal(String),
}

/// Shorthand.
pub type Result<T> = std::result::Result<T, Error>;
