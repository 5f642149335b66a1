//! Every call to the file system fails in turn, in each of the ways there are, through a fixed life of a database:
//! creation, pages, commits, frees, checkpoints, a process that dies, recovery, a close.
//!
//! What was asked for fails with an error, or succeeds; nothing panics. Unless the store says that it can promise nothing
//! any more, it goes on. Opened again on a well disk, the database has all acknowledged commits, and nothing half.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{Shelf, Workload, found, open, record};
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Trigger};
use sinter_storage::{Error, Options, PageKind, RecordTag, Result, Store};

/// What is known about a database from outside.
struct Life {
    disk: CrashingFileSystem,
    fs: FaultyFileSystem,
    workload: Workload,
    /// The store that is open.
    store: Option<Store>,
    seed: u64,
    /// How often it was opened.
    sessions: u64,
}

/// Where the life came to an end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Opening,
    Working,
    Closing,
}

impl Life {
    fn new(seed: u64) -> Life {
        let disk = CrashingFileSystem::new();
        let (fs, workload) = (FaultyFileSystem::on_disk(&disk), Workload::new(seed, Shelf::default()));
        Life { disk, fs, workload, store: None, seed, sessions: 0 }
    }

    fn open(&mut self) -> Result<()> {
        let options = Options { memory_limit_bytes: 32 << 10, ..Options::default() };
        let (store, recovery) = open(Arc::new(self.fs.clone()), options)?;
        let shelf = Shelf::recover(&store, recovery)?;
        assert!(shelf == *self.workload.shelf(), "another state after opening");
        // Pages that no commit had named are gone, and so is what the workload knew of them.
        self.sessions += 1;
        let before = std::mem::replace(&mut self.workload, Workload::new(0, Shelf::default()));
        self.workload = before.reopened(self.seed ^ self.sessions << 32, shelf);
        self.store = Some(store);
        Ok(())
    }

    /// The whole life, or up to what goes wrong.
    fn run(&mut self) -> Result<(), (Part, Error)> {
        for is_last in [false, true] {
            self.open().map_err(|error| (Part::Opening, error))?;
            let store = self.store.as_ref().expect("it was opened just now");
            let worked = self.workload.run(store, 25).and_then(|()| self.workload.checkpoint(store));
            worked.and_then(|()| self.workload.run(store, 6)).map_err(|error| (Part::Working, error))?;
            if is_last {
                self.workload.close(store).map_err(|error| (Part::Closing, error))?;
            }
            self.store = None;
        }
        Ok(())
    }

    /// Checks what would be found if the power went now, and if the process died, which leaves what programs see.
    fn check_ends(&self, seed: u64, context: &str) {
        let mut ends =
            vec![("a power loss", self.disk.restart(seed)), ("another one", self.disk.restart(seed ^ 1 << 40))];
        if !self.fs.is_dead() {
            ends.push(("the end of the process", self.disk.copy()));
        }
        for (end, disk) in ends {
            let (shelf, _) = found(&disk).unwrap_or_else(|error| panic!("{context}, after {end}: {error}"));
            // Only a power loss takes back what was not acknowledged yet, or a system that forgets what it was given.
            let forgot = self.fs.injected().iter().any(|injection| injection.fault == DiskFault::EvictedSync);
            let promised = match end {
                "the end of the process" if !forgot => self.workload.ends_with(&shelf),
                _ => self.workload.allows(&shelf),
            };
            assert!(promised, "{context}: another state after {end}");
        }
    }
}

fn put(slot: u64) -> [sinter_storage::Record; 1] {
    [record(RecordTag::ROWS_INSERTED, slot, vec![1])]
}

/// A life with this fault at this call of this kind, and what came of it.
fn live_with(seed: u64, call: Call, index: u64, times: u64, fault: DiskFault, counts: &mut Counts) {
    let mut life = Life::new(seed);
    life.fs.set_seed(seed ^ index);
    life.fs.plan(Trigger::at(index).of(call).times(times), fault);
    let context = format!("seed {seed}, {fault:?} at {call:?} {index}, {times} times");
    let outcome = life.run();
    assert!(!life.fs.injected().is_empty(), "{context}: never happened");
    *counts.entry(call).or_default() += life.fs.injected().len() as u64;
    let Err((part, error)) = outcome else {
        // Logs that are not needed any more may stay, and what a header protects besides the newest may be unknown.
        let harmless = matches!(call, Call::Remove | Call::List | Call::Open | Call::Length | Call::Read);
        // A file that cannot be cut stays as long as it is.
        let harmless = harmless || call == Call::SetLength && fault == DiskFault::IoError;
        // The zeros behind a log are written where there is space.
        let harmless = harmless || fault == DiskFault::NoSpace && call == Call::Write;
        assert!(harmless, "{context}: went unnoticed");
        return;
    };
    assert!(error.to_string().contains("shop.sinter") || call == Call::List, "{context}: names no file: {error}");
    assert!(fault != DiskFault::NoSpace || !matches!(error, Error::Io { .. }), "{context}: {error}");
    life.fs.clear_plan();
    let poisoned = life.store.as_ref().is_some_and(|store| store.poisoned().is_some());
    assert!(!call.is_sync() || part == Part::Opening || poisoned, "{context}: a failed sync, and no word of it");
    if !poisoned && fault != DiskFault::PowerLoss {
        // What failed did not happen.
        life.workload.in_doubt = None;
    }
    life.check_ends(index, &context);
    let Some(store) = life.store.take().filter(|_| fault != DiskFault::PowerLoss) else { return };
    life.workload.shelf().check_pages(&store).unwrap_or_else(|what| panic!("{context}: reads go on: {what}"));
    if poisoned {
        refuses_everything(&store, &error).unwrap_or_else(|what| panic!("{context}: {what}"));
    } else {
        let went_on = match part {
            Part::Closing => life.workload.close(&store),
            _ => life.workload.run(&store, 12),
        };
        went_on.unwrap_or_else(|error| panic!("{context}: the disk is well again, and yet: {error}"));
    }
    life.check_ends(!index, &context);
}

/// A store that can promise nothing says so, in the same words, whatever is asked of it.
fn refuses_everything(store: &Store, first: &Error) -> Result<(), String> {
    let answers = [
        ("a commit", store.commit(&put(1), &[]).err()),
        ("a page", store.write_page(PageKind::CHUNK, b"x").err()),
        ("a checkpoint", store.checkpoint(|_| unreachable!("it is refused at once")).err()),
        ("a close", store.close(|_| unreachable!("it is refused at once")).err()),
        ("a sync", store.sync().err()),
    ];
    for (what, answer) in answers {
        match answer {
            Some(error @ Error::Poisoned { .. }) if error.to_string() == first.to_string() => {}
            other => return Err(format!("{what} after {first}: {other:?}")),
        }
    }
    Ok(())
}

type Counts = BTreeMap<Call, u64>;

fn at_every_call(seed: u64, fault: DiskFault, times: u64) {
    let mut whole = Life::new(seed);
    whole.run().expect("nothing goes wrong without a fault");
    let mut counts = Counts::new();
    for (call, count) in whole.fs.calls().into_iter().filter(|(call, _)| fault.can_happen_to(*call)) {
        for index in 0..count {
            live_with(seed, call, index, times, fault, &mut counts);
        }
    }
    println!("seed {seed}, {fault:?}, {times} times: injected {counts:?}");
    let kinds = [Call::Write, Call::SetLength, Call::Sync, Call::Create, Call::SyncDirectory];
    let possible = kinds.into_iter().filter(|call| fault.can_happen_to(*call));
    assert!(possible.into_iter().all(|call| counts.contains_key(&call)), "every kind of call was hit");
}

#[test]
fn an_input_output_error() {
    (0..3).for_each(|seed| at_every_call(seed, DiskFault::IoError, 1));
}

#[test]
fn a_disk_that_fails_for_ever() {
    (3..5).for_each(|seed| at_every_call(seed, DiskFault::IoError, u64::MAX));
}

#[test]
fn a_full_disk() {
    (5..8).for_each(|seed| at_every_call(seed, DiskFault::NoSpace, 1));
}

#[test]
fn a_torn_write() {
    (8..12).for_each(|seed| at_every_call(seed, DiskFault::TornWrite, 1));
}

#[test]
fn a_failed_sync_whose_bytes_are_lost() {
    (14..17).for_each(|seed| at_every_call(seed, DiskFault::LostSync, 1));
}

#[test]
fn a_failed_sync_whose_bytes_are_not_even_seen() {
    (17..20).for_each(|seed| at_every_call(seed, DiskFault::EvictedSync, 1));
}

#[test]
fn a_power_loss() {
    (12..14).for_each(|seed| at_every_call(seed, DiskFault::PowerLoss, 1));
}
