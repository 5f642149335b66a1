//! Appending commits to a log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::codec::RecordRef;
use super::frame::{FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, Frame, IS_FIRST, IS_LAST, IS_SYNCED, Position};
use super::header::{HEADER_BYTES, LogHeader};
use crate::fs::{File, FileSystem, OpenMode};
use crate::ids::{CheckpointNumber, CommitNumber};

/// The log that commits go to. Not shared: the journal's lock guards it. Its [`LogFile`] is: syncing needs no lock.
#[derive(Debug)]
pub(crate) struct LogWriter {
    file: LogFile,
    /// The header's checksum: the log's part in the position of a frame.
    header_checksum: u32,
    offset: u64,
    previous: u32,
    /// Whether header and directory entry were synced before the first commit was appended.
    pub(crate) is_created_durably: bool,
}

/// A log's file, for whoever syncs it while others append.
#[derive(Debug, Clone)]
pub(crate) struct LogFile {
    pub(crate) path: PathBuf,
    pub(crate) number: CheckpointNumber,
    pub(crate) file: Arc<dyn File>,
}

impl LogFile {
    /// Makes everything durable that was appended before the call.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

/// Why a commit was not appended.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// And the log is as it was before.
    Undone(io::Error),
    /// And nobody knows what the log's end looks like.
    Unknown(io::Error),
}

impl LogWriter {
    /// Makes a new log, empty and not yet synced. What stands there under this name never counted, and is overwritten.
    pub(crate) fn create(fs: &dyn FileSystem, path: &Path, header: LogHeader) -> io::Result<LogWriter> {
        let file = fs.open(path, OpenMode::Create)?;
        file.set_length(0)?;
        let (bytes, header_checksum) = header.encode();
        file.write_at(0, &[&bytes])?;
        Ok(LogWriter {
            file: LogFile { path: path.to_path_buf(), number: header.number, file },
            header_checksum,
            offset: HEADER_BYTES as u64,
            previous: header_checksum,
            is_created_durably: false,
        })
    }

    pub(crate) fn number(&self) -> CheckpointNumber {
        self.file.number
    }

    pub(crate) fn file(&self) -> &LogFile {
        &self.file
    }

    /// Bytes in the log.
    pub(crate) fn bytes(&self) -> u64 {
        self.offset
    }

    /// Appends one commit; nothing is synced. On error the log is cut back to where it was.
    ///
    /// `all_before_is_durable`: whether a power loss now would leave every commit before this one.
    pub(crate) fn append(
        &mut self,
        commit: CommitNumber,
        records: &[RecordRef<'_>],
        all_before_is_durable: bool,
    ) -> Result<(), AppendError> {
        let (offset, previous) = (self.offset, self.previous);
        let synced = if all_before_is_durable && self.is_created_durably { IS_SYNCED } else { 0 };
        let Err(error) = self.append_frames(commit, records, IS_FIRST | synced) else { return Ok(()) };
        (self.offset, self.previous) = (offset, previous);
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded if self.file.file.set_length(offset).is_ok() => {
                Err(AppendError::Undone(error))
            }
            _ => Err(AppendError::Unknown(error)),
        }
    }

    fn append_frames(&mut self, commit: CommitNumber, records: &[RecordRef<'_>], mut flags: u32) -> io::Result<()> {
        let bytes: u64 = records.iter().map(RecordRef::bytes).sum();
        let mut payload = Vec::with_capacity(FRAME_PAYLOAD_BYTES_MAX.min(bytes as usize));
        for record in records {
            let header = record.header();
            for mut part in [&header[..], record.payload] {
                while !part.is_empty() {
                    if payload.len() == FRAME_PAYLOAD_BYTES_MAX {
                        self.write_frame(commit, flags, &payload)?;
                        payload.clear();
                        flags = 0;
                    }
                    let (now, later) = part.split_at(part.len().min(FRAME_PAYLOAD_BYTES_MAX - payload.len()));
                    payload.extend_from_slice(now);
                    part = later;
                }
            }
        }
        self.write_frame(commit, flags | IS_LAST, &payload)
    }

    fn write_frame(&mut self, commit: CommitNumber, flags: u32, payload: &[u8]) -> io::Result<()> {
        let position = Position { log: self.header_checksum, offset: self.offset };
        let frame = Frame::new(position, payload, self.previous, flags, commit);
        self.file.file.write_at(self.offset, &[&frame.encode(), payload])?;
        self.offset += (FRAME_HEADER_BYTES + payload.len()) as u64;
        self.previous = frame.checksum;
        Ok(())
    }
}
