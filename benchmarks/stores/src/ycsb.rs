//! The workloads A to F of YCSB (Cooper and others, *Benchmarking cloud serving systems with YCSB*, SoCC 2010): each operation
//! is a transaction of its own, one and two threads.
//!
//! Keys are chosen by Zipf's law with 0.99, scattered over all; of D the last inserted are read most. E reads ranges of 1 to
//! 100 entries. Engines that can read only within a transaction begin one for each read.

use crate::{Failure, Latencies, Run, Store, changed_record};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
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

/// Operations a second of each workload, with one thread and with two.
pub(super) fn measure(run: &Run<'_>) -> Result<Value, Failure> {
    let zipf = Zipf::new(run.shuffled.len());
    let inserted = AtomicU64::new(0);
    let mut found = Map::new();
    for workload in WORKLOADS {
        for threads in [1, 2] {
            let count = run.settings.ycsb_operations / threads;
            let begun = Instant::now();
            let mut times = Vec::new();
            std::thread::scope(|scope| {
                let clients: Vec<_> = (0..threads)
                    .map(|thread| {
                        let client = Client { run, zipf: &zipf, inserted: &inserted, workload };
                        scope.spawn(move || client.work(count, thread))
                    })
                    .collect();
                for client in clients {
                    times.push(client.join().map_err(|_| "a client panicked")??);
                }
                Ok::<_, Failure>(())
            })?;
            let per_s = (threads * count) as f64 / begun.elapsed().as_secs_f64();
            let latencies = Latencies::of(times).record();
            found.insert(format!("{}, {threads}", workload.name), json!({ "per_s": per_s, "latencies": latencies }));
        }
    }
    Ok(Value::Object(found))
}

struct Client<'a> {
    run: &'a Run<'a>,
    zipf: &'a Zipf,
    /// How many of the keys that were held back are there.
    inserted: &'a AtomicU64,
    workload: Workload,
}

impl Client<'_> {
    fn work(&self, count: u64, thread: u64) -> Result<Vec<Duration>, Failure> {
        let store: &dyn Store = self.run.store;
        let bytes = self.run.settings.record_bytes;
        let mut random = SmallRng::seed_from_u64(self.run.settings.seed + 100 + thread);
        let (mut times, mut record) = (Vec::with_capacity(count as usize), Vec::new());
        for version in 0..count {
            let begun = Instant::now();
            let mut share: u32 = random.random_range(0..100);
            let mut shares = self.workload.shares.iter();
            let operation = shares.position(|of| share.checked_sub(*of).map(|rest| share = rest).is_none());
            match operation {
                Some(0) => self.read(&mut random, &mut record)?,
                Some(1) => {
                    let key = self.chosen(&mut random);
                    store.put(key, &changed_record(key, version + 1, bytes))?;
                }
                Some(2) => {
                    let number = self.inserted.fetch_add(1, Ordering::Relaxed) as usize;
                    let key = self.run.held_back[number % self.run.held_back.len()];
                    store.put(key, &self.run.record(key))?;
                }
                Some(3) => {
                    let (key, len) = (self.chosen(&mut random), random.random_range(1..=RANGE_LEN_MAX));
                    let mut found = 0;
                    store.read(&mut |reader| {
                        reader.range(key, len, &mut |_, record| found += record.len() / bytes.max(1))
                    })?;
                    if found > len || (found == 0 && bytes > 0) {
                        return Err(format!("{found} entries of {len} from key {key} on").into());
                    }
                }
                _ => {
                    let key = self.chosen(&mut random);
                    self.expect(key, store.get(key, &mut record)?)?;
                    store.put(key, &changed_record(key, version + 1, bytes))?;
                }
            }
            times.push(begun.elapsed());
        }
        Ok(times)
    }

    fn read(&self, random: &mut SmallRng, record: &mut Vec<u8>) -> Result<(), Failure> {
        let inserted = self.inserted.load(Ordering::Relaxed) as usize;
        let key = match self.workload.reads_latest {
            true => match inserted.checked_sub(1 + self.zipf.next(random)) {
                Some(number) => self.run.held_back[number % self.run.held_back.len()],
                None => self.chosen(random),
            },
            false => self.chosen(random),
        };
        let is_there = self.run.store.get(key, record)?;
        // Of the latest, one may still be on its way.
        self.expect(key, is_there || self.workload.reads_latest)
    }

    fn expect(&self, key: u64, is_there: bool) -> Result<(), Failure> {
        if is_there { Ok(()) } else { Err(format!("key {key} is not there").into()) }
    }

    /// A key that is there.
    fn chosen(&self, random: &mut SmallRng) -> u64 {
        self.run.shuffled[self.zipf.next(random)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
