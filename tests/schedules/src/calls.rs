//! Any calls of a store, of several threads, in any order: each of them comes to an end.
//!
//! What they find out is for other tests; here a cycle of locks, or a notification that nobody sends, shows as a
//! deadlock.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{
    CheckpointWriter, Error, ObjectId, Options, PageHandle, PageId, PageKind, ReadAhead, Record, RecordTag, Result,
    Store, Synchronous, UNIT_BYTES,
};

use crate::commits::{PATH, contents, open};
use crate::explore::explore;

fn record() -> Record {
    Record { tag: RecordTag::ROWS_INSERTED, object: ObjectId(1), payload: vec![7; 40] }
}

/// What one thread holds.
#[derive(Default)]
struct Held {
    pages: Vec<Arc<PageHandle>>,
    wishes: Vec<ReadAhead>,
}

/// Puts what a checkpoint or a backup holds, and perhaps does what others do meanwhile.
fn put(store: &Store, pages: &[Arc<PageHandle>], out: &mut CheckpointWriter<'_>) -> Result<PageId> {
    pages.iter().try_for_each(|page| out.keep(page.page()))?;
    if thread_rng().gen_bool(0.3) {
        store.commit(&[record()], &[])?;
    }
    out.put(None, PageKind::CATALOG, b"root")
}

/// One call, or a few that belong together.
fn call(disk: &CrashingFileSystem, store: &Arc<Store>, held: &mut Held) -> Result<()> {
    let Held { pages, wishes } = held;
    match thread_rng().gen_range(0..23) {
        0..4 => {
            pages.push(store.handle(store.write_page(PageKind::CHUNK, &contents(0, 1))?));
        }
        4..7 => {
            let page = store.handle(store.write_page(PageKind::CHUNK, &contents(0, 2))?);
            store.commit(&[record()], &[page.page()])?;
            pages.push(page);
        }
        7 => drop(store.append(&[record()], &[])?),
        8 => drop(pages.pop()),
        9..11 => {
            for page in pages {
                store.pin(page.page())?;
            }
        }
        11..13 => store.checkpoint(|out| put(store, pages, out))?,
        13 => drop(store.prepare_checkpoint()?),
        14 => drop(store.begin_checkpoint()?),
        15 => {
            let levels = [Synchronous::Full, Synchronous::Off];
            store.set_synchronous(levels[thread_rng().gen_range(0..2)])?;
        }
        16 => store.sync()?,
        17 => {
            store.sync_pages()?;
            store.make_durable(store.last_commit())?;
        }
        18 => {
            store.budget().set_limit(thread_rng().gen_range(0..20_000));
            store.for_each_page(&mut |_| {});
            drop(store.stats());
        }
        19 => store.vacuum(&mut |_| ControlFlow::Continue(()), || store.checkpoint(|out| put(store, pages, out)))?,
        20 => {
            let copy = format!("copy-{}.sinter", thread_rng().r#gen::<u64>());
            let go_on = &mut |_| ControlFlow::Continue(());
            store.backup(disk, Path::new(&copy), store.last_commit(), go_on, |out| put(store, pages, out))?;
        }
        21 => wishes.extend(store.read_ahead(&pages.iter().map(|page| page.page()).collect::<Vec<_>>())),
        _ => drop(store.check(&mut |error| panic!("{error}"))?),
    }
    Ok(())
}

fn calls() {
    let disk = CrashingFileSystem::new();
    let (store, _) = open(&disk, Options { memory_limit_bytes: 9000, ..Options::default() });
    store.commit(&[record()], &[]).unwrap();
    drop(store);
    if thread_rng().gen_bool(0.5) {
        // One header copy is passed over, and written again before all else.
        let mut bytes = disk.bytes(Path::new(PATH));
        bytes[UNIT_BYTES + 8..UNIT_BYTES + 16].fill(0xee);
        disk.put(Path::new(PATH), bytes);
    }
    let (store, _) = open(&disk, Options { memory_limit_bytes: 9000, ..Options::default() });
    let is_closed = thread_rng().gen_bool(0.3);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut held = Held::default();
                for _ in 0..4 {
                    match call(&disk, &store, &mut held) {
                        Ok(()) => {}
                        Err(Error::Closed { .. }) if is_closed => return,
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        if is_closed {
            // In a thread of its own: the end of the others would wake this one out of any join, such as the close has.
            scope.spawn(|| store.close(|out| out.put(None, PageKind::CATALOG, b"root")).unwrap());
        }
    });
    drop(store);
    drop(open(&disk.copy(), Options::default()));
}

/// Two logs, both of which are synced, while a checkpoint removes the older one.
fn sync_all() {
    let disk = CrashingFileSystem::new();
    let (store, _) = open(&disk, Options::default());
    let checkpoint = || store.checkpoint(|out| out.put(None, PageKind::CATALOG, b"root"));
    checkpoint().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| checkpoint().unwrap());
        scope.spawn(|| store.commit(&[record()], &[]).unwrap());
        store.sync().unwrap();
    });
}

/// A sync of everything found a log in the directory that was gone when it came to open it, and failed.
#[test]
fn a_checkpoint_may_remove_a_log_that_is_about_to_be_synced() {
    explore(100, sync_all);
}

#[test]
fn any_calls_in_any_order_come_to_an_end() {
    explore(400, calls);
}
