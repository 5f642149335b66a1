//! A scan tells its source which segments come next: each group once, no group that it will not open, no column that
//! it does not need as far as it can know. What it told is taken back when it ends.

use crate::support::exprs::{boxed, int};
use crate::support::table::MemoryTable;
use arrow::array::{ArrayRef, Int64Array};
use sinter_codec::{Choice, CompareOp, Scalar};
use sinter_exec::{Aggregate, AggregateFunction, Batch, Expr, LogicalType, OnDamage, Output, Pipeline, ScanColumn};
use std::sync::Arc;

const GROUPS: usize = 20;
const GROUP_ROWS: i64 = 2048;

/// Ascending numbers, numbers that repeat in each group, and others that do.
fn table() -> Arc<MemoryTable> {
    let rows = GROUPS as i64 * GROUP_ROWS;
    let ascending: ArrayRef = Arc::new((0..rows).collect::<Int64Array>());
    let repeating: ArrayRef = Arc::new((0..rows).map(|row| row % 1024).collect::<Int64Array>());
    let others: ArrayRef = Arc::new((0..rows).map(|row| row * 7 % 1000).collect::<Int64Array>());
    let columns = [ascending, repeating, others].map(|array| (array, LogicalType::Int64));
    Arc::new(MemoryTable::new(&columns, GROUP_ROWS as usize, &[Choice::Auto]))
}

fn compare(op: CompareOp, column: usize, value: i128) -> Expr {
    Expr::Compare(op, boxed(Expr::Column(column)), boxed(int(value, LogicalType::Int64)))
}

fn pipeline(table: &Arc<MemoryTable>, filter: Vec<Expr>, output: Output) -> Pipeline {
    // Not in the order of the table.
    let columns = vec![ScanColumn::RowId, ScanColumn::Table(2), ScanColumn::Table(1), ScanColumn::Table(0)];
    Pipeline {
        source: sinter_exec::Source::Table(table.clone()),
        columns,
        filter,
        steps: Vec::new(),
        output,
        limit: None,
        on_damage: OnDamage::Fail,
    }
}

/// Columns of the scan, by what they hold.
const OTHERS: usize = 1;
const REPEATING: usize = 2;
const ASCENDING: usize = 3;

fn sum(column: usize) -> Output {
    let argument = Some(Expr::Column(column));
    Output::Aggregate(vec![Aggregate {
        function: AggregateFunction::Sum,
        argument,
        filter: None,
        ty: LogicalType::Int64,
    }])
}

fn announced(table: &MemoryTable) -> Vec<(usize, Vec<usize>)> {
    assert_eq!(Arc::strong_count(&table.wishes), 1, "what was announced is taken back at the end");
    table.announced.lock().unwrap().clone()
}

#[test]
fn what_is_surely_read_is_said_first_and_what_turned_out_to_be_needed_later() {
    let table = table();
    let run = pipeline(&table, vec![compare(CompareOp::Equal, REPEATING, 7)], sum(OTHERS)).start().unwrap();
    let expected: i128 =
        (0..i128::from(GROUPS as i64 * GROUP_ROWS)).filter(|row| row % 1024 == 7).map(|row| row * 7 % 1000).sum();
    assert_eq!(run.aggregate(1).unwrap(), [Scalar::Int(expected)]);
    drop(run);
    // The first group is read at once. So far ahead as it looks, only the filter's column is sure; then the sum's is, too.
    let expected: Vec<_> = (1..GROUPS).map(|group| (group, if group <= 8 { vec![1] } else { vec![1, 2] })).collect();
    assert_eq!(announced(&table), expected);
}

#[test]
fn zone_maps_are_heeded() {
    let table = table();
    // Groups 5 to 9: the first and the last partly, so that their rows have to be tested.
    let filter = vec![
        compare(CompareOp::GreaterOrEqual, ASCENDING, 5 * 2048 + 9),
        compare(CompareOp::Less, ASCENDING, 10 * 2048 - 9),
    ];
    let run = pipeline(&table, filter, sum(REPEATING)).start().unwrap();
    run.aggregate(1).unwrap();
    drop(run);
    // Of those in between all rows pass, and statistics know their sums. Of the last one, the filter's column is sure.
    assert_eq!(announced(&table), [(9, vec![0])]);
}

#[test]
fn whoever_needs_no_segment_announces_none() {
    let table = table();
    let count =
        Aggregate { function: AggregateFunction::CountStar, argument: None, filter: None, ty: LogicalType::Int64 };
    let run = pipeline(&table, Vec::new(), Output::Aggregate(vec![count])).start().unwrap();
    assert_eq!(run.aggregate(2).unwrap(), [Scalar::Int(GROUPS as i128 * i128::from(GROUP_ROWS))]);
    drop(run);
    assert_eq!(announced(&table), []);
}

#[test]
fn a_few_rows_of_the_first_group_are_nobodys_reason_to_read_more() {
    let table = table();
    let mut pipeline = pipeline(&table, Vec::new(), Output::Rows(vec![Expr::Column(OTHERS)]));
    pipeline.limit = Some(5);
    let run = pipeline.start().unwrap();
    let (mut worker, mut batch, mut rows) = (run.worker(), Batch::default(), 0);
    while worker.next(&mut batch).unwrap() {
        rows += batch.rows;
    }
    drop((worker, run));
    assert_eq!(rows, 5);
    assert_eq!(announced(&table), []);
}

#[test]
fn workers_announce_each_group_once_and_a_query_that_goes_away_leaves_nothing() {
    let table = table();
    let run = pipeline(&table, vec![compare(CompareOp::Less, REPEATING, 500)], sum(OTHERS)).start().unwrap();
    run.aggregate(4).unwrap();
    drop(run);
    let mut groups: Vec<usize> = announced(&table).into_iter().map(|(group, _)| group).collect();
    let count = groups.len();
    groups.sort_unstable();
    groups.dedup();
    assert_eq!(groups.len(), count, "each once");

    table.announced.lock().unwrap().clear();
    let run = pipeline(&table, Vec::new(), Output::Rows(vec![Expr::Column(OTHERS)])).start().unwrap();
    let mut worker = run.worker();
    assert!(worker.next(&mut Batch::default()).unwrap());
    assert!(Arc::strong_count(&table.wishes) > 1);
    drop((worker, run));
    assert!((8..GROUPS - 1).contains(&announced(&table).len()), "some groups ahead, not all of them");
}
