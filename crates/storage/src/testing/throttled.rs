//! A file system that moves so many bytes per second, and no more: to play an 80 MB/s disk on a machine that has a fast
//! one, and to say how much of a query is waiting for it.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::fs::{File, FileSystem, LockKind, LockOutcome, OpenMode};
use crate::pin::Pinned;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a disk that stood idle makes up for at once. Sleeping ends a little late each time; with this much in the bucket,
/// a disk that is always busy still moves its bytes per second.
const BURST: Duration = Duration::from_millis(5);

/// Passes every call on to another file system, and lets reads and writes take the time that a disk of the given
/// bandwidth would: at least, for what lies below may be slower. All files and threads share that bandwidth, and wait in
/// the order in which they asked. Thread-safe; clones are the same disk.
///
/// ```
/// use std::sync::Arc;
///
/// use sinter_storage::RealFileSystem;
/// use sinter_storage::testing::ThrottledFileSystem;
///
/// let disk = ThrottledFileSystem::new(Arc::new(RealFileSystem), None);
/// // Store::open(Arc::new(disk.clone()), ...), load the data at full speed, and then:
/// disk.set_bytes_per_second(Some(80_000_000));
/// let before = disk.stats();
/// // ... run the query ...
/// let spent = disk.stats().since(&before);
/// println!("{} bytes read, {:?} waited", spent.bytes_read, spent.wait);
/// ```
#[derive(Debug, Clone)]
pub struct ThrottledFileSystem {
    below: Arc<dyn FileSystem>,
    meter: Arc<Meter>,
}

/// What went through a [`ThrottledFileSystem`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoStats {
    /// Calls that read.
    pub reads: u64,
    /// What they asked for.
    pub bytes_read: u64,
    /// Calls that write.
    pub writes: u64,
    /// What they had to write.
    pub bytes_written: u64,
    /// Syncs, of files and directories.
    pub syncs: u64,
    /// How long callers waited for reads, writes and syncs: for the disk below and for the bandwidth, summed over
    /// threads.
    pub wait: Duration,
    /// The part of it that is this file system's doing.
    pub throttled: Duration,
}

impl IoStats {
    /// What came on top since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &IoStats) -> IoStats {
        IoStats {
            reads: self.reads - earlier.reads,
            bytes_read: self.bytes_read - earlier.bytes_read,
            writes: self.writes - earlier.writes,
            bytes_written: self.bytes_written - earlier.bytes_written,
            syncs: self.syncs - earlier.syncs,
            wait: self.wait - earlier.wait,
            throttled: self.throttled - earlier.throttled,
        }
    }
}

impl ThrottledFileSystem {
    /// A disk of this bandwidth; `None` only counts.
    pub fn new(below: Arc<dyn FileSystem>, bytes_per_second: Option<u64>) -> ThrottledFileSystem {
        let bucket = Bucket { bytes_per_second, ..Bucket::default() };
        let meter = Meter { origin: Instant::now(), bucket: Mutex::new(bucket), stats: Mutex::default() };
        ThrottledFileSystem { below, meter: Arc::new(meter) }
    }

    /// Sets the bandwidth of what is asked for from now on; zero is taken for one byte per second.
    pub fn set_bytes_per_second(&self, bytes_per_second: Option<u64>) {
        held(&self.meter.bucket).bytes_per_second = bytes_per_second;
    }

    /// What went through so far.
    pub fn stats(&self) -> IoStats {
        *held(&self.meter.stats)
    }

    /// How long callers waited for the disk so far, summed over threads: see [`IoStats::wait`].
    pub fn io_wait(&self) -> Duration {
        self.stats().wait
    }
}

/// When the disk will be done with what it was asked for: a token bucket, turned around. Times are since the disk was
/// made.
#[derive(Debug, Default)]
struct Bucket {
    bytes_per_second: Option<u64>,
    busy_until: Duration,
}

impl Bucket {
    /// When so many bytes, asked for now, have been moved.
    fn take(&mut self, now: Duration, bytes: u64) -> Duration {
        let Some(bytes_per_second) = self.bytes_per_second else { return now };
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
        let start = self.busy_until.max(now.saturating_sub(BURST));
        self.busy_until = start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.busy_until
    }
}

#[derive(Debug)]
struct Meter {
    origin: Instant,
    bucket: Mutex<Bucket>,
    stats: Mutex<IoStats>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No step under these locks can be half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Meter {
    /// Does some work that moves so many bytes, and does not come back before a disk of this bandwidth would have.
    fn moved<T>(&self, bytes: u64, work: impl FnOnce() -> T, count: impl FnOnce(&mut IoStats)) -> T {
        let start = self.origin.elapsed();
        let until = held(&self.bucket).take(start, bytes);
        let outcome = work();
        let worked = self.origin.elapsed();
        if until > worked {
            std::thread::sleep(until - worked);
        }
        let end = self.origin.elapsed();
        let mut stats = held(&self.stats);
        count(&mut stats);
        stats.wait += end - start;
        stats.throttled += end - worked;
        outcome
    }

    fn read<T>(&self, bytes: usize, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.moved(bytes as u64, work, |stats| {
            stats.reads += 1;
            stats.bytes_read += bytes as u64;
        })
    }

    fn sync(&self, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.moved(0, work, |stats| stats.syncs += 1)
    }
}

impl FileSystem for ThrottledFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = self.below.open(path, mode)?;
        Ok(Arc::new(ThrottledFile { file, meter: Arc::clone(&self.meter) }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.below.exists(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.below.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.below.rename(from, to)
    }

    fn list(&self, directory: &Path, prefix: &OsStr) -> io::Result<Vec<PathBuf>> {
        self.below.list(directory, prefix)
    }

    fn follow_links(&self, path: &Path) -> io::Result<PathBuf> {
        self.below.follow_links(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.meter.sync(|| self.below.sync_directory(directory))
    }

    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<LockOutcome> {
        self.below.lock(path, kind)
    }
}

#[derive(Debug)]
struct ThrottledFile {
    file: Arc<dyn File>,
    meter: Arc<Meter>,
}

impl File for ThrottledFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.meter.read(buffer.len(), || self.file.read_at(offset, buffer))
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        self.meter.moved(
            bytes,
            || self.file.write_at(offset, parts),
            |stats| {
                stats.writes += 1;
                stats.bytes_written += bytes;
            },
        )
    }

    fn sync(&self) -> io::Result<()> {
        self.meter.sync(|| self.file.sync())
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.file.set_length(bytes)
    }

    fn read_shared(&self, offset: u64, bytes: usize) -> io::Result<Pinned> {
        self.meter.read(bytes, || self.file.read_shared(offset, bytes))
    }

    fn discard(&self, offset: u64, bytes: u64) {
        self.file.discard(offset, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn who_asks_waits_for_who_asked_before() {
        let mut disk = Bucket { bytes_per_second: Some(1000), busy_until: ms(0) };
        assert_eq!(disk.take(ms(0), 100), ms(100));
        assert_eq!(disk.take(ms(0), 100), ms(200), "another thread, at the same moment");
        assert_eq!(disk.take(ms(150), 50), ms(250));
        assert_eq!(disk.take(ms(253), 50), ms(300), "who woke up late is not late for long");
        assert_eq!(disk.take(ms(1000), 50), ms(1045), "a disk that idles does not save up");
        assert_eq!(disk.take(ms(1000), 0), ms(1045), "nor is a sync, or nothing, faster than what is under way");
    }

    #[test]
    fn without_a_limit_nobody_waits() {
        let mut disk = Bucket::default();
        assert_eq!(disk.take(ms(7), u64::MAX), ms(7));
    }

    #[test]
    fn bytes_and_calls_are_counted() {
        let disk = ThrottledFileSystem::new(Arc::new(crate::HeapFileSystem::new()), Some(1 << 40));
        let file = disk.open(Path::new("f"), OpenMode::Create).unwrap();
        file.write_at(0, &[&[1; 100], &[2; 100]]).unwrap();
        let before = disk.stats();
        file.read_at(150, &mut [0; 50]).unwrap();
        assert_eq!(*file.read_shared(0, 200).unwrap(), [[1; 100], [2; 100]].concat());
        file.sync().unwrap();
        let IoStats { reads, bytes_read, writes, bytes_written, syncs, .. } = disk.stats().since(&before);
        assert_eq!((reads, bytes_read, writes, bytes_written, syncs), (2, 250, 0, 0, 1));
        assert_eq!((disk.stats().writes, disk.stats().bytes_written), (1, 200));
    }

    /// Four threads, one disk, files of the operating system: everybody gets the right bytes, and each byte is counted.
    #[test]
    fn real_files_and_many_threads_share_a_disk() {
        let directory = tempfile::tempdir().unwrap();
        let disk = ThrottledFileSystem::new(Arc::new(crate::RealFileSystem), Some(200 << 20));
        let file = disk.open(&directory.path().join("f"), OpenMode::Create).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let file = &file;
                scope.spawn(move || {
                    for round in 0..8 {
                        let offset = (u64::from(thread) * 8 + round) * 65536;
                        file.write_at(offset, &[&[thread; 65536]]).unwrap();
                        let mut bytes = vec![0; 65536];
                        file.read_at(offset, &mut bytes).unwrap();
                        assert_eq!(bytes, [thread; 65536]);
                    }
                });
            }
        });
        let stats = disk.stats();
        assert_eq!((stats.reads, stats.writes), (32, 32));
        assert_eq!((stats.bytes_read, stats.bytes_written), (2 << 20, 2 << 20));
        assert_eq!(disk.io_wait(), stats.wait);
    }
}
