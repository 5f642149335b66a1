//! sinter-storage: the file. Pages, page map, buffer pool, log, checkpoint, recovery.
//!
//! # What the rooms above call
//!
//! ```text
//! Store::memory() -> Store                               a database on the heap: same calls, no log
//! Store::open(fs, path, Options) -> (Store, Recovery)    Recovery { root, transactions, notes }
//!
//! store.write_page(PageKind, &payload) -> PageId         written at once, durable with the commit that names it
//! store.commit(&[Record], &[PageId]) -> CommitNumber     durable on return under Synchronous::Full; in three steps:
//!     store.sync_pages()                                 the pages first, with no lock held
//!     store.append(&[Record], &[PageId]) -> CommitNumber in order, not durable yet
//!     store.make_durable(CommitNumber)                   one sync serves all who wait
//! store.pin(PageId) -> Pinned                            the payload; zero-copy from memory or the pool
//! store.read_ahead(&[PageId]) -> ReadAhead               reads them beside, as long as that is held
//! store.budget() -> &Arc<Budget>                         what holds much memory reserves it
//! store.kind_of(PageId) -> PageKind
//! store.free(PageId)                                     replay must free again
//!
//! store.checkpoint(|w| { let page = w.put(None, kind, &payload)?; ... Ok(root) })
//!     store.prepare_checkpoint() -> PreparedCheckpoint   what takes time before the cut
//!     .cut() -> Checkpoint                               of the last commit of this moment
//!     .finish(|w| ...)                                   while others commit
//! store.close(|w| ...)                                   checkpoint, and the log is gone: one file
//! store.vacuum(&mut |progress| .., || the room's checkpoint)     pages move down, until the file is as small as what is in it
//! store.is_vacuum_due(bytes)                              whether that is worth it unasked
//! timeline.commit(None, |pending| Ok(Some(Built { .. })))  the next state, durable and visible on return
//! timeline.snapshot() -> Snapshot                        a state, and what is changed in place as it was in that
//! timeline.backup(fs, path, &mut |progress| .., |root, w| ...)   the visible state, in a closed database of its own
//! store.stats() -> Stats                                 bytes and counts for `sinter inspect`
//! store.log_bytes(), store.for_each_page(..)             when a checkpoint is due; what is where
//! store.check(&mut |error| ...)                          reads everything, reports what is damaged
//! Store::examine(fs, path, options, |damage| ...)        the same, of what can hardly be opened
//! ```
//!
//! `Recovery::transactions` is an iterator of `Result<Transaction>`: what was committed after the checkpoint that `root`
//! belongs to, read from the log as it is asked for. Upper rooms load `root` and apply the transactions; applying one twice must do no
//! harm. Pages that a transaction made superfluous are freed again on replay, since freeing is not logged.
//!
//! # Where to read on
//!
//! What is on disk: docs/format/file.md, page.md, page-map.md, log.md. In the code, four calls lead everywhere:
//! [`Store::open`] (headers, map, logs), [`Store::write_page`] (space, page), [`Store::commit`] (log, group sync) and
//! [`Store::checkpoint`] (the steps, and what a crash between them leaves). What is assumed of a disk stands in [`fs`];
//! [`testing`] breaks disks.

mod budget;
mod error;
pub mod fs;
pub mod header;
mod ids;
pub mod log;
pub mod map;
mod options;
pub mod page;
mod page_kind;
mod pin;
mod pool;
mod record;
mod space;
mod store;
mod sync;
pub mod testing;
mod timeline;

pub use budget::{Budget, Reclaim, Reservation, Usage, Use};
pub use error::{Error, Result};
pub use fs::{File, FileSystem, HeapFileSystem, RealFileSystem};
pub use ids::{CheckpointNumber, CommitNumber, ObjectId, PageId, UNIT_BYTES};
pub use options::{NORMAL_SYNC_EVERY, Options, Synchronous};
pub use page_kind::PageKind;
pub use pin::Pinned;
pub use pool::PoolCounts;
pub use record::{Record, RecordTag, Transaction};
pub use store::{
    BackupProgress, Checkpoint, CheckpointWriter, Damage, Examined, ExtentInfo, HeaderInfo, LogInfo, PageCount,
    PageHandle, PageInfo, Part, PreparedCheckpoint, ReadAhead, Recovery, Stats, Store, Transactions, VacuumProgress,
};
pub use timeline::{Built, Entered, Exclusive, Numbered, Snapshot, Timeline};
