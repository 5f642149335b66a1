//! Databases in memory: pages are shared and not copied, and what is freed is given back at once.

#[allow(dead_code, reason = "it uses little of it")]
#[path = "all/support/mod.rs"]
mod support;

use sinter_storage::{Error, PageKind, RecordTag, Store};
use support::{Shelf, Workload, record};

#[test]
fn pins_of_a_page_point_to_the_same_bytes() {
    let store = Store::memory();
    let payload = vec![7; 3 << 20];
    let page = store.write_page(PageKind::CHUNK, &payload).unwrap();
    let (first, second) = (store.pin(page).unwrap(), store.pin(page).unwrap());
    assert!(std::ptr::eq(&first[0], &second[0]));
    assert_eq!(*first, payload[..]);
    assert_eq!(store.stats().memory.pool, 0, "the pool holds no second copy");
    assert_eq!(store.kind_of(page).unwrap(), PageKind::CHUNK);
}

#[test]
fn a_freed_page_is_gone_but_for_those_who_pinned_it() {
    let store = Store::memory();
    let page = store.write_page(PageKind::CHUNK, &[1; 10_000]).unwrap();
    store.commit(&[record(RecordTag::ROWS_INSERTED, 1, vec![])], &[page]).unwrap();
    let pinned = store.pin(page).unwrap();
    store.free(page);
    store.free(page);
    assert!(matches!(store.pin(page), Err(Error::NoSuchPage { .. })));
    assert_eq!(pinned.holders(), 1, "the file has let go");
    assert_eq!(*pinned, [1; 10_000]);
    let stats = store.stats();
    assert_eq!(stats.free_bytes + 2 * 4096, stats.file_bytes, "all but the headers' units is free");
    assert!(stats.pages.is_empty());
}

/// Memory in use by this process, in bytes.
#[cfg(target_os = "linux")]
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[cfg(target_os = "linux")]
#[test]
fn resident_size_follows_the_pages() {
    let store = Store::memory();
    let before = resident_bytes();
    let payload = vec![3; 4 << 20];
    let pages: Vec<_> = (0..32).map(|_| store.write_page(PageKind::CHUNK, &payload).unwrap()).collect();
    let pins: Vec<_> = pages.iter().map(|page| store.pin(*page).unwrap()).collect();
    let full = resident_bytes() - before;
    drop(pins);
    pages.iter().for_each(|page| store.free(*page));
    let empty = resident_bytes().saturating_sub(before);
    println!("128 MiB of pages, pinned: {} MiB resident; freed: {} MiB", full >> 20, empty >> 20);
    assert!(full < 150 << 20 && empty < 20 << 20);
}

#[test]
fn the_same_workload_runs_without_a_file() {
    for seed in 0..20 {
        let store = Store::memory();
        let mut workload = Workload::new(seed, Shelf::default());
        workload.run(&store, 200).unwrap();
        workload.shelf().check_pages(&store).unwrap();
        workload.close(&store).unwrap();
    }
}
