//! Plans weigh what it costs to unpack columns by the schemes of the row group with the most rows.

use crate::support::table::MemoryTable;
use arrow::array::{ArrayRef, StringArray};
use sinter_codec::Choice;
use sinter_exec::{Expr, LogicalType, OnDamage, Output, Pipeline, ScanColumn, Source, TableSource};
use std::sync::Arc;

fn scan(table: &Arc<MemoryTable>, column: ScanColumn) -> Pipeline {
    Pipeline {
        source: Source::Table(table.clone()),
        columns: vec![column],
        filter: Vec::new(),
        steps: Vec::new(),
        output: Output::Rows(vec![Expr::Column(0)]),
        limit: None,
        on_damage: OnDamage::Fail,
    }
}

fn unpacking_cost(table: &Arc<MemoryTable>, column: ScanColumn) -> f64 {
    scan(table, column).unpacking_cost([0])
}

/// Two groups of texts that are all different, and ten rows of one text.
fn table(few_first: bool) -> Arc<MemoryTable> {
    let text = |row: usize| if row < 2000 { format!("text {}", row * 7919 % 10_007) } else { "the same".to_owned() };
    let texts: ArrayRef = Arc::new((0..2010).map(|row| Some(text(row))).collect::<StringArray>());
    let mut table = MemoryTable::new(&[(texts, LogicalType::Utf8)], 1000, &[Choice::Auto]);
    if few_first {
        table.last_group_first();
    }
    Arc::new(table)
}

#[test]
fn ten_rows_that_come_first_say_nothing() {
    let table = table(true);
    assert_eq!([0, 1, 2].map(|group| table.group_rows(group)), [10, 1000, 1000]);
    assert_ne!(table.decode_nanos(0, 0), table.decode_nanos(1, 0));
    assert_eq!(Some(unpacking_cost(&table, ScanColumn::Table(0))), table.decode_nanos(1, 0));
}

#[test]
fn scanning_costs_what_is_fetched_beside_what_is_unpacked() {
    let table = table(true);
    let bytes: usize = (0..3).filter_map(|group| table.segment_bytes(group, 0)).sum();
    let pipeline = scan(&table, ScanColumn::Table(0));
    let unpacked = 2010.0 * pipeline.unpacking_cost([0]);
    assert_eq!(pipeline.scanning_cost(&[0].into()), bytes as f64 * (1.0 / 12.0) + unpacked);
    assert_eq!(pipeline.scanning_cost(&[].into()), 0.0);
}

#[test]
fn of_groups_with_as_many_rows_the_first_is_asked() {
    let table = table(false);
    assert_eq!(Some(unpacking_cost(&table, ScanColumn::Table(0))), table.decode_nanos(0, 0));
}

#[test]
fn what_no_group_knows_costs_all_the_same() {
    let numbers_cost = unpacking_cost(&table(true), ScanColumn::RowId);
    let empty = Arc::new(MemoryTable::new(&[], 1000, &[Choice::Auto]));
    assert_eq!(empty.group_count(), 0);
    assert!(numbers_cost > 0.0 && unpacking_cost(&empty, ScanColumn::RowId) == numbers_cost);
}
