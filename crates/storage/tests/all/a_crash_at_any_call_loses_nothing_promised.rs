//! The power goes at every file-system call in turn, during a random workload; then the database is opened on what the
//! disk kept.
//!
//! Acknowledged commits are there, whole; those that were appended only, and the one in doubt, are there whole or not at
//! all, and not without those before them; pages hold what was written; nothing overlaps; and the store goes on to work,
//! through another workload and a clean close. All the while commits go on during checkpoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{Shelf, Workload, open};
use sinter_storage::testing::{Call, CrashingFileSystem, Fault};
use sinter_storage::{Options, Store, Synchronous};

/// What a crash may take away.
#[derive(Clone, Copy, PartialEq)]
enum Promise {
    /// Nothing.
    Everything,
    /// The last commits, if they were not acknowledged.
    WhatWasAcknowledged,
    /// The last commits.
    APrefix,
}

/// Opens, checks against the workload's promises, and returns the state found.
fn open_and_compare(
    fs: &CrashingFileSystem,
    options: Options,
    workload: &Workload,
    promise: Promise,
) -> (Store, Shelf) {
    let (store, recovery) = open(Arc::new(fs.clone()), options).expect("the database opens after a crash");
    let found = Shelf::recover(&store, recovery).expect("the log can be replayed");
    let is_allowed = match promise {
        Promise::Everything => found == *workload.shelf() || workload.in_doubt.as_ref() == Some(&found),
        Promise::WhatWasAcknowledged => workload.allows(&found),
        Promise::APrefix => workload.allows(&found) || workload.states.contains(&found),
    };
    assert!(is_allowed, "the state after the crash is none that was promised");
    found.check_pages(&store).unwrap();
    found.check_no_leaks(&store);
    store.check(&mut |error| panic!("damaged after a crash: {error}")).unwrap();
    (store, found)
}

fn crash_at_every_call(seed: u64, options: Options, promise: Promise, crashes: &mut BTreeMap<Call, u64>) {
    // Once without a crash, to count the calls; the workload starts with the creation and ends with a close.
    let life = |fs: &CrashingFileSystem| {
        let mut workload = Workload::new(seed, Shelf::default());
        let result = open(Arc::new(fs.clone()), options).and_then(|(store, _)| {
            workload.run(&store, 60)?;
            workload.close(&store)
        });
        (workload, result)
    };
    let whole = CrashingFileSystem::new();
    life(&whole).1.expect("nothing goes wrong without a fault");
    assert_eq!(whole.files().len(), 1, "a closed database is one file");
    for (index, call) in whole.calls().into_iter().enumerate() {
        let fs = CrashingFileSystem::new();
        fs.plan(index as u64, Fault::Crash);
        let (workload, result) = life(&fs);
        assert!(result.is_err() || !fs.is_dead() || call == Call::Remove, "a crash went unnoticed");
        *crashes.entry(call).or_default() += 1;
        let after = fs.restart(seed ^ index as u64);
        let outcome = std::panic::catch_unwind(|| {
            let (store, found) = open_and_compare(&after, options, &workload, promise);
            // The store goes on; a second crash comes at its end, so that recovery from a recovery is seen too.
            let mut next = Workload::new(!seed, found);
            next.run(&store, 12).expect("the store goes on after a crash");
            drop(store);
            let again = after.restart(!seed ^ index as u64);
            let (store, found) = open_and_compare(&again, options, &next, promise);
            let mut last = Workload::new(seed + 1, found);
            last.run(&store, 3).unwrap();
            last.close(&store).unwrap();
            drop(store);
            assert_eq!(again.files().len(), 1, "a closed database is one file");
            open_and_compare(&again.restart(seed), options, &last, Promise::Everything);
        });
        if let Err(panic) = outcome {
            eprintln!("seed {seed}, crash at call {index} ({call:?}), {options:?}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// `SINTER_CRASH_SEEDS` sets how many workloads run; the default is about three thousand crashes.
fn seeds(default: u64) -> std::ops::Range<u64> {
    let count = std::env::var("SINTER_CRASH_SEEDS").ok().and_then(|count| count.parse().ok());
    0..count.unwrap_or(default)
}

fn with_level(synchronous: Synchronous) -> Options {
    Options { synchronous, memory_limit_bytes: 64 << 10, ..Options::default() }
}

/// The operating system lives on, and with it everything that was written.
#[test]
fn when_only_the_process_dies_nothing_is_lost_at_any_level() {
    for synchronous in [Synchronous::Full, Synchronous::Normal, Synchronous::Off] {
        let options = with_level(synchronous);
        let whole = CrashingFileSystem::new();
        let life = |fs: &CrashingFileSystem| {
            let mut workload = Workload::new(7, Shelf::default());
            let _ = open(Arc::new(fs.clone()), options).and_then(|(store, _)| {
                workload.run(&store, 60)?;
                workload.close(&store)
            });
            workload
        };
        life(&whole);
        for index in 0..whole.calls().len() {
            let fs = CrashingFileSystem::new();
            fs.plan(index as u64, Fault::Crash);
            let workload = life(&fs);
            open_and_compare(&fs.copy(), options, &workload, Promise::Everything);
        }
    }
}

/// A sync on demand, and leaving `off`, make everything so far durable.
#[test]
fn a_sync_makes_the_weaker_levels_durable() {
    for (seed, synchronous) in (0..30).zip([Synchronous::Normal, Synchronous::Off].into_iter().cycle()) {
        let fs = CrashingFileSystem::new();
        let (store, _) = open(Arc::new(fs.clone()), with_level(synchronous)).unwrap();
        let mut workload = Workload::new(seed, Shelf::default());
        workload.run(&store, 40).unwrap();
        match seed % 4 {
            1 => store.set_synchronous(Synchronous::Full).unwrap(),
            _ => store.sync().unwrap(),
        }
        drop(store);
        open_and_compare(&fs.restart(seed), with_level(Synchronous::Full), &workload, Promise::Everything);
    }
}

/// Seed 33 crashed in the creation's first sync, and of the header's sectors the disk kept the last, with the checksum,
/// but not the first, with the magic: a file that was taken for somebody else's, and refused for ever.
#[test]
fn a_creation_whose_header_is_torn_is_begun_anew() {
    crash_at_every_call(33, with_level(Synchronous::Full), Promise::WhatWasAcknowledged, &mut BTreeMap::new());
}

#[test]
fn full_keeps_every_acknowledged_commit() {
    let mut crashes = BTreeMap::new();
    for seed in seeds(16) {
        crash_at_every_call(seed, with_level(Synchronous::Full), Promise::WhatWasAcknowledged, &mut crashes);
    }
    println!("crashes by call: {crashes:?}");
    let kinds = [Call::Write, Call::SetLength, Call::Sync, Call::Create, Call::Remove, Call::SyncDirectory];
    // The promise is about the default number of seeds.
    assert!(
        seeds(16).end < 16 || kinds.iter().all(|call| crashes[call] >= 20),
        "every kind of call was hit: {crashes:?}"
    );
}

#[test]
fn normal_keeps_a_prefix_and_damages_nothing() {
    let mut crashes = BTreeMap::new();
    for seed in seeds(8) {
        crash_at_every_call(seed, with_level(Synchronous::Normal), Promise::APrefix, &mut crashes);
    }
    println!("crashes by call: {crashes:?}");
}
