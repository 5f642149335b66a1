//! A key-value tree that is much larger than the memory that it may use: loaded at once of sorted keys, then read and
//! changed anywhere, then scanned.
//!
//! Key `n` is `16 n` and less than 15 more, as drawn by `n`; its record is eight bytes that cannot be compressed and follow
//! from the key. So a billion keys need not be held to know what each answer has to be, and between any two there is room
//! for one that is inserted: `16 n + 15`. What is read within the clock is counted and added up, and held to what it has to
//! be. Beside each step stands the most memory that the process has had until then; the system's cache of the file is not in
//! it, and has all of the file where the machine has as much memory: a control group limits that as well.

use crate::{Failure, machine};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use sinter_stores_benchmark::{resident_now, same};
use sinterdb::{Config, Database, Kv, KvOptions, Synchronous, ValueType};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is to be measured.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// How many keys.
    #[arg(long, default_value_t = 1_000_000_000)]
    pub keys: u64,
    /// In MB.
    #[arg(long, default_value_t = 512)]
    pub memory_limit: u64,
    /// Look-ups of keys anywhere.
    #[arg(long, default_value_t = 10_000_000)]
    pub gets: u64,
    /// Keys that are inserted anywhere, in commits of a thousand.
    #[arg(long, default_value_t = 1_000_000)]
    pub inserts: u64,
    /// Where the database is made, and deleted afterwards.
    #[arg(long, value_name = "DIR", default_value = "target/beyond-memory")]
    pub folder: PathBuf,
    /// Of what is asked for.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

const NAME: &str = "entries";

/// Changes of one commit.
const COMMIT_LEN: usize = 1000;

/// Keys between two looks at the clock.
const BETWEEN_REPORTS: u64 = 1 << 24;

fn mixed(number: u64) -> u64 {
    // Steele, Lea, Flood: Fast splittable pseudorandom number generators (OOPSLA 2014).
    let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

fn key_of(number: u64) -> u64 {
    number * 16 + mixed(number) % 15
}

fn inserted_key_of(number: u64) -> u64 {
    number * 16 + 15
}

fn record_of(key: u64) -> u64 {
    mixed(!key)
}

/// The most memory that the process has had, in MB.
fn peak_mb() -> f64 {
    resident_now().peak_bytes as f64 / 1e6
}

/// What a step took.
struct Step {
    name: &'static str,
    count: u64,
    seconds: f64,
    peak_mb: f64,
}

/// The steps so far; each is told as it ends.
#[derive(Default)]
struct Steps(Vec<Step>);

impl Steps {
    fn take(
        &mut self,
        name: &'static str,
        count: u64,
        run: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        run()?;
        let step = Step { name, count, seconds: begun.elapsed().as_secs_f64(), peak_mb: peak_mb() };
        eprintln!("{name}: {:.1} s, {:.0} MB at most", step.seconds, step.peak_mb);
        self.0.push(step);
        Ok(())
    }
}

/// Measures and returns a table for people, and a record.
///
/// # Errors
/// An answer is wrong; the database fails.
pub fn measure(settings: &Settings) -> Result<(String, Value), Failure> {
    let machine = machine::describe();
    let folder = settings.folder.join("database");
    if folder.exists() {
        return Err(format!("there is {} already; another measurement left it, or is at work", folder.display()).into());
    }
    std::fs::create_dir_all(&folder)?;
    let measured = steps(settings, &folder.join("entries.sinter"));
    let removed = std::fs::remove_dir_all(&folder);
    let (steps, file_bytes) = measured?;
    removed?;
    let mut text = String::new();
    writeln!(
        text,
        "{} keys, records of 8 bytes, memory_limit {} MB: the file has {:.0} MB, {:.2} bytes a key",
        settings.keys,
        settings.memory_limit,
        file_bytes as f64 / 1e6,
        file_bytes as f64 / settings.keys as f64
    )?;
    writeln!(text, "{:<28}{:>14}{:>12}{:>16}{:>18}", "", "count", "s", "1000/s", "peak, MB")?;
    for Step { name, count, seconds, peak_mb } in &steps.0 {
        let per_s = *count as f64 / seconds / 1e3;
        writeln!(text, "{name:<28}{count:>14}{seconds:>12.1}{per_s:>16.1}{peak_mb:>18.0}")?;
    }
    let of =
        |step: &Step| json!({ "name": step.name, "count": step.count, "s": step.seconds, "peak_mb": step.peak_mb });
    let record = json!({
        "suite": "beyond-memory", "machine": machine, "commit": machine::commit(), "keys": settings.keys,
        "memory_limit_mb": settings.memory_limit, "file_bytes": file_bytes,
        "steps": steps.0.iter().map(of).collect::<Vec<_>>(),
    });
    Ok((text, record))
}

/// All steps, and the bytes of the file once it is loaded.
fn steps(settings: &Settings, path: &Path) -> Result<(Steps, u64), Failure> {
    let mut steps = Steps::default();
    let open = || {
        let config = Config::builder().memory_limit_bytes(settings.memory_limit << 20).synchronous(Synchronous::Off);
        Database::open_with(path, config)
    };
    let options = KvOptions { value: Some(ValueType::Fixed(8)), ..KvOptions::default() };
    let database = open()?;
    steps.take("load", settings.keys, || {
        let mut load = database.connect().load_kv::<u64>(NAME, options)?;
        for number in 0..settings.keys {
            let key = key_of(number);
            load.push(key, record_of(key).to_le_bytes())?;
            if number % BETWEEN_REPORTS == BETWEEN_REPORTS - 1 {
                eprintln!("{:.0} % loaded", (number + 1) as f64 / settings.keys as f64 * 100.0);
            }
        }
        load.finish()?;
        Ok(())
    })?;
    steps.take("close", 1, || Ok(database.close()?))?;
    let file_bytes = std::fs::metadata(path)?.len();
    let database = open()?;
    let kv = database.connect().kv_with::<u64>(NAME, options)?;
    let mut random = SmallRng::seed_from_u64(settings.seed);
    steps.take("get", settings.gets, || {
        let mut wrong = 0_u64;
        for _ in 0..settings.gets {
            let key = key_of(random.random_range(0..settings.keys));
            let right = record_of(key).to_le_bytes();
            wrong += u64::from(!kv.get_with(key, |found| found == Some(&right[..]))?);
        }
        are_right("look-ups", wrong)
    })?;
    let (inserts, order) = (settings.inserts.min(settings.keys), Shuffled::new(settings.keys, settings.seed));
    let inserted = |index: u64| inserted_key_of(order.at(index));
    steps.take("insert", inserts, || {
        let mut index = 0;
        while index < inserts {
            let end = inserts.min(index + COMMIT_LEN as u64);
            let keys = (index..end).map(inserted);
            kv.update(keys.map(|key| (key, Some(record_of(key).to_le_bytes()))))?;
            index = end;
        }
        Ok(())
    })?;
    steps.take("checkpoint", 1, || Ok(database.connect().execute("CHECKPOINT", &[]).map(drop)?))?;
    let count = settings.keys + inserts;
    let sum = (0..settings.keys).map(|number| u128::from(key_of(number))).sum::<u128>()
        + (0..inserts).map(|index| u128::from(inserted(index))).sum::<u128>();
    steps.take("scan", count, || {
        let (mut found, mut keys, mut before, mut wrong) = (0_u64, 0_u128, None, 0_u64);
        kv.for_each(.., |key, record| {
            found += 1;
            keys += u128::from(key);
            wrong += u64::from(record != record_of(key).to_le_bytes() || before >= Some(key));
            before = Some(key);
        })?;
        are_right("entries of the scan", wrong)?;
        same("count and sum of a scan", (found, keys), (count, sum))
    })?;
    steps.take("sum of keys", count, || {
        let sums = kv.sums(..)?;
        same("count and sum of keys", (sums.count, sums.sum.unsigned_abs()), (count, sum))
    })?;
    check_inserted(&kv, inserts, inserted)?;
    drop(kv);
    database.close()?;
    Ok((steps, file_bytes))
}

fn check_inserted(kv: &Kv<u64>, inserts: u64, inserted: impl Fn(u64) -> u64) -> Result<(), Failure> {
    let mut wrong = 0;
    for index in (0..inserts).step_by(97) {
        let key = inserted(index);
        let right = record_of(key).to_le_bytes();
        wrong += u64::from(!kv.get_with(key, |found| found == Some(&right[..]))?);
    }
    are_right("inserted keys", wrong)
}

/// Numbers up to a count in no order, each once, of which none is kept: a Feistel network (Luby, Rackoff, SIAM Journal on
/// Computing 17, 1988) over the next power of four, walked until a number is one of them.
struct Shuffled {
    count: u64,
    half_bits: u32,
    seed: u64,
}

impl Shuffled {
    fn new(count: u64, seed: u64) -> Shuffled {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Shuffled { count, half_bits: bits.div_ceil(2).max(1), seed }
    }

    fn at(&self, index: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let mut number = index;
        loop {
            let (mut left, mut right) = (number >> self.half_bits, number & mask);
            for round in 0..4 {
                let mixed = mixed(right ^ mixed(self.seed * 4 + round));
                (left, right) = (right, left ^ (mixed & mask));
            }
            number = left << self.half_bits | right;
            if number < self.count {
                return number;
            }
        }
    }
}

fn are_right(what: &str, wrong: u64) -> Result<(), Failure> {
    same(&format!("wrong {what}"), wrong, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_order_with_room_between() {
        for number in 0..100_000 {
            assert!(key_of(number) < inserted_key_of(number) && inserted_key_of(number) < key_of(number + 1));
        }
    }

    #[test]
    fn shuffled_numbers_are_all_there_and_anywhere() {
        for count in [1, 2, 5, 1000, 4096] {
            let order = Shuffled::new(count, 7);
            let mut all: Vec<u64> = (0..count).map(|index| order.at(index)).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..count));
        }
        // As many stretches of a thousand as drawn numbers would be in, or nearly.
        let order = Shuffled::new(1_000_000_000, 1);
        let stretches: std::collections::HashSet<u64> = (0..1000).map(|index| order.at(index) / 1000).collect();
        assert!(stretches.len() > 990, "{}", stretches.len());
    }

    #[test]
    fn all_steps_of_a_small_tree_are_right() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            keys: 200_000,
            memory_limit: 32,
            gets: 5000,
            inserts: 3000,
            folder: folder.path().to_path_buf(),
            seed: 3,
        };
        let (text, record) = measure(&settings).unwrap();
        let names: Vec<_> = record["steps"].as_array().unwrap().iter().map(|step| &step["name"]).collect();
        assert_eq!(names, ["load", "close", "get", "insert", "checkpoint", "scan", "sum of keys"]);
        assert!(text.starts_with("200000 keys"), "{text}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the database is deleted");
    }
}
