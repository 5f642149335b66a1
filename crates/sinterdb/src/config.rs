//! How a database is opened.

/// When a commit counts as durable (docs/format/log.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// Each commit is synced to the disk before it returns.
    #[default]
    Full,
    /// Commits are synced in the background and at each checkpoint; a power cut may lose the last moments, never part
    /// of a commit.
    Normal,
    /// Nothing is synced before the database is closed.
    Off,
}

/// Options for [`crate::Database::open_with`].
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) memory_limit_bytes: Option<u64>,
    pub(crate) threads: Option<usize>,
    pub(crate) synchronous: Synchronous,
    pub(crate) read_only: bool,
    pub(crate) create: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            memory_limit_bytes: None,
            threads: None,
            synchronous: Synchronous::Full,
            read_only: false,
            create: true,
        }
    }
}

impl Config {
    /// All defaults: three quarters of the machine's memory, all its threads, `synchronous = full`, read and write,
    /// created where absent.
    pub fn builder() -> Config {
        Config::default()
    }

    /// Budget for cached pages and running queries, in bytes.
    pub fn memory_limit_bytes(mut self, bytes: u64) -> Config {
        self.memory_limit_bytes = Some(bytes);
        self
    }

    /// Threads per query.
    pub fn threads(mut self, threads: usize) -> Config {
        self.threads = Some(threads);
        self
    }

    /// When a commit counts as durable.
    pub fn synchronous(mut self, synchronous: Synchronous) -> Config {
        self.synchronous = synchronous;
        self
    }

    /// Refuses every change; the file must exist.
    pub fn read_only(mut self, read_only: bool) -> Config {
        self.read_only = read_only;
        self
    }

    /// Whether a file that does not exist is created (the default) or an error.
    pub fn create(mut self, create: bool) -> Config {
        self.create = create;
        self
    }
}
