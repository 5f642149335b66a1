//! Commits are appended in order and made durable together: while the disk syncs for one, others append; the next sync
//! serves all of them, nobody is told before it has ended, and if it fails everybody is told.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use crate::support::slow_disk::SlowDisk;
use crate::support::{PATH, Shelf, found, open, record};
use sinter_storage::testing::{Call, CrashingFileSystem, Fault};
use sinter_storage::{
    CommitNumber, Error, NORMAL_SYNC_EVERY, Options, PageKind, Record, RecordTag, Store, Synchronous,
};

fn slot(slot: u64) -> [Record; 1] {
    [record(RecordTag::ROWS_INSERTED, slot, vec![slot as u8; 100])]
}

fn on(disk: &SlowDisk, synchronous: Synchronous) -> Store {
    let options = Options { synchronous, ..Options::default() };
    let (store, recovery) = Store::open(Arc::new(disk.clone()), Path::new(PATH), options).unwrap();
    Shelf::recover(&store, recovery).unwrap();
    store
}

/// The slots that are there after a power loss, for some of what the disk may keep.
fn slots_after_a_power_loss(disk: &CrashingFileSystem) -> Vec<Vec<u64>> {
    let mut states: Vec<Vec<u64>> =
        (0..20).map(|seed| found(&disk.restart(seed)).unwrap().0.slots.into_keys().collect()).collect();
    states.sort();
    states.dedup();
    states
}

#[test]
fn appends_go_on_during_a_sync_and_the_next_sync_serves_them_all() {
    const FOLLOWERS: u64 = 6;
    let disk = SlowDisk::new();
    let store = on(&disk, Synchronous::Full);
    store.commit(&slot(0), &[]).unwrap();
    disk.take_synced();
    disk.hold("shop.sinter-log.0");
    let (told, tells) = mpsc::channel();
    std::thread::scope(|scope| {
        let commit = |number: u64| {
            let (store, told) = (&store, told.clone());
            scope.spawn(move || {
                let commit = store.append(&slot(number), &[]).unwrap();
                told.send(("appended", number)).unwrap();
                store.make_durable(commit).unwrap();
                told.send(("durable", number)).unwrap();
            });
        };
        commit(1);
        assert_eq!(tells.recv().unwrap(), ("appended", 1));
        disk.wait_for_held(1);
        for number in 2..2 + FOLLOWERS {
            commit(number);
            assert_eq!(tells.recv().unwrap(), ("appended", number), "while the sync is under way");
        }
        assert_eq!((store.last_commit().0, store.durable_commit().0), (2 + FOLLOWERS, 1));
        assert!(tells.recv_timeout(Duration::from_millis(50)).is_err(), "nobody is told before the sync has ended");
        disk.release();
        let mut durable: Vec<_> = (0..=FOLLOWERS).map(|_| tells.recv().unwrap()).collect();
        durable.sort();
        assert_eq!(durable, (1..2 + FOLLOWERS).map(|number| ("durable", number)).collect::<Vec<_>>());
    });
    assert_eq!(disk.take_synced().len(), 2, "one for the leader, one for all others");
    assert_eq!(store.durable_commit(), store.last_commit());
    drop(store);
    assert_eq!(slots_after_a_power_loss(&disk.disk), [(0..2 + FOLLOWERS).collect::<Vec<_>>()]);
}

/// The sync that ends first began before the follower appended, so it says nothing about what the follower wrote.
#[test]
fn a_follower_is_not_told_by_a_sync_that_began_before_it_appended() {
    let disk = SlowDisk::new();
    let store = on(&disk, Synchronous::Full);
    store.commit(&slot(0), &[]).unwrap();
    disk.hold_done("shop.sinter-log.0");
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| store.commit(&slot(1), &[]).unwrap());
        disk.wait_for_held(1);
        let follower = store.append(&slot(2), &[]).unwrap();
        assert_eq!(follower, CommitNumber(3));
        disk.release();
        leader.join().unwrap();
        assert_eq!(store.durable_commit(), CommitNumber(2));
        let found = slots_after_a_power_loss(&disk.disk);
        assert_eq!(found, [vec![0, 1], vec![0, 1, 2]], "it may be gone");
        store.make_durable(follower).unwrap();
        assert_eq!(store.durable_commit(), follower);
    });
}

#[test]
fn a_sync_that_fails_is_told_to_all_who_wait() {
    let disk = SlowDisk::new();
    let store = on(&disk, Synchronous::Full);
    store.commit(&slot(0), &[]).unwrap();
    disk.hold("shop.sinter-log.0");
    let messages: Vec<String> = std::thread::scope(|scope| {
        let commit = |number: u64| {
            let store = &store;
            let commit = store.append(&slot(number), &[]).unwrap();
            scope.spawn(move || store.make_durable(commit).unwrap_err().to_string())
        };
        let leader = commit(1);
        disk.wait_for_held(1);
        let followers: Vec<_> = (2..8).map(commit).collect();
        disk.disk.plan(disk.disk.calls().len() as u64, Fault::Fail(ErrorKind::Other));
        disk.release();
        [leader].into_iter().chain(followers).map(|thread| thread.join().unwrap()).collect()
    });
    assert!(messages.iter().all(|message| message.contains("because syncing the log failed")), "{messages:?}");
    assert_eq!(store.durable_commit(), CommitNumber(1));
    assert!(matches!(store.append(&slot(9), &[]), Err(Error::Poisoned { .. })));
    assert!(matches!(store.sync_pages(), Err(Error::Poisoned { .. })));
    store.make_durable(CommitNumber(1)).unwrap();
    drop(store);
    assert_eq!(slots_after_a_power_loss(&disk.disk), [[0]]);
}

#[test]
fn a_page_is_durable_before_a_commit_names_it() {
    let disk = SlowDisk::new();
    let store = on(&disk, Synchronous::Full);
    store.commit(&slot(0), &[]).unwrap();
    for synced_before in [false, true] {
        let page = store.write_page(PageKind::CHUNK, b"a page").unwrap();
        let other = store.write_page(PageKind::CHUNK, b"nobody names it").unwrap();
        if synced_before {
            store.sync_pages().unwrap();
        }
        store.write_page(PageKind::CHUNK, b"written later").unwrap();
        disk.take_synced();
        let calls = disk.disk.calls().len();
        store.append(&[], &[page]).unwrap();
        let expected = if synced_before { &[Call::Write][..] } else { &[Call::Sync, Call::Write] };
        assert_eq!(disk.disk.calls()[calls..], *expected);
        store.append(&[], &[other]).unwrap();
        assert!(disk.take_synced().iter().all(|name| name == PATH));
        assert_eq!(disk.disk.calls().len(), calls + expected.len() + 1, "one sync made both durable");
    }
}

/// Pages are synced by one thread, others append meanwhile; one that names such a page waits.
#[test]
fn who_syncs_pages_keeps_nobody_from_appending() {
    let disk = SlowDisk::new();
    let store = on(&disk, Synchronous::Full);
    store.commit(&slot(0), &[]).unwrap();
    let page = store.write_page(PageKind::CHUNK, b"a page").unwrap();
    disk.hold(PATH);
    std::thread::scope(|scope| {
        let syncing = scope.spawn(|| store.sync_pages().unwrap());
        disk.wait_for_held(1);
        store.append(&slot(1), &[]).unwrap();
        let (told, tells) = mpsc::channel();
        let naming = scope.spawn({
            let store = &store;
            move || {
                store.append(&[], &[page]).unwrap();
                told.send(()).unwrap();
            }
        });
        assert!(tells.recv_timeout(Duration::from_millis(50)).is_err(), "the page is not durable yet");
        store.append(&slot(2), &[]).unwrap();
        disk.release();
        naming.join().unwrap();
        syncing.join().unwrap();
    });
    drop(store);
    for seed in 0..20 {
        let (store, recovery) = open(Arc::new(disk.disk.restart(seed)), Options::default()).unwrap();
        if recovery.commit.0 == 4 {
            assert_eq!(*store.pin(page).unwrap(), *b"a page");
        }
    }
}

/// The same as for commits: a sync that began before the page was written says nothing about it.
#[test]
fn a_page_that_was_written_during_a_sync_is_synced_again() {
    let disk = SlowDisk::new();
    let store = on(&disk, Synchronous::Full);
    store.commit(&slot(0), &[]).unwrap();
    store.write_page(PageKind::CHUNK, b"a page").unwrap();
    disk.hold_done(PATH);
    let later = std::thread::scope(|scope| {
        scope.spawn(|| store.sync_pages().unwrap());
        disk.wait_for_held(1);
        let later = store.write_page(PageKind::CHUNK, b"written during the sync").unwrap();
        disk.release();
        later
    });
    disk.take_synced();
    store.append(&[], &[later]).unwrap();
    assert_eq!(disk.take_synced(), [PATH]);
}

#[test]
fn what_was_only_appended_goes_as_a_whole_suffix() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    for number in 0..3 {
        store.commit(&slot(number), &[]).unwrap();
    }
    for number in 3..6 {
        store.append(&slot(number), &[]).unwrap();
    }
    assert_eq!((store.durable_commit().0, store.last_commit().0), (3, 6));
    drop(store);
    let states = slots_after_a_power_loss(&fs);
    assert!(
        states.len() > 1
            && states.iter().all(|slots| slots.len() >= 3 && *slots == Vec::from_iter(0..slots.len() as u64))
    );
    assert_eq!(found(&fs.copy()).unwrap().0.slots.len(), 6, "when only the process dies, all are there");
}

/// A process dies between appending and syncing. The next one reads what it appended, from the operating system's memory,
/// and commits on top of it; then the power goes. What the second one was promised must be there, so what it stands on
/// must be too.
#[test]
fn what_another_process_left_unsynced_is_durable_before_a_commit_on_top_of_it() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    store.commit(&slot(0), &[]).unwrap();
    store.append(&slot(1), &[]).unwrap();
    store.append(&slot(2), &[]).unwrap();
    drop(store);
    let (store, recovery) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    assert_eq!(recovery.commit.0, 3);
    Shelf::recover(&store, recovery).unwrap();
    // Its frame may say that everything before is durable.
    store.append(&slot(3), &[]).unwrap();
    let states = slots_after_a_power_loss(&fs);
    assert!(states.contains(&vec![0, 1, 2]) && states.iter().all(|slots| slots.starts_with(&[0, 1, 2])), "{states:?}");
    store.make_durable(store.last_commit()).unwrap();
    drop(store);
    assert_eq!(slots_after_a_power_loss(&fs), [[0, 1, 2, 3]]);
}

#[test]
fn levels() {
    let disk = SlowDisk::new();
    let store = on(&disk, Synchronous::Normal);
    let first = store.commit(&slot(0), &[]).unwrap();
    std::thread::sleep(NORMAL_SYNC_EVERY);
    disk.take_synced();
    let second = store.commit(&slot(1), &[]).unwrap();
    assert_eq!(disk.take_synced().len(), 1, "the last sync was long ago");
    assert_eq!(store.durable_commit(), second);
    store.set_synchronous(Synchronous::Off).unwrap();
    std::thread::sleep(NORMAL_SYNC_EVERY);
    let page = store.write_page(PageKind::CHUNK, b"a page").unwrap();
    let third = store.commit(&slot(2), &[page]).unwrap();
    assert!(disk.take_synced().is_empty());
    assert_eq!(store.durable_commit(), second);
    store.set_synchronous(Synchronous::Full).unwrap();
    assert_eq!(store.durable_commit(), third);
    assert_eq!((first.0, third.0), (1, 3));
    let memory = Store::memory();
    let commit = memory.append(&slot(0), &[]).unwrap();
    memory.make_durable(commit).unwrap();
    assert_eq!((memory.durable_commit(), memory.last_commit()), (commit, commit));
}
