//! Closing: a last checkpoint, and then the database is one file.

use super::checkpoint::{Checkpoint, CheckpointWriter, older_copy};
use super::journal::Journal;
use super::{Mode, Store};
use crate::error::{Result, failed};
use crate::ids::{CheckpointNumber, PageId, UNIT_BYTES};
use crate::options::Synchronous;
use crate::sync::atomic::Ordering;
use crate::sync::{MutexGuard, PoisonError};

impl Store {
    /// Writes a last checkpoint, if anything changed since the one before, removes the logs, cuts the file to what is
    /// used, and lets others in. Pages that no commit named and `write` does not keep are gone. Whatever `synchronous`
    /// says, all is durable on return. Commits wait meanwhile; so `write` must not commit, nor ask for
    /// [`Store::log_bytes`] or [`Store::stats`].
    ///
    /// # Errors
    /// As [`Store::checkpoint`]. The store is then still open, or poisoned; dropping it loses nothing that was
    /// committed.
    pub fn close(&self, write: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<PageId>) -> Result<()> {
        self.check_open()?;
        if self.mode == Mode::Durable {
            self.check_writable()?;
            let turn = self.checkpoint_turn();
            if self.synchronous() != Synchronous::Off {
                self.sync_logs_to(self.last_commit())?;
            }
            // Commits wait from here on, and find the store closed, or go on if the close fails.
            let mut journal = self.journal();
            self.check_writable()?;
            let nothing_to_do = journal.header.is_closed && !self.pages().is_changed;
            if !nothing_to_do {
                // From here on everything is synced, also under `off`.
                self.synchronous.store(Synchronous::Full as u8, Ordering::Release);
                self.close_under(&mut journal, turn, write)?;
            }
            self.is_closed.store(true, Ordering::Release);
        }
        self.is_closed.store(true, Ordering::Release);
        self.read_ahead.stop();
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(())
    }

    fn close_under(
        &self,
        journal: &mut Journal,
        turn: MutexGuard<'_, ()>,
        write: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<PageId>,
    ) -> Result<()> {
        if journal.header.is_closed {
            // The log with the closed checkpoint's number comes first, so that this one's number is new.
            self.log_writer(journal)?;
        }
        // The number is given again if the close fails, or when the database is next opened: it has no log.
        let number = journal.next_log;
        Checkpoint::cut(self, turn, journal, number).finish_and_close(journal, write)?;
        journal.writer = None;
        self.write_header(older_copy(journal.header_copy), &journal.header)?;
        self.remove_logs_before(CheckpointNumber(u64::MAX));
        self.sync_directory()?;
        journal.unsynced_logs.clear();
        journal.older_logs.clear();
        // Both copies name the same checkpoint: what is behind its last page serves nobody. Last, so that whoever goes on
        // when this fails, or tries to close again, finds everything else done.
        let bytes = journal.header.file_units * UNIT_BYTES as u64;
        self.data.set_length(bytes).map_err(failed(&self.path, "cutting the file"))
    }
}
