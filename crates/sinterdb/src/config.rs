//! How a database is opened.

use crate::Synchronous;
use sinter_sql::DatabaseOptions;
use sinter_storage::{FileSystem, RealFileSystem};
use std::num::NonZero;
use std::sync::Arc;

/// Taken where the machine does not say how much memory it has.
const MEMORY_FALLBACK_BYTES: u64 = 1 << 30;

/// Options for [`crate::Database::open_with`].
#[derive(Clone, Debug)]
pub struct Config {
    memory_limit_bytes: Option<u64>,
    threads: Option<usize>,
    synchronous: Synchronous,
    read_only: bool,
    create: bool,
    file_system: Arc<dyn FileSystem>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            memory_limit_bytes: None,
            threads: None,
            synchronous: Synchronous::Full,
            read_only: false,
            create: true,
            file_system: Arc::new(RealFileSystem),
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

    /// Where files live. For tests of what a crash leaves; not part of the interface.
    #[doc(hidden)]
    pub fn file_system(mut self, file_system: Arc<dyn FileSystem>) -> Config {
        self.file_system = file_system;
        self
    }

    pub(crate) fn options(&self) -> DatabaseOptions {
        let threads = self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, NonZero::get));
        DatabaseOptions {
            memory_limit_bytes: self
                .memory_limit_bytes
                .unwrap_or_else(|| machine_memory_bytes().unwrap_or(MEMORY_FALLBACK_BYTES) / 4 * 3),
            threads: threads.max(1),
            synchronous: self.synchronous,
            read_only: self.read_only,
            create: self.create,
            file_system: Arc::clone(&self.file_system),
        }
    }
}

/// The machine's memory, from the kernel's own account.
fn machine_memory_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
