//! How much a disk still holds: which bytes of which files take space, and how many more may.
//!
//! A file takes space where it was written; what it merely grew over is a hole, as on most file systems of today, or
//! takes space too, as on others. A file is its path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Invariant: `bytes_free` is what was granted, less what files took since, and more what they gave back.
#[derive(Debug, Default)]
pub(super) struct DiskSpace {
    /// `None`: as much as anybody wants.
    bytes_free: Option<u64>,
    /// Whether letting a file grow takes space.
    growth_takes_space: bool,
    files: BTreeMap<PathBuf, Allocated>,
}

/// The parts of a file that take space: start to end. They neither overlap nor touch.
#[derive(Debug, Default, Clone)]
struct Allocated {
    parts: BTreeMap<u64, u64>,
}

impl Allocated {
    /// Bytes in `start..end` that take space.
    fn bytes_in(&self, start: u64, end: u64) -> u64 {
        let overlap = |(&from, &to): (&u64, &u64)| to.min(end).saturating_sub(from.max(start));
        self.parts.range(..end).rev().map_while(|part| (*part.1 > start).then(|| overlap(part))).sum()
    }

    /// How far from `start` towards `end` one comes with so many new bytes.
    fn reach(&self, start: u64, end: u64, mut new_bytes: u64) -> u64 {
        let mut at = start;
        for (&from, &to) in self.parts.range(..end).filter(|(_, to)| **to > start) {
            let hole = from.saturating_sub(at);
            if hole > new_bytes {
                return at + new_bytes;
            }
            new_bytes -= hole;
            at = to.min(end);
        }
        at + (end - at).min(new_bytes)
    }

    fn add(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let (mut start, mut end) = (start, end);
        let touching: Vec<u64> =
            self.parts.range(..=end).rev().take_while(|(_, to)| **to >= start).map(|(&from, _)| from).collect();
        for from in touching {
            end = end.max(self.parts.remove(&from).unwrap_or(end));
            start = start.min(from);
        }
        self.parts.insert(start, end);
    }

    fn remove(&mut self, start: u64, end: u64) {
        let hit: Vec<(u64, u64)> =
            self.parts.range(..end).rev().take_while(|(_, to)| **to > start).map(|(&from, &to)| (from, to)).collect();
        for (from, to) in hit {
            self.parts.remove(&from);
            self.add(from, start.min(to));
            self.add(end.max(from), to);
        }
    }
}

impl DiskSpace {
    pub(super) fn set_bytes_free(&mut self, bytes: Option<u64>) {
        self.bytes_free = bytes;
    }

    pub(super) fn bytes_free(&self) -> Option<u64> {
        self.bytes_free
    }

    pub(super) fn set_growth_takes_space(&mut self, takes: bool) {
        self.growth_takes_space = takes;
    }

    /// A file that was there before anybody counted.
    pub(super) fn learn(&mut self, path: &Path, bytes: u64) {
        if !self.files.contains_key(path) {
            self.files.entry(path.to_path_buf()).or_default().add(0, bytes);
        }
    }

    /// Takes space for a write, and returns how many of its bytes, from the first on, there is space for.
    pub(super) fn take(&mut self, path: &Path, offset: u64, bytes: u64) -> u64 {
        let file = self.files.entry(path.to_path_buf()).or_default();
        let end = offset + bytes;
        let reach = self.bytes_free.map_or(end, |free| file.reach(offset, end, free));
        let taken = (reach - offset) - file.bytes_in(offset, reach);
        file.add(offset, reach);
        self.bytes_free = self.bytes_free.map(|free| free - taken);
        reach - offset
    }

    /// A file is to have another length. Whether there is space for that.
    pub(super) fn set_length(&mut self, path: &Path, old: u64, new: u64) -> bool {
        if new < old {
            self.give_back(path, new, u64::MAX);
        } else if self.growth_takes_space {
            let before = self.files.get(path).cloned().unwrap_or_default();
            let free = self.bytes_free;
            if self.take(path, old, new - old) < new - old {
                // All or nothing.
                self.files.insert(path.to_path_buf(), before);
                self.bytes_free = free;
                return false;
            }
        }
        true
    }

    /// What stands in `start..end` is not needed any more.
    pub(super) fn give_back(&mut self, path: &Path, start: u64, end: u64) {
        let Some(file) = self.files.get_mut(path) else { return };
        let bytes = file.bytes_in(start, end);
        file.remove(start, end);
        self.bytes_free = self.bytes_free.map(|free| free + bytes);
    }

    pub(super) fn remove(&mut self, path: &Path) {
        self.give_back(path, 0, u64::MAX);
        self.files.remove(path);
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        self.remove(to);
        if let Some(file) = self.files.remove(from) {
            self.files.insert(to.to_path_buf(), file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn agrees_with_a_bitmap(steps in proptest::collection::vec((0u8..4, 0u64..64, 0u64..20), 1..80)) {
            let (mut space, path) = (DiskSpace::default(), Path::new("f"));
            space.set_bytes_free(Some(30));
            let (mut used, mut free) = ([false; 100], 30);
            for (step, start, bytes) in steps {
                let end = start + bytes;
                match step {
                    0 | 1 => {
                        let mut written = 0;
                        for byte in &mut used[start as usize..end as usize] {
                            if !*byte && free == 0 {
                                break;
                            }
                            free -= u64::from(!*byte);
                            *byte = true;
                            written += 1;
                        }
                        proptest::prop_assert_eq!(space.take(path, start, bytes), written);
                    }
                    2 => {
                        free += used[start as usize..end as usize].iter().filter(|byte| **byte).count() as u64;
                        used[start as usize..end as usize].fill(false);
                        space.give_back(path, start, end);
                    }
                    _ => {
                        free += used[start as usize..].iter().filter(|byte| **byte).count() as u64;
                        used[start as usize..].fill(false);
                        proptest::prop_assert!(space.set_length(path, 100, start));
                    }
                }
                proptest::prop_assert_eq!(space.bytes_free(), Some(free));
            }
        }
    }

    #[test]
    fn growing_takes_space_only_where_it_should() {
        let (mut space, path) = (DiskSpace::default(), Path::new("f"));
        space.set_bytes_free(Some(10));
        assert!(space.set_length(path, 0, 100), "a hole");
        space.set_growth_takes_space(true);
        assert!(!space.set_length(path, 100, 111));
        assert_eq!(space.bytes_free(), Some(10));
        assert!(space.set_length(path, 100, 110));
        assert_eq!(space.bytes_free(), Some(0));
        space.remove(path);
        assert_eq!(space.bytes_free(), Some(10));
    }
}
