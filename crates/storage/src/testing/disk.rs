//! What a disk remembers: the bytes as programs see them, the bytes that would survive now, and what lies between.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use super::random::Random;

/// Sectors are written whole by most disks; a torn write keeps some of them, or ends anywhere.
const SECTOR_BYTES: usize = 512;

#[derive(Debug, Clone)]
pub(super) enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Length(u64),
}

/// A file's bytes, whatever its names.
#[derive(Debug, Clone, Default)]
pub(super) struct Inode {
    pub(super) now: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Debug, Clone)]
pub(super) enum NameChange {
    Put(PathBuf, usize),
    Remove(PathBuf),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    pub(super) inodes: Vec<Inode>,
    pub(super) names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    unsynced_names: Vec<NameChange>,
}

impl Inode {
    pub(super) fn change(&mut self, change: Change) {
        apply(&mut self.now, &change);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            apply(&mut self.durable, &change);
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
    fn survivor(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.durable.clone();
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
                apply(&mut bytes, change);
            }
        }
        bytes
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, bytes: written } => {
            let (start, end) = (*offset as usize, *offset as usize + written.len());
            bytes.resize(bytes.len().max(end), 0);
            bytes[start..end].copy_from_slice(written);
        }
        Change::Length(length) => bytes.resize(*length as usize, 0),
    }
}

/// Applies a write up to some byte, or some of its sectors.
fn tear(bytes: &mut Vec<u8>, change: &Change, random: &mut Random) {
    let Change::Write { offset, bytes: written } = change else { return };
    for part in torn(written.len(), random) {
        let offset = offset + part.start as u64;
        apply(bytes, &Change::Write { offset, bytes: written[part].to_vec() });
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
    pub(super) fn change_name(&mut self, change: NameChange) {
        apply_name(&mut self.names, &change);
        self.unsynced_names.push(change);
    }

    pub(super) fn sync_names(&mut self) {
        for change in self.unsynced_names.drain(..) {
            apply_name(&mut self.durable_names, &change);
        }
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
            Inode { now: bytes.clone(), durable: bytes, unsynced: Vec::new() }
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
