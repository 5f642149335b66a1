//! With [`OnDamage::LeaveOut`] a row group is all there or not at all, and what is not there is counted.

use crate::support::exprs::{boxed, int};
use crate::support::rows_of_run;
use crate::support::table::MemoryTable;
use arrow::array::{ArrayRef, Int64Array};
use sinter_codec::{Choice, CompareOp, Scalar};
use sinter_exec::{Aggregate, AggregateFunction, Expr, LeftOut, LogicalType, OnDamage, Output, Pipeline, ScanColumn};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const GROUP_ROWS: usize = 3000;

/// Two columns of five groups; the second column of group 1 and the first of group 3 are damaged, every tenth row is
/// deleted, but neither the first nor the last of a group.
fn damaged() -> MemoryTable {
    let values = |factor: i64| -> ArrayRef {
        Arc::new((0..5 * GROUP_ROWS as i64).map(|row| row * factor).collect::<Int64Array>())
    };
    let columns = [(values(1), LogicalType::Int64), (values(2), LogicalType::Int64)];
    let mut table = MemoryTable::new(&columns, GROUP_ROWS, &[Choice::Raw]);
    table.delete(|row| row % 10 == 5);
    for (group, column) in [(1, 1), (3, 0)] {
        table.damage(group, column, |bytes| bytes.truncate(bytes.len() - 1));
    }
    table
}

fn pipeline(columns: &[usize], filter: Vec<Expr>, output: Output) -> (Pipeline, Arc<LeftOut>) {
    let left_out = Arc::new(LeftOut::default());
    let on_damage = OnDamage::LeaveOut(Arc::clone(&left_out));
    let columns = columns.iter().map(|&column| ScanColumn::Table(column)).collect();
    (
        Pipeline {
            source: sinter_exec::Source::Table(Arc::new(damaged())),
            columns,
            filter,
            steps: Vec::new(),
            output,
            limit: None,
            on_damage,
        },
        left_out,
    )
}

fn groups_of(rows: &[Vec<Scalar>]) -> Vec<usize> {
    let group = |row: &Vec<Scalar>| match row[0] {
        Scalar::Int(value) => value as usize / GROUP_ROWS,
        _ => panic!("a number"),
    };
    let mut counts = vec![0; 5];
    rows.iter().for_each(|row| counts[group(row)] += 1);
    counts
}

#[test]
fn rows_come_from_whole_groups_only() {
    let live = GROUP_ROWS - GROUP_ROWS / 10;
    for threads in [1, 3] {
        let (pipeline, left_out) = pipeline(&[0, 1], vec![], Output::Rows(vec![Expr::Column(0), Expr::Column(1)]));
        let run = pipeline.start().unwrap();
        let rows = rows_of_run(&run, &[LogicalType::Int64, LogicalType::Int64], threads).unwrap();
        assert_eq!(groups_of(&rows), [live, 0, live, 0, live]);
        let taken = left_out.take();
        let [told] = &taken[..] else { panic!("{taken:?}") };
        assert_eq!((told.table.as_str(), told.groups, told.rows), ("memory", 2, 2 * live as u64));
        assert!(told.reasons[0].starts_with("memory, row group 1, column \"c1\": damaged"), "{:?}", told.reasons);
        assert_eq!(run.counters.groups_left_out.load(Ordering::Relaxed), 2);
        assert_eq!(run.counters.rows_left_out.load(Ordering::Relaxed), 2 * live as u64);
        assert_eq!(left_out.take(), []);
    }
}

#[test]
fn columns_that_are_not_needed_do_not_matter() {
    let live = GROUP_ROWS - GROUP_ROWS / 10;
    let (pipeline, left_out) = pipeline(&[1], vec![], Output::Rows(vec![Expr::Column(0)]));
    let rows = rows_of_run(&pipeline.start().unwrap(), &[LogicalType::Int64], 1).unwrap();
    assert_eq!(rows.len(), 4 * live);
    assert_eq!(left_out.take()[0].groups, 1);
}

/// The filter leaves rows of the last vector only, so that a scan which opens columns when it needs them would come to the
/// damage late.
#[test]
fn a_group_is_left_out_before_its_first_row_is_used() {
    let last = int((2 * GROUP_ROWS - 10) as i128, LogicalType::Int64);
    let filter = vec![Expr::Compare(CompareOp::GreaterOrEqual, boxed(Expr::Column(0)), boxed(last))];
    let count = |function, argument| Aggregate { function, argument, filter: None, ty: LogicalType::Int64 };
    let output = Output::Aggregate(vec![
        count(AggregateFunction::CountStar, None),
        count(AggregateFunction::Sum, Some(Expr::Column(1))),
    ]);
    let (pipeline, left_out) = pipeline(&[0, 1], filter, output);
    let live = GROUP_ROWS - GROUP_ROWS / 10;
    let sum: i128 = [2, 4]
        .iter()
        .flat_map(|group| group * GROUP_ROWS..(group + 1) * GROUP_ROWS)
        .filter(|row| row % 10 != 5)
        .map(|row| 2 * row as i128)
        .sum();
    for threads in [1, 4] {
        let row = pipeline.clone().start().unwrap().aggregate(threads).unwrap();
        assert_eq!(row, [Scalar::Int(2 * live as i128), Scalar::Int(sum)]);
        // Group 0 is ruled out by its zone map, the others are missing.
        assert_eq!(left_out.take()[0].groups, 2);
    }
}

/// As in a join of a table with itself.
#[test]
fn a_group_that_several_scans_leave_out_counts_once() {
    let live = GROUP_ROWS - GROUP_ROWS / 10;
    let (first, left_out) = pipeline(&[0], vec![], Output::Rows(vec![Expr::Column(0)]));
    let second = Pipeline { columns: vec![ScanColumn::Table(1)], ..first.clone() };
    for pipeline in [first.clone(), first, second] {
        rows_of_run(&pipeline.start().unwrap(), &[LogicalType::Int64], 2).unwrap();
    }
    let taken = left_out.take();
    let [told] = &taken[..] else { panic!("{taken:?}") };
    assert_eq!((told.groups, told.rows, told.reasons.len()), (2, 2 * live as u64, 2));
}

#[test]
fn what_statistics_rule_out_or_answer_is_not_left_out() {
    let filter = vec![Expr::Compare(CompareOp::Less, boxed(Expr::Column(0)), boxed(int(100, LogicalType::Int64)))];
    let (pipeline, left_out) = pipeline(&[0, 1], filter, Output::Rows(vec![Expr::Column(1)]));
    let rows = rows_of_run(&pipeline.start().unwrap(), &[LogicalType::Int64], 2).unwrap();
    assert_eq!((rows.len(), left_out.take()), (90, vec![]));
}

#[test]
fn without_it_damage_is_an_error() {
    let (mut pipeline, left_out) = pipeline(&[0, 1], vec![], Output::Rows(vec![Expr::Column(0), Expr::Column(1)]));
    pipeline.on_damage = OnDamage::Fail;
    let error = rows_of_run(&pipeline.start().unwrap(), &[LogicalType::Int64, LogicalType::Int64], 1).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("row group 1"), "{error}");
    assert_eq!(left_out.take(), []);
}
