//! The disk is full during a write of a page, a commit, a checkpoint, a close: that fails, says which file and what to
//! do, and nothing else happens. Reads go on; once space was made the same thing succeeds; and what is found after a
//! power loss is what was acknowledged.

use std::path::Path;

use crate::support::{PATH, Shelf, Workload, found, open, record};
use sinter_storage::testing::{CrashingFileSystem, DiskFault, FaultyFileSystem};
use sinter_storage::{Error, Options, PageId, PageKind, RecordTag, Result, Store};
use std::sync::Arc;

/// Small enough that the file has to grow during most things.
const STEPS: usize = 12;

/// A database in the middle of its life, on a disk that can be full.
struct Life {
    disk: CrashingFileSystem,
    fs: FaultyFileSystem,
    store: Store,
    workload: Workload,
}

impl Life {
    /// Checks what would be found if the process died now, and if the power went.
    fn check_ends(&self, seed: u64, context: &str) {
        for (disk, died) in [(self.disk.copy(), "process"), (self.disk.restart(seed), "machine")] {
            let (shelf, _) = found(&disk).unwrap_or_else(|error| panic!("{context}, the {died} died: {error}"));
            let promised = match died {
                "process" => self.workload.ends_with(&shelf),
                _ => self.workload.allows(&shelf),
            };
            assert!(promised, "{context}: another state, the {died} died");
        }
    }
}

/// How far a database has come.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Nothing was ever committed.
    New,
    /// There is a log, and commits in it.
    InUse,
    /// Its process died, and it was opened again; the log was replayed, and there is no new one yet.
    Recovered,
    /// It was closed, and opened again.
    Reopened,
}

const STAGES: [Stage; 4] = [Stage::New, Stage::InUse, Stage::Recovered, Stage::Reopened];

fn life(stage: Stage, growth_takes_space: bool) -> Life {
    let disk = CrashingFileSystem::new();
    let fs = FaultyFileSystem::on_disk(&disk);
    fs.set_growth_takes_space(growth_takes_space);
    let start = || open(Arc::new(fs.clone()), Options::default()).unwrap();
    let (mut store, _) = start();
    let mut workload = Workload::new(5, Shelf::default());
    if !matches!(stage, Stage::New) {
        workload.run(&store, STEPS).unwrap();
    }
    if matches!(stage, Stage::Reopened) {
        workload.close(&store).unwrap();
    }
    if matches!(stage, Stage::Recovered | Stage::Reopened) {
        drop(store);
        let (reopened, recovery) = start();
        workload = Workload::new(6, Shelf::recover(&reopened, recovery).unwrap());
        store = reopened;
    }
    Life { disk, fs, store, workload }
}

/// Does `what` on disks with room for more and more bytes, until it succeeds. Returns how often it did not, by what was
/// going on.
fn with_ever_more_space<T>(
    name: &str,
    step_bytes: usize,
    what: impl Fn(&mut Life) -> Result<T>,
    go_on: impl Fn(&mut Life),
) -> std::collections::BTreeMap<String, u64> {
    let mut failures = std::collections::BTreeMap::new();
    for (stage, growth_takes_space) in STAGES.into_iter().flat_map(|stage| [(stage, false), (stage, true)]) {
        for bytes in (0..3).chain((3..).step_by(step_bytes)) {
            let mut life = life(stage, growth_takes_space);
            let context = format!("{name}, {stage:?}, {bytes} bytes free, growth takes space: {growth_takes_space}");
            life.fs.set_bytes_free(Some(bytes));
            let Err(error) = what(&mut life) else { break };
            let Error::DiskFull { path, during } = &error else { panic!("{context}: {error}") };
            assert!(life.disk.files().contains(path) || during.starts_with("creating"), "{context}: {error}");
            assert_eq!(
                error.to_string(),
                format!(
                    "{}: no space left while {during}; nothing was changed: free some space and try again",
                    path.display()
                )
            );
            *failures.entry(format!("{during} {}", path.display())).or_default() += 1;
            assert_eq!(life.store.poisoned(), None, "{context}");
            life.workload.shelf().check_pages(&life.store).unwrap_or_else(|what| panic!("{context}: {what}"));
            life.workload.in_doubt = None;
            life.check_ends(bytes, &context);
            life.fs.set_bytes_free(None);
            what(&mut life).unwrap_or_else(|error| panic!("{context}: there is space again, and yet: {error}"));
            life.check_ends(bytes, &context);
            go_on(&mut life);
            life.check_ends(bytes, &context);
        }
    }
    println!("{name} on a full disk failed while: {failures:?}");
    failures
}

fn run_on(life: &mut Life) {
    life.workload.run(&life.store, STEPS).expect("the store goes on");
    life.workload.checkpoint(&life.store).expect("the store goes on");
}

#[test]
fn writing_a_page() {
    let failures = with_ever_more_space(
        "writing a page",
        500,
        |life| {
            let pages: Vec<PageId> =
                (0..4).map(|fill| life.store.write_page(PageKind::CHUNK, &[fill; 30_000])).collect::<Result<_>>()?;
            for (fill, page) in pages.into_iter().enumerate() {
                assert_eq!(*life.store.pin(page)?, [fill as u8; 30_000]);
                life.store.free(page);
            }
            Ok(())
        },
        run_on,
    );
    assert_eq!(failures.len(), 2, "letting the file grow, and writing where it has grown: {failures:?}");
}

fn commit(life: &mut Life, bytes: usize) -> Result<()> {
    let payload: Vec<u8> = (0..bytes).map(|at| (at / 7) as u8).collect();
    life.store.commit(&[record(RecordTag::ROWS_INSERTED, 1000, payload.clone())], &[])?;
    let mut after = life.workload.shelf().clone();
    after.slots.insert(1000, payload);
    life.workload.states.push(after);
    life.workload.acknowledge_all();
    Ok(())
}

#[test]
fn committing() {
    let failures = with_ever_more_space("committing", 173, |life| commit(life, 5000), run_on);
    let doing = |what| failures.keys().any(|failure| failure.starts_with(what));
    assert!(doing("writing to the log") && doing("creating a log"), "{failures:?}");
}

/// Of several frames, the first ones fit.
#[test]
fn committing_a_lot() {
    let failures = with_ever_more_space("committing a lot", 700_000, |life| commit(life, 5 << 19), run_on);
    assert!(failures.values().sum::<u64>() > 20, "{failures:?}");
}

#[test]
fn a_checkpoint() {
    let failures = with_ever_more_space("a checkpoint", 173, |life| life.workload.checkpoint(&life.store), run_on);
    let doing = |what| failures.keys().any(|failure| failure.starts_with(what));
    assert!(doing("writing a page") && doing("letting the file grow") && doing("creating a log"), "{failures:?}");
}

#[test]
fn a_close() {
    let failures = with_ever_more_space(
        "a close",
        173,
        |life| life.workload.close(&life.store),
        |life| assert_eq!(life.disk.files(), [Path::new(PATH)], "a closed database is one file"),
    );
    let doing = |what| failures.keys().any(|failure| failure.starts_with(what));
    assert!(doing("writing a page"), "{failures:?}");
}

/// Whatever is done when the space runs out, again and again.
#[test]
fn a_workload_that_is_given_a_little_space_at_a_time() {
    let (mut full, mut by_call) = (0, std::collections::BTreeMap::new());
    for seed in 0..20 {
        let disk = CrashingFileSystem::new();
        let fs = FaultyFileSystem::on_disk(&disk);
        fs.set_growth_takes_space(seed % 2 == 0);
        let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
        let mut workload = Workload::new(seed, Shelf::default());
        let mut steps_done = 0;
        fs.set_bytes_free(Some(0));
        for round in 0.. {
            match workload.run(&store, 100) {
                Ok(()) => steps_done += 100,
                Err(Error::DiskFull { .. }) => workload.in_doubt = None,
                Err(error) => panic!("seed {seed}, round {round}: {error}"),
            }
            let context = format!("seed {seed}, round {round}");
            assert_eq!(store.poisoned(), None, "{context}");
            let (shelf, _) = found(&disk.restart(round)).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(workload.allows(&shelf), "{context}: another state");
            if steps_done >= 200 {
                break;
            }
            full += 1;
            assert!(round < 2000, "{context}: no end");
            // More and more: commits that fit fill the logs, and the checkpoint that would empty them needs its space at once.
            let more = (1000 + 777 * (round % 23)) * (1 + round / 40);
            fs.set_bytes_free(Some(fs.bytes_free().unwrap_or(0) + more));
        }
        assert!(fs.injected().iter().all(|injection| injection.fault == DiskFault::NoSpace));
        for (call, count) in fs.injected_by_call() {
            *by_call.entry(call).or_insert(0) += count;
        }
    }
    println!("the disk was full {full} times, at {by_call:?}");
    assert!(full > 500);
}
