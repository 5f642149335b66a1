//! Whoever asks for a page, and however many ask at once, it is read once; and before that, if somebody said that it
//! would be needed and still thinks so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::slow_disk::SlowDisk;
use crate::support::{PATH, open, record};
use sinter_storage::{Error, Options, PageId, PageKind, PoolCounts, RecordTag, Store, Use};

const PAGES: u64 = 40;

fn payload(seed: u64) -> Vec<u8> {
    vec![seed as u8; 8000]
}

/// A database of [`PAGES`] pages, just opened: none of them is in the pool.
fn opened(disk: &SlowDisk, options: Options) -> (Arc<Store>, Vec<PageId>) {
    let (store, _) = open(Arc::new(disk.clone()), Options::default()).unwrap();
    let pages: Vec<PageId> =
        (0..PAGES).map(|seed| store.write_page(PageKind::CHUNK, &payload(seed)).unwrap()).collect();
    store.commit(&[record(RecordTag::ROWS_INSERTED, 1, Vec::new())], &pages).unwrap();
    store.close(|out| out.put(None, PageKind::CATALOG, b"root")).unwrap();
    drop(store);
    let (store, _) = open(Arc::new(disk.clone()), options).unwrap();
    (Arc::new(store), pages)
}

fn counts(store: &Store) -> PoolCounts {
    store.budget().usage().counts
}

/// Waits for what must come.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{what} never came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_page_that_many_ask_for_at_once_is_read_once() {
    let disk = SlowDisk::new();
    let (store, pages) = opened(&disk, Options::default());
    disk.hold_reads(PATH);
    let asked = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                asked.fetch_add(1, Ordering::Relaxed);
                assert!(store.pin(pages[7]).unwrap()[..] == payload(7));
            });
        }
        disk.wait_for_held(1);
        until("everybody", || asked.load(Ordering::Relaxed) == 8);
        // Time to ask, for those who have just said that they will.
        std::thread::sleep(Duration::from_millis(20));
        disk.release();
    });
    let PoolCounts { hits, misses, .. } = counts(&store);
    assert_eq!((hits, misses), (7, 1));
}

#[test]
fn what_will_be_needed_is_there_when_it_is() {
    let disk = SlowDisk::new();
    let (store, pages) = opened(&disk, Options::default());
    let wish = store.read_ahead(&pages).unwrap();
    until("the last page", || counts(&store).read_ahead == PAGES);
    for (seed, &page) in pages.iter().enumerate() {
        assert!(store.pin(page).unwrap()[..] == payload(seed as u64));
    }
    assert_eq!((counts(&store).hits, counts(&store).misses), (PAGES, 0));
    assert!(store.read_ahead(&pages).is_none(), "all are there");
    drop(wish);
}

#[test]
fn who_pins_a_page_that_is_being_read_ahead_waits_for_it() {
    let disk = SlowDisk::new();
    let (store, pages) = opened(&disk, Options::default());
    disk.hold_reads(PATH);
    let wish = store.read_ahead(&pages[..1]);
    disk.wait_for_held(1);
    std::thread::scope(|scope| {
        let pin = scope.spawn(|| store.pin(pages[0]).unwrap().to_vec());
        disk.release();
        assert_eq!(pin.join().unwrap(), payload(0));
    });
    let PoolCounts { misses, read_ahead, .. } = counts(&store);
    assert_eq!((misses, read_ahead), (0, 1));
    drop(wish);
}

/// A query that ends leaves nothing to be read.
#[test]
fn what_nobody_wants_any_more_is_not_read() {
    let disk = SlowDisk::new();
    let (store, pages) = opened(&disk, Options::default());
    disk.hold_reads(PATH);
    let wish = store.read_ahead(&pages);
    disk.wait_for_held(2);
    drop(wish);
    // Somebody else wants some of them; they are not hidden behind those that nobody wants.
    let other = store.read_ahead(&pages[30..33]);
    disk.release();
    until("what is wanted", || counts(&store).read_ahead >= 5);
    assert_eq!(counts(&store).read_ahead, 5, "two that were begun, and three that are wanted");
    assert!(store.pin(pages[31]).unwrap()[..] == payload(31));
    assert_eq!(counts(&store).misses, 0);
    drop(other);
}

#[test]
fn the_close_ends_what_is_under_way() {
    let disk = SlowDisk::new();
    let (store, pages) = opened(&disk, Options::default());
    disk.hold_reads(PATH);
    let wish = store.read_ahead(&pages);
    disk.wait_for_held(2);
    let closed = std::thread::scope(|scope| {
        let close = scope.spawn(|| store.close(|_| unreachable!("nothing has changed")));
        std::thread::sleep(Duration::from_millis(5));
        disk.release();
        close.join().unwrap()
    });
    closed.unwrap();
    assert!(counts(&store).read_ahead <= 4, "what was begun, and no more");
    assert!(store.read_ahead(&pages).is_none());
    assert_eq!(Arc::strong_count(&store), 1, "no thread has it");
    drop(wish);
}

#[test]
fn no_more_is_read_ahead_than_the_pool_can_hold() {
    let disk = SlowDisk::new();
    let page_bytes = payload(0).len() + 32;
    let options = Options { memory_limit_bytes: 64 * page_bytes, ..Options::default() };
    let (store, pages) = opened(&disk, options);
    disk.hold_reads(PATH);
    let wish = store.read_ahead(&pages);
    disk.wait_for_held(2);
    disk.release();
    until("the queue's end", || counts(&store).read_ahead >= 7);
    assert_eq!(counts(&store).read_ahead, 7, "an eighth of the 56 pages that the pool may hold");
    drop(wish);
    // Others want the memory: nothing is left for pages that nobody uses yet.
    let load = store.budget().reserve(Use::Scratch, 55 * page_bytes).unwrap();
    let wish = store.read_ahead(&pages[20..]);
    assert!(store.pin(pages[39]).unwrap()[..] == payload(39));
    assert_eq!(counts(&store).read_ahead, 7);
    drop((wish, load));
}

#[test]
fn a_damaged_page_is_named_to_who_pins_it() {
    let disk = SlowDisk::new();
    let (store, pages) = opened(&disk, Options::default());
    let mut places = Vec::new();
    store.for_each_page(&mut |info| places.push((info.page, info.offset)));
    let (_, offset) = places.into_iter().find(|(page, _)| *page == pages[3]).unwrap();
    let file = sinter_storage::FileSystem::open(&disk, PATH.as_ref(), sinter_storage::fs::OpenMode::Write).unwrap();
    file.write_at(offset + 40, &[&[0xEE; 4]]).unwrap();
    let wish = store.read_ahead(&pages);
    until("the others", || counts(&store).read_ahead == PAGES - 1);
    let error = store.pin(pages[3]).unwrap_err();
    assert!(matches!(error, Error::DamagedPage { page: Some(page), .. } if page == pages[3]), "{error}");
    drop(wish);
}

/// The last handle on a store may go while a page is being read for it.
#[test]
fn a_store_can_be_dropped_at_any_time() {
    for round in 0..50 {
        let disk = SlowDisk::new();
        let (store, pages) = opened(&disk, Options::default());
        let wish = store.read_ahead(&pages);
        until("the first page", || round % 2 == 0 || counts(&store).read_ahead > 0);
        drop(store);
        drop(wish);
    }
}
