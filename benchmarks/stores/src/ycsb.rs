//! The workloads A to F of YCSB (Cooper and others, *Benchmarking cloud serving systems with YCSB*, SoCC 2010): each operation
//! is a transaction of its own, one and two threads.
//!
//! Keys are chosen by Zipf's law with 0.99, scattered over all; of D those inserted last are read most. E reads ranges of 1
//! to 100 entries. Engines that can read only within a transaction begin one for each read. Operations are drawn before the
//! clock starts; afterwards each record that was read is held to those that its key has had, and every key that was updated or
//! inserted to what was put there.
//!
//! Deviations: a record is one field of the settings' length, where theirs has 1 kB; keys are numbers; A to F follow each other
//! on one store, first on one thread, then on two (theirs load anew for D and E); Zipf's law is over the keys that there are,
//! where theirs is over 10^10, so that the first keys are asked for more often here; of D what would be older than all
//! inserts is any other key; an update of F and the read before it are two transactions.

use crate::records::{Changed, first_word, record_of};
use crate::{Client, Failure, Found, Latencies, Run, in_threads, same, unless_it_panics};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Shares of a workload, in hundredths: reads, updates, inserts, ranges, reads with an update behind.
#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    shares: [u32; 5],
    reads_latest: bool,
}

const WORKLOADS: [Workload; 6] = [
    Workload { name: "A", shares: [50, 50, 0, 0, 0], reads_latest: false },
    Workload { name: "B", shares: [95, 5, 0, 0, 0], reads_latest: false },
    Workload { name: "C", shares: [100, 0, 0, 0, 0], reads_latest: false },
    Workload { name: "D", shares: [95, 0, 5, 0, 0], reads_latest: true },
    Workload { name: "E", shares: [0, 0, 5, 95, 0], reads_latest: false },
    Workload { name: "F", shares: [50, 0, 0, 0, 50], reads_latest: false },
];

const RANGE_LEN_MAX: usize = 100;

/// Numbers from 0 by Zipf's law (Gray and others, *Quickly generating billion-record synthetic databases*, SIGMOD 1994).
struct Zipf {
    count: f64,
    theta: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    fn new(count: usize) -> Zipf {
        let theta = 0.99;
        let zeta_of = |count: usize| (1..=count).map(|rank| (rank as f64).powf(-theta)).sum::<f64>();
        let (zeta, count) = (zeta_of(count), count as f64);
        let eta = (1.0 - (2.0 / count).powf(1.0 - theta)) / (1.0 - zeta_of(2) / zeta);
        Zipf { count, theta, alpha: 1.0 / (1.0 - theta), zeta, eta }
    }

    fn next(&self, random: &mut SmallRng) -> usize {
        let drawn: f64 = random.random();
        let scaled = drawn * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(self.theta) {
            return 1;
        }
        let rank = self.count * (self.eta * drawn - self.eta + 1.0).powf(self.alpha);
        (rank as usize).min(self.count as usize - 1)
    }
}

/// What is to be done next.
#[derive(Debug, Clone, Copy)]
enum Operation {
    Read(u64),
    /// The one inserted so many before the last.
    ReadLatest(usize),
    /// A key gets the changed record of this number.
    Update(u64, u64),
    Insert,
    /// So many entries from a key on.
    Range(u64, usize),
    ReadAndUpdate(u64, u64),
}

/// Operations a second of each workload, with one thread and with two; those that fail are told.
pub(crate) fn measure(run: &Run<'_>, all: &mut Found) -> Value {
    let (zipf, changed) = (Zipf::new(run.keys.loaded.len()), Changed::new(run.settings.record_bytes));
    let insertions = Insertions::new(&run.keys.held_back);
    let mut found = Map::new();
    for workload in WORKLOADS {
        for threads in [1, 2] {
            let name = format!("{}, {threads}", workload.name);
            let bench = Workbench { run, zipf: &zipf, changed: &changed, insertions: &insertions };
            match unless_it_panics(|| bench.measure(workload, threads)) {
                Ok(figures) => drop(found.insert(name, figures)),
                Err(failure) => all.fail(&format!("ycsb {name}"), &failure),
            }
        }
    }
    Value::Object(found)
}

/// Keys that are inserted one after the other, by any thread.
struct Insertions<'a> {
    keys: &'a [u64],
    /// The next to be inserted.
    next: AtomicUsize,
    is_there: Vec<AtomicBool>,
    /// All before this one are there.
    there: AtomicUsize,
}

impl<'a> Insertions<'a> {
    fn new(keys: &'a [u64]) -> Insertions<'a> {
        let is_there = keys.iter().map(|_| AtomicBool::new(false)).collect();
        Insertions { keys, next: AtomicUsize::new(0), is_there, there: AtomicUsize::new(0) }
    }

    /// The next key, and its number.
    ///
    /// # Errors
    /// There are no more.
    fn next(&self) -> Result<(usize, u64), Failure> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let key = self.keys.get(number).ok_or("all keys that were held back are inserted; ask for fewer operations")?;
        Ok((number, *key))
    }

    /// The key of this number has been inserted.
    fn done(&self, number: usize) {
        self.is_there[number].store(true, Ordering::SeqCst);
        let mut there = self.there.load(Ordering::SeqCst);
        while self.is_there.get(there).is_some_and(|is_there| is_there.load(Ordering::SeqCst)) {
            there = match self.there.compare_exchange(there, there + 1, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => there + 1,
                Err(now) => now,
            };
        }
    }

    /// The key that was inserted so many before the last, if there are so many.
    fn latest(&self, before: usize) -> Option<u64> {
        let there = self.there.load(Ordering::SeqCst);
        Some(self.keys[there.checked_sub(before + 1)?])
    }
}

struct Workbench<'a> {
    run: &'a Run<'a>,
    zipf: &'a Zipf,
    changed: &'a Changed,
    insertions: &'a Insertions<'a>,
}

impl Workbench<'_> {
    fn measure(&self, workload: Workload, threads: usize) -> Result<Value, Failure> {
        let first_inserted = self.insertions.next.load(Ordering::Relaxed);
        let count = self.run.settings.ycsb_operations.div_ceil(threads);
        let operations: Vec<_> = (0..threads).map(|thread| self.drawn(workload, threads * 2 + thread, count)).collect();
        let work = |client: &mut dyn Client, operations: &Vec<Operation>| self.work(client, operations);
        let (worked, seconds) = in_threads(self.run.store, &operations, work)?;
        self.check(&operations, first_inserted)?;
        self.check_read(worked.iter().flat_map(|worked| &worked.read))?;
        let times = worked.into_iter().map(|worked| worked.times);
        let latencies = Latencies::of(times).record();
        Ok(json!({ "per_s": (threads * count) as f64 / seconds, "latencies": latencies }))
    }

    fn drawn(&self, workload: Workload, stream: usize, count: usize) -> Vec<Operation> {
        let name = u64::from(workload.name.as_bytes()[0]);
        let mut random = SmallRng::seed_from_u64(self.run.settings.seed ^ (name << 16) ^ (stream as u64) << 8);
        let one = |_| {
            let mut share: u32 = random.random_range(0..100);
            let mut shares = workload.shares.iter();
            let kind = shares.position(|of| share.checked_sub(*of).map(|rest| share = rest).is_none());
            let rank = self.zipf.next(&mut random);
            let (key, number) = (self.scattered(rank), random.random());
            match kind {
                Some(0) if workload.reads_latest => Operation::ReadLatest(rank),
                Some(0) => Operation::Read(key),
                Some(1) => Operation::Update(key, number),
                Some(2) => Operation::Insert,
                Some(3) => Operation::Range(key, random.random_range(1..=RANGE_LEN_MAX)),
                _ => Operation::ReadAndUpdate(key, number),
            }
        };
        (0..count).map(one).collect()
    }

    /// The key of a rank: those of the first ranks are anywhere.
    fn scattered(&self, rank: usize) -> u64 {
        let hash = (rank as u64 ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let keys = &self.run.keys.loaded;
        keys[((u128::from(hash ^ (hash >> 32)) * keys.len() as u128) >> 64) as usize]
    }

    /// Does the operations.
    fn work(&self, client: &mut dyn Client, operations: &[Operation]) -> Result<Worked, Failure> {
        let bytes = self.run.settings.record_bytes;
        let last_ranges = self.run.keys.loaded[self.run.keys.loaded.len().saturating_sub(RANGE_LEN_MAX)];
        let times = Vec::with_capacity(operations.len());
        let (mut worked, mut record) = (Worked { times, read: Vec::with_capacity(operations.len()) }, Vec::new());
        let mut begun = Instant::now();
        for operation in operations {
            match *operation {
                Operation::Read(key) => {
                    read(client, key, &mut record)?;
                    worked.note(key, &record);
                }
                Operation::ReadLatest(before) => {
                    let key = self.insertions.latest(before).unwrap_or_else(|| self.scattered(before));
                    read(client, key, &mut record)?;
                    worked.note(key, &record);
                }
                Operation::Update(key, number) => client.put(key, self.changed.record(number))?,
                Operation::Insert => {
                    let (number, key) = self.insertions.next()?;
                    client.put(key, self.changed.record(number as u64))?;
                    self.insertions.done(number);
                }
                Operation::Range(key, len) => {
                    let (mut found, mut next) = (0, key);
                    client.read(&mut |reader| {
                        reader.range(key, len, &mut |other, record| {
                            let is_next = if found == 0 { other == key } else { other >= next };
                            found += usize::from(is_next && record.len() == bytes);
                            next = other + 1;
                        })
                    })?;
                    // Near the end there are fewer than wanted.
                    if found > len || (found < len && key < last_ranges) {
                        return Err(format!("{found} entries of {len} in order from key {key} on").into());
                    }
                }
                Operation::ReadAndUpdate(key, number) => {
                    read(client, key, &mut record)?;
                    worked.note(key, &record);
                    client.put(key, self.changed.record(number))?;
                }
            }
            let ended = Instant::now();
            worked.times.push(ended - begun);
            begun = ended;
        }
        Ok(worked)
    }

    /// Whether all that was read is a key's own record, or one that keys got.
    fn check_read<'w>(&self, mut read: impl Iterator<Item = &'w (u64, usize, u64)>) -> Result<(), Failure> {
        let (bytes, changed) = (self.run.settings.record_bytes, self.changed.first_words());
        let is_right = |(key, len, word): &(u64, usize, u64)| {
            *len == bytes && (changed.contains(word) || *word == first_word(&record_of(*key, bytes.min(8))))
        };
        match read.find(|read| !is_right(read)) {
            Some((key, ..)) => Err(format!("key {key} had a record that nobody gave it").into()),
            None => Ok(()),
        }
    }

    /// Whether every key has what was put there last: of several threads, by one of them.
    fn check(&self, operations: &[Vec<Operation>], first_inserted: usize) -> Result<(), Failure> {
        let (mut client, mut found) = (self.run.store.client()?, Vec::new());
        let mut last: HashMap<u64, Vec<(usize, u64)>> = HashMap::new();
        for (thread, operations) in operations.iter().enumerate() {
            for operation in operations {
                if let Operation::Update(key, number) | Operation::ReadAndUpdate(key, number) = *operation {
                    let put = last.entry(key).or_default();
                    put.retain(|(by, _)| *by != thread);
                    put.push((thread, number));
                }
            }
        }
        for (key, put) in last {
            read(&mut *client, key, &mut found)?;
            let is_right = put.iter().any(|(_, number)| found == self.changed.record(*number));
            same("whether an updated record was put last", is_right, true)?;
        }
        for number in first_inserted..self.insertions.next.load(Ordering::Relaxed) {
            read(&mut *client, self.insertions.keys[number], &mut found)?;
            same("an inserted record", &found[..], self.changed.record(number as u64))?;
        }
        Ok(())
    }
}

/// What a client's work was.
struct Worked {
    /// How long each operation took.
    times: Vec<Duration>,
    /// Of each record that was read: its key, how long it was, and what it began with.
    read: Vec<(u64, usize, u64)>,
}

impl Worked {
    fn note(&mut self, key: u64, record: &[u8]) {
        self.read.push((key, record.len(), first_word(record)));
    }
}

fn read(client: &mut dyn Client, key: u64, record: &mut Vec<u8>) -> Result<(), Failure> {
    if client.get(key, record)? { Ok(()) } else { Err(format!("key {key} is not there").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_key_is_one_before_which_all_are_there() {
        let keys = [10, 20, 30, 40];
        let insertions = Insertions::new(&keys);
        assert_eq!(insertions.latest(0), None);
        let numbers: Vec<_> = (0..4).map(|_| insertions.next().unwrap()).collect();
        assert_eq!(numbers, [(0, 10), (1, 20), (2, 30), (3, 40)]);
        insertions.done(1);
        assert_eq!(insertions.latest(0), None);
        insertions.done(0);
        assert_eq!([0, 1, 2].map(|before| insertions.latest(before)), [Some(20), Some(10), None]);
        insertions.done(2);
        insertions.done(3);
        assert_eq!(insertions.latest(0), Some(40));
        assert!(insertions.next().is_err());
    }

    #[test]
    fn the_first_are_drawn_most() {
        let (zipf, mut random) = (Zipf::new(1000), SmallRng::seed_from_u64(1));
        let mut counts = vec![0; 1000];
        (0..100_000).for_each(|_| counts[zipf.next(&mut random)] += 1);
        assert!(
            counts[0] > 12_000 && counts[1] > 5000 && counts[..10].iter().sum::<i32>() > 35_000,
            "{:?}",
            &counts[..10]
        );
        assert!(counts[500..].iter().sum::<i32>() > 5000);
    }
}
