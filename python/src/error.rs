//! Python's exceptions: the hierarchy of DB-API 2.0 (PEP 249), and one class for each variant of [`sinterdb::Error`].
//!
//! ```text
//! Warning                      things worth telling, such as rows skipped
//! Error
//!   InterfaceError             the module was used wrongly (PEP 249; we raise ProgrammingError)
//!   DatabaseError
//!     DataError                Error::Data
//!     IntegrityError           (PEP 249; broken keys, when there are keys)
//!     InternalError            Error::Internal
//!     NotSupportedError        a value or call that we do not have
//!     ProgrammingError         Error::Sql
//!     OperationalError
//!       CancelledError         Error::Cancelled
//!       ConflictError          Error::Conflict
//!       UnavailableError       Error::Unavailable
//!       IoError                Error::Io
//!       DamagedError           Error::Damaged
//! ```

use pyo3::exceptions::{PyException, PyUserWarning};
use pyo3::{PyErr, create_exception};

create_exception!(sinterdb, Warning, PyUserWarning, "Something worth telling, such as rows that were skipped.");
create_exception!(sinterdb, Error, PyException, "Whatever SinterDB refuses or cannot do.");
create_exception!(sinterdb, InterfaceError, Error, "The module was used wrongly.");
create_exception!(sinterdb, DatabaseError, Error, "The database refused or failed.");
create_exception!(sinterdb, DataError, DatabaseError, "A value or row breaks a rule. Remedy: change the data.");
create_exception!(sinterdb, IntegrityError, DatabaseError, "A key or constraint would be broken.");
create_exception!(sinterdb, InternalError, DatabaseError, "A mistake of SinterDB's. Please report it.");
create_exception!(sinterdb, NotSupportedError, DatabaseError, "Something that SinterDB does not have.");
create_exception!(
    sinterdb,
    ProgrammingError,
    DatabaseError,
    "Not SQL that we know, or a name that does not exist. Remedy: change the statement."
);
create_exception!(sinterdb, OperationalError, DatabaseError, "The surroundings failed: file, memory, another process.");
create_exception!(sinterdb, CancelledError, OperationalError, "The statement was interrupted.");
create_exception!(
    sinterdb,
    ConflictError,
    OperationalError,
    "Another transaction committed first; nothing was changed. Remedy: run the transaction again."
);
create_exception!(
    sinterdb,
    UnavailableError,
    OperationalError,
    "The database is open elsewhere, read-only, or newer than this library. Remedy: in the message."
);
create_exception!(sinterdb, IoError, OperationalError, "The file system failed. Remedy: mend it and retry.");
create_exception!(sinterdb, DamagedError, OperationalError, "Stored bytes are damaged. Remedy: a backup.");

/// The exception for an error, with the same message.
pub(crate) fn raise(error: sinterdb::Error) -> PyErr {
    let message = error.to_string();
    match error {
        sinterdb::Error::Sql(_) => ProgrammingError::new_err(message),
        sinterdb::Error::Data(_) => DataError::new_err(message),
        sinterdb::Error::Cancelled => CancelledError::new_err(message),
        sinterdb::Error::Conflict(_) => ConflictError::new_err(message),
        sinterdb::Error::Unavailable(_) => UnavailableError::new_err(message),
        sinterdb::Error::Io(_) => IoError::new_err(message),
        sinterdb::Error::Damaged(_) => DamagedError::new_err(message),
        sinterdb::Error::Internal(_) => InternalError::new_err(message),
        _ => DatabaseError::new_err(message),
    }
}
