//! The phases of a measurement, beside the workloads of YCSB.

use crate::records::{Changed, Records, first_word, record_of};
use crate::{Change, Client, Entries, Failure, Found, Order, Settings, Store, in_threads, same};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Changes of one commit, where they do not come one by one.
const COMMIT_LEN: usize = 1000;

/// Entries of a range.
const RANGE_LEN: usize = 100;

/// How often phases that change nothing are repeated.
const ROUNDS: usize = 3;

/// How long loading takes, in seconds.
pub(crate) fn load(store: &dyn Store, settings: &Settings, loaded: &[u64], shuffled: &[u64]) -> Result<f64, Failure> {
    let begun = Instant::now();
    let mut entries =
        Entries::new(if settings.order == Order::Sorted { loaded } else { shuffled }, settings.record_bytes);
    match settings.order {
        Order::Sorted => store.load(&mut entries)?,
        Order::Random => {
            let mut client = store.client()?;
            loop {
                let changes = entries.next_chunk();
                if changes.is_empty() {
                    break;
                }
                client.commit(&changes)?;
            }
        }
    }
    Ok((begun.elapsed() - entries.making()).as_secs_f64())
}

/// One measurement of a store that is loaded.
pub(crate) struct Run<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) store: &'a dyn Store,
    pub(crate) keys: &'a Keys,
}

/// All keys.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Those that are there, in their order.
    pub(crate) loaded: Vec<u64>,
    /// Those that are inserted, in none.
    pub(crate) held_back: Vec<u64>,
}

/// What answers come to: of each, that it was there, its length, and its first bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Sum {
    count: u64,
    bytes: u64,
    words: u64,
}

impl Sum {
    #[inline]
    fn add(&mut self, record: &[u8]) {
        self.count += 1;
        self.bytes += record.len() as u64;
        self.words = self.words.wrapping_add(first_word(record));
    }
}

impl Run<'_> {
    pub(crate) fn record(&self, key: u64) -> Vec<u8> {
        record_of(key, self.settings.record_bytes)
    }

    /// A stream of random numbers that nothing else has.
    fn random(&self, what: &str, thread: usize, round: usize) -> SmallRng {
        let name = what.bytes().fold(0, |name: u64, byte| name.wrapping_mul(257).wrapping_add(byte.into()));
        SmallRng::seed_from_u64(self.settings.seed ^ (name << 8) ^ (thread as u64) << 4 ^ round as u64)
    }

    /// Keys that are there, each as likely as any other.
    fn drawn(&self, what: &str, thread: usize, round: usize, count: usize) -> Vec<u64> {
        let mut random = self.random(what, thread, round);
        (0..count).map(|_| self.keys.loaded[random.random_range(0..self.keys.loaded.len())]).collect()
    }

    /// Whether the store has every entry that it should have, and no other; what it reads is warm then.
    pub(crate) fn every_entry(&self) -> Result<bool, Failure> {
        let (mut index, mut wrong) = (0, None);
        self.store.client()?.scan(&mut |key, record| {
            if wrong.is_none() && (self.keys.loaded.get(index) != Some(&key) || record != self.record(key)) {
                wrong = Some(index);
            }
            index += 1;
        })?;
        match wrong {
            Some(index) => Err(format!("entry {index} of a scan is not what it should be").into()),
            None => same("entries of a scan", index, self.keys.loaded.len()).map(|()| true),
        }
    }

    /// What only reads: operations a second, or entries a second of scans.
    pub(crate) fn read(&self, found: &mut Found) {
        let gets = self.settings.operations;
        found.phases(&["get_per_s", "get_2_threads_per_s"], || self.gets(gets));
        found.phase("range_per_s", || self.ranges(gets.div_ceil(10)));
        let sum = self.keys.loaded.iter().map(|key| u128::from(*key)).sum::<u128>();
        found.phase("sum_per_s", || self.sum(sum));
        found.phase("scan_per_s", || self.scan(sum));
    }

    /// Reads beside a writer.
    pub(crate) fn read_beside_a_writer(&self, found: &mut Found) {
        let figures = ["get_alone_per_s", "get_beside_a_writer_per_s", "writes_beside_a_reader_per_s"];
        found.phases(&figures, || self.gets_beside_a_writer());
    }

    /// The keys that are inserted and deleted.
    pub(crate) fn written(&self) -> &[u64] {
        &self.keys.held_back[..self.settings.writes.min(self.keys.held_back.len())]
    }

    /// Look-ups a second of keys in no order, of all threads together: of one, and of two.
    fn gets(&self, count: usize) -> Result<[f64; 2], Failure> {
        let mut per_s = [Vec::new(), Vec::new()];
        for round in 0..=ROUNDS {
            for threads in [1, 2] {
                let keys: Vec<_> =
                    (0..threads).map(|thread| self.drawn("gets", thread, round * 2 + threads, count)).collect();
                let found = self.gets_of(&keys)?;
                // The first warms up.
                if round > 0 {
                    per_s[threads - 1].push(found);
                }
            }
        }
        Ok(per_s.map(median))
    }

    /// Look-ups a second, of a thread for each list of keys.
    fn gets_of(&self, keys: &[Vec<u64>]) -> Result<f64, Failure> {
        let (sums, seconds) = in_threads(self.store, keys, |client, keys| {
            let (mut sum, mut record) = (Sum::default(), Vec::new());
            client.read(&mut |reader| {
                keys.iter().try_for_each(|key| {
                    if reader.get(*key, &mut record)? {
                        sum.add(&record);
                    }
                    Ok(())
                })
            })?;
            Ok(sum)
        })?;
        for (keys, sum) in keys.iter().zip(sums) {
            same("what look-ups found", sum, self.sum_of(keys))?;
        }
        Ok(keys.iter().map(Vec::len).sum::<usize>() as f64 / seconds)
    }

    /// What the records of these keys come to.
    fn sum_of(&self, keys: &[u64]) -> Sum {
        let mut sum = Sum::default();
        for key in keys {
            sum.words = sum.words.wrapping_add(first_word(&record_of(*key, self.settings.record_bytes.min(8))));
        }
        sum.count = keys.len() as u64;
        sum.bytes = sum.count * self.settings.record_bytes as u64;
        sum
    }

    fn ranges(&self, count: usize) -> Result<f64, Failure> {
        let mut client = self.store.client()?;
        let mut per_s = Vec::new();
        for round in 0..=ROUNDS {
            let mut random = self.random("ranges", 0, round);
            let start_end = self.keys.loaded.len().saturating_sub(RANGE_LEN).max(1);
            let starts: Vec<usize> = (0..count).map(|_| random.random_range(0..start_end)).collect();
            let (mut sum, mut keys) = (Sum::default(), 0_u64);
            let seconds = timed(&mut || {
                client.read(&mut |reader| {
                    starts.iter().try_for_each(|start| {
                        reader.range(self.keys.loaded[*start], RANGE_LEN, &mut |key, record| {
                            keys = keys.wrapping_mul(3).wrapping_add(key);
                            sum.add(record);
                        })
                    })
                })
            })?;
            let (mut right, mut right_keys) = (Sum::default(), 0_u64);
            for start in starts {
                let range = &self.keys.loaded[start..self.keys.loaded.len().min(start + RANGE_LEN)];
                right_keys = range.iter().fold(right_keys, |keys, key| keys.wrapping_mul(3).wrapping_add(*key));
                let of_range = self.sum_of(range);
                right.count += of_range.count;
                right.bytes += of_range.bytes;
                right.words = right.words.wrapping_add(of_range.words);
            }
            same("what ranges found", (sum, keys), (right, right_keys))?;
            if round > 0 {
                per_s.push(count as f64 / seconds);
            }
        }
        Ok(median(per_s))
    }

    fn sum(&self, right: u128) -> Result<f64, Failure> {
        let mut client = self.store.client()?;
        self.repeated(&mut || same("the sum of all keys", client.sum()?, right))
    }

    fn scan(&self, right: u128) -> Result<f64, Failure> {
        let mut client = self.store.client()?;
        let bytes = (self.keys.loaded.len() * self.settings.record_bytes) as u64;
        self.repeated(&mut || {
            let (mut keys, mut sum) = (0, Sum::default());
            client.scan(&mut |key, record| {
                keys += u128::from(key);
                sum.add(record);
            })?;
            std::hint::black_box(sum.words);
            same("a scan", (keys, sum.bytes), (right, bytes))
        })
    }

    /// Entries a second of something that goes through all.
    fn repeated(&self, once: &mut dyn FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
        let per_s = (0..ROUNDS).map(|_| Ok(self.keys.loaded.len() as f64 / timed(once)?));
        per_s.collect::<Result<Vec<_>, Failure>>().map(median)
    }

    /// Look-ups a second of one thread alone, then beside another that gives keys other records, and those puts. In the end
    /// keys have their own again.
    fn gets_beside_a_writer(&self) -> Result<[f64; 3], Failure> {
        let count = self.settings.operations;
        let changed = Changed::new(self.settings.record_bytes);
        let mut per_s = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            let keys = self.drawn("reads alone", 0, round, count);
            per_s[0].push(self.reads_for_a_while(&mut *self.store.client()?, &keys, true)?);
        }
        for round in 0..ROUNDS {
            let keys = self.drawn("reads beside a writer", 0, round, count);
            let written = self.drawn("writes beside a reader", 0, round, count);
            let is_over = AtomicBool::new(false);
            let (mut reader, mut writer) = (self.store.client()?, self.store.client()?);
            let (reads, writes) = std::thread::scope(|scope| {
                let writer = scope.spawn(|| -> Result<(f64, usize), Failure> {
                    let (begun, mut count) = (Instant::now(), 0);
                    for (index, key) in written.iter().enumerate().cycle() {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        writer.put(*key, changed.record(index as u64))?;
                        count += 1;
                    }
                    Ok((count as f64 / begun.elapsed().as_secs_f64(), count))
                });
                // However the reader ends: the writer would not.
                let over = Over(&is_over);
                let reads = self.reads_for_a_while(&mut *reader, &keys, false);
                drop(over);
                let writes = writer.join().map_err(|_| "the writer panicked")?;
                Ok::<_, Failure>((reads, writes))
            })?;
            let (writes, count) = writes?;
            per_s[1].push(reads?);
            per_s[2].push(writes);
            self.check_written(&written[..count.min(written.len())], count >= written.len(), &changed)?;
        }
        Ok(per_s.map(median))
    }

    /// Whether these keys have the records that a writer gave them one after the other; then they get their own again.
    fn check_written(&self, keys: &[u64], is_whole_round: bool, changed: &Changed) -> Result<(), Failure> {
        let (mut client, mut found) = (self.store.client()?, Vec::new());
        let mut given: HashMap<u64, Vec<u64>> = HashMap::new();
        keys.iter().zip(0..).for_each(|(key, index)| given.entry(*key).or_default().push(index));
        for (key, indices) in &given {
            let is_there = client.get(*key, &mut found)?;
            // Of a further round nobody knows how far it came: any of those that it was given may be the last.
            let possible = if is_whole_round { &indices[..] } else { &indices[indices.len() - 1..] };
            let is_right = is_there && possible.iter().any(|index| found == changed.record(*index));
            same("whether a record was put last", is_right, true)?;
        }
        let keys: Vec<u64> = given.into_keys().collect();
        self.put_own(&mut *client, &keys)
    }

    fn put_own(&self, client: &mut dyn Client, keys: &[u64]) -> Result<(), Failure> {
        let mut entries = Entries::new(keys, self.settings.record_bytes);
        loop {
            let changes = entries.next_chunk();
            if changes.is_empty() {
                return Ok(());
            }
            client.commit(&changes)?;
        }
    }

    /// Look-ups a second, each of the newest state, as long as the settings say; held to what keys have of their own, where
    /// nobody gives them anything else.
    fn reads_for_a_while(&self, client: &mut dyn Client, keys: &[u64], are_own: bool) -> Result<f64, Failure> {
        const BETWEEN_LOOKS: usize = 100;
        let time = Duration::from_millis(self.settings.beside_ms);
        let (mut record, mut found, begun) = (Vec::new(), Vec::with_capacity(keys.len()), Instant::now());
        let mut asked = 0;
        while begun.elapsed() < time {
            for index in asked..asked + BETWEEN_LOOKS {
                let is_there = client.get(keys[index % keys.len()], &mut record)?;
                let answer = (is_there, record.len(), first_word(&record));
                // Of a second round the same is to be expected.
                match found.get_mut(index % keys.len()) {
                    Some(known) => *known = answer,
                    None => found.push(answer),
                }
            }
            asked += BETWEEN_LOOKS;
        }
        let seconds = begun.elapsed().as_secs_f64();
        for (key, (is_there, len, word)) in keys.iter().zip(&found) {
            let own = if are_own { first_word(&record_of(*key, self.settings.record_bytes.min(8))) } else { *word };
            same("what a look-up found", (*is_there, *len, *word), (true, self.settings.record_bytes, own))?;
        }
        Ok(asked as f64 / seconds)
    }

    /// Seconds of changes in commits of a thousand; the keys are there afterwards, or gone.
    pub(crate) fn changes(&self, are_put: bool) -> Result<f64, Failure> {
        let keys = self.written();
        let records = Records::new(keys, self.settings.record_bytes);
        let changes: Vec<Change<'_>> =
            keys.iter().zip(records.iter()).map(|(key, record)| (*key, are_put.then_some(record))).collect();
        let mut client = self.store.client()?;
        let seconds = timed(&mut || changes.chunks(COMMIT_LEN).try_for_each(|changes| client.commit(changes)))?;
        let mut record = Vec::new();
        for (key, right) in &changes {
            let found = client.get(*key, &mut record)?.then_some(&record[..]);
            same("what is there after changes", found, *right)?;
        }
        Ok(seconds)
    }
}

/// Says that it is over when it goes.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Seconds that it takes.
fn timed(run: &mut dyn FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    let begun = Instant::now();
    run()?;
    Ok(begun.elapsed().as_secs_f64())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
