//! A copy of one state in a file of its own, while the database is in use.
//!
//! Whoever asks for it holds the state, and with it every page that the state is made of; so the copy takes no turn from
//! checkpoints and no lock for longer than it takes to look up where a page is. It reads what a checkpoint of the same
//! state would keep, checks it, and writes it one after the other, so the new file has no gaps. Page ids stay the same,
//! since the pages name each other by them.
//!
//! The copy is a database of its own, with a UUID of its own: from here on the two give the same numbers to different
//! commits, and the log of one must never be taken for the other's.
//!
//! It is written under another name, synced, and then renamed: whoever finds it under its own name finds it whole.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::Store;
use super::checkpoint::{CheckpointWriter, Destination};
use super::pages::{ZEROS, page_header};
use crate::error::{Error, Result, failed};
use crate::fs::{File, FileSystem, LockKind, LockOutcome, OpenMode};
use crate::header::{COPIES, Header};
use crate::ids::{CheckpointNumber, CommitNumber, PageId, UNIT_BYTES, units_for};
use crate::log;
use crate::map::{NODE_BYTES, PageEntry, PageMap};
use crate::page_kind::PageKind;

const WRITING: &str = "writing the backup";

/// How far a backup has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupProgress {
    /// Bytes of pages in the new file.
    pub bytes_done: u64,
    /// Bytes of pages that will be in it.
    pub bytes_total: u64,
}

impl Store {
    /// Writes one state into a new file, a whole and closed database, while others go on. `write` names what is in it, as
    /// for the first checkpoint of all: it puts or keeps every page of the state, and returns the root. The pages that it
    /// keeps must live until this returns; `commit` is the last commit in the state.
    ///
    /// `progress` is called before each page that is copied, and at the end; by breaking off it ends the backup.
    ///
    /// It works on every store that is open: read-only, poisoned, in memory.
    ///
    /// # Errors
    /// [`Error::Exists`]: `path` is taken; [`Error::GivenUp`] by `progress`; those of `write`; damage in a page;
    /// [`Error::DiskFull`], [`Error::Io`]. There is no file at `path` then. A crash may leave one there whose name ends
    /// in `-unfinished`, which the next backup to `path` replaces.
    pub fn backup(
        &self,
        fs: &dyn FileSystem,
        path: &Path,
        commit: CommitNumber,
        progress: &mut dyn FnMut(BackupProgress) -> ControlFlow<()>,
        write: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<PageId>,
    ) -> Result<()> {
        self.check_open()?;
        check_is_free(fs, path)?;
        let unfinished = unfinished_path(path);
        let create = || fs.open(&unfinished, OpenMode::Create).map_err(failed(path, WRITING));
        drop(create()?);
        let remedy = "another backup to the same path is under way; wait for it";
        let lock = match fs.lock(&unfinished, LockKind::Exclusive).map_err(failed(path, WRITING))? {
            LockOutcome::Held(lock) => lock,
            LockOutcome::Refused(holders) => return Err(Error::Locked { path: path.to_path_buf(), holders, remedy }),
        };
        // Opened again under the lock: the first handle may be on a file that another backup has just finished.
        let done = create().and_then(|file| {
            file.set_length(0).map_err(failed(path, WRITING))?;
            let mut out = BackupFile {
                store: self,
                file: &*file,
                path,
                commit,
                map: PageMap::default(),
                kept: BTreeSet::new(),
                end: COPIES as u64,
                bytes_done: 0,
            };
            let root = write(&mut CheckpointWriter::new(&mut out))?;
            out.finish(root, progress)?;
            check_is_free(fs, path)?;
            fs.rename(&unfinished, path).map_err(failed(path, WRITING))?;
            let directory = path.parent().map(PathBuf::from).unwrap_or_default();
            fs.sync_directory(&directory).map_err(failed(path, WRITING)).inspect_err(|_| drop(fs.remove(path)))
        });
        if done.is_err() {
            // One that stays is no harm.
            let _ = fs.remove(&unfinished);
        }
        drop(lock);
        done
    }
}

fn unfinished_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-unfinished");
    PathBuf::from(name)
}

/// A log of a database that was at `path` before would be taken for the new one's, and found to be foreign.
fn check_is_free(fs: &dyn FileSystem, path: &Path) -> Result<()> {
    let exists = fs.exists(path).map_err(failed(path, WRITING))?;
    let log = log::list(fs, path)?.into_iter().map(|number| log::path_of(path, number)).next();
    match exists.then(|| path.to_path_buf()).or(log) {
        Some(found) => Err(Error::Exists { path: path.to_path_buf(), found }),
        None => Ok(()),
    }
}

/// The new file. Its pages follow each other in the order in which they are written.
struct BackupFile<'a> {
    store: &'a Store,
    file: &'a dyn File,
    path: &'a Path,
    commit: CommitNumber,
    /// Where the pages are that were written.
    map: PageMap,
    /// Those that are still to be copied.
    kept: BTreeSet<PageId>,
    /// The first unit that is not written.
    end: u64,
    bytes_done: u64,
}

impl BackupFile<'_> {
    /// Writes a page at the end.
    fn append(&mut self, page: PageId, kind: PageKind, parts: &[&[u8]], checksum: u32) -> Result<()> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let entry = PageEntry::new(self.end, kind, bytes as u32, checksum);
        let padding = &ZEROS[..units_for(bytes as u64) as usize * UNIT_BYTES - bytes];
        let written = self.file.write_at(entry.offset(), &[parts, &[padding]].concat());
        written.map_err(failed(self.path, WRITING))?;
        self.end = entry.extent().end();
        self.bytes_done += bytes as u64;
        self.map.replace(page, entry, &mut Vec::new());
        Ok(())
    }

    /// Copies what was kept, and makes a database of it. All is durable on return.
    fn finish(mut self, root: PageId, progress: &mut dyn FnMut(BackupProgress) -> ControlFlow<()>) -> Result<()> {
        let (store, file, path) = (self.store, self.file, self.path);
        // In the order of the places, as disks like it.
        let mut pages = Vec::with_capacity(self.kept.len());
        for page in std::mem::take(&mut self.kept) {
            pages.push((store.entry(page)?, page));
        }
        pages.sort_unstable_by_key(|(entry, _)| entry.offset());
        let bytes_total = self.bytes_done + pages.iter().map(|(entry, _)| u64::from(entry.bytes)).sum::<u64>();
        let mut tell = |bytes_done| match progress(BackupProgress { bytes_done, bytes_total }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::GivenUp { path: path.to_path_buf() }),
        };
        for (mut entry, page) in pages {
            tell(self.bytes_done)?;
            let whole = loop {
                match store.whole_page(page, entry) {
                    Ok(whole) => break whole,
                    Err(error) => {
                        let before = std::mem::replace(&mut entry, store.entry(page)?);
                        // Else it moved while it was read, and its old place was given to another.
                        if entry == before {
                            return Err(error);
                        }
                    }
                }
            };
            self.append(page, entry.kind(), &[&whole], entry.checksum)?;
        }
        tell(self.bytes_done)?;
        if self.map.get(root).is_none() {
            return Err(Error::NoSuchPage { path: path.to_path_buf(), page: root });
        }
        let end = &mut self.end;
        let map_root = self.map.store(&mut |node| {
            let entry = PageEntry::new(*end, PageKind::MAP_NODE, NODE_BYTES as u32, crc32c::crc32c(node));
            file.write_at(entry.offset(), &[node]).map_err(failed(path, WRITING))?;
            *end = entry.extent().end();
            Ok(entry)
        })?;
        let number = CheckpointNumber(1);
        let header = Header {
            compatible_features: store.journal().header.compatible_features,
            checkpoint: number,
            log: number,
            commit: self.commit,
            next_page: store.pages().next_page,
            catalog_root: Some(root),
            file_units: self.end,
            map_root,
            map_depth: self.map.depth(),
            ..Header::new(Uuid::new_v4())
        };
        for copy in 0..COPIES {
            file.write_at((copy * UNIT_BYTES) as u64, &[&header.encode()]).map_err(failed(path, WRITING))?;
        }
        file.sync().map_err(failed(path, WRITING))
    }
}

impl Destination for BackupFile<'_> {
    fn commit(&self) -> CommitNumber {
        self.commit
    }

    fn put(&mut self, page: Option<PageId>, kind: PageKind, payload: &[u8]) -> Result<PageId> {
        let page = match page {
            Some(page) if self.map.get(page).is_none() => self.store.entry(page).map(|_| page)?,
            Some(page) => page,
            None => self.store.new_page_id(),
        };
        let (header, checksum) = page_header(page, kind, self.commit, payload)?;
        self.append(page, kind, &[&header, payload], checksum)?;
        self.kept.remove(&page);
        Ok(page)
    }

    fn keep(&mut self, page: PageId) -> Result<()> {
        if self.map.get(page).is_none() {
            self.store.entry(page)?;
            self.kept.insert(page);
        }
        Ok(())
    }

    fn free(&mut self, page: PageId) {
        self.kept.remove(&page);
        self.map.replace(page, PageEntry::ABSENT, &mut Vec::new());
    }
}
