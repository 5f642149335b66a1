//! redb: a B+tree that is copied on write. `full` is `Durability::Immediate`, `off` is `Durability::None`. It is loaded in one
//! transaction.

use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};
use sinter_stores_benchmark::{CACHE_BYTES, Failure, Level, Reader, Settings, Store};
use std::path::Path;

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("entries");

struct Redb {
    database: Database,
    durability: Durability,
}

pub(super) fn open(folder: &Path, settings: &Settings) -> Result<Box<dyn Store>, Failure> {
    std::fs::create_dir_all(folder)?;
    let durability = match settings.level {
        Level::Full => Durability::Immediate,
        Level::Off => Durability::None,
    };
    let database = Database::builder().set_cache_size(CACHE_BYTES).create(folder.join("entries.redb"))?;
    Ok(Box::new(Redb { database, durability }))
}

impl Redb {
    fn change(
        &self,
        changes: &mut dyn Iterator<Item = (u64, Option<&[u8]>)>,
        durability: Durability,
    ) -> Result<(), Failure> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for (key, record) in changes {
                match record {
                    Some(record) => drop(table.insert(key, record)?),
                    None => drop(table.remove(key)?),
                }
            }
        }
        Ok(transaction.commit()?)
    }
}

impl Store for Redb {
    fn load(&self, entries: &mut dyn Iterator<Item = (u64, Vec<u8>)>) -> Result<(), Failure> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(self.durability)?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for (key, record) in entries {
                table.insert(key, &record[..])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn commit(&self, changes: &[(u64, Option<Vec<u8>>)]) -> Result<(), Failure> {
        self.change(&mut changes.iter().map(|(key, record)| (*key, record.as_deref())), self.durability)
    }

    fn put(&self, key: u64, record: &[u8]) -> Result<(), Failure> {
        self.change(&mut std::iter::once((key, Some(record))), self.durability)
    }

    fn read(&self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure> {
        body(&mut OfTable(self.database.begin_read()?.open_table(TABLE)?))
    }

    fn scan(&self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        for entry in self.database.begin_read()?.open_table(TABLE)?.iter()? {
            let (key, record) = entry?;
            visit(key.value(), record.value());
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), Failure> {
        // What was committed without durability gets it.
        self.change(&mut std::iter::empty(), Durability::Immediate)
    }
}

struct OfTable(ReadOnlyTable<u64, &'static [u8]>);

impl Reader for OfTable {
    fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.0.get(key)?;
        if let Some(found) = &found {
            record.clear();
            record.extend_from_slice(found.value());
        }
        Ok(found.is_some())
    }

    fn range(&mut self, from: u64, count: usize, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        for entry in self.0.range(from..)?.take(count) {
            let (key, record) = entry?;
            visit(key.value(), record.value());
        }
        Ok(())
    }
}
