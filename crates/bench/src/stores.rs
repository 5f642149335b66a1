//! SinterDB: `Kv`, in a file with a log or in memory, loaded at once or by commits.

use crate::Failure;
use serde_json::Value;
use sinter_stores_benchmark::{CACHE_BYTES, Change, Client, Entries, Level, Reader, Settings, Store};
use sinterdb::{Config, Database, Kv, KvOptions, Synchronous, ValueType};
use std::ops::ControlFlow;

const NAME: &str = "entries";

struct Sinter {
    database: Database,
    options: KvOptions,
}

/// Measures SinterDB, and returns what was found.
///
/// # Errors
/// Another engine is asked for; the database fails.
pub fn measure(settings: &Settings) -> Result<Value, Failure> {
    match &settings.engine[..] {
        "sinter" => sinter_stores_benchmark::measure(settings, open),
        engine => Err(format!("'{engine}' is measured by benchmarks/stores, not here").into()),
    }
}

fn open(settings: &Settings) -> Result<Box<dyn Store>, Failure> {
    let level = match settings.level {
        Level::Full => Synchronous::Full,
        Level::Off => Synchronous::Off,
    };
    let config = Config::builder().synchronous(level).memory_limit_bytes(CACHE_BYTES as u64);
    let database = match &settings.folder {
        Some(folder) => {
            std::fs::create_dir_all(folder)?;
            Database::open_with(folder.join("entries.sinter"), config)?
        }
        None => Database::memory()?,
    };
    let value = ValueType::Fixed(u32::try_from(settings.record_bytes)?);
    let options = KvOptions { value: Some(value), ..KvOptions::default() };
    Ok(Box::new(Sinter { database, options }))
}

impl Store for Sinter {
    fn load(&self, entries: &mut Entries<'_>) -> Result<(), Failure> {
        let mut load = self.database.connect().load_kv::<u64>(NAME, self.options)?;
        while let Some((key, record)) = entries.next_entry() {
            load.push(key, record)?;
        }
        load.finish()?;
        Ok(())
    }

    fn client(&self) -> Result<Box<dyn Client + '_>, Failure> {
        Ok(Box::new(OfConnection(self.database.connect().kv_with(NAME, self.options)?)))
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.database.connect().execute("CHECKPOINT", &[])?;
        Ok(())
    }
}

/// The tree, of a connection of its own.
struct OfConnection(Kv<u64>);

impl Client for OfConnection {
    fn commit(&mut self, changes: &[Change<'_>]) -> Result<(), Failure> {
        Ok(self.0.update(changes.iter().copied())?)
    }

    fn put(&mut self, key: u64, record: &[u8]) -> Result<(), Failure> {
        Ok(self.0.put(key, record)?)
    }

    fn read(&mut self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure> {
        body(&mut OfKv(&self.0))
    }

    fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
        get(&self.0, key, record)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        Ok(self.0.for_each(.., visit)?)
    }

    fn sum(&mut self) -> Result<u128, Failure> {
        Ok(self.0.sums(..)?.sum.unsigned_abs())
    }
}

fn get(kv: &Kv<u64>, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
    Ok(kv.get_with(key, |found| {
        if let Some(found) = found {
            record.clear();
            record.extend_from_slice(found);
        }
        found.is_some()
    })?)
}

struct OfKv<'a>(&'a Kv<u64>);

impl Reader for OfKv<'_> {
    fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
        get(self.0, key, record)
    }

    fn range(&mut self, from: u64, count: usize, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        let mut left = count;
        Ok(self.0.for_each_while(from.., |key, record| {
            visit(key, record);
            left -= 1;
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?)
    }
}
