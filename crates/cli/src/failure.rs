//! What can go wrong while the shell runs, and the exit code it gives.

use sinterdb::arrow::error::ArrowError;
use std::io;

/// Shorthand.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// An error, sorted by what the shell does with it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The database refused.
    #[error("error: {0}")]
    Database(#[from] sinterdb::Error),
    /// A dot command, file or option that makes no sense.
    #[error("error: {0}")]
    Input(String),
    /// A command line that makes no sense.
    #[error("error: {0}")]
    Usage(String),
    /// A database that cannot be looked at.
    #[error("error: {0}")]
    Unseen(sinterdb::Error),
    /// What `check` found.
    #[error("{0}")]
    Damaged(String),
    /// An error at a place in a script: `script.sql:12`.
    #[error("{place}: {source}")]
    At {
        /// Script and line.
        place: String,
        /// What happened there.
        source: Box<Failure>,
    },
    /// The output could not be written.
    #[error("error: cannot write the result: {0}")]
    Output(io::Error),
}

impl Failure {
    /// Names the place, unless an inner script has named a nearer one.
    pub(crate) fn at(self, place: String) -> Failure {
        match self {
            Failure::At { .. } => self,
            other => Failure::At { place, source: Box::new(other) },
        }
    }

    /// The reader of our output has gone away (`sinter ... | head`): no reason to complain.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        match self {
            Failure::Output(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Failure::At { source, .. } => source.is_closed_pipe(),
            _ => false,
        }
    }

    /// 1 for errors in SQL or data; 2 for the command line; 130 and 141 are what a shell reports for a program that Ctrl-C or a closed pipe
    /// ended.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Database(sinterdb::Error::Cancelled) => 130,
            Failure::At { source, .. } => source.exit_code(),
            Failure::Usage(_) | Failure::Unseen(_) => 2,
            other if other.is_closed_pipe() => 141,
            _ => 1,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Failure {
        match error {
            ArrowError::IoError(_, error) => Failure::Output(error),
            other => Failure::Database(sinterdb::Error::Internal(other.to_string())),
        }
    }
}
