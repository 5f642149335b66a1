//! Commits of several threads, with a checkpoint and its cut, a vacuum, a backup, rewrites and exclusive transactions
//! between them; then the power goes, or the last handle.
//!
//! A [`State`] counts each thread's commits and holds a few pages. Each record says what its commit was built on, so
//! replay sees whether the order is the one in which commits were made.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use sinter_storage::testing::{CrashingFileSystem, Fault};
use sinter_storage::{
    Built, CheckpointWriter, Error, ObjectId, Options, PageHandle, PageId, PageKind, Record, RecordTag, Recovery,
    Result, Store, Timeline,
};

use crate::explore::{explore, repeats};

pub(crate) const PATH: &str = "shop.sinter";
const WRITERS: usize = 3;
/// Each writer keeps the pages of so many commits.
const PAGES_KEPT: usize = 2;
/// A word that stands for no page.
const NONE: u64 = 0;

pub(crate) fn open(disk: &CrashingFileSystem, options: Options) -> (Arc<Store>, Recovery) {
    let (store, recovery) = Store::open(Arc::new(disk.clone()), Path::new(PATH), options).unwrap();
    (Arc::new(store), recovery)
}

/// What a page holds; it may take more than one unit.
pub(crate) fn contents(writer: usize, count: u64) -> Vec<u8> {
    vec![(writer as u64 * 80 + count) as u8; 60 + 4000 * (count % 3) as usize]
}

#[derive(Clone, Default)]
struct State {
    counts: [u64; WRITERS],
    /// The newest last, each with the count of its commit.
    pages: [Vec<(u64, Arc<PageHandle>)>; WRITERS],
}

impl State {
    fn commits(&self) -> u64 {
        self.counts.iter().sum()
    }

    fn pages(&self) -> impl Iterator<Item = (usize, u64, &Arc<PageHandle>)> {
        let numbered = self.pages.iter().enumerate();
        numbered.flat_map(|(writer, pages)| pages.iter().map(move |(count, handle)| (writer, *count, handle)))
    }

    /// The next commit of a writer, and its record.
    fn commit(&self, writer: usize, page: Option<Arc<PageHandle>>) -> Built<State> {
        let words = self.counts.into_iter().chain([page.as_ref().map_or(NONE, |page| page.page().0)]);
        let payload = words.flat_map(u64::to_le_bytes).collect();
        let record = Record { tag: RecordTag::ROWS_INSERTED, object: ObjectId(writer as u64), payload };
        let pages = page.iter().map(|page| page.page()).collect();
        let mut root = self.clone();
        root.add(writer, page);
        Built { root: Arc::new(root), records: vec![record], pages }
    }

    fn add(&mut self, writer: usize, page: Option<Arc<PageHandle>>) {
        self.counts[writer] += 1;
        let pages = &mut self.pages[writer];
        pages.extend(page.map(|page| (self.counts[writer], page)));
        if pages.len() > PAGES_KEPT {
            pages.remove(0);
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut words = self.counts.to_vec();
        for pages in &self.pages {
            words.push(pages.len() as u64);
            words.extend(pages.iter().flat_map(|(count, page)| [*count, page.page().0]));
        }
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    fn decode(bytes: &[u8], store: &Arc<Store>) -> State {
        let mut words = words_of(bytes).into_iter();
        let mut next = || words.next().unwrap();
        let counts = std::array::from_fn(|_| next());
        let pages =
            std::array::from_fn(|_| (0..next()).map(|_| (next(), store.handle(PageId(next())))).collect::<Vec<_>>());
        State { counts, pages }
    }

    /// The last checkpoint, and what the logs say beyond it. Pages that nobody reaches go.
    fn recover(store: &Arc<Store>, recovery: Recovery) -> State {
        let root = recovery.root.map(|root| store.pin(root).unwrap());
        let mut state = root.map_or_else(State::default, |root| State::decode(&root, store));
        for transaction in recovery.transactions {
            for record in transaction.unwrap().records {
                let words = words_of(&record.payload);
                let (before, page) = words.split_at(WRITERS);
                if before.iter().sum::<u64>() < state.commits() {
                    continue;
                }
                assert_eq!(before, state.counts, "commits in the order in which they were made");
                let page = (page[0] != NONE).then(|| store.handle(PageId(page[0])));
                state.add(record.object.0 as usize, page);
            }
        }
        assert_eq!(state.commits(), recovery.commit.0);
        let reached: Vec<PageId> = state.pages().map(|(_, _, page)| page.page()).chain(recovery.root).collect();
        let mut unreached = Vec::new();
        store.for_each_page(&mut |info| unreached.extend(Some(info.page).filter(|page| !reached.contains(page))));
        unreached.into_iter().for_each(|page| store.free(page));
        state
    }

    fn check_pages(&self, store: &Store) {
        for (writer, count, page) in self.pages() {
            assert_eq!(*store.pin(page.page()).unwrap(), contents(writer, count));
        }
    }
}

fn words_of(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

/// A store in use, and what was said of it.
#[derive(Clone)]
struct Life {
    disk: CrashingFileSystem,
    store: Arc<Store>,
    timeline: Arc<Timeline<State>>,
    /// How many commits each writer was told are durable.
    told: Arc<[AtomicU64; WRITERS]>,
    /// What the disk kept when the power went at some moment, and what had been told by then.
    power_losses: Arc<Mutex<Vec<(CrashingFileSystem, [u64; WRITERS])>>>,
}

impl Life {
    fn begin(disk: &CrashingFileSystem) -> Life {
        let (store, _) = open(disk, Options { memory_limit_bytes: 8192, ..Options::default() });
        let timeline = Timeline::new(Arc::clone(&store), State::default());
        Life { disk: disk.clone(), store, timeline, told: Arc::default(), power_losses: Arc::default() }
    }

    fn lose_power(&self) {
        let told = self.told();
        let survivor = self.disk.restart(thread_rng().r#gen());
        // Nobody else can run while this lock is held.
        self.power_losses.lock().unwrap().push((survivor, told));
    }

    fn told(&self) -> [u64; WRITERS] {
        std::array::from_fn(|writer| self.told[writer].load(Ordering::SeqCst))
    }

    /// So many commits of one writer; returns early when the store was closed.
    fn write(&self, writer: usize, commits: u64) -> Result<()> {
        for _ in 0..commits {
            // Nobody else commits for this writer.
            let count = self.timeline.pending().counts[writer] + 1;
            let exclusive = thread_rng().gen_bool(0.1).then(|| self.timeline.exclusive());
            let settled = exclusive.as_ref().map(|_| self.timeline.pending().commits());
            // After a failure, some will never be.
            let is_sound = self.store.poisoned().is_none();
            let visible = self.timeline.visible().commits();
            assert!(!is_sound || settled.is_none_or(|settled| settled == visible), "all commits are visible");
            let mut page = None;
            if thread_rng().gen_bool(0.7) {
                page = Some(self.store.handle(self.store.write_page(PageKind::CHUNK, &contents(writer, count))?));
            }
            if thread_rng().gen_bool(0.3) {
                self.store.sync_pages()?;
            }
            let build = |pending: &Arc<State>| -> Result<_> {
                assert!(settled.is_none_or(|settled| settled == pending.commits()), "nobody else committed");
                Ok(Some(pending.commit(writer, page)))
            };
            let commit = self.timeline.commit(exclusive.as_ref(), build)?.unwrap();
            assert!(self.store.durable_commit() >= commit);
            assert!(self.timeline.visible().counts[writer] >= count);
            self.told[writer].store(count, Ordering::SeqCst);
            if thread_rng().gen_bool(0.3) {
                self.lose_power();
            }
        }
        Ok(())
    }

    /// Readers see what is durable, and later more of it; its pages stay however old it is.
    fn read(&self) -> Result<()> {
        let mut before = Arc::new(State::default());
        for _ in 0..3 {
            let state = self.timeline.visible();
            assert!(state.commits() <= self.store.durable_commit().0, "nobody reads what is not durable");
            assert!((0..WRITERS).all(|writer| state.counts[writer] >= before.counts[writer]));
            before = state;
        }
        let pending = self.timeline.pending().commits();
        self.timeline.catch_up()?;
        assert!(self.timeline.visible().commits() >= pending);
        Ok(())
    }

    /// Pins what a reader's state holds; not to be run beside a close.
    fn pin(&self) -> Result<()> {
        let old = self.timeline.visible();
        for _ in 0..2 {
            self.timeline.visible().check_pages(&self.store);
            old.check_pages(&self.store);
        }
        Ok(())
    }

    /// Keeps pages in other places; the rows, so to speak, stay the same.
    fn rewrite(&self) -> Result<()> {
        for _ in 0..2 {
            let seen = self.timeline.pending();
            let Some((writer, count, old)) = seen.pages().next() else { continue };
            let copy = self.store.write_page(PageKind::CHUNK, &contents(writer, count))?;
            let copy = self.store.handle(copy);
            self.timeline.rewrite(|pending| {
                let mut next = (**pending).clone();
                let at = next.pages[writer].iter().position(|(_, page)| Arc::ptr_eq(page, old))?;
                next.pages[writer][at].1 = copy;
                Some(next)
            });
        }
        Ok(())
    }

    fn put(state: &State, out: &mut CheckpointWriter<'_>, home: &mut Option<PageId>) -> Result<PageId> {
        assert_eq!(state.commits(), out.commit().0, "the root is that of the cut");
        for (_, _, page) in state.pages() {
            out.keep(page.page())?;
        }
        if let Some(old) = home.take_if(|_| thread_rng().gen_bool(0.5)) {
            out.free(old);
        }
        let page = out.put(*home, PageKind::CATALOG, &state.encode())?;
        *home = Some(page);
        Ok(page)
    }

    fn checkpoint(&self, home: &mut Option<PageId>) -> Result<()> {
        let mut next = *home;
        self.timeline.checkpoint(|state, out| Life::put(state, out, &mut next))?;
        *home = next;
        Ok(())
    }

    /// Writes what is visible onto a disk of its own, while everything goes on.
    fn back_up(&self) -> Result<()> {
        let (disk, told) = (CrashingFileSystem::new(), self.told());
        let go_on = &mut |_| ControlFlow::Continue(());
        self.timeline.backup(&disk, Path::new(PATH), go_on, |state, out| Life::put(state, out, &mut None))?;
        let (store, recovery) = open(&disk, Options::default());
        let state = State::recover(&store, recovery);
        assert!((0..WRITERS).all(|writer| state.counts[writer] >= told[writer]), "{:?}, told {told:?}", state.counts);
        state.check_pages(&store);
        Ok(())
    }
}

/// Opens what a disk kept: what was told is there, in its order, and goes on from there.
fn check_survivor(disk: &CrashingFileSystem, told: [u64; WRITERS]) {
    let (store, recovery) = open(disk, Options::default());
    let mut home = recovery.root;
    let state = State::recover(&store, recovery);
    assert!((0..WRITERS).all(|writer| state.counts[writer] >= told[writer]), "{:?}, told {told:?}", state.counts);
    state.check_pages(&store);
    store.check(&mut |error| panic!("{error}")).unwrap();
    let before = state.counts[0];
    let timeline = Timeline::new(Arc::clone(&store), state);
    let (told, power_losses) = Default::default();
    let life = Life { disk: disk.clone(), store, timeline, told, power_losses };
    life.write(0, 1).unwrap();
    assert_eq!(life.told()[0], before + 1);
    life.checkpoint(&mut home).unwrap();
    life.timeline.visible().check_pages(&life.store);
}

/// All at once, until a call to the disk fails, or it is closed, or just over. The power may go whenever somebody was
/// told something.
fn live() {
    let disk = CrashingFileSystem::new();
    let life = Life::begin(&disk);
    let is_closed = thread_rng().gen_bool(0.3);
    let [is_faulty, has_vacuum, has_backup] = [0.2, 0.3, 0.2].map(|chance| thread_rng().gen_bool(chance));
    if is_faulty {
        let call = disk.calls().len() as u64 + thread_rng().gen_range(0..60);
        disk.plan(call, Fault::Fail(std::io::ErrorKind::Other));
    }
    let allow_closed = |result: Result<()>| match result {
        Ok(()) | Err(Error::Closed { .. }) => {}
        Err(error) => assert!(is_faulty, "{error}"),
    };
    let mut home = None;
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let life = &life;
            scope.spawn(move || allow_closed(life.write(writer, 2)));
        }
        scope.spawn(|| allow_closed(life.read()));
        if !is_closed {
            scope.spawn(|| allow_closed(life.pin()));
        }
        scope.spawn(|| allow_closed(life.rewrite()));
        if has_backup && !is_faulty {
            scope.spawn(|| allow_closed(life.back_up()));
        }
        scope.spawn(|| life.lose_power());
        allow_closed(life.checkpoint(&mut home));
        allow_closed(match has_vacuum {
            true => life.store.vacuum(&mut |_| ControlFlow::Continue(()), || life.checkpoint(&mut home)),
            false => life.checkpoint(&mut home),
        });
        if is_closed {
            allow_closed(life.timeline.close(|state, out| Life::put(state, out, &mut home)));
        }
    });
    life.lose_power();
    let power_losses = std::mem::take(&mut *life.power_losses.lock().unwrap());
    drop(life);
    if is_faulty {
        // What is promised then is promised to `power_losses` too.
    } else if is_closed {
        assert_eq!(disk.files(), [Path::new(PATH)], "the logs are gone");
    } else {
        check_survivor(&disk.copy(), [2; WRITERS]);
    }
    power_losses.into_iter().for_each(|(survivor, told)| check_survivor(&survivor, told));
}

#[test]
fn what_was_acknowledged_is_there_after_a_power_loss_at_any_moment() {
    explore(250, live);
}

#[test]
fn a_seed_repeats_it() {
    repeats(live);
}

/// Whoever is last, the writer, the reader or the checkpoint, ends the store.
fn leave() {
    let disk = CrashingFileSystem::new();
    let life = Life::begin(&disk);
    life.write(0, 2).unwrap();
    let told = Arc::clone(&life.told);
    let Life { store, timeline, .. } = life.clone();
    let mut threads = vec![
        thread::spawn({
            let timeline = Arc::clone(&timeline);
            move || timeline.checkpoint(|state, out| Life::put(state, out, &mut None)).unwrap()
        }),
        thread::spawn({
            let life = life.clone();
            move || life.write(1, 1).unwrap()
        }),
        thread::spawn({
            let old = timeline.visible();
            move || {
                old.check_pages(&store);
                drop(store);
                drop(old);
            }
        }),
    ];
    drop(timeline);
    threads.push(thread::spawn(move || drop(life)));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(told.each_ref().map(|told| told.load(Ordering::SeqCst)), [2, 1, 0]);
    check_survivor(&disk.copy(), [2, 1, 0]);
    check_survivor(&disk.restart(thread_rng().r#gen()), [2, 1, 0]);
}

#[test]
fn the_last_handle_may_go_while_a_checkpoint_runs() {
    explore(200, leave);
}
