//! What a store is made of, in numbers: for `sinter inspect`, SHOW STORAGE and SHOW MEMORY.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::Store;
use super::page_table::Fresh;
use crate::budget::Usage;
use crate::ids::{CheckpointNumber, CommitNumber, PageId, UNIT_BYTES};
use crate::options::Synchronous;
use crate::page_kind::PageKind;

/// Pages of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageCount {
    /// How many.
    pub pages: u64,
    /// Their bytes in the file: headers and padding included.
    pub bytes: u64,
}

/// One page, as the page map has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageInfo {
    /// The page.
    pub page: PageId,
    /// What it holds.
    pub kind: PageKind,
    /// Where it is in the file.
    pub offset: u64,
    /// Its size with header, without padding.
    pub bytes: u64,
}

/// A store in numbers, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// The database's UUID.
    pub database: Uuid,
    /// The last durable checkpoint.
    pub checkpoint: CheckpointNumber,
    /// The last commit.
    pub commit: CommitNumber,
    /// What commits promise.
    pub synchronous: Synchronous,
    /// The file's length.
    pub file_bytes: u64,
    /// Bytes in the file that nothing uses.
    pub free_bytes: u64,
    /// Bytes that only older checkpoints and logs name; they become free with the next checkpoints.
    pub retired_bytes: u64,
    /// Pages by kind, those that no commit has named yet included.
    pub pages: BTreeMap<PageKind, PageCount>,
    /// Pages that no commit has named yet.
    pub fresh_pages: u64,
    /// Memory, and what the buffer pool did.
    pub memory: Usage,
    /// Bytes in all logs.
    pub log_bytes: u64,
}

impl Store {
    /// Bytes in all logs. 0 in memory. Of the logs that an open found, those count that it replayed.
    ///
    /// Cheap enough to ask after every commit: a few numbers, no walk of the page map and no lock on it.
    pub fn log_bytes(&self) -> u64 {
        self.journal().bytes_from(CheckpointNumber(0))
    }

    /// Bytes of log that the next open would replay: when there are many, a checkpoint is due. As cheap as
    /// [`Store::log_bytes`], of which it is a part.
    pub fn replay_bytes(&self) -> u64 {
        let journal = self.journal();
        journal.bytes_from(journal.header.log)
    }

    /// Calls `visit` for each page that a commit or checkpoint named, as of now, in the order of their ids.
    pub fn for_each_page(&self, visit: &mut dyn FnMut(PageInfo)) {
        // A clone, so that no lock is held while the caller does whatever it does.
        let map = self.pages().map.clone();
        map.for_each_page(&mut |page, entry| {
            visit(PageInfo { page, kind: entry.kind(), offset: entry.offset(), bytes: u64::from(entry.bytes) });
        });
    }

    /// The store in numbers. Walks the page map, which is in memory.
    pub fn stats(&self) -> Stats {
        let log_bytes = self.log_bytes();
        let (database, checkpoint) = {
            let journal = self.journal();
            (journal.header.database, journal.header.checkpoint)
        };
        let table = self.pages();
        let mut pages: BTreeMap<PageKind, PageCount> = BTreeMap::new();
        let mut count = |kind, units: u64| {
            let count = pages.entry(kind).or_default();
            count.pages += 1;
            count.bytes += units * UNIT_BYTES as u64;
        };
        table.map.for_each_page(&mut |_, entry| count(entry.kind(), entry.extent().units));
        table.map.for_each_stored_node(&mut |entry| count(entry.kind(), entry.extent().units));
        table.fresh.values().for_each(|Fresh { entry, .. }| count(entry.kind(), entry.extent().units));
        Stats {
            database,
            checkpoint,
            commit: self.last_commit(),
            synchronous: self.synchronous(),
            file_bytes: table.space.end() * UNIT_BYTES as u64,
            free_bytes: table.space.free_units() * UNIT_BYTES as u64,
            retired_bytes: table.space.retired_units() * UNIT_BYTES as u64,
            fresh_pages: table.fresh.len() as u64,
            pages,
            memory: self.budget().usage(),
            log_bytes,
        }
    }
}
