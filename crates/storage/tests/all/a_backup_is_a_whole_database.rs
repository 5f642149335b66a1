//! A backup holds one state, as a closed database that opens, takes commits and knows nothing of the first one's logs;
//! whatever happens while it is written, there is a whole file under its name or none.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::{PATH, Shelf, Workload, open, payload, record};
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, Fault, FaultyFileSystem, Trigger};
use sinter_storage::{
    BackupProgress, Built, CheckpointWriter, CommitNumber, Error, FileSystem, HeapFileSystem, Options, PageHandle,
    PageId, PageKind, RecordTag, Result, Store, Timeline,
};

const COPY: &str = "copy.sinter";

/// Pages, each with the seed of what it holds.
#[derive(Debug, Clone, Default)]
struct Root {
    pages: Vec<(Arc<PageHandle>, u64)>,
}

impl Root {
    fn seeds(&self) -> Vec<u64> {
        self.pages.iter().map(|(_, seed)| *seed).collect()
    }

    fn write(&self, out: &mut CheckpointWriter<'_>) -> Result<PageId> {
        let mut bytes = Vec::new();
        for (page, seed) in &self.pages {
            out.keep(page.page())?;
            bytes.extend(page.page().0.to_le_bytes());
            bytes.extend(seed.to_le_bytes());
        }
        // A version that another replaces, and one that was kept in vain.
        let root = out.put(None, PageKind::CATALOG, b"a first version")?;
        out.put(Some(root), PageKind::CATALOG, &bytes)
    }
}

/// Commits a page with each of these seeds, and takes as many of the oldest off as are more than `pages_max`.
fn commit(store: &Arc<Store>, timeline: &Timeline<Root>, seeds: &[u64], pages_max: usize) -> Result<CommitNumber> {
    let mut pages = Vec::new();
    for &seed in seeds {
        pages.push((store.handle(store.write_page(PageKind::CHUNK, &payload(seed))?), seed));
    }
    store.sync_pages()?;
    let built = |pending: &Arc<Root>| -> Result<Option<Built<Root>>> {
        let mut root = (**pending).clone();
        root.pages.extend(pages.iter().cloned());
        let superfluous = root.pages.len().saturating_sub(pages_max);
        root.pages.drain(..superfluous);
        let named = pages.iter().map(|(page, _)| page.page()).collect();
        let records = vec![record(RecordTag::ROWS_INSERTED, 1, Vec::new())];
        Ok(Some(Built { root: Arc::new(root), records, pages: named }))
    };
    timeline.commit(None, built).map(|commit| commit.expect("there is something to commit"))
}

fn backup(timeline: &Timeline<Root>, fs: &dyn FileSystem, path: &str) -> Result<()> {
    timeline.backup(fs, Path::new(path), &mut |_| ControlFlow::Continue(()), Root::write)
}

/// The commit and the seeds that a backup holds; each page is compared with what its seed makes.
fn restored(fs: Arc<dyn FileSystem>, path: &str) -> Result<(CommitNumber, Vec<u64>)> {
    let options = Options { read_only: true, ..Options::default() };
    let (store, recovery) = Store::open(fs, Path::new(path), options)?;
    assert_eq!((recovery.notes.len(), recovery.transactions.count()), (0, 0));
    let list = store.pin(recovery.root.expect("it has a root"))?;
    let mut seeds = Vec::new();
    for pair in list.chunks_exact(16) {
        let [page, seed] = [0, 8].map(|at| u64::from_le_bytes(pair[at..at + 8].try_into().expect("eight bytes")));
        assert_eq!(store.pin(PageId(page))?[..], payload(seed));
        seeds.push(seed);
    }
    store.check(&mut |error| panic!("{error}"))?;
    Ok((recovery.commit, seeds))
}

/// A database with ten pages after ten commits.
fn ten_commits(fs: Arc<dyn FileSystem>) -> (Arc<Store>, Arc<Timeline<Root>>) {
    let (store, _) = open(fs, Options::default()).unwrap();
    with_ten_commits(store)
}

fn with_ten_commits(store: Store) -> (Arc<Store>, Arc<Timeline<Root>>) {
    let store = Arc::new(store);
    let timeline = Timeline::new(Arc::clone(&store), Root::default());
    for seed in 0..10 {
        commit(&store, &timeline, &[seed], 100).unwrap();
    }
    (store, timeline)
}

#[test]
fn it_opens_takes_commits_and_has_no_gaps() {
    let fs = CrashingFileSystem::new();
    let (store, timeline) = ten_commits(Arc::new(fs.clone()));
    timeline.checkpoint(Root::write).unwrap();
    commit(&store, &timeline, &[10], 6).unwrap();
    backup(&timeline, &fs, COPY).unwrap();
    let mut last_page = PageId(0);
    store.for_each_page(&mut |info| last_page = info.page);
    commit(&store, &timeline, &[11], 100).unwrap();
    let disk = fs.restart(1);
    assert_eq!(restored(Arc::new(disk.clone()), COPY).unwrap(), (CommitNumber(11), vec![5, 6, 7, 8, 9, 10]));
    let (copy, recovery) = Store::open(Arc::new(disk.clone()), Path::new(COPY), Options::default()).unwrap();
    let stats = copy.stats();
    // The first version of the root is the one gap.
    assert_eq!(stats.free_bytes, 4096);
    assert_ne!(stats.database, store.stats().database);
    assert_eq!(stats.pages[&PageKind::CHUNK].pages, 6);
    // Ids go on behind those of the first database, and commits behind its commits.
    let page = copy.write_page(PageKind::CHUNK, b"new").unwrap();
    assert!(page > last_page);
    assert_eq!(copy.commit(&[], &[page]).unwrap(), CommitNumber(12));
    let root = recovery.root.unwrap();
    copy.close(|_| Ok(root)).unwrap();
    assert_eq!(restored(Arc::new(disk), COPY).unwrap().1, [5, 6, 7, 8, 9, 10]);
}

#[test]
fn a_log_of_the_first_database_is_foreign_to_it() {
    let fs = CrashingFileSystem::new();
    let (_store, timeline) = ten_commits(Arc::new(fs.clone()));
    timeline.checkpoint(Root::write).unwrap();
    backup(&timeline, &fs, COPY).unwrap();
    for log in fs.files().into_iter().filter(|path| path.to_string_lossy().contains("-log.")) {
        let disk = fs.copy();
        disk.put(Path::new("copy.sinter-log.1"), fs.bytes(&log));
        let refused = restored(Arc::new(disk), COPY);
        assert!(refused.is_err_and(|error| error.is_damage()), "{}", log.display());
    }
    // Nor is a backup made where such a log would be taken for its own.
    fs.put(Path::new("other.sinter-log.7"), Vec::new());
    let refused = backup(&timeline, &fs, "other.sinter").unwrap_err();
    assert!(refused.to_string().contains("other.sinter-log.7"), "{refused}");
}

#[test]
fn a_name_that_is_taken_is_refused() {
    let fs = Arc::new(HeapFileSystem::new());
    let (_store, timeline) = ten_commits(Arc::clone(&fs) as Arc<dyn FileSystem>);
    assert!(matches!(backup(&timeline, &*fs, PATH), Err(Error::Exists { .. })));
    backup(&timeline, &*fs, COPY).unwrap();
    assert!(matches!(backup(&timeline, &*fs, COPY), Err(Error::Exists { .. })));
    // Two at once.
    let mut second = None;
    let first = timeline.backup(
        &*fs,
        Path::new("two.sinter"),
        &mut |_| {
            second.get_or_insert_with(|| backup(&timeline, &*fs, "two.sinter"));
            ControlFlow::Continue(())
        },
        Root::write,
    );
    first.unwrap();
    assert!(matches!(second, Some(Err(Error::Locked { .. }))), "{second:?}");
    assert_eq!(restored(fs, "two.sinter").unwrap().1, (0..10).collect::<Vec<_>>());
}

#[test]
fn it_says_how_far_it_is_and_can_be_broken_off() {
    let fs = CrashingFileSystem::new();
    let (_store, timeline) = ten_commits(Arc::new(fs.clone()));
    let mut told: Vec<BackupProgress> = Vec::new();
    let mut note = |progress| {
        told.push(progress);
        ControlFlow::Continue(())
    };
    timeline.backup(&fs, Path::new(COPY), &mut note, Root::write).unwrap();
    assert_eq!(told.len(), 11, "each page, and the end");
    assert!(told.is_sorted_by(|a, b| a.bytes_done < b.bytes_done && a.bytes_total == b.bytes_total));
    assert_eq!(told[10].bytes_done, told[10].bytes_total);
    let files = fs.files();
    for after in 0..11 {
        let mut calls = 0;
        let mut break_off = |_| {
            calls += 1;
            if calls > after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let ended = timeline.backup(&fs, Path::new("other.sinter"), &mut break_off, Root::write);
        assert!(matches!(ended, Err(Error::GivenUp { .. })));
        assert_eq!(fs.files(), files);
    }
    let mut go_on = |_| ControlFlow::Continue(());
    let ended = timeline.backup(&fs, Path::new("other.sinter"), &mut go_on, |_, _| Err(Error::caller("no")));
    assert_eq!(ended.unwrap_err().to_string(), "checkpoint abandoned: no");
    assert_eq!(fs.files(), files);
}

#[test]
fn readers_and_databases_in_memory_can_be_saved() {
    let fs = CrashingFileSystem::new();
    let (_store, timeline) = with_ten_commits(Store::memory());
    backup(&timeline, &fs, COPY).unwrap();
    assert_eq!(restored(Arc::new(fs.restart(1)), COPY).unwrap(), (CommitNumber(10), (0..10).collect()));
    let options = Options { read_only: true, ..Options::default() };
    let (reader, recovery) = Store::open(Arc::new(fs.clone()), Path::new(COPY), options).unwrap();
    let reader = Arc::new(reader);
    let (mut pages, list) = (Vec::new(), reader.pin(recovery.root.unwrap()).unwrap());
    for pair in list.chunks_exact(16) {
        let [page, seed] = [0, 8].map(|at| u64::from_le_bytes(pair[at..at + 8].try_into().unwrap()));
        pages.push((reader.handle(PageId(page)), seed));
    }
    let timeline = Timeline::new(reader, Root { pages });
    backup(&timeline, &fs, "second.sinter").unwrap();
    assert_eq!(restored(Arc::new(fs.restart(2)), "second.sinter").unwrap(), (CommitNumber(10), (0..10).collect()));
}

#[test]
fn what_is_durable_can_be_saved_from_a_poisoned_store() {
    let disk = CrashingFileSystem::new();
    let fs = FaultyFileSystem::on_disk(&disk);
    let (store, timeline) = ten_commits(Arc::new(fs.clone()));
    fs.plan(Trigger::next().of(Call::Sync).containing("-log."), DiskFault::LostSync);
    commit(&store, &timeline, &[10], 100).unwrap_err();
    assert!(store.poisoned().is_some());
    backup(&timeline, &fs, COPY).unwrap();
    assert_eq!(restored(Arc::new(disk.restart(1)), COPY).unwrap(), (CommitNumber(10), (0..10).collect()));
}

#[test]
fn damage_is_named_and_leaves_no_file() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options { memory_limit_bytes: 0, ..Options::default() }).unwrap();
    let (store, timeline) = with_ten_commits(store);
    let mut place = None;
    store.for_each_page(&mut |info| place = Some((info.page, info.offset)));
    let ((page, offset), mut bytes) = (place.unwrap(), fs.bytes(Path::new(PATH)));
    bytes[offset as usize + 33] ^= 1;
    let file = fs.open(Path::new(PATH), sinter_storage::fs::OpenMode::Write).unwrap();
    file.write_at(0, &[&bytes]).unwrap();
    let files = fs.files();
    let error = backup(&timeline, &fs, COPY).unwrap_err();
    assert!(matches!(error, Error::DamagedPage { page: Some(named), .. } if named == page), "{error}");
    assert_eq!(fs.files(), files);
}

#[test]
fn a_power_loss_at_any_call_leaves_a_whole_file_or_none() {
    let whole = CrashingFileSystem::new();
    let (_store, timeline) = ten_commits(Arc::new(whole.clone()));
    let first = whole.calls().len();
    backup(&timeline, &whole, COPY).unwrap();
    let mut found = [0, 0];
    for index in first..=whole.calls().len() {
        let fs = CrashingFileSystem::new();
        let (_store, timeline) = ten_commits(Arc::new(fs.clone()));
        fs.plan(index as u64, Fault::Crash);
        let is_done = backup(&timeline, &fs, COPY).is_ok();
        for seed in 0..8 {
            let disk = fs.restart(index as u64 ^ seed << 32);
            let is_there = disk.exists(Path::new(COPY)).unwrap();
            assert!(is_there || !is_done, "crash at call {index}: it was promised");
            found[usize::from(is_there)] += 1;
            if is_there {
                let (_, seeds) = restored(Arc::new(disk.clone()), COPY).unwrap();
                assert_eq!(seeds, (0..10).collect::<Vec<_>>(), "crash at call {index}, {seed}");
            } else {
                // What was left half done is no hindrance.
                let (_store, timeline) = ten_commits(Arc::new(HeapFileSystem::new()));
                backup(&timeline, &disk, COPY).unwrap();
            }
            let (store, recovery) = open(Arc::new(disk), Options::default()).unwrap();
            assert_eq!((recovery.commit, store.stats().pages[&PageKind::CHUNK].pages), (CommitNumber(10), 10));
        }
    }
    println!("none {}, whole {}", found[0], found[1]);
    assert!(found.iter().all(|count| *count > 8));
}

#[test]
fn a_fault_at_any_call_leaves_no_file_and_the_database_goes_on() {
    for fault in [DiskFault::IoError, DiskFault::NoSpace, DiskFault::TornWrite, DiskFault::LostSync] {
        let mut injected = 0;
        for index in 0.. {
            let disk = CrashingFileSystem::new();
            let fs = FaultyFileSystem::on_disk(&disk);
            let (store, _) =
                open(Arc::new(fs.clone()), Options { memory_limit_bytes: 0, ..Options::default() }).unwrap();
            let (store, timeline) = with_ten_commits(store);
            fs.plan(Trigger::at(index), fault);
            let done = backup(&timeline, &fs, COPY);
            if fs.injected().is_empty() {
                done.unwrap();
                break;
            }
            injected += 1;
            let context = format!("{fault:?} at call {index}, {:?}", fs.injected());
            fs.clear_plan();
            if let Err(error) = done {
                let is_full = fault == DiskFault::NoSpace;
                assert!(!is_full || matches!(error, Error::DiskFull { .. }), "{context}: {error}");
                let files = disk.files();
                // Who could not lock what it had created does not know whether it is another's.
                let may_stay = fs.injected()[0].call == Call::Lock;
                let is_left = |path: &PathBuf| path.to_string_lossy().starts_with("copy.sinter");
                assert!(may_stay || !files.iter().any(is_left), "{context}: {files:?}");
                backup(&timeline, &fs, COPY).unwrap_or_else(|error| panic!("{context}: {error}"));
            }
            assert_eq!(store.poisoned(), None, "{context}: nothing of its own is in doubt");
            assert_eq!(restored(Arc::new(disk.restart(index)), COPY).unwrap().1, (0..10).collect::<Vec<_>>());
            commit(&store, &timeline, &[10], 100).unwrap();
        }
        println!("{fault:?}: {injected}");
        assert!(injected > 0);
    }
}

/// Others commit, free, make checkpoints and move pages while backups are written.
#[test]
fn each_holds_one_state_while_others_go_on() {
    let fs = CrashingFileSystem::new();
    let options = Options { memory_limit_bytes: 64 << 10, ..Options::default() };
    let (store, _) = open(Arc::new(fs.clone()), options).unwrap();
    let (store, timeline) = with_ten_commits(store);
    let history = Mutex::new(vec![(CommitNumber(10), timeline.visible().seeds())]);
    let is_over = AtomicBool::new(false);
    let copies = std::thread::scope(|scope| {
        scope.spawn(|| {
            for seed in 10..150 {
                let number = commit(&store, &timeline, &[2 * seed, 2 * seed + 1], 30).unwrap();
                history.lock().unwrap().push((number, timeline.pending().seeds()));
            }
            is_over.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                store.vacuum(&mut |_| ControlFlow::Continue(()), || timeline.checkpoint(Root::write)).unwrap();
            }
        });
        let mut copies = 0;
        while !is_over.load(Ordering::Acquire) {
            backup(&timeline, &fs, &format!("{copies}.sinter")).unwrap();
            copies += 1;
        }
        copies
    });
    let history = history.into_inner().unwrap();
    let disk = fs.restart(1);
    for copy in 0..copies {
        let found = restored(Arc::new(disk.clone()), &format!("{copy}.sinter")).unwrap();
        assert!(history.contains(&found), "backup {copy} of {copies}: {found:?}");
    }
    println!("{copies} backups");
}

/// The room of the other tests: a state with records, that puts its pages in all the ways there are.
#[test]
fn the_same_closure_writes_checkpoints_and_backups() {
    for seed in 0..8 {
        let fs = CrashingFileSystem::new();
        let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
        let mut workload = Workload::new(seed, Shelf::default());
        workload.run(&store, 60).unwrap();
        workload.backup(&store, &fs, COPY).unwrap();
        let (copy, recovery) = Store::open(Arc::new(fs.restart(seed)), Path::new(COPY), Options::default()).unwrap();
        let shelf = Shelf::recover(&copy, recovery).unwrap();
        assert!(shelf == *workload.shelf(), "seed {seed}");
        shelf.check_pages(&copy).unwrap();
        shelf.check_no_leaks(&copy);
    }
}
