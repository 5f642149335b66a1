//! How a store is opened, and what a commit promises.

/// What a commit promises when it returns. Whatever the level: after a *process* dies, no commit that returned is lost,
/// and after a clean close everything is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// The commit survives a power loss: the log is synced before the call returns.
    #[default]
    Full,
    /// A power loss takes back the last commits, as a whole suffix, and never damages the database. A commit that finds
    /// the last sync of the log [`NORMAL_SYNC_EVERY`] or longer ago syncs before it returns; checkpoints and log
    /// rotation sync too. So what is lost is at most that long a stretch, plus whatever came after the last commit that
    /// synced.
    Normal,
    /// Nothing is synced before the close: a power loss may damage the database as a whole. For loads that can be
    /// repeated.
    Off,
}

/// See [`Synchronous::Normal`].
pub const NORMAL_SYNC_EVERY: std::time::Duration = std::time::Duration::from_millis(100);

/// How to open a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What a commit promises.
    pub synchronous: Synchronous,
    /// The [`Budget`](crate::Budget), which the buffer pool fills as far as others leave it.
    pub memory_limit_bytes: usize,
    /// Open for reading: nothing is created or written, readers share the file, a log is replayed in memory.
    pub read_only: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { synchronous: Synchronous::Full, memory_limit_bytes: 256 << 20, read_only: false }
    }
}
