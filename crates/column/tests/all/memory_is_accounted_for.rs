//! What tables and loads hold in memory is in the budget, to the byte where it lasts; loads do with less where there is
//! less, and what there is no room for is refused.

use crate::support::{PATH, Shop, batch, column, rows, schema};
use arrow::array::{ArrayRef, BinaryArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_column::*;
use sinter_exec::LogicalType;
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{Error as StorageError, Options, PageKind, Store, Usage, Use};
use std::path::Path;
use std::sync::Arc;

const MIB: usize = 1 << 20;

fn open(disk: &CrashingFileSystem, memory_limit_bytes: usize) -> Arc<Store> {
    let options = Options { memory_limit_bytes, ..Options::default() };
    Arc::new(Store::open(Arc::new(disk.clone()), Path::new(PATH), options).unwrap().0)
}

fn usage(store: &Store) -> Usage {
    store.budget().usage()
}

/// Numbers that hardly compress.
fn numbers(random: &mut SmallRng, rows: usize) -> ArrayRef {
    Arc::new((0..rows).map(|_| random.random::<i64>()).collect::<Int64Array>())
}

fn wide_schema(columns: usize) -> Arc<TableSchema> {
    schema((0..columns).map(|index| column(&format!("c{index}"), LogicalType::Int64)).collect())
}

fn wide(random: &mut SmallRng, columns: usize, rows: usize) -> RecordBatch {
    let fields: Vec<Field> = (0..columns).map(|index| Field::new(format!("c{index}"), DataType::Int64, true)).collect();
    let arrays = (0..columns).map(|_| numbers(random, rows)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

#[test]
fn what_the_newest_state_does_not_hold_is_held_by_who_looks_at_older_ones() {
    for seed in 0..6 {
        let mut random = SmallRng::seed_from_u64(seed);
        let disk = CrashingFileSystem::new();
        let store = if seed % 2 == 0 { Arc::new(Store::memory()) } else { open(&disk, 256 * MIB) };
        let mut shop = Shop::new(Arc::clone(&store), schema(vec![column("a", LogicalType::Int64)]));
        let mut readers: Vec<Arc<ColumnTable>> = Vec::new();
        for step in 0..150 {
            match random.random_range(0..10) {
                0..4 => {
                    let rows = random.random_range(1..2000);
                    let rows = numbers(&mut random, rows);
                    shop.insert(&batch("a", rows)).unwrap();
                }
                4..6 => {
                    let end = shop.table.next_row_id().max(1);
                    let ids = rows(&*shop.table).into_keys().filter(|id| id % 7 == random.random_range(0..end) % 7);
                    let ids = ids.collect();
                    shop.delete(ids);
                }
                6 => shop.settle(),
                7 => shop.press(),
                8 => readers.push(Arc::clone(&shop.table)),
                _ if step % 3 == 0 && shop.table.schema().columns.len() < 3 => {
                    let column = column(&format!("b{step}"), LogicalType::Utf8);
                    shop.alter(Alteration::AddColumn { column, fill: None }).unwrap();
                    let name = format!("b{step}");
                    shop.alter(Alteration::DropColumn { name }).unwrap();
                }
                _ if !readers.is_empty() => drop(readers.remove(0)),
                _ => {}
            }
            let (held, newest) = (usage(&store).table, shop.table.memory_bytes());
            if readers.is_empty() {
                assert_eq!(held, newest, "seed {seed}, step {step}: nobody looks back");
            }
            assert!(held >= newest, "seed {seed}, step {step}: {held} bytes, of which {newest} are the newest");
            let all: u64 = readers.iter().map(|reader| reader.memory_bytes()).sum();
            assert!(held <= newest + all, "seed {seed}, step {step}: more than all states together");
        }
        let undo = usage(&store).table - shop.table.memory_bytes();
        readers.clear();
        assert_eq!(usage(&store).table, shop.table.memory_bytes(), "seed {seed}, {undo} bytes of undo went");
        assert_eq!((usage(&store).scratch, usage(&store).query), (0, 0), "seed {seed}");
        drop(shop);
        assert_eq!(usage(&store).table, 0, "seed {seed}");
    }
}

/// 600 columns of eight bytes: a full row group has 600 MiB in plain form, and 600 open chunks of up to 1 MiB.
#[test]
fn a_wide_table_loads_under_a_small_limit() {
    let (limit, columns) = (64 * MIB, 600);
    let disk = CrashingFileSystem::new();
    let store = open(&disk, limit);
    let mut shop = Shop::new(Arc::clone(&store), wide_schema(columns));
    let mut random = SmallRng::seed_from_u64(7);
    let batches: Vec<RecordBatch> = (0..12).map(|_| wide(&mut random, columns, 1024)).collect();
    let mut peak = 0;
    shop.change(|change| {
        for batch in &batches {
            change.insert(batch)?;
            let usage = usage(&store);
            peak = peak.max(usage.table + usage.scratch);
        }
        Ok(())
    })
    .unwrap();
    assert!(peak > 2 * MIB as u64 && peak <= usage(&store).reservable, "{peak} bytes at most");
    assert_eq!(usage(&store).scratch, 0);
    let whole = rows(&*shop.table);
    assert_eq!(whole.len(), 12 * 1024);
    let first = batches[3].column(599).as_any().downcast_ref::<Int64Array>().unwrap().value(5).to_string();
    assert_eq!(whole[&(3 * 1024 + 5)][599].as_ref(), Some(&first));
    let mut chunks = 0;
    store.for_each_page(&mut |page| {
        assert_eq!(page.kind, PageKind::CHUNK);
        assert!(page.bytes < 3 * MIB as u64);
        chunks += 1;
    });
    assert!(chunks < 150, "{chunks} chunks: columns share them");
}

#[test]
fn a_load_goes_on_in_small_pieces_when_others_hold_everything() {
    let disk = CrashingFileSystem::new();
    let store = open(&disk, 64 * MIB);
    let mut shop = Shop::new(Arc::clone(&store), schema(vec![column("a", LogicalType::Int64)]));
    let _others = store.budget().reserve(Use::Scratch, usage(&store).reservable as usize).unwrap();
    let mut random = SmallRng::seed_from_u64(8);
    let values = numbers(&mut random, 500_000);
    shop.insert(&batch("a", Arc::clone(&values))).unwrap();
    let groups = shop.table.groups();
    assert!(groups.iter().all(|entry| entry.group.plain_bytes().unwrap() <= MIB as u64), "pieces of a mebibyte");
    assert!(groups.len() <= 5, "{} groups: and not smaller than that", groups.len());
    let values = values.as_any().downcast_ref::<Int64Array>().unwrap();
    assert!(rows(&*shop.table).into_values().eq(values.values().iter().map(|value| vec![Some(value.to_string())])));
}

#[test]
fn what_cannot_be_refused_is_taken_for_one_row_group_whatever_the_threads() {
    for threads in [1, 8] {
        let disk = CrashingFileSystem::new();
        let store = open(&disk, 64 * MIB);
        let shop = Shop::new(Arc::clone(&store), schema(vec![column("a", LogicalType::Binary)]));
        let _others = store.budget().reserve(Use::Scratch, usage(&store).reservable as usize).unwrap();
        let before = usage(&store).scratch;
        let mut change = Change::new(&shop.table, threads);
        let mut random = SmallRng::seed_from_u64(9);
        for _ in 0..20 {
            let value: Vec<u8> = (0..MIB).map(|_| random.random()).collect();
            let values: ArrayRef = Arc::new(BinaryArray::from_iter_values([&value]));
            change.insert(&batch("a", values)).unwrap();
            let more = usage(&store).scratch - before;
            assert!(more <= 3 * MIB as u64, "{threads} threads: {more} bytes");
        }
        assert_eq!(change.finish().unwrap().table.live_rows(), 20);
    }
}

#[test]
fn delta_batches_are_pressed_earlier_where_there_is_less_memory() {
    let disk = CrashingFileSystem::new();
    let store = open(&disk, 24 * MIB);
    let mut shop = Shop::new(Arc::clone(&store), schema(vec![column("a", LogicalType::Binary)]));
    let value = vec![7u8; 100_000];
    for _ in 0..200 {
        let values: ArrayRef = Arc::new(BinaryArray::from_iter_values([&value; 3]));
        shop.insert(&batch("a", values)).unwrap();
        shop.settle();
        assert!(usage(&store).table < 8 * MIB as u64, "{} bytes", usage(&store).table);
    }
    assert_eq!(shop.table.live_rows(), 600);
}

#[test]
fn a_delete_of_more_rows_than_memory_has_room_for_is_refused() {
    let disk = CrashingFileSystem::new();
    let store = open(&disk, 4 * MIB);
    let mut shop = Shop::new(Arc::clone(&store), schema(vec![column("a", LogicalType::Int64)]));
    let values: ArrayRef = Arc::new((0..1000).collect::<Int64Array>());
    shop.insert(&batch("a", values)).unwrap();
    let error = shop.change(|change| change.delete((0..1_000_000).collect())).unwrap_err();
    assert!(matches!(error, Error::Storage(StorageError::OutOfMemory { .. })), "{error}");
    assert!(error.to_string().contains("raise memory_limit"), "{error}");
    assert_eq!(shop.table.live_rows(), 1000);
    shop.delete((0..500).collect());
    assert_eq!((shop.table.live_rows(), usage(&store).query), (500, 0));
}

#[test]
fn a_table_in_memory_takes_no_more_than_the_limit() {
    let store = Arc::new(Store::memory());
    store.budget().set_limit(8 * MIB);
    let mut shop = Shop::new(Arc::clone(&store), schema(vec![column("a", LogicalType::Int64)]));
    let mut random = SmallRng::seed_from_u64(9);
    let refused = loop {
        let values = numbers(&mut random, 100_000);
        if let Err(error) = shop.insert(&batch("a", values)) {
            break error.to_string();
        }
        assert!(shop.table.live_rows() < 3_000_000, "never refused");
    };
    assert!(refused.starts_with("out of memory: a table wants"), "{refused}");
    let (held, newest) = (usage(&store).table, shop.table.memory_bytes());
    assert_eq!(held, newest, "what was refused is given back");
    assert!(held > 3 * MIB as u64 && held <= 7 * MIB as u64, "{held}");
    shop.assert_no_page_is_lost();
    let ids: Vec<u64> = (0..shop.table.next_row_id()).collect();
    ids.chunks(20_000).for_each(|ids| drop(shop.delete(ids.to_vec())));
    shop.press();
    assert!(usage(&store).table < MIB as u64, "deleting makes room");
}
