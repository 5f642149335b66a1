//! Limits, cancelling, overflow, damage: how a run ends.

use crate::support::exprs::{boxed, int};
use crate::support::table::MemoryTable;
use crate::support::{rows_of, rows_of_run};
use arrow::array::{ArrayRef, Int32Array, Int64Array};
use sinter_codec::{Choice, CompareOp, Scalar};
use sinter_exec::{
    Aggregate, AggregateFunction, ArithmeticOp, Batch, Error, Expr, LogicalType, Memory, Output, Pipeline, Result, Run,
    ScanColumn, TableSource,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn numbers(rows: i64, group_rows: usize) -> MemoryTable {
    let values: ArrayRef = Arc::new((0..rows).collect::<Int64Array>());
    MemoryTable::new(&[(values, LogicalType::Int64)], group_rows, &[Choice::Auto])
}

fn pipeline(table: MemoryTable, output: Output, limit: Option<usize>) -> Pipeline {
    let columns = vec![ScanColumn::Table(0), ScanColumn::RowId];
    Pipeline {
        source: sinter_exec::Source::Table(Arc::new(table)),
        columns,
        filter: vec![],
        steps: Vec::new(),
        output,
        limit,
        on_damage: Default::default(),
    }
}

#[test]
fn a_limit_gives_exactly_so_many_rows_and_reads_little_more() {
    for (limit, threads) in [(0, 1), (1, 1), (1500, 1), (1500, 3), (1_000_000, 2)] {
        let run = pipeline(numbers(100_000, 10_000), Output::Rows(vec![Expr::Column(0)]), Some(limit)).start().unwrap();
        let rows = rows_of_run(&run, &[LogicalType::Int64], threads).expect("no error");
        assert_eq!(rows.len(), limit.min(100_000), "limit {limit} on {threads} threads");
        let scanned = run.counters.rows_scanned.load(Ordering::Relaxed) as usize;
        assert!(scanned <= (limit + 1024) * threads, "{scanned} rows scanned for {limit}");
    }
}

#[test]
fn workers_share_a_single_row_group() {
    let table = numbers(40_000, 40_000);
    let bytes = table.segment_bytes(0, 0).expect("the test's table knows");
    let run = pipeline(table, Output::Rows(vec![Expr::Column(0)]), None).start().expect("ours");
    let (mut one, mut other, mut batch) = (run.worker(), run.worker(), Batch::default());
    let mut rows = 0;
    for worker in [&mut one, &mut other] {
        assert!(worker.next(&mut batch).expect("rows"), "each finds something");
        rows += batch.rows;
    }
    for worker in [&mut other, &mut one] {
        while worker.next(&mut batch).expect("rows") {
            rows += batch.rows;
        }
    }
    assert_eq!(rows, 40_000);
    let counters = [&run.counters.groups_total, &run.counters.bytes_compressed];
    assert_eq!(counters.map(|count| count.load(Ordering::Relaxed)), [1, bytes as u64], "nobody counts it twice");
}

#[test]
fn cancelling_stops_every_worker() {
    let run = pipeline(numbers(200_000, 10_000), Output::Rows(vec![Expr::Column(0)]), None).start().expect("ours");
    let (mut worker, mut batch) = (run.worker(), Batch::default());
    assert!(worker.next(&mut batch).expect("rows"));
    run.cancel();
    let mut taken = 0;
    let error = loop {
        match worker.next(&mut batch) {
            Ok(true) => taken += 1,
            Ok(false) => panic!("it should have been cancelled"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Cancelled) && taken < 32, "{error} after {taken} batches");
    let sum = Aggregate {
        function: AggregateFunction::Sum,
        argument: Some(Expr::Arithmetic {
            op: ArithmeticOp::Add,
            left: boxed(Expr::Column(0)),
            right: boxed(Expr::Column(0)),
            ty: LogicalType::Int64,
        }),
        filter: None,
        ty: LogicalType::Int64,
    };
    let run = pipeline(numbers(200_000, 10_000), Output::Aggregate(vec![sum]), None).start().expect("ours");
    run.cancel();
    assert!(matches!(run.aggregate(2), Err(Error::Cancelled)));
}

/// Grants everything, and cancels a run when it is asked for the last time of so many.
#[derive(Debug)]
struct Cancelling {
    run: Arc<Run>,
    requests_left: AtomicUsize,
}

impl Memory for Cancelling {
    fn grow(&self, _bytes: usize) -> Result<()> {
        if self.requests_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.run.cancel();
        }
        Ok(())
    }

    fn shrink(&self, _bytes: usize) {}
}

#[test]
fn groups_end_wherever_they_are_cancelled() {
    let mut cancelled = 0;
    for requests in (1..60).step_by(3) {
        let output = Output::Groups { keys: vec![Expr::Column(1)], aggregates: Vec::new() };
        let run = pipeline(numbers(100_000, 5000), output, None).start().expect("ours");
        let memory: Arc<dyn Memory> =
            Arc::new(Cancelling { run: Arc::clone(&run), requests_left: AtomicUsize::new(requests) });
        match run.groups(4, &memory) {
            // There were fewer requests, or it was the last one.
            Ok(groups) => assert_eq!(groups.len(), 100_000),
            Err(Error::Cancelled) => cancelled += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(cancelled > 3, "{cancelled} times cancelled");
}

#[test]
fn row_ids_come_with_the_rows() {
    let run = pipeline(numbers(5000, 777), Output::Rows(vec![Expr::Column(1), Expr::Column(0)]), None);
    let rows = rows_of(run, &[LogicalType::UInt64, LogicalType::Int64], 1).expect("no error");
    assert_eq!(rows.len(), 5000);
    assert!(rows.iter().all(|row| match row[..] {
        [Scalar::Int(id), Scalar::Int(value)] => id == value + 1000,
        _ => false,
    }));
}

#[test]
fn overflow_names_the_operation_and_the_remedy() {
    let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(i32::MAX)]));
    let table = MemoryTable::new(&[(values, LogicalType::Int32)], 100, &[Choice::Auto]);
    let sum = Expr::Arithmetic {
        op: ArithmeticOp::Add,
        left: boxed(Expr::Column(0)),
        right: boxed(int(1, LogicalType::Int32)),
        ty: LogicalType::Int32,
    };
    let mut pipeline = pipeline(table, Output::Rows(vec![sum]), None);
    let error = rows_of(pipeline.clone(), &[LogicalType::Int32], 1).expect_err("the greatest number has no next");
    assert_eq!(error.to_string(), "2147483647 + 1 is out of range for INTEGER; cast an operand to a wider type");
    pipeline.filter = vec![Expr::Compare(CompareOp::Less, boxed(Expr::Column(0)), boxed(int(5, LogicalType::Int32)))];
    let rows = rows_of(pipeline, &[LogicalType::Int32], 1).expect("the row that fails is not asked for");
    assert_eq!(rows, [[Scalar::Int(2)]]);
}

#[test]
fn a_sum_beyond_its_type_is_an_error() {
    let values: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, 1]));
    for choice in [Choice::Raw, Choice::Auto] {
        let table = MemoryTable::new(&[(values.clone(), LogicalType::Int64)], 1, &[choice]);
        let sum =
            |ty| Aggregate { function: AggregateFunction::Sum, argument: Some(Expr::Column(0)), filter: None, ty };
        let wide = LogicalType::Decimal { precision: 38, scale: 0 };
        let pipeline = pipeline(table, Output::Aggregate(vec![sum(wide)]), None);
        let found = pipeline.clone().start().expect("ours").aggregate(2).expect("it fits");
        assert_eq!(found, [Scalar::Int(i128::from(i64::MAX) + 1)]);
        let narrow = Pipeline { output: Output::Aggregate(vec![sum(LogicalType::Int64)]), ..pipeline };
        let error = narrow.start().expect("ours").aggregate(2).expect_err("it does not fit");
        assert_eq!(
            error.to_string(),
            "sum 9223372036854775808 is out of range for BIGINT; cast an operand to a wider type"
        );
    }
}

#[test]
fn damage_names_table_group_and_column() {
    let mut table = numbers(4000, 1000);
    table.damage(2, 0, |bytes| bytes.truncate(bytes.len() / 2));
    let run = pipeline(table, Output::Rows(vec![Expr::Column(0)]), None);
    let error = rows_of(run, &[LogicalType::Int64], 1).expect_err("half a block is none");
    let text = error.to_string();
    assert!(text.starts_with("memory, row group 2, column \"c0\": damaged block"), "{text}");
    // A block of another type than the column's.
    let mut table = numbers(3000, 1000);
    let mut other = Vec::new();
    let floats: ArrayRef = Arc::new(arrow::array::Float64Array::from(vec![0.5; 1000]));
    sinter_exec::edge::encode_segment(&floats, &LogicalType::Float64, &Choice::Raw, &mut other).expect("floats");
    table.damage(1, 0, |bytes| bytes.clone_from(&other));
    let run = pipeline(table, Output::Rows(vec![Expr::Column(0)]), None);
    let error = rows_of(run, &[LogicalType::Int64], 1).expect_err("floats are no integers").to_string();
    assert!(error.contains("1000 values of f64 where the table has 1000 of i64"), "{error}");
}

#[test]
fn what_is_not_ours_is_said_at_the_start() {
    let outputs = [
        Expr::Column(7),
        Expr::Cast { expr: boxed(Expr::Column(0)), ty: LogicalType::Utf8 },
        Expr::Not(boxed(Expr::Column(0))),
        Expr::Compare(CompareOp::Less, boxed(Expr::Column(0)), boxed(int(1, LogicalType::Date))),
    ];
    for output in outputs {
        let error = pipeline(numbers(1, 1), Output::Rows(vec![output]), None).start().expect_err("not ours");
        assert!(error.to_string().starts_with("exec cannot run"), "{error}");
    }
}

#[test]
fn a_panic_in_a_worker_is_an_error_of_the_query() {
    for threads in [1, 2] {
        let mut table = numbers(50_000, 10_000);
        (table.panics_at, table.zones) = (Some(3), false);
        let count = Aggregate {
            function: AggregateFunction::Count,
            argument: Some(Expr::Column(0)),
            filter: None,
            ty: LogicalType::Int64,
        };
        let run = pipeline(table, Output::Aggregate(vec![count]), None).start().expect("ours");
        let error = run.aggregate(threads).expect_err("a worker panics").to_string();
        assert_eq!(error, "a worker panicked: this group panics");
    }
}
