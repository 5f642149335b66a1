//! The process dies with commits in the log that are not synced; the system has them all the same. The database is opened
//! again, which replays them, and commits on top of them in a log of its own, durably. Then the power goes: what the new
//! log builds on is there.

use std::sync::Arc;

use crate::support::{Shelf, found, open, record};
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Trigger};
use sinter_storage::{Options, RecordTag, Synchronous};

fn dies_and_goes_on(synchronous: Synchronous, fault: Option<DiskFault>) {
    let disk = CrashingFileSystem::new();
    let fs = FaultyFileSystem::on_disk(&disk);
    let (store, _) = open(Arc::new(fs.clone()), Options { synchronous, ..Options::default() }).unwrap();
    let put = |slot| [record(RecordTag::ROWS_INSERTED, slot, vec![1])];
    store.commit(&put(1), &[]).unwrap();
    if let Some(fault) = fault {
        fs.plan(Trigger::next().of(Call::Sync), fault);
    }
    let second = store.commit(&put(2), &[]);
    assert_eq!(second.is_err(), fault.is_some());
    drop(store);
    fs.clear_plan();
    // Only the process died, and the disk is well: the kernel still has the bytes.
    let (store, recovery) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let mut expected = Shelf::recover(&store, recovery).unwrap();
    store.commit(&put(3), &[]).unwrap();
    expected.slots.insert(3, vec![1]);
    for seed in 0..20 {
        match found(&disk.restart(seed)) {
            Ok((shelf, _)) => assert!(shelf == expected, "seed {seed}: {:?}", shelf.slots.keys()),
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
}

/// `normal`: a power loss takes back the last commits, as a whole suffix. No fault of the disk here.
#[test]
fn unsynced_commits_of_a_process_that_died() {
    dies_and_goes_on(Synchronous::Normal, None);
}

/// `full`: the process dies between the write and the sync.
#[test]
fn killed_between_write_and_sync() {
    dies_and_goes_on(Synchronous::Full, Some(DiskFault::IoError));
}

/// The sync fails, and the system takes the log's last bytes in memory for written: another sync leaves them there.
#[test]
fn reopened_after_a_failed_sync() {
    dies_and_goes_on(Synchronous::Full, Some(DiskFault::LostSync));
}
