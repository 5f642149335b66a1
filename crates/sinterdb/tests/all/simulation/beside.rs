//! A disk on which something else happens while it is written to: so others commit during a checkpoint, and at the same
//! place each time.

use sinter_storage::fs::{LockKind, LockOutcome, OpenMode};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{File, FileSystem};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The two header copies lie before this; nobody can commit while one is written.
pub(super) const HEADER_BYTES: u64 = 2 * 4096;

/// What happens before a write of a page.
pub(crate) struct Interruption {
    /// Counted down; at 0 it happens.
    pub(crate) writes_left: u32,
    pub(crate) work: Box<dyn FnOnce() + Send>,
}

impl std::fmt::Debug for Interruption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interruption").field("writes_left", &self.writes_left).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct Beside {
    inner: CrashingFileSystem,
    interruption: Arc<Mutex<Option<Interruption>>>,
}

impl Beside {
    pub(crate) fn new(inner: CrashingFileSystem) -> Beside {
        Beside { inner, interruption: Arc::default() }
    }

    pub(crate) fn interrupt(&self, interruption: Interruption) {
        *self.interruption.lock().unwrap() = Some(interruption);
    }

    pub(crate) fn leave_alone(&self) {
        *self.interruption.lock().unwrap() = None;
    }
}

impl FileSystem for Beside {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let (inner, interruption) = (self.inner.open(path, mode)?, Arc::clone(&self.interruption));
        Ok(Arc::new(BesideFile { inner, is_log: super::story::is_log(path), interruption }))
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn list(&self, directory: &Path, prefix: &OsStr) -> io::Result<Vec<PathBuf>> {
        self.inner.list(directory, prefix)
    }
    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.inner.sync_directory(directory)
    }
    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<LockOutcome> {
        self.inner.lock(path, kind)
    }
    fn now(&self) -> Instant {
        self.inner.now()
    }
}

#[derive(Debug)]
struct BesideFile {
    inner: Arc<dyn File>,
    is_log: bool,
    interruption: Arc<Mutex<Option<Interruption>>>,
}

impl BesideFile {
    /// What is due at a write of a page.
    fn due(&self) -> Option<Box<dyn FnOnce() + Send>> {
        let mut interruption = self.interruption.lock().unwrap();
        let waiting = interruption.as_mut()?;
        waiting.writes_left = waiting.writes_left.saturating_sub(1);
        match waiting.writes_left {
            0 => interruption.take().map(|interruption| interruption.work),
            _ => None,
        }
    }
}

impl File for BesideFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buffer)
    }
    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        if !self.is_log
            && offset >= HEADER_BYTES
            && let Some(work) = self.due()
        {
            work();
        }
        self.inner.write_at(offset, parts)
    }
    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }
    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.inner.set_length(bytes)
    }
}
