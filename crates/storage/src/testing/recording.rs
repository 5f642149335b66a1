//! What was done to a disk, call by call, so that a crash at each of the calls can be had without doing it all again.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::call::Call;
use super::crashing::CrashingFileSystem;
use super::disk::{Change, Disk, Operation};
use super::random::Random;

/// A disk, and what was done to it since. Made by [`CrashingFileSystem::recorded`], for disks on which no fault is planned.
#[derive(Debug, Clone)]
pub struct Recording {
    pub(super) begun: Instant,
    disk: Disk,
    operations: Vec<Operation>,
    calls: Vec<RecordedCall>,
}

/// A call that changed something, or made it durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCall {
    /// What kind it was.
    pub call: Call,
    /// Of which file; of a rename, before it.
    pub path: PathBuf,
    /// Where a write begins; the new length of a file whose length was set.
    pub offset: u64,
    /// Bytes that were written.
    pub bytes: u64,
}

/// What dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// The machine: what was not synced is lost, kept, torn and reordered.
    Power,
    /// Only the process: what it wrote is there.
    Process,
}

impl Default for Recording {
    fn default() -> Recording {
        Recording::new(Disk::default())
    }
}

impl Recording {
    pub(super) fn new(disk: Disk) -> Recording {
        Recording { begun: Instant::now(), disk, operations: Vec::new(), calls: Vec::new() }
    }

    pub(super) fn push(&mut self, call: Call, path: &Path, operation: Operation) {
        let (offset, bytes) = match &operation {
            Operation::Change(_, Change::Write { offset, bytes }) => (*offset, bytes.len() as u64),
            Operation::Change(_, Change::Length(bytes)) => (*bytes, 0),
            _ => (0, 0),
        };
        self.calls.push(RecordedCall { call, path: path.to_path_buf(), offset, bytes });
        self.operations.push(operation);
    }

    /// The calls, in order.
    pub fn calls(&self) -> &[RecordedCall] {
        &self.calls
    }

    /// The crashes that there could have been.
    pub fn crashes(&self) -> Crashes<'_> {
        Crashes { recording: self, disk: self.disk.clone(), done: 0 }
    }
}

/// Goes along a recording, and stops where it is told. Going on is cheap, going back begins anew.
#[derive(Debug)]
pub struct Crashes<'a> {
    recording: &'a Recording,
    disk: Disk,
    /// So many of the operations.
    done: usize,
}

impl Crashes<'_> {
    /// The disk as it is found after a crash in the call of this index, which was done in part or not at all, or after the
    /// last one. The seed says what of the rest survives.
    pub fn at(&mut self, call_index: usize, death: Death, seed: u64) -> CrashingFileSystem {
        if call_index < self.done {
            (self.disk, self.done) = (self.recording.disk.clone(), 0);
        }
        for operation in self.recording.operations.iter().take(call_index).skip(self.done) {
            self.disk.perform(operation);
        }
        self.done = call_index;
        let mut random = Random::new(seed);
        let mut disk = self.disk.clone();
        match (death, self.recording.operations.get(call_index)) {
            (Death::Process, Some(operation)) => disk.begin(operation, &mut random),
            (Death::Power, Some(operation)) if !operation.is_sync() => disk.perform(operation),
            _ => {}
        }
        CrashingFileSystem::of(match death {
            Death::Power => disk.survivor(&mut random),
            Death::Process => disk.into_seen(),
        })
    }
}
