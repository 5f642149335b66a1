//! Checkpoints: the state at one commit, written to the file, so that the log before it can go.
//!
//! The steps, and what a crash between them leaves:
//!
//! 1. *The cut.* A new log begins; the map is cloned. After a crash, the old header and both logs are replayed.
//! 2. *Pages.* The caller's pages and the map's changed nodes go to free places. A crash loses them, and nobody knew
//!    them.
//! 3. *Sync*, then *flip*: the older header copy is overwritten, and synced. A torn copy is not whole, and the other
//!    one still
//!    stands with everything it names.
//! 4. *Publish.* The new map becomes the live one; places that only the overwritten header and the logs before its
//!    successor named
//!    return; those logs are removed.
//!
//! In this step of the project commits wait from 1 to 4. Nothing in it depends on that: what happens to the map
//! after the cut is recorded and done again on the new map, and commits go to the new log from the cut on.

use super::journal::Journal;
use super::page_table::SinceCut;
use super::{Mode, Store};
use crate::error::{Error, Result};
use crate::header::{COPIES, Header};
use crate::ids::{CheckpointNumber, CommitNumber, Extent, PageId, UNIT_BYTES};
use crate::log;
use crate::map::{PageEntry, PageMap};
use crate::options::Synchronous;
use crate::page_kind::PageKind;

/// How a checkpoint ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The store goes on, with a new log.
    GoOn,
    /// The store is closed: both header copies say so, and there is no log.
    Close,
}

/// Where the new checkpoint begins.
struct Cut {
    number: CheckpointNumber,
    /// The log before the cut.
    before_cut: CheckpointNumber,
    map: PageMap,
}

/// Takes the pages of a checkpoint. They appear, all at once, when it has succeeded.
pub struct CheckpointWriter<'a> {
    store: &'a Store,
    /// The map at the cut, and what this checkpoint makes of it.
    map: PageMap,
    commit: CommitNumber,
    /// Places that the map named at the cut and does not now.
    given_up: Vec<Extent>,
    /// Places written by this checkpoint.
    written: Vec<Extent>,
}

impl CheckpointWriter<'_> {
    /// The last commit that the checkpoint holds.
    pub fn commit(&self) -> CommitNumber {
        self.commit
    }

    /// Writes a page: a new one for `None`, else a new version of that page. Returns its id.
    ///
    /// # Errors
    /// [`Error::NoSuchPage`], [`Error::TooLarge`], [`Error::DiskFull`], [`Error::Io`].
    pub fn put(&mut self, page: Option<PageId>, kind: PageKind, payload: &[u8]) -> Result<PageId> {
        let page = match page {
            Some(page) if self.map.get(page).is_none() => {
                return Err(Error::NoSuchPage { path: self.store.path.clone(), page });
            }
            Some(page) => page,
            None => self.store.new_page_id(),
        };
        let entry = self.store.write_entry(page, kind, payload)?;
        self.written.push(entry.extent());
        self.replace(page, entry);
        Ok(page)
    }

    /// Keeps a page that was written by [`Store::write_page`] and that no commit has named.
    ///
    /// # Errors
    /// [`Error::NoSuchPage`].
    pub fn keep(&mut self, page: PageId) -> Result<()> {
        let mut table = self.store.pages_mut();
        if let Some(fresh) = table.fresh.remove(&page) {
            table.replace(page, fresh.entry, &*self.store.data);
            table.since_cut.get_or_insert_default().kept.insert(page, fresh);
            drop(table);
            self.replace(page, fresh.entry);
            return Ok(());
        }
        if self.map.get(page).is_none() {
            return Err(Error::NoSuchPage { path: self.store.path.clone(), page });
        }
        Ok(())
    }

    /// Gives a page up that is not part of the checkpoint any more. An id that is not known is passed over.
    pub fn free(&mut self, page: PageId) {
        self.replace(page, PageEntry::ABSENT);
    }

    fn replace(&mut self, page: PageId, entry: PageEntry) {
        let old = self.map.replace(page, entry, &mut self.given_up);
        // A page put twice in the same checkpoint: the first version was nobody's, but is treated as the others.
        self.given_up.extend(old.map(|old| old.extent()));
    }
}

impl Store {
    /// Writes a checkpoint. `write` puts the pages of everything that is not yet in the file, as of
    /// [`CheckpointWriter::commit`], and returns the page at which [`Recovery::root`](crate::Recovery) will start.
    /// Commits wait meanwhile; `write` must not commit.
    ///
    /// In memory there is nothing to do, and `write` is not called.
    ///
    /// # Errors
    /// Those of `write`, [`Error::DiskFull`] and [`Error::Io`]: the checkpoint did not happen, and the store goes on.
    /// After the failure of a sync or of writing the header, the store is poisoned.
    pub fn checkpoint(&self, write: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<PageId>) -> Result<()> {
        self.check_writable()?;
        if self.mode == Mode::Memory {
            return Ok(());
        }
        let mut journal = self.journal();
        self.check_writable()?;
        self.checkpoint_under(&mut journal, Purpose::GoOn, write)
    }

    pub(super) fn checkpoint_under(
        &self,
        journal: &mut Journal,
        purpose: Purpose,
        write: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<PageId>,
    ) -> Result<()> {
        let Cut { number, before_cut, map } = self.cut(journal, purpose)?;
        let mut writer = CheckpointWriter {
            store: self,
            map,
            commit: self.last_commit(),
            given_up: Vec::new(),
            written: Vec::new(),
        };
        match self.write_checkpoint(journal, purpose, number, &mut writer, write) {
            Ok(header) => {
                self.publish(journal, header, writer, before_cut);
                Ok(())
            }
            Err(error) => {
                self.abandon(writer);
                Err(error)
            }
        }
    }

    /// Step 1.
    fn cut(&self, journal: &mut Journal, purpose: Purpose) -> Result<Cut> {
        if journal.header.is_closed {
            // The log with the closed checkpoint's number comes first, so that this one's number is new.
            self.log_writer(journal)?;
        }
        let number = journal.next_log;
        if self.synchronous() != Synchronous::Off {
            for log in journal.unsynced_logs.drain(..).chain(journal.writer.as_ref().map(|log| log.file().clone())) {
                log.sync().map_err(|error| self.poison(&log.path, "syncing the log", error))?;
            }
            self.log_sync.advance(self.last_commit().0);
        }
        if purpose == Purpose::GoOn {
            let log = self.create_log(journal)?;
            if let Some(old) = journal.writer.replace(log) {
                journal.older_logs_bytes += old.bytes();
                if self.synchronous() == Synchronous::Off {
                    journal.unsynced_logs.push(old.file().clone());
                }
            }
        }
        journal.next_log = CheckpointNumber(number.0 + 1);
        let mut table = self.pages_mut();
        let before_cut = std::mem::replace(&mut table.epoch, number);
        table.since_cut = Some(SinceCut::default());
        Ok(Cut { number, before_cut, map: table.map.clone() })
    }

    /// Steps 2 and 3.
    fn write_checkpoint(
        &self,
        journal: &mut Journal,
        purpose: Purpose,
        number: CheckpointNumber,
        writer: &mut CheckpointWriter<'_>,
        write: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<PageId>,
    ) -> Result<Header> {
        let root = write(writer)?;
        if writer.map.get(root).is_none() {
            return Err(Error::NoSuchPage { path: self.path.clone(), page: root });
        }
        let written = &mut writer.written;
        let map_root = writer.map.store(&mut |node| {
            let extent = self.write_to_free_place(&[node], UNIT_BYTES)?;
            written.push(extent);
            Ok(PageEntry::new(extent.place, PageKind::MAP_NODE, UNIT_BYTES as u32, crc32c::crc32c(node)))
        })?;
        self.sync_data()?;
        let (next_page, used_end) = {
            let table = self.pages();
            (table.next_page, table.space.used_end())
        };
        let header = Header {
            checkpoint: number,
            log: number,
            commit: writer.commit,
            next_page,
            catalog_root: Some(root),
            file_units: match purpose {
                Purpose::GoOn => used_end,
                Purpose::Close => end_of(&writer.map),
            },
            map_root,
            map_depth: writer.map.depth(),
            is_closed: purpose == Purpose::Close,
            ..journal.header.clone()
        };
        let older_copy = (journal.header_copy + 1) % COPIES;
        self.write_header(older_copy, &header)?;
        journal.header_copy = older_copy;
        Ok(header)
    }

    /// Step 4.
    fn publish(
        &self,
        journal: &mut Journal,
        header: Header,
        writer: CheckpointWriter<'_>,
        before_cut: CheckpointNumber,
    ) {
        let fallback = journal.header.checkpoint;
        journal.header = header;
        let mut table = self.pages_mut();
        let since = table.since_cut.take().unwrap_or_default();
        table.map = writer.map;
        table.is_changed = false;
        for extent in writer.given_up {
            table.space.retire(extent, before_cut);
        }
        for (page, entry) in since.changes {
            // A kept page is in the checkpoint's map already.
            if table.map.get(page) != Some(entry) {
                table.replace(page, entry, &*self.data);
            }
        }
        table.space.release_retired_before(fallback);
        drop(table);
        journal.unsynced_logs.retain(|log| log.number >= fallback);
        self.remove_logs_before(fallback);
        journal.older_logs_bytes =
            self.logs_bytes().saturating_sub(journal.writer.as_ref().map_or(0, |log| log.bytes()));
        journal.checkpointed_logs_bytes = journal.older_logs_bytes;
    }

    /// As if the checkpoint had not been tried, but for the new log.
    fn abandon(&self, writer: CheckpointWriter<'_>) {
        if self.poisoned().is_some() {
            // The header may have reached the disk: what it names stays as it is.
            return;
        }
        let mut table = self.pages_mut();
        let since = table.since_cut.take().unwrap_or_default();
        table.give_up(&since.given_up, &*self.data);
        for extent in writer.written {
            table.release(extent, &*self.data);
        }
        for (page, fresh) in since.kept {
            let mut given_up = Vec::new();
            if table.map.replace(page, PageEntry::ABSENT, &mut given_up).is_some() {
                table.give_up(&given_up, &*self.data);
                table.fresh.insert(page, fresh);
            }
        }
    }

    /// Bytes in all logs, as far as the file system tells.
    pub(super) fn logs_bytes(&self) -> u64 {
        let logs = log::list(&*self.fs, &self.path).unwrap_or_default();
        let length = |number| {
            let path = log::path_of(&self.path, number);
            self.fs.open(&path, crate::fs::OpenMode::Read)?.length()
        };
        logs.into_iter().filter_map(|number| length(number).ok()).sum()
    }
}

/// The unit after the last that the map names: what the file is cut to at the close.
pub(super) fn end_of(map: &PageMap) -> u64 {
    let mut end = COPIES as u64;
    map.for_each_page(&mut |_, entry| end = end.max(entry.extent().end()));
    map.for_each_stored_node(&mut |entry| end = end.max(entry.extent().end()));
    end
}
