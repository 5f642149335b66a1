//! A file system on which calls fail, reads lie and space runs out, as planned or from a seed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::call::Call;
use super::crashing::CrashingFileSystem;
use super::disk::torn;
use super::disk_space::DiskSpace;
use super::fault_plan::{DiskFault, Injection, Plan, Trigger};
use super::random::Random;
use crate::fs::{File, FileSystem, LockKind, LockOutcome, OpenMode};
use crate::pin::Pinned;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Passes every call on to another file system, but for those that are planned to go wrong. Thread-safe; clones are the
/// same file system. The same calls in the same order meet the same faults.
///
/// On a [`CrashingFileSystem`] ([`FaultyFileSystem::on_disk`]) it is a whole disk: what a write that was not synced,
/// a failed sync and a power loss leave is seen on [`CrashingFileSystem::restart`] of that disk.
///
/// ```
/// use std::path::Path;
/// use std::sync::Arc;
///
/// use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Trigger};
/// use sinter_storage::{Options, PageKind, Store};
///
/// let disk = CrashingFileSystem::new();
/// let fs = FaultyFileSystem::on_disk(&disk);
/// let (store, _) = Store::open(Arc::new(fs.clone()), Path::new("shop.sinter"), Options::default())?;
///
/// fs.plan(Trigger::next().of(Call::Write), DiskFault::IoError);
/// let error = store.write_page(PageKind::CHUNK, b"anvils").unwrap_err();
/// assert_eq!(error.to_string(), "shop.sinter: writing a page: Input/output error (os error 5)");
/// println!("{}", fs.injected()[0]);
///
/// fs.set_bytes_free(Some(0));
/// assert!(store.write_page(PageKind::CHUNK, b"anvils").unwrap_err().to_string().contains("no space left"));
/// fs.set_bytes_free(Some(1 << 20));
/// store.write_page(PageKind::CHUNK, b"anvils")?;
/// # Ok::<(), sinter_storage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FaultyFileSystem {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    below: Arc<dyn FileSystem>,
    /// What lies below, where that is a disk that can lose what was not synced.
    disk: Option<CrashingFileSystem>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    plan: Plan,
    space: DiskSpace,
    random: Random,
    calls: BTreeMap<Call, u64>,
    call_count: u64,
    injected: Vec<Injection>,
    is_dead: bool,
}

impl FaultyFileSystem {
    /// On top of any file system. A sync that fails loses nothing there.
    pub fn new(below: Arc<dyn FileSystem>) -> FaultyFileSystem {
        FaultyFileSystem::on(below, None)
    }

    /// On top of a disk that forgets what was not synced, when a sync fails or the power goes.
    pub fn on_disk(disk: &CrashingFileSystem) -> FaultyFileSystem {
        FaultyFileSystem::on(Arc::new(disk.clone()), Some(disk.clone()))
    }

    fn on(below: Arc<dyn FileSystem>, disk: Option<CrashingFileSystem>) -> FaultyFileSystem {
        let state = State {
            plan: Plan::default(),
            space: DiskSpace::default(),
            random: Random::new(0),
            calls: BTreeMap::new(),
            call_count: 0,
            injected: Vec::new(),
            is_dead: false,
        };
        FaultyFileSystem { shared: Arc::new(Shared { below, disk, state: Mutex::new(state) }) }
    }

    /// Plans a fault. Of several for the same call, the one that was planned first happens.
    ///
    /// # Panics
    /// If the fault cannot happen to the kind of call that the trigger names.
    pub fn plan(&self, trigger: Trigger, fault: DiskFault) {
        self.state().plan.add(trigger, fault);
    }

    /// Plans `count` faults out of `faults` at some of the next `calls` calls, half of them once, the others a few times
    /// or for ever. The seed also decides how writes are torn and which bytes are flipped from now on.
    ///
    /// # Panics
    /// If `faults` is empty.
    pub fn plan_from_seed(&self, seed: u64, calls: u64, count: usize, faults: &[DiskFault]) {
        let mut state = self.state();
        let mut random = Random::new(seed);
        state.plan.add_from_seed(&mut random, calls, count, faults);
        state.random = random;
    }

    /// Sets from which seed writes are torn and bytes are flipped; zero at the start.
    pub fn set_seed(&self, seed: u64) {
        self.state().random = Random::new(seed);
    }

    /// Drops what is planned: the disk is well from now on, if the power is on.
    pub fn clear_plan(&self) {
        self.state().plan.clear();
    }

    /// How many bytes more the disk holds; `None`, as at the start, is no limit. Writing anew where a file was written
    /// already takes none. Cutting or removing a file and [`File::discard`] give back.
    ///
    /// A write that does not fit writes what fits, and fails with `ENOSPC`. To make space, call this again.
    pub fn set_bytes_free(&self, bytes: Option<u64>) {
        self.state().space.set_bytes_free(bytes);
    }

    /// How many bytes more the disk holds.
    pub fn bytes_free(&self) -> Option<u64> {
        self.state().space.bytes_free()
    }

    /// Whether a file that grows by [`File::set_length`] takes space at once, so that growing is what fails, or, as at
    /// the start, only when it is written there.
    pub fn set_growth_takes_space(&self, takes: bool) {
        self.state().space.set_growth_takes_space(takes);
    }

    /// The calls so far, by kind. [`File::discard`] and [`FileSystem::follow_links`] cannot fail and are not counted.
    pub fn calls(&self) -> BTreeMap<Call, u64> {
        self.state().calls.clone()
    }

    /// The calls so far: the index of the next one.
    pub fn call_count(&self) -> u64 {
        self.state().call_count
    }

    /// What went wrong so far, in order; a full disk among it.
    pub fn injected(&self) -> Vec<Injection> {
        self.state().injected.clone()
    }

    /// How often something went wrong, by the kind of call.
    pub fn injected_by_call(&self) -> BTreeMap<Call, u64> {
        let mut counts = BTreeMap::new();
        for injection in &self.state().injected {
            *counts.entry(injection.call).or_default() += 1;
        }
        counts
    }

    /// Whether a planned power loss has happened.
    pub fn is_dead(&self) -> bool {
        self.state().is_dead
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call and says what goes wrong with it.
    fn call(&self, call: Call, path: &Path) -> io::Result<Option<DiskFault>> {
        let mut state = self.state();
        if state.is_dead {
            return Err(io::Error::other("the power is off"));
        }
        let fault = state.plan.call(call, path);
        *state.calls.entry(call).or_default() += 1;
        if let Some(fault) = fault {
            state.note(call, path, fault);
        }
        state.call_count += 1;
        state.is_dead = fault == Some(DiskFault::PowerLoss);
        Ok(fault)
    }

    /// A call that is done, or fails as a whole.
    fn pass_on<T>(&self, call: Call, path: &Path, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let Some(fault) = self.call(call, path)? else { return work() };
        if fault == DiskFault::PowerLoss && call.is_change() {
            // Nobody learns whether it was done: the restart decides.
            let _ = work();
        }
        Err(fault.error())
    }
}

impl State {
    /// Notes a fault of the call that is counted next.
    fn note(&mut self, call: Call, path: &Path, fault: DiskFault) {
        self.injected.push(Injection { call_index: self.call_count, call, path: path.to_path_buf(), fault });
    }
}

impl FileSystem for FaultyFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let below = &self.shared.below;
        let call = match mode {
            OpenMode::Create if !below.exists(path)? => Call::Create,
            _ => Call::Open,
        };
        self.shared.pass_on(call, path, || {
            let file = below.open(path, mode)?;
            let bytes = file.length()?;
            self.state().space.learn(path, bytes);
            let (shared, path) = (Arc::clone(&self.shared), path.to_path_buf());
            Ok(Arc::new(FaultyFile { shared, path, file }) as Arc<dyn File>)
        })
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.shared.pass_on(Call::Exists, path, || self.shared.below.exists(path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.shared.pass_on(Call::Remove, path, || {
            let bytes = self.shared.below.open(path, OpenMode::Read)?.length()?;
            self.shared.below.remove(path)?;
            let mut state = self.state();
            state.space.learn(path, bytes);
            state.space.remove(path);
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.shared.pass_on(Call::Rename, from, || {
            self.shared.below.rename(from, to)?;
            self.state().space.rename(from, to);
            Ok(())
        })
    }

    fn list(&self, directory: &Path, prefix: &OsStr) -> io::Result<Vec<PathBuf>> {
        self.shared.pass_on(Call::List, directory, || self.shared.below.list(directory, prefix))
    }

    fn follow_links(&self, path: &Path) -> io::Result<PathBuf> {
        self.shared.below.follow_links(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.shared.pass_on(Call::SyncDirectory, directory, || self.shared.below.sync_directory(directory))
    }

    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<LockOutcome> {
        self.shared.pass_on(Call::Lock, path, || self.shared.below.lock(path, kind))
    }
}

#[derive(Debug)]
struct FaultyFile {
    shared: Arc<Shared>,
    path: PathBuf,
    file: Arc<dyn File>,
}

impl FaultyFile {
    /// Writes as much as there is space for.
    fn write_what_fits(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let fitting = {
            let mut state = self.shared.state();
            let fitting = state.space.take(&self.path, offset, bytes);
            if fitting < bytes {
                state.note_full(Call::Write, &self.path);
            }
            fitting
        };
        if fitting == bytes {
            return self.file.write_at(offset, parts);
        }
        let mut whole = parts.concat();
        whole.truncate(fitting as usize);
        self.file.write_at(offset, &[&whole])?;
        Err(DiskFault::NoSpace.error())
    }

    fn write_torn(&self, offset: u64, parts: &[&[u8]]) {
        let bytes = parts.concat();
        let kept = torn(bytes.len(), &mut self.shared.state().random);
        for part in kept {
            // The write fails in any case.
            let _ = self.write_what_fits(offset + part.start as u64, &[&bytes[part]]);
        }
    }
}

impl State {
    /// Notes that the call which was counted last found the disk full.
    fn note_full(&mut self, call: Call, path: &Path) {
        self.note(call, path, DiskFault::NoSpace);
        if let Some(last) = self.injected.last_mut() {
            last.call_index -= 1;
        }
    }

    /// Changes one to four bytes.
    fn flip(&mut self, bytes: &mut [u8]) {
        if bytes.is_empty() {
            return;
        }
        // Distinct places, so that no change takes another one back.
        let mut places: Vec<u64> = (0..=self.random.below(4)).map(|_| self.random.below(bytes.len() as u64)).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            bytes[place as usize] ^= 1 + self.random.below(255) as u8;
        }
    }
}

impl File for FaultyFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self.shared.call(Call::Read, &self.path)? {
            None => self.file.read_at(offset, buffer),
            Some(DiskFault::FlippedBytes) => {
                self.file.read_at(offset, buffer)?;
                self.shared.state().flip(buffer);
                Ok(())
            }
            Some(DiskFault::ShortRead) => {
                // As where a file ends: what is before its end is there.
                let kept = self.shared.state().random.below(buffer.len() as u64 + 1) as usize;
                self.file.read_at(offset, &mut buffer[..kept])?;
                Err(DiskFault::ShortRead.error())
            }
            Some(fault) => Err(fault.error()),
        }
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let Some(fault) = self.shared.call(Call::Write, &self.path)? else {
            return self.write_what_fits(offset, parts);
        };
        match fault {
            DiskFault::TornWrite => self.write_torn(offset, parts),
            // As if the whole of it was on its way: the restart of the disk decides how much arrived.
            DiskFault::PowerLoss => drop(self.write_what_fits(offset, parts)),
            _ => {}
        }
        Err(fault.error())
    }

    fn sync(&self) -> io::Result<()> {
        let Some(fault) = self.shared.call(Call::Sync, &self.path)? else { return self.file.sync() };
        if let (Some(disk), DiskFault::LostSync | DiskFault::EvictedSync) = (&self.shared.disk, fault) {
            disk.lose_unsynced(&self.path, fault == DiskFault::EvictedSync);
        }
        Err(fault.error())
    }

    fn length(&self) -> io::Result<u64> {
        match self.shared.call(Call::Length, &self.path)? {
            None => self.file.length(),
            Some(DiskFault::ShortLength) => {
                let bytes = self.file.length()?;
                Ok(self.shared.state().random.below(bytes.max(1)))
            }
            Some(fault) => Err(fault.error()),
        }
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.shared.pass_on(Call::SetLength, &self.path, || {
            let old = self.file.length()?;
            let fits = {
                let mut state = self.shared.state();
                let fits = state.space.set_length(&self.path, old, bytes);
                if !fits {
                    state.note_full(Call::SetLength, &self.path);
                }
                fits
            };
            if fits { self.file.set_length(bytes) } else { Err(DiskFault::NoSpace.error()) }
        })
    }

    fn read_shared(&self, offset: u64, bytes: usize) -> io::Result<Pinned> {
        match self.shared.call(Call::Read, &self.path)? {
            None => self.file.read_shared(offset, bytes),
            Some(DiskFault::FlippedBytes) => {
                let mut copy = self.file.read_shared(offset, bytes)?.to_vec();
                self.shared.state().flip(&mut copy);
                Ok(Pinned::from(copy))
            }
            Some(fault) => Err(fault.error()),
        }
    }

    fn discard(&self, offset: u64, bytes: u64) {
        self.file.discard(offset, bytes);
        self.shared.state().space.give_back(&self.path, offset, offset.saturating_add(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HeapFileSystem, RealFileSystem};

    const PATH: &str = "shop.sinter";

    fn on_disk() -> (CrashingFileSystem, FaultyFileSystem, Arc<dyn File>) {
        let disk = CrashingFileSystem::new();
        let fs = FaultyFileSystem::on_disk(&disk);
        let file = fs.open(Path::new(PATH), OpenMode::Create).unwrap();
        fs.sync_directory(Path::new("")).unwrap();
        file.write_at(0, &[&[1; 2000]]).unwrap();
        file.sync().unwrap();
        (disk, fs, file)
    }

    fn read(file: &dyn File, bytes: usize) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; bytes];
        file.read_at(0, &mut buffer).map(|()| buffer)
    }

    #[test]
    fn errors_are_those_of_the_operating_system_and_nothing_is_done() {
        let directory = tempfile::tempdir().unwrap();
        let below: [(Arc<dyn FileSystem>, PathBuf); 2] =
            [(Arc::new(HeapFileSystem::new()), PATH.into()), (Arc::new(RealFileSystem), directory.path().join(PATH))];
        for (below, path) in below {
            let fs = FaultyFileSystem::new(below);
            fs.plan(Trigger::next().of(Call::Create), DiskFault::NoSpace);
            assert_eq!(fs.open(&path, OpenMode::Create).unwrap_err().kind(), io::ErrorKind::StorageFull);
            assert!(!fs.exists(&path).unwrap());
            let file = fs.open(&path, OpenMode::Create).unwrap();
            fs.plan(Trigger::at(1).of(Call::Write).times(2), DiskFault::IoError);
            let results: Vec<_> = (0..4u8).map(|byte| file.write_at(byte.into(), &[&[byte + 1]]).is_ok()).collect();
            assert_eq!(results, [true, false, false, true]);
            assert_eq!(read(&*file, 4).unwrap(), [1, 0, 0, 4]);
            fs.plan(Trigger::next().for_ever().of(Call::Remove), DiskFault::IoError);
            assert!(fs.remove(&path).is_err() && fs.remove(&path).is_err());
            fs.clear_plan();
            fs.remove(&path).unwrap();
            assert_eq!((fs.calls()[&Call::Remove], fs.calls()[&Call::Write], fs.calls()[&Call::Create]), (3, 4, 2));
            assert_eq!(fs.injected_by_call(), [(Call::Create, 1), (Call::Write, 2), (Call::Remove, 2)].into());
            let first = &fs.injected()[0];
            assert_eq!(first.to_string(), format!("call 0 (Create of {}): NoSpace", path.display()));
        }
    }

    #[test]
    fn reads_lie_once_and_the_file_is_as_it_was() {
        let (_, fs, file) = on_disk();
        fs.plan(Trigger::next(), DiskFault::FlippedBytes);
        let differing = read(&*file, 2000).unwrap().into_iter().filter(|byte| *byte != 1).count();
        assert!((1..=4).contains(&differing));
        fs.plan(Trigger::next(), DiskFault::ShortRead);
        assert_eq!(read(&*file, 2000).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        fs.plan(Trigger::next(), DiskFault::ShortLength);
        assert!(file.length().unwrap() < 2000);
        assert_eq!(file.length().unwrap(), 2000);
        assert_eq!(read(&*file, 2000).unwrap(), [1; 2000]);
    }

    #[test]
    fn a_torn_write_does_a_part_from_the_seed() {
        let parts: Vec<_> = (0..40)
            .map(|seed| {
                let (_, fs, file) = on_disk();
                fs.plan_from_seed(seed, 1, 1, &[DiskFault::TornWrite]);
                file.write_at(0, &[&[2; 1000], &[2; 1000]]).unwrap_err();
                read(&*file, 2000).unwrap().into_iter().filter(|byte| *byte == 2).count()
            })
            .collect();
        assert!(parts.iter().any(|part| *part > 0) && parts.iter().any(|part| *part < 2000), "{parts:?}");
        let sectors = parts.iter().filter(|part| [512, 1024, 976, 1488].contains(*part));
        assert!(sectors.count() > 4, "{parts:?}");
    }

    /// The three ways in which Linux lets a sync fail: written later after all; seen, and never durable; not even seen.
    #[test]
    fn what_a_failed_sync_loses() {
        for (fault, seen, durable) in
            [(DiskFault::IoError, 2, 2), (DiskFault::LostSync, 2, 1), (DiskFault::EvictedSync, 1, 1)]
        {
            let (disk, fs, file) = on_disk();
            file.write_at(0, &[&[2; 2000]]).unwrap();
            fs.plan(Trigger::next().of(Call::Sync), fault);
            file.sync().unwrap_err();
            assert_eq!(read(&*file, 2000).unwrap(), [seen; 2000], "{fault:?}");
            // The second one says that all is well, and has nothing to write.
            file.sync().unwrap();
            assert_eq!(disk.restart(1).bytes(Path::new(PATH)), [durable; 2000], "{fault:?}");
        }
    }

    #[test]
    fn after_a_power_loss_nothing_works_and_the_disk_has_some_of_what_was_not_synced() {
        let mut found = std::collections::BTreeSet::new();
        for seed in 0..60 {
            let (disk, fs, file) = on_disk();
            fs.plan(Trigger::at(1).of(Call::Write), DiskFault::PowerLoss);
            file.write_at(0, &[&[2; 1000]]).unwrap();
            file.write_at(1000, &[&[3; 1000]]).unwrap_err();
            assert!(fs.is_dead() && file.sync().is_err() && read(&*file, 1).is_err());
            assert!(fs.open(Path::new(PATH), OpenMode::Create).is_err());
            let bytes = disk.restart(seed).bytes(Path::new(PATH));
            let count = |value| bytes.iter().filter(|byte| **byte == value).count();
            let in_words = |count| ["none", "torn", "whole"][usize::from(count > 0) + usize::from(count == 1000)];
            found.insert((in_words(count(2)), in_words(count(3))));
        }
        // Lost, kept, torn, and the later one kept without the earlier.
        for outcome in [("none", "none"), ("whole", "whole"), ("whole", "torn"), ("none", "whole"), ("torn", "none")] {
            assert!(found.contains(&outcome), "{outcome:?} in {found:?}");
        }
    }

    #[test]
    fn a_full_disk_takes_what_fits_and_more_once_space_was_made() {
        let (_, fs, file) = on_disk();
        let log = fs.open(Path::new("shop.sinter-log.0"), OpenMode::Create).unwrap();
        fs.set_bytes_free(Some(500));
        file.write_at(0, &[&[2; 2000]]).expect("no new space");
        file.set_length(10_000).expect("a hole");
        let error = log.write_at(0, &[&[3; 300], &[3; 300]]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!((log.length().unwrap(), fs.bytes_free()), (500, Some(0)));
        assert_eq!(fs.injected_by_call(), [(Call::Write, 1)].into());
        log.set_length(100).unwrap();
        assert_eq!(fs.bytes_free(), Some(400));
        file.discard(0, 50);
        fs.remove(Path::new("shop.sinter-log.0")).unwrap();
        assert_eq!(fs.bytes_free(), Some(550));
        fs.set_growth_takes_space(true);
        assert_eq!(file.set_length(20_000).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs.injected()[1].call_index + 1, fs.call_count());
        fs.set_bytes_free(None);
        file.set_length(20_000).unwrap();
    }

    #[test]
    fn the_same_seed_is_the_same_story() {
        let story = |seed| {
            let (_, fs, file) = on_disk();
            fs.plan_from_seed(seed, 60, 3, &DiskFault::ALL);
            for round in 0..30u64 {
                let _ = file.write_at(round * 100, &[&[round as u8; 300]]);
                let _ = read(&*file, 1000);
                let _ = file.length();
                let _ = file.sync();
            }
            fs.injected()
        };
        assert_eq!(story(7), story(7));
        let faults: std::collections::BTreeSet<_> = (0..60).flat_map(story).map(|injection| injection.fault).collect();
        assert_eq!(faults.len(), DiskFault::ALL.len(), "each fault happens: {faults:?}");
    }
}
