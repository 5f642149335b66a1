//! Bad reads of the newest header, or of a node of its page map, when the database is opened: the older checkpoint is
//! taken, as it should be. The newer header, which can be read the next time, is not believed again: what it names is
//! free from then on.

use crate::support::{Shelf, Workload, found, open};
use sinter_storage::Options;
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Trigger};
use std::sync::Arc;

#[test]
fn a_read_that_goes_wrong_once_harms_nothing() {
    let mut failures = Vec::new();
    let mut fallbacks = 0;
    for seed in 0..10 {
        for fault in [DiskFault::FlippedBytes, DiskFault::ShortRead, DiskFault::ShortLength] {
            for (index, times) in (0..8).flat_map(|index| [1, 2, 4].map(|times| (index, times))) {
                let disk = CrashingFileSystem::new();
                let fs = FaultyFileSystem::on_disk(&disk);
                let start = || open(Arc::new(fs.clone()), Options::default());
                let (store, _) = start().unwrap();
                let mut workload = Workload::careful(seed, Shelf::default());
                workload.run(&store, 20).unwrap();
                workload.checkpoint(&store).unwrap();
                workload.run(&store, 5).unwrap();
                drop(store);
                let call = if fault == DiskFault::ShortLength { Call::Length } else { Call::Read };
                fs.plan(Trigger::at(index).times(times).of(call).ending_with(".sinter"), fault);
                let Ok((store, mut recovery)) = start() else { continue };
                fs.clear_plan();
                if recovery.notes.is_empty() || fs.injected().is_empty() {
                    continue;
                }
                fallbacks += 1;
                let notes = std::mem::take(&mut recovery.notes);
                let shelf = Shelf::recover(&store, recovery).unwrap();
                assert!(shelf == *workload.shelf(), "the right state, from the older checkpoint");
                let mut next = Workload::careful(!seed, shelf);
                if next.run(&store, 15).is_err() {
                    continue;
                }
                drop(store);
                let context = format!("seed {seed}, {fault:?} at {call:?} {index}, {times} times, {notes:?}");
                match found(&disk.restart(seed)) {
                    Ok((shelf, _)) if shelf == *next.shelf() => {}
                    Ok(_) => failures.push(format!("{context}: another state")),
                    Err(error) => failures.push(format!("{context}: {error}")),
                }
            }
        }
    }
    assert!(fallbacks > 30, "{fallbacks} fallbacks");
    assert!(
        failures.is_empty(),
        "{} of {fallbacks}, the first: {:#?}",
        failures.len(),
        &failures[..failures.len().min(6)]
    );
}
