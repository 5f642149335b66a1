//! SinterDB: `Kv`, in a file with a log or in memory, loaded at once or by commits.

use crate::Failure;
use serde_json::Value;
use sinter_stores_benchmark::{CACHE_BYTES, Level, Reader, Settings, Store};
use sinterdb::{Config, Connection, Cursor, Database, Find, Kv, KvOptions, Synchronous, ValueType};
use std::sync::OnceLock;

const NAME: &str = "entries";

struct Sinter {
    database: Database,
    connection: Connection,
    options: KvOptions,
    kv: OnceLock<Kv<u64>>,
}

/// Measures SinterDB, and returns what was found.
///
/// # Errors
/// Another engine is asked for; an answer is wrong; the database fails.
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
    let connection = database.connect();
    Ok(Box::new(Sinter { database, connection, options, kv: OnceLock::new() }))
}

impl Sinter {
    fn kv(&self) -> Result<&Kv<u64>, Failure> {
        if let Some(kv) = self.kv.get() {
            return Ok(kv);
        }
        let kv = self.connection.kv_with::<u64>(NAME, self.options)?;
        Ok(self.kv.get_or_init(|| kv))
    }
}

impl Store for Sinter {
    fn load(&self, entries: &mut dyn Iterator<Item = (u64, Vec<u8>)>) -> Result<(), Failure> {
        let mut load = self.connection.load_kv::<u64>(NAME, self.options)?;
        for (key, record) in entries {
            load.push(key, record)?;
        }
        load.finish()?;
        Ok(())
    }

    fn commit(&self, changes: &[(u64, Option<Vec<u8>>)]) -> Result<(), Failure> {
        Ok(self.kv()?.update(changes.iter().map(|(key, record)| (*key, record.as_deref())))?)
    }

    fn put(&self, key: u64, record: &[u8]) -> Result<(), Failure> {
        Ok(self.kv()?.put(key, record)?)
    }

    fn read(&self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure> {
        let kv = self.kv()?;
        body(&mut OfKv { kv, cursor: None })
    }

    fn scan(&self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        Ok(self.kv()?.for_each(.., visit)?)
    }

    fn sum(&self) -> Result<u128, Failure> {
        Ok(self.kv()?.sums(..)?.sum.unsigned_abs())
    }

    fn settle(&self) -> Result<(), Failure> {
        self.database.connect().execute("CHECKPOINT", &[])?;
        Ok(())
    }
}

struct OfKv<'a> {
    kv: &'a Kv<u64>,
    /// Made when it is wanted first.
    cursor: Option<Cursor<u64>>,
}

impl Reader for OfKv<'_> {
    fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
        Ok(self.kv.get_with(key, |found| {
            if let Some(found) = found {
                record.clear();
                record.extend_from_slice(found);
            }
            found.is_some()
        })?)
    }

    fn range(&mut self, from: u64, count: usize, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            none => none.insert(self.kv.cursor()?),
        };
        let mut is_there = cursor.seek(Find::GreaterEqual, from)?;
        for shown in 1..=count {
            let Some((key, record)) = cursor.entry_lent()?.filter(|_| is_there) else { break };
            visit(key, record);
            if shown < count {
                is_there = cursor.next()?;
            }
        }
        Ok(())
    }
}
