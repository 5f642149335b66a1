//! The disk fails a call, any one, while a database is opened: the files stay as they are, byte for byte, and the next
//! open finds everything.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{PATH, Shelf, Workload, closed, found, log_bytes, newest_log, open, unclosed};
use sinter_storage::fs::{LockKind, LockOutcome, OpenMode};
use sinter_storage::testing::{CrashingFileSystem, Fault};
use sinter_storage::{File, FileSystem, Options, Result};

/// A disk that fails one call. Unlike those of [`CrashingFileSystem`], calls that only read are counted and fail too.
#[derive(Debug, Clone)]
struct Unreliable<T> {
    inner: T,
    calls: Arc<AtomicU64>,
    fails_at: u64,
    kind: ErrorKind,
}

impl Unreliable<CrashingFileSystem> {
    fn new(disk: &CrashingFileSystem, fails_at: u64, kind: ErrorKind) -> Unreliable<CrashingFileSystem> {
        Unreliable { inner: disk.clone(), calls: Arc::default(), fails_at, kind }
    }
}

impl<T> Unreliable<T> {
    fn call(&self) -> io::Result<&T> {
        match self.calls.fetch_add(1, Ordering::Relaxed) == self.fails_at {
            true => Err(io::Error::new(self.kind, "failed on purpose")),
            false => Ok(&self.inner),
        }
    }
}

impl FileSystem for Unreliable<CrashingFileSystem> {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let inner = self.call()?.open(path, mode)?;
        Ok(Arc::new(Unreliable { inner, calls: self.calls.clone(), fails_at: self.fails_at, kind: self.kind }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.call()?.exists(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call()?.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call()?.rename(from, to)
    }

    fn list(&self, directory: &Path, prefix: &OsStr) -> io::Result<Vec<PathBuf>> {
        self.call()?.list(directory, prefix)
    }

    fn follow_links(&self, path: &Path) -> io::Result<PathBuf> {
        self.call()?.follow_links(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.call()?.sync_directory(directory)
    }

    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<LockOutcome> {
        self.call()?.lock(path, kind)
    }
}

impl File for Unreliable<Arc<dyn File>> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.call()?.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        self.call()?.write_at(offset, parts)
    }

    fn sync(&self) -> io::Result<()> {
        self.call()?.sync()
    }

    fn length(&self) -> io::Result<u64> {
        self.call()?.length()
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.call()?.set_length(bytes)
    }
}

/// Opens and replays; what was found, and the notes.
fn replayed(fs: &Unreliable<CrashingFileSystem>, options: Options) -> Result<(Shelf, Vec<String>)> {
    let (store, mut recovery) = open(Arc::new(fs.clone()), options)?;
    let notes = std::mem::take(&mut recovery.notes);
    Ok((Shelf::recover(&store, recovery)?, notes))
}

/// Databases in every condition that an open meets.
fn databases() -> Vec<(&'static str, CrashingFileSystem)> {
    let (closed, _) = closed(5, 60);
    // One that was left with several logs, and commits in the last of them.
    let lives = (0..).map(|seed| unclosed(seed, 100).0);
    let mut logs = lives.filter(|fs| fs.files().len() > 2 && log_bytes(fs, &newest_log(fs)).len() > 10_000);
    let unclosed = logs.next().expect("seeds do not end");
    let with = |path: &Path, change: &dyn Fn(&mut Vec<u8>)| {
        let fs = unclosed.copy();
        let mut bytes = fs.bytes(path);
        change(&mut bytes);
        fs.put(path, bytes);
        fs
    };
    let log = newest_log(&unclosed);
    let end = log_bytes(&unclosed, &log).len();
    let number: u64 = log.extension().unwrap().to_str().unwrap().parse().unwrap();
    let next_log = log.with_extension((number + 1).to_string());
    vec![
        ("closed", closed),
        ("a torn tail", with(&log, &|bytes| bytes.truncate(end - 1))),
        ("one header copy rotten", with(Path::new(PATH), &|bytes| bytes[60] ^= 1)),
        ("the other header copy rotten", with(Path::new(PATH), &|bytes| bytes[4096 + 60] ^= 1)),
        ("the creation of a log cut short", with(&next_log, &|bytes| bytes.extend(b"Sint"))),
        ("with logs", unclosed.copy()),
    ]
}

#[test]
fn whichever_call_fails() {
    for (what, disk) in databases() {
        let (expected, _) = found(&disk.copy()).unwrap();
        let state = || -> Vec<_> { disk.files().into_iter().map(|path| (disk.bytes(&path), path)).collect() };
        let (before, changes) = (state(), disk.calls().len());
        for kind in [ErrorKind::Other, ErrorKind::NotFound, ErrorKind::UnexpectedEof] {
            for read_only in [false, true] {
                let options = Options { read_only, ..Options::default() };
                let reliable = Unreliable::new(&disk, u64::MAX, kind);
                let (shelf, usual_notes) = replayed(&reliable, options).unwrap();
                assert_eq!(shelf, expected);
                let calls = reliable.calls.load(Ordering::Relaxed);
                let mut refused = 0;
                for index in 0..calls {
                    let context = format!("{what}, read only: {read_only}, call {index} of {calls} fails with {kind}");
                    match replayed(&Unreliable::new(&disk, index, kind), options) {
                        Err(_) => refused += 1,
                        // The newer header can do without the older one, and sometimes the older one without the newer.
                        Ok((shelf, notes)) => {
                            assert!(shelf == expected, "{context}: another state");
                            // What was read well the second time is not told.
                            let read_again = kind == ErrorKind::UnexpectedEof && notes == usual_notes;
                            let is_told = notes.len() > usual_notes.len() || read_again;
                            assert!(is_told, "{context}: the user is not told: {notes:?}");
                        }
                    }
                    assert!(state() == before && disk.calls().len() == changes, "{context}: something was changed");
                }
                assert!(refused > 5, "{what}: {refused} of {calls}");
                println!("{what}, read only: {read_only}, {kind}: {refused} refused of {calls}");
            }
        }
        assert_eq!(found(&disk).unwrap().0, expected);
    }
}

/// A creation that fails may leave a file; the next open finishes it, and what is committed then survives a power loss.
#[test]
fn whichever_call_of_a_creation_fails() {
    let go_on = |disk: &CrashingFileSystem, context: &str| {
        let (store, _) =
            open(Arc::new(disk.clone()), Options::default()).unwrap_or_else(|why| panic!("{context}: {why}"));
        let mut workload = Workload::new(1, Shelf::default());
        workload.run(&store, 20).unwrap_or_else(|why| panic!("{context}: {why}"));
        drop(store);
        for seed in 0..8 {
            let (shelf, _) = found(&disk.restart(seed)).unwrap_or_else(|why| panic!("{context}: {why}"));
            assert!(workload.allows(&shelf), "{context}: another state after a power loss");
        }
    };
    let (mut reads, mut writes) = (0, 0);
    loop {
        let (disk, context) = (CrashingFileSystem::new(), format!("call {reads}, reading or not"));
        if replayed(&Unreliable::new(&disk, reads, ErrorKind::Other), Options::default()).is_ok() {
            break;
        }
        go_on(&disk, &context);
        reads += 1;
    }
    loop {
        let (disk, context) = (CrashingFileSystem::new(), format!("call {writes} of those that change something"));
        // A write does half of its work then, and what a sync did not sync never will be.
        disk.plan(writes, Fault::Fail(ErrorKind::StorageFull));
        if open(Arc::new(disk.clone()), Options::default()).is_ok() {
            break;
        }
        go_on(&disk, &context);
        writes += 1;
    }
    println!("{reads} calls, {writes} of them change something");
    assert!(writes >= 6 && reads > writes);
}
