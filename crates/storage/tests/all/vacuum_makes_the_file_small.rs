//! A vacuum moves pages down until the file is as small as what is in it; and whatever goes wrong meanwhile, whoever
//! reads, commits and makes checkpoints meanwhile, nothing is lost and nothing changes its contents.

use crate::support;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::support::{PATH, Shelf, Workload, check_either_header, found, open};
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, Fault, FaultyFileSystem, Trigger};
use sinter_storage::{CheckpointWriter, Error, FileSystem, Options, PageId, PageKind, Result, Store, VacuumProgress};

const UNIT_BYTES: u64 = 4096;

/// Options without a pool to speak of, so that pages are read from the disk.
fn options() -> Options {
    Options { memory_limit_bytes: 0, ..Options::default() }
}

fn file_bytes(fs: &CrashingFileSystem) -> u64 {
    fs.bytes(Path::new(PATH)).len() as u64
}

/// What is in the file, the two header copies included.
fn used_bytes(store: &Store) -> u64 {
    2 * UNIT_BYTES + store.stats().pages.values().map(|count| count.bytes).sum::<u64>()
}

/// Each unit of the file is in use, free or retired.
fn check_nothing_leaks(store: &Store, context: &str) {
    let stats = store.stats();
    assert_eq!(stats.file_bytes, used_bytes(store) + stats.free_bytes + stats.retired_bytes, "{context}");
}

/// So many pages, of which every fourth stays.
fn with_gaps(store: &Store, workload: &mut Workload, page_count: usize) -> Result<()> {
    let pages = workload.attach(store, page_count)?;
    workload.checkpoint(store)?;
    let dropped: Vec<PageId> = pages.into_iter().filter(|page| page.0 % 4 != 0).collect();
    workload.drop_pages(store, &dropped)
}

#[test]
fn a_file_full_of_gaps_becomes_as_small_as_its_pages() {
    for seed in 0..6 {
        let fs = CrashingFileSystem::new();
        let (store, _) = open(Arc::new(fs.clone()), options()).unwrap();
        let mut workload = Workload::new(seed, Shelf::default());
        with_gaps(&store, &mut workload, 600).unwrap();
        let before = file_bytes(&fs);
        workload.vacuum(&store).unwrap();
        let (after, used) = (file_bytes(&fs), used_bytes(&store));
        println!("seed {seed}: {before} bytes, {after} after the vacuum, {used} in use");
        // What two checkpoints wrote is there twice.
        assert!(after <= used + 16 * UNIT_BYTES, "{after} bytes, {used} in use");
        assert_eq!(store.stats().file_bytes, after);
        workload.shelf().check_pages(&store).unwrap();
        store.check(&mut |error| panic!("{error}")).unwrap();
        drop(store);
        check_either_header(&fs.restart(seed), &workload, &format!("seed {seed}"));
    }
}

/// A page that is larger than any gap stayed at the file's end: it would have moved only once nothing else did, but the
/// root moved in every round, since a checkpoint between two rounds had written it anew.
#[test]
fn a_page_that_fits_nowhere_before_the_end_moves_down_as_far_as_it_can() {
    for seed in 0..12 {
        let fs = CrashingFileSystem::new();
        let (store, _) = open(Arc::new(fs.clone()), options()).unwrap();
        let mut workload = Workload::new(seed, Shelf::default());
        let pages = workload.attach(&store, 300).unwrap();
        let large = store.write_page(PageKind::CHUNK, &[7; 40 * UNIT_BYTES as usize]).unwrap();
        store.commit(&[], &[large]).unwrap();
        workload.checkpoint(&store).unwrap();
        let dropped: Vec<PageId> = pages.into_iter().filter(|page| page.0 % 4 != 0).collect();
        workload.drop_pages(&store, &dropped).unwrap();
        workload.vacuum(&store).unwrap();
        let (after, used) = (file_bytes(&fs), used_bytes(&store));
        println!("seed {seed}: {after} bytes after the vacuum, {used} in use");
        assert!(after <= used + 100 * UNIT_BYTES, "{after} bytes, {used} in use");
        assert_eq!(store.pin(large).unwrap()[..], [7; 40 * UNIT_BYTES as usize]);
    }
}

#[test]
fn a_vacuum_is_due_when_much_of_a_large_file_is_unused() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), options()).unwrap();
    let root = |writer: &mut CheckpointWriter<'_>| writer.put(None, PageKind::CATALOG, b"root");
    let mut pages = Vec::new();
    for _ in 0..40 {
        let page = store.write_page(PageKind::CHUNK, &vec![7; 1 << 20]).unwrap();
        store.commit(&[], &[page]).unwrap();
        pages.push(page);
    }
    store.checkpoint(root).unwrap();
    assert!(!store.is_vacuum_due(0));
    pages.drain(5..25).for_each(|page| store.free(page));
    assert!(store.is_vacuum_due(0));
    store.vacuum(&mut |_| ControlFlow::Continue(()), || store.checkpoint(root)).unwrap();
    assert!(!store.is_vacuum_due(0));
    assert!(file_bytes(&fs) < 21 << 20, "{}", file_bytes(&fs));
    pages.iter().for_each(|page| assert_eq!(store.pin(*page).unwrap()[..], vec![7; 1 << 20]));
}

/// A vacuum once moved everything that lay behind the end in one go, and whoever had begun it could do nothing else until
/// then: no checkpoint was made, and nobody could stop it.
#[test]
fn between_batches_there_are_commits_and_checkpoints_and_it_can_be_given_up() {
    static PAGE: [u8; 1 << 20] = [7; 1 << 20];
    for calls_max in [0, 1, 2, 3, usize::MAX] {
        let fs = CrashingFileSystem::new();
        let (store, _) = open(Arc::new(fs.clone()), options()).unwrap();
        let root = |writer: &mut CheckpointWriter<'_>| writer.put(None, PageKind::CATALOG, b"root");
        let new_page = || {
            let page = store.write_page(PageKind::CHUNK, &PAGE).unwrap();
            store.commit(&[], &[page]).unwrap();
            page
        };
        let mut pages: Vec<PageId> = (0..80).map(|_| new_page()).collect();
        store.checkpoint(root).unwrap();
        pages.drain(..40).for_each(|page| store.free(page));
        let before = file_bytes(&fs);
        let (mut told, mut committed): (Vec<VacuumProgress>, Vec<PageId>) = (Vec::new(), Vec::new());
        let between = &mut |progress| {
            told.push(progress);
            if told.len() > calls_max {
                return ControlFlow::Break(());
            }
            if told.len() < 5 {
                committed.push(new_page());
                store.checkpoint(root).unwrap();
            }
            ControlFlow::Continue(())
        };
        let outcome = store.vacuum(between, || store.checkpoint(root));
        println!("{calls_max}: {} bytes, {} after, told {told:?}", before, file_bytes(&fs));
        assert!(told.is_sorted_by_key(|progress| (progress.bytes_done, progress.bytes_total)));
        assert!(told.iter().all(|progress| progress.bytes_done <= progress.bytes_total));
        match outcome {
            Ok(()) => {
                assert!(told.len() > 4, "40 MiB are several batches: {told:?}");
                assert_eq!(told.last().map(|last| last.bytes_done), told.last().map(|last| last.bytes_total));
                assert!(file_bytes(&fs) < 50 << 20, "{}", file_bytes(&fs));
            }
            Err(error) => {
                assert!(matches!(error, Error::GivenUp { .. }), "{error}");
                assert_eq!(told.len(), calls_max + 1);
                let go_on = &mut |_| ControlFlow::Continue(());
                store.vacuum(go_on, || store.checkpoint(root)).unwrap();
                assert!(file_bytes(&fs) < 50 << 20, "{}", file_bytes(&fs));
            }
        }
        check_nothing_leaks(&store, &format!("given up after {calls_max}"));
        drop(store);
        let (store, _) = open(Arc::new(fs.restart(calls_max as u64)), options()).unwrap();
        pages.iter().chain(&committed).for_each(|page| assert_eq!(store.pin(*page).unwrap()[..], PAGE));
    }
}

#[test]
fn in_memory_there_is_nothing_to_do_and_a_reader_may_not() {
    Store::memory()
        .vacuum(&mut |_| ControlFlow::Continue(()), || -> Result<()> { unreachable!("no checkpoint is made") })
        .unwrap();
    let (fs, _) = support::closed(1, 20);
    let (reader, _) = open(Arc::new(fs), Options { read_only: true, ..Options::default() }).unwrap();
    let refused =
        reader.vacuum(&mut |_| ControlFlow::Continue(()), || -> Result<()> { unreachable!("no checkpoint is made") });
    assert!(matches!(refused, Err(Error::ReadOnly { .. })));
}

/// What was pressed, kept by a checkpoint and moved by a vacuum may be named by a commit only then: the log names the new
/// place, and what is there must have reached the disk.
#[test]
fn a_page_that_moved_can_be_named_by_a_commit() {
    for seed in 0..8 {
        let fs = CrashingFileSystem::new();
        let (store, _) = open(Arc::new(fs.clone()), options()).unwrap();
        let mut workload = Workload::new(seed, Shelf::default());
        with_gaps(&store, &mut workload, 40).unwrap();
        let page = store.write_page(PageKind::CHUNK, &support::payload(seed)).unwrap();
        let keep = |writer: &mut CheckpointWriter<'_>| {
            writer.keep(page)?;
            writer.put(None, PageKind::CATALOG, b"root")
        };
        let offset = || {
            let mut found = 0;
            store.for_each_page(&mut |info| {
                if info.page == page {
                    found = info.offset
                }
            });
            found
        };
        store.checkpoint(keep).unwrap();
        let before = offset();
        // Ends when the page has moved, before a checkpoint has made anything durable.
        let given_up = store.vacuum(&mut |_| ControlFlow::Continue(()), || match offset() == before {
            true => store.checkpoint(keep),
            false => Err(Error::caller("far enough")),
        });
        assert!(given_up.is_err() && offset() < before);
        store.commit(&[], &[page]).unwrap();
        for restart in 0..4 {
            let (store, _) = open(Arc::new(fs.restart(seed ^ restart << 32)), options()).unwrap();
            assert_eq!(store.pin(page).unwrap()[..], support::payload(seed), "seed {seed}, restart {restart}");
        }
    }
}

/// A fixed life with vacuums in it, each beside pages that no commit has named yet.
fn life(fs: Arc<dyn FileSystem>, workload: &mut Workload) -> Result<Store> {
    let (store, _) = open(fs, options())?;
    with_gaps(&store, workload, 40)?;
    workload.vacuum(&store)?;
    workload.run_with_vacuums(&store, 25)?;
    workload.attach(&store, 3)?;
    Ok(store)
}

#[test]
fn a_power_loss_at_any_call_loses_nothing_promised() {
    let mut crashes: BTreeMap<Call, u64> = BTreeMap::new();
    for seed in 0..4 {
        let whole = CrashingFileSystem::new();
        life(Arc::new(whole.clone()), &mut Workload::new(seed, Shelf::default())).unwrap();
        for (index, call) in whole.calls().into_iter().enumerate() {
            let fs = CrashingFileSystem::new();
            fs.plan(index as u64, Fault::Crash);
            let mut workload = Workload::new(seed, Shelf::default());
            let _ = life(Arc::new(fs.clone()), &mut workload);
            *crashes.entry(call).or_default() += 1;
            let context = format!("seed {seed}, crash at call {index} ({call:?})");
            let disk = fs.restart(seed ^ index as u64);
            check_either_header(&disk, &workload, &context);
            // The process alone dies.
            let (shelf, _) = found(&fs.copy()).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(workload.ends_with(&shelf), "{context}: the process died");
            // And then it goes on.
            let (store, recovery) = open(Arc::new(disk.clone()), options()).unwrap();
            let mut next = Workload::new(!seed, Shelf::recover(&store, recovery).unwrap());
            next.vacuum(&store).unwrap();
            next.run(&store, 3).unwrap();
            next.shelf().check_no_leaks(&store);
            drop(store);
            check_either_header(&disk.restart(!seed ^ index as u64), &next, &format!("{context}, and went on"));
        }
    }
    println!("crashes by call: {crashes:?}");
}

/// Every call fails in turn. What was asked for ends with an error or not; nothing changes, and the next vacuum does all.
fn at_every_call(seed: u64, fault: DiskFault) {
    let whole = FaultyFileSystem::on_disk(&CrashingFileSystem::new());
    life(Arc::new(whole.clone()), &mut Workload::new(seed, Shelf::default())).unwrap();
    for (call, count) in whole.calls().into_iter().filter(|(call, _)| fault.can_happen_to(*call)) {
        for index in 0..count {
            let context = format!("seed {seed}, {fault:?} at {call:?} {index}");
            let disk = CrashingFileSystem::new();
            let fs = FaultyFileSystem::on_disk(&disk);
            let (store, _) = open(Arc::new(fs.clone()), options()).unwrap();
            let mut workload = Workload::new(seed, Shelf::default());
            with_gaps(&store, &mut workload, 40).unwrap();
            let before = fs.calls().get(&call).copied().unwrap_or(0);
            if index < before {
                continue;
            }
            fs.plan(Trigger::at(index - before).of(call), fault);
            let outcome = workload.vacuum(&store).and_then(|()| workload.run_with_vacuums(&store, 8));
            if fs.injected().is_empty() {
                break;
            }
            fs.clear_plan();
            workload.shelf().check_pages(&store).unwrap_or_else(|what| panic!("{context}: {what}"));
            if store.poisoned().is_none() {
                check_nothing_leaks(&store, &context);
            }
            match (outcome, store.poisoned()) {
                (_, Some(_)) => {}
                (_, None) => {
                    // A commit that failed did not happen.
                    workload.in_doubt = None;
                    workload.vacuum(&store).unwrap_or_else(|error| panic!("{context}: the disk is well: {error}"));
                    workload.shelf().check_pages(&store).unwrap_or_else(|what| panic!("{context}: {what}"));
                }
            }
            drop(store);
            let disk = disk.restart(seed ^ index);
            let (shelf, _) = found(&disk).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(workload.allows(&shelf), "{context}: another state");
        }
    }
}

#[test]
fn an_input_output_error_leaves_everything_as_it_was() {
    (0..2).for_each(|seed| at_every_call(seed, DiskFault::IoError));
}

#[test]
fn a_full_disk_leaves_everything_as_it_was() {
    (2..4).for_each(|seed| at_every_call(seed, DiskFault::NoSpace));
}

#[test]
fn a_failed_sync_is_the_end_of_promises() {
    (4..6).for_each(|seed| at_every_call(seed, DiskFault::LostSync));
}

/// Others commit, read, free and make checkpoints while pages move under them.
#[test]
fn everybody_goes_on_beside_it() {
    let fs = CrashingFileSystem::new();
    let (store, _) =
        open(Arc::new(fs.clone()), Options { memory_limit_bytes: 256 << 10, ..Options::default() }).unwrap();
    let root = |writer: &mut CheckpointWriter<'_>| writer.put(None, PageKind::CATALOG, b"root");
    let mut fixed = Workload::new(77, Shelf::default());
    with_gaps(&store, &mut fixed, 200).unwrap();
    let shelves = std::thread::scope(|scope| {
        let writer = |seed| {
            let store = &store;
            move || {
                let mut workload = Workload::new(seed, Shelf::default());
                for round in 0..40 {
                    let pages = workload.attach(store, 10).unwrap();
                    workload.drop_pages(store, &pages[round % 3..]).unwrap();
                    workload.shelf().check_pages(store).unwrap();
                }
                workload.shelf().clone()
            }
        };
        let writers: Vec<_> = (0..2).map(|seed| scope.spawn(writer(seed))).collect();
        let (is_over, store, fixed) = (|| writers.iter().all(|writer| writer.is_finished()), &store, fixed.shelf());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over() {
                    store.checkpoint(root).unwrap()
                }
            });
            scope.spawn(|| {
                while !is_over() {
                    fixed.check_pages(store).unwrap()
                }
            });
            let mut vacuums = 0;
            while !is_over() {
                store.vacuum(&mut |_| ControlFlow::Continue(()), || store.checkpoint(root)).unwrap();
                vacuums += 1;
            }
            println!("{vacuums} vacuums");
        });
        writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    store.vacuum(&mut |_| ControlFlow::Continue(()), || store.checkpoint(root)).unwrap();
    store.check(&mut |error| panic!("{error}")).unwrap();
    check_nothing_leaks(&store, "at the end");
    let page_count = shelves.iter().chain([fixed.shelf()]).map(|shelf| shelf.pages.len()).sum::<usize>();
    assert_eq!(store.stats().pages[&PageKind::CHUNK].pages, page_count as u64, "none that was freed is back");
    drop(store);
    for seed in 0..4 {
        let (store, _) = open(Arc::new(fs.restart(seed)), options()).unwrap();
        shelves.iter().chain([fixed.shelf()]).for_each(|shelf| shelf.check_pages(&store).unwrap());
    }
}
