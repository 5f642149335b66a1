//! Checkpoints: the state at one commit, written to the file, so that the log before it can go.
//!
//! Others commit, write, pin and free pages all the while. The steps, and what a crash between them leaves:
//!
//! 1. *Preparation.* All commits so far are made durable, and the next log is created: empty, and durably so. A crash
//!    leaves it empty behind the one that commits go to.
//! 2. *The cut*, the one step that commits wait for, and it touches no disk: the new log takes the old one's place, and
//!    the map is cloned. What was appended to the old log since the preparation is not durable yet, and what follows in
//!    the new one may reach the disk before it. But nothing in the new log is acknowledged before the old one is synced
//!    ([`Journal::unsynced_logs`]), so recovery may drop both where they do not meet.
//! 3. *Sync* of the old log. From here on a crash leaves the old header and both logs, to be replayed.
//! 4. *Pages.* The caller's pages and the map's changed nodes go to free places. A crash loses them, and nobody knew
//!    them.
//! 5. *Sync*, then *flip*: the older header copy is overwritten, and synced. A torn copy is not whole, and the other
//!    one still stands with everything it names.
//! 6. *Publish.* The new map becomes the live one, and what happened to the live one since the cut is done again on it;
//!    places that only the overwritten header and the logs before its successor named return; those logs are removed.
//! 7. *Cut.* Where so much has become free at the file's end that it would not grow back at once, it is given back. All
//!    that either header copy and its logs name lies before that, so whether the cut survives a crash matters to nobody.
//!
//! One checkpoint at a time: the next one waits in step 1. One that is given up half way, before step 5, leaves the
//! places that it took free, the pages that it kept as they were, and the logs as they are.

use super::journal::Journal;
use super::page_table::SinceCut;
use super::{Mode, Store};
use crate::error::{Error, Result};
use crate::header::{COPIES, Header};
use crate::ids::{CheckpointNumber, CommitNumber, Extent, PageId, UNIT_BYTES};
use crate::log::LogWriter;
use crate::map::{PageEntry, PageMap};
use crate::options::Synchronous;
use crate::page_kind::PageKind;
use crate::sync::{MutexGuard, PoisonError};

/// How a checkpoint ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The store goes on, with a new log.
    GoOn,
    /// The store is closed: both header copies say so, and there is no log.
    Close,
}

/// A checkpoint for which everything slow has been done that can be done before its cut. Others commit meanwhile.
///
/// Dropped without a cut, it leaves an empty log behind, which a later checkpoint removes.
pub struct PreparedCheckpoint<'a> {
    store: &'a Store,
    /// Taken by the cut.
    turn: Option<MutexGuard<'a, ()>>,
    /// The log that begins at the cut; `None` in memory, and after the cut.
    log: Option<LogWriter>,
}

/// A checkpoint under way: of the state at [`Checkpoint::commit`]. Others commit, write, pin and free pages meanwhile.
///
/// Dropped without [`Checkpoint::finish`], it is given up, as if it had not been tried.
pub struct Checkpoint<'a> {
    store: &'a Store,
    /// One checkpoint at a time.
    _turn: MutexGuard<'a, ()>,
    commit: CommitNumber,
    /// `None` in memory, and once it is finished.
    draft: Option<Draft<'a>>,
}

/// Takes the pages of a checkpoint, or of a backup. They appear, all at once, when it has succeeded.
pub struct CheckpointWriter<'a> {
    to: &'a mut (dyn Destination + 'a),
}

/// Where the pages of one state go.
pub(super) trait Destination {
    /// See [`CheckpointWriter::commit`].
    fn commit(&self) -> CommitNumber;
    /// See [`CheckpointWriter::put`].
    fn put(&mut self, page: Option<PageId>, kind: PageKind, payload: &[u8]) -> Result<PageId>;
    /// See [`CheckpointWriter::keep`].
    fn keep(&mut self, page: PageId) -> Result<()>;
    /// See [`CheckpointWriter::free`].
    fn free(&mut self, page: PageId);
}

/// The store's own file, as the checkpoint will leave it.
struct Draft<'a> {
    store: &'a Store,
    number: CheckpointNumber,
    /// The epoch before the cut: the last log or failed checkpoint.
    before_cut: CheckpointNumber,
    /// The header before this checkpoint's, and which copy holds it.
    header: Header,
    header_copy: usize,
    /// The map at the cut, and what this checkpoint makes of it.
    map: PageMap,
    commit: CommitNumber,
    /// Places that the map named at the cut and does not now.
    given_up: Vec<Extent>,
    /// Places written by this checkpoint.
    written: Vec<Extent>,
}

impl<'a> PreparedCheckpoint<'a> {
    /// The cut: the checkpoint is of the last commit of this moment. Waits for nothing but the commit that is being
    /// appended, and reads and writes nothing.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Closed`]: since the preparation.
    pub fn cut(mut self) -> Result<Checkpoint<'a>> {
        let store = self.store;
        let mut journal = store.journal();
        store.check_writable()?;
        let turn = self.turn.take().expect("a preparation is cut once");
        let Some(log) = self.log.take() else {
            return Ok(Checkpoint { store, _turn: turn, commit: store.last_commit(), draft: None });
        };
        let number = log.number();
        if let Some(old) = journal.writer.replace(log) {
            journal.older_logs.insert(old.number(), old.bytes());
            journal.unsynced_logs.push(old.file().clone());
        }
        Ok(Checkpoint::cut(store, turn, &journal, number))
    }
}

impl Drop for PreparedCheckpoint<'_> {
    fn drop(&mut self) {
        if let Some(log) = self.log.take() {
            self.store.journal().older_logs.insert(log.number(), log.bytes());
        }
    }
}

impl<'a> Checkpoint<'a> {
    /// Step 2, for the map; the caller sees to the log.
    pub(super) fn cut(
        store: &'a Store,
        turn: MutexGuard<'a, ()>,
        journal: &Journal,
        number: CheckpointNumber,
    ) -> Checkpoint<'a> {
        let mut table = store.pages_mut();
        let before_cut = std::mem::replace(&mut table.epoch, number);
        table.since_cut = Some(SinceCut::default());
        let commit = store.last_commit();
        let draft = Draft {
            store,
            number,
            before_cut,
            header: journal.header.clone(),
            header_copy: journal.header_copy,
            map: table.map.clone(),
            commit,
            given_up: Vec::new(),
            written: Vec::new(),
        };
        Checkpoint { store, _turn: turn, commit, draft: Some(draft) }
    }

    /// The last commit before the cut: what the checkpoint is to hold, no more and no less.
    pub fn commit(&self) -> CommitNumber {
        self.commit
    }

    /// Writes the checkpoint. `write` puts the pages of everything that is not yet in the file, as of
    /// [`Checkpoint::commit`], and returns the page at which [`Recovery::root`](crate::Recovery) will start. It may
    /// commit, free and do whatever else others do meanwhile.
    ///
    /// In memory there is nothing to do, and `write` is not called.
    ///
    /// # Errors
    /// Those of `write`, [`Error::DiskFull`] and [`Error::Io`]: the checkpoint did not happen, and the store goes on.
    /// After the failure of a sync or of writing the header, the store is poisoned.
    pub fn finish(mut self, write: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<PageId>) -> Result<()> {
        let store = self.store;
        let Some(draft) = &mut self.draft else { return Ok(()) };
        // Step 3; the rest follows.
        if store.synchronous() != Synchronous::Off {
            store.sync_logs_to(self.commit)?;
        }

        let header = store.write_checkpoint(draft, Purpose::GoOn, write)?;
        let fallback = draft.header.checkpoint;
        self.publish(&mut store.journal(), header);
        store.remove_logs_before(fallback);
        store.cut_where_due();
        Ok(())
    }

    /// A checkpoint that closes the store: the caller holds the journal's lock from the cut to the end.
    pub(super) fn finish_and_close(
        mut self,
        journal: &mut Journal,
        write: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<PageId>,
    ) -> Result<()> {
        let Some(draft) = &mut self.draft else { return Ok(()) };
        let header = self.store.write_checkpoint(draft, Purpose::Close, write)?;
        self.publish(journal, header);
        // The file holds all commits now, whatever became of the log.
        self.store.log_sync.advance(self.commit.0);
        Ok(())
    }

    /// Step 6, but for the old logs.
    fn publish(&mut self, journal: &mut Journal, header: Header) {
        if let Some(draft) = self.draft.take() {
            self.store.publish_under(journal, header, draft);
        }
    }
}

impl Drop for Checkpoint<'_> {
    fn drop(&mut self) {
        if let Some(draft) = self.draft.take() {
            self.store.abandon(draft);
        }
    }
}

impl<'a> CheckpointWriter<'a> {
    pub(super) fn new(to: &'a mut (dyn Destination + 'a)) -> CheckpointWriter<'a> {
        CheckpointWriter { to }
    }

    /// The last commit that the checkpoint holds.
    pub fn commit(&self) -> CommitNumber {
        self.to.commit()
    }

    /// Writes a page: a new one for `None`, else a new version of that page. Returns its id.
    ///
    /// # Errors
    /// [`Error::NoSuchPage`], [`Error::TooLarge`], [`Error::DiskFull`], [`Error::Io`].
    pub fn put(&mut self, page: Option<PageId>, kind: PageKind, payload: &[u8]) -> Result<PageId> {
        self.to.put(page, kind, payload)
    }

    /// Keeps a page that was written by [`Store::write_page`], whether a commit has named it since the cut or none has.
    ///
    /// # Errors
    /// [`Error::NoSuchPage`].
    pub fn keep(&mut self, page: PageId) -> Result<()> {
        self.to.keep(page)
    }

    /// Gives a page up that is not part of the checkpoint any more. An id that is not known is passed over.
    pub fn free(&mut self, page: PageId) {
        self.to.free(page);
    }
}

impl Destination for Draft<'_> {
    fn commit(&self) -> CommitNumber {
        self.commit
    }

    fn put(&mut self, page: Option<PageId>, kind: PageKind, payload: &[u8]) -> Result<PageId> {
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

    fn keep(&mut self, page: PageId) -> Result<()> {
        if self.map.get(page).is_some() {
            return Ok(());
        }
        let entry = self.store.pages_mut().keep(page, &*self.store.data);
        let entry = entry.ok_or_else(|| Error::NoSuchPage { path: self.store.path.clone(), page })?;
        self.replace(page, entry);
        Ok(())
    }

    fn free(&mut self, page: PageId) {
        self.replace(page, PageEntry::ABSENT);
    }
}

impl Draft<'_> {
    fn replace(&mut self, page: PageId, entry: PageEntry) {
        let old = self.map.replace(page, entry, &mut self.given_up);
        // A page put twice in the same checkpoint: the first version was nobody's, but is treated as the others.
        self.given_up.extend(old.map(|old| old.extent()));
    }
}

impl Store {
    /// Begins a checkpoint and finishes it: [`Store::begin_checkpoint`] and [`Checkpoint::finish`].
    ///
    /// # Errors
    /// As [`Checkpoint::finish`].
    pub fn checkpoint(&self, write: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<PageId>) -> Result<()> {
        self.begin_checkpoint()?.finish(write)
    }

    /// Begins a checkpoint, of the last commit before it returns. Others commit meanwhile and afterwards; who must know
    /// which commit it is cuts under a lock of his own, after [`Store::prepare_checkpoint`] without it. Waits for
    /// another checkpoint to end.
    ///
    /// # Errors
    /// As [`Store::prepare_checkpoint`].
    pub fn begin_checkpoint(&self) -> Result<Checkpoint<'_>> {
        self.prepare_checkpoint()?.cut()
    }

    /// Does what takes time before the cut of a checkpoint: syncs what was committed, and creates the next log. Waits
    /// for another checkpoint to end; so the thread that has one under way must not ask for the next.
    ///
    /// # Errors
    /// [`Error::DiskFull`] and [`Error::Io`]: there is no new log, and the store goes on. After a failed sync it is
    /// poisoned.
    pub fn prepare_checkpoint(&self) -> Result<PreparedCheckpoint<'_>> {
        self.check_writable()?;
        let turn = Some(self.checkpoint_turn());
        let mut prepared = PreparedCheckpoint { store: self, turn, log: None };
        if self.mode == Mode::Memory {
            return Ok(prepared);
        }
        // While there is a log, only checkpoints, of which this is the one, give numbers to new ones.
        let (database, number) = {
            let mut journal = self.journal();
            self.check_writable()?;
            self.log_writer(&mut journal)?;
            (journal.header.database, journal.next_log)
        };
        if self.synchronous() != Synchronous::Off {
            self.sync_logs_to(self.last_commit())?;
        }
        prepared.log = Some(self.create_log(database, number, self.durable_commit())?);
        self.journal().next_log = CheckpointNumber(number.0 + 1);
        Ok(prepared)
    }

    /// Waits until no checkpoint is under way, and keeps others from beginning one.
    pub(super) fn checkpoint_turn(&self) -> MutexGuard<'_, ()> {
        let _next = self.checkpoint_next.lock().unwrap_or_else(PoisonError::into_inner);
        self.checkpoint_turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Steps 4 and 5. Returns the new header, which is durable.
    fn write_checkpoint(
        &self,
        draft: &mut Draft<'_>,
        purpose: Purpose,
        write: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<PageId>,
    ) -> Result<Header> {
        let root = write(&mut CheckpointWriter::new(draft))?;
        if draft.map.get(root).is_none() {
            return Err(Error::NoSuchPage { path: self.path.clone(), page: root });
        }
        let written = &mut draft.written;
        let map_root = draft.map.store(&mut |node| {
            let extent = self.write_to_free_place(&[node], UNIT_BYTES)?;
            written.push(extent);
            Ok(PageEntry::new(extent.place, PageKind::MAP_NODE, UNIT_BYTES as u32, crc32c::crc32c(node)))
        })?;
        let next_page = self.pages().next_page;
        self.sync_data()?;
        let header = Header {
            checkpoint: draft.number,
            log: draft.number,
            commit: draft.commit,
            next_page,
            catalog_root: Some(root),
            // No more than what it names: the file may be cut there while this is a header that counts. Commits may name
            // pages behind that end; what they name is synced before.
            file_units: end_of(&draft.map),
            map_root,
            map_depth: draft.map.depth(),
            is_closed: purpose == Purpose::Close,
            ..draft.header.clone()
        };
        self.write_header(older_copy(draft.header_copy), &header)?;
        Ok(header)
    }

    fn publish_under(&self, journal: &mut Journal, header: Header, draft: Draft<'_>) {
        let fallback = draft.header.checkpoint;
        let named_end = header.file_units.max(draft.header.file_units);
        journal.header = header;
        journal.header_copy = older_copy(draft.header_copy);
        journal.older_logs = journal.older_logs.split_off(&fallback);
        journal.unsynced_logs.retain(|log| log.number >= fallback);
        let mut table = self.pages_mut();
        let since = table.since_cut.take().unwrap_or_default();
        table.map = draft.map;
        table.named_end = named_end;
        table.is_changed = false;
        for extent in draft.given_up {
            table.space.retire(extent, draft.before_cut);
        }
        for (page, entry) in since.changes {
            // A kept page is in the checkpoint's map already.
            if table.map.get(page) != Some(entry) {
                table.replace(page, entry, &*self.data);
            }
        }
        table.space.release_retired_before(fallback);
    }

    /// As if the checkpoint had not been tried, but for the new log.
    fn abandon(&self, draft: Draft<'_>) {
        if self.poisoned().is_some() {
            // The header may have reached the disk: what it names stays as it is.
            return;
        }
        let mut table = self.pages_mut();
        let since = table.since_cut.take().unwrap_or_default();
        table.give_up(&since.given_up, &*self.data);
        for extent in draft.written {
            table.release(extent, &*self.data);
        }
        // Those that were freed meanwhile are not in the map, and those that a commit has named are not among these.
        for (page, fresh) in since.kept {
            let mut given_up = Vec::new();
            if table.map.replace(page, PageEntry::ABSENT, &mut given_up).is_some() {
                table.give_up(&given_up, &*self.data);
                table.fresh.insert(page, fresh);
            }
        }
    }
}

/// The header copy that the next checkpoint overwrites, if `newest` holds the newest.
pub(super) fn older_copy(newest: usize) -> usize {
    (newest + 1) % COPIES
}

/// The unit after the last that the map names.
pub(super) fn end_of(map: &PageMap) -> u64 {
    let mut end = COPIES as u64;
    map.for_each_page(&mut |_, entry| end = end.max(entry.extent().end()));
    map.for_each_stored_node(&mut |entry| end = end.max(entry.extent().end()));
    end
}
