//! However many rows come out of a join, few are in memory; and none is made that a limit leaves out.

use crate::support::joins::{scan, unlimited};
use crate::support::memory::Limited;
use crate::support::rows_of;
use crate::support::table::MemoryTable;
use arrow::array::{ArrayRef, Int64Array};
use sinter_codec::{Choice, Scalar};
use sinter_exec::{
    Aggregate, AggregateFunction, Batch, Error, Expr, Join, JoinKind, LogicalType, Memory, Output, Pipeline, Result,
    Step,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// `rows` numbers that repeat after `period`.
fn numbers(rows: i64, period: i64) -> Arc<MemoryTable> {
    let numbers: ArrayRef = Arc::new((0..rows).map(|row| row % period).collect::<Int64Array>());
    Arc::new(MemoryTable::new(&[(numbers, LogicalType::Int64)], 5000, &[Choice::Auto]))
}

fn self_join(table: &Arc<MemoryTable>, output: Output) -> Pipeline {
    let build = Box::new(scan(table, 1, vec![Expr::Column(0), Expr::Column(0)]));
    let join =
        Join { kind: JoinKind::Inner, build, keys: vec![Expr::Column(0)], nulls_are_equal: false, condition: None };
    Pipeline { steps: vec![Step::Join(join)], output, ..scan(table, 1, Vec::new()) }
}

#[test]
fn what_a_join_multiplies_is_never_there_at_once() -> Result<()> {
    // 400 million pairs; a worker has a few vectors of them.
    let all = numbers(20_000, 1);
    let run = self_join(&all, Output::Rows(vec![Expr::Column(1)])).start()?;
    run.prepare(1, &unlimited())?;
    let (mut worker, mut batch, mut rows) = (run.worker(), Batch::default(), 0);
    while rows < 100_000 && worker.next(&mut batch)? {
        rows += batch.rows;
    }
    assert!(rows >= 100_000);
    let scanned = run.counters.rows_scanned.load(Ordering::Relaxed);
    assert!(scanned <= 20_000 + 1024, "{scanned} rows, of which 20,000 were for the table");
    run.cancel();
    let error = loop {
        match worker.next(&mut batch) {
            Ok(true) => {}
            Ok(false) => panic!("400 million rows are not done yet"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Cancelled), "{error}");
    Ok(())
}

#[test]
fn limits_hold_across_joins_and_counts_are_exact() -> Result<()> {
    let some = numbers(3000, 3);
    let limited = Pipeline { limit: Some(1500), ..self_join(&some, Output::Rows(vec![Expr::Column(0)])) };
    assert_eq!(rows_of(limited, &[LogicalType::Int64], 2)?.len(), 1500);
    let count =
        Aggregate { function: AggregateFunction::CountStar, argument: None, filter: None, ty: LogicalType::Int64 };
    let run = self_join(&some, Output::Aggregate(vec![count])).start()?;
    assert!(run.aggregate(1).is_err(), "its table is not there yet");
    run.prepare(2, &unlimited())?;
    assert_eq!(run.aggregate(2)?, [Scalar::Int(3 * 1000 * 1000)]);
    Ok(())
}

#[test]
fn memory_that_is_not_granted_ends_the_query_and_is_given_back() -> Result<()> {
    let table = numbers(50_000, 50_000);
    for limit in [1000, 200_000, 1_000_000] {
        let memory = Arc::new(Limited::new(limit));
        let shared: Arc<dyn Memory> = Arc::clone(&memory) as _;
        let run = self_join(&table, Output::Rows(vec![Expr::Column(1)])).start()?;
        let error = run.prepare(2, &shared).expect_err("50,000 keys take more");
        assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
        let again = run.prepare(2, &shared).expect_err("it failed before");
        assert!(matches!(&again, Error::OutOfMemory(_)) && again.to_string() == error.to_string(), "{again}");
        drop(run);
        assert_eq!(memory.left(), limit, "of {limit} bytes");
    }
    Ok(())
}
