//! Errors of the disk that are no crash: a full disk, an I/O error, a sync that fails.
//!
//! A full disk undoes what was asked for, and the store goes on. After a failed sync nothing more can be promised: the
//! store refuses changes, says why, still reads, and reopens to the last durable state.

use std::io::ErrorKind;
use std::sync::Arc;

use crate::support::{Shelf, Workload, found, open, record};
use sinter_storage::testing::{Call, CrashingFileSystem, Fault};
use sinter_storage::{Error, Options, PageKind, RecordTag};

/// Fails each call in turn with `kind`, and checks that the store keeps its word, whatever it says.
fn fail_at_every_call(seed: u64, kind: ErrorKind) -> (u64, u64) {
    let whole = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(whole.clone()), Options::default()).unwrap();
    let creation = whole.calls().len();
    Workload::new(seed, Shelf::default()).run(&store, 50).unwrap();
    let (mut went_on, mut poisoned, mut unnoticed) = (0, 0, 0);
    for (index, call) in whole.calls().into_iter().enumerate().skip(creation) {
        let fs = CrashingFileSystem::new();
        fs.plan(index as u64, Fault::Fail(kind));
        let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
        let mut workload = Workload::new(seed, Shelf::default());
        let context = format!("seed {seed}, call {index} ({call:?}) fails with {kind}");
        let Err(error) = workload.run(&store, 50) else {
            // A log does without the zeros behind it where there is no space for them.
            let is_optional = call == Call::Remove || call == Call::Write && kind == ErrorKind::StorageFull;
            assert!(is_optional, "{context}: unnoticed");
            unnoticed += u64::from(call == Call::Write);
            drop(store);
            let (shelf, _) = found(&fs.restart(index as u64)).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(workload.allows(&shelf), "{context}: another state after the power loss");
            continue;
        };
        if store.poisoned().is_some() {
            poisoned += 1;
            assert!(matches!(error, Error::Poisoned { .. }), "{context}: {error}");
            let again = store.commit(&[record(RecordTag::ROWS_INSERTED, 1, vec![1])], &[]).unwrap_err();
            assert_eq!(again.to_string(), error.to_string(), "{context}: always the first reason");
            assert!(store.write_page(PageKind::CHUNK, b"x").is_err() && store.checkpoint(|_| unreachable!()).is_err());
            workload.shelf().check_pages(&store).unwrap_or_else(|what| panic!("{context}: reads too: {what}"));
        } else {
            went_on += 1;
            assert_ne!(call, Call::Sync, "{context}: a failed sync must poison");
            assert_ne!(call, Call::SyncDirectory, "{context}: a failed sync must poison");
            if call == Call::Write && kind == ErrorKind::StorageFull {
                assert!(matches!(error, Error::DiskFull { .. }), "{context}: {error}");
            }
            // What failed did not happen, and the next things do.
            workload.in_doubt = None;
            workload.run(&store, 20).unwrap_or_else(|error| panic!("{context}: then {error}"));
        }
        drop(store);
        let (shelf, _) = found(&fs.restart(index as u64)).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert!(workload.allows(&shelf), "{context}: another state after the power loss");
    }
    assert!(unnoticed < 20, "{unnoticed} writes failed unnoticed, each to the end of a log");
    (went_on, poisoned)
}

#[test]
fn at_every_call() {
    for seed in 0..6 {
        for kind in [ErrorKind::StorageFull, ErrorKind::Other] {
            let (went_on, poisoned) = fail_at_every_call(seed, kind);
            println!("seed {seed}, {kind}: the store went on {went_on} times, was poisoned {poisoned} times");
            assert!(went_on > 10 && poisoned > 10);
        }
    }
}

#[test]
fn the_message_says_what_came_first_and_what_to_do() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    store.commit(&[record(RecordTag::ROWS_INSERTED, 1, vec![1])], &[]).unwrap();
    // The next calls are the frame's write and its sync.
    fs.plan(fs.calls().len() as u64 + 1, Fault::Fail(ErrorKind::Other));
    let error = store.commit(&[record(RecordTag::ROWS_INSERTED, 2, vec![2])], &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "shop.sinter: refuses further changes, because syncing the log failed (shop.sinter-log.0: failed on purpose); \
         what was synced before is safe, reading goes on; reopen the database once the disk is well"
    );
}
