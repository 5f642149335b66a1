//! fjall: a log-structured merge tree in Rust. `full` persists its journal at each commit (`PersistMode::SyncData`), `off`
//! writes it. Blocks are compressed by LZ4 below the first two levels, as it does by default. It is loaded by its ingestion,
//! and settled by a compaction of all.

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot};
use sinter_stores_benchmark::{CACHE_BYTES, Change, Client, Entries, Failure, Level, Reader, Settings, Store};
use std::path::Path;

struct Fjall {
    database: Database,
    entries: Keyspace,
    level: Level,
}

pub(super) fn open(folder: &Path, settings: &Settings) -> Result<Box<dyn Store>, Failure> {
    let database = Database::builder(folder).cache_size(CACHE_BYTES as u64).open()?;
    let options = || KeyspaceCreateOptions::default().expect_point_read_hits(true);
    let entries = database.keyspace("entries", options)?;
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
    fn load(&self, entries: &mut Entries<'_>) -> Result<(), Failure> {
        let mut ingestion = self.entries.start_ingestion()?;
        while let Some((key, record)) = entries.next_entry() {
            ingestion.write(key.to_be_bytes(), record)?;
        }
        Ok(ingestion.finish()?)
    }

    fn client(&self) -> Result<Box<dyn Client + '_>, Failure> {
        Ok(Box::new(self))
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.entries.rotate_memtable_and_wait()?;
        Ok(self.entries.major_compact()?)
    }
}

impl Client for &Fjall {
    fn commit(&mut self, changes: &[Change<'_>]) -> Result<(), Failure> {
        let mut batch = self.database.batch();
        for (key, record) in changes {
            match record {
                Some(record) => batch.insert(&self.entries, key.to_be_bytes(), *record),
                None => batch.remove(&self.entries, key.to_be_bytes()),
            }
        }
        batch.commit()?;
        self.persist()
    }

    fn put(&mut self, key: u64, record: &[u8]) -> Result<(), Failure> {
        self.entries.insert(key.to_be_bytes(), record)?;
        self.persist()
    }

    fn read(&mut self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure> {
        body(&mut OfSnapshot { entries: &self.entries, snapshot: self.database.snapshot() })
    }

    fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.entries.get(key.to_be_bytes())?;
        if let Some(found) = &found {
            record.clear();
            record.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        self.entries.iter().try_for_each(|entry| show(entry, visit))
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
