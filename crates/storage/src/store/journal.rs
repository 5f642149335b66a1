//! What commits and checkpoints share: the log that is being written, and the header that it follows.

use std::collections::BTreeMap;
use std::path::PathBuf;

use uuid::Uuid;

use super::Store;
use crate::error::{Result, failed};
use crate::fs::OpenMode;
use crate::header::{COPIES, Header};
use crate::ids::{CheckpointNumber, CommitNumber, UNIT_BYTES};
use crate::log::{self, LogFile, LogHeader, LogWriter};
use crate::options::Synchronous;
use crate::sync::atomic::Ordering;

/// Guarded by the store's `journal` lock, which puts commits in order.
#[derive(Debug)]
pub(super) struct Journal {
    /// The log; `None` before the first commit since opening.
    pub(super) writer: Option<LogWriter>,
    /// Logs before that one, oldest first, that may hold what is not durable: it must be before anything in the log is.
    pub(super) unsynced_logs: Vec<LogFile>,
    /// The number of the next log, and of the next checkpoint: never used before.
    pub(super) next_log: CheckpointNumber,
    /// The header of the last durable checkpoint.
    pub(super) header: Header,
    /// Which copy holds it. The next checkpoint writes the other one.
    pub(super) header_copy: usize,
    /// Bytes in each of the logs before the one that is being written, as far as this store read or wrote them.
    pub(super) older_logs: BTreeMap<CheckpointNumber, u64>,
}

impl Journal {
    /// Bytes in the log that is being written and those before it, from this number on.
    pub(super) fn bytes_from(&self, number: CheckpointNumber) -> u64 {
        let older: u64 = self.older_logs.range(number..).map(|(_, bytes)| bytes).sum();
        older + self.writer.as_ref().map_or(0, |log| log.bytes())
    }
}

impl Store {
    /// The log to append to. The first commit since opening creates it, and takes the header's word back that there is
    /// none.
    pub(super) fn log_writer<'a>(&self, journal: &'a mut Journal) -> Result<&'a mut LogWriter> {
        let writer = match journal.writer.take() {
            Some(writer) => writer,
            None => {
                self.overwrite_rejected_header()?;
                self.sync_what_was_found(journal)?;
                let (database, number) = (journal.header.database, journal.next_log);
                let writer = self.create_log(database, number, self.last_commit())?;
                if journal.header.is_closed {
                    let header = Header { is_closed: false, ..journal.header.clone() };
                    for copy in 0..COPIES {
                        self.write_header(copy, &header)?;
                    }
                    journal.header = header;
                }
                journal.next_log = CheckpointNumber(writer.number().0 + 1);
                writer
            }
        };
        Ok(journal.writer.insert(writer))
    }

    /// What a process before this one wrote and did not sync, since it died, is read all the same, from the operating
    /// system's memory. Commits on top of it are durable only if it is.
    ///
    /// A sync alone would not do: where one has failed before, the system may take what it has in memory for written. So
    /// what may not be durable is written again: the header, and the logs from the last frame on that says that all
    /// before it is. The pages that they name were synced before they were named.
    fn sync_what_was_found(&self, journal: &mut Journal) -> Result<()> {
        if self.synchronous() == Synchronous::Off || journal.unsynced_logs.is_empty() {
            return Ok(());
        }
        for log in &journal.unsynced_logs {
            let end = journal.older_logs.get(&log.number).copied().unwrap_or(0);
            let rewritten = self.fs.open(&log.path, OpenMode::Write).and_then(|file| {
                log.rewrite(&*file, end)?;
                file.sync()
            });
            rewritten.map_err(|error| self.poison(&log.path, "syncing the log", error))?;
        }
        self.write_header(journal.header_copy, &journal.header)?;
        journal.unsynced_logs.clear();
        Ok(())
    }

    /// Creates a log, durably. On error there is none, or the store is poisoned. `start` is durable.
    pub(super) fn create_log(
        &self,
        database: Uuid,
        number: CheckpointNumber,
        start: CommitNumber,
    ) -> Result<LogWriter> {
        let path = log::path_of(&self.path, number);
        let header = LogHeader::new(database, number, start);
        let created = LogWriter::create(&*self.fs, &path, header);
        let mut writer = created.map_err(|error| {
            // What is left of it, if anything, has no room for a commit; recovery passes over that.
            let _ = self.fs.remove(&path);
            failed(&path, "creating a log")(error)
        })?;
        if self.synchronous() != Synchronous::Off {
            writer.file().sync().map_err(|error| self.poison(&path, "syncing a new log", error))?;
            self.sync_directory()?;
            writer.is_created_durably = true;
        }
        if self.synchronous() == Synchronous::Full {
            // Only now, so that a log whose header is torn is short. The sync is the first commit's if it does not wait.
            writer.write_zeros(0).map_err(|error| self.poison(&path, "letting the log grow", error))?;
            writer.file().sync().map_err(|error| self.poison(&path, "syncing a new log", error))?;
        }
        Ok(writer)
    }

    /// Writes one copy of the header and makes it durable. On error the store is poisoned: nobody knows what the copy
    /// looks like.
    pub(super) fn write_header(&self, copy: usize, header: &Header) -> Result<()> {
        let written = self.data.write_at((copy * UNIT_BYTES) as u64, &[&header.encode()]);
        self.data_writes.fetch_add(1, Ordering::AcqRel);
        written.map_err(|error| self.poison(&self.path, "writing the header", error))?;
        self.sync_data()
    }

    /// Makes all pages written so far durable, unless the store does without.
    pub(super) fn sync_data(&self) -> Result<()> {
        if self.synchronous() == Synchronous::Off {
            return Ok(());
        }
        self.sync_data_always()
    }

    pub(super) fn sync_data_always(&self) -> Result<()> {
        self.data_sync.wait_for(self.data_writes.load(Ordering::Acquire), || {
            self.check_poison()?;
            // Writes count once they are done, so these the sync sees.
            let covered = self.data_writes.load(Ordering::Acquire);
            self.data.sync().map_err(|error| self.poison(&self.path, "syncing the database file", error))?;
            Ok(covered)
        })
    }

    pub(super) fn sync_directory(&self) -> Result<()> {
        let directory = self.path.parent().map(PathBuf::from).unwrap_or_default();
        let synced = self.fs.sync_directory(&directory);
        synced.map_err(|error| self.poison(&self.path, "syncing the directory", error))
    }

    /// Removes the logs before `oldest`. One that stays is no harm: the next checkpoint tries again.
    pub(super) fn remove_logs_before(&self, oldest: CheckpointNumber) {
        let logs = log::list(&*self.fs, &self.path).unwrap_or_default();
        for number in logs.into_iter().filter(|number| *number < oldest) {
            let _ = self.fs.remove(&log::path_of(&self.path, number));
        }
    }

    pub(super) fn set_last_commit(&self, commit: CommitNumber) {
        self.last_commit.store(commit.0, Ordering::Release);
    }
}
