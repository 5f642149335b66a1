//! Ordered key-value stores beside each other: what they take, and how fast they are loaded, read, changed and scanned.
//!
//! A process measures one engine once and prints what it found as JSON; `python -m benchmarks stores` starts them and puts
//! them side by side. Keys are 64-bit numbers of a [distribution](Distribution), of which every tenth is held back to be
//! inserted later; records are bytes that cannot be compressed and follow from their keys, so that each answer is held to
//! what it has to be. Engines whose keys are bytes have them big-endian, so that they are in order.

mod btree_map;
pub mod keys;
mod latency;
mod resident;
mod ycsb;

pub use btree_map::BTreeMapStore;
pub use latency::Latencies;

use keys::Distribution;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Why a store could not be measured.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One key in so many is not loaded, but inserted later.
const HELD_BACK: usize = 10;

/// Changes of one commit, where they do not come one by one.
const COMMIT_LEN: usize = 1000;

/// Entries of a range.
const RANGE_LEN: usize = 100;

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
    /// How many keys.
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
    /// Look-ups; a tenth as many ranges, inserts and deletes.
    #[arg(long, default_value_t = 1_000_000)]
    pub operations: u64,
    /// Operations of each workload of YCSB; of none, they are left out.
    #[arg(long, default_value_t = 1_000_000)]
    pub ycsb_operations: u64,
    /// Nothing but the load and the workloads of YCSB.
    #[arg(long)]
    pub only_ycsb: bool,
    /// Of the keys.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// A store that is open.
pub trait Store: Sync {
    /// Fills the empty store with keys in their order.
    fn load(&self, entries: &mut dyn Iterator<Item = (u64, Vec<u8>)>) -> Result<(), Failure>;

    /// Makes changes in one commit: a record for the key, or none where it goes.
    fn commit(&self, changes: &[(u64, Option<Vec<u8>>)]) -> Result<(), Failure>;

    /// Runs `body` with a reader of one state.
    fn read(&self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure>;

    /// Puts one key, in a commit of its own.
    fn put(&self, key: u64, record: &[u8]) -> Result<(), Failure> {
        self.commit(&[(key, Some(record.to_vec()))])
    }

    /// Looks a key up in the newest state; its record is put into `record`. Whether it is there.
    fn get(&self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
        let mut is_there = false;
        self.read(&mut |reader| {
            is_there = reader.get(key, record)?;
            Ok(())
        })?;
        Ok(is_there)
    }

    /// Shows all entries.
    fn scan(&self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure>;

    /// The sum of all keys.
    fn sum(&self) -> Result<u128, Failure> {
        let mut sum = 0;
        self.scan(&mut |key, _| sum += u128::from(key))?;
        Ok(sum)
    }

    /// Has everything in its final place, as far as the engine can be asked to.
    fn settle(&self) -> Result<(), Failure>;
}

/// Who reads one state.
pub trait Reader {
    /// Puts the key's record into `record`; whether it is there.
    fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure>;

    /// Shows so many entries from a key on.
    fn range(&mut self, from: u64, count: usize, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure>;
}

/// The record of a key: bytes as good as drawn.
fn record_of(key: u64, bytes: usize) -> Vec<u8> {
    let mut record = Vec::with_capacity(bytes + 8);
    let mut state = key;
    while record.len() < bytes {
        // Steele, Lea, Flood: Fast splittable pseudorandom number generators (OOPSLA 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        record.extend((word ^ (word >> 31)).to_le_bytes());
    }
    record.truncate(bytes);
    record
}

/// A record after its `version`-th change.
fn changed_record(key: u64, version: u64, bytes: usize) -> Vec<u8> {
    record_of(key ^ version.rotate_left(32), bytes)
}

/// Measures the store that `open` opens, empty, and returns what was found.
///
/// # Errors
/// Those of the engine; an answer is wrong.
pub fn measure(
    settings: &Settings,
    open: impl FnOnce(&Settings) -> Result<Box<dyn Store>, Failure>,
) -> Result<Value, Failure> {
    let all = keys::sorted(settings.distribution, settings.keys, settings.seed);
    let (mut loaded, mut held_back) = (Vec::new(), Vec::new());
    for (index, key) in all.into_iter().enumerate() {
        if index % HELD_BACK == HELD_BACK / 2 { held_back.push(key) } else { loaded.push(key) }
    }
    let shuffled = keys::shuffled(&loaded, settings.seed + 1);
    let held_back = keys::shuffled(&held_back, settings.seed + 2);
    let before = resident::now();
    let store = open(settings)?;
    let mut found = Map::new();
    let run = Run { settings, store: &*store, loaded: &loaded, shuffled: &shuffled, held_back: &held_back };
    found.insert("load_s".to_owned(), json!(run.load()?));
    let settling = Instant::now();
    store.settle()?;
    found.insert("settle_s".to_owned(), json!(settling.elapsed().as_secs_f64()));
    if let Some(folder) = &settings.folder {
        found.insert("file_bytes".to_owned(), json!(bytes_in(folder)?));
    }
    found.insert("loaded".to_owned(), memory(&before));
    if !settings.only_ycsb {
        run.operations(&mut found)?;
        found.insert("worked".to_owned(), memory(&before));
    }
    if settings.ycsb_operations > 0 {
        found.insert("ycsb".to_owned(), ycsb::measure(&run)?);
    }
    Ok(json!({
        "engine": settings.engine, "keys": loaded.len(), "record_bytes": settings.record_bytes,
        "found": found,
    }))
}

/// What the process takes more than before, in memory of its own, and of files that are mapped.
fn memory(before: &resident::Resident) -> Value {
    let now = resident::now();
    json!({
        "anonymous_bytes": now.anonymous_bytes.saturating_sub(before.anonymous_bytes),
        "mapped_bytes": now.file_bytes.saturating_sub(before.file_bytes),
    })
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

/// One measurement.
struct Run<'a> {
    settings: &'a Settings,
    store: &'a dyn Store,
    /// The keys that are there, in their order and in none.
    loaded: &'a [u64],
    shuffled: &'a [u64],
    /// Those that are inserted.
    held_back: &'a [u64],
}

impl Run<'_> {
    fn record(&self, key: u64) -> Vec<u8> {
        record_of(key, self.settings.record_bytes)
    }

    /// How long loading takes, in seconds.
    fn load(&self) -> Result<f64, Failure> {
        let begun = Instant::now();
        match self.settings.order {
            Order::Sorted => self.store.load(&mut self.loaded.iter().map(|&key| (key, self.record(key))))?,
            Order::Random => {
                for keys in self.shuffled.chunks(COMMIT_LEN) {
                    let changes: Vec<_> = keys.iter().map(|&key| (key, Some(self.record(key)))).collect();
                    self.store.commit(&changes)?;
                }
            }
        }
        Ok(begun.elapsed().as_secs_f64())
    }

    /// Everything beside loading, in operations a second, or entries a second of scans.
    fn operations(&self, found: &mut Map<String, Value>) -> Result<(), Failure> {
        let mut note = |what: &str, per_s: f64| {
            found.insert(what.to_owned(), json!(per_s));
        };
        let gets = self.settings.operations as usize;
        note("get_per_s", self.gets(1, gets)?);
        note("get_2_threads_per_s", self.gets(2, gets)?);
        note("range_per_s", self.ranges(gets / 10)?);
        let (count, sum) = (self.loaded.len() as f64, self.loaded.iter().map(|key| u128::from(*key)).sum::<u128>());
        note("sum_per_s", count / timed(&mut || same("the sum of all keys", self.store.sum()?, sum))?);
        note("scan_per_s", count / timed(&mut || self.scan(sum))?);
        let (alone, beside, writes) = self.gets_beside_a_writer()?;
        note("get_alone_per_s", alone);
        note("get_beside_a_writer_per_s", beside);
        note("writes_beside_a_reader_per_s", writes);
        let keys = &self.held_back[..(gets / 10).min(self.held_back.len())];
        let changes = |is_put: bool| {
            let change = move |key: &u64| (*key, is_put.then(|| self.record(*key)));
            keys.chunks(COMMIT_LEN).try_for_each(|keys| self.store.commit(&keys.iter().map(change).collect::<Vec<_>>()))
        };
        note("insert_per_s", keys.len() as f64 / timed(&mut || changes(true))?);
        self.check_there(keys, true)?;
        note("delete_per_s", keys.len() as f64 / timed(&mut || changes(false))?);
        self.check_there(keys, false)
    }

    fn check_there(&self, keys: &[u64], is_there: bool) -> Result<(), Failure> {
        let mut record = Vec::new();
        keys.iter()
            .step_by(97)
            .try_for_each(|key| same("whether a key is there", self.store.get(*key, &mut record)?, is_there))
    }

    /// Look-ups a second, of keys in no order, of all threads together.
    fn gets(&self, threads: usize, count: usize) -> Result<f64, Failure> {
        let barrier = Barrier::new(threads + 1);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..threads)
                .map(|thread| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        self.store.read(&mut |reader| {
                            barrier.wait();
                            let mut record = Vec::new();
                            let keys = self.shuffled.iter().cycle().skip(thread * self.shuffled.len() / threads);
                            keys.take(count)
                                .try_for_each(|key| self.check(*key, reader.get(*key, &mut record)?, &record))
                        })
                    })
                })
                .collect();
            barrier.wait();
            let begun = Instant::now();
            for reader in readers {
                reader.join().map_err(|_| "a reader panicked")??;
            }
            Ok((threads * count) as f64 / begun.elapsed().as_secs_f64())
        })
    }

    fn check(&self, key: u64, is_there: bool, record: &[u8]) -> Result<(), Failure> {
        // The first bytes tell.
        let expected = record_of(key, self.settings.record_bytes.min(8));
        match is_there && record.len() == self.settings.record_bytes && record.starts_with(&expected) {
            true => Ok(()),
            false => Err(format!("key {key} has not the record that it should have").into()),
        }
    }

    fn ranges(&self, count: usize) -> Result<f64, Failure> {
        let seconds = timed(&mut || {
            self.store.read(&mut |reader| {
                let mut random = SmallRng::seed_from_u64(self.settings.seed);
                for _ in 0..count {
                    let start = random.random_range(0..self.loaded.len().saturating_sub(RANGE_LEN).max(1));
                    let expected = &self.loaded[start..self.loaded.len().min(start + RANGE_LEN)];
                    let (mut index, mut is_right) = (0, true);
                    reader.range(expected[0], expected.len(), &mut |key, record| {
                        is_right &= expected.get(index) == Some(&key) && record.len() == self.settings.record_bytes;
                        index += 1;
                    })?;
                    same("a range", (index, is_right), (expected.len(), true))?;
                }
                Ok(())
            })
        })?;
        Ok(count as f64 / seconds)
    }

    fn scan(&self, sum: u128) -> Result<(), Failure> {
        let (mut keys, mut bytes, mut first) = (0, 0, 0_u64);
        self.store.scan(&mut |key, record| {
            keys += u128::from(key);
            bytes += record.len();
            first = first.wrapping_add(record.first().copied().unwrap_or_default().into());
        })?;
        std::hint::black_box(first);
        same("a scan", (keys, bytes), (sum, self.loaded.len() * self.settings.record_bytes))
    }

    /// Look-ups a second of one thread alone, then beside another that puts what is there once more, and those puts.
    fn gets_beside_a_writer(&self) -> Result<(f64, f64, f64), Failure> {
        let time = Duration::from_secs(3);
        let reads = || -> Result<f64, Failure> {
            let (begun, mut count, mut record) = (Instant::now(), 0_u64, Vec::new());
            let mut keys = self.shuffled.iter().cycle();
            while begun.elapsed() < time {
                for key in keys.by_ref().take(100) {
                    self.check(*key, self.store.get(*key, &mut record)?, &record)?;
                    count += 1;
                }
            }
            Ok(count as f64 / begun.elapsed().as_secs_f64())
        };
        let alone = reads()?;
        let (is_over, writes) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| -> Result<f64, Failure> {
                let begun = Instant::now();
                let mut keys = self.shuffled.iter().rev().cycle();
                while !is_over.load(Ordering::Relaxed) {
                    let Some(key) = keys.next() else { break };
                    self.store.put(*key, &self.record(*key))?;
                    writes.fetch_add(1, Ordering::Relaxed);
                }
                Ok(writes.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64())
            });
            let beside = reads();
            is_over.store(true, Ordering::Relaxed);
            let writes = writer.join().map_err(|_| "the writer panicked")??;
            Ok((alone, beside?, writes))
        })
    }
}

/// Seconds that it takes.
fn timed(run: &mut dyn FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    let begun = Instant::now();
    run()?;
    Ok(begun.elapsed().as_secs_f64())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Failure> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?}, where it is {expected:?}").into()),
    }
}
