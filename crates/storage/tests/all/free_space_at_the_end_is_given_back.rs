//! After a large delete the file becomes shorter while it is open, as soon as no header copy and no log needs the space
//! any more; and a power loss at any call around that leads to what was promised, from either header copy.

use std::path::Path;
use std::sync::Arc;

use crate::support::{PATH, Shelf, Workload, check_either_header, found, open};
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, Fault, FaultyFileSystem, Trigger};
use sinter_storage::{FileSystem, Options, Result, Store};

fn file_bytes(fs: &CrashingFileSystem) -> usize {
    fs.bytes(Path::new(PATH)).len()
}

/// Many pages come, most go, and checkpoints follow; then some come again.
fn life(fs: &dyn Fn() -> Arc<dyn FileSystem>, workload: &mut Workload) -> Result<Store> {
    let (store, _) = open(fs(), Options::default())?;
    let pages = workload.attach(&store, 40)?;
    workload.checkpoint(&store)?;
    workload.drop_pages(&store, &pages[4..])?;
    for _ in 0..6 {
        workload.checkpoint(&store)?;
        workload.attach(&store, 1)?;
    }
    workload.attach(&store, 20)?;
    workload.checkpoint(&store)?;
    Ok(store)
}

#[test]
fn a_large_delete_makes_an_open_file_shorter_after_some_checkpoints() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let mut workload = Workload::new(1, Shelf::default());
    let pages = workload.attach(&store, 200).unwrap();
    workload.checkpoint(&store).unwrap();
    let before = file_bytes(&fs);
    workload.drop_pages(&store, &pages[10..]).unwrap();
    workload.checkpoint(&store).unwrap();
    assert!(file_bytes(&fs) >= before, "the other header copy still names all of it");
    // Two until the space is free, one that puts the root and the map there, two until their old places are free.
    (0..4).for_each(|_| workload.checkpoint(&store).unwrap());
    let after = file_bytes(&fs);
    assert!(after < before / 5, "{after} of {before} bytes");
    assert_eq!(store.stats().file_bytes, after as u64);
    workload.attach(&store, 200).unwrap();
    assert!(file_bytes(&fs) > before / 2);
    workload.shelf().check_pages(&store).unwrap();
    drop(store);
    assert!(found(&fs.restart(1)).unwrap().0 == *workload.shelf());
}

#[test]
fn a_file_that_has_just_grown_is_not_cut() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let mut workload = Workload::new(2, Shelf::default());
    for _ in 0..20 {
        workload.attach(&store, 8).unwrap();
        let before = file_bytes(&fs);
        workload.checkpoint(&store).unwrap();
        assert!(file_bytes(&fs) >= before);
    }
}

#[test]
fn a_power_loss_at_any_call_leaves_two_whole_databases() {
    for seed in 0..4 {
        let whole = CrashingFileSystem::new();
        let mut workload = Workload::new(seed, Shelf::default());
        life(&|| Arc::new(whole.clone()), &mut workload).unwrap();
        let lengths = whole.calls().iter().filter(|call| **call == Call::SetLength).count();
        assert!(lengths > 6, "the file grew, was cut, and grew again");
        for index in 0..whole.calls().len() {
            let fs = CrashingFileSystem::new();
            fs.plan(index as u64, Fault::Crash);
            let mut workload = Workload::new(seed, Shelf::default());
            life(&|| Arc::new(fs.clone()), &mut workload).map(drop).unwrap_or_default();
            for restart in 0..2 {
                let disk = fs.restart(seed ^ index as u64 ^ restart << 32);
                let context = format!("seed {seed}, crash at call {index}, restart {restart}");
                check_either_header(&disk, &workload, &context);
            }
        }
    }
}

/// The checkpoint has happened then, and the next one cuts.
#[test]
fn a_cut_that_fails_is_tried_again() {
    let disk = CrashingFileSystem::new();
    let fs = FaultyFileSystem::on_disk(&disk);
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let mut workload = Workload::new(3, Shelf::default());
    let pages = workload.attach(&store, 200).unwrap();
    workload.checkpoint(&store).unwrap();
    workload.drop_pages(&store, &pages).unwrap();
    let before = file_bytes(&disk);
    fs.plan(Trigger::next().of(Call::SetLength).ending_with(".sinter"), DiskFault::IoError);
    for _ in 0..5 {
        if fs.injected().is_empty() {
            workload.checkpoint(&store).unwrap();
        }
    }
    assert_eq!((fs.injected().len(), file_bytes(&disk)), (1, before));
    workload.checkpoint(&store).unwrap();
    assert!(file_bytes(&disk) < before / 5);
    assert_eq!(store.poisoned(), None);
}

/// Writers let the file grow while checkpoints cut it.
#[test]
fn the_file_grows_and_shrinks_under_many_threads() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let shelves = std::thread::scope(|scope| {
        let writer = |seed| {
            let store = &store;
            move || {
                let mut workload = Workload::new(seed, Shelf::default());
                for round in 0..30 {
                    let pages = workload.attach(store, 20).unwrap();
                    workload.shelf().check_pages(store).unwrap();
                    workload.drop_pages(store, &pages[round % 2..]).unwrap();
                }
                workload.shelf().clone()
            }
        };
        let writers: Vec<_> = (0..3).map(|seed| scope.spawn(writer(seed))).collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            let root = |writer: &mut sinter_storage::CheckpointWriter<'_>| {
                writer.put(None, sinter_storage::PageKind::CATALOG, b"root")
            };
            store.checkpoint(root).unwrap();
        }
        writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    shelves.iter().for_each(|shelf| shelf.check_pages(&store).unwrap());
    store.check(&mut |error| panic!("{error}")).unwrap();
    assert!(fs.calls().iter().filter(|call| **call == Call::SetLength).count() > 10);
}
