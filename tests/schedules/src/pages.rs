//! Pages under a pool that is too small, reads of one page by many, and the handles that keep pages.

use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{ObjectId, Options, PageHandle, PageId, PageKind, PoolCounts, Record, RecordTag, Store};

use crate::commits::{contents, open};
use crate::explore::{explore, repeats};

/// So many bytes are one page and no second one.
const POOL_BYTES_MAX: usize = 9000;

fn page(store: &Arc<Store>, count: u64) -> Arc<PageHandle> {
    store.handle(store.write_page(PageKind::CHUNK, &contents(0, count)).unwrap())
}

fn check(store: &Store, handle: &PageHandle, count: u64) {
    assert_eq!(*store.pin(handle.page()).unwrap(), contents(0, count));
}

/// Each thread has handles of all pages, pins them, commits a few, and lets go of one after the other.
fn share() {
    const PAGES: u64 = 4;
    let disk = CrashingFileSystem::new();
    let is_memory = thread_rng().gen_bool(0.2);
    let store = match is_memory {
        true => Arc::new(Store::memory()),
        false => open(&disk, Options { memory_limit_bytes: POOL_BYTES_MAX, ..Options::default() }).0,
    };
    let pages: Vec<_> = (0..PAGES).map(|count| page(&store, count)).collect();
    thread::scope(|scope| {
        for thread in 0..3 {
            let (store, mut pages) = (&store, (0..).zip(pages.clone()).collect::<Vec<_>>());
            scope.spawn(move || {
                let mut pins = Vec::new();
                while !pages.is_empty() {
                    let (count, handle) = &pages[thread_rng().gen_range(0..pages.len())];
                    // The same one that the others have.
                    assert!(Arc::ptr_eq(handle, &store.handle(handle.page())));
                    pins.push((*count, store.pin(handle.page()).unwrap()));
                    if thread_rng().gen_bool(0.3) {
                        pins.remove(0);
                    }
                    if thread == 0 && *count == 0 && thread_rng().gen_bool(0.5) {
                        let (object, payload) = (ObjectId(1), Vec::new());
                        let record = Record { tag: RecordTag::ROWS_INSERTED, object, payload };
                        store.commit(&[record], &[handle.page()]).unwrap();
                    }
                    if thread_rng().gen_bool(0.5) {
                        pages.remove(0);
                    }
                    // Takes the places of pages that are gone.
                    if thread_rng().gen_bool(0.3) {
                        let mine = page(store, 7);
                        check(store, &mine, 7);
                    }
                    assert!(pins.iter().all(|(count, pin)| **pin == contents(0, *count)));
                }
            });
        }
        drop(pages);
    });
    let stats = store.stats();
    assert!(stats.pages.is_empty(), "{:?}", stats.pages);
    store.budget().set_limit(0);
    assert_eq!(store.stats().memory.pool, 0, "nobody has a pin");
    if !is_memory {
        for _ in 0..3 {
            store.checkpoint(|out| out.put(None, PageKind::CATALOG, b"root")).unwrap();
        }
        store.check(&mut |error| panic!("{error}")).unwrap();
        let stats = store.stats();
        let used: u64 = stats.pages.values().map(|count| count.bytes).sum();
        assert_eq!(used + stats.free_bytes + stats.retired_bytes + 2 * 4096, stats.file_bytes, "no place is lost");
    }
}

#[test]
fn a_page_goes_with_its_last_handle_and_not_before() {
    explore(300, share);
}

#[test]
fn a_seed_repeats_it() {
    repeats(share);
}

/// One thread pins a page twice, while others read the next pages again and again.
fn thrash() {
    let disk = CrashingFileSystem::new();
    let (store, _) = open(&disk, Options { memory_limit_bytes: POOL_BYTES_MAX, ..Options::default() });
    let pages: Vec<_> = (0..4).map(|count| page(&store, count)).collect();
    thread::scope(|scope| {
        let (store, pages) = (&store, &pages);
        for _ in 0..2 {
            scope.spawn(move || {
                for _ in 0..3 {
                    let count = thread_rng().gen_range(1..4);
                    check(store, &pages[count], count as u64);
                }
            });
        }
        let limit = scope.spawn(move || store.budget().set_limit(thread_rng().gen_range(0..POOL_BYTES_MAX)));
        let first = store.pin(pages[0].page()).unwrap();
        let second = store.pin(pages[0].page()).unwrap();
        assert!(std::ptr::eq(&raw const first[0], &raw const second[0]), "what is pinned is not read again");
        limit.join().unwrap();
    });
    store.budget().set_limit(5000);
    assert!(store.stats().memory.pool <= 5000, "nobody has a pin");
}

#[test]
fn a_pinned_page_is_in_the_pool_whatever_others_read() {
    explore(200, thrash);
}

/// Several threads want the same pages, now and soon.
fn want() {
    const PAGES: u64 = 3;
    let disk = CrashingFileSystem::new();
    let (store, _) = open(&disk, Options::default());
    let pages: Vec<_> = (0..PAGES).map(|count| page(&store, count)).collect();
    let ids: Vec<PageId> = pages.iter().map(|page| page.page()).collect();
    thread::scope(|scope| {
        for thread in 0..3 {
            let (store, pages, ids) = (&store, &pages, &ids);
            scope.spawn(move || {
                let wish = thread_rng().gen_bool(0.6).then(|| store.read_ahead(&ids[thread..]));
                if thread_rng().gen_bool(0.3) {
                    drop(wish);
                }
                (0..).zip(pages).for_each(|(count, page)| check(store, page, count));
            });
        }
    });
    let PoolCounts { misses, read_ahead, bytes_read, .. } = store.budget().usage().counts;
    assert_eq!(misses + read_ahead, PAGES, "each is read once");
    assert_eq!(bytes_read, store.budget().usage().pool, "and is in the pool once");
}

#[test]
fn a_page_that_many_want_is_read_once() {
    explore(200, want);
}
