//! A database is looked at, whatever of it is damaged: each changed byte is named if anything depends on it, and no other.

use std::path::Path;
use std::sync::Arc;

use crate::support::{PATH, Shelf, closed, log_bytes, newest_log, open, unclosed};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{Damage, Examined, ExtentInfo, FileSystem, Options, PageKind, Part, Store};

fn examine(fs: &CrashingFileSystem) -> (Examined, Vec<Damage>) {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    let mut damages = Vec::new();
    let examined =
        Store::examine(&fs, Path::new(PATH), Options::default(), &mut |damage| damages.push(damage)).unwrap();
    examined.read_pages(&mut |_, read| damages.extend(read.err()));
    (examined, damages)
}

fn with_flipped(fs: &CrashingFileSystem, path: &Path, at: u64) -> CrashingFileSystem {
    let copy = fs.copy();
    let mut bytes = copy.bytes(path);
    bytes[at as usize] ^= 1 << (at % 8);
    copy.put(path, bytes);
    copy
}

fn files(fs: &CrashingFileSystem) -> Vec<Vec<u8>> {
    fs.files().iter().map(|file| fs.bytes(file)).collect()
}

/// The stretch that a byte of the file is in, and whether it is one that something depends on.
fn used(examined: &Examined, at: u64) -> Option<&ExtentInfo> {
    examined
        .extents
        .iter()
        .find(|extent| (extent.offset..extent.offset + extent.bytes - extent.padding_bytes).contains(&at))
}

/// Bytes of every stretch: its first ones, its last ones, some between, and some of its padding.
fn bytes_to_change(examined: &Examined) -> Vec<u64> {
    let mut all = Vec::new();
    for extent in &examined.extents {
        let (start, end) = (extent.offset, extent.offset + extent.bytes);
        let used_end = end - extent.padding_bytes;
        all.extend((start..used_end).step_by((extent.bytes / 7) as usize));
        all.extend([start + 1, start + 9, start + 29, used_end - 1, end - 1]);
        all.extend((used_end..end).step_by(1500));
    }
    for unused in examined.unused() {
        all.extend(unused.step_by(2000));
    }
    all
}

#[test]
fn each_byte_that_matters_is_named_and_no_other() {
    let mut fallbacks = 0;
    for fs in [closed(5, 120).0, unclosed(6, 90).0, unclosed(9, 120).0] {
        let (whole, damages) = examine(&fs);
        assert_eq!(damages, []);
        let file = Path::new(PATH);
        for at in bytes_to_change(&whole) {
            let damaged = with_flipped(&fs, file, at);
            let before = files(&damaged);
            let (_, damages) = examine(&damaged);
            assert_eq!(files(&damaged), before, "byte {at}: it was only looked at");
            match used(&whole, at) {
                None => assert_eq!(damages, [], "byte {at} is unused"),
                Some(extent) => {
                    let first = damages.first().unwrap_or_else(|| panic!("byte {at} is not named, {extent:?}"));
                    assert_eq!((first.offset, first.file.as_path()), (extent.offset, file), "byte {at}: {first}");
                    match (&first.part, extent.kind) {
                        (Part::Header(copy), None) => assert_eq!(*copy as u64, at / 4096),
                        (Part::MapNode(pages), Some(PageKind::MAP_NODE)) => assert!(!pages.is_empty()),
                        (Part::Page(page, kind), Some(known)) => assert_eq!((Some(*page), *kind), (extent.page, known)),
                        other => panic!("byte {at}: {other:?}"),
                    }
                    assert_eq!(first.is_fallback, extent.is_fallback, "byte {at}: {first}");
                    fallbacks += usize::from(extent.is_fallback);
                    assert_eq!(damages.len(), 1, "byte {at}: {damages:?}");
                }
            }
        }
    }
    assert!(fallbacks > 20, "only {fallbacks} in what the older header needs");
}

#[test]
fn pages_below_a_node_that_is_lost_are_damaged_and_the_others_are_there() {
    // More than 256 pages, so that there are several leaves.
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let pages: Vec<_> =
        (0..600u64).map(|page| store.write_page(PageKind::CHUNK, &page.to_le_bytes()).unwrap()).collect();
    store.commit(&[], &pages).unwrap();
    store.close(|out| out.put(None, PageKind::CATALOG, b"root")).unwrap();
    let (whole, _) = examine(&fs);
    let pages: Vec<_> = whole.extents.iter().filter_map(|extent| extent.page).collect();
    let nodes: Vec<_> = whole.extents.iter().filter(|extent| extent.kind == Some(PageKind::MAP_NODE)).collect();
    assert!(nodes.len() > 2, "{} nodes for {} pages", nodes.len(), pages.len());
    for node in nodes {
        let damaged = with_flipped(&fs, Path::new(PATH), node.offset + 100);
        let (examined, damages) = examine(&damaged);
        let [Damage { part: Part::MapNode(hidden), .. }] = &damages[..] else { panic!("{damages:?}") };
        let (store, _) = examined.state.as_ref().unwrap();
        for page in &pages {
            match store.pin(*page) {
                Err(error) => {
                    assert!(hidden.contains(&page.0) && error.is_damage(), "{error}");
                    assert!(error.to_string().contains(&format!("byte {} is damaged", node.offset)), "{error}");
                }
                Ok(_) => assert!(!hidden.contains(&page.0), "page {page} below the node at {}", node.offset),
            }
        }
        let fs: Arc<dyn FileSystem> = Arc::new(damaged);
        let (_, recovery) = Store::open_damaged(&fs, Path::new(PATH), Options::default()).unwrap();
        assert!(recovery.notes[0].contains("map node at byte"), "{:?}", recovery.notes);
    }
}

#[test]
fn a_damaged_log_is_named_at_each_place_and_replayed_up_to_the_first() {
    let lives = (0..).map(|seed| unclosed(seed, 60));
    let mut logs = lives.map(|(fs, workload)| (newest_log(&fs), fs, workload));
    let (log, fs, workload) = logs.find(|(log, fs, _)| log_bytes(fs, log).len() > 30_000).expect("seeds do not end");
    let bytes = log_bytes(&fs, &log).len() as u64;
    assert_eq!(examine(&fs).1, []);
    let (mut named, mut tail) = (0, 0);
    for at in (0..bytes).step_by((bytes / 400) as usize).chain(0..64) {
        let damaged = with_flipped(&fs, &log, at);
        let before = files(&damaged);
        let (mut examined, damages) = examine(&damaged);
        assert_eq!(files(&damaged), before, "byte {at}");
        let refused = open(Arc::new(damaged.copy()), Options { read_only: true, ..Options::default() }).is_err();
        assert_eq!(!damages.is_empty(), refused, "byte {at}: {damages:?}");
        let (store, recovery) = examined.state.take().unwrap();
        match damages.first() {
            Some(first) => {
                assert_eq!((&first.part, first.file.as_path()), (&Part::Log, log.as_path()), "byte {at}: {first}");
                assert!(first.offset <= at && first.what.contains("can be replayed"), "byte {at}: {first}");
                named += 1;
            }
            None => {
                assert!(recovery.notes.iter().any(|note| note.contains("were dropped")), "byte {at}");
                tail += 1;
            }
        }
        let shelf = Shelf::recover(&store, recovery).unwrap();
        assert!(at < 64 || workload.states.contains(&shelf), "byte {at}: a state that never was");
    }
    assert!(named > 300 && tail > 0, "{named} named, {tail} at the end");
    // Two places, far from each other.
    let (first, second) = (bytes / 4, bytes / 2);
    let (_, damages) = examine(&with_flipped(&with_flipped(&fs, &log, first), &log, second));
    assert_eq!(damages.len(), 2, "{damages:?}");
    assert!(damages[0].offset <= first && damages[1].offset <= second && damages[1].offset > first, "{damages:?}");
}

#[test]
fn a_log_that_is_missing_or_cut_hides_no_page() {
    let (fs, _) = unclosed(9, 120);
    let log = newest_log(&fs);
    let gone = fs.copy();
    gone.remove(&log).unwrap();
    for damaged in [gone, with_flipped(&fs, &log, 3)] {
        let (examined, damages) = examine(&damaged);
        assert!(damages.iter().any(|damage| damage.part == Part::Log && damage.file == log), "{damages:?}");
        assert!(damages.iter().all(|damage| damage.part == Part::Log), "{damages:?}");
        assert!(examined.state.is_some());
        let mut pages = 0;
        examined.read_pages(&mut |_, read| pages += usize::from(read.is_ok()));
        assert!(pages > 3, "{pages} pages");
    }
}

#[test]
fn without_a_header_nothing_is_found_and_it_is_said_why() {
    let (fs, _) = closed(5, 50);
    let damaged = with_flipped(&with_flipped(&fs, Path::new(PATH), 50), Path::new(PATH), 5000);
    let (examined, damages) = examine(&damaged);
    assert!(examined.state.is_none());
    assert_eq!(damages.iter().map(|damage| &damage.part).collect::<Vec<_>>(), [&Part::Header(0), &Part::Header(1)]);
    let fs: Arc<dyn FileSystem> = Arc::new(damaged);
    let error = Store::open_damaged(&fs, Path::new(PATH), Options::default()).unwrap_err();
    assert!(error.to_string().contains("both header copies are damaged"), "{error}");
}

#[test]
fn a_file_that_was_cut_has_what_is_before_the_cut() {
    let (fs, _) = closed(5, 300);
    let (whole, _) = examine(&fs);
    let last = *whole.extents.last().unwrap();
    let cut = fs.copy();
    let bytes = cut.bytes(Path::new(PATH));
    cut.put(Path::new(PATH), bytes[..last.offset as usize + 100].to_vec());
    let (examined, damages) = examine(&cut);
    assert_eq!(damages[0].part, Part::File);
    assert!(damages[1..].iter().any(|damage| damage.offset == last.offset), "{damages:?}");
    assert!(examined.state.is_some());
}

#[test]
fn any_bytes_in_the_place_of_nodes_and_headers_end() {
    use rand::{Rng, RngCore, SeedableRng};
    let (fs, _) = unclosed(9, 120);
    let (whole, _) = examine(&fs);
    let mut random = rand::rngs::SmallRng::seed_from_u64(7);
    let checksum_at = 4092;
    for _ in 0..300 {
        // A header whose checksum is right and whose fields are anything.
        let damaged = fs.copy();
        let mut bytes = damaged.bytes(Path::new(PATH));
        for copy in 0..2 {
            let header = &mut bytes[copy * 4096..(copy + 1) * 4096];
            let at = random.random_range(80..106);
            header[at] = random.random();
            let checksum = crc32c::crc32c(&header[..checksum_at]).to_le_bytes();
            header[checksum_at..].copy_from_slice(&checksum);
        }
        for node in whole.extents.iter().filter(|extent| extent.kind == Some(PageKind::MAP_NODE)) {
            if random.random_range(0..4) == 0 {
                let at = node.offset as usize + random.random_range(0..200);
                random.fill_bytes(&mut bytes[at..at + 16]);
            }
        }
        damaged.put(Path::new(PATH), bytes);
        examine(&damaged);
    }
}
