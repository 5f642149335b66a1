//! Appending commits to a log.
//!
//! A sync of a file that has grown, or whose blocks are new, costs most file systems a commit of their own journal; one
//! of bytes that were there before does not. So where each commit is synced the file is kept longer than the log, by zeros.
//! They are written: with a hole, each of its blocks would be new once more.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::codec::RecordRef;
use super::frame::{FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, Frame, IS_FIRST, IS_LAST, IS_SYNCED, Position};
use super::header::{HEADER_BYTES, LogHeader};
use crate::fs::{File, FileSystem, OpenMode};
use crate::ids::{CheckpointNumber, CommitNumber};

/// The zeros behind the log are as many as its bytes, so that writing them is rare and small logs stay small...
const ZEROS_BYTES_MIN: u64 = 64 << 10;
/// ... and at most so many, since the commit that comes to their end writes the next ones.
const ZEROS_BYTES_MAX: u64 = 4 << 20;
/// A commit of more bytes than this takes so long to write that it does not matter what its sync costs.
const SMALL_COMMIT_BYTES_MAX: u64 = ZEROS_BYTES_MIN;

/// How much of a log is held at once to be written again.
const REWRITE_BYTES: u64 = 1 << 20;

static ZEROS: [u8; ZEROS_BYTES_MIN as usize] = [0; ZEROS_BYTES_MIN as usize];

/// The log that commits go to. Not shared: the journal's lock guards it. Its [`LogFile`] is: syncing needs no lock.
#[derive(Debug)]
pub(crate) struct LogWriter {
    file: LogFile,
    /// The header's checksum: the log's part in the position of a frame.
    header_checksum: u32,
    offset: u64,
    previous: u32,
    /// Up to where the file was filled with zeros, if that is behind the offset.
    zeros_end: u64,
    /// Whether there was no space for zeros.
    is_disk_full: bool,
    /// Whether header and directory entry were synced before the first commit was appended.
    pub(crate) is_created_durably: bool,
}

/// A log's file, for whoever syncs it while others append.
#[derive(Debug, Clone)]
pub(crate) struct LogFile {
    pub(crate) path: PathBuf,
    pub(crate) number: CheckpointNumber,
    pub(crate) file: Arc<dyn File>,
    /// What is before this place was durable when the log was found by an open; 0 for one that was created since.
    pub(crate) durable: u64,
}

impl LogFile {
    /// Makes everything durable that was appended before the call.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    /// Writes again to the same file what is in it from `self.durable` up to `end`.
    pub(crate) fn rewrite(&self, file: &dyn File, end: u64) -> io::Result<()> {
        let mut buffer = vec![0; REWRITE_BYTES.min(end.saturating_sub(self.durable)) as usize];
        let mut at = self.durable;
        while at < end {
            let part = &mut buffer[..REWRITE_BYTES.min(end - at) as usize];
            file.read_at(at, part)?;
            file.write_at(at, &[part])?;
            at += part.len() as u64;
        }
        Ok(())
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
            file: LogFile { path: path.to_path_buf(), number: header.number, file, durable: 0 },
            header_checksum,
            offset: HEADER_BYTES as u64,
            previous: header_checksum,
            zeros_end: HEADER_BYTES as u64,
            is_disk_full: false,
            is_created_durably: false,
        })
    }

    pub(crate) fn number(&self) -> CheckpointNumber {
        self.file.number
    }

    pub(crate) fn file(&self) -> &LogFile {
        &self.file
    }

    /// Bytes in the log, without the zeros behind it.
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
        if is_disk_full(&error) && self.cut().is_ok() {
            return Err(AppendError::Undone(error));
        }
        Err(AppendError::Unknown(error))
    }

    /// Writes zeros behind the log, where a commit of so many bytes has come to the end of those that were there, and is
    /// small. A full disk is no failure: the log does without.
    pub(crate) fn write_zeros(&mut self, commit_bytes: u64) -> io::Result<()> {
        if self.offset < self.zeros_end || self.is_disk_full || commit_bytes > SMALL_COMMIT_BYTES_MAX {
            return Ok(());
        }
        let end = self.offset + self.offset.clamp(ZEROS_BYTES_MIN, ZEROS_BYTES_MAX);
        let mut at = self.offset;
        while at < end {
            let zeros = &ZEROS[..ZEROS.len().min((end - at) as usize)];
            match self.file.file.write_at(at, &[zeros]) {
                Err(error) if is_disk_full(&error) => {
                    self.is_disk_full = true;
                    return self.cut();
                }
                written => written?,
            }
            at += zeros.len() as u64;
        }
        self.zeros_end = end;
        Ok(())
    }

    /// Cuts off what is behind the log.
    fn cut(&mut self) -> io::Result<()> {
        self.zeros_end = self.offset;
        self.file.file.set_length(self.offset)
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

fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
