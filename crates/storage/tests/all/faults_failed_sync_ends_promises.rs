//! A sync fails. From then on nobody knows what is durable: the store takes no changes any more and says which sync it
//! was; it still reads; and opening the database again leads to what was durable before, with or without what was under
//! way.

use std::sync::Arc;

use crate::support::{Shelf, found, open, record};
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Trigger};
use sinter_storage::{Error, Options, PageId, PageKind, Record, RecordTag, Result, Store};

fn put(slot: u64) -> [Record; 1] {
    [record(RecordTag::ROWS_INSERTED, slot, vec![slot as u8; 50])]
}

fn checkpoint(store: &Store, slots: &Shelf) -> Result<()> {
    store.checkpoint(|writer| put_slots(writer, slots))
}

/// The root names the page with the slots, as [`Shelf`] reads them.
fn put_slots(writer: &mut sinter_storage::CheckpointWriter<'_>, shelf: &Shelf) -> Result<PageId> {
    let mut slots = Vec::new();
    for (slot, value) in &shelf.slots {
        slots.extend([slot.to_le_bytes(), (value.len() as u64).to_le_bytes()].concat());
        slots.extend(value);
    }
    let page = writer.put(None, PageKind::TABLE_ROOT, &slots)?;
    writer.put(None, PageKind::CATALOG, &page.0.to_le_bytes())
}

/// Two commits, one of them with a page; then `what`, in which this sync fails.
fn fails(trigger: Trigger, fault: DiskFault, what: impl Fn(&Store, &Shelf) -> Result<()>, why: &str) {
    let disk = CrashingFileSystem::new();
    let fs = FaultyFileSystem::on_disk(&disk);
    let (store, _) = open(Arc::new(fs.clone()), Options { memory_limit_bytes: 0, ..Options::default() }).unwrap();
    let page = store.write_page(PageKind::CHUNK, &[9; 5000]).unwrap();
    store.commit(&put(1), &[page]).unwrap();
    store.commit(&put(2), &[]).unwrap();
    let shelf = Shelf { slots: [1, 2].map(|slot| (slot, vec![slot as u8; 50])).into(), ..Shelf::default() };
    fs.plan(trigger, fault);
    let error = what(&store, &shelf).unwrap_err();
    let errno = if fault == DiskFault::NoSpace {
        "No space left on device (os error 28)"
    } else {
        "Input/output error (os error 5)"
    };
    assert_eq!(
        error.to_string(),
        format!(
            "shop.sinter: refuses further changes, because {why}: {errno}); what was synced before is safe, \
             reading goes on; reopen the database once the disk is well"
        )
    );
    assert_eq!(fs.injected().len(), 1);
    // The disk is well again, as far as it says. That does not bring back what was promised to it.
    for refused in [
        store.commit(&put(4), &[]).map(drop),
        store.write_page(PageKind::CHUNK, b"x").map(drop),
        checkpoint(&store, &shelf),
        store.close(|_| unreachable!("it is refused at once")),
        store.sync(),
    ] {
        assert!(matches!(&refused, Err(Error::Poisoned { .. })), "{refused:?}");
        assert_eq!(refused.unwrap_err().to_string(), error.to_string());
    }
    assert_eq!(*store.pin(page).unwrap(), [9; 5000], "from the file: the pool holds nothing");
    store.check(&mut |error| panic!("{error}")).unwrap();
    drop(store);
    let after = Shelf { slots: [1, 2, 3].map(|slot| (slot, vec![slot as u8; 50])).into(), ..Shelf::default() };
    let mut ends = vec![disk.copy()];
    ends.extend((0..20).map(|seed| disk.restart(seed)));
    for end in ends {
        let (shelf_found, _) = found(&end).unwrap();
        assert!(shelf_found == shelf || shelf_found == after, "{:?}", shelf_found.slots.keys());
        // And goes on.
        let (store, _) = open(Arc::new(end.clone()), Options::default()).unwrap();
        store.commit(&put(5), &[]).unwrap();
    }
}

const FAULTS: [DiskFault; 4] = [DiskFault::IoError, DiskFault::NoSpace, DiskFault::LostSync, DiskFault::EvictedSync];

#[test]
fn of_the_log_in_a_commit() {
    for fault in FAULTS {
        let trigger = Trigger::next().of(Call::Sync).containing("-log.");
        let why = "syncing the log failed (shop.sinter-log.0";
        fails(trigger, fault, |store, _| store.commit(&put(3), &[]).map(drop), why);
    }
}

#[test]
fn of_the_pages_that_a_commit_names() {
    for fault in FAULTS {
        let trigger = Trigger::next().of(Call::Sync).ending_with(".sinter");
        let commit = |store: &Store, _: &Shelf| {
            let page = store.write_page(PageKind::CHUNK, &[3; 9000])?;
            store.commit(&put(3), &[page]).map(drop)
        };
        fails(trigger, fault, commit, "syncing the database file failed (shop.sinter");
    }
}

#[test]
fn of_the_pages_and_of_the_header_in_a_checkpoint() {
    for (fault, index) in FAULTS.into_iter().flat_map(|fault| [(fault, 0), (fault, 1)]) {
        let trigger = Trigger::at(index).of(Call::Sync).ending_with(".sinter");
        fails(trigger, fault, checkpoint, "syncing the database file failed (shop.sinter");
    }
}

#[test]
fn of_a_checkpoints_new_log_and_of_its_directory() {
    for fault in FAULTS {
        let trigger = Trigger::next().of(Call::Sync).ending_with("-log.1");
        fails(trigger, fault, checkpoint, "syncing a new log failed (shop.sinter-log.1");
    }
    for fault in [DiskFault::IoError, DiskFault::NoSpace] {
        let trigger = Trigger::next().of(Call::SyncDirectory);
        fails(trigger, fault, checkpoint, "syncing the directory failed (shop.sinter");
    }
}

#[test]
fn in_a_close() {
    for (fault, index) in FAULTS.into_iter().flat_map(|fault| [(fault, 0), (fault, 1), (fault, 2)]) {
        let trigger = Trigger::at(index).of(Call::Sync).ending_with(".sinter");
        let close = |store: &Store, shelf: &Shelf| store.close(|writer| put_slots(writer, shelf));
        fails(trigger, fault, close, "syncing the database file failed (shop.sinter");
    }
}
