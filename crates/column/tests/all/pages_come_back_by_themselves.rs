//! A page that no published table needs, and nobody reads, is free, however what wrote it ended.

use crate::support::{Rows, Shop, batch, column, rows, schema};
use arrow::array::{ArrayRef, Int64Array};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_column::*;
use sinter_exec::{LogicalType, TableSource};
use std::sync::Arc;

/// So many rows become a row group at once.
const MANY: i64 = PRESS_ROWS_MIN as i64;

fn shop() -> Shop {
    Shop::memory(schema(vec![column("a", LogicalType::Int64)]))
}

fn numbers(count: i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(0..count))
}

fn fresh_pages(shop: &Shop) -> u64 {
    shop.store.stats().fresh_pages
}

fn inserted(draft: &mut Draft, count: i64) {
    let mut change = Change::on(draft, 2);
    change.insert(&batch("a", numbers(count))).unwrap();
    draft.take(change.finish().unwrap());
}

#[test]
fn of_changes_and_drafts_that_came_to_nothing() {
    let shop = shop();
    let mut draft = shop.draft();
    // In the middle of a load, after it, in a savepoint, and after rebasing.
    let mut change = Change::new(&shop.table, 2);
    change.insert(&batch("a", numbers(1_000_000))).unwrap();
    change.insert(&batch("a", numbers(1_000_000))).unwrap();
    drop(change);
    let mut change = Change::on(&draft, 2);
    change.insert(&batch("a", numbers(MANY))).unwrap();
    let changed = change.finish().unwrap();
    assert_eq!(fresh_pages(&shop), 1);
    drop(changed);
    assert_eq!(fresh_pages(&shop), 0);
    inserted(&mut draft, MANY);
    let savepoint = draft.clone();
    inserted(&mut draft, MANY + 200);
    assert_eq!(fresh_pages(&shop), 2);
    draft = savepoint;
    assert_eq!(fresh_pages(&shop), 1);
    let rebased = draft.rebase(&shop.table).unwrap();
    drop(draft);
    assert_eq!((fresh_pages(&shop), rebased.pages.len()), (1, 1));
    drop(rebased);
    assert_eq!(fresh_pages(&shop), 0);
}

#[test]
fn of_rewrites() {
    let mut shop = shop();
    for _ in 0..3 {
        shop.insert(&batch("a", numbers(100))).unwrap();
    }
    let pressing = shop.table.pressing(1, &mut Unreadable::default()).unwrap().unwrap();
    assert_eq!(fresh_pages(&shop), 1);
    drop(pressing);
    assert_eq!(fresh_pages(&shop), 0);
    shop.press();
    shop.assert_no_page_is_lost();
    shop.delete((0..200).collect());
    shop.press();
    shop.assert_no_page_is_lost();
    assert_eq!(shop.table.pages().len(), 1);
    // Without a living row there is nothing to keep.
    shop.delete((200..300).collect());
    shop.press();
    shop.assert_no_page_is_lost();
    assert_eq!((shop.table.pages().len(), shop.table.groups().len(), shop.table.next_row_id()), (0, 0, 300));
}

#[test]
fn but_not_before_its_last_reader_is_done() {
    let mut shop = shop();
    shop.insert(&batch("a", numbers(MANY))).unwrap();
    let (reader, before): (Arc<dyn TableSource>, Rows) = (shop.table.clone(), rows(&*shop.table));
    let slow = shop.table.pressing(1, &mut Unreadable::default()).unwrap();
    assert!(slow.is_none());
    shop.delete((0..MANY as u64 - 400).collect());
    let writer = shop.draft();
    shop.press();
    assert_eq!(rows(&*reader), before);
    drop(reader);
    // The draft still sees the old group.
    assert_eq!(rows(&**writer.now()).len(), 400);
    drop(writer);
    shop.assert_no_page_is_lost();
    let dropped = Arc::clone(&shop.table);
    shop.table = shop.draft().base().with_name("u").into();
    assert_eq!(rows(&*dropped).len(), 400);
    let empty = Shop::memory(Arc::clone(shop.table.schema())).table;
    shop.table = empty;
    drop(dropped);
    assert_eq!(shop.store.stats().pages.len(), 0);
}

#[test]
fn of_a_change_that_is_refused() {
    let shop = shop();
    let mut change = Change::new(&shop.table, 2);
    change.insert(&batch("a", numbers(1_000_000))).unwrap();
    let wrong: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["x"]));
    change.insert(&batch("a", wrong)).unwrap_err();
    drop(change);
    assert_eq!(fresh_pages(&shop), 0);
}

#[test]
fn of_columns_that_are_dropped() {
    let mut shop = Shop::memory(schema(vec![column("a", LogicalType::Int64), column("b", LogicalType::Int64)]));
    let mut random = SmallRng::seed_from_u64(1);
    let mut noise = || -> ArrayRef { Arc::new(Int64Array::from_iter_values((0..200_000).map(|_| random.random()))) };
    let rows =
        arrow::array::RecordBatch::try_from_iter_with_nullable([("a", noise(), true), ("b", noise(), true)]).unwrap();
    shop.insert(&rows).unwrap();
    let before = shop.table.pages().len();
    let alteration = Alteration::DropColumn { name: "a".to_owned() };
    let mut kept = shop.draft();
    kept.alter(alteration.clone()).unwrap();
    drop(kept);
    shop.assert_no_page_is_lost();
    assert_eq!(shop.table.pages().len(), before);
    shop.alter(alteration).unwrap();
    assert!(shop.table.pages().len() < before);
    shop.assert_no_page_is_lost();
}
