//! However many threads press the row groups of a load, the same bytes come of it, in the same order.

use crate::support::{Shop, column, rows, schema};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_column::*;
use sinter_exec::{LogicalType, TableSource};
use std::sync::Arc;

/// Numbers in order and in none, few texts and many, each with NULLs.
fn batch(first: i64, count: usize, random: &mut SmallRng) -> RecordBatch {
    let ordered: Int64Array = (first..).take(count).map(|value| (value % 11 != 0).then_some(value)).collect();
    let scattered: Int64Array = (0..count).map(|_| Some(random.random_range(0..1 << 40))).collect();
    // More of them as time goes on: what encoders know of a dictionary counts.
    let kinds = 3 + first / 100_000;
    let few: StringArray = (0..count).map(|_| Some(format!("kind {}", random.random_range(0..kinds)))).collect();
    let many: StringArray = (0..count).map(|_| Some(format!("no. {} of them", random.random::<u32>()))).collect();
    let arrays: [(_, ArrayRef); 4] = [
        ("ordered", Arc::new(ordered)),
        ("scattered", Arc::new(scattered)),
        ("few", Arc::new(few)),
        ("many", Arc::new(many)),
    ];
    RecordBatch::try_from_iter(arrays).unwrap()
}

fn shop() -> Shop {
    let types = [LogicalType::Int64, LogicalType::Int64, LogicalType::Utf8, LogicalType::Utf8];
    let columns = ["ordered", "scattered", "few", "many"].into_iter().zip(types);
    Shop::memory(schema(columns.map(|(name, ty)| column(name, ty)).collect()))
}

/// A load under way.
fn insert(change: &mut Change, row_count: usize) {
    let mut random = SmallRng::seed_from_u64(7);
    for first in (0..row_count).step_by(50_000) {
        change.insert(&batch(first as i64, 50_000.min(row_count - first), &mut random)).unwrap();
    }
}

fn loaded(row_count: usize, threads: usize) -> Shop {
    let mut shop = shop();
    let mut draft = shop.draft();
    let mut change = Change::on(&draft, threads);
    insert(&mut change, row_count);
    draft.take(change.finish().unwrap());
    shop.commit(draft).unwrap();
    shop
}

#[test]
fn segments_are_the_same() {
    // Row groups for every lane, more of them than there may be at a time, and a rest.
    let row_count = 11 * 131_072 + 5000;
    let one = loaded(row_count, 1);
    let (groups, columns) = (one.table.group_count(), one.table.schema().columns.len());
    assert_eq!(groups, 12);
    for threads in [2, 3, 16] {
        let other = loaded(row_count, threads);
        assert_eq!(other.table.group_count(), groups);
        for (group, column) in (0..groups).flat_map(|group| (0..columns).map(move |column| (group, column))) {
            let segment = |shop: &Shop| shop.table.segment(group, column).unwrap().to_vec();
            assert!(segment(&one) == segment(&other), "{threads} threads, row group {group}, column {column}");
        }
        other.assert_no_page_is_lost();
    }
    assert_eq!(rows(&*one.table).len(), row_count);
}

#[test]
fn a_load_that_is_given_up_leaves_no_page() {
    for threads in [1, 2, 5] {
        let shop = shop();
        let mut change = Change::new(&shop.table, threads);
        insert(&mut change, 5 * 131_072);
        drop(change);
        shop.assert_no_page_is_lost();
    }
}
