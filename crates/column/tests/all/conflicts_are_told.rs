//! What one transaction did to a row decides whether another can still change it; what it did to others does not.

use crate::support::{Shop, batch, column, rows, schema};
use arrow::array::{ArrayRef, Int64Array};
use sinter_column::*;
use sinter_exec::LogicalType;
use std::sync::Arc;

/// So many rows become a row group at once.
const MANY: i64 = PRESS_ROWS_MIN as i64;

fn numbers(numbers: std::ops::Range<i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(numbers))
}

/// Ten rows, ids 0 to 9.
fn shop() -> Shop {
    let mut shop = Shop::memory(schema(vec![column("a", LogicalType::Int64)]));
    shop.insert(&batch("a", numbers(0..10))).unwrap();
    shop
}

fn deleting(shop: &Shop, row_ids: Vec<u64>) -> Draft {
    let mut draft = shop.draft();
    let mut change = Change::on(&draft, 1);
    change.delete(row_ids).unwrap();
    draft.take(change.finish().unwrap());
    draft
}

fn inserting(shop: &Shop, values: ArrayRef) -> Draft {
    let mut draft = shop.draft();
    let mut change = Change::on(&draft, 1);
    change.insert(&batch("a", values)).unwrap();
    draft.take(change.finish().unwrap());
    draft
}

fn altering(shop: &Shop, alteration: Alteration) -> Draft {
    let mut draft = shop.draft();
    draft.alter(alteration).unwrap();
    draft
}

fn conflict(result: Result<Rebased>) -> String {
    match result {
        Err(error @ Error::Conflict { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

const CHANGED: &str =
    "another transaction changed or deleted a row of table 't' that this one changes; run the transaction again";

#[test]
fn the_second_to_change_a_row_is_told() {
    let mut shop = shop();
    let (first, second, third) = (deleting(&shop, vec![2, 3]), deleting(&shop, vec![3, 4]), deleting(&shop, vec![5]));
    shop.commit(first).unwrap();
    assert_eq!(conflict(second.rebase(&shop.table)), CHANGED);
    shop.commit(third).unwrap();
    assert_eq!(rows(&*shop.table).into_keys().collect::<Vec<u64>>(), [0, 1, 4, 6, 7, 8, 9]);
}

#[test]
fn pressing_meanwhile_changes_nothing_about_that() {
    let mut shop = shop();
    let (first, second, third) = (deleting(&shop, vec![2, 3]), deleting(&shop, vec![3, 4]), deleting(&shop, vec![5]));
    shop.commit(first).unwrap();
    // Rows 2 and 3 are gone from the groups, not only marked.
    shop.press();
    assert_eq!(shop.table.groups()[0].group.rows, 8);
    assert_eq!(conflict(second.rebase(&shop.table)), CHANGED);
    shop.commit(third).unwrap();
    assert_eq!(rows(&*shop.table).into_keys().collect::<Vec<u64>>(), [0, 1, 4, 6, 7, 8, 9]);
}

#[test]
fn inserts_never_stand_in_each_others_way() {
    let mut shop = shop();
    let drafts: Vec<Draft> = (0..5).map(|at| inserting(&shop, numbers(at * 100..at * 100 + MANY))).collect();
    for draft in drafts.into_iter().rev() {
        shop.commit(draft).unwrap();
    }
    let rows = rows(&*shop.table);
    let all = 10 + 5 * MANY as u64;
    assert_eq!(rows.len() as u64, all);
    assert_eq!(rows.into_keys().collect::<Vec<u64>>(), (0..all).collect::<Vec<u64>>());
    shop.assert_no_page_is_lost();
}

#[test]
fn the_schema_is_changed_by_one_at_a_time() {
    let mut shop = shop();
    let rename = || Alteration::RenameColumn { from: "a".to_owned(), to: "b".to_owned() };
    let (first, second) = (altering(&shop, rename()), altering(&shop, rename()));
    let (third, nothing) = (inserting(&shop, numbers(0..1)), shop.draft());
    shop.commit(first).unwrap();
    let altered = "another transaction altered table 't', which this one changes; run the transaction again";
    assert_eq!(conflict(second.rebase(&shop.table)), altered);
    assert_eq!(conflict(third.rebase(&shop.table)), altered);
    assert!(nothing.is_empty());
    assert!(nothing.rebase(&shop.table).unwrap().records.is_empty());
}

#[test]
fn rows_of_others_may_stand_against_an_alteration() {
    let mut shop = shop();
    let draft = altering(&shop, Alteration::SetNullable { column: "a".to_owned(), nullable: false });
    let null: ArrayRef = Arc::new(Int64Array::from(vec![None]));
    shop.insert(&batch("a", null)).unwrap();
    assert_eq!(
        conflict(draft.rebase(&shop.table)),
        "another transaction inserted rows into table 't' that stand against an alteration; run the transaction again"
    );
    // Rows that are no more do not.
    shop.delete(vec![10]);
    shop.commit(draft).unwrap();
    assert!(!shop.table.schema().columns[0].nullable);
}

#[test]
fn what_was_inserted_and_deleted_again_is_not_in_the_log() {
    let mut shop = shop();
    let mut draft = inserting(&shop, numbers(0..MANY));
    for ids in [(10..10 + MANY as u64).collect(), vec![1]] {
        let mut change = Change::on(&draft, 1);
        change.delete(ids).unwrap();
        draft.take(change.finish().unwrap());
    }
    let records = shop.commit(draft).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!((shop.table.live_rows(), shop.table.next_row_id()), (9, 10));
    shop.assert_no_page_is_lost();
}

#[test]
fn a_rewrite_keeps_what_was_deleted_meanwhile() {
    let mut shop = shop();
    shop.insert(&batch("a", numbers(0..10))).unwrap();
    let (merging, pressing) = (
        shop.table.settling(1).unwrap().unwrap(),
        shop.table.pressing(1, &mut Unreadable::default()).unwrap().unwrap(),
    );
    shop.delete(vec![4, 15]);
    shop.insert(&batch("a", numbers(0..10))).unwrap();
    shop.delete(vec![19, 20]);
    let before = rows(&*shop.table);
    assert!(shop.rewrite(&merging));
    assert_eq!((shop.table.groups().len(), rows(&*shop.table)), (2, before.clone()));
    // Its groups are there no more.
    assert!(!shop.rewrite(&pressing));
    drop(pressing);
    shop.assert_no_page_is_lost();
    let pressing = shop.table.pressing(1, &mut Unreadable::default()).unwrap().unwrap();
    shop.alter(Alteration::RenameColumn { from: "a".to_owned(), to: "b".to_owned() }).unwrap();
    assert!(!shop.rewrite(&pressing));
    shop.press();
    assert_eq!((shop.table.groups().len(), rows(&*shop.table)), (1, before));
    assert_eq!(shop.table.groups()[0].group.rows, 26);
}
