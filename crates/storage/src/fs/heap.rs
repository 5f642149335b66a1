//! Files in memory: the same engine without a disk.
//!
//! A file is a map from offsets to extents; one write makes one extent, and reading exactly that extent back shares it.
//! So a page of a `:memory:` database exists once, whoever points into it. Overwriting and discarding give memory back
//! at once (as soon as nobody pins the bytes): what is resident is what the database lives by.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::{File, FileSystem, LockGuard, LockKind, LockOutcome, OpenMode};
use crate::pin::Pinned;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Extents of so many bytes are kept apart from what the allocator has. In the heaps of the threads that load a table they
/// would lie between buffers that are soon gone, and of the memory of those little would go back. As the operating system
/// joins such pieces where they touch, they do not count as many.
const MAPPED_EXTENT_BYTES_MIN: usize = 32 << 10;

/// Files that live as long as this value or a handle does. Thread-safe.
#[derive(Debug, Default)]
pub struct HeapFileSystem {
    files: Mutex<HashMap<PathBuf, Arc<HeapFile>>>,
    locks: Arc<Mutex<HashMap<PathBuf, Holders>>>,
}

/// Who holds a lock: so many readers, or one writer.
#[derive(Debug, Default)]
struct Holders {
    shared: usize,
    exclusive: bool,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves these maps whole: no step of theirs can be half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HeapFileSystem {
    /// An empty file system.
    pub fn new() -> HeapFileSystem {
        HeapFileSystem::default()
    }
}

fn missing(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no file {} in memory", path.display()))
}

impl FileSystem for HeapFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut files = held(&self.files);
        if mode == OpenMode::Create {
            return Ok(Arc::clone(files.entry(path.to_path_buf()).or_default()) as Arc<dyn File>);
        }
        files.get(path).map(|file| Arc::clone(file) as Arc<dyn File>).ok_or_else(|| missing(path))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(held(&self.files).contains_key(path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        held(&self.files).remove(path).map(drop).ok_or_else(|| missing(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = held(&self.files);
        let file = files.remove(from).ok_or_else(|| missing(from))?;
        files.insert(to.to_path_buf(), file);
        Ok(())
    }

    fn list(&self, directory: &Path, prefix: &OsStr) -> io::Result<Vec<PathBuf>> {
        Ok(held(&self.files).keys().filter(|path| super::is_listed(path, directory, prefix)).cloned().collect())
    }

    fn sync_directory(&self, _directory: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<LockOutcome> {
        if !self.exists(path)? {
            return Err(missing(path));
        }
        let mut locks = held(&self.locks);
        let holders = locks.entry(path.to_path_buf()).or_default();
        let free = !holders.exclusive && (kind == LockKind::Shared || holders.shared == 0);
        if !free {
            return Ok(LockOutcome::Refused(vec![std::process::id()]));
        }
        match kind {
            LockKind::Shared => holders.shared += 1,
            LockKind::Exclusive => holders.exclusive = true,
        }
        let guard: LockGuard = Box::new(HeapLock { path: path.to_path_buf(), kind, locks: Arc::clone(&self.locks) });
        Ok(LockOutcome::Held(guard))
    }
}

struct HeapLock {
    path: PathBuf,
    kind: LockKind,
    locks: Arc<Mutex<HashMap<PathBuf, Holders>>>,
}

impl Drop for HeapLock {
    fn drop(&mut self) {
        if let Some(holders) = held(&self.locks).get_mut(&self.path) {
            match self.kind {
                LockKind::Shared => holders.shared -= 1,
                LockKind::Exclusive => holders.exclusive = false,
            }
        }
    }
}

/// One file. Invariant: extents do not overlap and end at or before `length`; what no extent covers reads as zeros.
#[derive(Debug, Default)]
struct HeapFile {
    body: RwLock<Body>,
}

#[derive(Debug, Default)]
struct Body {
    extents: BTreeMap<u64, Pinned>,
    length: u64,
}

impl Body {
    /// Takes `start..end` out of the extents. What sticks out on either side is copied, so that the rest can be given
    /// back.
    fn clear(&mut self, start: u64, end: u64) {
        let first = self.extents.range(..=start).next_back().map_or(start, |(&offset, _)| offset);
        let hit: Vec<u64> = self.extents.range(first..end).map(|(&offset, _)| offset).collect();
        for offset in hit {
            let extent_end = offset + self.extents[&offset].len() as u64;
            if extent_end <= start {
                continue;
            }
            let Some(extent) = self.extents.remove(&offset) else { continue };
            if offset < start {
                self.extents.insert(offset, Pinned::from(extent[..(start - offset) as usize].to_vec()));
            }
            if extent_end > end {
                self.extents.insert(end, Pinned::from(extent[(end - offset) as usize..].to_vec()));
            }
        }
    }
}

impl HeapFile {
    fn read(&self) -> RwLockReadGuard<'_, Body> {
        self.body.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Body> {
        self.body.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl File for HeapFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let body = self.read();
        let end = offset.saturating_add(buffer.len() as u64);
        if end > body.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.fill(0);
        let first = body.extents.range(..=offset).next_back().map_or(offset, |(&start, _)| start);
        for (&start, extent) in body.extents.range(first..end) {
            let (from, to) = (start.max(offset), (start + extent.len() as u64).min(end));
            if from < to {
                let source = &extent[(from - start) as usize..(to - start) as usize];
                buffer[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if bytes == 0 {
            return Ok(());
        }
        let extent = super::pinned(bytes, MAPPED_EXTENT_BYTES_MIN, |mut rest| {
            for part in parts {
                let (place, behind) = rest.split_at_mut(part.len());
                place.copy_from_slice(part);
                rest = behind;
            }
            Ok(())
        })?;
        let end = offset + bytes as u64;
        let mut body = self.write();
        body.clear(offset, end);
        body.extents.insert(offset, extent);
        body.length = body.length.max(end);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.read().length)
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        let mut body = self.write();
        if bytes < body.length {
            let end = body.length;
            body.clear(bytes, end);
        }
        body.length = bytes;
        Ok(())
    }

    fn read_shared(&self, offset: u64, bytes: usize) -> io::Result<Pinned> {
        if let Some(extent) = self.read().extents.get(&offset).filter(|extent| extent.len() >= bytes) {
            return Ok(extent.slice(0..bytes));
        }
        super::pinned(bytes, MAPPED_EXTENT_BYTES_MIN, |buffer| self.read_at(offset, buffer))
    }

    fn discard(&self, offset: u64, bytes: u64) {
        self.write().clear(offset, offset.saturating_add(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Arc<dyn File> {
        HeapFileSystem::new().open(Path::new("f"), OpenMode::Create).unwrap()
    }

    #[test]
    fn large_extents_come_back_too() {
        let file = file();
        let (head, payload) = (vec![1; 100_000], vec![2; 300_000]);
        file.write_at(4096, &[&head, &[], &payload]).unwrap();
        let bytes = file.read_shared(4096, 400_000).unwrap();
        assert_eq!((&bytes[..100_000], &bytes[100_000..]), (&head[..], &payload[..]));
        // No extent of its own: read as it lies.
        let across = file.read_shared(4095, 300_000).unwrap();
        assert_eq!((across[0], across[1], across[100_001]), (0, 1, 2));
        assert_eq!(across.len(), 300_000);
    }

    #[test]
    fn a_whole_extent_is_shared_not_copied() {
        let file = file();
        file.write_at(4096, &[b"head", b"payload"]).unwrap();
        let first = file.read_shared(4096, 11).unwrap();
        let second = file.read_shared(4096, 11).unwrap();
        assert_eq!(&*first, b"headpayload");
        assert!(std::ptr::eq(&first[0], &second[0]));
    }

    #[test]
    fn discarding_gives_the_memory_back_and_keeps_what_is_pinned() {
        let file = file();
        file.write_at(0, &[&[7; 100]]).unwrap();
        let pinned = file.read_shared(0, 100).unwrap();
        assert_eq!(pinned.holders(), 2);
        file.discard(0, 4096);
        assert_eq!(pinned.holders(), 1);
        assert_eq!(&*pinned, &[7; 100]);
    }

    proptest::proptest! {
        #[test]
        fn behaves_as_a_plain_vector(steps in proptest::collection::vec((0u8..3, 0u64..60, 1usize..40), 1..60)) {
            let file = file();
            let mut model: Vec<u8> = Vec::new();
            for (index, (step, offset, bytes)) in steps.into_iter().enumerate() {
                let fill = index as u8 + 1;
                let end = offset as usize + bytes;
                match step {
                    0 => {
                        file.write_at(offset, &[&vec![fill; bytes]]).unwrap();
                        model.resize(model.len().max(end), 0);
                        model[offset as usize..end].fill(fill);
                    }
                    1 => {
                        file.set_length(offset).unwrap();
                        model.resize(offset as usize, 0);
                    }
                    _ => {
                        file.discard(offset, bytes as u64);
                        let end = end.min(model.len());
                        if (offset as usize) < end { model[offset as usize..end].fill(0) }
                    }
                }
                let mut whole = vec![0xEE; model.len()];
                file.read_at(0, &mut whole).unwrap();
                proptest::prop_assert_eq!(&whole, &model);
                proptest::prop_assert!(file.read_at(1, &mut whole).is_err() || model.is_empty());
            }
        }
    }
}
