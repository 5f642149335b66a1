//! Closing: a last checkpoint, and then the database is one file.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::checkpoint::{CheckpointWriter, Purpose};
use super::{Mode, Store};
use crate::error::{Result, failed};
use crate::ids::{CheckpointNumber, PageId, UNIT_BYTES};
use crate::options::Synchronous;

impl Store {
    /// Writes a last checkpoint, if anything changed since the one before, removes the logs, cuts the file to what is
    /// used, and lets others in. Pages that no commit named and `write` does not keep are gone. Whatever `synchronous`
    /// says, all is durable on return.
    ///
    /// # Errors
    /// As [`Store::checkpoint`]. The store is then still open, or poisoned; dropping it loses nothing that was
    /// committed.
    pub fn close(&self, write: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<PageId>) -> Result<()> {
        self.check_open()?;
        if self.mode == Mode::Durable {
            self.check_writable()?;
            let mut journal = self.journal();
            let nothing_to_do = journal.header.is_closed && !self.pages().is_changed;
            if !nothing_to_do {
                // From here on everything is synced, also under `off`.
                self.synchronous.store(Synchronous::Full as u8, Ordering::Release);
                self.checkpoint_under(&mut journal, Purpose::Close, write)?;
                let other_copy = 1 - journal.header_copy;
                self.write_header(other_copy, &journal.header)?;
                // Both copies name the same checkpoint: what is behind its last page serves nobody.
                let bytes = journal.header.file_units * UNIT_BYTES as u64;
                self.data.set_length(bytes).map_err(failed(&self.path, "cutting the file"))?;
                self.remove_logs_before(CheckpointNumber(u64::MAX));
                self.sync_directory()?;
                journal.writer = None;
                journal.unsynced_logs.clear();
                // Who waits for a commit finds it in the file.
                self.log_sync.advance(self.last_commit().0);
                journal.older_logs_bytes = 0;
                journal.checkpointed_logs_bytes = 0;
            }
        }
        self.is_closed.store(true, Ordering::Release);
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(())
    }
}
