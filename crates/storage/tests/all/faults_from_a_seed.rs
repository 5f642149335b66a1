//! Everything that a disk can do, in one story: calls fail, writes are torn, syncs lie, the disk fills up and is emptied,
//! and at the end of each session the power goes, which keeps, loses, tears and reorders what was not synced. After it,
//! the disk is well long enough to be opened, and what was acknowledged must be there.
//!
//! `SINTER_FAULT_SEEDS` sets how many stories run. A failure prints the seed that repeats it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{Shelf, Workload, found, open};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Injection};
use sinter_storage::{Error, Options};

/// Those that leave the caller with an error. Reads that lie are a matter of their own: a lie about a log's end takes
/// commits back.
const FAULTS: [DiskFault; 6] = [
    DiskFault::IoError,
    DiskFault::NoSpace,
    DiskFault::TornWrite,
    DiskFault::LostSync,
    DiskFault::EvictedSync,
    DiskFault::PowerLoss,
];

const SESSIONS: u64 = 6;

/// One session on a disk that goes wrong from the seed; what it promised, and what happened.
fn session(disk: &CrashingFileSystem, start: &Shelf, seed: u64) -> (Workload, Vec<Injection>) {
    let fs = FaultyFileSystem::on_disk(disk);
    let mut random = SmallRng::seed_from_u64(seed);
    fs.set_growth_takes_space(random.random_bool(0.5));
    fs.plan_from_seed(seed, 250, random.random_range(0..3), &FAULTS);
    if random.random_bool(0.5) {
        fs.set_bytes_free(Some(random.random_range(0..200_000)));
    }
    let mut workload = Workload::new(seed, start.clone());
    let options = Options { memory_limit_bytes: 32 << 10, ..Options::default() };
    let Ok((store, recovery)) = open(Arc::new(fs.clone()), options) else { return (workload, fs.injected()) };
    let Ok(shelf) = Shelf::recover(&store, recovery) else { return (workload, fs.injected()) };
    assert!(shelf == *start, "opened with another state than a well disk has");
    workload = Workload::new(seed, shelf);
    for _ in 0..40 {
        match workload.run(&store, 1) {
            Ok(()) => {}
            Err(Error::Poisoned { .. }) => break,
            Err(error) => {
                assert!(store.poisoned().is_none() || fs.is_dead(), "no word of it: {error}");
                if fs.is_dead() {
                    break;
                }
                workload.in_doubt = None;
                fs.set_bytes_free(fs.bytes_free().map(|free| free + 20_000));
            }
        }
    }
    (workload, fs.injected())
}

fn story(seed: u64, injected: &mut BTreeMap<(DiskFault, Call), u64>) {
    let mut disk = CrashingFileSystem::new();
    let mut state = Shelf::default();
    for number in 0..SESSIONS {
        let (workload, injections) = session(&disk, &state, seed * SESSIONS + number);
        for Injection { call, fault, .. } in &injections {
            *injected.entry((*fault, *call)).or_default() += 1;
        }
        disk = disk.restart(seed ^ number);
        let (found, _) = found(&disk).unwrap_or_else(|error| panic!("session {number}: {error}"));
        assert!(workload.allows(&found), "session {number}: another state after {injections:?}");
        state = found;
    }
}

#[test]
fn a_disk_that_does_everything_wrong_but_lie() {
    let seeds = std::env::var("SINTER_FAULT_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(150);
    let mut injected = BTreeMap::new();
    for seed in 0..seeds {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| story(seed, &mut injected)));
        if let Err(panic) = outcome {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
    println!("injected: {injected:?}");
    assert!(seeds < 150 || FAULTS.iter().all(|fault| injected.keys().any(|(happened, _)| happened == fault)));
}
