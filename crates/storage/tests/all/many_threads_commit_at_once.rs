//! Threads that write pages, commit, free and pin, while another checkpoints; then a reopen finds exactly what was
//! acknowledged.

use crate::support;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{open, payload, record};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{Options, PageId, PageKind, RecordTag, Store};

/// Each thread's commits carry its number and a count; the log, read back, has all of them in each thread's order.
#[test]
fn the_log_holds_each_acknowledged_commit_once_and_in_order() {
    const THREADS: u64 = 4;
    const COMMITS: u64 = 200;
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                for count in 0..COMMITS {
                    let page = store.write_page(PageKind::CHUNK, &payload(thread * 1000 + count)).unwrap();
                    let payload = [page.0.to_le_bytes(), count.to_le_bytes()].concat();
                    store.commit(&[record(RecordTag::ROWS_INSERTED, thread, payload)], &[page]).unwrap();
                }
            });
        }
    });
    drop(store);
    let (store, recovery) = open(Arc::new(fs.restart(1)), Options::default()).unwrap();
    let mut next = [0; THREADS as usize];
    for (index, transaction) in recovery.transactions.enumerate() {
        let transaction = transaction.unwrap();
        assert_eq!(transaction.commit.0, index as u64 + 1);
        let (thread, words) = (transaction.records[0].object.0, transaction.records[0].payload.as_chunks::<8>().0);
        let (page, count) = (PageId(u64::from_le_bytes(words[0])), u64::from_le_bytes(words[1]));
        assert_eq!(count, std::mem::replace(&mut next[thread as usize], count + 1));
        assert_eq!(*store.pin(page).unwrap(), payload(thread * 1000 + count));
    }
    assert_eq!(next, [COMMITS; THREADS as usize]);
}

/// Pages are written, pinned and freed under the feet of checkpoints; every pin sees its own page's bytes, and none is
/// lost or leaked.
#[test]
fn pages_come_and_go_while_checkpoints_run() {
    let fs = CrashingFileSystem::new();
    let options = Options { memory_limit_bytes: 100_000, ..Options::default() };
    let (store, _) = open(Arc::new(fs.clone()), options).unwrap();
    let done = AtomicBool::new(false);
    let checkpoint = |store: &Store| {
        store.checkpoint(|writer| {
            let root = writer.put(None, PageKind::CATALOG, b"root")?;
            // Gives the others a moment between the cut and the publication.
            std::thread::yield_now();
            Ok(root)
        })
    };
    let kept: Vec<(PageId, u64)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3u64)
            .map(|thread| {
                let store = &store;
                scope.spawn(move || {
                    let mut live = Vec::new();
                    for count in 0..300 {
                        let seed = thread * 1000 + count;
                        let page = store.write_page(PageKind::CHUNK, &payload(seed)).unwrap();
                        if count % 3 != 0 {
                            store.commit(&[record(RecordTag::ROWS_INSERTED, 0, vec![])], &[page]).unwrap();
                        }
                        assert_eq!(*store.pin(page).unwrap(), payload(seed));
                        if count % 3 != 1 {
                            store.free(page);
                        } else {
                            live.push((page, seed));
                        }
                        let (page, seed) = live[live.len() / 2..].first().copied().unwrap_or((page, seed));
                        if count % 3 == 1 {
                            assert_eq!(*store.pin(page).unwrap(), payload(seed));
                        }
                    }
                    live
                })
            })
            .collect();
        let checkpointer = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                checkpoint(&store).unwrap();
            }
        });
        let kept = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
        done.store(true, Ordering::Relaxed);
        checkpointer.join().unwrap();
        kept
    });
    for _ in 0..3 {
        checkpoint(&store).unwrap();
    }
    let stats = store.stats();
    assert_eq!(stats.pages[&PageKind::CHUNK].pages, kept.len() as u64);
    let in_use: u64 = stats.pages.values().map(|count| count.bytes).sum();
    let accounted = in_use + stats.free_bytes + stats.retired_bytes + 2 * 4096;
    assert_eq!(accounted, stats.file_bytes, "no unit is lost");
    store.check(&mut |error| panic!("{error}")).unwrap();
    drop(store);
    let (store, _) = Store::open(Arc::new(fs), Path::new(support::PATH), options).unwrap();
    kept.iter().for_each(|(page, seed)| assert_eq!(*store.pin(*page).unwrap(), payload(*seed)));
}
