//! A checkpoint's new log cannot be created: the write of its header fails, and yet the bytes have arrived. The store
//! goes on with the log before, and what it acknowledges there is found, whether or not the new log was removed, and
//! whether or not it comes back after a power loss.

use std::sync::Arc;

use crate::support::{found, open, record};
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Trigger};
use sinter_storage::{Error, Options, PageKind, RecordTag};

fn run(remove_fails: bool) {
    let put = |slot| [record(RecordTag::ROWS_INSERTED, slot, vec![1])];
    let mut lost = Vec::new();
    for seed in 0..50 {
        let disk = CrashingFileSystem::new();
        let fs = FaultyFileSystem::on_disk(&disk);
        fs.set_seed(seed);
        let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
        store.commit(&put(1), &[]).unwrap();
        fs.plan(Trigger::next().of(Call::Write).ending_with("-log.1"), DiskFault::TornWrite);
        if remove_fails {
            fs.plan(Trigger::next().of(Call::Remove), DiskFault::IoError);
        }
        let failed = store.checkpoint(|writer| writer.put(None, PageKind::CATALOG, b"root"));
        assert!(matches!(failed, Err(Error::Io { during: "creating a log", .. })), "{failed:?}");
        if store.poisoned().is_none() {
            store.commit(&put(2), &[]).unwrap();
        } else {
            continue;
        }
        drop(store);
        let end = if remove_fails { disk.copy() } else { disk.restart(seed) };
        match found(&end) {
            Ok((shelf, _)) if shelf.slots.len() == 2 => {}
            Ok((_, notes)) => lost.push(format!("seed {seed}: commit 2 is gone, notes {notes:?}")),
            Err(error) => lost.push(format!("seed {seed}: {error}")),
        }
    }
    assert!(lost.is_empty(), "{} of 50: {}", lost.len(), lost[0]);
}

#[test]
fn a_log_that_could_not_be_created_and_comes_back_after_a_power_loss() {
    run(false);
}

#[test]
fn a_log_that_could_neither_be_created_nor_removed() {
    run(true);
}
