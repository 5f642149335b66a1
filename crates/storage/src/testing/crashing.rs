//! A file system on a disk that loses power at the n-th call, or fails one, from a seed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::call::Call;
use super::disk::{Change, Disk, NameChange, Operation};
use super::random::Random;
use super::recording::Recording;
use crate::fs::{File, FileSystem, LockKind, LockOutcome, OpenMode};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What happens at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The power goes: this call may have done some of its work, and no later call does any.
    Crash,
    /// The call fails with an error of this kind, and later ones work again. A write has then done half of its work;
    /// what was not durable before a failed sync never will be.
    Fail(io::ErrorKind),
}

/// A disk in memory. Clones are the same disk. Locks are always granted.
///
/// Calls that change something or make it durable are counted from 0. For reads that go wrong, full disks, and faults on
/// some files only, put a [`FaultyFileSystem`](super::FaultyFileSystem) on top.
#[derive(Debug, Clone, Default)]
pub struct CrashingFileSystem {
    machine: Arc<Mutex<Machine>>,
}

#[derive(Debug, Default)]
struct Machine {
    disk: Disk,
    calls: Vec<Call>,
    plan: BTreeMap<u64, Fault>,
    is_dead: bool,
    recording: Option<Recording>,
}

/// How much later it is after each call, by the clock of a disk that records.
const TICK: Duration = Duration::from_millis(1);

impl CrashingFileSystem {
    /// An empty disk on which nothing goes wrong.
    pub fn new() -> CrashingFileSystem {
        CrashingFileSystem::default()
    }

    /// Plans a fault for the call of this index.
    pub fn plan(&self, call_index: u64, fault: Fault) {
        self.machine().plan.insert(call_index, fault);
    }

    /// A disk with the bytes of this one, which are durable there, that records its calls. Its clock ticks with them, so
    /// that the same steps are the same calls each time.
    pub fn recorded(&self) -> CrashingFileSystem {
        let disk = self.machine().disk.clone().into_seen();
        let recording = Some(Recording::new(disk.clone()));
        CrashingFileSystem { machine: Arc::new(Mutex::new(Machine { disk, recording, ..Machine::default() })) }
    }

    pub(super) fn of(disk: Disk) -> CrashingFileSystem {
        CrashingFileSystem { machine: Arc::new(Mutex::new(Machine { disk, ..Machine::default() })) }
    }

    /// What was recorded so far; nothing where this disk does not record.
    pub fn recording(&self) -> Recording {
        self.machine().recording.clone().unwrap_or_default()
    }

    /// The calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.machine().calls.clone()
    }

    /// Turns the power off for good: no later call does anything.
    pub fn turn_off(&self) {
        self.machine().is_dead = true;
    }

    /// Whether the planned crash has happened.
    pub fn is_dead(&self) -> bool {
        self.machine().is_dead
    }

    /// The disk as it is found after a power loss now: what was synced, and of the rest what the seed says.
    pub fn restart(&self, seed: u64) -> CrashingFileSystem {
        CrashingFileSystem::of(self.machine().disk.survivor(&mut Random::new(seed)))
    }

    /// A disk with the same bytes, on which nothing is pending.
    pub fn copy(&self) -> CrashingFileSystem {
        let copy = CrashingFileSystem::new();
        for path in self.files() {
            copy.put(&path, self.bytes(&path));
        }
        copy
    }

    /// The files.
    pub fn files(&self) -> Vec<PathBuf> {
        self.machine().disk.names.keys().cloned().collect()
    }

    /// A file's bytes; empty if there is none.
    pub fn bytes(&self, path: &Path) -> Vec<u8> {
        let machine = self.machine();
        machine.disk.names.get(path).map(|inode| machine.disk.inodes[*inode].now.to_vec()).unwrap_or_default()
    }

    /// Makes or replaces a file, durably: to plant damage.
    pub fn put(&self, path: &Path, bytes: Vec<u8>) {
        let mut machine = self.machine();
        let inode = machine.disk.inodes.len();
        machine.disk.inodes.push(Default::default());
        machine.disk.inodes[inode].change(Change::Write { offset: 0, bytes: Arc::new(bytes) });
        machine.disk.inodes[inode].sync();
        machine.disk.change_name(NameChange::Put(path.to_path_buf(), inode));
        machine.disk.sync_names();
    }

    /// What a failed sync of the file does: what was not durable never will be. Programs still see it, unless it is
    /// `evicted` from memory too.
    pub(super) fn lose_unsynced(&self, path: &Path, evicted: bool) {
        let mut machine = self.machine();
        let disk = &mut machine.disk;
        let Some(inode) = disk.names.get(path).and_then(|inode| disk.inodes.get_mut(*inode)) else { return };
        if evicted { inode.evict_unsynced() } else { inode.forget_unsynced() }
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Machine {
    fn check_alive(&self) -> io::Result<()> {
        if self.is_dead { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }

    /// Counts a call and says what is planned for it.
    fn call(&mut self, call: Call) -> io::Result<Option<Fault>> {
        self.check_alive()?;
        let fault = self.plan.get(&(self.calls.len() as u64)).copied();
        self.calls.push(call);
        self.is_dead = fault == Some(Fault::Crash);
        Ok(fault)
    }

    /// Does what a call is to do, on a file of this name.
    fn perform(&mut self, path: &Path, operation: Operation) {
        self.disk.perform(&operation);
        if let (Some(recording), Some(call)) = (&mut self.recording, self.calls.last()) {
            recording.push(*call, path, operation);
        }
    }
}

fn outcome(fault: Option<Fault>) -> io::Result<()> {
    match fault {
        None => Ok(()),
        Some(Fault::Crash) => Err(io::Error::other("the power went off")),
        Some(Fault::Fail(kind)) => Err(io::Error::new(kind, "failed on purpose")),
    }
}

fn missing(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no file {}", path.display()))
}

impl FileSystem for CrashingFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut machine = self.machine();
        machine.check_alive()?;
        let inode = match machine.disk.names.get(path) {
            Some(inode) => *inode,
            None if mode == OpenMode::Create => {
                let fault = machine.call(Call::Create)?;
                if let Some(Fault::Fail(_)) = fault {
                    outcome(fault)?;
                }
                let inode = machine.disk.inodes.len();
                machine.perform(path, Operation::Create(path.to_path_buf()));
                outcome(fault)?;
                inode
            }
            None => return Err(missing(path)),
        };
        Ok(Arc::new(CrashingFile { machine: Arc::clone(&self.machine), path: path.to_path_buf(), inode }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let machine = self.machine();
        machine.check_alive()?;
        Ok(machine.disk.names.contains_key(path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        let fault = machine.call(Call::Remove)?;
        if matches!(fault, None | Some(Fault::Crash)) {
            machine.perform(path, Operation::Remove(path.to_path_buf()));
        }
        outcome(fault)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        let fault = machine.call(Call::Rename)?;
        if matches!(fault, None | Some(Fault::Crash)) {
            let inode = *machine.disk.names.get(from).ok_or_else(|| missing(from))?;
            machine.perform(from, Operation::Rename(inode, from.to_path_buf(), to.to_path_buf()));
        }
        outcome(fault)
    }

    fn list(&self, directory: &Path, prefix: &OsStr) -> io::Result<Vec<PathBuf>> {
        let machine = self.machine();
        machine.check_alive()?;
        Ok(machine.disk.names.keys().filter(|path| crate::fs::is_listed(path, directory, prefix)).cloned().collect())
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        let fault = machine.call(Call::SyncDirectory)?;
        if fault.is_none() {
            machine.perform(directory, Operation::SyncNames);
        }
        outcome(fault)
    }

    fn lock(&self, _path: &Path, _kind: LockKind) -> io::Result<LockOutcome> {
        self.machine().check_alive()?;
        Ok(LockOutcome::Held(Box::new(())))
    }

    fn now(&self) -> Instant {
        let machine = self.machine();
        match &machine.recording {
            Some(recording) => recording.begun + TICK * machine.calls.len() as u32,
            None => Instant::now(),
        }
    }
}

#[derive(Debug)]
struct CrashingFile {
    machine: Arc<Mutex<Machine>>,
    path: PathBuf,
    inode: usize,
}

impl CrashingFile {
    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl File for CrashingFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let machine = self.machine();
        machine.check_alive()?;
        let bytes = &machine.disk.inodes[self.inode].now;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let source = bytes.get(start..start.saturating_add(buffer.len())).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(source);
        Ok(())
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let mut machine = self.machine();
        let fault = machine.call(Call::Write)?;
        let mut bytes = parts.concat();
        if let Some(Fault::Fail(_)) = fault {
            bytes.truncate(bytes.len() / 2);
        }
        machine.perform(&self.path, Operation::Change(self.inode, Change::Write { offset, bytes: Arc::new(bytes) }));
        outcome(fault)
    }

    fn sync(&self) -> io::Result<()> {
        let mut machine = self.machine();
        let fault = machine.call(Call::Sync)?;
        match fault {
            None => machine.perform(&self.path, Operation::Sync(self.inode)),
            Some(Fault::Fail(_)) => machine.disk.inodes[self.inode].forget_unsynced(),
            Some(Fault::Crash) => {}
        }
        outcome(fault)
    }

    fn length(&self) -> io::Result<u64> {
        let machine = self.machine();
        machine.check_alive()?;
        Ok(machine.disk.inodes[self.inode].now.len() as u64)
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        let mut machine = self.machine();
        let fault = machine.call(Call::SetLength)?;
        if matches!(fault, None | Some(Fault::Crash)) {
            machine.perform(&self.path, Operation::Change(self.inode, Change::Length(bytes)));
        }
        outcome(fault)
    }
}
