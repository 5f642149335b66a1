//! Ordered key-value stores beside each other: what they take, and how fast they are loaded, read, changed and scanned.
//!
//! A process measures one engine once and prints what it found as JSON; `python -m benchmarks stores` starts them and puts
//! them side by side. Keys are 64-bit numbers of a [distribution](Distribution), of which every tenth is held back to be
//! inserted later; records are bytes that cannot be compressed and follow from their keys, so that each answer is held to
//! what it has to be. Engines whose keys are bytes have them big-endian, so that they are in order.
//!
//! What a phase asks for is drawn before its clock starts, from a stream of its own, and its answers are held to what they
//! have to be after it: within, they are only counted and added up. Loaded databases are closed and opened again, so that
//! none is still at work on its files when their bytes are counted. Phases that read are repeated; medians are kept.

mod btree_map;
pub mod keys;
mod latency;
mod phases;
mod records;
mod resident;
mod ycsb;

pub use btree_map::btree_map;
pub use latency::Latencies;
pub use records::Entries;
pub use resident::{Resident, now as resident_now};

use keys::Distribution;
use phases::{Keys, Run};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Why a store could not be measured.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Bytes of memory that engines with a cache of their own may use for it.
pub const CACHE_BYTES: usize = 4 << 30;

/// What a commit promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// It survives a power loss.
    Full,
    /// It survives the death of the process.
    Off,
}

/// In which order keys come when the store is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// In theirs, by the quickest way that the engine has.
    Sorted,
    /// In none, in commits of a thousand.
    Random,
}

/// What is to be measured.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// What is to be measured: lmdb, rocksdb, redb, fjall, btree-map; of `sinter-bench`, sinter.
    #[arg(long)]
    pub engine: String,
    /// A folder for the database, empty or to be made; without, it is in memory, if the engine can be.
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// How many keys are loaded.
    #[arg(long, default_value_t = 10_000_000)]
    pub keys: u64,
    /// Which keys.
    #[arg(long, value_enum, default_value = "cluster")]
    pub distribution: Distribution,
    /// In which order they are loaded.
    #[arg(long, value_enum, default_value = "sorted")]
    pub order: Order,
    /// Bytes of a record.
    #[arg(long, default_value_t = 8)]
    pub record_bytes: usize,
    /// What commits promise.
    #[arg(long, value_enum, default_value = "off")]
    pub level: Level,
    /// Look-ups of each thread; a tenth as many ranges.
    #[arg(long, default_value_t = 1_000_000)]
    pub operations: usize,
    /// Keys that are inserted, and deleted again; of those held back, which are a ninth of the others.
    #[arg(long, default_value_t = 1_000_000)]
    pub writes: usize,
    /// Operations of each workload of YCSB; of none, they are left out.
    #[arg(long, default_value_t = 1_000_000)]
    pub ycsb_operations: usize,
    /// Nothing but the load and the workloads of YCSB.
    #[arg(long)]
    pub only_ycsb: bool,
    /// Milliseconds of reads alone, and of as many beside a writer; three times each.
    #[arg(long, default_value_t = 1000)]
    pub beside_ms: u64,
    /// Of the keys.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// A change: a record for the key, or none where it goes.
pub type Change<'a> = (u64, Option<&'a [u8]>);

/// A store that is open.
pub trait Store: Sync {
    /// Fills the empty store with keys in their order, and commits them.
    fn load(&self, entries: &mut Entries<'_>) -> Result<(), Failure>;

    /// What one thread works with.
    fn client(&self) -> Result<Box<dyn Client + '_>, Failure>;

    /// Has everything in its final place, as far as the engine can be asked to.
    fn settle(&mut self) -> Result<(), Failure>;
}

/// A thread's way to a store.
pub trait Client: Send {
    /// Makes changes in one commit.
    fn commit(&mut self, changes: &[Change<'_>]) -> Result<(), Failure>;

    /// Runs `body` with a reader, of one state or of whatever is the newest, as the engine has it.
    fn read(&mut self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure>;

    /// Shows all entries.
    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure>;

    /// Puts one key, in a commit of its own.
    fn put(&mut self, key: u64, record: &[u8]) -> Result<(), Failure> {
        self.commit(&[(key, Some(record))])
    }

    /// Looks a key up in the newest state; its record is put into `record`. Whether it is there.
    fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
        let mut is_there = false;
        self.read(&mut |reader| {
            is_there = reader.get(key, record)?;
            Ok(())
        })?;
        Ok(is_there)
    }

    /// The sum of all keys.
    fn sum(&mut self) -> Result<u128, Failure> {
        let mut sum = 0;
        self.scan(&mut |key, _| sum += u128::from(key))?;
        Ok(sum)
    }
}

/// Who reads.
pub trait Reader {
    /// Puts the key's record into `record`; whether it is there.
    fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure>;

    /// Shows so many entries from a key on.
    fn range(&mut self, from: u64, count: usize, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure>;
}

/// What was found, and which phases failed: one that does leaves the others' figures.
#[derive(Debug, Default)]
struct Found {
    figures: Map<String, Value>,
    failures: Map<String, Value>,
}

impl Found {
    fn note(&mut self, what: &str, figure: impl Into<Value>) {
        self.figures.insert(what.to_owned(), figure.into());
    }

    /// Keeps a phase's figure, or why it has none.
    fn phase<T: Into<Value>>(&mut self, what: &str, phase: impl FnOnce() -> Result<T, Failure>) {
        self.phases(&[what], || phase().map(|figure| [figure]));
    }

    /// The same of a phase that has several figures.
    fn phases<T: Into<Value>, const N: usize>(
        &mut self,
        what: &[&str; N],
        phase: impl FnOnce() -> Result<[T; N], Failure>,
    ) {
        match unless_it_panics(phase) {
            Ok(figures) => what.iter().zip(figures).for_each(|(what, figure)| self.note(what, figure)),
            Err(failure) => what.iter().for_each(|what| self.fail(what, &failure)),
        }
    }

    fn fail(&mut self, what: &str, failure: &Failure) {
        self.failures.insert(what.to_owned(), json!(failure.to_string()));
    }
}

/// Measures the store that `open` opens, empty at first, and returns what was found, and of which phases nothing.
///
/// # Errors
/// The store cannot be opened or loaded.
pub fn measure(
    settings: &Settings,
    open: impl Fn(&Settings) -> Result<Box<dyn Store>, Failure>,
) -> Result<Value, Failure> {
    let (loaded, held_back) = keys::loaded_and_held_back(settings.distribution, settings.keys, settings.seed);
    let shuffled = match settings.order {
        Order::Random => keys::shuffled(&loaded, settings.seed + 1),
        Order::Sorted => Vec::new(),
    };
    resident::forget_peak();
    let before = resident::now();
    let mut store = open(settings)?;
    let mut found = Found::default();
    found.note("load_s", phases::load(&*store, settings, &loaded, &shuffled)?);
    let settling = Instant::now();
    store.settle()?;
    found.note("settle_s", settling.elapsed().as_secs_f64());
    if let Some(folder) = &settings.folder {
        let closing = Instant::now();
        drop(store);
        // Some engines have done so before: here all of it is on disk.
        sync_all(folder)?;
        found.note("close_s", closing.elapsed().as_secs_f64());
        found.note("file_bytes", bytes_in(folder)?);
        let opening = Instant::now();
        store = open(settings)?;
        found.note("open_s", opening.elapsed().as_secs_f64());
    }
    let keys = Keys { loaded, held_back };
    found.phase("every_entry_is_right", || Run { settings, store: &*store, keys: &keys }.every_entry());
    if !settings.only_ycsb {
        Run { settings, store: &*store, keys: &keys }.read(&mut found);
        found.note("reading", memory(&before));
        Run { settings, store: &*store, keys: &keys }.read_beside_a_writer(&mut found);
        for (are_put, figure, settled) in
            [(true, "insert_per_s", "insert_settled_per_s"), (false, "delete_per_s", "delete_settled_per_s")]
        {
            store.settle()?;
            let changed = unless_it_panics(|| Run { settings, store: &*store, keys: &keys }.changes(are_put));
            let count = Run { settings, store: &*store, keys: &keys }.written().len() as f64;
            let settling = Instant::now();
            store.settle()?;
            match changed {
                Ok(seconds) => {
                    found.note(figure, count / seconds);
                    found.note(settled, count / (seconds + settling.elapsed().as_secs_f64()));
                }
                Err(failure) => found.fail(figure, &failure),
            }
        }
    }
    if settings.ycsb_operations > 0 {
        let figures = ycsb::measure(&Run { settings, store: &*store, keys: &keys }, &mut found);
        found.note("ycsb", figures);
    }
    if !found.failures.is_empty() {
        let failures = std::mem::take(&mut found.failures);
        found.note("failures", failures);
    }
    Ok(json!({
        "engine": settings.engine, "keys": keys.loaded.len(), "record_bytes": settings.record_bytes,
        "found": found.figures,
    }))
}

/// Runs `work` in a thread of its own for each of `parts`, with a client of its own; all begin together. What they return,
/// and the seconds from the first's beginning to the last's end.
fn in_threads<P: Sync, R: Send>(
    store: &dyn Store,
    parts: &[P],
    work: impl Fn(&mut dyn Client, &P) -> Result<R, Failure> + Sync,
) -> Result<(Vec<R>, f64), Failure> {
    let clients = parts.iter().map(|_| store.client()).collect::<Result<Vec<_>, _>>()?;
    let (barrier, work) = (&Barrier::new(parts.len()), &work);
    let done = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (mut client, part) in clients.into_iter().zip(parts) {
            // The clock is the thread's own: the one that starts them may be woken late.
            threads.push(scope.spawn(move || {
                barrier.wait();
                let begun = Instant::now();
                work(&mut *client, part).map(|returned| (returned, begun, Instant::now()))
            }));
        }
        // All of them, first: one that panicked and is not asked about ends the process.
        let ends: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        ends.into_iter().map(|end| end.map_err(|_| "a thread panicked")?).collect::<Result<Vec<_>, Failure>>()
    })?;
    let begun = done.iter().map(|(_, begun, _)| *begun).min();
    let ended = done.iter().map(|(.., ended)| *ended).max();
    let time = ended.zip(begun).map_or(Duration::ZERO, |(ended, begun)| ended - begun);
    Ok((done.into_iter().map(|(returned, ..)| returned).collect(), time.as_secs_f64()))
}

/// Does it; a panic of an engine's is a failure of that phase.
fn unless_it_panics<T>(phase: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(phase));
    outcome.unwrap_or_else(|_| Err("it panicked; see what stderr says".into()))
}

/// What the process takes more than before, in memory of its own, and of files that are mapped; and the most of both so far.
fn memory(before: &resident::Resident) -> Value {
    let now = resident::now();
    json!({
        "anonymous_bytes": now.anonymous_bytes.saturating_sub(before.anonymous_bytes),
        "mapped_bytes": now.file_bytes.saturating_sub(before.file_bytes),
        "peak_bytes": now.peak_bytes.saturating_sub(before.anonymous_bytes + before.file_bytes),
    })
}

/// Has the system write all files of a folder out.
fn sync_all(folder: &Path) -> Result<(), Failure> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { sync_all(&path)? } else { std::fs::File::open(&path)?.sync_all()? }
    }
    Ok(())
}

/// Bytes of all files, on disk: one may have holes.
fn bytes_in(folder: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() {
            bytes_in(&entry.path())?
        } else {
            use std::os::unix::fs::MetadataExt as _;
            metadata.len().min(metadata.blocks() * 512)
        };
    }
    Ok(bytes)
}

/// That something is what it has to be.
///
/// # Errors
/// It is not; the error says both.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Failure> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?}, where it is {expected:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            engine: "btree-map".to_owned(),
            folder: None,
            keys: 20_000,
            distribution: Distribution::Cluster,
            order: Order::Sorted,
            record_bytes: 8,
            level: Level::Off,
            operations: 2000,
            writes: 2000,
            ycsb_operations: 1000,
            only_ycsb: false,
            beside_ms: 5,
            seed: 1,
        }
    }

    #[test]
    fn every_phase_of_a_right_store_has_a_figure() {
        for (order, record_bytes) in [(Order::Sorted, 8), (Order::Random, 100)] {
            let found = measure(&Settings { order, record_bytes, ..settings() }, btree_map).unwrap();
            assert_eq!(found["keys"], 20_000);
            assert_eq!(found["found"]["failures"], Value::Null);
            let figures = ["load_s", "get_per_s", "get_2_threads_per_s", "range_per_s", "scan_per_s", "sum_per_s"];
            for figure in figures.iter().chain(&["insert_per_s", "delete_per_s", "get_beside_a_writer_per_s"]) {
                assert!(found["found"][figure].as_f64().is_some_and(|figure| figure > 0.0), "{figure}: {found}");
            }
            assert_eq!(found["found"]["ycsb"].as_object().map(Map::len), Some(12));
        }
    }

    /// A store that answers wrongly in one way.
    struct Wrong(Box<dyn Store>, &'static str);

    struct WrongClient<'a>(Box<dyn Client + 'a>, &'static str);

    struct WrongReader<'a>(&'a mut dyn Reader, &'static str);

    impl Store for Wrong {
        fn load(&self, entries: &mut Entries<'_>) -> Result<(), Failure> {
            self.0.load(entries)
        }

        fn client(&self) -> Result<Box<dyn Client + '_>, Failure> {
            Ok(Box::new(WrongClient(self.0.client()?, self.1)))
        }

        fn settle(&mut self) -> Result<(), Failure> {
            Ok(())
        }
    }

    impl Client for WrongClient<'_> {
        fn commit(&mut self, changes: &[Change<'_>]) -> Result<(), Failure> {
            let lost = usize::from(self.1 == "commit");
            self.0.commit(&changes[lost..])
        }

        fn read(&mut self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure> {
            let how = self.1;
            self.0.read(&mut |reader| body(&mut WrongReader(reader, how)))
        }

        fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
            let (mut index, skipped) = (0, if self.1 == "scan" { 1 } else { usize::MAX });
            self.0.scan(&mut |key, record| {
                if index != skipped {
                    visit(key, record);
                }
                index += 1;
            })
        }
    }

    impl Reader for WrongReader<'_> {
        fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
            let found = self.0.get(key, record)?;
            assert!(self.1 != "panic" || !key.is_multiple_of(64), "an engine's own panic");
            if self.1 == "record" {
                record.iter_mut().take(1).for_each(|byte| *byte ^= 1);
            }
            Ok(found && !(self.1 == "get" && key.is_multiple_of(64)))
        }

        fn range(&mut self, from: u64, count: usize, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
            let shift = u64::from(self.1 == "range");
            let count = if self.1 == "short" { 1 } else { count };
            self.0.range(from, count, &mut |key, record| visit(key + shift, record))
        }
    }

    #[test]
    fn wrong_answers_are_noticed_where_they_are_given() {
        for (how, phases) in [
            ("scan", &["every_entry_is_right", "scan_per_s", "sum_per_s"][..]),
            ("get", &["get_per_s", "get_2_threads_per_s", "get_alone_per_s", "ycsb C, 1"]),
            ("record", &["get_per_s", "insert_per_s", "get_alone_per_s", "ycsb A, 2", "ycsb C, 2"]),
            ("short", &["range_per_s", "ycsb E, 2"]),
            ("panic", &["get_2_threads_per_s", "get_alone_per_s", "insert_per_s", "ycsb B, 2"]),
            ("range", &["range_per_s", "ycsb E, 1"]),
            ("commit", &["insert_per_s", "writes_beside_a_reader_per_s", "ycsb A, 1", "ycsb D, 1"]),
        ] {
            let open = |settings: &Settings| Ok(Box::new(Wrong(btree_map(settings)?, how)) as Box<dyn Store>);
            let found = measure(&settings(), open).unwrap();
            for phase in phases {
                assert!(found["found"]["failures"][phase].is_string(), "{how}, {phase}: {found}");
            }
            assert!(found["found"]["load_s"].is_number());
        }
    }
}
