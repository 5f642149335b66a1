//! One header copy rots, the newest even, and nothing committed is lost: the older copy's pages were not overwritten,
//! and the logs reach back to it.

use std::path::Path;
use std::sync::Arc;

use crate::support::{PATH, Shelf, Workload, found, open, record, unclosed};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{CheckpointWriter, Error, Options, PageKind, RecordTag};

const COPIES: [usize; 2] = [0, 4096];

/// Long enough for several checkpoints, with frees and new pages between them.
#[test]
fn whichever_copy_rots_at_whatever_moment() {
    for seed in 0..40 {
        for steps in [5, 20, 45, 80, 120] {
            let (fs, workload) = unclosed(seed, steps);
            for start in COPIES {
                let rotten = fs.copy();
                let mut bytes = rotten.bytes(Path::new(PATH));
                bytes[start + 60] ^= 0xFF;
                rotten.put(Path::new(PATH), bytes);
                let (store, mut recovery) = open(Arc::new(rotten.clone()), Options::default())
                    .unwrap_or_else(|error| panic!("seed {seed}, {steps} steps, copy at {start}: {error}"));
                assert_eq!(std::mem::take(&mut recovery.notes).len(), 1, "the user is told");
                let shelf = Shelf::recover(&store, recovery).unwrap();
                assert!(shelf == *workload.shelf(), "seed {seed}, {steps} steps, copy at {start}: another state");
                shelf.check_pages(&store).unwrap_or_else(|what| panic!("seed {seed}, {steps} steps: {what}"));
                // And it works on from there, as if nothing had happened.
                let mut next = Workload::new(seed + 1, shelf);
                next.run(&store, 30).unwrap();
                drop(store);
                assert_eq!(found(&rotten).unwrap().0, *next.shelf());
            }
        }
    }
}

/// An open after a crash must hold back what the older header needs, as the store before it did.
#[test]
fn also_when_the_store_was_reopened_meanwhile() {
    for seed in 0..40 {
        let (fs, mut workload) = unclosed(seed, 60);
        for round in 0..4 {
            let (store, recovery) = open(Arc::new(fs.clone()), Options::default()).unwrap();
            let shelf = Shelf::recover(&store, recovery).unwrap();
            assert!(shelf == *workload.shelf());
            workload = Workload::new(seed + 100 * round, shelf);
            workload.run(&store, 15).unwrap();
        }
        for start in COPIES {
            let rotten = fs.copy();
            let mut bytes = rotten.bytes(Path::new(PATH));
            bytes[start + 60] ^= 0xFF;
            rotten.put(Path::new(PATH), bytes);
            let (shelf, _) = found(&rotten).unwrap_or_else(|error| panic!("seed {seed}, copy at {start}: {error}"));
            assert!(shelf == *workload.shelf(), "seed {seed}, copy at {start}: another state");
        }
    }
}

#[test]
fn a_rotten_page_map_falls_back_too() {
    let (fs, workload) = unclosed(3, 100);
    let bytes = fs.bytes(Path::new(PATH));
    let checkpoint = |start: usize| u64::from_le_bytes(bytes[start + 40..start + 48].try_into().unwrap());
    let newest = if checkpoint(0) > checkpoint(4096) { 0 } else { 4096 };
    let map_root = u64::from_le_bytes(bytes[newest + 88..newest + 96].try_into().unwrap()) & 0xFFFF_FFFF_FFFF;
    let mut rotten = bytes.clone();
    rotten[map_root as usize * 4096 + 77] ^= 1;
    fs.put(Path::new(PATH), rotten);
    let (shelf, notes) = found(&fs).unwrap();
    assert_eq!(shelf, *workload.shelf());
    assert!(notes[0].contains("a map node at byte"), "{notes:?}");
}

/// A checkpoint keeps a page, and a later commit names it. The checkpoint before knows nothing of the page, so the log
/// must say where it is.
#[test]
fn a_page_that_was_kept_before_it_was_committed() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let root = |writer: &mut CheckpointWriter<'_>| writer.put(None, PageKind::CATALOG, b"root");
    store.checkpoint(root).unwrap();
    let page = store.write_page(PageKind::CHUNK, b"kept").unwrap();
    store
        .checkpoint(|writer| {
            writer.keep(page)?;
            root(writer)
        })
        .unwrap();
    store.commit(&[], &[page]).unwrap();
    // It moves, and is named once more.
    store
        .checkpoint(|writer| {
            writer.put(Some(page), PageKind::CHUNK, b"moved")?;
            root(writer)
        })
        .unwrap();
    store.commit(&[], &[page]).unwrap();
    drop(store);
    for start in COPIES {
        let rotten = fs.copy();
        let mut bytes = rotten.bytes(Path::new(PATH));
        bytes[start + 60] ^= 0xFF;
        rotten.put(Path::new(PATH), bytes);
        let (store, _) = open(Arc::new(rotten), Options::default()).unwrap();
        assert_eq!(*store.pin(page).unwrap(), *b"moved");
        store.check(&mut |error| panic!("{error}")).unwrap();
    }
}

/// What was appended to the old log between the preparation of a checkpoint and its cut, and not waited for: once the
/// checkpoint has ended, a power loss and a rotten header together do not take it away.
#[test]
fn the_log_before_the_cut_is_durable_when_the_checkpoint_is() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let append = |slot| store.append(&[record(RecordTag::ROWS_INSERTED, slot, vec![7; 100])], &[]).unwrap();
    append(1);
    let prepared = store.prepare_checkpoint().unwrap();
    append(2);
    let checkpoint = prepared.cut().unwrap();
    checkpoint.finish(|writer| writer.put(None, PageKind::CATALOG, b"root")).unwrap();
    assert_eq!(store.durable_commit().0, 2);
    for seed in 0..20 {
        let rotten = fs.restart(seed);
        let mut bytes = rotten.bytes(Path::new(PATH));
        bytes[4096 + 60] ^= 0xFF;
        rotten.put(Path::new(PATH), bytes);
        let (_, recovery) = open(Arc::new(rotten), Options::default()).unwrap();
        assert_eq!((recovery.checkpoint.0, recovery.transactions.count()), (0, 2));
    }
}

#[test]
fn both_rotten_is_an_error_that_says_what_of_each() {
    let (fs, _) = unclosed(1, 60);
    let mut bytes = fs.bytes(Path::new(PATH));
    bytes[60] ^= 1;
    bytes[4096] = b'?';
    fs.put(Path::new(PATH), bytes);
    let error = open(Arc::new(fs), Options::default()).unwrap_err();
    assert!(matches!(error, Error::HeadersDamaged { .. }));
    let message = error.to_string();
    assert!(message.starts_with("shop.sinter: both header copies are damaged (at 0: checksum "), "{message}");
    assert!(message.ends_with("at 4096: does not start as a SinterDB database does); restore a backup"), "{message}");
}
