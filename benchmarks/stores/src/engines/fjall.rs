//! fjall: a log-structured merge tree in Rust. `full` persists its journal at each commit (`PersistMode::SyncData`), `off`
//! writes it. Blocks are not compressed, as records cannot be. It is loaded by its ingestion, and settled by a compaction of
//! all.

use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot};
use sinter_stores_benchmark::{CACHE_BYTES, Failure, Level, Reader, Settings, Store};
use std::path::Path;

struct Fjall {
    database: Database,
    entries: Keyspace,
    level: Level,
}

pub(super) fn open(folder: &Path, settings: &Settings) -> Result<Box<dyn Store>, Failure> {
    let database = Database::builder(folder).cache_size(CACHE_BYTES as u64).open()?;
    let plain = || {
        KeyspaceCreateOptions::default()
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
            .expect_point_read_hits(true)
    };
    let entries = database.keyspace("entries", plain)?;
    Ok(Box::new(Fjall { database, entries, level: settings.level }))
}

impl Fjall {
    fn persist(&self) -> Result<(), Failure> {
        match self.level {
            Level::Full => Ok(self.database.persist(PersistMode::SyncData)?),
            Level::Off => Ok(()),
        }
    }
}

fn show(entry: fjall::Guard, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
    let (key, record) = entry.into_inner()?;
    visit(u64::from_be_bytes(key[..].try_into()?), &record);
    Ok(())
}

impl Store for Fjall {
    fn load(&self, entries: &mut dyn Iterator<Item = (u64, Vec<u8>)>) -> Result<(), Failure> {
        let mut ingestion = self.entries.start_ingestion()?;
        for (key, record) in entries {
            ingestion.write(key.to_be_bytes(), record)?;
        }
        Ok(ingestion.finish()?)
    }

    fn commit(&self, changes: &[(u64, Option<Vec<u8>>)]) -> Result<(), Failure> {
        let mut batch = self.database.batch();
        for (key, record) in changes {
            match record {
                Some(record) => batch.insert(&self.entries, key.to_be_bytes(), &record[..]),
                None => batch.remove(&self.entries, key.to_be_bytes()),
            }
        }
        batch.commit()?;
        self.persist()
    }

    fn put(&self, key: u64, record: &[u8]) -> Result<(), Failure> {
        self.entries.insert(key.to_be_bytes(), record)?;
        self.persist()
    }

    fn read(&self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure> {
        body(&mut OfSnapshot { entries: &self.entries, snapshot: self.database.snapshot() })
    }

    fn get(&self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.entries.get(key.to_be_bytes())?;
        if let Some(found) = &found {
            record.clear();
            record.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn scan(&self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        self.entries.iter().try_for_each(|entry| show(entry, visit))
    }

    fn settle(&self) -> Result<(), Failure> {
        self.entries.rotate_memtable_and_wait()?;
        Ok(self.entries.major_compact()?)
    }
}

struct OfSnapshot<'a> {
    entries: &'a Keyspace,
    snapshot: Snapshot,
}

impl Reader for OfSnapshot<'_> {
    fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.snapshot.get(self.entries, key.to_be_bytes())?;
        if let Some(found) = &found {
            record.clear();
            record.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn range(&mut self, from: u64, count: usize, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        self.snapshot.range(self.entries, from.to_be_bytes()..).take(count).try_for_each(|entry| show(entry, visit))
    }
}
