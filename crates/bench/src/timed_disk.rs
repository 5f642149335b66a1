//! A file system that notes which calls took long, by which thread: to say what somebody waited for.

use sinter_storage::fs::{LockKind, LockOutcome, OpenMode};
use sinter_storage::{File, FileSystem, Pinned};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Shorter calls are not noted, only added up by those who make them.
const NOTED: Duration = Duration::from_micros(500);

/// A call that took long.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Such as "sync of the log".
    pub(crate) what: String,
    pub(crate) thread: ThreadId,
    /// Who made it, as threads are named.
    pub(crate) who: String,
    pub(crate) begun: Instant,
    pub(crate) ended: Instant,
}

impl Call {
    /// How much of the call lies between two moments.
    pub(crate) fn within(&self, begun: Instant, ended: Instant) -> Duration {
        self.ended.min(ended).saturating_duration_since(self.begun.max(begun))
    }
}

/// Passes every call on to another file system, and notes those that took long. Clones are the same disk.
#[derive(Debug, Clone)]
pub(crate) struct TimedDisk {
    below: Arc<dyn FileSystem>,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl TimedDisk {
    pub(crate) fn new(below: Arc<dyn FileSystem>) -> TimedDisk {
        TimedDisk { below, calls: Arc::default() }
    }

    /// The calls that took long, in the order in which they ended.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn timed<T>(&self, what: impl FnOnce() -> String, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let outcome = work();
        let ended = Instant::now();
        if ended - begun >= NOTED {
            let thread = thread::current();
            let who = thread.name().unwrap_or("a thread").to_owned();
            let call = Call { what: what(), thread: thread.id(), who, begun, ended };
            self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        }
        outcome
    }
}

impl FileSystem for TimedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let is_log = path.file_name().is_some_and(|name| name.to_string_lossy().contains("-log."));
        let of = if is_log { "the log" } else { "the file" };
        let file = self.timed(|| format!("opening of {of}"), || self.below.open(path, mode))?;
        Ok(Arc::new(TimedFile { file, of, disk: self.clone() }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.below.exists(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.timed(|| "removal of a file".to_owned(), || self.below.remove(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.timed(|| "renaming of a file".to_owned(), || self.below.rename(from, to))
    }

    fn list(&self, directory: &Path, prefix: &OsStr) -> io::Result<Vec<PathBuf>> {
        self.below.list(directory, prefix)
    }

    fn follow_links(&self, path: &Path) -> io::Result<PathBuf> {
        self.below.follow_links(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.timed(|| "sync of the directory".to_owned(), || self.below.sync_directory(directory))
    }

    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<LockOutcome> {
        self.below.lock(path, kind)
    }
}

#[derive(Debug)]
struct TimedFile {
    file: Arc<dyn File>,
    of: &'static str,
    disk: TimedDisk,
}

impl File for TimedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.disk.timed(|| format!("read of {}", self.of), || self.file.read_at(offset, buffer))
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        self.disk.timed(|| format!("write to {}", self.of), || self.file.write_at(offset, parts))
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.timed(|| format!("sync of {}", self.of), || self.file.sync())
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.disk.timed(|| format!("cut of {}", self.of), || self.file.set_length(bytes))
    }

    fn read_shared(&self, offset: u64, bytes: usize) -> io::Result<Pinned> {
        self.disk.timed(|| format!("read of {}", self.of), || self.file.read_shared(offset, bytes))
    }

    fn discard(&self, offset: u64, bytes: u64) {
        self.file.discard(offset, bytes);
    }
}
