//! A checkpoint is of one commit, and nobody waits for it: not for its preparation, not for its pages, syncs and header,
//! and for its cut no longer than it takes to put one log in the place of another.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use crate::support::slow_disk::SlowDisk;
use crate::support::{PATH, log_bytes, open, record};
use sinter_storage::testing::{Call, CrashingFileSystem, Fault};
use sinter_storage::{CheckpointWriter, Error, Options, PageId, PageKind, Record, RecordTag, Result, Store};

fn slot(slot: u64) -> [Record; 1] {
    [record(RecordTag::ROWS_INSERTED, slot, vec![slot as u8; 100])]
}

fn root(writer: &mut CheckpointWriter<'_>) -> Result<PageId> {
    let commit = writer.commit().0.to_le_bytes();
    writer.put(None, PageKind::CATALOG, &commit)
}

/// The commit that the recovered checkpoint is of, and the slots that were committed since.
fn recovered(fs: &CrashingFileSystem) -> (u64, Vec<u64>) {
    let (store, recovery) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let commit_of = |root| u64::from_le_bytes(*store.pin(root).unwrap().first_chunk().unwrap());
    let checkpoint = recovery.root.map_or(0, commit_of);
    let slots = recovery.transactions.map(|transaction| transaction.unwrap().records[0].object.0);
    (checkpoint, slots.collect())
}

/// The same after a power loss, for some of what the disk may keep.
fn recovered_after_power_losses(fs: &CrashingFileSystem) -> Vec<(u64, Vec<u64>)> {
    let mut found: Vec<_> = (0..40).map(|seed| recovered(&fs.restart(seed))).collect();
    found.sort();
    found.dedup();
    found
}

/// With commit 1, durable.
fn slow() -> (SlowDisk, Store) {
    let disk = SlowDisk::new();
    let (store, _) = Store::open(Arc::new(disk.clone()), Path::new(PATH), Options::default()).unwrap();
    store.commit(&slot(1), &[]).unwrap();
    (disk, store)
}

#[test]
fn the_cut_touches_no_disk() {
    let (disk, store) = slow();
    let prepared = store.prepare_checkpoint().unwrap();
    store.commit(&slot(2), &[]).unwrap();
    let calls = disk.disk.calls().len();
    let checkpoint = prepared.cut().unwrap();
    assert_eq!((disk.disk.calls().len(), checkpoint.commit().0), (calls, 2));
    store.commit(&slot(3), &[]).unwrap();
    checkpoint.finish(root).unwrap();
    store.commit(&slot(4), &[]).unwrap();
    assert_eq!(recovered_after_power_losses(&disk.disk), [(2, vec![3, 4])]);
}

#[test]
fn nobody_waits_for_the_preparation() {
    let (disk, store) = slow();
    disk.hold("shop.sinter-log.1");
    std::thread::scope(|scope| {
        let checkpoint = scope.spawn(|| store.checkpoint(root));
        disk.wait_for_held(1);
        store.commit(&slot(2), &[]).unwrap();
        assert_eq!(recovered_after_power_losses(&disk.disk), [(0, vec![1, 2])]);
        disk.release();
        checkpoint.join().unwrap().unwrap();
    });
    assert_eq!(recovered_after_power_losses(&disk.disk), [(2, vec![])]);
}

/// What is appended while the preparation syncs is not durable, and the new log's header must not say that it is.
#[test]
fn what_comes_during_the_preparation_may_be_lost() {
    let (disk, store) = slow();
    store.append(&slot(2), &[]).unwrap();
    disk.hold_done("shop.sinter-log.0");
    std::thread::scope(|scope| {
        scope.spawn(|| drop(store.prepare_checkpoint().unwrap()));
        disk.wait_for_held(1);
        store.append(&slot(3), &[]).unwrap();
        disk.release();
    });
    let found = recovered_after_power_losses(&disk.disk);
    assert_eq!(found, [(0, vec![1, 2]), (0, vec![1, 2, 3])]);
}

#[test]
fn nobody_waits_for_the_pages_and_the_syncs_of_the_file() {
    let (disk, store) = slow();
    let [named, freed] = [&b"named while the checkpoint is written"[..], b"freed while it is"]
        .map(|payload| store.write_page(PageKind::CHUNK, payload).unwrap());
    store.commit(&slot(2), &[freed]).unwrap();
    let checkpoint = store.begin_checkpoint().unwrap();
    disk.hold(PATH);
    std::thread::scope(|scope| {
        // Its turn does not go over to another thread, so here the others have threads of their own.
        let meanwhile = scope.spawn(|| {
            disk.wait_for_held(1);
            store.commit(&slot(3), &[]).unwrap();
            // It was synced before.
            store.commit(&slot(4), &[named]).unwrap();
            store.free(freed);
            assert_eq!(*store.pin(named).unwrap(), *b"named while the checkpoint is written");
            store.write_page(PageKind::CHUNK, b"another").unwrap();
            assert_eq!(recovered_after_power_losses(&disk.disk), [(0, vec![1, 2, 3, 4])]);
            disk.release();
        });
        checkpoint.finish(root).unwrap();
        meanwhile.join().unwrap();
    });
    assert!(matches!(store.pin(freed), Err(Error::NoSuchPage { .. })));
    assert_eq!(*store.pin(named).unwrap(), *b"named while the checkpoint is written");
    store.commit(&slot(5), &[]).unwrap();
    assert_eq!(recovered_after_power_losses(&disk.disk), [(2, vec![3, 4, 5])]);
}

/// What is in the new log does not count before the old one is whole, so it is not acknowledged before.
#[test]
fn a_commit_after_the_cut_waits_for_the_log_before_it() {
    let (disk, store) = slow();
    let prepared = store.prepare_checkpoint().unwrap();
    store.append(&slot(2), &[]).unwrap();
    let checkpoint = prepared.cut().unwrap();
    disk.hold("shop.sinter-log.0");
    let (told, tells) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| told.send(store.commit(&slot(3), &[])).unwrap());
        disk.wait_for_held(1);
        assert!(tells.recv_timeout(Duration::from_millis(50)).is_err());
        assert_eq!(store.durable_commit().0, 1);
        let found = recovered_after_power_losses(&disk.disk);
        let prefixes = [(0, vec![1]), (0, vec![1, 2]), (0, vec![1, 2, 3])];
        assert!(found.len() > 1 && found.iter().all(|found| prefixes.contains(found)), "{found:?}");
        disk.release();
        assert_eq!(tells.recv().unwrap().unwrap().0, 3);
        assert_eq!(recovered_after_power_losses(&disk.disk), [(0, vec![1, 2, 3])]);
    });
    checkpoint.finish(root).unwrap();
    assert_eq!(recovered_after_power_losses(&disk.disk), [(2, vec![3])]);
}

/// The old log's tail is gone, and the new one went on behind it: a tail of both, that was never acknowledged. Then the
/// store goes on, with commits of the numbers that are gone.
#[test]
fn a_tail_may_go_over_into_the_next_log() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    store.commit(&slot(1), &[]).unwrap();
    let prepared = store.prepare_checkpoint().unwrap();
    let whole = log_bytes(&fs, Path::new("shop.sinter-log.0")).len();
    store.append(&slot(2), &[]).unwrap();
    store.append(&slot(3), &[]).unwrap();
    let checkpoint = prepared.cut().unwrap();
    store.append(&slot(4), &[]).unwrap();
    store.append(&slot(5), &[]).unwrap();
    let torn = fs.copy();
    let log = Path::new("shop.sinter-log.0");
    for length in [whole, whole + 1, whole + 50] {
        torn.put(log, fs.bytes(log)[..length].to_vec());
        let mut expected = vec![1];
        for slot_index in [7, 8, 9] {
            let (store, recovery) = open(Arc::new(torn.clone()), Options::default()).unwrap();
            let found: Vec<_> = recovery.transactions.map(|it| it.unwrap().records[0].object.0).collect();
            assert_eq!(found, expected, "{:?}", recovery.notes);
            assert_eq!(recovery.notes.len(), usize::from(slot_index == 7), "{:?}", recovery.notes);
            store.commit(&slot(slot_index), &[]).unwrap();
            expected.push(slot_index);
        }
        torn.files().iter().filter(|path| !fs.files().contains(path)).for_each(|path| {
            sinter_storage::FileSystem::remove(&torn, path).unwrap();
        });
    }
    // Had anything in the new log been acknowledged, the old one would have been durable: then this is damage.
    store.make_durable(store.last_commit()).unwrap();
    store.append(&slot(6), &[]).unwrap();
    let damaged = fs.copy();
    damaged.put(log, fs.bytes(log)[..whole].to_vec());
    let error = open(Arc::new(damaged), Options::default()).unwrap_err();
    assert!(error.to_string().contains("yet commit 6, written after this was durable, is whole"), "{error}");
    drop(checkpoint);
}

#[test]
fn one_checkpoint_at_a_time() {
    let (_, store) = slow();
    let checkpoint = store.begin_checkpoint().unwrap();
    let (told, tells) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            store.checkpoint(root).unwrap();
            told.send(()).unwrap();
        });
        assert!(tells.recv_timeout(Duration::from_millis(50)).is_err());
        checkpoint.finish(root).unwrap();
        tells.recv().unwrap();
    });
    assert_eq!(store.stats().checkpoint.0, 2);
}

#[test]
fn one_that_is_given_up_leaves_an_empty_log_or_a_new_one() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    for round in 0..3 {
        store.commit(&slot(3 * round + 1), &[]).unwrap();
        drop(store.prepare_checkpoint().unwrap());
        store.commit(&slot(3 * round + 2), &[]).unwrap();
        drop(store.begin_checkpoint().unwrap());
        store.commit(&slot(3 * round + 3), &[]).unwrap();
        let expected: Vec<_> = (1..3 * round + 4).collect();
        assert_eq!(recovered_after_power_losses(&fs), [(0, expected)]);
    }
    store.checkpoint(root).unwrap();
    store.checkpoint(root).unwrap();
    assert_eq!(recovered_after_power_losses(&fs), [(9, vec![])]);
    assert_eq!(fs.files().len(), 3, "the database, and the logs from the older checkpoint on: {:?}", fs.files());
}

#[test]
fn a_panic_in_a_checkpoint_gives_it_up() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        store.checkpoint(|writer| {
            root(writer)?;
            panic!("on purpose")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(store.stats().free_bytes + 2 * 4096, store.stats().file_bytes, "what it had written is free again");
    store.commit(&slot(1), &[]).unwrap();
    store.checkpoint(root).unwrap();
    assert_eq!(recovered_after_power_losses(&fs), [(1, vec![])]);
}

/// A close that fails takes a number but makes no log; the numbers of the logs must have no gap all the same.
#[test]
fn a_close_that_fails_does_not_stand_in_the_way() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    store.commit(&slot(1), &[]).unwrap();
    store.checkpoint(root).unwrap();
    store.close(|_| Err(Error::caller("not now"))).unwrap_err();
    store.commit(&slot(2), &[]).unwrap();
    let checkpoint = store.begin_checkpoint().unwrap();
    store.commit(&slot(3), &[]).unwrap();
    assert_eq!(recovered_after_power_losses(&fs), [(1, vec![2, 3])]);
    checkpoint.finish(root).unwrap();
    assert_eq!(recovered_after_power_losses(&fs), [(2, vec![3])]);
}

/// The database is closed on disk, and then the file cannot be cut: the store is open still, and what is committed now
/// must not go to a log that the header says is not there.
#[test]
fn a_close_that_fails_after_the_header_was_written() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    store.commit(&slot(1), &[]).unwrap();
    // The same once more without a fault, to see which call it is.
    let rehearsal = CrashingFileSystem::new();
    let (closed, _) = open(Arc::new(rehearsal.clone()), Options::default()).unwrap();
    closed.commit(&slot(1), &[]).unwrap();
    closed.close(root).unwrap();
    let cut = rehearsal.calls().iter().rposition(|call| *call == Call::SetLength).unwrap();
    fs.plan(cut as u64, Fault::Fail(ErrorKind::Other));
    store.close(root).unwrap_err();
    assert_eq!((fs.calls().len(), store.poisoned()), (cut + 1, None));
    store.commit(&slot(2), &[]).unwrap();
    assert_eq!(recovered_after_power_losses(&fs), [(1, vec![2])]);
    store.close(root).unwrap();
    assert_eq!(recovered_after_power_losses(&fs), [(2, vec![])]);
}
