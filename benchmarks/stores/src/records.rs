//! The records of keys, and entries for a load, made on a clock of their own.

use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Entries that are made at once, of those that are loaded.
const CHUNK_LEN: usize = 1000;

/// Records that keys get in place of their first.
const CHANGED_COUNT: usize = 4096;

/// Appends the record of a key: bytes as good as drawn.
fn append(records: &mut Vec<u8>, key: u64, bytes: usize) {
    let end = records.len() + bytes;
    let mut state = key;
    while records.len() < end {
        // Steele, Lea, Flood: Fast splittable pseudorandom number generators (OOPSLA 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        records.extend((word ^ (word >> 31)).to_le_bytes());
    }
    records.truncate(end);
}

/// The record of a key, of so many bytes.
pub(crate) fn record_of(key: u64, bytes: usize) -> Vec<u8> {
    let mut record = Vec::with_capacity(bytes + 8);
    append(&mut record, key, bytes);
    record
}

/// What a record begins with, as a number.
pub(crate) fn first_word(record: &[u8]) -> u64 {
    let mut word = [0; 8];
    let len = record.len().min(8);
    word[..len].copy_from_slice(&record[..len]);
    u64::from_le_bytes(word)
}

/// Records for updates: of a few thousand, so that making them takes none of an update's time.
#[derive(Debug)]
pub(crate) struct Changed {
    records: Vec<u8>,
    bytes: usize,
}

impl Changed {
    pub(crate) fn new(bytes: usize) -> Changed {
        let mut records = Vec::new();
        (0..CHANGED_COUNT as u64).for_each(|number| append(&mut records, !number, bytes));
        Changed { records, bytes }
    }

    /// What all of them begin with.
    pub(crate) fn first_words(&self) -> HashSet<u64> {
        self.records.chunks_exact(self.bytes.max(1)).map(first_word).collect()
    }

    /// The record of this number; any number has one.
    pub(crate) fn record(&self, number: u64) -> &[u8] {
        &self.records[number as usize % CHANGED_COUNT * self.bytes..][..self.bytes]
    }
}

/// The records of some keys, side by side.
#[derive(Debug)]
pub(crate) struct Records {
    records: Vec<u8>,
    bytes: usize,
}

impl Records {
    pub(crate) fn new(keys: &[u64], bytes: usize) -> Records {
        let mut records = Vec::with_capacity(keys.len() * bytes + 8);
        keys.iter().for_each(|key| append(&mut records, *key, bytes));
        Records { records, bytes }
    }

    /// Of each key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.records.chunks_exact(self.bytes.max(1))
    }
}

/// Entries in the order of their keys, of which the time to make them is known.
#[derive(Debug)]
pub struct Entries<'a> {
    left: &'a [u64],
    record_bytes: usize,
    keys: &'a [u64],
    records: Vec<u8>,
    /// Of the keys whose records are there, the next.
    index: usize,
    making: Duration,
}

impl<'a> Entries<'a> {
    pub(crate) fn new(keys: &'a [u64], record_bytes: usize) -> Entries<'a> {
        Entries { left: keys, record_bytes, keys: &[], records: Vec::new(), index: 0, making: Duration::ZERO }
    }

    /// The next entry, as long as there is one.
    pub fn next_entry(&mut self) -> Option<(u64, &[u8])> {
        if self.index == self.keys.len() {
            self.make();
        }
        let key = *self.keys.get(self.index)?;
        let record = &self.records[self.index * self.record_bytes..][..self.record_bytes];
        self.index += 1;
        Some((key, record))
    }

    /// The next thousand at most, at once.
    pub(crate) fn next_chunk(&mut self) -> Vec<(u64, Option<&[u8]>)> {
        self.make();
        let begun = Instant::now();
        self.index = self.keys.len();
        let (records, bytes) = (&self.records, self.record_bytes);
        let chunk =
            self.keys.iter().enumerate().map(|(at, key)| (*key, Some(&records[at * bytes..][..bytes]))).collect();
        self.making += begun.elapsed();
        chunk
    }

    /// How long it took to make those that were shown: no time of the store's.
    pub(crate) fn making(&self) -> Duration {
        self.making
    }

    fn make(&mut self) {
        let begun = Instant::now();
        (self.keys, self.left) = self.left.split_at(self.left.len().min(CHUNK_LEN));
        self.records.clear();
        self.keys.iter().for_each(|key| append(&mut self.records, *key, self.record_bytes));
        self.index = 0;
        self.making += begun.elapsed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_the_records_of_their_keys() {
        let keys: Vec<u64> = (0..2500).map(|key| key * 3).collect();
        for bytes in [1, 8, 100] {
            let (mut entries, mut chunks) = (Entries::new(&keys, bytes), Entries::new(&keys, bytes));
            let mut in_chunks = Vec::new();
            loop {
                let chunk = chunks.next_chunk();
                if chunk.is_empty() {
                    break;
                }
                in_chunks.extend(chunk.into_iter().map(|(key, record)| (key, record.unwrap_or_default().to_vec())));
            }
            for (key, in_chunk) in keys.iter().zip(in_chunks) {
                let (found, record) = entries.next_entry().unwrap();
                assert_eq!((found, record), (*key, &record_of(*key, bytes)[..]));
                assert_eq!((found, record), (in_chunk.0, &in_chunk.1[..]));
            }
            assert!(entries.next_entry().is_none());
        }
    }

    #[test]
    fn changed_records_differ() {
        let changed = Changed::new(8);
        assert_ne!(changed.record(1), changed.record(2));
        assert_eq!(changed.record(1), changed.record(1 + CHANGED_COUNT as u64));
    }
}
