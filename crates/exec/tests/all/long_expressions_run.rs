//! Expressions as long as programs write them, from start to rows on a stack of ordinary size.

use crate::support::exprs::{boxed, int};
use crate::support::rows_of;
use crate::support::table::MemoryTable;
use arrow::array::{ArrayRef, Int64Array};
use sinter_codec::{Choice, CompareOp, Scalar};
use sinter_exec::{ArithmeticOp, Expr, LogicalType, Output, Pipeline, ScanColumn};
use std::sync::Arc;

const LENGTH: i128 = 2000;
const ROWS: i64 = 3000;

fn run(filter: Vec<Expr>, output: Expr) -> Vec<i128> {
    let values: ArrayRef = Arc::new((0..ROWS).collect::<Int64Array>());
    let table = MemoryTable::new(&[(values, LogicalType::Int64)], 1000, &[Choice::Auto]);
    let columns = vec![ScanColumn::Table(0)];
    let pipeline = Pipeline {
        source: sinter_exec::Source::Table(Arc::new(table)),
        columns,
        filter,
        output: Output::Rows(vec![output]),
        steps: Vec::new(),
        limit: None,
        on_damage: Default::default(),
    };
    assert!(!pipeline.to_string().is_empty());
    let rows = rows_of(pipeline, &[LogicalType::Int64], 1).expect("rows");
    let integer = |row: &Vec<Scalar>| if let [Scalar::Int(value)] = row[..] { value } else { panic!("{row:?}") };
    rows.iter().map(integer).collect()
}

fn sum(left: Expr, right: Expr) -> Expr {
    Expr::Arithmetic { op: ArithmeticOp::Add, left: boxed(left), right: boxed(right), ty: LogicalType::Int64 }
}

/// `c0 + 0 = number * 2`, which no block can answer.
fn is_twice(number: i128) -> Expr {
    let left = sum(Expr::Column(0), int(0, LogicalType::Int64));
    Expr::Compare(CompareOp::Equal, boxed(left), boxed(int(number * 2, LogicalType::Int64)))
}

#[test]
fn a_long_or_takes_what_any_part_takes() {
    let any = (1..LENGTH).fold(is_twice(0), |left, number| Expr::Or(vec![left, is_twice(number)]));
    assert_eq!(run(vec![any], Expr::Column(0)), (0..1500).map(|number| number * 2).collect::<Vec<_>>());
}

#[test]
fn and_within_or_within_and_takes_no_longer_than_it_is_deep() {
    const DEPTH: i128 = 60;
    let is = |number: i128| {
        let left = sum(Expr::Column(0), int(number, LogicalType::Int64));
        Expr::Compare(CompareOp::Equal, boxed(left), boxed(int(number * 2, LogicalType::Int64)))
    };
    let deep = (1..=DEPTH).fold(is(0), |inner, number| match number % 2 {
        1 => Expr::Or(vec![inner, is(number)]),
        _ => Expr::And(vec![inner, Expr::Not(boxed(is(number)))]),
    });
    let expected: Vec<i128> = (0..=DEPTH).filter(|number| *number == 0 || number % 2 == 1).collect();
    assert_eq!(run(vec![deep], Expr::Column(0)), expected);
}

#[test]
fn a_long_and_takes_what_all_parts_take() {
    let not = |number| Expr::Not(boxed(is_twice(number)));
    let all = (1..LENGTH).fold(not(0), |left, number| Expr::And(vec![left, not(number)]));
    // In a projection, and so not taken apart by the scan.
    let output = Expr::Case {
        branches: vec![(all.clone(), Expr::Column(0))],
        otherwise: Some(boxed(int(-1, LogicalType::Int64))),
        ty: LogicalType::Int64,
    };
    let odd: Vec<i128> = (0..1500).map(|number| number * 2 + 1).collect();
    assert_eq!(run(vec![all], output), odd);
}

#[test]
fn a_long_sum_adds_all_terms() {
    let sum = (1..LENGTH).fold(Expr::Column(0), |left, number| sum(left, int(number, LogicalType::Int64)));
    let rest: i128 = (1..LENGTH).sum();
    assert_eq!(run(vec![], sum), (0..i128::from(ROWS)).map(|value| value + rest).collect::<Vec<_>>());
}

#[test]
fn a_case_in_the_else_of_a_case_takes_the_right_branch() {
    let levels = (0..LENGTH).rev().fold(int(-1, LogicalType::Int64), |otherwise, number| Expr::Case {
        branches: vec![(is_twice(number), int(number, LogicalType::Int64))],
        otherwise: Some(boxed(otherwise)),
        ty: LogicalType::Int64,
    });
    let half = |value: i128| if value % 2 == 0 { value / 2 } else { -1 };
    assert_eq!(run(vec![], levels), (0..i128::from(ROWS)).map(half).collect::<Vec<_>>());
}
