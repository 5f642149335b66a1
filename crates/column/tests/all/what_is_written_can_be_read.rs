//! However many rows a statement changes and however large they are: what it writes can be read again, in bounded memory,
//! or it is refused as a whole.

use crate::support;
use crate::support::{Shop, batch, open};
use arrow::array::*;
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Int32Type};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_column::*;
use sinter_exec::{LogicalType, Pinned, edge};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{Record, RecordTag, Store};
use std::collections::BTreeMap;
use std::sync::Arc;

const ROW_GROUP_LEN: usize = 131_072;
const GROUP_BYTES: u64 = 32 << 20;
const MIB: usize = 1 << 20;

fn shop(store: &Arc<Store>, ty: &LogicalType) -> Shop {
    Shop::new(Arc::clone(store), schema(ty))
}

fn schema(ty: &LogicalType) -> Arc<TableSchema> {
    support::schema(vec![support::column("a", ty.clone())])
}

fn reopened(disk: &CrashingFileSystem, ty: &LogicalType) -> (Shop, Vec<Record>) {
    Shop::reopened(disk, schema(ty))
}

fn insert(shop: &mut Shop, arrays: impl IntoIterator<Item = ArrayRef>) -> Result<()> {
    shop.change(|change| arrays.into_iter().try_for_each(|array| change.insert(&batch("a", array)))).map(|_| ())
}

/// Strings of these lengths, each the end of `content`, which they share: they take room only once they are written.
fn blobs(content: &Buffer, lengths: &[usize]) -> ArrayRef {
    let mut builder = BinaryViewBuilder::new();
    let block = builder.append_block(content.clone());
    for &length in lengths {
        builder.try_append_view(block, (content.len() - length) as u32, length as u32).unwrap();
    }
    Arc::new(builder.finish())
}

fn noise(bytes: usize) -> Buffer {
    let mut random = SmallRng::seed_from_u64(bytes as u64);
    let mut content = vec![0; bytes];
    random.fill(&mut content[..]);
    Buffer::from_vec(content)
}

/// Segments of the group at `index`.
fn segment(table: &ColumnTable, index: usize) -> Pinned {
    table.groups()[index].group.segments[0].pin().unwrap()
}

/// Living rows by id, as the lengths of blobs; each is held against the end of `content`.
fn lengths(table: &ColumnTable, content: &Buffer) -> BTreeMap<u64, usize> {
    let mut rows = BTreeMap::new();
    for (index, entry) in table.groups().iter().enumerate() {
        let array = edge::decode_segment(&segment(table, index), &LogicalType::Binary, 0..entry.group.rows, None);
        let array = array.unwrap();
        let array = array.as_binary_view();
        for row in (0..array.len()).filter(|row| !entry.deleted.as_ref().is_some_and(|deleted| deleted.get(*row))) {
            let value = array.value(row);
            assert!(value == &content[content.len() - value.len()..], "row {row} of group {index}");
            assert!(rows.insert(entry.group.row_id_at(row), value.len()).is_none(), "an id twice");
        }
    }
    rows
}

/// No group is larger than the bound, but for single rows.
fn assert_bounded(table: &ColumnTable) {
    for entry in table.groups() {
        let bytes = entry.group.plain_bytes().unwrap();
        assert!(bytes <= GROUP_BYTES || entry.group.rows == 1, "{} rows of {bytes} bytes", entry.group.rows);
    }
}

#[test]
fn more_deleted_rows_than_a_block_holds() {
    let disk = CrashingFileSystem::new();
    let (store, _) = open(&disk);
    let mut shop = shop(&store, &LogicalType::Int32);
    let rows = 2_300_000;
    insert(&mut shop, [Arc::new(Int32Array::from(vec![7; rows])) as ArrayRef]).unwrap();
    shop.delete((0..rows as u64).filter(|id| id % 100 != 3).rev().collect());
    assert_eq!(shop.table.live_rows(), 23_000);
    drop((store, shop));
    let (shop, records) = reopened(&disk, &LogicalType::Int32);
    assert_eq!(shop.table.live_rows(), 23_000);
    let deletes = records.iter().filter(|record| record.tag == RecordTag::ROWS_DELETED).count();
    assert_eq!(deletes, (rows - 23_000).div_ceil(ROW_GROUP_LEN));
}

#[test]
fn more_elements_of_lists_than_a_block_holds() {
    let field = Arc::new(Field::new("item", DataType::Int32, true));
    let ty = edge::logical_type(&DataType::List(Arc::clone(&field))).unwrap();
    let disk = CrashingFileSystem::new();
    let (store, _) = open(&disk);
    let mut shop = shop(&store, &ty);
    let (rows, length) = (ROW_GROUP_LEN, 30);
    let numbers: Int32Array = (0..(rows * length) as i32).map(|number| Some(number / 1000)).collect();
    let lists = ListArray::new(field, OffsetBuffer::from_repeated_length(length, rows), Arc::new(numbers), None);
    let lists: ArrayRef = Arc::new(lists);
    insert(&mut shop, [Arc::clone(&lists)]).unwrap();
    drop((store, shop));
    let (mut shop, _) = reopened(&disk, &ty);
    assert_eq!(shop.table.live_rows(), rows as u64);
    let found = edge::decode_segment(&segment(&shop.table, 0), &ty, 0..rows, None).unwrap();
    assert_eq!(&found, &lists);
    assert_eq!(found.as_list::<i32>().value(rows - 1).as_primitive::<Int32Type>().value(0), 3932);
    // Pressing reads and writes them once more.
    shop.delete((0..100_000).collect());
    shop.press();
    let groups = shop.table.groups();
    assert_eq!((groups.len(), groups[0].group.rows), (1, rows - 100_000));
    let found = edge::decode_segment(&segment(&shop.table, 0), &ty, 0..rows - 100_000, None).unwrap();
    assert_eq!(&found, &lists.slice(100_000, rows - 100_000));
}

#[test]
fn a_full_row_group_of_large_strings() {
    let store = Arc::new(Store::memory());
    let mut shop = shop(&store, &LogicalType::Binary);
    let content = noise(ROW_GROUP_LEN + 2204);
    // 288 MB in all that do not compress, as one batch.
    let mut builder = BinaryViewBuilder::new();
    let block = builder.append_block(content.clone());
    for row in 0..ROW_GROUP_LEN {
        builder.try_append_view(block, row as u32, 2204).unwrap();
    }
    insert(&mut shop, [Arc::new(builder.finish()) as ArrayRef]).unwrap();
    assert_bounded(&shop.table);
    let mut row = 0;
    for (index, entry) in shop.table.groups().iter().enumerate() {
        assert_eq!(entry.group.first_row_id(), row as u64);
        let array = edge::decode_segment(&segment(&shop.table, index), &LogicalType::Binary, 0..entry.group.rows, None);
        for value in array.unwrap().as_binary_view().iter() {
            assert!(value == Some(&content[row..row + 2204]));
            row += 1;
        }
    }
    assert_eq!(row, ROW_GROUP_LEN);
}

#[test]
fn few_rows_that_are_large_go_into_the_file_and_not_into_the_log() {
    let disk = CrashingFileSystem::new();
    let (store, _) = open(&disk);
    let content = Buffer::from_vec(vec![9; 3_000_000]);
    let mut shop = shop(&store, &LogicalType::Binary);
    insert(&mut shop, (0..200).map(|_| blobs(&content, &[3_000_000]))).unwrap();
    insert(&mut shop, [blobs(&content, &[2_000_000])]).unwrap();
    insert(&mut shop, [blobs(&content, &[1_000, 2_000])]).unwrap();
    assert_bounded(&shop.table);
    let expected = lengths(&shop.table, &content);
    assert_eq!(expected.len(), 203);
    drop((store, shop));
    let (shop, records) = reopened(&disk, &LogicalType::Binary);
    assert_eq!(lengths(&shop.table, &content), expected);
    let tags: Vec<RecordTag> = records.iter().map(|record| record.tag).collect();
    assert_eq!(tags, [RecordTag::ROW_GROUPS_ATTACHED, RecordTag::ROW_GROUPS_ATTACHED, RecordTag::ROWS_INSERTED]);
    assert!(records.iter().all(|record| record.payload.len() < 10_000));
}

#[test]
fn a_value_that_fits_no_page_is_refused_and_leaves_nothing() {
    let store = Arc::new(Store::memory());
    let mut shop = shop(&store, &LogicalType::Binary);
    let content = Buffer::from_vec(vec![1; 255 * MIB + 1]);
    let limit = 255 * MIB - 4;
    let error =
        insert(&mut shop, [blobs(&content, &[5 * MIB; 10]), blobs(&content, &[100, 20 * MIB, 30 * MIB, limit + 1, 7])]);
    assert_eq!(
        error.unwrap_err().to_string(),
        "table 't', column 'a': a value of 267386881 bytes is larger than the 267386880 bytes that a value may have"
    );
    assert_eq!((store.stats().fresh_pages, store.stats().pages.len()), (0, 0));
    assert_eq!(shop.table.groups().len(), 0);

    insert(&mut shop, [blobs(&content, &[100, 20 * MIB, limit, 7])]).unwrap();
    assert_bounded(&shop.table);
    let sizes: Vec<usize> = lengths(&shop.table, &content).into_values().collect();
    assert_eq!(sizes, [100, 20 * MIB, limit, 7]);
}

#[test]
fn row_groups_that_are_full_by_bytes_are_not_pressed_again() {
    let store = Arc::new(Store::memory());
    let mut shop = shop(&store, &LogicalType::Binary);
    let content = Buffer::from_vec(vec![3; 4 * MIB]);
    let mut seen = Vec::new();
    for _ in 0..10 {
        insert(&mut shop, [blobs(&content, &[4 * MIB - 1000; 8])]).unwrap();
        insert(&mut shop, [blobs(&content, &[10; 20])]).unwrap();
        shop.press();
        let groups = shop.table.groups();
        // Twenty rows are more than eight, but eight of 4 MiB are no small row group.
        let pages: Vec<_> = groups.iter().map(|entry| entry.group.pages().next().unwrap().id()).collect();
        assert!(pages.starts_with(&seen), "{pages:?} after {seen:?}");
        seen = pages;
        assert_eq!(lengths(&shop.table, &content).len(), 28 * seen.len().div_ceil(2));
    }
}

#[test]
fn delta_batches_are_pressed_by_their_bytes() {
    let store = Arc::new(Store::memory());
    let mut shop = shop(&store, &LogicalType::Binary);
    let content = noise(300_000);
    for _ in 0..300 {
        insert(&mut shop, [blobs(&content, &[300_000; 3])]).unwrap();
        shop.settle();
        let (_, held) = shop.table.segment_bytes();
        assert!(held < 2 * GROUP_BYTES, "{held} bytes in delta batches");
    }
    assert_bounded(&shop.table);
    let groups = shop.table.groups();
    assert!(groups.len() < 40, "{} groups", groups.len());
    assert_eq!(lengths(&shop.table, &content).len(), 900);
}

#[test]
fn rows_of_all_sizes_live_through_inserts_deletes_and_pressing() {
    let content = noise(40 * MIB);
    for seed in 0..4 {
        let mut random = SmallRng::seed_from_u64(seed);
        let disk = CrashingFileSystem::new();
        let (store, _) = open(&disk);
        let mut shop = shop(&store, &LogicalType::Binary);
        let (mut model, mut next) = (BTreeMap::new(), 0u64);
        for _ in 0..12 {
            match random.random_range(0..10) {
                0..5 => {
                    let size = [0, 10, 3_000, 700_000, 5 * MIB, 40 * MIB][random.random_range(0..6)];
                    let rows = random.random_range(1..=(60 * MIB / (size + 3_000)).min(3_000));
                    let sizes: Vec<usize> = (0..rows).map(|_| random.random_range(size / 2..=size)).collect();
                    insert(&mut shop, sizes.chunks(1000).map(|sizes| blobs(&content, sizes))).unwrap();
                    model.extend(sizes.into_iter().zip(next..).map(|(size, id)| (id, size)));
                    next += rows as u64;
                }
                5..7 => {
                    let share = random.random_range(0.0..0.9);
                    let gone: Vec<u64> = model.keys().copied().filter(|_| random.random_bool(share)).collect();
                    model.retain(|id, _| gone.binary_search(id).is_err());
                    shop.delete(gone);
                }
                7..9 => shop.settle(),
                _ => shop.press(),
            }
            assert_bounded(&shop.table);
        }
        assert_eq!(lengths(&shop.table, &content), model, "seed {seed}");
        shop.press();
        assert_eq!(lengths(&shop.table, &content), model, "seed {seed}, pressed");
        shop.table.root_bytes().unwrap();
        drop((store, shop));
        assert_eq!(lengths(&reopened(&disk, &LogicalType::Binary).0.table, &content), model, "seed {seed}, reopened");
    }
}

#[test]
fn a_schema_that_could_not_be_read_is_refused() {
    let nested = |depth| {
        (0..depth).fold(LogicalType::Int8, |ty, _| {
            LogicalType::List(Arc::new(sinter_exec::Field { name: "item".to_owned(), ty, nullable: true }))
        })
    };
    let read = |schema: &TableSchema| {
        let mut writer = wire::Writer::default();
        schema.write(&mut writer);
        TableSchema::read(&mut wire::Reader::new("schema", &writer.into_bytes()))
    };
    let deepest = schema(&nested(32));
    deepest.validate().unwrap();
    assert_eq!(read(&deepest).unwrap(), *deepest);
    let error = schema(&nested(33)).validate().unwrap_err();
    assert_eq!(error.to_string(), "column 'a' has 33 lists and structs inside one another; 32 are possible");
    read(&schema(&nested(33))).unwrap_err();
}
