//! What a disk remembers: the bytes as programs see them, the bytes that would survive now, and what lies between.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use super::random::Random;
use crate::sync::Arc;

/// Sectors are written whole by most disks; a torn write keeps some of them, or ends anywhere.
const SECTOR_BYTES: usize = 512;

#[derive(Debug, Clone)]
pub(super) enum Change {
    Write { offset: u64, bytes: Arc<Vec<u8>> },
    Length(u64),
}

/// A file's bytes, whatever its names. Clones share them until one is changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Inode {
    pub(super) now: Arc<Vec<u8>>,
    durable: Arc<Vec<u8>>,
    unsynced: Vec<Change>,
}

#[derive(Debug, Clone)]
pub(super) enum NameChange {
    Put(PathBuf, usize),
    Remove(PathBuf),
}

/// What a call does to a disk. Files are named by their inodes, which are given in the order of their creation.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Create(PathBuf),
    Change(usize, Change),
    Sync(usize),
    Remove(PathBuf),
    /// The file, and its names before and after.
    Rename(usize, PathBuf, PathBuf),
    SyncNames,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    pub(super) inodes: Vec<Inode>,
    pub(super) names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    unsynced_names: Vec<NameChange>,
}

impl Operation {
    pub(super) fn is_sync(&self) -> bool {
        matches!(self, Operation::Sync(_) | Operation::SyncNames)
    }
}

impl Inode {
    pub(super) fn change(&mut self, change: Change) {
        apply(Arc::make_mut(&mut self.now), &change);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            apply(Arc::make_mut(&mut self.durable), &change);
        }
    }

    /// A sync that fails: what was not durable never will be, though programs still see it. So Linux does it.
    pub(super) fn forget_unsynced(&mut self) {
        self.unsynced.clear();
    }

    /// The same, and what was not durable is no longer in memory either: programs see the bytes from before.
    pub(super) fn evict_unsynced(&mut self) {
        self.unsynced.clear();
        self.now.clone_from(&self.durable);
    }

    /// The bytes after a power loss: some of the unsynced changes, whole or torn, in their order or without.
    fn survivor(&self, random: &mut Random) -> Arc<Vec<u8>> {
        let mut bytes = Arc::clone(&self.durable);
        let changes = self.unsynced.len() as u64;
        let (whole, torn): (Vec<u64>, Option<u64>) = match random.below(4) {
            0 => (Vec::new(), None),
            1 => ((0..changes).collect(), None),
            2 => {
                let end = random.below(changes + 1);
                ((0..end).collect(), (end < changes).then_some(end))
            }
            _ => {
                let whole = (0..changes).filter(|_| random.below(2) == 0).collect();
                (whole, (changes > 0).then(|| random.below(changes)))
            }
        };
        for (index, change) in (0..).zip(&self.unsynced) {
            if torn == Some(index) {
                tear(&mut bytes, change, random);
            } else if whole.contains(&index) {
                apply(Arc::make_mut(&mut bytes), change);
            }
        }
        bytes
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, bytes: written } => write(bytes, *offset as usize, written),
        Change::Length(length) => bytes.resize(*length as usize, 0),
    }
}

fn write(bytes: &mut Vec<u8>, start: usize, written: &[u8]) {
    let end = start + written.len();
    bytes.resize(bytes.len().max(end), 0);
    bytes[start..end].copy_from_slice(written);
}

/// Applies a write up to some byte, or some of its sectors.
fn tear(bytes: &mut Arc<Vec<u8>>, change: &Change, random: &mut Random) {
    let Change::Write { offset, bytes: written } = change else { return };
    for part in torn(written.len(), random) {
        write(Arc::make_mut(bytes), *offset as usize + part.start, &written[part]);
    }
}

/// Which parts of a write of so many bytes a torn one does.
pub(super) fn torn(bytes: usize, random: &mut Random) -> Vec<Range<usize>> {
    if random.below(2) == 0 {
        let start = 0..random.below(bytes as u64 + 1) as usize;
        return vec![start];
    }
    let sectors = (0..bytes).step_by(SECTOR_BYTES).map(|start| start..(start + SECTOR_BYTES).min(bytes));
    sectors.filter(|_| random.below(2) == 0).collect()
}

impl Disk {
    pub(super) fn perform(&mut self, operation: &Operation) {
        match operation {
            Operation::Create(path) => {
                let inode = self.inodes.len();
                self.inodes.push(Inode::default());
                self.change_name(NameChange::Put(path.clone(), inode));
            }
            Operation::Change(inode, change) => self.inodes[*inode].change(change.clone()),
            Operation::Sync(inode) => self.inodes[*inode].sync(),
            Operation::Remove(path) => self.change_name(NameChange::Remove(path.clone())),
            Operation::Rename(inode, from, to) => {
                self.change_name(NameChange::Put(to.clone(), *inode));
                self.change_name(NameChange::Remove(from.clone()));
            }
            Operation::SyncNames => self.sync_names(),
        }
    }

    /// The same by a process that dies in the call: it may be done in part.
    pub(super) fn begin(&mut self, operation: &Operation, random: &mut Random) {
        match operation {
            Operation::Change(inode, change @ Change::Write { .. }) if random.below(3) == 0 => {
                tear(&mut self.inodes[*inode].now, change, random);
            }
            _ if random.below(2) == 0 => self.perform(operation),
            _ => {}
        }
    }

    pub(super) fn change_name(&mut self, change: NameChange) {
        apply_name(&mut self.names, &change);
        self.unsynced_names.push(change);
    }

    pub(super) fn sync_names(&mut self) {
        for change in self.unsynced_names.drain(..) {
            apply_name(&mut self.durable_names, &change);
        }
    }

    /// The disk after only the process died: all that was written is there.
    pub(super) fn into_seen(mut self) -> Disk {
        for inode in &mut self.inodes {
            inode.unsynced.clear();
            inode.durable = Arc::clone(&inode.now);
        }
        self.sync_names();
        self
    }

    /// The disk after a power loss.
    pub(super) fn survivor(&self, random: &mut Random) -> Disk {
        let mut names = self.durable_names.clone();
        let all = random.below(2) == 0;
        for change in &self.unsynced_names {
            if all || random.below(2) == 0 {
                apply_name(&mut names, change);
            }
        }
        let inodes = self.inodes.iter().map(|inode| {
            let bytes = inode.survivor(random);
            Inode { now: Arc::clone(&bytes), durable: bytes, unsynced: Vec::new() }
        });
        Disk { inodes: inodes.collect(), durable_names: names.clone(), names, unsynced_names: Vec::new() }
    }
}

fn apply_name(names: &mut BTreeMap<PathBuf, usize>, change: &NameChange) {
    match change {
        NameChange::Put(path, inode) => {
            names.insert(path.clone(), *inode);
        }
        NameChange::Remove(path) => {
            names.remove(path);
        }
    }
}
