//! From a header and its logs to the state at the last commit.
//!
//! Two passes over the logs. The first checks them, finds the last whole commit, and reserves every place that a commit
//! names before anything is allocated. The second is [`Transactions`]: it hands the commits to the rooms above, one
//! at a time, so that memory holds one commit and not the log.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use super::page_table::PageTable;
use super::pages::read_node;
use super::protect::protect;
use crate::error::{Error, Result, failed};
use crate::fs::{File, FileSystem, OpenMode};
use crate::header::Header;
use crate::ids::{CheckpointNumber, CommitNumber, Extent, PageId, UNIT_BYTES};
use crate::log::{self, LogReader, PageReference, Stop};
use crate::map::{self, PageEntry, Visit};
use crate::page_kind::PageKind;
use crate::record::{Record, RecordTag, Transaction};
use crate::space::{Conflict, Space};

/// What an open found.
#[derive(Debug)]
pub struct Recovery {
    /// What the last checkpoint's closure returned; `None` for a database that never had one.
    pub root: Option<PageId>,
    /// The checkpoint that `root` belongs to.
    pub checkpoint: CheckpointNumber,
    /// The last commit, with all transactions applied.
    pub commit: CommitNumber,
    /// What was committed since.
    pub transactions: Transactions,
    /// What the user should know: a header copy that was not whole, a tail of the log that was dropped.
    pub notes: Vec<String>,
}

/// The commits after a checkpoint, in order, read from the log as they are asked for.
#[derive(Debug)]
pub struct Transactions {
    /// The logs still to be read, the next one last, each with the last commit that counts in it.
    logs: Vec<(LogReader, CommitNumber)>,
}

impl Transactions {
    pub(super) fn new(mut logs: Vec<(LogReader, CommitNumber)>) -> Transactions {
        logs.reverse();
        Transactions { logs }
    }
}

impl Iterator for Transactions {
    type Item = Result<Transaction>;

    fn next(&mut self) -> Option<Result<Transaction>> {
        loop {
            let (reader, until) = self.logs.last_mut()?;
            if reader.commit() == *until {
                self.logs.pop();
                continue;
            }
            let next = match reader.next() {
                Ok(Stop::Commit(mut transaction)) => {
                    transaction.records.retain(|record| record.tag >= RecordTag::FIRST_OF_UPPER_ROOMS);
                    return Some(Ok(transaction));
                }
                Ok(Stop::End) => damaged(reader, "it ends earlier than when it was opened".to_string()),
                Ok(Stop::Torn(why)) => damaged(reader, why),
                Err(error) => error,
            };
            self.logs.clear();
            return Some(Err(next));
        }
    }
}

/// The state of a database that was just opened.
pub(super) struct Recovered {
    pub(super) header: Header,
    pub(super) header_copy: usize,
    pub(super) table: PageTable,
    /// The logs to replay, each before its first commit, and the last commit that counts in it.
    pub(super) logs: Vec<(LogReader, CommitNumber)>,
    pub(super) next_log: CheckpointNumber,
    pub(super) commit: CommitNumber,
    /// Bytes in each of these logs.
    pub(super) older_logs: BTreeMap<CheckpointNumber, u64>,
}

pub(super) fn recover(
    fs: &dyn FileSystem,
    data: &dyn File,
    path: &Path,
    (header_copy, header): (usize, &Header),
    older: Option<&Header>,
    read_only: bool,
    notes: &mut Vec<String>,
) -> Result<Recovered> {
    let bytes = data.length().map_err(failed(path, "opening the database"))?;
    let bytes_expected = header.file_units * UNIT_BYTES as u64;
    // A database without pages may have been cut short while it was created, between its two header copies.
    if bytes < bytes_expected && !header.map_root.is_absent() {
        let (path, checkpoint) = (path.to_path_buf(), header.checkpoint.0);
        return Err(Error::Truncated { path, bytes, bytes_expected, checkpoint });
    }
    let mut table = PageTable::new(header, header.file_units.max(bytes / UNIT_BYTES as u64), false);
    load_map(data, path, header, &mut table)?;
    let (readers, remnant) = open_logs(fs, path, header, notes)?;
    let next_log = match (remnant, readers.last()) {
        (Some(number), _) => number,
        (None, Some(last)) => CheckpointNumber(last.header.number.0 + 1),
        (None, None) => header.log,
    };
    let mut commit = header.commit;
    let mut logs = Vec::new();
    let mut older_logs = BTreeMap::new();
    for (index, reader) in readers.iter().enumerate() {
        let mut reader = reader.clone();
        let start = reader.header.start_commit;
        if start > commit {
            return Err(damaged(&reader, format!("starts after commit {start}, what is before it ends with {commit}")));
        }
        reader.start_after(commit);
        let mut end = reader.clone();
        let is_whole = replay_references(&mut end, &readers[index + 1..], &mut table, notes)?;
        commit = end.commit();
        reader.durable = end.durable;
        older_logs.insert(reader.header.number, end.offset());
        logs.push((reader, commit));
        if !is_whole {
            break;
        }
    }
    if let Some(older) = older.filter(|older| older.checkpoint < header.checkpoint && !read_only)
        && let Err(error) = protect(fs, data, path, older, header, &mut table)
    {
        notes.push(format!("checkpoint {} could not be fallen back to: {error}", older.checkpoint));
    }
    // So far nothing but what the disk says.
    table.is_changed = false;
    Ok(Recovered { header: header.clone(), header_copy, table, logs, next_log, commit, older_logs })
}

/// Loads the page map and reserves the places of all pages and nodes.
fn load_map(data: &dyn File, path: &Path, header: &Header, table: &mut PageTable) -> Result<()> {
    let space = &mut table.space;
    let mut read = |entry: PageEntry, ids: Range<u64>| read_node(data, path, entry, ids);
    table.map = map::load(header.map_root, header.map_depth, &mut read, &mut |visit| {
        let (page, entry) = match visit {
            Visit::Node(entry) => (None, entry),
            Visit::Page(page, entry) => (Some(page), entry),
            Visit::Nonsense(node, what) => return Err(damaged_page(path, None, node, what)),
        };
        reserve(space, entry.extent()).map_err(|what| damaged_page(path, page, entry, what))?;
        Ok(true)
    })?;
    Ok(())
}

fn damaged_page(path: &Path, page: Option<PageId>, entry: PageEntry, what: String) -> Error {
    let kind = if page.is_none() { PageKind::MAP_NODE } else { entry.kind() };
    Error::DamagedPage { path: path.to_path_buf(), page, kind, offset: entry.offset(), what }
}

fn damaged(reader: &LogReader, what: String) -> Error {
    Error::DamagedLog { log: reader.path.clone(), offset: reader.offset(), what }
}

pub(super) fn reserve(space: &mut Space, extent: Extent) -> Result<(), String> {
    let Extent { place, units } = extent;
    space.reserve(extent).map_err(|conflict| match conflict {
        Conflict::OutOfRange => format!("its place, {units} units from {place}, is not in the file of {}", space.end()),
        Conflict::Overlap => format!("its place, {units} units from {place}, is another page's too"),
    })
}

/// The logs that follow the header, in order, and the number of a last one whose creation was cut short.
pub(super) fn open_logs(
    fs: &dyn FileSystem,
    path: &Path,
    header: &Header,
    notes: &mut Vec<String>,
) -> Result<(Vec<LogReader>, Option<CheckpointNumber>)> {
    let numbers: Vec<_> = log::list(fs, path)?.into_iter().filter(|number| *number >= header.log).collect();
    if numbers.is_empty() && header.is_closed {
        return Ok((Vec::new(), None));
    }
    let mut readers = Vec::new();
    for number in header.log.0..=numbers.last().map_or(header.log.0, |last| last.0) {
        let number = CheckpointNumber(number);
        let log = log::path_of(path, number);
        if !numbers.contains(&number) {
            return Err(match numbers.first() {
                Some(stray) if header.is_closed && readers.is_empty() => {
                    Error::LogStray { log: log::path_of(path, *stray), checkpoint: header.checkpoint.0 }
                }
                _ => Error::LogMissing { path: path.to_path_buf(), log, checkpoint: header.checkpoint.0 },
            });
        }
        let file = fs.open(&log, OpenMode::Read).map_err(failed(&log, "opening a log"))?;
        match LogReader::open(file, &log, header.database, number)? {
            Some(reader) => readers.push(reader),
            // The header's own log was durable before the header was, unless the header says that there is none.
            None if Some(&number) == numbers.last() && (number > header.log || header.is_closed) => {
                notes.push(format!("{}: its creation was cut short; it holds nothing", log.display()));
                return Ok((readers, Some(number)));
            }
            None => {
                let what = "its header is cut short, and the database needs this log".to_string();
                return Err(Error::DamagedLog { log, offset: 0, what });
            }
        }
    }
    Ok((readers, None))
}

/// Goes through one log, up to where those `later` go on, or to its end; reserves the places that it names and maps
/// their pages. The reader is at its end then. Returns whether what is in the later logs counts too.
///
/// A log and its successor are written at the same time for a moment, by commits of which none was acknowledged before
/// the older log was durable. So where the older one ends too early, it has a torn tail as the last log may have, and the
/// tail goes on in the newer one; unless that shows that the older one was durable.
pub(super) fn replay_references(
    reader: &mut LogReader,
    later: &[LogReader],
    table: &mut PageTable,
    notes: &mut Vec<String>,
) -> Result<bool> {
    let mut next = None;
    for log in later {
        next = [next, log.first_commit()?].into_iter().flatten().min();
    }
    let starts_later = later.iter().map(|log| log.header.start_commit).max();
    let why = loop {
        if next == Some(CommitNumber(reader.commit().0 + 1)) {
            return Ok(true);
        }
        match reader.next()? {
            Stop::Commit(transaction) => {
                for record in transaction.records {
                    apply_reference(reader, &record, table)?;
                }
            }
            Stop::End if next.is_none() && starts_later <= Some(reader.commit()) => return Ok(true),
            Stop::End => break "the log ends".to_string(),
            Stop::Torn(why) => break why,
        }
    };
    let commit = reader.commit();
    if let Some(start) = starts_later.filter(|start| *start > commit) {
        let what = format!("{why} after commit {commit}, the next log starts after {start}");
        return Err(damaged(reader, what));
    }
    let mut promised = reader.find_synced_frame()?;
    for log in later {
        promised = match promised {
            Some(commit) => Some(commit),
            None => log.find_synced_frame_after(reader)?,
        };
    }
    if let Some(promised) = promised {
        let what = format!("{why}; yet commit {promised}, written after this was durable, is whole");
        return Err(damaged(reader, what));
    }
    let (log, bytes) = (reader.path.display(), reader.tail_bytes()?);
    let and_later = if next.is_some() { ", and all of the next log with them" } else { "" };
    notes.push(format!(
        "{log}: {bytes} bytes after commit {commit} are no whole commit and were dropped{and_later} ({why})"
    ));
    Ok(false)
}

fn apply_reference(reader: &LogReader, record: &Record, table: &mut PageTable) -> Result<()> {
    if record.tag >= RecordTag::FIRST_OF_UPPER_ROOMS {
        return Ok(());
    }
    let reference = (record.tag == RecordTag::PAGE_REFERENCE).then(|| PageReference::decode(&record.payload)).flatten();
    let Some(PageReference { page, entry }) = reference else {
        let Record { tag, payload, .. } = record;
        return Err(damaged(reader, format!("a {tag} of {} bytes that cannot be understood", payload.len())));
    };
    // The checkpoint kept the page before a commit named it.
    if table.map.get(page) == Some(entry) {
        return Ok(());
    }
    reserve(&mut table.space, entry.extent()).map_err(|what| damaged(reader, format!("page {page}: {what}")))?;
    let mut given_up = Vec::new();
    // A page that is known elsewhere was moved by a later checkpoint than the one recovered from.
    let moved = table.map.replace(page, entry, &mut given_up);
    given_up.extend(moved.map(|old| old.extent()));
    for extent in given_up {
        table.space.retire(extent, table.epoch);
    }
    table.next_page = PageId(table.next_page.0.max(page.0 + 1));
    Ok(())
}
