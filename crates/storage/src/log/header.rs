//! The log's header: which database it belongs to, and where in its history it starts.

use std::path::Path;

use uuid::Uuid;

use crate::error::{Error, Result};
use crate::ids::{CheckpointNumber, CommitNumber};

/// First bytes of a log.
pub const LOG_MAGIC: [u8; 8] = *b"SinterLG";
/// The newest log version this build reads and the one it writes.
pub const LOG_FORMAT_VERSION: u32 = 2;

/// Offset of the version, `u32`; four bytes that are zero follow.
pub const LOG_VERSION_AT: usize = LOG_MAGIC.len();
/// Offset of the database's UUID, 16 bytes.
pub const LOG_DATABASE_AT: usize = LOG_VERSION_AT + 8;
/// Offset of the log's number, `u64`.
pub const LOG_NUMBER_AT: usize = LOG_DATABASE_AT + 16;
/// Offset of the start commit, `u64`: it was durable when the log was created, and the log's first comes after it.
pub const START_COMMIT_AT: usize = LOG_NUMBER_AT + 8;
/// Offset of the nonce, `u64`: drawn at random for each log, so that no two logs are the same.
pub const LOG_NONCE_AT: usize = START_COMMIT_AT + 8;
/// Offset of bytes that are zero, up to the checksum.
pub const LOG_ZERO_AT: usize = LOG_NONCE_AT + 8;
/// Offset of the checksum, `u32`. It is also what the first frame has as its predecessor's checksum, and what the
/// checksums of all frames start from.
pub const HEADER_CHECKSUM_AT: usize = HEADER_BYTES - 4;
/// Size of the header; the first frame follows.
pub const HEADER_BYTES: usize = 64;
const _: () = assert!(LOG_ZERO_AT <= HEADER_CHECKSUM_AT);

/// The header, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogHeader {
    pub(crate) database: Uuid,
    pub(crate) number: CheckpointNumber,
    /// A commit before the log's first, and durable when the log was created. In version 1 the very last before it.
    pub(crate) start_commit: CommitNumber,
    /// Makes this log another one than all that share the fields above with it: those of the other lives of a database
    /// that was restored from a backup or copied, and one of this number whose creation failed before.
    pub(crate) nonce: u64,
}

impl LogHeader {
    /// The header of a new log.
    pub(crate) fn new(database: Uuid, number: CheckpointNumber, start_commit: CommitNumber) -> LogHeader {
        // The six bits of a UUID that are not random lie in different places of its halves.
        let (high, low) = Uuid::new_v4().as_u64_pair();
        LogHeader { database, number, start_commit, nonce: high ^ low }
    }

    /// The bytes, and their checksum.
    pub(crate) fn encode(&self) -> ([u8; HEADER_BYTES], u32) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..LOG_VERSION_AT].copy_from_slice(&LOG_MAGIC);
        bytes[LOG_VERSION_AT..LOG_VERSION_AT + 4].copy_from_slice(&LOG_FORMAT_VERSION.to_le_bytes());
        bytes[LOG_DATABASE_AT..LOG_NUMBER_AT].copy_from_slice(self.database.as_bytes());
        bytes[LOG_NUMBER_AT..START_COMMIT_AT].copy_from_slice(&self.number.0.to_le_bytes());
        bytes[START_COMMIT_AT..LOG_NONCE_AT].copy_from_slice(&self.start_commit.0.to_le_bytes());
        bytes[LOG_NONCE_AT..LOG_ZERO_AT].copy_from_slice(&self.nonce.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..HEADER_CHECKSUM_AT]);
        bytes[HEADER_CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        (bytes, checksum)
    }

    /// Reads the header of the log `path`, which should be number `number` of `database`.
    pub(crate) fn decode(
        bytes: &[u8; HEADER_BYTES],
        path: &Path,
        database: Uuid,
        number: CheckpointNumber,
    ) -> Result<(LogHeader, u32)> {
        let damaged = |what: String| Error::DamagedLog { log: path.to_path_buf(), offset: 0, what };
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        if bytes[..LOG_VERSION_AT] != LOG_MAGIC {
            let found = &bytes[..LOG_VERSION_AT];
            return Err(damaged(format!("starts with {found:02x?}, a log starts with {LOG_MAGIC:02x?}")));
        }
        let (computed, stored) = (crc32c::crc32c(&bytes[..HEADER_CHECKSUM_AT]), u32_at(HEADER_CHECKSUM_AT));
        if computed != stored {
            return Err(damaged(format!("header checksum {stored:08x}, of the bytes {computed:08x}")));
        }
        let version = u32_at(LOG_VERSION_AT);
        if version > LOG_FORMAT_VERSION {
            let (path, known) = (path.to_path_buf(), LOG_FORMAT_VERSION);
            return Err(Error::NewerFormat { path, found: version, known });
        }
        let header = LogHeader {
            database: Uuid::from_bytes(std::array::from_fn(|index| bytes[LOG_DATABASE_AT + index])),
            number: CheckpointNumber(u64_at(LOG_NUMBER_AT)),
            start_commit: CommitNumber(u64_at(START_COMMIT_AT)),
            nonce: u64_at(LOG_NONCE_AT),
        };
        if header.database != database {
            return Err(Error::LogForeign { log: path.to_path_buf(), found: header.database, expected: database });
        }
        if header.number != number {
            return Err(damaged(format!("is log {}, its name says {number}", header.number)));
        }
        Ok((header, stored))
    }
}
