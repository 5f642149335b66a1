//! What can go wrong with a table.

/// Sorted by what the caller can do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A row, or an alteration, breaks a rule of the table. Remedy: change the data.
    #[error("{0}")]
    Data(String),
    /// Somebody else's commit came first. Remedy: run the transaction again.
    #[error("{what}; run the transaction again")]
    Conflict {
        /// Name of the table.
        table: String,
        /// What the other transaction did, table included.
        what: String,
    },
    /// The table's own bytes are damaged or were written by a newer version.
    #[error("table '{table}': {what}")]
    Damaged {
        /// Name of the table, or of the structure where no table is known yet.
        table: String,
        /// What was found, and what would be right.
        what: String,
    },
    /// The engine's edge refused a value.
    #[error(transparent)]
    Exec(#[from] sinter_exec::Error),
    /// The file failed.
    #[error(transparent)]
    Storage(#[from] sinter_storage::Error),
}

impl Error {
    /// Whether it is the stored bytes that are at fault, or the disk that does not give them.
    pub fn is_damage(&self) -> bool {
        match self {
            Error::Damaged { .. } => true,
            Error::Exec(error) => error.is_damage(),
            Error::Storage(error) => error.is_damage() || matches!(error, sinter_storage::Error::Io { .. }),
            Error::Data(_) | Error::Conflict { .. } => false,
        }
    }
}

impl From<Error> for sinter_exec::Error {
    fn from(error: Error) -> sinter_exec::Error {
        match error {
            Error::Exec(error) => error,
            damage if damage.is_damage() => sinter_exec::Error::Unreadable(Box::new(damage)),
            other => sinter_exec::Error::Source(Box::new(other)),
        }
    }
}

/// Shorthand.
pub type Result<T, E = Error> = std::result::Result<T, E>;
