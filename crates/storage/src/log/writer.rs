//! Appending commits to a log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::codec::RecordRef;
use super::frame::{FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, Frame, IS_FIRST, IS_LAST, IS_SYNCED, Position};
use super::header::{HEADER_BYTES, LogHeader};
use crate::fs::{File, FileSystem, OpenMode};
use crate::ids::{CheckpointNumber, CommitNumber};

/// The log that commits go to. Not shared: the journal's lock guards it.
#[derive(Debug)]
pub(crate) struct LogWriter {
    pub(crate) path: PathBuf,
    pub(crate) number: CheckpointNumber,
    file: Arc<dyn File>,
    /// The header's checksum: the log's part in the position of a frame.
    header_checksum: u32,
    offset: u64,
    previous: u32,
    is_synced: bool,
    synced_at: Instant,
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
            path: path.to_path_buf(),
            number: header.number,
            file,
            header_checksum,
            offset: HEADER_BYTES as u64,
            previous: header_checksum,
            is_synced: false,
            synced_at: Instant::now(),
        })
    }

    /// Bytes in the log.
    pub(crate) fn bytes(&self) -> u64 {
        self.offset
    }

    /// When the log was last synced.
    pub(crate) fn synced_at(&self) -> Instant {
        self.synced_at
    }

    /// Makes everything appended so far durable.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if !self.is_synced {
            self.file.sync()?;
            self.is_synced = true;
        }
        self.synced_at = Instant::now();
        Ok(())
    }

    /// Appends one commit. On error the log is cut back to where it was.
    pub(crate) fn append(&mut self, commit: CommitNumber, records: &[RecordRef<'_>]) -> Result<(), AppendError> {
        let (offset, previous, is_synced) = (self.offset, self.previous, self.is_synced);
        let Err(error) = self.append_frames(commit, records) else { return Ok(()) };
        (self.offset, self.previous, self.is_synced) = (offset, previous, is_synced);
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded if self.file.set_length(offset).is_ok() => {
                Err(AppendError::Undone(error))
            }
            _ => Err(AppendError::Unknown(error)),
        }
    }

    fn append_frames(&mut self, commit: CommitNumber, records: &[RecordRef<'_>]) -> io::Result<()> {
        let bytes: u64 = records.iter().map(RecordRef::bytes).sum();
        let mut payload = Vec::with_capacity(FRAME_PAYLOAD_BYTES_MAX.min(bytes as usize));
        let mut flags = IS_FIRST | if self.is_synced { IS_SYNCED } else { 0 };
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
        self.is_synced = false;
        self.file.write_at(self.offset, &[&frame.encode(), payload])?;
        self.offset += (FRAME_HEADER_BYTES + payload.len()) as u64;
        self.previous = frame.checksum;
        Ok(())
    }
}
