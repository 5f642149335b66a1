//! How a database is opened.

use crate::{OnCorruption, Synchronous};
use sinter_sql::DatabaseOptions;
use sinter_storage::{FileSystem, RealFileSystem};
use std::num::NonZero;
use std::path::{Component, Path};
use std::sync::Arc;

/// Taken where the system does not say how much memory there is.
const MEMORY_FALLBACK_BYTES: u64 = 1 << 30;

/// Options for [`crate::Database::open_with`].
#[derive(Clone, Debug)]
pub struct Config {
    memory_limit_bytes: Option<u64>,
    threads: Option<usize>,
    synchronous: Synchronous,
    read_only: bool,
    create: bool,
    on_corruption: OnCorruption,
    background: bool,
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
            on_corruption: OnCorruption::Error,
            background: true,
            file_system: Arc::new(RealFileSystem),
        }
    }
}

impl Config {
    /// All defaults: three quarters of the memory that the machine has or this process's control group allows, all
    /// threads, `synchronous = full`, read and write, created where absent.
    pub fn builder() -> Config {
        Config::default()
    }

    /// Budget for cached pages and running queries, in bytes.
    pub fn memory_limit_bytes(mut self, bytes: u64) -> Config {
        self.memory_limit_bytes = Some(bytes);
        self
    }

    /// Threads per query; 1024 at most, and one at least.
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

    /// What becomes of statements that come to damaged bytes, until `SET on_corruption` says otherwise; and whether the
    /// opening itself passes over tables that are lost. What queries leave out is told by [`crate::Batches::notes`],
    /// what the opening leaves out by [`crate::Database::notes`].
    pub fn on_corruption(mut self, on_corruption: OnCorruption) -> Config {
        self.on_corruption = on_corruption;
        self
    }

    /// Whether pressing and checkpoints happen beside the statements. Without, they come at the end of the statement that
    /// makes them due, so that a test is the same each time; not part of the interface.
    #[doc(hidden)]
    pub fn background(mut self, background: bool) -> Config {
        self.background = background;
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
                .unwrap_or_else(|| memory_bytes().unwrap_or(MEMORY_FALLBACK_BYTES) / 4 * 3),
            threads,
            synchronous: self.synchronous,
            read_only: self.read_only,
            create: self.create,
            on_corruption: self.on_corruption,
            background: self.background,
            file_system: Arc::clone(&self.file_system),
        }
    }
}

/// What this process may use: the machine's memory, or less where its control group (a container, a service) has a limit.
fn memory_bytes() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok();
    let limit = groups.and_then(|groups| group_limit_bytes(Path::new("/sys/fs/cgroup"), &groups));
    [machine_memory_bytes(), limit].into_iter().flatten().min()
}

/// The machine's memory, from the kernel's own account.
fn machine_memory_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// The least limit on the memory of a process and of the control groups above it; `None` where there is none.
///
/// `groups` is what `/proc/self/cgroup` holds, a line `number:controllers:path` per hierarchy: version 2 has number 0 and
/// no controllers, and lies at `mount`; of version 1 the hierarchy with the controller `memory` counts, which lies below.
/// <https://docs.kernel.org/admin-guide/cgroup-v2.html>, <https://docs.kernel.org/admin-guide/cgroup-v1/memory.html>.
fn group_limit_bytes(mount: &Path, groups: &str) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        if number == "0" && controllers.is_empty() {
            least_limit_bytes(mount, path, "memory.max")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            least_limit_bytes(&mount.join("memory"), path, "memory.limit_in_bytes")
        } else {
            None
        }
    });
    limits.min()
}

/// The least of the limits in the files named `file`, from the group `path` up to `mount`.
fn least_limit_bytes(mount: &Path, path: &str, file: &str) -> Option<u64> {
    let path = Path::new(path.trim_start_matches('/'));
    // A container may be told a path outside of what it sees (`/../x`); what it sees then begins at the mount.
    let is_within = path.components().all(|part| matches!(part, Component::Normal(_)));
    let path = if is_within { path } else { Path::new("") };
    let limits = path.ancestors().filter_map(|group| {
        let text = std::fs::read_to_string(mount.join(group).join(file)).ok()?;
        parse_limit(&text)
    });
    limits.min()
}

/// A number of bytes; `None` for `max`, which is none. Version 1 writes a huge number for that.
fn parse_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn limits_are_numbers_or_max() {
        assert_eq!(parse_limit("536870912\n"), Some(512 << 20));
        assert_eq!(parse_limit("9223372036854771712\n"), Some(9_223_372_036_854_771_712));
        for text in ["max\n", "", "0\n", "-1\n", "lots\n"] {
            assert_eq!(parse_limit(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_limit_holds_for_the_groups_below() {
        let mount = tempfile::tempdir().unwrap();
        let mount = mount.path();
        write(&mount.join("a/memory.max"), "1000\n");
        write(&mount.join("a/b/memory.max"), "max\n");
        write(&mount.join("a/b/c/memory.max"), "3000\n");
        assert_eq!(group_limit_bytes(mount, "0::/a/b/c\n"), Some(1000));
        assert_eq!(group_limit_bytes(mount, "0::/a/b\n"), Some(1000));
        assert_eq!(group_limit_bytes(mount, "0::/\n"), None);
        write(&mount.join("memory.max"), "500\n");
        for groups in ["0::/\n", "0::/a/b/c\n", "0::/not/seen/here\n", "0::/../a\n"] {
            assert_eq!(group_limit_bytes(mount, groups), Some(500), "{groups}");
        }
    }

    #[test]
    fn version_1_has_a_hierarchy_for_memory() {
        let mount = tempfile::tempdir().unwrap();
        let mount = mount.path();
        write(&mount.join("memory/memory.limit_in_bytes"), "9223372036854771712\n");
        write(&mount.join("memory/box/1:2/memory.limit_in_bytes"), "2000\n");
        write(&mount.join("cpu/box/memory.limit_in_bytes"), "1\n");
        assert_eq!(group_limit_bytes(mount, "8:pids:/x\n4:memory:/box/1:2\n1:cpu:/box\n0::/\n"), Some(2000));
        assert_eq!(group_limit_bytes(mount, "4:hugetlb,memory:/box/1:2\n"), Some(2000));
        assert_eq!(group_limit_bytes(mount, "1:name=memory:/box/1:2\nnonsense\n"), None);
    }

    #[test]
    fn the_default_budget_is_part_of_what_there_is() {
        let all = memory_bytes().unwrap_or(MEMORY_FALLBACK_BYTES);
        assert_eq!(Config::builder().options().memory_limit_bytes, all / 4 * 3);
        assert_eq!(Config::builder().memory_limit_bytes(7).options().memory_limit_bytes, 7);
    }
}
