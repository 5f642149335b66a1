//! LMDB by heed: a B+tree that is mapped into memory. `full` syncs at each commit; `off` is `MDB_NOSYNC`. It is loaded by
//! `MDB_APPEND` in one transaction.

use heed::byteorder::BigEndian;
use heed::types::{Bytes, U64};
use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoTxn, WithTls};
use sinter_stores_benchmark::{Failure, Level, Reader, Settings, Store};
use std::path::Path;

/// The most that a database may take: addresses, not memory.
const MAP_BYTES: usize = 64 << 30;

struct Lmdb {
    env: Env,
    entries: Database<U64<BigEndian>, Bytes>,
}

#[expect(unsafe_code, reason = "heed opens a file no other way")]
fn open_env(folder: &Path, flags: EnvFlags) -> Result<Env, heed::Error> {
    // SAFETY: the folder is this process's own, and nothing else changes its files while they are mapped; without syncs only a
    // power loss could leave them torn, and they are made anew for each measurement.
    unsafe { EnvOpenOptions::new().map_size(MAP_BYTES).flags(flags).open(folder) }
}

pub(super) fn open(folder: &Path, settings: &Settings) -> Result<Box<dyn Store>, Failure> {
    std::fs::create_dir_all(folder)?;
    let flags = match settings.level {
        Level::Full => EnvFlags::empty(),
        Level::Off => EnvFlags::NO_SYNC,
    };
    let env = open_env(folder, flags)?;
    let mut transaction = env.write_txn()?;
    let entries = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok(Box::new(Lmdb { env, entries }))
}

impl Store for Lmdb {
    fn load(&self, entries: &mut dyn Iterator<Item = (u64, Vec<u8>)>) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn()?;
        for (key, record) in entries {
            self.entries.put_with_flags(&mut transaction, PutFlags::APPEND, &key, &record)?;
        }
        Ok(transaction.commit()?)
    }

    fn commit(&self, changes: &[(u64, Option<Vec<u8>>)]) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn()?;
        for (key, record) in changes {
            match record {
                Some(record) => self.entries.put(&mut transaction, key, record)?,
                None => drop(self.entries.delete(&mut transaction, key)?),
            }
        }
        Ok(transaction.commit()?)
    }

    fn put(&self, key: u64, record: &[u8]) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn()?;
        self.entries.put(&mut transaction, &key, record)?;
        Ok(transaction.commit()?)
    }

    fn read(&self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure> {
        let transaction = self.env.read_txn()?;
        body(&mut InTransaction { store: self, transaction })
    }

    fn scan(&self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        let transaction = self.env.read_txn()?;
        for entry in self.entries.iter(&transaction)? {
            let (key, record) = entry?;
            visit(key, record);
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(self.env.force_sync()?)
    }
}

struct InTransaction<'a> {
    store: &'a Lmdb,
    transaction: RoTxn<'a, WithTls>,
}

impl Reader for InTransaction<'_> {
    fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.store.entries.get(&self.transaction, &key)?;
        if let Some(found) = found {
            record.clear();
            record.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn range(&mut self, from: u64, count: usize, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        for entry in self.store.entries.range(&self.transaction, &(from..))?.take(count) {
            let (key, record) = entry?;
            visit(key, record);
        }
        Ok(())
    }
}
