//! Whoever changes something in place learns with the number of his commit up to which one nobody will ask for what was
//! before: who reads, and what is visible, is never behind that.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::support::{open, record};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{
    Built, CheckpointWriter, CommitNumber, Numbered, Options, PageId, PageKind, RecordTag, Result, Store, Synchronous,
    Timeline,
};

/// How often it was committed.
type Root = u64;

fn write(root: &Root, out: &mut CheckpointWriter<'_>) -> Result<PageId> {
    out.put(None, PageKind::CATALOG, &root.to_le_bytes())
}

fn shop(disk: &CrashingFileSystem, synchronous: Synchronous) -> Arc<Timeline<Root>> {
    let (store, recovery) = open(Arc::new(disk.clone()), Options { synchronous, ..Options::default() }).unwrap();
    let root = recovery.root.map(|page| u64::from_le_bytes(*store.pin(page).unwrap().first_chunk().unwrap()));
    let replayed = recovery.transactions.map(Result::unwrap).count() as u64;
    Timeline::new(Arc::new(store), root.unwrap_or(0) + replayed)
}

fn next(pending: &Arc<Root>) -> Result<Option<Built<Root>>> {
    let records = vec![record(RecordTag::TREE_CHANGED, 1, Vec::new())];
    Ok(Some(Built { root: Arc::new(**pending + 1), records, pages: Vec::new() }))
}

/// Commits; what the commit heard before it was durable.
fn commit(timeline: &Timeline<Root>) -> Numbered {
    let mut entered = timeline.enter(None);
    let numbered = entered.number(next).unwrap().unwrap();
    assert!(timeline.visible_commit() >= numbered.horizon);
    entered.finish().unwrap();
    assert_eq!(timeline.visible_commit(), numbered.commit);
    assert_eq!(*timeline.visible(), numbered.commit.0);
    numbered
}

fn numbered(commit: u64, horizon: u64) -> Numbered {
    Numbered { commit: CommitNumber(commit), horizon: CommitNumber(horizon) }
}

#[test]
fn the_horizon_is_what_everybody_sees() {
    let timeline = shop(&CrashingFileSystem::new(), Synchronous::Full);
    assert_eq!(commit(&timeline), numbered(1, 0), "it is not visible before it is durable");
    assert_eq!(commit(&timeline), numbered(2, 1));
    let first = timeline.snapshot();
    assert_eq!((first.commit(), **first.root()), (CommitNumber(2), 2));
    assert_eq!(commit(&timeline), numbered(3, 2));
    let (second, third) = (timeline.snapshot(), timeline.snapshot());
    assert_eq!(commit(&timeline), numbered(4, 2));
    drop(first);
    assert_eq!(commit(&timeline), numbered(5, 3));
    drop(second);
    assert_eq!(timeline.horizon(), CommitNumber(3), "another one is of that commit");
    drop(third);
    assert_eq!(timeline.horizon(), CommitNumber(5));
    assert_eq!(commit(&timeline), numbered(6, 5));
}

#[test]
fn what_waits_for_no_sync_is_visible_with_its_number() {
    for timeline in [shop(&CrashingFileSystem::new(), Synchronous::Off), Timeline::new(Arc::new(Store::memory()), 0)] {
        assert_eq!(commit(&timeline), numbered(1, 1));
        let snapshot = timeline.snapshot();
        assert_eq!(commit(&timeline), numbered(2, 1));
        drop(snapshot);
        assert_eq!(commit(&timeline), numbered(3, 3));
    }
}

#[test]
fn checkpoints_and_backups_read_what_they_are_of() {
    let disk = CrashingFileSystem::new();
    let timeline = shop(&disk, Synchronous::Full);
    commit(&timeline);
    let checkpoint = timeline.checkpoint(|root, out| {
        assert_eq!(out.commit(), CommitNumber(1));
        assert_eq!(commit(&timeline), numbered(2, 1));
        assert_eq!(commit(&timeline), numbered(3, 1));
        write(root, out)
    });
    checkpoint.unwrap();
    assert_eq!(timeline.horizon(), CommitNumber(3));
    let go_on = &mut |_| ControlFlow::Continue(());
    let backup = timeline.backup(&disk, Path::new("copy.sinter"), go_on, |root, out| {
        assert_eq!(commit(&timeline), numbered(4, 3));
        assert_eq!(commit(&timeline), numbered(5, 3));
        write(root, out)
    });
    backup.unwrap();
    assert_eq!(timeline.horizon(), CommitNumber(5));
    let failed = timeline.checkpoint(|_, _| Err(sinter_storage::Error::GivenUp { path: "shop.sinter".into() }));
    assert!(failed.is_err());
    assert_eq!(timeline.horizon(), CommitNumber(5), "one that was given up reads nothing any more");
}

#[test]
fn a_commit_that_nobody_waits_for_keeps_nobody_waiting_and_is_in_the_file() {
    let disk = CrashingFileSystem::new();
    let timeline = shop(&disk, Synchronous::Full);
    commit(&timeline);
    // One that comes to nothing, and one that has its number.
    drop(timeline.enter(None));
    let refused = timeline.enter(None).number(|_| Err(sinter_storage::Error::GivenUp { path: "shop.sinter".into() }));
    assert!(refused.is_err());
    assert_eq!(timeline.enter(None).number(|_| Ok::<_, sinter_storage::Error>(None)).unwrap(), None);
    let mut entered = timeline.enter(None);
    assert_eq!(entered.number(next).unwrap(), Some(numbered(2, 1)));
    drop(entered);
    assert_eq!(timeline.visible_commit(), CommitNumber(1));
    drop(timeline.exclusive());
    timeline.close(write).unwrap();
    drop(timeline);
    assert_eq!(*shop(&disk, Synchronous::Full).visible(), 2);
}

#[test]
fn a_level_that_changes_between_number_and_finish_hides_no_commit() {
    for (before, after) in [(Synchronous::Full, Synchronous::Off), (Synchronous::Off, Synchronous::Full)] {
        let (store, _) =
            open(Arc::new(CrashingFileSystem::new()), Options { synchronous: before, ..Options::default() }).unwrap();
        let store = Arc::new(store);
        let timeline = Timeline::new(Arc::clone(&store), 0);
        let mut entered = timeline.enter(None);
        entered.number(next).unwrap();
        store.set_synchronous(after).unwrap();
        entered.finish().unwrap();
        assert_eq!(timeline.visible_commit(), CommitNumber(1));
        commit(&timeline);
    }
}
