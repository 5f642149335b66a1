//! A disk whose syncs, or reads, end when the test says so.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use sinter_storage::fs::{LockKind, LockOutcome, OpenMode};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{File, FileSystem};

/// How long a test waits for what must come, and holds what it has forgotten to release.
const PATIENCE: Duration = Duration::from_secs(10);

/// A [`CrashingFileSystem`] on which the syncs or reads of one file can be held. Clones are the same disk.
#[derive(Debug, Clone)]
pub(crate) struct SlowDisk {
    pub(crate) disk: CrashingFileSystem,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The file of which calls are held, and which ones.
    held: Option<(&'static str, Work)>,
    waiting: usize,
    /// Syncs that were let through, by the file's name.
    done: Vec<String>,
}

/// What is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Syncs that have made nothing durable yet.
    ToDo,
    /// Syncs that have.
    Done,
    /// Reads.
    Read,
}

impl SlowDisk {
    pub(crate) fn new() -> SlowDisk {
        SlowDisk { disk: CrashingFileSystem::new(), gate: Arc::default() }
    }

    /// From now on syncs of this file do not end, nor begin their work.
    pub(crate) fn hold(&self, name: &'static str) {
        self.gate.state.lock().unwrap().held = Some((name, Work::ToDo));
    }

    /// From now on syncs of this file do their work, but do not end.
    pub(crate) fn hold_done(&self, name: &'static str) {
        self.gate.state.lock().unwrap().held = Some((name, Work::Done));
    }

    /// From now on reads of this file do not begin.
    pub(crate) fn hold_reads(&self, name: &'static str) {
        self.gate.state.lock().unwrap().held = Some((name, Work::Read));
    }

    /// Lets all go on.
    pub(crate) fn release(&self) {
        self.gate.state.lock().unwrap().held = None;
        self.gate.changed.notify_all();
    }

    /// Returns when so many calls are held.
    pub(crate) fn wait_for_held(&self, count: usize) {
        let state = self.gate.state.lock().unwrap();
        let waited = self.gate.changed.wait_timeout_while(state, PATIENCE, |state| state.waiting < count).unwrap();
        assert!(!waited.1.timed_out(), "nobody calls for that file");
    }

    /// The names of the files that were synced since the last call, in order.
    pub(crate) fn take_synced(&self) -> Vec<String> {
        std::mem::take(&mut self.gate.state.lock().unwrap().done)
    }
}

impl FileSystem for SlowDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let name = path.display().to_string();
        Ok(Arc::new(SlowFile { file: self.disk.open(path, mode)?, name, gate: Arc::clone(&self.gate) }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn list(&self, directory: &Path, prefix: &OsStr) -> io::Result<Vec<PathBuf>> {
        self.disk.list(directory, prefix)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.disk.sync_directory(directory)
    }

    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<LockOutcome> {
        self.disk.lock(path, kind)
    }
}

#[derive(Debug)]
struct SlowFile {
    file: Arc<dyn File>,
    name: String,
    gate: Arc<Gate>,
}

impl SlowFile {
    fn wait_while_held(&self, work: Work) {
        let is_held = |state: &mut State| state.held == Some((&self.name, work));
        let mut state = self.gate.state.lock().unwrap();
        if is_held(&mut state) {
            state.waiting += 1;
            self.gate.changed.notify_all();
            state = self.gate.changed.wait_timeout_while(state, PATIENCE, is_held).unwrap().0;
            state.waiting -= 1;
        }
    }
}

impl File for SlowFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.wait_while_held(Work::Read);
        self.file.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        self.file.write_at(offset, parts)
    }

    fn sync(&self) -> io::Result<()> {
        self.wait_while_held(Work::ToDo);
        let synced = self.file.sync();
        self.wait_while_held(Work::Done);
        self.gate.state.lock().unwrap().done.push(self.name.clone());
        synced
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.file.set_length(bytes)
    }
}
