//! Reading a log back, distrusting every byte. Holds one frame and one commit in memory, whatever the log claims.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::COMMIT_BYTES_MAX;
use super::codec::take_records;
use super::frame::{FRAME_HEADER_BYTES, Frame, IS_FIRST, IS_LAST, IS_SYNCED, Position};
use super::header::{HEADER_BYTES, LogHeader};
use super::writer::LogFile;
use crate::error::{Error, Result, failed};
use crate::fs::File;
use crate::ids::{CheckpointNumber, CommitNumber};
use crate::record::Transaction;

/// How many bytes the search for whole frames behind a damaged one checks at most: a bound on what a hostile log can
/// cost.
const SEARCH_BYTES_MAX: u64 = 256 << 20;
/// How much of the log the search holds at once.
const SEARCH_WINDOW_BYTES: usize = 1 << 20;

/// Goes through the commits of one log.
#[derive(Debug, Clone)]
pub(crate) struct LogReader {
    pub(crate) path: PathBuf,
    pub(crate) header: LogHeader,
    /// The header's checksum: the log's part in the position of a frame.
    header_checksum: u32,
    file: Arc<dyn File>,
    length: u64,
    /// After the last whole commit.
    offset: u64,
    previous: u32,
    commit: CommitNumber,
    /// Where the last frame starts that says that everything before it is durable; 0 where none does.
    pub(crate) durable: u64,
}

/// What comes next in a log.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A whole commit.
    Commit(Transaction),
    /// The log ends, right after a whole commit; what follows, if anything, is zeros.
    End,
    /// What follows the last whole commit is none; why.
    Torn(String),
}

impl LogReader {
    /// Reads the header of a log that should be number `number` of `database`. `None` for a log whose creation was cut
    /// short: it has no room for a frame and no valid header.
    pub(crate) fn open(
        file: Arc<dyn File>,
        path: &Path,
        database: Uuid,
        number: CheckpointNumber,
    ) -> Result<Option<LogReader>> {
        let length = file.length().map_err(failed(path, "reading a log"))?;
        let mut bytes = [0; HEADER_BYTES];
        let whole = length.min(HEADER_BYTES as u64) as usize;
        file.read_at(0, &mut bytes[..whole]).map_err(failed(path, "reading a log"))?;
        // A byte that is missing may be zero: the checksum is right then, and yet there is no log.
        if whole < HEADER_BYTES {
            return Ok(None);
        }
        let (header, header_checksum) = match LogHeader::decode(&bytes, path, database, number) {
            Ok(decoded) => decoded,
            Err(Error::DamagedLog { .. }) if length <= HEADER_BYTES as u64 => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(LogReader {
            path: path.to_path_buf(),
            header,
            header_checksum,
            file,
            length,
            offset: HEADER_BYTES as u64,
            previous: header_checksum,
            commit: header.start_commit,
            durable: 0,
        }))
    }

    /// Says which commit is the last before this log's first: the header's start commit, or a later one.
    pub(crate) fn start_after(&mut self, commit: CommitNumber) {
        self.commit = commit;
    }

    /// The commit with which the log begins, if its first frame is whole.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn first_commit(&self) -> Result<Option<CommitNumber>> {
        let frame = self.read_frame(HEADER_BYTES as u64, &mut Vec::new())?;
        let is_first = |frame: &Frame| frame.previous == self.header_checksum && frame.flags & IS_FIRST != 0;
        Ok(frame.ok().filter(is_first).map(|frame| frame.commit))
    }

    /// The last commit that was read; before the first, the one that the log starts after.
    pub(crate) fn commit(&self) -> CommitNumber {
        self.commit
    }

    /// The file, to be synced.
    pub(crate) fn file(&self) -> LogFile {
        let (path, number, file) = (self.path.clone(), self.header.number, Arc::clone(&self.file));
        LogFile { path, number, file, durable: self.durable }
    }

    /// Where the last whole commit ends.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes after the last whole commit, without the zeros behind them.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn tail_bytes(&self) -> Result<u64> {
        let mut buffer = vec![0; SEARCH_WINDOW_BYTES.min((self.length - self.offset) as usize)];
        let (mut offset, mut end) = (self.offset, self.offset);
        while offset < self.length {
            let bytes = buffer.len().min((self.length - offset) as usize);
            self.read(offset, &mut buffer[..bytes])?;
            end = buffer[..bytes].iter().rposition(|byte| *byte != 0).map_or(end, |at| offset + at as u64 + 1);
            offset += bytes as u64;
        }
        Ok(end - self.offset)
    }

    /// The next commit, if there is a whole one. After anything else, the reader stays where it is.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn next(&mut self) -> Result<Stop> {
        let commit = CommitNumber(self.commit.0.saturating_add(1));
        let (mut offset, mut previous) = (self.offset, self.previous);
        let (mut bytes, mut records, mut payload) = (Vec::new(), Vec::new(), Vec::new());
        if self.is_zero_from(offset)? {
            return Ok(Stop::End);
        }
        let (mut total_bytes, mut durable) = (0, self.durable);
        for index in 0.. {
            let frame = match self.read_frame(offset, &mut payload)? {
                Ok(frame) => frame,
                Err(why) => return Ok(Stop::Torn(why)),
            };
            total_bytes += u64::from(frame.length);
            if let Some(why) = not_the_next(&frame, previous, commit, index == 0, total_bytes) {
                return Ok(Stop::Torn(why));
            }
            if frame.flags & IS_SYNCED != 0 {
                durable = offset;
            }
            bytes.extend_from_slice(&payload);
            if let Err(why) = take_records(&mut bytes, &mut records) {
                return Ok(Stop::Torn(why));
            }
            offset += FRAME_HEADER_BYTES as u64 + u64::from(frame.length);
            previous = frame.checksum;
            if frame.flags & IS_LAST != 0 {
                break;
            }
        }
        if !bytes.is_empty() {
            return Ok(Stop::Torn(format!("commit {commit} ends within a record")));
        }
        (self.offset, self.previous, self.commit, self.durable) = (offset, previous, commit, durable);
        Ok(Stop::Commit(Transaction { commit, records }))
    }

    /// Looks behind the reader's place for a frame that is whole and was written after everything before it was
    /// durable. If there is one, what stands here is no torn tail, but damage to commits that were promised. Returns
    /// its commit.
    ///
    /// It looks at every byte, for the length that would say where the next frame starts may be what is damaged; so it
    /// also looks into the values that a torn commit carries. A frame in one of them is a copy, and fails its checksum
    /// here.
    pub(crate) fn find_synced_frame(&self) -> Result<Option<CommitNumber>> {
        self.find_synced_frame_from(self.offset + 1, self.commit, self.length)
    }

    /// The same for a log that follows `before`, which ends too early: if there is such a frame anywhere in this log,
    /// what `before` lacks was promised.
    pub(crate) fn find_synced_frame_after(&self, before: &LogReader) -> Result<Option<CommitNumber>> {
        self.find_synced_frame_from(HEADER_BYTES as u64, before.commit, before.length + self.length)
    }

    /// From `start` on, of one of the `commits_max` commits after `commit`; there cannot be more than there are bytes.
    fn find_synced_frame_from(
        &self,
        start: u64,
        commit: CommitNumber,
        commits_max: u64,
    ) -> Result<Option<CommitNumber>> {
        let is_wanted = |frame: &Frame| {
            let later = frame.commit > commit && frame.commit.0 - commit.0 < commits_max;
            later && frame.flags & (IS_FIRST | IS_SYNCED) == IS_FIRST | IS_SYNCED
        };
        Ok(self.find_frame(start, &is_wanted, &mut 0)?.map(|(_, frame)| frame.commit))
    }

    /// The first whole frame from `start` on that is wanted, wherever it starts. `checked` counts the bytes of those
    /// that were looked at closer; the search ends at [`SEARCH_BYTES_MAX`].
    fn find_frame(
        &self,
        mut start: u64,
        is_wanted: &dyn Fn(&Frame) -> bool,
        checked: &mut u64,
    ) -> Result<Option<(u64, Frame)>> {
        let mut window = vec![0; self.length.saturating_sub(start).min(SEARCH_WINDOW_BYTES as u64) as usize];
        let mut payload = Vec::new();
        while start + FRAME_HEADER_BYTES as u64 <= self.length {
            let bytes = window.len().min((self.length - start) as usize);
            self.read(start, &mut window[..bytes])?;
            for (index, header) in window[..bytes].array_windows::<FRAME_HEADER_BYTES>().enumerate() {
                let frame = Frame::decode(header);
                let offset = start + index as u64;
                if !is_wanted(&frame) || !frame.is_plausible(self.length - offset - FRAME_HEADER_BYTES as u64) {
                    continue;
                }
                *checked += FRAME_HEADER_BYTES as u64 + u64::from(frame.length);
                if *checked > SEARCH_BYTES_MAX {
                    return Ok(None);
                }
                if self.read_frame(offset, &mut payload)?.is_ok() {
                    return Ok(Some((offset, frame)));
                }
            }
            start += (bytes - FRAME_HEADER_BYTES + 1) as u64;
        }
        Ok(None)
    }

    /// Goes through the frames behind the reader's place, each by itself, and returns where those stretches begin that
    /// are none although whole frames follow them, with what is wrong there, and the last commit of which a whole frame
    /// is there.
    pub(crate) fn broken_stretches(&self) -> Result<(Vec<(u64, String)>, CommitNumber)> {
        let (mut offset, mut last, mut checked) = (self.offset, self.commit, 0);
        let (mut stretches, mut payload) = (Vec::new(), Vec::new());
        let is_later = |frame: &Frame| frame.commit > self.commit && frame.commit.0 - self.commit.0 < self.length;
        loop {
            match self.read_frame(offset, &mut payload)? {
                Ok(frame) => {
                    last = last.max(frame.commit);
                    offset += FRAME_HEADER_BYTES as u64 + u64::from(frame.length);
                }
                Err(why) => match self.find_frame(offset + 1, &is_later, &mut checked)? {
                    Some((next, _)) => {
                        stretches.push((offset, why));
                        offset = next;
                    }
                    None => return Ok((stretches, last)),
                },
            }
        }
    }

    /// Whether nothing but zeros follows, up to the end of the file. The first bytes of a frame say no.
    fn is_zero_from(&self, mut offset: u64) -> Result<bool> {
        let mut buffer = vec![0; FRAME_HEADER_BYTES];
        while offset < self.length {
            let bytes = buffer.len().min((self.length - offset) as usize);
            self.read(offset, &mut buffer[..bytes])?;
            if buffer[..bytes].iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            offset += bytes as u64;
            buffer.resize(SEARCH_WINDOW_BYTES.min((self.length - offset) as usize), 0);
        }
        Ok(true)
    }

    /// Reads and checks one frame by itself.
    fn read_frame(&self, offset: u64, payload: &mut Vec<u8>) -> Result<Result<Frame, String>> {
        let mut header = [0; FRAME_HEADER_BYTES];
        let left = self.length.saturating_sub(offset);
        if left < FRAME_HEADER_BYTES as u64 {
            return Ok(Err(format!("{left} bytes, a frame has at least {FRAME_HEADER_BYTES}")));
        }
        self.read(offset, &mut header)?;
        let frame = Frame::decode(&header);
        if !frame.is_plausible(left - FRAME_HEADER_BYTES as u64) {
            let Frame { length, flags, .. } = frame;
            return Ok(Err(format!("a frame of {length} bytes with flags {flags:#x}, and {left} bytes left")));
        }
        payload.resize(frame.length as usize, 0);
        self.read(offset + FRAME_HEADER_BYTES as u64, payload)?;
        let computed = frame.checksum_of(Position { log: self.header_checksum, offset }, payload);
        if computed != frame.checksum {
            return Ok(Err(format!("frame checksum {:08x}, of the bytes {computed:08x}", frame.checksum)));
        }
        Ok(Ok(frame))
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        match self.file.read_at(offset, buffer) {
            // The file was cut by somebody since it was opened.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let (log, what) = (self.path.clone(), "the file is shorter than it was".to_string());
                Err(Error::DamagedLog { log, offset, what })
            }
            other => other.map_err(failed(&self.path, "reading a log")),
        }
    }
}

/// Why a whole frame is not the one that belongs here.
fn not_the_next(
    frame: &Frame,
    previous: u32,
    commit: CommitNumber,
    is_first: bool,
    total_bytes: u64,
) -> Option<String> {
    if frame.previous != previous {
        return Some(format!("a frame after checksum {:08x}, the one before has {previous:08x}", frame.previous));
    }
    if frame.commit != commit {
        return Some(format!("a frame of commit {}, {commit} is next", frame.commit));
    }
    if (frame.flags & IS_FIRST != 0) != is_first {
        return Some(format!("flags {:#x} in the wrong place of commit {commit}", frame.flags));
    }
    (total_bytes > COMMIT_BYTES_MAX).then(|| format!("commit {commit} of more than {COMMIT_BYTES_MAX} bytes"))
}
