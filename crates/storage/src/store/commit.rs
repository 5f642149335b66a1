//! Committing: the moment at which something becomes durable.

use std::sync::atomic::Ordering;

use super::{Mode, Store};
use crate::error::{Error, Result, failed};
use crate::ids::{CommitNumber, ObjectId, PageId};
use crate::log::{AppendError, COMMIT_BYTES_MAX, PageReference, RecordRef};
use crate::options::{NORMAL_SYNC_EVERY, Synchronous};
use crate::record::{Record, RecordTag};

impl Store {
    /// Makes `records` durable under one number, whole or not at all, and with them the `pages` that they name, written
    /// by
    /// [`Store::write_page`] since. What "durable" means is [`Synchronous`]'s to say.
    ///
    /// # Errors
    /// [`Error::DiskFull`] and errors about the arguments: nothing was committed, and the store goes on. After other
    /// failures of a write or sync the store is poisoned and commits no more; whether this one counts shows at the next
    /// open.
    pub fn commit(&self, records: &[Record], pages: &[PageId]) -> Result<CommitNumber> {
        check(records)?;
        self.check_writable()?;
        let mut journal = self.journal();
        // Somebody may have failed while we waited.
        self.check_writable()?;
        let commit = CommitNumber(self.last_commit().0 + 1);
        let references = self.references(pages)?;
        if self.mode == Mode::Durable {
            if !references.is_empty() && self.unsynced_pages.load(Ordering::Acquire) {
                self.sync_data()?;
            }
            let payloads: Vec<_> = references.iter().map(PageReference::encode).collect();
            let (tag, object) = (RecordTag::PAGE_REFERENCE, ObjectId(0));
            let references = payloads.iter().map(|payload| RecordRef { tag, object, payload });
            let upper = records.iter().map(|record| {
                let Record { tag, object, payload } = record;
                RecordRef { tag: *tag, object: *object, payload }
            });
            let all: Vec<RecordRef<'_>> = references.chain(upper).collect();
            self.append(&mut journal, commit, &all)?;
        }
        let mut table = self.pages_mut();
        for PageReference { page, entry } in references {
            if table.fresh.remove(&page).is_some() {
                table.replace(page, entry, &*self.data);
            }
        }
        self.set_last_commit(commit);
        Ok(commit)
    }

    /// Makes all commits so far durable, whatever the level.
    ///
    /// # Errors
    /// [`Error::Poisoned`]: nobody knows what is durable.
    pub fn sync(&self) -> Result<()> {
        self.check_writable()?;
        let mut journal = self.journal();
        if self.mode == Mode::Durable {
            self.sync_data_always()?;
            if let Some(writer) = &mut journal.writer {
                let path = writer.path.clone();
                writer.sync().map_err(|error| self.poison(&path, "syncing the log", error))?;
            }
            // Logs that were rotated under `off` were not synced then, nor was the directory.
            for number in crate::log::list(&*journal.fs, &self.path)? {
                let path = crate::log::path_of(&self.path, number);
                let file =
                    journal.fs.open(&path, crate::fs::OpenMode::Write).map_err(failed(&path, "opening a log"))?;
                file.sync().map_err(|error| self.poison(&path, "syncing the log", error))?;
            }
            self.sync_directory(&journal)?;
        }
        Ok(())
    }

    fn append(
        &self,
        journal: &mut super::journal::Journal,
        commit: CommitNumber,
        records: &[RecordRef<'_>],
    ) -> Result<()> {
        let writer = self.log_writer(journal)?;
        let path = writer.path.clone();
        writer.append(commit, records).map_err(|error| match error {
            AppendError::Undone(error) => failed(&path, "writing to the log")(error),
            AppendError::Unknown(error) => self.poison(&path, "writing to the log", error),
        })?;
        let sync_now = match self.synchronous() {
            Synchronous::Full => true,
            Synchronous::Normal => writer.synced_at().elapsed() >= NORMAL_SYNC_EVERY,
            Synchronous::Off => false,
        };
        if sync_now {
            writer.sync().map_err(|error| self.poison(&path, "syncing the log", error))?;
        }
        Ok(())
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
