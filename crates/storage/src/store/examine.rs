//! Looking at a database without opening it: what is damaged hides only what is below it.
//!
//! [`Store::open`] wants all of the page map and of the log, or none of the database. Here each header copy, each node,
//! each page and each log is read by itself, from both header copies on; what cannot be used is reported, and the rest is
//! put together as a store that is only read. Nothing is ever created, written or cut.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::journal::Journal;
use super::open::{best_first, header_copies, is_unfinished, open_and_lock};
use super::page_table::{LostPages, PageTable};
use super::pages::{read_node, read_page};
use super::recover::{Recovery, Transactions, open_logs, replay_references, reserve};
use super::{Mode, Store};
use crate::error::{Error, Result, failed};
use crate::fs::{File, FileSystem, OpenMode};
use crate::header::{COPIES, Header};
use crate::ids::{CheckpointNumber, CommitNumber, PageId, UNIT_BYTES};
use crate::log::{self, LogReader};
use crate::map::{self, NODE_BYTES, PageEntry, Visit};
use crate::options::Options;
use crate::page;
use crate::page_kind::PageKind;
use crate::pin::Pinned;

/// A part of a database that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The database file, or a log of it.
    pub file: PathBuf,
    /// What is damaged.
    pub part: Part,
    /// Where it starts in the file.
    pub offset: u64,
    /// Both sides: what was found, what should be there.
    pub what: String,
    /// It serves the checkpoint before the last only, which is there in case the header of the last is lost.
    pub is_fallback: bool,
}

/// What can be damaged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Part {
    /// A copy of the file header, 0 or 1.
    Header(usize),
    /// The file as a whole: it is too short.
    File,
    /// A node of the page map, which says where these pages are.
    MapNode(Range<u64>),
    /// A page.
    Page(PageId, PageKind),
    /// A log: what was committed from there on.
    Log,
}

/// One copy of the file header.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of docs/format/file.md")]
pub struct HeaderInfo {
    pub database: Uuid,
    pub checkpoint: CheckpointNumber,
    pub log: CheckpointNumber,
    pub commit: CommitNumber,
    pub next_page: PageId,
    pub catalog_root: Option<PageId>,
    pub file_bytes: u64,
    pub map_depth: u8,
    pub is_closed: bool,
}

/// A log beside the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogInfo {
    /// Its number.
    pub number: CheckpointNumber,
    /// Where it is.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Of these, header and whole commits that count; 0 where the log is not replayed.
    pub used_bytes: u64,
    /// The first and the last commit that the next open replays from it.
    pub replayed: Option<(CommitNumber, CommitNumber)>,
}

/// A stretch of the file that something depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtentInfo {
    /// Where it starts.
    pub offset: u64,
    /// Its bytes, padding to the end of its last unit included.
    pub bytes: u64,
    /// Of these, the padding.
    pub padding_bytes: u64,
    /// What it holds; `None` for a header copy.
    pub kind: Option<PageKind>,
    /// The page; `None` for headers and map nodes.
    pub page: Option<PageId>,
    /// Only the checkpoint before the last needs it.
    pub is_fallback: bool,
}

/// A database, looked at.
#[derive(Debug)]
pub struct Examined {
    /// The store as far as it can be read, at its last commit, and what an open would have found; `None` where no header
    /// copy is whole.
    pub state: Option<(Store, Recovery)>,
    /// Both header copies, or what is wrong with them.
    pub headers: [Result<HeaderInfo, String>; COPIES],
    /// The logs beside the file, by number.
    pub logs: Vec<LogInfo>,
    /// What is used in the file, in its order.
    pub extents: Vec<ExtentInfo>,
    /// The file's length.
    pub file_bytes: u64,
    /// Why the logs cannot be replayed to their end.
    log_error: Option<Error>,
    data: Arc<dyn File>,
    path: PathBuf,
    entries: HashMap<(u64, Option<PageId>), PageEntry>,
}

type Report<'a> = RefCell<&'a mut dyn FnMut(Damage)>;

impl Store {
    /// Looks at the database at `path`, and reports what of its headers, page map and logs is damaged; its pages are read
    /// by [`Examined::read_pages`].
    ///
    /// # Errors
    /// As [`Store::open`] for reading, where nothing can be looked at: no such file, in use, not ours, newer than this
    /// build; and when the disk does not answer at all.
    pub fn examine(
        fs: &Arc<dyn FileSystem>,
        path: &Path,
        options: Options,
        report: &mut dyn FnMut(Damage),
    ) -> Result<Examined> {
        let path = &fs.follow_links(path).map_err(failed(path, "opening the database"))?;
        let (data, lock) = open_and_lock(&**fs, path, true)?;
        if is_unfinished(&*data, path)? {
            let what = "it is empty; opening it for writing would create a database".to_string();
            return Err(Error::NotADatabase { path: path.clone(), what });
        }
        let file_bytes = data.length().map_err(failed(path, "opening the database"))?;
        let mut reported = HashSet::new();
        let mut report = |damage: Damage| {
            if reported.insert((damage.file.clone(), damage.part.clone(), damage.offset)) {
                report(damage);
            }
        };
        let copies = header_copies(&*data, path)?;
        let mut usable = Vec::new();
        let headers = [0, 1].map(|copy| match &copies[copy] {
            Ok(header) => {
                usable.push((copy, header.clone()));
                Ok(HeaderInfo::of(header))
            }
            Err(why) => {
                let (file, offset, what) = (path.clone(), (copy * UNIT_BYTES) as u64, why.in_words());
                report(Damage { file, part: Part::Header(copy), offset, what: what.clone(), is_fallback: false });
                Err(what)
            }
        });
        best_first(&mut usable);
        // A closed database has the same header twice.
        usable.dedup_by(|second, first| {
            (second.1.checkpoint, second.1.map_root) == (first.1.checkpoint, first.1.map_root)
        });
        let mut views = Vec::new();
        {
            let report: Report<'_> = RefCell::new(&mut report);
            for (index, (copy, header)) in usable.into_iter().enumerate() {
                let scene = Scene { fs: &**fs, data: &*data, path, file_bytes, is_fallback: index > 0 };
                views.push(scene.view(copy, header, &report)?);
            }
        }
        let used = used_by(&views);
        let entries = used.iter().map(|(extent, entry)| ((extent.offset, extent.page), *entry)).collect();
        let mut extents: Vec<ExtentInfo> = used.into_iter().map(|(extent, _)| extent).collect();
        let header = |copy: usize| ExtentInfo {
            offset: (copy * UNIT_BYTES) as u64,
            bytes: UNIT_BYTES as u64,
            padding_bytes: 0,
            kind: None,
            page: None,
            is_fallback: false,
        };
        extents.splice(0..0, (0..COPIES).map(header));
        let logs = logs_of(&**fs, path, &views)?;
        // As an open does: an older map that is whole is better than a newer one that is not.
        let best = views.iter().position(|view| view.is_whole).unwrap_or(0);
        let mut log_error = None;
        let state = (!views.is_empty()).then(|| {
            let view = views.swap_remove(best);
            log_error = view.log_error;
            let root = view.header.catalog_root;
            let checkpoint = view.header.checkpoint;
            let journal = Journal {
                writer: None,
                unsynced_logs: Vec::new(),
                next_log: checkpoint,
                header: view.header,
                header_copy: view.copy,
                older_logs: view.logs.iter().map(|(log, _)| (log.header.number, log.offset())).collect(),
            };
            let options = Options { read_only: true, ..options };
            let (fs, data) = (Arc::clone(fs), Arc::clone(&data));
            let store = Store::assemble(fs, path, Mode::ReadOnly, data, view.table, journal, options, Some(lock));
            store.set_last_commit(view.commit);
            let transactions = Transactions::new(view.logs);
            let recovery = Recovery { root, checkpoint, commit: view.commit, transactions, notes: view.notes };
            (store, recovery)
        });
        let path = path.clone();
        Ok(Examined { state, headers, logs, extents, file_bytes, log_error, data, path, entries })
    }

    /// Opens a database of which a part of the page map is damaged, for reading what is left. Pages that cannot be found
    /// are damaged ones. The notes say what is missing.
    ///
    /// # Errors
    /// As [`Store::open`]; a damaged log is none that could be passed over.
    pub fn open_damaged(fs: &Arc<dyn FileSystem>, path: &Path, options: Options) -> Result<(Store, Recovery)> {
        let mut notes = Vec::new();
        let examined = Store::examine(fs, path, options, &mut |damage| notes.push(damage.to_string()))?;
        if let Some(error) = examined.log_error {
            return Err(error);
        }
        match (examined.state, examined.headers) {
            (Some((store, mut recovery)), _) => {
                recovery.notes.splice(0..0, notes);
                Ok((store, recovery))
            }
            (None, [first, second]) => {
                let why = |copy: Result<HeaderInfo, String>| copy.err().unwrap_or_default();
                Err(Error::HeadersDamaged { path: examined.path, first: why(first), second: why(second) })
            }
        }
    }
}

impl Examined {
    /// Bytes of all pages: what [`Examined::read_pages`] reads.
    pub fn page_bytes(&self) -> u64 {
        self.pages().map(|(extent, _, _)| extent.bytes).sum()
    }

    /// Reads and verifies every page that a header or a log names, in the order of the file, one at a time. `visit` gets
    /// each with its payload, or with what is wrong.
    pub fn read_pages(&self, visit: &mut dyn FnMut(&ExtentInfo, Result<Pinned, Damage>)) {
        for (extent, page, entry) in self.pages() {
            let read = match read_page(&*self.data, &self.path, page, entry) {
                Ok(whole) => Ok(whole.slice(page::HEADER_BYTES..whole.len())),
                Err(error) => Err(Damage {
                    file: self.path.clone(),
                    part: Part::Page(page, entry.kind()),
                    offset: extent.offset,
                    what: what_is_wrong(error),
                    is_fallback: extent.is_fallback,
                }),
            };
            visit(extent, read);
        }
    }

    /// The stretches of the file that nothing depends on, without the padding of pages.
    pub fn unused(&self) -> Vec<Range<u64>> {
        let (mut unused, mut end) = (Vec::new(), 0);
        for extent in &self.extents {
            if extent.offset > end {
                unused.push(end..extent.offset);
            }
            end = end.max(extent.offset + extent.bytes);
        }
        if self.file_bytes > end {
            unused.push(end..self.file_bytes);
        }
        unused
    }

    fn pages(&self) -> impl Iterator<Item = (&ExtentInfo, PageId, PageEntry)> {
        self.extents
            .iter()
            .filter_map(|extent| Some((extent, extent.page?, *self.entries.get(&(extent.offset, extent.page))?)))
    }
}

impl HeaderInfo {
    fn of(header: &Header) -> HeaderInfo {
        HeaderInfo {
            database: header.database,
            checkpoint: header.checkpoint,
            log: header.log,
            commit: header.commit,
            next_page: header.next_page,
            catalog_root: header.catalog_root,
            file_bytes: header.file_units * UNIT_BYTES as u64,
            map_depth: header.map_depth,
            is_closed: header.is_closed,
        }
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Damage { file, part, offset, what, is_fallback } = self;
        match part {
            Part::Header(copy) => write!(f, "{}: header copy {copy} at byte {offset}", file.display())?,
            Part::File => write!(f, "{}", file.display())?,
            Part::MapNode(pages) => write!(
                f,
                "{}: the map node at byte {offset}, which says where pages {} to {} are,",
                file.display(),
                pages.start,
                pages.end.saturating_sub(1)
            )?,
            Part::Page(page, kind) => write!(f, "{}: page {page} ({kind}) at byte {offset}", file.display())?,
            Part::Log => write!(f, "{}: the log at byte {offset}", file.display())?,
        }
        write!(f, " is damaged: {what}")?;
        match is_fallback {
            true => f.write_str("; it is needed only should the newer header copy be lost"),
            false => Ok(()),
        }
    }
}

/// What one header leads to.
struct View {
    copy: usize,
    header: Header,
    table: PageTable,
    /// Pages and nodes that the map on disk names.
    named: Vec<(Option<PageId>, PageEntry)>,
    /// Whether all of the map could be read.
    is_whole: bool,
    logs: Vec<(LogReader, CommitNumber)>,
    log_error: Option<Error>,
    commit: CommitNumber,
    notes: Vec<String>,
}

struct Scene<'a> {
    fs: &'a dyn FileSystem,
    data: &'a dyn File,
    path: &'a Path,
    file_bytes: u64,
    is_fallback: bool,
}

impl Scene<'_> {
    fn view(&self, copy: usize, header: Header, report: &Report<'_>) -> Result<View> {
        let table = PageTable::new(&header, header.file_units.max(self.file_bytes / UNIT_BYTES as u64), false);
        let mut view = View {
            copy,
            commit: header.commit,
            header,
            table,
            named: Vec::new(),
            is_whole: true,
            logs: Vec::new(),
            log_error: None,
            notes: Vec::new(),
        };
        let bytes_expected = view.header.file_units * UNIT_BYTES as u64;
        if self.file_bytes < bytes_expected && !view.header.map_root.is_absent() {
            view.is_whole = false;
            let (bytes, checkpoint) = (self.file_bytes, view.header.checkpoint);
            let what =
                format!("it has {bytes} bytes, checkpoint {checkpoint} needs {bytes_expected}; what is behind is lost");
            self.report(self.path, Part::File, bytes, what, report);
        }
        self.load_map(&mut view, report)?;
        self.read_logs(&mut view, report)?;
        Ok(view)
    }

    fn report(&self, file: &Path, part: Part, offset: u64, what: String, report: &Report<'_>) {
        (report.borrow_mut())(Damage { file: file.to_path_buf(), part, offset, what, is_fallback: self.is_fallback });
    }

    /// Loads what can be read of the page map.
    fn load_map(&self, view: &mut View, report: &Report<'_>) -> Result<()> {
        let PageTable { space, lost, .. } = &mut view.table;
        let is_whole = &mut view.is_whole;
        // The ids below the node that is being read, for what is found wrong in it.
        let ids_of_node = RefCell::new(0..0);
        let mut read = |entry: PageEntry, ids: Range<u64>| {
            ids_of_node.replace(ids.clone());
            Ok(read_node(self.data, self.path, entry, ids.clone()).unwrap_or_else(|error| {
                *is_whole = false;
                let what = without_ids(what_is_wrong(error));
                lost.push(LostPages { pages: ids.clone(), node_offset: entry.offset() });
                self.report(self.path, Part::MapNode(ids), entry.offset(), what, report);
                vec![0; NODE_BYTES]
            }))
        };
        let named = &mut view.named;
        let mut bad_entries = Vec::new();
        view.table.map = map::load(view.header.map_root, view.header.map_depth, &mut read, &mut |visit| {
            let (page, entry) = match visit {
                Visit::Node(entry) => (None, entry),
                Visit::Page(page, entry) => (Some(page), entry),
                Visit::Nonsense(node, what) => {
                    bad_entries.push((ids_of_node.borrow().clone(), node.offset(), what));
                    return Ok(false);
                }
            };
            if let Err(what) = reserve(space, entry.extent()) {
                match page {
                    Some(page) => {
                        bad_entries.push((page.0..page.0 + 1, entry.offset(), format!("page {page}: {what}")));
                    }
                    None => bad_entries.push((ids_of_node.borrow().clone(), entry.offset(), what)),
                }
                return Ok(false);
            }
            named.push((page, entry));
            Ok(true)
        })?;
        for (pages, offset, what) in bad_entries {
            view.is_whole = false;
            view.table.lost.push(LostPages { pages: pages.clone(), node_offset: offset });
            self.report(self.path, Part::MapNode(pages), offset, what, report);
        }
        Ok(())
    }

    /// Goes through the logs as a recovery does. What comes behind damage is gone through too, to say what is damaged
    /// there.
    fn read_logs(&self, view: &mut View, report: &Report<'_>) -> Result<()> {
        let readers = match open_logs(self.fs, self.path, &view.header, &mut view.notes) {
            Ok((readers, _)) => readers,
            Err(error) => {
                let (log, offset, what) = self.log_damage(error, view.header.log)?;
                let first = view.header.log;
                self.report(
                    &log,
                    Part::Log,
                    offset,
                    format!("{what}; nothing committed since checkpoint {first} can be replayed"),
                    report,
                );
                view.log_error = Some(Error::DamagedLog { log: log.clone(), offset, what });
                for number in log::list(self.fs, self.path)?.into_iter().filter(|number| *number >= first) {
                    let other = log::path_of(self.path, number);
                    if other != log {
                        self.check_alone(&other, number, &view.header, report)?;
                    }
                }
                return Ok(());
            }
        };
        for (index, reader) in readers.iter().enumerate() {
            let mut reader = reader.clone();
            let mut end = reader.clone();
            let start = reader.header.start_commit;
            let replayed = if start > view.commit {
                let what = format!("starts after commit {start}, what is before it ends with {}", view.commit);
                Err(Error::DamagedLog { log: reader.path.clone(), offset: reader.offset(), what })
            } else {
                reader.start_after(view.commit);
                end = reader.clone();
                let replayed = replay_references(&mut end, &readers[index + 1..], &mut view.table, &mut view.notes);
                view.commit = end.commit();
                view.logs.push((reader, view.commit));
                replayed
            };
            match replayed {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    let (log, offset, what) = self.log_damage(error, end.header.number)?;
                    let what = format!("{what}; nothing committed after {} can be replayed", view.commit);
                    self.report(&log, Part::Log, offset, what.clone(), report);
                    view.log_error = Some(Error::DamagedLog { log, offset, what });
                    self.report_stretches(&end, 1, report)?;
                    for later in &readers[index + 1..] {
                        self.report_stretches_if_promised(later, report)?;
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// Where a log is damaged, and how.
    fn log_damage(&self, error: Error, number: CheckpointNumber) -> Result<(PathBuf, u64, String)> {
        Ok(match error {
            Error::DamagedLog { log, offset, what } => (log, offset, what),
            Error::LogMissing { log, .. } => (log, 0, "it is missing; put it back beside the database".to_string()),
            Error::LogForeign { log, found, .. } => (log, 0, format!("it belongs to database {found}")),
            Error::LogStray { log, checkpoint, .. } => {
                (log, 0, format!("it follows a later state than the file, which was closed at checkpoint {checkpoint}"))
            }
            error @ (Error::NewerFormat { .. } | Error::UnknownFeature { .. }) => return Err(error),
            other => (log::path_of(self.path, number), 0, other.to_string()),
        })
    }

    /// A log that nothing leads to, because one before it is missing.
    fn check_alone(&self, path: &Path, number: CheckpointNumber, header: &Header, report: &Report<'_>) -> Result<()> {
        let opened = self.fs.open(path, OpenMode::Read).map_err(failed(path, "opening a log"));
        match opened.and_then(|file| LogReader::open(file, path, header.database, number)) {
            Ok(Some(reader)) => self.report_stretches_if_promised(&reader, report),
            Ok(None) => Ok(()),
            Err(error) => {
                let (log, offset, what) = self.log_damage(error, number)?;
                self.report(&log, Part::Log, offset, what, report);
                Ok(())
            }
        }
    }

    fn report_stretches_if_promised(&self, reader: &LogReader, report: &Report<'_>) -> Result<()> {
        match reader.find_synced_frame()? {
            Some(_) => self.report_stretches(reader, 0, report),
            None => Ok(()),
        }
    }

    /// Reports what is broken behind the reader's place, less what is known of already.
    fn report_stretches(&self, reader: &LogReader, known: usize, report: &Report<'_>) -> Result<()> {
        let (stretches, last) = reader.broken_stretches()?;
        for (offset, why) in stretches.into_iter().skip(known) {
            let what = format!("{why}; frames up to commit {last} behind it are whole");
            self.report(&reader.path, Part::Log, offset, what, report);
        }
        Ok(())
    }
}

/// Pages and nodes of all views, each place once, in the order of the file.
fn used_by(views: &[View]) -> Vec<(ExtentInfo, PageEntry)> {
    let mut used = BTreeMap::new();
    for (index, view) in views.iter().enumerate() {
        let mut add = |page, entry: PageEntry| {
            let extent = entry.extent();
            let bytes = extent.units.saturating_mul(UNIT_BYTES as u64);
            let info = ExtentInfo {
                offset: entry.offset(),
                bytes,
                padding_bytes: bytes - u64::from(entry.bytes),
                kind: Some(entry.kind()),
                page,
                is_fallback: index > 0,
            };
            used.entry((extent.place, page)).or_insert((info, entry));
        };
        view.named.iter().for_each(|(page, entry)| add(*page, *entry));
        view.table.map.for_each_page(&mut |page, entry| add(Some(page), entry));
    }
    used.into_values().collect()
}

fn logs_of(fs: &dyn FileSystem, path: &Path, views: &[View]) -> Result<Vec<LogInfo>> {
    let mut logs = Vec::new();
    for number in log::list(fs, path)? {
        let path = log::path_of(path, number);
        let file = fs.open(&path, OpenMode::Read).map_err(failed(&path, "opening a log"))?;
        let bytes = file.length().map_err(failed(&path, "reading a log"))?;
        let replayed = views.iter().flat_map(|view| &view.logs).find(|(log, _)| log.header.number == number);
        let (used_bytes, replayed) = match replayed {
            Some((log, last)) => {
                let mut end = log.clone();
                while end.commit() < *last && matches!(end.next()?, log::Stop::Commit(_)) {}
                let first = CommitNumber(log.commit().0 + 1);
                (end.offset(), (*last >= first).then_some((first, *last)))
            }
            None => (0, None),
        };
        logs.push(LogInfo { number, path, bytes, used_bytes, replayed });
    }
    Ok(logs)
}

/// What an error says beside the place.
fn what_is_wrong(error: Error) -> String {
    match error {
        Error::DamagedPage { what, .. } | Error::DamagedLog { what, .. } => what,
        Error::Io { source, .. } => format!("it cannot be read: {source}"),
        other => other.to_string(),
    }
}

/// The ids stand in the part already.
fn without_ids(what: String) -> String {
    what.split("; it holds the places of").next().unwrap_or_default().to_string()
}
