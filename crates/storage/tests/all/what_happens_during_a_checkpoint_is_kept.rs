//! Pages that are written and freed between a checkpoint's cut and its end, and checkpoints that are abandoned half
//! way.

use std::io::ErrorKind;
use std::sync::Arc;

use crate::support::{open, record};
use sinter_storage::testing::{CrashingFileSystem, Fault};
use sinter_storage::{Error, Options, PageId, PageKind, RecordTag, Store};

fn committed(store: &Store, payload: &[u8]) -> PageId {
    let page = store.write_page(PageKind::CHUNK, payload).unwrap();
    store.commit(&[record(RecordTag::ROW_GROUPS_ATTACHED, page.0, vec![])], &[page]).unwrap();
    page
}

/// Every unit of the file is a header, a page, free, or waiting to be free.
fn assert_all_units_accounted_for(store: &Store) {
    let stats = store.stats();
    let pages: u64 = stats.pages.values().map(|count| count.bytes).sum();
    assert_eq!(pages + stats.free_bytes + stats.retired_bytes + 2 * 4096, stats.file_bytes, "{stats:?}");
}

fn assert_gone(store: &Store, page: PageId) {
    assert!(matches!(store.pin(page), Err(Error::NoSuchPage { .. })), "page {page} is still there");
}

#[test]
fn a_page_freed_after_the_cut_stays_freed() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let [first, second, third] = [b"1", b"2", b"3"].map(|payload| committed(&store, payload));
    let mut fresh = PageId(0);
    store
        .checkpoint(|writer| {
            store.free(first);
            writer.put(Some(second), PageKind::CHUNK, b"moved, then freed")?;
            store.free(second);
            fresh = store.write_page(PageKind::CHUNK, b"not committed yet")?;
            writer.put(None, PageKind::CATALOG, b"root")
        })
        .unwrap();
    assert_gone(&store, first);
    assert_gone(&store, second);
    assert_eq!(*store.pin(third).unwrap(), *b"3");
    assert_eq!(*store.pin(fresh).unwrap(), *b"not committed yet");
    assert_eq!(store.stats().fresh_pages, 1);
    assert_all_units_accounted_for(&store);
    // The checkpoint is of the cut: what came after it is the log's and its replay's to tell.
    drop(store);
    let (store, _) = open(Arc::new(fs.restart(1)), Options::default()).unwrap();
    assert_eq!(*store.pin(first).unwrap(), *b"1");
    assert_eq!(*store.pin(second).unwrap(), *b"moved, then freed");
    assert_gone(&store, fresh);
}

#[test]
fn an_abandoned_checkpoint_leaves_nothing_behind() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let [first, second] = [b"1", b"2"].map(|payload| committed(&store, payload));
    store.checkpoint(|writer| writer.put(None, PageKind::CATALOG, b"root")).unwrap();
    let fresh = store.write_page(PageKind::CHUNK, b"not committed yet").unwrap();
    let free_before = store.stats().free_bytes;
    let error = store.checkpoint(|writer| {
        writer.keep(fresh)?;
        writer.put(Some(first), PageKind::CHUNK, b"a new version")?;
        writer.put(Some(first), PageKind::CHUNK, b"another")?;
        writer.free(second);
        Err(Error::caller("the table could not be written"))
    });
    assert_eq!(error.unwrap_err().to_string(), "checkpoint abandoned: the table could not be written");
    assert_eq!(store.stats().free_bytes, free_before);
    assert_eq!(store.stats().fresh_pages, 1);
    assert_all_units_accounted_for(&store);
    assert_eq!(*store.pin(first).unwrap(), *b"1");
    assert_eq!(*store.pin(second).unwrap(), *b"2");
    // The page that would have been kept is still nobody's, and can be committed or given back.
    assert_eq!(*store.pin(fresh).unwrap(), *b"not committed yet");
    store.free(fresh);
    assert_gone(&store, fresh);
    store.checkpoint(|writer| writer.put(None, PageKind::CATALOG, b"root")).unwrap();
    assert_all_units_accounted_for(&store);
}

#[test]
fn a_full_disk_abandons_the_checkpoint_and_the_next_one_succeeds() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let page = committed(&store, b"1");
    for failing_call in 0..3 {
        // After the cut, the calls are the new log's; then come the pages.
        let fault = Fault::Fail(ErrorKind::StorageFull);
        let result = store.checkpoint(|writer| {
            fs.plan(fs.calls().len() as u64 + failing_call, fault);
            writer.put(None, PageKind::CATALOG, b"root")?;
            writer.put(None, PageKind::CATALOG, b"root")
        });
        assert!(matches!(result, Err(Error::DiskFull { .. })), "{result:?}");
        assert_eq!(
            result.unwrap_err().to_string(),
            "shop.sinter: no space left while writing a page; nothing was changed: free some space and try again"
        );
        assert_all_units_accounted_for(&store);
        committed(&store, b"the store goes on");
    }
    store.checkpoint(|writer| writer.put(None, PageKind::CATALOG, b"root")).unwrap();
    drop(store);
    let (store, recovery) = open(Arc::new(fs.restart(2)), Options::default()).unwrap();
    assert_eq!((recovery.commit.0, recovery.transactions.count()), (4, 0));
    assert_eq!(*store.pin(page).unwrap(), *b"1");
}
