//! LMDB by heed: a B+tree that is mapped into memory, with keys that it compares as numbers (`MDB_INTEGERKEY`). `full` syncs at each commit; `off` is `MDB_NOSYNC`. It is loaded by
//! `MDB_APPEND` in one transaction.

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, IntegerComparator, PutFlags, RoTxn, WithTls};
use sinter_stores_benchmark::{Change, Client, Entries, Failure, Level, Reader, Settings, Store};
use std::ops::Bound;
use std::path::Path;

/// The most that a database may take: addresses, not memory.
const MAP_BYTES: usize = 64 << 30;

struct Lmdb {
    env: Env,
    entries: Database<Bytes, Bytes, IntegerComparator>,
}

/// A key as LMDB has it: the machine's own number, where such a number may lie.
#[repr(align(8))]
struct Key([u8; 8]);

impl Key {
    fn of(key: u64) -> Key {
        Key(key.to_ne_bytes())
    }
}

fn number(key: &[u8]) -> Result<u64, Failure> {
    Ok(u64::from_ne_bytes(key.try_into()?))
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
    let options = env.database_options().types::<Bytes, Bytes>().key_comparator::<IntegerComparator>();
    let entries = options.create(&mut transaction)?;
    transaction.commit()?;
    Ok(Box::new(Lmdb { env, entries }))
}

impl Store for Lmdb {
    fn load(&self, entries: &mut Entries<'_>) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn()?;
        while let Some((key, record)) = entries.next_entry() {
            self.entries.put_with_flags(&mut transaction, PutFlags::APPEND, &Key::of(key).0, record)?;
        }
        Ok(transaction.commit()?)
    }

    fn client(&self) -> Result<Box<dyn Client + '_>, Failure> {
        Ok(Box::new(self))
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.env.force_sync()?)
    }
}

impl Client for &Lmdb {
    fn commit(&mut self, changes: &[Change<'_>]) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn()?;
        for (key, record) in changes {
            let key = Key::of(*key);
            match record {
                Some(record) => self.entries.put(&mut transaction, &key.0, record)?,
                None => drop(self.entries.delete(&mut transaction, &key.0)?),
            }
        }
        Ok(transaction.commit()?)
    }

    fn put(&mut self, key: u64, record: &[u8]) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn()?;
        self.entries.put(&mut transaction, &Key::of(key).0, record)?;
        Ok(transaction.commit()?)
    }

    fn read(&mut self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure> {
        let transaction = self.env.read_txn()?;
        body(&mut InTransaction { store: self, transaction })
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        let transaction = self.env.read_txn()?;
        for entry in self.entries.iter(&transaction)? {
            let (key, record) = entry?;
            visit(number(key)?, record);
        }
        Ok(())
    }
}

struct InTransaction<'a> {
    store: &'a Lmdb,
    transaction: RoTxn<'a, WithTls>,
}

impl Reader for InTransaction<'_> {
    fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.store.entries.get(&self.transaction, &Key::of(key).0)?;
        if let Some(found) = found {
            record.clear();
            record.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn range(&mut self, from: u64, count: usize, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        let from = Key::of(from);
        let range = (Bound::Included(&from.0[..]), Bound::Unbounded);
        for entry in self.store.entries.range(&self.transaction, &range)?.take(count) {
            let (key, record) = entry?;
            visit(number(key)?, record);
        }
        Ok(())
    }
}
