//! RocksDB: a log-structured merge tree. `full` syncs its log at each commit, `off` writes it. Blocks are not compressed, as
//! records cannot be; filters of ten bits a key, and a block cache for all. It is loaded by a file of sorted entries that is
//! taken in, and settled by a compaction of all.

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBRawIterator, Options, ReadOptions, SstFileWriter, WriteBatch,
    WriteOptions,
};
use sinter_stores_benchmark::{CACHE_BYTES, Failure, Level, Reader, Settings, Store};
use std::path::{Path, PathBuf};

struct Rocks {
    db: DB,
    options: Options,
    folder: PathBuf,
    writes: WriteOptions,
}

pub(super) fn open(folder: &Path, settings: &Settings) -> Result<Box<dyn Store>, Failure> {
    std::fs::create_dir_all(folder)?;
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(CACHE_BYTES));
    blocks.set_bloom_filter(10.0, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::None);
    options.set_block_based_table_factory(&blocks);
    options.increase_parallelism(2);
    let mut writes = WriteOptions::default();
    writes.set_sync(settings.level == Level::Full);
    let db = DB::open(&options, folder)?;
    Ok(Box::new(Rocks { db, options, folder: folder.to_path_buf(), writes }))
}

impl Store for Rocks {
    fn load(&self, entries: &mut dyn Iterator<Item = (u64, Vec<u8>)>) -> Result<(), Failure> {
        let path = self.folder.join("load.sst");
        let mut writer = SstFileWriter::create(&self.options);
        writer.open(&path)?;
        for (key, record) in entries {
            writer.put(key.to_be_bytes(), record)?;
        }
        writer.finish()?;
        let mut how = rocksdb::IngestExternalFileOptions::default();
        how.set_move_files(true);
        self.db.ingest_external_file_opts(&how, vec![path])?;
        Ok(())
    }

    fn commit(&self, changes: &[(u64, Option<Vec<u8>>)]) -> Result<(), Failure> {
        let mut batch = WriteBatch::default();
        for (key, record) in changes {
            match record {
                Some(record) => batch.put(key.to_be_bytes(), record),
                None => batch.delete(key.to_be_bytes()),
            }
        }
        Ok(self.db.write_opt(batch, &self.writes)?)
    }

    fn put(&self, key: u64, record: &[u8]) -> Result<(), Failure> {
        Ok(self.db.put_opt(key.to_be_bytes(), record, &self.writes)?)
    }

    fn read(&self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure> {
        body(&mut OfDb { db: &self.db, iterator: None })
    }

    fn scan(&self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        let mut options = ReadOptions::default();
        options.set_readahead_size(2 << 20);
        let mut iterator = self.db.raw_iterator_opt(options);
        iterator.seek_to_first();
        while let Some((key, record)) = iterator.item() {
            visit(u64::from_be_bytes(key.try_into()?), record);
            iterator.next();
        }
        Ok(iterator.status()?)
    }

    fn settle(&self) -> Result<(), Failure> {
        self.db.flush()?;
        self.db.compact_range(None::<&[u8]>, None::<&[u8]>);
        Ok(())
    }
}

struct OfDb<'a> {
    db: &'a DB,
    /// Made when it is wanted first.
    iterator: Option<DBRawIterator<'a>>,
}

impl Reader for OfDb<'_> {
    fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.db.get_pinned(key.to_be_bytes())?;
        if let Some(found) = &found {
            record.clear();
            record.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn range(&mut self, from: u64, count: usize, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        let db = self.db;
        let iterator = self.iterator.get_or_insert_with(|| db.raw_iterator());
        iterator.seek(from.to_be_bytes());
        for _ in 0..count {
            let Some((key, record)) = iterator.item() else { break };
            visit(u64::from_be_bytes(key.try_into()?), record);
            iterator.next();
        }
        Ok(iterator.status()?)
    }
}
