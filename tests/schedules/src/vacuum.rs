//! Pages that a vacuum moves, while others free them, write them anew, read them and copy them into a backup.
//!
//! A [`Shop`] has chunks, which commits name and handles free, and a few roots, of which each checkpoint writes a new
//! version under the same ids, as those of tables are.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{
    CheckpointWriter, ObjectId, Options, PageHandle, PageId, PageKind, Record, RecordTag, Result, Store, UNIT_BYTES,
};

use crate::commits::{PATH, contents, open};
use crate::explore::{explore, repeats};

const CHUNKS: u64 = 12;
const ROOTS: usize = 3;

/// A page, and the number that its contents are made of.
type Chunk = (u64, Arc<PageHandle>);

struct Shop {
    disk: CrashingFileSystem,
    store: Arc<Store>,
    roots: [PageId; ROOTS],
    /// The version of the roots that was put last.
    version: AtomicU64,
    /// The last version of which somebody was told that it is durable.
    told: AtomicU64,
    /// What the disk kept when the power went at some moment, and what had been told by then.
    power_losses: Mutex<Vec<(CrashingFileSystem, u64)>>,
}

fn chunk(store: &Arc<Store>, number: u64) -> Chunk {
    let page = store.handle(store.write_page(PageKind::CHUNK, &contents(0, number)).unwrap());
    let record = Record { tag: RecordTag::ROWS_INSERTED, object: ObjectId(1), payload: Vec::new() };
    store.commit(&[record], &[page.page()]).unwrap();
    (number, page)
}

fn root(version: u64) -> Vec<u8> {
    version.to_le_bytes().repeat(10)
}

fn version_of(store: &Store, root: PageId) -> u64 {
    u64::from_le_bytes(*store.pin(root).unwrap().first_chunk().unwrap())
}

fn check_chunk(store: &Store, (number, page): &Chunk) {
    assert_eq!(*store.pin(page.page()).unwrap(), contents(0, *number));
}

impl Shop {
    /// Chunks from the front on, and the roots behind them. Those chunks that are not returned are gone, and their places
    /// return with the next checkpoint.
    fn new(disk: &CrashingFileSystem) -> (Shop, Vec<Chunk>) {
        let memory_limit_bytes = if thread_rng().gen_bool(0.5) { 0 } else { 64 << 10 };
        let (store, _) = open(disk, Options { memory_limit_bytes, ..Options::default() });
        let mut chunks: Vec<Chunk> = (0..CHUNKS).map(|number| chunk(&store, number)).collect();
        let mut roots = [PageId(0); ROOTS];
        let put_first = |out: &mut CheckpointWriter<'_>| {
            for page in &mut roots {
                *page = out.put(None, PageKind::TABLE_ROOT, &root(0))?;
            }
            Ok(roots[0])
        };
        store.checkpoint(put_first).unwrap();
        let (version, told, power_losses) = Default::default();
        let shop = Shop { disk: disk.clone(), store, roots, version, told, power_losses };
        chunks.drain(..6);
        shop.checkpoint().unwrap();
        (shop, chunks)
    }

    /// Writes all roots anew. Checkpoints come one after the other, and so do the versions.
    fn checkpoint(&self) -> Result<()> {
        let mut version = 0;
        self.store.checkpoint(|out| {
            version = self.version.fetch_add(1, Ordering::SeqCst) + 1;
            for page in self.roots {
                out.put(Some(page), PageKind::TABLE_ROOT, &root(version))?;
            }
            Ok(self.roots[0])
        })?;
        self.told.fetch_max(version, Ordering::SeqCst);
        for page in self.roots {
            let found = version_of(&self.store, page);
            assert!(found >= version, "version {found} of page {page} after a checkpoint with {version}");
        }
        if thread_rng().gen_bool(0.2) {
            self.lose_power();
        }
        Ok(())
    }

    fn lose_power(&self) {
        let told = self.told.load(Ordering::SeqCst);
        let survivor = self.disk.restart(thread_rng().r#gen());
        // Nobody else can run while this lock is held.
        self.power_losses.lock().unwrap().push((survivor, told));
    }

    /// Whatever moves, everybody finds what was written last, and never something older.
    fn read(&self, chunks: &[Chunk]) {
        let ids: Vec<PageId> = chunks.iter().map(|(_, page)| page.page()).collect();
        let mut seen = [0; ROOTS];
        for _ in 0..3 {
            let wish = self.store.read_ahead(&ids);
            for (seen, page) in seen.iter_mut().zip(self.roots) {
                let version = version_of(&self.store, page);
                assert!(version >= *seen, "version {version} of page {page} after {seen}");
                *seen = version;
            }
            chunks.iter().for_each(|chunk| check_chunk(&self.store, chunk));
            drop(wish);
        }
    }

    /// Lets go of chunks, and writes others, now and then.
    fn replace(&self, mut chunks: Vec<Chunk>) -> Vec<Chunk> {
        for number in 0..10 {
            match thread_rng().gen_range(0..3) {
                0 if !chunks.is_empty() => drop(chunks.remove(thread_rng().gen_range(0..chunks.len()))),
                1 => chunks.push(chunk(&self.store, 20 + number)),
                _ => chunks.iter().for_each(|chunk| check_chunk(&self.store, chunk)),
            }
        }
        chunks
    }

    /// Copies chunks while they move.
    fn back_up(&self, chunks: &[Chunk]) {
        let (disk, commit) = (CrashingFileSystem::new(), self.store.last_commit());
        // Before each page, so that old places are given to others.
        let checkpoint = &mut |_| {
            if thread_rng().gen_bool(0.5) {
                self.checkpoint().unwrap();
            }
            ControlFlow::Continue(())
        };
        let keep = |out: &mut CheckpointWriter<'_>| {
            chunks.iter().try_for_each(|(_, page)| out.keep(page.page()))?;
            out.put(None, PageKind::CATALOG, b"root")
        };
        self.store.backup(&disk, Path::new(PATH), commit, checkpoint, keep).unwrap();
        let (copy, _) = open(&disk, Options::default());
        chunks.iter().for_each(|chunk| check_chunk(&copy, chunk));
    }

    /// What a disk kept: whole pages, those that are never freed among them, and roots of one version.
    fn check_survivor(&self, disk: &CrashingFileSystem, told: u64, kept: &[Chunk]) {
        let (store, _) = open(disk, Options::default());
        store.check(&mut |error| panic!("{error}")).unwrap();
        kept.iter().for_each(|chunk| check_chunk(&store, chunk));
        let versions = self.roots.map(|page| version_of(&store, page));
        assert!(versions == [versions[0]; ROOTS] && versions[0] >= told, "{versions:?}, told {told}");
    }
}

fn live() {
    let disk = CrashingFileSystem::new();
    let (shop, chunks) = Shop::new(&disk);
    let (kept, replaced): (Vec<Chunk>, Vec<Chunk>) = chunks.into_iter().partition(|(number, _)| number % 2 == 1);
    let has_backup = thread_rng().gen_bool(0.3);
    let replaced = thread::scope(|scope| {
        let replaced = scope.spawn(|| shop.replace(replaced));
        scope.spawn(|| (0..3).for_each(|_| shop.checkpoint().unwrap()));
        scope.spawn(|| shop.read(&kept));
        if has_backup {
            scope.spawn(|| shop.back_up(&kept));
        }
        // Between batches, too.
        let between = &mut |_| {
            if thread_rng().gen_bool(0.2) {
                shop.checkpoint().unwrap();
            }
            ControlFlow::Continue(())
        };
        shop.store.vacuum(between, || shop.checkpoint()).unwrap();
        replaced.join().unwrap()
    });
    let Shop { store, .. } = &shop;
    let version = shop.version.load(Ordering::SeqCst);
    assert_eq!(shop.roots.map(|page| version_of(store, page)), [version; ROOTS], "the last that were put");
    kept.iter().chain(&replaced).for_each(|chunk| check_chunk(store, chunk));
    store.check(&mut |error| panic!("{error}")).unwrap();
    let stats = store.stats();
    let chunks = stats.pages.get(&PageKind::CHUNK).map_or(0, |count| count.pages);
    assert_eq!(chunks, (kept.len() + replaced.len()) as u64, "none that was freed is back");
    let used: u64 = stats.pages.values().map(|count| count.bytes).sum();
    let headers = 2 * UNIT_BYTES as u64;
    assert_eq!(headers + used + stats.free_bytes + stats.retired_bytes, stats.file_bytes, "no place is lost");
    shop.lose_power();
    let power_losses = std::mem::take(&mut *shop.power_losses.lock().unwrap());
    power_losses.into_iter().for_each(|(survivor, told)| shop.check_survivor(&survivor, told, &kept));
}

#[test]
fn pages_move_while_others_free_rewrite_and_copy_them() {
    explore(150, live);
}

#[test]
fn a_seed_repeats_it() {
    repeats(live);
}
