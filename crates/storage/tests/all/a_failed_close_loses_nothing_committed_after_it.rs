//! A close that fails, for a full disk or an error, leaves the store open: what is committed afterwards is found again.

use std::sync::Arc;

use crate::support::{Shelf, Workload, found, open, record};
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Trigger};
use sinter_storage::{Error, Options, PageKind, RecordTag};

/// A close takes the next log's number without creating that log; if it fails, the next commit's log leaves no gap.
#[test]
fn commits_after_a_close_on_a_full_disk_are_found_again() {
    let disk = CrashingFileSystem::new();
    let fs = FaultyFileSystem::on_disk(&disk);
    let start = || open(Arc::new(fs.clone()), Options::default()).unwrap().0;
    let put = |slot| [record(RecordTag::ROWS_INSERTED, slot, vec![1])];
    start().commit(&put(1), &[]).unwrap();
    let store = start();
    fs.set_bytes_free(Some(0));
    let error = store.close(|writer| writer.put(None, PageKind::CATALOG, b"root")).unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    fs.set_bytes_free(None);
    store.commit(&put(2), &[]).unwrap();
    drop(store);
    assert_eq!(found(&disk.copy()).unwrap().0.slots.len(), 2);
}

/// The same with a log in use, and the next checkpoint's log.
#[test]
fn a_crash_during_a_checkpoint_after_a_close_on_a_full_disk() {
    let disk = CrashingFileSystem::new();
    let fs = FaultyFileSystem::on_disk(&disk);
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let mut workload = Workload::new(5, Shelf::default());
    workload.run(&store, 12).unwrap();
    fs.set_bytes_free(Some(0));
    let error = workload.close(&store).unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    fs.set_bytes_free(None);
    // The process dies in the checkpoint, once its log is there.
    let _ = store.checkpoint(|_| Err(Error::caller("died here")));
    drop(store);
    assert!(found(&disk.copy()).unwrap().0 == *workload.shelf());
}

/// The checkpoint of the close has happened, cutting the file has not: the store goes on with a new log, not with one
/// that the header says is not needed.
#[test]
fn commits_after_a_close_that_could_not_cut_the_file_are_found_again() {
    let disk = CrashingFileSystem::new();
    let fs = FaultyFileSystem::on_disk(&disk);
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let mut workload = Workload::new(5, Shelf::default());
    workload.run(&store, 12).unwrap();
    let error = (0..)
        .map(|index| {
            fs.clear_plan();
            fs.plan(Trigger::at(index).of(Call::SetLength).ending_with(".sinter"), DiskFault::IoError);
            workload.close(&store).unwrap_err()
        })
        .find(|error| !error.to_string().contains("letting the file grow"))
        .unwrap();
    assert_eq!(error.to_string(), "shop.sinter: cutting the file: Input/output error (os error 5)");
    if store.poisoned().is_none() {
        workload.run(&store, 12).unwrap();
    }
    drop(store);
    assert!(found(&disk.copy()).unwrap().0 == *workload.shelf(), "acknowledged commits are missing");
}
