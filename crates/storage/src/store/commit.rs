//! Committing: the moment at which something becomes durable.
//!
//! In three steps, so that those who commit at once share what is slow:
//!
//! 1. The *pages* that a commit names are synced, before anything is said about them.
//! 2. Its records are *appended* to the log, under the journal's lock: that is its place in the order of all commits.
//! 3. The log is *synced*, with no lock held that an append needs: one sync makes everything durable that was appended
//!    before it began, and serves all who wait for that ([`GroupSync`](super::group_sync::GroupSync)).

use std::io;
use std::time::Duration;

use super::journal::Journal;
use super::{Mode, Store};
use crate::error::{Error, Result, failed};
use crate::fs::OpenMode;
use crate::ids::{CommitNumber, ObjectId, PageId};
use crate::log::{self, AppendError, COMMIT_BYTES_MAX, PageReference, RecordRef};
use crate::options::{NORMAL_SYNC_EVERY, Synchronous};
use crate::record::{Record, RecordTag};
use crate::sync::PoisonError;
use crate::sync::atomic::Ordering;

impl Store {
    /// Makes `records` durable under one number, whole or not at all, and with them the `pages` that they name, written
    /// by [`Store::write_page`] since. What "durable" means is [`Synchronous`]'s to say.
    ///
    /// The same as [`Store::append`] and then [`Store::make_durable`].
    ///
    /// # Errors
    /// [`Error::DiskFull`] and errors about the arguments: nothing was committed, and the store goes on. After other
    /// failures of a write or sync the store is poisoned and commits no more; whether this one counts shows at the next
    /// open.
    pub fn commit(&self, records: &[Record], pages: &[PageId]) -> Result<CommitNumber> {
        let commit = self.append(records, pages)?;
        self.make_durable(commit)?;
        Ok(commit)
    }

    /// Makes all pages durable that were written so far, named by a commit or not, so that a [`Store::append`] that
    /// names them does not have to. Under [`Synchronous::Off`] it does nothing.
    ///
    /// # Errors
    /// [`Error::Poisoned`]: the sync failed, now or before.
    pub fn sync_pages(&self) -> Result<()> {
        self.check_writable()?;
        match self.mode {
            Mode::Durable => self.sync_data(),
            _ => Ok(()),
        }
    }

    /// Puts `records` into the log under one number, whole or not at all, and with them the `pages` that they name. The
    /// commit has its place in the order of all commits then, and [`Store::last_commit`] counts it; a power loss may
    /// still take it back, together with all that follow it, until [`Store::make_durable`] says otherwise. When only
    /// the process dies, it stays.
    ///
    /// `pages` were written by [`Store::write_page`], and no commit has named them yet. Those that are not durable are
    /// synced first, with no lock held; [`Store::sync_pages`] does that earlier.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn append(&self, records: &[Record], pages: &[PageId]) -> Result<CommitNumber> {
        check(records)?;
        loop {
            self.check_writable()?;
            if !self.are_durable(pages) {
                self.sync_pages()?;
            }
            let mut journal = self.journal();
            // Somebody may have failed, or left `off`, while we waited.
            self.check_writable()?;
            if self.are_durable(pages) {
                return self.append_under(&mut journal, records, pages);
            }
        }
    }

    /// Returns once the commit, and with it all before it, are as durable as [`Synchronous`] promises: under `full` it
    /// waits for a sync, which serves all who wait; under `normal` only if the last sync is [`NORMAL_SYNC_EVERY`] or
    /// longer ago; under `off` never.
    ///
    /// # Errors
    /// [`Error::Poisoned`]: a sync failed, now or before. Whether the commit counts shows at the next open.
    pub fn make_durable(&self, commit: CommitNumber) -> Result<()> {
        if self.waits_for_syncs() { self.sync_logs_to(commit) } else { Ok(()) }
    }

    /// Whether [`Store::make_durable`] would wait for a sync now.
    pub(crate) fn waits_for_syncs(&self) -> bool {
        match (self.mode, self.synchronous()) {
            (Mode::Durable, Synchronous::Full) => true,
            (Mode::Durable, Synchronous::Normal) => self.since_log_sync() >= NORMAL_SYNC_EVERY,
            _ => false,
        }
    }

    /// The last commit that a power loss cannot take back, and with it none before it. What an open found counts:
    /// it is made durable before anything is committed on top of it.
    pub fn durable_commit(&self) -> CommitNumber {
        match self.mode {
            Mode::Memory => self.last_commit(),
            _ => CommitNumber(self.log_sync.durable()),
        }
    }

    /// Makes all commits so far durable, whatever the level.
    ///
    /// # Errors
    /// [`Error::Poisoned`]: nobody knows what is durable.
    pub fn sync(&self) -> Result<()> {
        self.check_writable()?;
        self.sync_all(self.synchronous())
    }

    /// Sets the level, and makes everything durable that was committed under the one before. Whoever commits under the
    /// new one meanwhile waits until that is done.
    pub(super) fn sync_all(&self, level: Synchronous) -> Result<()> {
        self.log_sync.run(|| {
            let number = {
                // No append is between its look at the level and its place in the log.
                let journal = self.journal();
                self.synchronous.store(level as u8, Ordering::Release);
                journal.writer.as_ref().map(|log| log.number())
            };
            if self.mode != Mode::Durable {
                return Ok(self.last_commit().0);
            }
            self.sync_data_always()?;
            let covered = self.sync_logs()?;
            // Logs that were rotated by a process before this one, under `off`, and the directory.
            for number in log::list(&*self.fs, &self.path)? {
                let path = log::path_of(&self.path, number);
                let file = match self.fs.open(&path, OpenMode::Write) {
                    // A checkpoint has removed it meanwhile, whose header is durable: it was written before the data file
                    // was synced here, or under the new level.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    opened => opened.map_err(failed(&path, "opening a log"))?,
                };
                file.sync().map_err(|error| self.poison(&path, "syncing the log", error))?;
            }
            self.sync_directory()?;
            if let Some(log) = self.journal().writer.as_mut().filter(|log| Some(log.number()) == number) {
                log.is_created_durably = true;
            }
            Ok(covered)
        })
    }

    /// Returns once the commit is durable in the log, whatever the level.
    pub(super) fn sync_logs_to(&self, commit: CommitNumber) -> Result<()> {
        // A number that was not given yet stands for the last one.
        let commit = commit.min(self.last_commit());
        self.log_sync.wait_for(commit.0, || self.sync_logs())
    }

    /// How long ago the last sync of the logs ended well.
    fn since_log_sync(&self) -> Duration {
        let synced_at = *self.logs_synced_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.fs.now().saturating_duration_since(synced_at)
    }

    /// Syncs the logs that hold commits which are not durable, the oldest first. Returns the last commit that is
    /// durable then. To be called by the leader of `log_sync` only.
    fn sync_logs(&self) -> Result<u64> {
        self.check_poison()?;
        let (older, newest, commit) = {
            let journal = self.journal();
            let newest = journal.writer.as_ref().map(|log| log.file().clone());
            (journal.unsynced_logs.clone(), newest, self.last_commit())
        };
        for log in older.iter().chain(&newest) {
            log.sync().map_err(|error| self.poison(&log.path, "syncing the log", error))?;
        }
        if let Some(last) = older.last() {
            // Not before: who finds it empty takes all logs but the newest for durable.
            self.journal().unsynced_logs.retain(|log| log.number > last.number);
        }
        *self.logs_synced_at.lock().unwrap_or_else(PoisonError::into_inner) = self.fs.now();
        Ok(commit.0)
    }

    fn append_under(&self, journal: &mut Journal, records: &[Record], pages: &[PageId]) -> Result<CommitNumber> {
        let commit = CommitNumber(self.last_commit().0 + 1);
        let references = self.references(pages)?;
        if self.mode == Mode::Durable {
            let payloads: Vec<_> = references.iter().map(PageReference::encode).collect();
            let (tag, object) = (RecordTag::PAGE_REFERENCE, ObjectId(0));
            let references = payloads.iter().map(|payload| RecordRef { tag, object, payload });
            let upper = records.iter().map(|record| {
                let Record { tag, object, payload } = record;
                RecordRef { tag: *tag, object: *object, payload }
            });
            let all: Vec<RecordRef<'_>> = references.chain(upper).collect();
            let log = self.log_writer(journal)?;
            let bytes_before = log.bytes();
            let all_before_is_durable = self.durable_commit() == self.last_commit();
            log.append(commit, &all, all_before_is_durable).map_err(|error| match error {
                AppendError::Undone(error) => failed(&log.file().path, "writing to the log")(error),
                AppendError::Unknown(error) => self.poison(&log.file().path, "writing to the log", error),
            })?;
            if self.synchronous() == Synchronous::Full {
                let written = log.write_zeros(log.bytes() - bytes_before);
                written.map_err(|error| self.poison(&log.file().path, "letting the log grow", error))?;
            }
        }
        let mut table = self.pages_mut();
        pages.iter().for_each(|page| table.adopt(*page, &*self.data));
        self.set_last_commit(commit);
        Ok(commit)
    }

    /// Where the pages are that a commit names. A page that a checkpoint has kept is named all the same: the checkpoint
    /// before it, should recovery fall back to that one, does not have it.
    fn references(&self, pages: &[PageId]) -> Result<Vec<PageReference>> {
        let table = self.pages();
        let reference = |&page: &PageId| match table.get(page) {
            Some(entry) => Ok(PageReference { page, entry }),
            None => Err(Error::NoSuchPage { path: self.path.clone(), page }),
        };
        pages.iter().map(reference).collect()
    }

    /// Whether a commit may name these pages, as far as the level asks.
    fn are_durable(&self, pages: &[PageId]) -> bool {
        if pages.is_empty() || self.mode != Mode::Durable || self.synchronous() == Synchronous::Off {
            return true;
        }
        let table = self.pages();
        let last_write = pages.iter().map(|page| table.last_write(*page)).max();
        last_write <= Some(self.data_sync.durable())
    }
}

fn check(records: &[Record]) -> Result<()> {
    if let Some(record) = records.iter().find(|record| record.tag < RecordTag::FIRST_OF_UPPER_ROOMS) {
        return Err(Error::ReservedTag { tag: record.tag.0 });
    }
    let bytes: u64 = records.iter().map(|record| record.payload.len() as u64).sum();
    // Leaves room for the records' headers and page references, which are small beside it.
    let bytes_max = COMMIT_BYTES_MAX / 2;
    if bytes > bytes_max { Err(Error::TooLarge { what: "a commit", bytes, bytes_max }) } else { Ok(()) }
}
