//! Keeping panics of foreign readers from the user's process.
//!
//! The readers of Parquet and Arrow check most of what they read, not all: a damaged file can make them panic. Such a
//! panic becomes an error that names the file. The reader at fault is not used again.

use super::{FileError, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Runs `read`, which reads `path`, and turns a panic into an error.
pub(crate) fn contain<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|payload| {
        let words = payload.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(FileError::damaged(path, format!("damaged, the reader gave up: {words}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let result: Result<()> = contain(Path::new("x.parquet"), || panic!("index {} out of range", 7));
        assert_eq!(result.unwrap_err().to_string(), "x.parquet: damaged, the reader gave up: index 7 out of range");
    }
}
