//! A transaction of many small inserts ends with few row groups, and touches none that was there before.

use crate::support::{Shop, batch, column, rows, schema};
use arrow::array::{ArrayRef, Int64Array};
use sinter_column::*;
use sinter_exec::LogicalType;
use std::sync::Arc;

fn numbers(numbers: std::ops::Range<i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(numbers))
}

#[test]
fn merged_in_the_draft() {
    let mut shop = Shop::memory(schema(vec![column("a", LogicalType::Int64)]));
    shop.insert(&batch("a", numbers(0..1))).unwrap();
    let mut draft = shop.draft();
    for row in 1..2000 {
        let mut change = Change::on(&draft, 1);
        change.insert(&batch("a", numbers(row..row + 1))).unwrap();
        draft.take(change.finish().unwrap());
        assert!(draft.now().groups().len() <= 14, "{} groups after {row} rows", draft.now().groups().len());
        assert!(Arc::ptr_eq(&draft.now().groups()[0].group, &shop.table.groups()[0].group));
    }
    // Others came first: the draft's rows follow theirs.
    shop.insert(&batch("a", numbers(-5..0))).unwrap();
    shop.commit(draft).unwrap();
    let values: Vec<i64> =
        rows(&*shop.table).into_values().map(|row| row[0].as_ref().unwrap().parse().unwrap()).collect();
    assert_eq!(values, [0].into_iter().chain(-5..0).chain(1..2000).collect::<Vec<i64>>());
}

#[test]
fn pressed_in_the_draft_once_they_make_a_row_group() {
    let mut shop = Shop::memory(schema(vec![column("a", LogicalType::Int64)]));
    shop.insert(&batch("a", numbers(0..100))).unwrap();
    let mut draft = shop.draft();
    for start in 0..1100 {
        let mut change = Change::on(&draft, 1);
        change.insert(&batch("a", numbers(start * 250..start * 250 + 250))).unwrap();
        draft.take(change.finish().unwrap());
    }
    let (stored, held) = draft.now().segment_bytes();
    assert!(stored > 0 && held < 1_100_000, "{stored} bytes in chunks, {held} in memory");
    assert!(Arc::ptr_eq(&draft.now().groups()[0].group, &shop.table.groups()[0].group));
    shop.commit(draft).unwrap();
    assert_eq!(shop.table.live_rows(), 275_100);
    shop.assert_no_page_is_lost();
}
