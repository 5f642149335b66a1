//! Looking at a database that nobody writes, without opening it.

use crate::{Config, Inspection, Report, Result};
use std::path::Path;

/// Reads every byte that anything in the database depends on, and reports what is damaged. Changes nothing; needs little
/// memory, however large the file is.
///
/// # Errors
/// [`crate::Error`] where nothing can be looked at: there is no such file, another process writes it, it is no database.
/// Damage is no error, but in the report.
pub fn check(path: impl AsRef<Path>) -> Result<Report> {
    check_with(path, &Config::default(), &mut |_, _| ())
}

/// [`check`], telling how many bytes of how many were read.
///
/// # Errors
/// As [`check`].
pub fn check_with(path: impl AsRef<Path>, config: &Config, progress: &mut dyn FnMut(u64, u64)) -> Result<Report> {
    sinter_sql::check(path.as_ref(), &config.options(), progress)
}

/// What the file is made of, as tables with titles: `headers`, `logs`, `space`, `pages`, and `columns` with what each
/// costs. Changes nothing.
///
/// # Errors
/// As [`check`].
pub fn inspect(path: impl AsRef<Path>, config: &Config) -> Result<Inspection> {
    sinter_sql::inspect(path.as_ref(), &config.options())
}
