//! What an application can be told.

use datafusion::error::DataFusionError;
use sinter_files::FileError;

/// Sorted by what the caller can do. Messages name the thing, the place and the remedy.
#[derive(Clone, Debug, thiserror::Error)]
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
    /// The database is open elsewhere, read-only, closed, or newer than this library. Remedy: in the message.
    #[error("{0}")]
    Unavailable(String),
    /// Another transaction committed first, and this one would not be serializable. Nothing was changed. Remedy: run it
    /// again.
    #[error("{0}")]
    Conflict(String),
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

impl From<sinter_exec::Error> for Error {
    fn from(error: sinter_exec::Error) -> Error {
        match error {
            sinter_exec::Error::Cancelled => Error::Cancelled,
            sinter_exec::Error::Damaged { .. } => Error::Damaged(error.to_string()),
            sinter_exec::Error::OutOfMemory(message) => Error::Unavailable(message),
            sinter_exec::Error::Unsupported(_) => Error::Internal(error.to_string()),
            sinter_exec::Error::Source(inner) | sinter_exec::Error::Unreadable(inner) => {
                match inner.downcast::<sinter_column::Error>() {
                    Ok(inner) => Error::from(*inner),
                    Err(inner) => match inner.downcast::<sinter_btree::Error>() {
                        Ok(inner) => Error::from(*inner),
                        Err(inner) => match inner.downcast::<Error>() {
                            Ok(inner) => *inner,
                            Err(inner) => Error::Io(inner.to_string()),
                        },
                    },
                }
            }
            other => Error::Data(other.to_string()),
        }
    }
}

impl From<sinter_btree::Error> for Error {
    fn from(error: sinter_btree::Error) -> Error {
        match error {
            sinter_btree::Error::Storage(error) => error.into(),
            error if error.is_damage() => Error::Damaged(error.to_string()),
            error => Error::Internal(error.to_string()),
        }
    }
}

impl From<sinter_column::Error> for Error {
    fn from(error: sinter_column::Error) -> Error {
        match error {
            sinter_column::Error::Data(message) => Error::Data(message),
            sinter_column::Error::Conflict { .. } => Error::Conflict(error.to_string()),
            sinter_column::Error::Exec(inner) => inner.into(),
            sinter_column::Error::Storage(inner) => inner.into(),
            other => Error::Damaged(other.to_string()),
        }
    }
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Error {
        Error::Data(error.to_string())
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(error: arrow::error::ArrowError) -> Error {
        DataFusionError::from(error).into()
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> DataFusionError {
        DataFusionError::External(Box::new(error))
    }
}

impl From<DataFusionError> for Error {
    /// Finds our own error inside, where there is one; else sorts by what DataFusion says.
    fn from(error: DataFusionError) -> Error {
        match error {
            DataFusionError::External(inner) => match inner.downcast::<Error>() {
                Ok(inner) => *inner,
                Err(inner) => match inner.downcast::<DataFusionError>() {
                    Ok(inner) => Error::from(*inner),
                    Err(inner) => match inner.downcast::<sinter_exec::Error>() {
                        Ok(inner) => Error::from(*inner),
                        Err(inner) => Error::Data(inner.to_string()),
                    },
                },
            },
            DataFusionError::ArrowError(inner, _) => match *inner {
                arrow::error::ArrowError::ExternalError(inner) => Error::from(DataFusionError::External(inner)),
                other => Error::Data(plain(&other.to_string())),
            },
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => Error::from(*inner),
            DataFusionError::Shared(inner) => match std::sync::Arc::try_unwrap(inner) {
                Ok(inner) => Error::from(inner),
                Err(inner) => from_shared(&inner),
            },
            DataFusionError::Collection(mut errors) if !errors.is_empty() => Error::from(errors.swap_remove(0)),
            DataFusionError::IoError(inner) => Error::Io(inner.to_string()),
            DataFusionError::ResourcesExhausted(message) => out_of_memory(&message),
            DataFusionError::Internal(message) => Error::Internal(message),
            DataFusionError::Execution(message) => Error::Data(message),
            DataFusionError::ExecutionJoin(inner) => Error::Internal(inner.to_string()),
            other => Error::Sql(plain(&other.strip_backtrace())),
        }
    }
}

/// An error that several streams hold: it can be read, not taken.
fn from_shared(error: &DataFusionError) -> Error {
    match error.find_root() {
        DataFusionError::External(inner) => {
            if let Some(ours) = inner.downcast_ref::<Error>() {
                return ours.clone();
            }
        }
        DataFusionError::ResourcesExhausted(message) => return out_of_memory(message),
        _ => {}
    }
    Error::Data(plain(&error.strip_backtrace()))
}

/// What the library says where memory is missing, with our remedy: its own names settings that there are not.
fn out_of_memory(message: &str) -> Error {
    Error::Unavailable(match message.contains("out of memory") {
        true => message.to_owned(),
        false => format!("out of memory: {message}; raise memory_limit, or make the query smaller"),
    })
}

/// Messages without the library's own prefixes, which mean nothing to a user.
fn plain(message: &str) -> String {
    let mut rest = message;
    for prefix in [
        "Error during planning: ",
        "SQL error: ",
        "Schema error: ",
        "Arrow error: ",
        "Execution error: ",
        "This feature is not implemented: ",
        "Invalid argument error: ",
        "Compute error: ",
        "Cast error: ",
        "Parser error: ",
    ] {
        rest = rest.strip_prefix(prefix).unwrap_or(rest);
    }
    // The only database and its default schema say nothing to a user.
    let text = rest.replace("'sinter.public.", "'").replace("sinter.public.", "").replace("'sinter.", "'");
    match text.strip_prefix("table '").and_then(|name| name.strip_suffix("' not found")) {
        Some(name) => format!("there is no table '{name}'; tables() lists what there is"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn errors_that_streams_share_are_what_they_are_where_nobody_shares_them() {
        let ours = || DataFusionError::from(Error::Conflict("twice".to_owned()));
        let exhausted = || DataFusionError::ResourcesExhausted("out of memory: raise memory_limit".to_owned());
        for (make, wanted) in
            [(&ours as &dyn Fn() -> DataFusionError, "twice"), (&exhausted, "out of memory: raise memory_limit")]
        {
            let alone = Error::from(make().context("consider another setting"));
            let shared = Arc::new(make().context("consider another setting"));
            let other = Arc::clone(&shared);
            let shared = Error::from(DataFusionError::Shared(shared));
            drop(other);
            assert_eq!(shared.to_string(), alone.to_string());
            assert_eq!(shared.to_string(), wanted);
        }
    }
}
