//! RocksDB: a log-structured merge tree. `full` syncs its log at each commit, `off` writes it. Blocks are compressed by LZ4;
//! filters of ten bits a key, but of the last level (look-ups find what they ask for), and a block cache for all. It is
//! loaded by files of sorted entries that are taken in, and settled by a compaction of all.

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBRawIterator, Options, ReadOptions, SstFileWriter, WriteBatch,
    WriteOptions,
};
use sinter_stores_benchmark::{CACHE_BYTES, Change, Client, Entries, Failure, Level, Reader, Settings, Store};
use std::path::{Path, PathBuf};

/// Entries of a file that is taken in: of records of a hundred bytes, some 64 MB.
const FILE_LEN: usize = 600_000;

struct Rocks {
    db: DB,
    options: Options,
    folder: PathBuf,
    writes: WriteOptions,
    reads: ReadOptions,
}

pub(super) fn open(folder: &Path, settings: &Settings) -> Result<Box<dyn Store>, Failure> {
    std::fs::create_dir_all(folder)?;
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(CACHE_BYTES));
    blocks.set_bloom_filter(10.0, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_optimize_filters_for_hits(true);
    options.set_block_based_table_factory(&blocks);
    options.increase_parallelism(2);
    let mut writes = WriteOptions::default();
    writes.set_sync(settings.level == Level::Full);
    let db = DB::open(&options, folder)?;
    Ok(Box::new(Rocks { db, options, folder: folder.to_path_buf(), writes, reads: ReadOptions::default() }))
}

impl Store for Rocks {
    fn load(&self, entries: &mut Entries<'_>) -> Result<(), Failure> {
        let mut paths = Vec::new();
        let mut next = entries.next_entry();
        while next.is_some() {
            let path = self.folder.join(format!("load-{}.sst", paths.len()));
            let mut writer = SstFileWriter::create(&self.options);
            writer.open(&path)?;
            for _ in 0..FILE_LEN {
                let Some((key, record)) = next else { break };
                writer.put(key.to_be_bytes(), record)?;
                next = entries.next_entry();
            }
            writer.finish()?;
            paths.push(path);
        }
        let mut how = rocksdb::IngestExternalFileOptions::default();
        how.set_move_files(true);
        self.db.ingest_external_file_opts(&how, paths)?;
        Ok(())
    }

    fn client(&self) -> Result<Box<dyn Client + '_>, Failure> {
        Ok(Box::new(self))
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.db.flush()?;
        self.db.compact_range(None::<&[u8]>, None::<&[u8]>);
        Ok(())
    }
}

impl Client for &Rocks {
    fn commit(&mut self, changes: &[Change<'_>]) -> Result<(), Failure> {
        let mut batch = WriteBatch::default();
        for (key, record) in changes {
            match record {
                Some(record) => batch.put(key.to_be_bytes(), record),
                None => batch.delete(key.to_be_bytes()),
            }
        }
        Ok(self.db.write_opt(batch, &self.writes)?)
    }

    fn put(&mut self, key: u64, record: &[u8]) -> Result<(), Failure> {
        Ok(self.db.put_opt(key.to_be_bytes(), record, &self.writes)?)
    }

    fn read(&mut self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure> {
        body(&mut OfDb { db: &self.db, options: &self.reads, iterator: None })
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
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
}

struct OfDb<'a> {
    db: &'a DB,
    options: &'a ReadOptions,
    /// Made when it is wanted first.
    iterator: Option<DBRawIterator<'a>>,
}

impl Reader for OfDb<'_> {
    fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.db.get_pinned_opt(key.to_be_bytes(), self.options)?;
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
