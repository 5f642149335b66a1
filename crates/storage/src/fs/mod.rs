//! The file-system seam: everything that storage asks of the world below it.
//!
//! | file system | for |
//! |---|---|
//! | [`RealFileSystem`] | databases on disk |
//! | [`HeapFileSystem`] | `:memory:`, and tests |
//! | [`testing::CrashingFileSystem`](crate::testing::CrashingFileSystem) | crashes, torn writes, failed syncs, from a seed |
//! | [`testing::FaultyFileSystem`](crate::testing::FaultyFileSystem) | on top of another: errors, full disks, wrong reads |
//! | [`testing::ThrottledFileSystem`](crate::testing::ThrottledFileSystem) | on top of another: slow disks, for benchmarks |
//!
//! What we assume of a disk: a write that returned is seen by later reads; after [`File::sync`] returned, the file's
//! bytes and length survive a power loss; after [`FileSystem::sync_directory`] returned, so do creations, removals and
//! renames in it. Nothing else: unsynced writes may be lost, torn at any byte and kept in any order.

mod heap;
mod lock_holders;
mod real;

pub use heap::HeapFileSystem;
pub use real::RealFileSystem;

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::pin::Pinned;
use memmap2::MmapMut;

/// What the caller of [`FileSystem::open`] is going to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Only read; the file must exist.
    Read,
    /// Read and write; the file must exist.
    Write,
    /// Read and write; a missing file is created.
    Create,
}

/// Who else may hold the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Readers among themselves.
    Shared,
    /// Nobody.
    Exclusive,
}

/// The answer to [`FileSystem::lock`].
pub enum LockOutcome {
    /// The lock is held until the guard is dropped, or the process dies.
    Held(LockGuard),
    /// Somebody else holds it: these processes, as far as the operating system tells. May be empty.
    Refused(Vec<u32>),
}

/// Keeps a lock while it lives.
pub type LockGuard = Box<dyn Send + Sync>;

/// Where files live.
pub trait FileSystem: Send + Sync + fmt::Debug {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Whether there is a file of this name.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Removes a file. Handles that are open keep their bytes.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Gives a file another name in the same directory; a file of that name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// The files in `directory` whose names start with `prefix`, in no particular order.
    fn list(&self, directory: &Path, prefix: &OsStr) -> io::Result<Vec<PathBuf>>;
    /// Where the file really is, if `path` is a link to it: its log belongs beside the file, not beside the link.
    fn follow_links(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_path_buf())
    }
    /// Makes creations, removals and renames in `directory` durable.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
    /// Takes a lock on an existing file without waiting. The lock excludes other handles of this process too.
    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<LockOutcome>;
    /// The time, for what is done every so often. A simulation has a clock of its own.
    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// An open file. Calls may come from many threads at once.
pub trait File: Send + Sync + fmt::Debug {
    /// Fills `buffer` from `offset`; an error of kind `UnexpectedEof` where the file ends before that.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Writes `parts` one after the other from `offset`; the file grows where needed.
    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()>;
    /// Makes bytes and length durable.
    fn sync(&self) -> io::Result<()>;
    /// Bytes in the file.
    fn length(&self) -> io::Result<u64>;
    /// Cuts the file, or lets it grow by zeros.
    fn set_length(&self, bytes: u64) -> io::Result<()>;
    /// `bytes` bytes from `offset`, shared where the file can share them, else in memory of their own.
    ///
    /// The caller has checked `bytes` against the file's length: this much memory is taken.
    fn read_shared(&self, offset: u64, bytes: usize) -> io::Result<Pinned> {
        pinned(bytes, MAPPED_BYTES_MIN, |buffer| self.read_at(offset, buffer))
    }
    /// Says that these bytes will not be read before they are written again. Their memory may be given back.
    fn discard(&self, _offset: u64, _bytes: u64) {}
}

/// What comes in such pieces is kept in memory of its own from the operating system, which takes it back at once. An
/// allocator would keep it: large buffers that come and go in many threads' heaps made a process half as large again as
/// the pool that they were for.
const MAPPED_BYTES_MIN: usize = 256 << 10;

/// So many bytes in memory of their own, made by `fill` of zeros; from the operating system where they are `mapped_min` or
/// more.
fn pinned(bytes: usize, mapped_min: usize, fill: impl FnOnce(&mut [u8]) -> io::Result<()>) -> io::Result<Pinned> {
    if bytes >= mapped_min
        && let Ok(mut buffer) = MmapMut::map_anon(bytes)
    {
        fill(&mut buffer)?;
        return Ok(Pinned::new(Arc::new(buffer)));
    }
    let mut buffer = vec![0; bytes];
    fill(&mut buffer)?;
    Ok(Pinned::from(buffer))
}

/// Whether `path` is a file directly in `directory` whose name starts with `prefix`.
pub(crate) fn is_listed(path: &Path, directory: &Path, prefix: &OsStr) -> bool {
    let starts = |name: &OsStr| name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes());
    path.parent() == Some(directory) && path.file_name().is_some_and(starts)
}
