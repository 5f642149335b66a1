//! `sinterdb._sinterdb`: the compiled half of the Python module.
//!
//! Six classes and the exceptions. [`connection`] opens databases and runs statements, [`rows`] is the result of one
//! query, [`frame`] is Arrow data held in memory, [`outcome`] says what a statement did, [`kv`] has key-value trees and
//! their cursors. Everything that looks like
//! Python (DB-API 2.0, relations, frames found by name, tables as text and HTML) is written in Python, in
//! `python/sinterdb/`, over these.
//!
//! Statements run on a thread of their own with the interpreter free ([`run`]), so that other Python threads go on and
//! Ctrl-C works. Values cross in [`from_python`] (those of [`numpy`] too) and [`to_python`]; Arrow data crosses in [`capsule`], whole and without
//! a copy, so that neither pyarrow nor pandas nor Polars is needed.

mod calendar;
mod capsule;
mod connection;
mod error;
mod frame;
mod from_python;
mod kv;
mod numpy;
mod open;
mod outcome;
mod rows;
mod run;
mod to_python;
mod type_name;
mod workers;

use pyo3::prelude::*;

#[pymodule]
mod _sinterdb {
    #[pymodule_export]
    use crate::connection::Connection;
    #[pymodule_export]
    use crate::error::{
        CancelledError, ConflictError, DamagedError, DataError, DatabaseError, Error, IntegrityError, InterfaceError,
        InternalError, IoError, NotSupportedError, OperationalError, ProgrammingError, UnavailableError, Warning,
    };
    #[pymodule_export]
    use crate::frame::Frame;
    #[pymodule_export]
    use crate::kv::{Kv, KvCursor};
    #[pymodule_export]
    use crate::outcome::Outcome;
    #[pymodule_export]
    use crate::rows::Rows;

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
