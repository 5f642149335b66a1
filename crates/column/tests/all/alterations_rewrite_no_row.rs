//! Columns and rules come and go; the row groups' chunks stay as they are.

use crate::support;
use crate::support::{Shop, batch, column, open, rows, schema};
use arrow::array::{ArrayRef, BinaryArray, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use sinter_column::*;
use sinter_exec::{LogicalType, edge};
use sinter_storage::testing::CrashingFileSystem;
use std::sync::Arc;

fn add(name: &str, ty: LogicalType, fill: Option<ArrayRef>) -> Alteration {
    Alteration::AddColumn { column: column(name, ty), fill }
}

fn drop_column(name: &str) -> Alteration {
    Alteration::DropColumn { name: name.to_owned() }
}

fn numbers(count: i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(0..count))
}

fn texts(text: &str) -> ArrayRef {
    Arc::new(StringArray::from(vec![text]))
}

/// `a`, ten rows, in one delta batch, behind 140,000 in two row groups.
fn shop() -> Shop {
    let mut shop = Shop::memory(schema(vec![column("a", LogicalType::Int64)]));
    shop.insert(&batch("a", numbers(140_000))).unwrap();
    shop.insert(&batch("a", numbers(10))).unwrap();
    shop
}

fn refused(shop: &mut Shop, alteration: Alteration) -> String {
    let before = Arc::clone(&shop.table);
    let error = shop.alter(alteration).unwrap_err();
    assert!(Arc::ptr_eq(&before, &shop.table));
    error.to_string()
}

#[test]
fn a_column_is_one_value_beside_each_row_group() {
    let mut shop = shop();
    let (pages, held) = (shop.table.pages(), shop.table.segment_bytes().1);
    shop.alter(add("b", LogicalType::Utf8, Some(texts("hello")))).unwrap();
    shop.alter(add("c", LogicalType::Int64, None)).unwrap();
    assert_eq!(shop.table.pages(), pages);
    assert!(shop.table.segment_bytes().1 - held < 500, "{} bytes", shop.table.segment_bytes().1 - held);
    let zone = shop.table.groups()[0].group.segments[1].stats.clone().unwrap();
    assert_eq!((zone.value_count, zone.null_count, zone.distinct_estimate), (131_072, 0, 1));
    let all = rows(&*shop.table);
    assert_eq!(all.len(), 140_010);
    for (id, row) in &all {
        let a = if *id < 140_000 { *id } else { *id - 140_000 };
        assert_eq!(row, &[Some(a.to_string()), Some("hello".to_owned()), None]);
    }
    // Pressing writes them out, as if they had always been there.
    shop.delete((0..136_000).collect());
    shop.press();
    assert!(rows(&*shop.table).iter().all(|(id, row)| row == &all[id]));
    assert_eq!(shop.table.segment_bytes().1, 0);
    shop.alter(drop_column("a")).unwrap();
    shop.alter(drop_column("b")).unwrap();
    assert!(rows(&*shop.table).values().all(|row| row == &[None]));
    shop.assert_no_page_is_lost();
}

#[test]
fn a_table_of_added_columns_alone_needs_no_page() {
    let mut shop = shop();
    shop.alter(add("b", LogicalType::Int64, Some(numbers(1)))).unwrap();
    shop.alter(drop_column("a")).unwrap();
    assert_eq!((shop.table.pages().len(), shop.table.live_rows()), (0, 140_010));
    shop.assert_no_page_is_lost();
    let before = rows(&*shop.table);
    shop.settle();
    shop.press();
    assert_eq!(rows(&*shop.table), before);
}

#[test]
fn lists_and_structs_can_be_added() {
    let mut shop = shop();
    let lists = |values: &[Option<i64>]| -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some(values.to_vec())]))
    };
    let ty = edge::logical_type(lists(&[]).data_type()).unwrap();
    shop.alter(add("empty", ty.clone(), Some(lists(&[])))).unwrap();
    shop.alter(add("none", ty.clone(), None)).unwrap();
    shop.alter(add("same", ty.clone(), Some(lists(&[Some(7), Some(7)])))).unwrap();
    let row = rows(&*shop.table).pop_last().unwrap().1;
    assert_eq!(row[1..], [Some("[]".to_owned()), None, Some("[7, 7]".to_owned())]);
    let mixed: Vec<Option<i64>> = (0..100).map(Some).collect();
    let error = refused(&mut shop, add("mixed", ty, Some(lists(&mixed))));
    let (start, end) = ("table 't', column 'mixed': a DEFAULT that takes ", " and UPDATE the rows");
    assert!(error.starts_with(start) && error.ends_with(end), "{error}");
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy() {
    let mut shop = shop();
    let named = |name: &str| name.to_owned();
    let check = |name: &str| Alteration::AddCheck { check: Check { name: Some(named(name)), sql: named("a > 0") } };
    shop.alter(check("p")).unwrap();
    let long = Arc::new(BinaryArray::from_vec(vec![&[7; 2000]]));
    let not_null = |fill| {
        let column = ColumnSchema { nullable: false, ..column("b", LogicalType::Int64) };
        Alteration::AddColumn { column, fill }
    };
    let null: ArrayRef = Arc::new(Int64Array::from(vec![None]));
    let b_would_be_null = "table 't' has rows, for which column 'b' would be NULL, but it is NOT NULL; give it a DEFAULT, or \
                           add it without NOT NULL and set that once it is filled";
    for (alteration, message) in [
        (add("a", LogicalType::Utf8, None), "table 't' has a column 'a' already; choose another name"),
        (drop_column("b"), "table 't' has no column 'b'; it has a"),
        (drop_column("a"), "table 't': 'a' is its only column; drop the table instead"),
        (Alteration::RenameColumn { from: named("b"), to: named("c") }, "table 't' has no column 'b'; it has a"),
        (
            Alteration::RenameColumn { from: named("a"), to: named("a") },
            "table 't' has a column 'a' already; choose another name",
        ),
        (Alteration::SetDefault { column: named("x"), default: None }, "table 't' has no column 'x'; it has a"),
        (not_null(None), b_would_be_null),
        (not_null(Some(null)), b_would_be_null),
        (
            add("b", LogicalType::Int64, Some(texts("x"))),
            "table 't', column 'b' is BIGINT, but 1 values of Utf8 were given for the rows that are there",
        ),
        (
            add("b", LogicalType::Binary, Some(long)),
            "table 't', column 'b': a DEFAULT of 2004 bytes is larger than the 1024 that rows can get when a column is \
             added; add it without, set the DEFAULT, and UPDATE the rows",
        ),
        (check("p"), "table 't': it has a check 'p' already; choose another name"),
        (Alteration::DropCheck { name: named("q") }, "table 't': it has no check 'q'; it has p"),
    ] {
        assert_eq!(refused(&mut shop, alteration), message);
    }
    let null: ArrayRef = Arc::new(Int64Array::from(vec![None]));
    shop.insert(&batch("a", null)).unwrap();
    let not_null = Alteration::SetNullable { column: named("a"), nullable: false };
    assert_eq!(
        refused(&mut shop, not_null.clone()),
        "table 't', column 'a': a row has NULL there; fill or delete such rows before it can be NOT NULL"
    );
    shop.delete(vec![140_010]);
    shop.alter(not_null).unwrap();
    let null: ArrayRef = Arc::new(Int64Array::from(vec![None]));
    shop.insert(&batch("a", null)).unwrap_err();
}

#[test]
fn alterations_and_rows_of_one_transaction_are_replayed_together() {
    let disk = CrashingFileSystem::new();
    let first = schema(vec![column("a", LogicalType::Int64)]);
    let mut shop = Shop::new(open(&disk).0, Arc::clone(&first));
    shop.insert(&batch("a", numbers(5))).unwrap();
    let mut draft = shop.draft();
    let insert = |draft: &mut Draft, batch: &RecordBatch| {
        let mut change = Change::on(draft, 1);
        change.insert(batch).unwrap();
        draft.take(change.finish().unwrap());
    };
    // A delta batch and a pressed group, both with a column that came after them.
    insert(&mut draft, &batch("a", numbers(3)));
    insert(&mut draft, &batch("a", numbers(PRESS_ROWS_MIN as i64)));
    draft.alter(add("b", LogicalType::Utf8, Some(texts("x")))).unwrap();
    draft.alter(drop_column("a")).unwrap();
    draft.alter(add("c", LogicalType::Int64, None)).unwrap();
    let both = RecordBatch::try_from_iter_with_nullable([("b", texts("y"), true), ("c", numbers(1), true)]).unwrap();
    insert(&mut draft, &both);
    shop.insert(&batch("a", numbers(2))).unwrap();
    shop.commit(draft).unwrap();
    let expected = rows(&*shop.table);
    assert_eq!(expected.len(), 5 + 2 + 3 + PRESS_ROWS_MIN + 1);
    let last = 5 + 2 + 3 + PRESS_ROWS_MIN as u64;
    assert_eq!(expected[&last], [Some("y".to_owned()), Some("0".to_owned())]);
    assert_eq!(expected[&(last - 1)], [Some("x".to_owned()), None]);
    let after = Arc::clone(shop.table.schema());
    assert_eq!(after.version, 3);
    drop(shop);
    let (shop, _) = Shop::reopened(&disk, first);
    assert_eq!(rows(&*shop.table), expected);
    assert_eq!(shop.table.schema(), &after);
}

#[test]
fn an_alteration_that_cannot_follow_is_damage() {
    let mut shop = shop();
    let mut records = shop.alter(add("b", LogicalType::Int64, None)).unwrap();
    records.extend(shop.alter(drop_column("b")).unwrap());
    records.extend(shop.alter(drop_column("b")).map_or(Vec::new(), |_| panic!()));
    let fresh = || {
        ColumnTable::create(support::TABLE, "t", schema(vec![column("a", LogicalType::Int64)]), Arc::clone(&shop.store))
    };
    let error = fresh().apply(&records[1]).unwrap_err().to_string();
    assert_eq!(error, "table 't': byte 4: alteration 2 follows alteration 0");
    records[0].payload[4] = 99;
    let error = fresh().apply(&records[0]).unwrap_err().to_string();
    assert_eq!(error, "table 't': byte 5: alteration 99 is unknown; a newer SinterDB wrote it");
    records[1].payload[0] = 1;
    let error = fresh().apply(&records[1]).unwrap_err().to_string();
    assert_eq!(error, "table 't': the log alters it in a way that it cannot be: table 't' has no column 'b'; it has a");
}
