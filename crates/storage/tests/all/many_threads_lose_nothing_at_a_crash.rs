//! Threads commit, free and checkpoint at once, each as fast as it can, until the power goes or a call fails; then the
//! database is opened on what the disk kept.
//!
//! What each thread was told is there; what it appended beyond that is there in its order, or not; and nothing else is.
//! Appending goes under one lock, as does the cut of a checkpoint, so that the state it is of is known: this is how
//! upper rooms do it. Which call is hit by which thread is up to the scheduler; a failure prints the seed all the same.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::{open, payload, record};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_storage::testing::{CrashingFileSystem, Fault};
use sinter_storage::{Options, PageId, PageKind, Record, RecordTag, Recovery, Result, Store};

const WORKERS: usize = 4;
/// Each thread keeps the pages of so many commits.
const PAGES_KEPT: usize = 3;

/// What each thread has committed: how often, and the pages of the last commits.
#[derive(Debug, Clone, Default, PartialEq)]
struct State {
    threads: [(u64, VecDeque<PageId>); WORKERS],
}

fn seed_of(thread: usize, count: u64) -> u64 {
    thread as u64 * 1_000_000 + count
}

impl State {
    /// The next commit of a thread; returns the page that it needs no more.
    fn apply(&mut self, record: &Record) -> Option<PageId> {
        let (count, pages) = &mut self.threads[record.object.0 as usize];
        let [page, this] = [0, 8].map(|at| u64::from_le_bytes(*record.payload[at..].first_chunk().unwrap()));
        *count += 1;
        assert_eq!(this, *count, "each thread's commits, in order");
        pages.push_back(PageId(page));
        if pages.len() > PAGES_KEPT { pages.pop_front() } else { None }
    }

    fn encode(&self) -> Vec<u8> {
        let numbers = |(count, pages): &(u64, VecDeque<PageId>)| {
            let pages = (0..PAGES_KEPT).map(|index| pages.get(index).map_or(0, |page| page.0));
            std::iter::once(*count).chain(pages).collect::<Vec<u64>>()
        };
        self.threads.iter().flat_map(numbers).flat_map(u64::to_le_bytes).collect()
    }

    fn decode(bytes: &[u8]) -> State {
        let numbers: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let mut threads = numbers.chunks(1 + PAGES_KEPT).map(|numbers| {
            let pages = numbers[1..].iter().filter(|page| **page != 0).map(|page| PageId(*page));
            (numbers[0], pages.collect())
        });
        State { threads: std::array::from_fn(|_| threads.next().unwrap()) }
    }

    fn recover(store: &Store, recovery: Recovery) -> State {
        let root = recovery.root.map(|root| store.pin(root).unwrap());
        let mut state = root.map_or_else(State::default, |root| State::decode(&root));
        for transaction in recovery.transactions {
            for record in transaction.unwrap().records {
                state.apply(&record).into_iter().for_each(|page| store.free(page));
            }
        }
        // A page that was freed after the cut by a commit before it: nothing in the log says so.
        let reached: Vec<_> = state.threads.iter().flat_map(|(_, pages)| pages).copied().chain(recovery.root).collect();
        let mut unreached = Vec::new();
        store.for_each_page(&mut |info| unreached.extend(Some(info.page).filter(|page| !reached.contains(page))));
        unreached.into_iter().for_each(|page| store.free(page));
        state
    }

    /// Every page of the state is there with its contents, and no other but the root.
    fn check(&self, store: &Store, root: Option<PageId>) {
        let mut expected: Vec<PageId> = root.into_iter().collect();
        for (thread, (count, pages)) in self.threads.iter().enumerate() {
            for (page, count) in pages.iter().rev().zip((0..=*count).rev()) {
                assert_eq!(*store.pin(*page).unwrap(), payload(seed_of(thread, count)));
                expected.push(*page);
            }
        }
        expected.sort_unstable();
        let mut found = Vec::new();
        store.for_each_page(&mut |info| found.push(info.page));
        assert_eq!(found, expected);
        store.check(&mut |error| panic!("{error}")).unwrap();
    }
}

/// One life of the store, until something fails or every thread has made its commits. Returns how many commits each
/// thread was told are durable, and the state with all that were appended.
fn live(fs: &CrashingFileSystem, commits: u64) -> ([u64; WORKERS], State) {
    let told = [const { AtomicU64::new(0) }; WORKERS];
    let Ok((store, recovery)) = open(Arc::new(fs.clone()), Options::default()) else {
        return ([0; WORKERS], State::default());
    };
    let root = Mutex::new(recovery.root);
    let state = Mutex::new(State::recover(&store, recovery));
    let done = AtomicBool::new(false);
    let work = |thread: usize| -> Result<()> {
        for _ in 0..commits {
            // Only this thread changes its count.
            let count = state.lock().unwrap().threads[thread].0 + 1;
            let page = store.write_page(PageKind::CHUNK, &payload(seed_of(thread, count)))?;
            if count.is_multiple_of(2) {
                store.sync_pages()?;
            }
            let bytes = [page.0.to_le_bytes(), count.to_le_bytes()].concat();
            let record = record(RecordTag::ROWS_INSERTED, thread as u64, bytes);
            let (commit, freed) = {
                let mut state = state.lock().unwrap();
                let commit = store.append(std::slice::from_ref(&record), &[page])?;
                (commit, state.apply(&record))
            };
            freed.into_iter().for_each(|page| store.free(page));
            store.make_durable(commit)?;
            assert!(store.durable_commit() >= commit);
            told[thread].store(count, Ordering::Relaxed);
        }
        Ok(())
    };
    let checkpoint = || -> Result<()> {
        let prepared = store.prepare_checkpoint()?;
        let (checkpoint, state) = {
            let state = state.lock().unwrap();
            (prepared.cut()?, state.clone())
        };
        let mut root = root.lock().unwrap();
        let mut new_root = None;
        checkpoint.finish(|writer| {
            root.iter().for_each(|root| writer.free(*root));
            std::thread::yield_now();
            new_root = Some(writer.put(None, PageKind::CATALOG, &state.encode())?);
            Ok(new_root.unwrap())
        })?;
        *root = new_root;
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|thread| scope.spawn(move || work(thread))).collect();
        let checkpointer = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) && checkpoint().is_ok() {
                std::thread::yield_now();
            }
        });
        workers.into_iter().for_each(|worker| drop(worker.join().unwrap()));
        done.store(true, Ordering::Relaxed);
        checkpointer.join().unwrap();
    });
    (told.map(AtomicU64::into_inner), state.into_inner().unwrap())
}

#[test]
fn whichever_call_of_whichever_thread_it_is() {
    let seeds = std::env::var("SINTER_CRASH_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(150);
    let commits_told = AtomicU64::new(0);
    for seed in 0..seeds {
        let commits_told = &commits_told;
        let mut random = SmallRng::seed_from_u64(seed);
        let outcome = std::panic::catch_unwind(move || {
            let mut fs = CrashingFileSystem::new();
            let mut told = [0; WORKERS];
            for _ in 0..3 {
                let call = random.random_range(0..600);
                let fault = if random.random_bool(0.3) { Fault::Fail(ErrorKind::Other) } else { Fault::Crash };
                fs.plan(call, fault);
                let (told_now, appended) = live(&fs, 30);
                // A life that did not come to its first commit told nothing.
                commits_told.fetch_add(
                    told_now.iter().zip(told).map(|(now, before)| now.saturating_sub(before)).sum(),
                    Ordering::Relaxed,
                );
                told = std::array::from_fn(|thread| told[thread].max(told_now[thread]));
                fs = if random.random_bool(0.8) { fs.restart(random.random()) } else { fs.copy() };
                let (store, recovery) = open(Arc::new(fs.clone()), Options::default()).expect("it opens");
                let root = recovery.root;
                let found = State::recover(&store, recovery);
                for (thread, (count, _)) in found.threads.iter().enumerate() {
                    let (promised, most) = (told[thread], appended.threads[thread].0 + 1);
                    assert!(*count >= promised, "thread {thread}: {count} commits, {promised} were promised");
                    assert!(*count <= most.max(promised), "thread {thread}: {count} commits, {most} were made");
                }
                found.check(&store, root);
            }
        });
        if let Err(panic) = outcome {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
    let commits_told = commits_told.into_inner();
    println!("{commits_told} commits were acknowledged in {seeds} histories");
    assert!(commits_told > 30 * seeds);
}
