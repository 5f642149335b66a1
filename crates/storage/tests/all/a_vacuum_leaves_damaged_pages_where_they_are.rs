//! A vacuum ended with the error of the first page that it could not read, and a file with one such page at its end never
//! became smaller: the vacuum that nobody had asked for was due again at once, and failed again. Now such a page stays
//! where it is, byte by byte, for a check to name; everything else moves, and no vacuum is due for what only that page
//! keeps from being given back.

use crate::support;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::support::{PATH, Shelf, Workload, check_either_header, open};
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Trigger};
use sinter_storage::{CheckpointWriter, Error, Options, PageId, PageKind, Store};

const UNIT_BYTES: u64 = 4096;

/// What two checkpoints wrote is there twice, in a file that grows by 16 units at a time.
const SLACK_BYTES: u64 = 48 * UNIT_BYTES;

/// Options without a pool to speak of, so that pages are read from the disk.
fn options() -> Options {
    Options { memory_limit_bytes: 0, ..Options::default() }
}

/// Where each page is, and how many bytes it takes.
fn places(store: &Store) -> BTreeMap<PageId, (u64, u64)> {
    let mut places = BTreeMap::new();
    store.for_each_page(&mut |info| {
        places.insert(info.page, (info.offset, info.bytes));
    });
    places
}

/// The end of a page, padding included.
fn end_of((offset, bytes): (u64, u64)) -> u64 {
    (offset + bytes).next_multiple_of(UNIT_BYTES)
}

fn bytes_at(fs: &CrashingFileSystem, (offset, bytes): (u64, u64)) -> Vec<u8> {
    fs.bytes(Path::new(PATH))[offset as usize..(offset + bytes) as usize].to_vec()
}

/// Flips a bit of what a page holds, durably; the second time that mends it.
fn flip(fs: &CrashingFileSystem, (offset, _): (u64, u64)) {
    let file = sinter_storage::FileSystem::open(fs, Path::new(PATH), sinter_storage::fs::OpenMode::Write).unwrap();
    let mut byte = [0];
    file.read_at(offset + 40, &mut byte).unwrap();
    file.write_at(offset + 40, &[&[byte[0] ^ 1]]).unwrap();
    file.sync().unwrap();
}

/// What is in the file, the two header copies included.
fn used_bytes(store: &Store) -> u64 {
    2 * UNIT_BYTES + store.stats().pages.values().map(|count| count.bytes).sum::<u64>()
}

/// The pages that a check finds damaged.
fn damaged(store: &Store) -> Vec<PageId> {
    let mut found = Vec::new();
    let mut note = |error| match error {
        Error::DamagedPage { page: Some(page), .. } => found.push(page),
        other => panic!("{other}"),
    };
    store.check(&mut note).unwrap();
    found
}

/// A store of 300 pages, of which every fourth is there.
fn with_gaps(fs: &CrashingFileSystem, seed: u64, options: Options) -> (Store, Workload) {
    let (store, _) = open(Arc::new(fs.clone()), options).unwrap();
    let mut workload = Workload::new(seed, Shelf::default());
    let pages = workload.attach(&store, 300).unwrap();
    workload.checkpoint(&store).unwrap();
    let dropped: Vec<PageId> = pages.into_iter().filter(|page| page.0 % 4 != 0).collect();
    workload.drop_pages(&store, &dropped).unwrap();
    (store, workload)
}

#[test]
fn everything_else_moves() {
    for seed in 0..12 {
        let fs = CrashingFileSystem::new();
        let (store, mut workload) = with_gaps(&fs, seed, options());
        let length_before = store.stats().file_bytes;
        let shelf = workload.shelf().clone();
        // One to four of them, everywhere from the front to the end.
        let step = 1 + seed as usize % 4;
        let broken: Vec<PageId> =
            shelf.pages.keys().copied().skip(seed as usize * 7 % 60).step_by(15).take(step).collect();
        let at: BTreeMap<PageId, (u64, u64)> =
            places(&store).into_iter().filter(|(page, _)| broken.contains(page)).collect();
        at.values().for_each(|place| flip(&fs, *place));
        let before: Vec<Vec<u8>> = at.values().map(|place| bytes_at(&fs, *place)).collect();
        let last_end = at.values().map(|place| end_of(*place)).max().unwrap();

        workload.vacuum(&store).unwrap();
        let length = store.stats().file_bytes;
        let context = format!("seed {seed}: {length_before} bytes, {length} after, damage to {last_end}");
        println!("{context}");
        let is_small = || store.stats().file_bytes <= last_end.max(used_bytes(&store) + SLACK_BYTES);
        assert!(is_small(), "{context}");
        let after = places(&store);
        assert!(at.iter().all(|(page, place)| after[page] == *place), "{context}: each is where it was");
        assert!(at.values().map(|place| bytes_at(&fs, *place)).eq(before), "{context}: as it was");
        assert_eq!(damaged(&store), broken, "{context}");
        for (&page, &page_seed) in shelf.pages.iter().filter(|(page, _)| !broken.contains(page)) {
            assert_eq!(store.pin(page).unwrap()[..], support::payload(page_seed), "{context}");
        }

        // The next one finds no more to do.
        workload.vacuum(&store).unwrap();
        assert!(is_small(), "{context}, {} after another", store.stats().file_bytes);
        assert!(at.iter().all(|(page, place)| places(&store)[page] == *place), "{context}");

        // And the one after the disk came to its senses does all.
        at.values().for_each(|place| flip(&fs, *place));
        workload.vacuum(&store).unwrap();
        let (length, used) = (store.stats().file_bytes, used_bytes(&store));
        assert!(length <= used + SLACK_BYTES, "{context}, {length} once it was mended, {used} in use");
        assert_eq!(damaged(&store), []);
        drop(store);
        check_either_header(&fs.restart(seed), &workload, &context);
    }
}

/// A page that the disk does not give is as one whose bytes are wrong: it stays, and everything else moves. If the disk gives
/// it when it is asked again, it moves, too.
#[test]
fn so_does_a_page_that_the_disk_does_not_give() {
    for times in [1, u64::MAX] {
        let mut stayed = 0;
        for index in 0.. {
            let context = format!("read {index}, {times} times");
            let disk = CrashingFileSystem::new();
            let fs = FaultyFileSystem::on_disk(&disk);
            let (store, _) = open(Arc::new(fs.clone()), options()).unwrap();
            let mut workload = Workload::new(index, Shelf::default());
            let pages = workload.attach(&store, 120).unwrap();
            workload.checkpoint(&store).unwrap();
            let dropped: Vec<PageId> = pages.into_iter().filter(|page| page.0 % 4 != 0).collect();
            workload.drop_pages(&store, &dropped).unwrap();
            let trigger = Trigger::at(index).of(Call::Read).ending_with(".sinter").times(times);
            fs.plan(trigger, DiskFault::IoError);
            workload.vacuum(&store).unwrap_or_else(|error| panic!("{context}: {error}"));
            let injected = fs.injected().len();
            fs.clear_plan();
            stayed += store.unmovable_page_count();
            workload.shelf().check_pages(&store).unwrap();
            if injected == 0 {
                println!("{context}: no more were read, {stayed} pages stayed");
                assert!(index > 30 && (stayed > 0) == (times > 1), "{context}: {stayed} pages stayed");
                break;
            }
            // The disk has come to its senses.
            workload.vacuum(&store).unwrap();
            assert_eq!(store.unmovable_page_count(), 0, "{context}");
            let (length, used) = (store.stats().file_bytes, used_bytes(&store));
            assert!(length <= used + SLACK_BYTES, "{context}: {length} bytes, {used} in use");
            drop(store);
            check_either_header(&disk.restart(index), &workload, &context);
        }
    }
}

/// The pool has what the disk has lost.
#[test]
fn a_page_that_the_pool_has_whole_is_copied_from_there() {
    let fs = CrashingFileSystem::new();
    let (store, mut workload) = with_gaps(&fs, 3, Options::default());
    workload.shelf().check_pages(&store).unwrap();
    let last = places(&store).into_iter().filter(|(page, _)| workload.shelf().pages.contains_key(page));
    let (page, place) = last.max_by_key(|(_, place)| *place).unwrap();
    flip(&fs, place);
    assert_eq!(damaged(&store), [page]);
    workload.vacuum(&store).unwrap();
    assert!(places(&store)[&page].0 < place.0);
    assert_eq!(damaged(&store), []);
}

#[test]
fn what_a_damaged_page_holds_back_makes_no_vacuum_due() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), options()).unwrap();
    let root = |writer: &mut CheckpointWriter<'_>| writer.put(None, PageKind::CATALOG, b"root");
    let mut pages = Vec::new();
    for _ in 0..60 {
        let page = store.write_page(PageKind::CHUNK, &vec![7; 1 << 20]).unwrap();
        store.commit(&[], &[page]).unwrap();
        pages.push(page);
    }
    store.checkpoint(root).unwrap();
    let last = pages.pop().unwrap();
    let place = places(&store)[&last];
    flip(&fs, place);
    pages.drain(5..35).for_each(|page| store.free(page));
    assert!(store.is_vacuum_due(0));
    store.vacuum(&mut |_| ControlFlow::Continue(()), || store.checkpoint(root)).unwrap();
    assert_eq!(store.stats().file_bytes, end_of(place), "nothing but the damaged page is in the way");
    assert!(!store.is_vacuum_due(0));
    pages.drain(5..10).for_each(|page| store.free(page));
    assert!(!store.is_vacuum_due(20 << 20), "however much is unused before it");

    store.free(last);
    assert!(store.is_vacuum_due(0), "nothing is in the way any more");
    store.vacuum(&mut |_| ControlFlow::Continue(()), || store.checkpoint(root)).unwrap();
    assert!(store.stats().file_bytes < 26 << 20, "{}", store.stats().file_bytes);
    assert!(!store.is_vacuum_due(0));
    pages.iter().for_each(|page| assert_eq!(store.pin(*page).unwrap()[..], vec![7; 1 << 20]));
}
