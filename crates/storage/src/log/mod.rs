//! The log: commits that the last checkpoint does not hold. docs/format/log.md.
//!
//! A log is a file beside the database, `<database>-log.<n>`; it starts at the cut of checkpoint `n`. It has a header
//! and then frames, each of which carries the checksum of the frame before it, so that what follows a torn write cannot
//! be taken for a part of the log. A frame's checksum is good in its own log, at its own offset only, so that no value
//! that a commit carries can be taken for a frame. A commit is one or more frames; the last of them makes it count.

mod codec;
mod frame;
mod header;
mod reader;
mod writer;

pub use codec::{OBJECT_AT, PAYLOAD_BYTES_AT, RECORD_HEADER_BYTES, TAG_AT};
pub(crate) use codec::{PageReference, RecordRef};
pub use frame::{
    CHECKSUM_AT, COMMIT_AT, FLAGS_AT, FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, IS_FIRST, IS_LAST, IS_SYNCED,
    LENGTH_AT, PREVIOUS_AT,
};
pub(crate) use header::LogHeader;
pub use header::{
    HEADER_BYTES, HEADER_CHECKSUM_AT, LOG_DATABASE_AT, LOG_FORMAT_VERSION, LOG_MAGIC, LOG_NONCE_AT, LOG_NUMBER_AT,
    LOG_VERSION_AT, LOG_ZERO_AT, START_COMMIT_AT,
};
pub(crate) use reader::{LogReader, Stop};
pub(crate) use writer::{AppendError, LogFile, LogWriter};

use std::path::{Path, PathBuf};

use crate::error::{Result, failed};
use crate::fs::FileSystem;
use crate::ids::CheckpointNumber;

/// The most bytes that the records of one commit may have.
pub const COMMIT_BYTES_MAX: u64 = 1 << 30;

/// Where the log of this number is.
pub(crate) fn path_of(database: &Path, number: CheckpointNumber) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(format!("-log.{number}"));
    PathBuf::from(name)
}

/// The numbers of the logs beside the database, ascending.
pub(crate) fn list(fs: &dyn FileSystem, database: &Path) -> Result<Vec<CheckpointNumber>> {
    let directory = database.parent().unwrap_or(Path::new(""));
    let mut prefix = database.file_name().unwrap_or_default().to_owned();
    prefix.push("-log.");
    let files = fs.list(directory, &prefix).map_err(failed(directory, "looking for logs"))?;
    let mut numbers: Vec<CheckpointNumber> = files
        .iter()
        .filter_map(|path| path.file_name()?.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes()))
        .filter_map(|digits| std::str::from_utf8(digits).ok())
        // The canonical spelling only, so that a number names one file.
        .filter_map(|digits| digits.parse::<u64>().ok().filter(|number| number.to_string() == digits))
        .map(CheckpointNumber)
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}
