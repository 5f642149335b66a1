//! A crash that is taken from the recording of a disk's calls is the crash that the disk would have had.

use std::sync::Arc;

use crate::support::{Shelf, Workload, open};
use sinter_storage::testing::{CrashingFileSystem, Death, Fault};
use sinter_storage::{Options, Result};

fn live(fs: &CrashingFileSystem) -> Result<()> {
    let (store, _) = open(Arc::new(fs.clone()), Options::default())?;
    let mut workload = Workload::new(5, Shelf::default());
    workload.run(&store, 60)?;
    workload.close(&store)
}

/// Names, lengths and offsets; the bytes differ, since each database has a number of its own.
fn shape(fs: &CrashingFileSystem) -> Vec<(std::path::PathBuf, usize)> {
    fs.files().into_iter().map(|path| (path.clone(), fs.bytes(&path).len())).collect()
}

#[test]
fn crashes_from_a_recording_are_those_of_the_disk() {
    let recorded = CrashingFileSystem::new().recorded();
    live(&recorded).unwrap();
    let recording = recorded.recording();
    let calls: Vec<_> = recording.calls().iter().map(|call| call.call).collect();
    assert_eq!(calls, recorded.calls());
    let mut crashes = recording.crashes();
    for (index, seed) in (0..calls.len()).zip(100..) {
        let fs = CrashingFileSystem::new();
        fs.plan(index as u64, Fault::Crash);
        let _ = live(&fs);
        assert_eq!(shape(&crashes.at(index, Death::Power, seed)), shape(&fs.restart(seed)), "at call {index}");
    }
    // The last one may be done in part.
    let dead = crashes.at(calls.len(), Death::Process, 0);
    assert_eq!(shape(&dead), shape(&recorded));
    assert!(dead.files().iter().all(|path| dead.bytes(path) == recorded.bytes(path)));
    // Going back begins anew.
    assert_eq!(crashes.at(0, Death::Process, 0).files().len(), 0);
}

#[test]
fn the_clock_of_a_disk_that_records_ticks_with_its_calls() {
    use sinter_storage::FileSystem;
    let fs = CrashingFileSystem::new().recorded();
    let begun = fs.now();
    assert_eq!(fs.now(), begun);
    live(&fs).unwrap();
    assert_eq!((fs.now() - begun).as_millis(), fs.calls().len() as u128);
}
