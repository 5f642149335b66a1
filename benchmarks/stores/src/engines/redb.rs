//! redb: a B+tree that is copied on write. Each commit is `Durability::Immediate`: with `Durability::None` nothing of it
//! would survive the death of the process. `off` instead leaves out the syncs of the file, below it. It is loaded in one
//! transaction, and settled by `compact`. Records have a type of their length.

use redb::backends::FileBackend;
use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition};
use sinter_stores_benchmark::{CACHE_BYTES, Change, Client, Entries, Failure, Level, Reader, Settings, Store};
use std::fs::OpenOptions;
use std::io;
use std::path::Path;

struct Redb<const N: usize>(Database);

/// A file that is written, and synced by the system alone.
#[derive(Debug)]
struct Unsynced(FileBackend);

impl StorageBackend for Unsynced {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

pub(super) fn open(folder: &Path, settings: &Settings) -> Result<Box<dyn Store>, Failure> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join("entries.redb");
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    let database = match settings.level {
        Level::Full => builder.create(path)?,
        Level::Off => {
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
            builder.create_with_backend(Unsynced(FileBackend::new(file)?))?
        }
    };
    match settings.record_bytes {
        8 => Ok(Box::new(Redb::<8>(database))),
        100 => Ok(Box::new(Redb::<100>(database))),
        bytes => Err(format!("'redb' has records of 8 or 100 bytes, not of {bytes}").into()),
    }
}

impl<const N: usize> Redb<N> {
    /// Lent, arrays are neither copied nor allocated.
    const TABLE: TableDefinition<'static, u64, &'static [u8; N]> = TableDefinition::new("entries");

    fn change(&self, changes: &mut dyn Iterator<Item = Change<'_>>) -> Result<(), Failure> {
        let transaction = self.0.begin_write()?;
        {
            let mut table = transaction.open_table(Self::TABLE)?;
            for (key, record) in changes {
                match record {
                    Some(record) => drop(table.insert(key, <&[u8; N]>::try_from(record)?)?),
                    None => drop(table.remove(key)?),
                }
            }
        }
        Ok(transaction.commit()?)
    }
}

impl<const N: usize> Store for Redb<N> {
    fn load(&self, entries: &mut Entries<'_>) -> Result<(), Failure> {
        let transaction = self.0.begin_write()?;
        {
            let mut table = transaction.open_table(Self::TABLE)?;
            while let Some((key, record)) = entries.next_entry() {
                table.insert(key, <&[u8; N]>::try_from(record)?)?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn client(&self) -> Result<Box<dyn Client + '_>, Failure> {
        Ok(Box::new(self))
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.0.compact()?;
        Ok(())
    }
}

impl<const N: usize> Client for &Redb<N> {
    fn commit(&mut self, changes: &[Change<'_>]) -> Result<(), Failure> {
        self.change(&mut changes.iter().copied())
    }

    fn read(&mut self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure> {
        body(&mut OfTable(self.0.begin_read()?.open_table(Redb::<N>::TABLE)?))
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        for entry in self.0.begin_read()?.open_table(Redb::<N>::TABLE)?.iter()? {
            let (key, record) = entry?;
            visit(key.value(), record.value());
        }
        Ok(())
    }

    fn sum(&mut self) -> Result<u128, Failure> {
        let entries = self.0.begin_read()?.open_table(Redb::<N>::TABLE)?;
        entries.iter()?.try_fold(0, |sum, entry| Ok(sum + u128::from(entry?.0.value())))
    }
}

struct OfTable<const N: usize>(ReadOnlyTable<u64, &'static [u8; N]>);

impl<const N: usize> Reader for OfTable<N> {
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
