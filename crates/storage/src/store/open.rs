//! From a path to a store.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use uuid::Uuid;

use super::checkpoint::older_copy;
use super::group_sync::GroupSync;
use super::journal::Journal;
use super::page_table::PageTable;
use super::reading::{ReadAheadThreads, Reads};
use super::recover::{Recovered, Recovery, Transactions, recover};
use super::{Mode, Store};
use crate::budget::Budget;
use crate::error::{Error, Result, failed};
use crate::fs::{File, FileSystem, HeapFileSystem, LockGuard, LockKind, LockOutcome, OpenMode};
use crate::header::{CHECKPOINT_AT, CHECKSUM_AT, COPIES, DATABASE_AT, FORMAT_VERSION, Header, MAGIC, Unusable};
use crate::ids::{CheckpointNumber, PageId, UNIT_BYTES};
use crate::map::PageMap;
use crate::options::Options;
use crate::space::Space;
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
use crate::sync::{Arc, Mutex, PoisonError, RwLock};

impl Store {
    /// Opens a database, or creates it where there is none (unless read-only), and brings it to its last commit.
    ///
    /// The caller loads [`Recovery::root`] and applies [`Recovery::transactions`] to it, each of which may be in it
    /// already.
    ///
    /// # Errors
    /// See [`Error`]: in use, not ours, newer than this build, damaged; each names the file and the remedy. Nothing is
    /// changed then, but that a creation may be left unfinished; the next open finishes it.
    pub fn open(fs: Arc<dyn FileSystem>, path: &Path, options: Options) -> Result<(Store, Recovery)> {
        let path = &fs.follow_links(path).map_err(failed(path, "opening the database"))?;
        let (data, lock) = open_and_lock(&*fs, path, options.read_only)?;
        let mut notes = Vec::new();
        if is_unfinished(&*data, path)? {
            if options.read_only {
                let what = "it is empty; opening it for writing would create a database".to_string();
                return Err(Error::NotADatabase { path: path.to_path_buf(), what });
            }
            create(&*fs, &*data, path)?;
        }
        let candidates = usable_headers(&*data, path, &mut notes)?;
        let whole_copies = candidates.len();
        let named_end = candidates.iter().map(|(_, header)| header.file_units).max();
        let (recovered, rejected) = recover_from_any(&fs, &data, path, candidates, options.read_only, &mut notes)?;
        let Recovered { header, header_copy, mut table, logs, next_log, commit, older_logs } = recovered;
        table.named_end = table.named_end.max(named_end.unwrap_or(0));
        let root = header.catalog_root;
        let rejected_header = Some((older_copy(header_copy), header.clone()));
        let checkpoint = header.checkpoint;
        let journal = Journal {
            writer: None,
            unsynced_logs: logs.iter().map(|(log, _)| log.file()).collect(),
            next_log,
            header,
            header_copy,
            older_logs,
        };
        let mode = if options.read_only { Mode::ReadOnly } else { Mode::Durable };
        let store = Store::assemble(fs, path, mode, data, table, journal, options, Some(lock));
        store.set_last_commit(commit);
        store.log_sync.advance(commit.0);
        if mode == Mode::Durable && (rejected > 0 || whole_copies < COPIES) {
            *store.rejected_header.lock().unwrap_or_else(PoisonError::into_inner) = rejected_header;
        }
        Ok((store, Recovery { root, checkpoint, commit, transactions: Transactions::new(logs), notes }))
    }

    /// Puts the header in use into the place of the copy that an open passed over, durably, if it did. Who reads that one
    /// well the next time would believe it again, while what it names is free. To be called before anything is allocated
    /// or committed; on error the store is poisoned.
    pub(super) fn overwrite_rejected_header(&self) -> Result<()> {
        let mut rejected = self.rejected_header.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((copy, header)) = &*rejected {
            self.check_poison()?;
            self.write_header(*copy, header)?;
            self.sync_data_always()?;
            *rejected = None;
        }
        Ok(())
    }

    /// A database in memory: no log, no checkpoints, nothing to recover. Its budget has no limit yet.
    ///
    /// # Panics
    /// Never: a new heap file can always be made.
    pub fn memory() -> Store {
        let fs = Arc::new(HeapFileSystem::new());
        let path = Path::new(":memory:");
        let data = fs.open(path, OpenMode::Create).expect("a heap file can always be created");
        let table = PageTable::new(&Header::new(Uuid::new_v4()), COPIES as u64, true);
        let journal = Journal {
            writer: None,
            unsynced_logs: Vec::new(),
            next_log: CheckpointNumber(0),
            header: Header::new(Uuid::new_v4()),
            header_copy: 0,
            older_logs: BTreeMap::new(),
        };
        let options = Options { memory_limit_bytes: usize::MAX, ..Options::default() };
        Store::assemble(fs, path, Mode::Memory, data, table, journal, options, None)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a store, each once")]
    pub(super) fn assemble(
        fs: Arc<dyn FileSystem>,
        path: &Path,
        mode: Mode,
        data: Arc<dyn File>,
        table: PageTable,
        journal: Journal,
        options: Options,
        lock: Option<LockGuard>,
    ) -> Store {
        Store {
            logs_synced_at: Mutex::new(fs.now()),
            fs,
            path: path.to_path_buf(),
            mode,
            data,
            pages: RwLock::new(table),
            pool: Budget::new(options.memory_limit_bytes).share(),
            reads: Reads::default(),
            read_ahead: ReadAheadThreads::default(),
            journal: Mutex::new(journal),
            rejected_header: Mutex::new(None),
            checkpoint_turn: Mutex::new(()),
            checkpoint_next: Mutex::new(()),
            last_commit: AtomicU64::new(0),
            horizon: AtomicU64::new(0),
            log_sync: GroupSync::new(0),
            // As if something were not durable: what a process before this one wrote.
            data_sync: GroupSync::new(0),
            data_writes: AtomicU64::new(1),
            synchronous: AtomicU8::new(options.synchronous as u8),
            poison: OnceLock::new(),
            is_closed: AtomicBool::new(false),
            handles: Mutex::default(),
            lock: Mutex::new(lock),
        }
    }
}

impl PageTable {
    /// The table of a database of which only the header is known yet, in a file of so many units.
    pub(super) fn new(header: &Header, file_units: u64, is_memory: bool) -> PageTable {
        PageTable {
            map: PageMap::default(),
            fresh: HashMap::new(),
            space: Space::new(COPIES as u64, file_units),
            next_page: PageId(header.next_page.0.max(1)),
            named_end: header.file_units,
            epoch: header.log,
            since_cut: None,
            is_changed: false,
            is_memory,
            lost: Vec::new(),
            unmovable: BTreeMap::new(),
        }
    }
}

pub(super) fn open_and_lock(fs: &dyn FileSystem, path: &Path, read_only: bool) -> Result<(Arc<dyn File>, LockGuard)> {
    let (mode, kind, remedy) = if read_only {
        let remedy = "a reader can join when nobody writes: wait, or ask the writer for a BACKUP";
        (OpenMode::Read, LockKind::Shared, remedy)
    } else {
        let remedy = "open it with --readonly when nobody writes, go through `sinter serve`, or read a BACKUP";
        (OpenMode::Create, LockKind::Exclusive, remedy)
    };
    let opened = fs.open(path, mode);
    let data = opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound if read_only => Error::NotFound { path: path.to_path_buf() },
        _ => failed(path, "opening the database")(error),
    })?;
    match fs.lock(path, kind).map_err(failed(path, "locking the database"))? {
        LockOutcome::Held(lock) => Ok((data, lock)),
        LockOutcome::Refused(holders) => Err(Error::Locked { path: path.to_path_buf(), holders, remedy }),
    }
}

/// Whether the file holds nothing, or the beginning of a database whose creation was cut short: no page can be in it,
/// and nobody was told that it exists.
pub(super) fn is_unfinished(data: &dyn File, path: &Path) -> Result<bool> {
    let length = data.length().map_err(failed(path, "reading the header"))?;
    if length > (COPIES * UNIT_BYTES) as u64 {
        return Ok(false);
    }
    let [first, second] = header_bytes(data, path)?;
    // Torn anywhere, each byte is as it would be in the end, or still zero. UUID and checksum may be any.
    let template = Header::new(Uuid::nil()).encode();
    let begun = first.iter().zip(template).enumerate().all(|(at, (&byte, expected))| {
        byte == 0 || byte == expected || (DATABASE_AT..CHECKPOINT_AT).contains(&at) || at >= CHECKSUM_AT
    });
    Ok(begun && second.iter().all(|byte| *byte == 0) && Header::decode(&first).is_err_and(|why| why.is_rot()))
}

impl Unusable {
    /// Whether the bytes are none that any SinterDB wrote.
    fn is_rot(&self) -> bool {
        matches!(self, Unusable::Foreign | Unusable::Damaged(_))
    }

    pub(super) fn in_words(&self) -> String {
        match self {
            Unusable::Foreign => "does not start as a SinterDB database does".to_string(),
            Unusable::Damaged(what) => what.clone(),
            Unusable::Newer(version) => format!("format version {version}"),
            Unusable::Features(features) => format!("features {features:#x}"),
        }
    }
}

/// Both copies; what the file is too short for reads as zeros.
pub(super) fn header_bytes(data: &dyn File, path: &Path) -> Result<[[u8; UNIT_BYTES]; COPIES]> {
    let length = data.length().map_err(failed(path, "reading the header"))?;
    let mut copies = [[0; UNIT_BYTES]; COPIES];
    for (index, copy) in copies.iter_mut().enumerate() {
        let start = (index * UNIT_BYTES) as u64;
        let there = length.saturating_sub(start).min(UNIT_BYTES as u64) as usize;
        if there == 0 {
            break;
        }
        data.read_at(start, &mut copy[..there]).map_err(failed(path, "reading the header"))?;
    }
    Ok(copies)
}

/// Writes both header copies of an empty database, one after the other.
fn create(fs: &dyn FileSystem, data: &dyn File, path: &Path) -> Result<()> {
    let header = Header::new(Uuid::new_v4()).encode();
    for copy in 0..COPIES {
        data.write_at((copy * UNIT_BYTES) as u64, &[&header]).map_err(failed(path, "creating the database"))?;
        data.sync().map_err(failed(path, "creating the database"))?;
    }
    let directory = path.parent().map(PathBuf::from).unwrap_or_default();
    fs.sync_directory(&directory).map_err(failed(path, "creating the database"))
}

/// Both header copies of a database that this build can read, as far as it is one.
pub(super) fn header_copies(data: &dyn File, path: &Path) -> Result<[Result<Header, Unusable>; COPIES]> {
    let mut bytes = header_bytes(data, path)?;
    let decode = |bytes: &[[u8; UNIT_BYTES]; COPIES]| [Header::decode(&bytes[0]), Header::decode(&bytes[1])];
    let mut copies = decode(&bytes);
    if copies.iter().any(Result::is_err) {
        // It may have been the read.
        bytes = header_bytes(data, path)?;
        copies = decode(&bytes);
    }
    let path = path.to_path_buf();
    for copy in &copies {
        match *copy {
            Err(Unusable::Newer(found)) => return Err(Error::NewerFormat { path, found, known: FORMAT_VERSION }),
            Err(Unusable::Features(unknown)) => return Err(Error::UnknownFeature { path, unknown }),
            _ => {}
        }
    }
    if copies.iter().all(|copy| *copy == Err(Unusable::Foreign)) {
        return Err(Error::NotADatabase { path, what: foreign(&bytes[0]) });
    }
    Ok(copies)
}

/// The header copies that can be used, the best first.
fn usable_headers(data: &dyn File, path: &Path, notes: &mut Vec<String>) -> Result<Vec<(usize, Header)>> {
    let copies = header_copies(data, path)?;
    if let [Err(first), Err(second)] = &copies {
        let (path, first, second) = (path.to_path_buf(), first.in_words(), second.in_words());
        return Err(Error::HeadersDamaged { path, first, second });
    }
    let mut usable = Vec::new();
    for (index, copy) in copies.into_iter().enumerate() {
        match copy {
            Ok(header) => usable.push((index, header)),
            Err(why) => notes.push(format!(
                "the header copy at byte {} is not whole ({}); the other one is used",
                index * UNIT_BYTES,
                why.in_words()
            )),
        }
    }
    best_first(&mut usable);
    Ok(usable)
}

/// The newest first; of two that are otherwise the same, the one that does not deny that there may be a log.
pub(super) fn best_first(headers: &mut [(usize, Header)]) {
    headers.sort_by_key(|(_, header)| (std::cmp::Reverse(header.checkpoint), header.is_closed));
}

/// What a file that is not ours starts with, in words where it is a kind that people mix up with ours.
fn foreign(bytes: &[u8]) -> String {
    const KNOWN: [(&[u8], usize, &str); 6] = [
        (b"SQLite format 3", 0, "an SQLite database"),
        (b"DUCK", 8, "a DuckDB database"),
        (b"PAR1", 0, "a Parquet file"),
        (b"ARROW1", 0, "an Arrow file"),
        (b"SinterLG", 0, "the log of a SinterDB database"),
        (b"\x28\xb5\x2f\xfd", 0, "a zstd archive"),
    ];
    let known = KNOWN.iter().find(|(magic, at, _)| bytes[*at..].starts_with(magic));
    match known {
        Some((_, _, name)) => format!("it is {name}"),
        None => format!("it starts with {:02x?}, a database with {MAGIC:02x?}", &bytes[..MAGIC.len()]),
    }
}

/// Recovers from the newest header, or from the one before if the newest one's page map is damaged, also when it is read
/// again. Returns how many headers were rejected, too.
fn recover_from_any(
    fs: &Arc<dyn FileSystem>,
    data: &Arc<dyn File>,
    path: &Path,
    candidates: Vec<(usize, Header)>,
    read_only: bool,
    notes: &mut Vec<String>,
) -> Result<(Recovered, usize)> {
    let mut first_error = None;
    for (index, (copy, header)) in candidates.iter().enumerate() {
        let older = candidates.get(index + 1).map(|(_, header)| header);
        let try_it = || {
            let mut notes = Vec::new();
            recover(&**fs, &**data, path, (*copy, header), older, read_only, &mut notes).map(|found| (found, notes))
        };
        let is_unusable = |error: &Error| matches!(error, Error::DamagedPage { .. } | Error::Truncated { .. });
        match try_it().or_else(|error| if is_unusable(&error) { try_it() } else { Err(error) }) {
            Ok((recovered, mut new_notes)) => {
                notes.append(&mut new_notes);
                return Ok((recovered, index));
            }
            // A damaged log is no reason to go back: the older header needs the same log, and would hide what is lost.
            Err(error) if is_unusable(&error) => {
                notes.push(format!("checkpoint {} cannot be used: {error}", header.checkpoint));
                first_error.get_or_insert(error);
            }
            Err(error) => return Err(first_error.unwrap_or(error)),
        }
    }
    match first_error {
        Some(error) => Err(error),
        None => unreachable!("there is at least one usable header"),
    }
}
