//! Rows that will meet nobody in a join are left out before other work is done on them, where that is worth it.

use crate::support::exprs;
use crate::support::joins::{scan, unlimited};
use crate::support::table::MemoryTable;
use arrow::array::{ArrayRef, Int64Array, StringArray, UInt64Array};
use sinter_codec::{Choice, CompareOp};
use sinter_exec::{Batch, Expr, Join, JoinKind, LogicalType, Pipeline, Result, Step};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Rows that come out of a pipeline of one column, that its scan selects, and its plan.
fn early(pipeline: Pipeline) -> Result<(usize, u64, String)> {
    let run = pipeline.start_measured()?;
    run.prepare(2, &unlimited())?;
    let of_builds = run.counters.rows_selected.load(Ordering::Relaxed);
    let (mut worker, mut batch, mut rows) = (run.worker(), Batch::default(), 0);
    while worker.next(&mut batch)? {
        rows += batch.rows;
    }
    drop(worker);
    Ok((rows, run.counters.rows_selected.load(Ordering::Relaxed) - of_builds, run.explain().to_string()))
}

const EARLY_ROWS: i64 = 10_000;
const EARLY_VALUES: i64 = 2000;

/// 2000 values in turn: integers close to each other, far apart, beyond 63 bits and of 128, and texts; then twice one of 20, of
/// which every third is NULL.
fn table_of_keys() -> Arc<MemoryTable> {
    let values = || (0..EARLY_ROWS).map(|row| row % EARLY_VALUES);
    let close: ArrayRef = Arc::new(values().collect::<Int64Array>());
    let apart: ArrayRef = Arc::new(values().map(|value| value * 1_000_000_007).collect::<Int64Array>());
    let unsigned: ArrayRef =
        Arc::new(values().map(|value| u64::MAX - (value as u64) * 1_000_000_007).collect::<UInt64Array>());
    let texts: ArrayRef = Arc::new(values().map(|value| Some(format!("text {value}"))).collect::<StringArray>());
    let few: ArrayRef = Arc::new(values().map(|value| (value % 3 > 0).then_some(value % 20)).collect::<Int64Array>());
    let columns = [
        (close, LogicalType::Int64),
        (apart, LogicalType::Int64),
        (unsigned, LogicalType::UInt64),
        (texts, LogicalType::Utf8),
        (few, LogicalType::Int64),
    ];
    Arc::new(MemoryTable::new(&columns, 2500, &[Choice::Auto]))
}

fn is_less(column: usize, than: i128) -> Expr {
    Expr::Compare(CompareOp::Less, Box::new(Expr::Column(column)), Box::new(exprs::int(than, LogicalType::Int64)))
}

fn early_join(table: &Arc<MemoryTable>, kind: JoinKind, keys: &[usize], filter: Vec<Expr>) -> Step {
    let keys: Vec<Expr> = keys.iter().map(|&key| Expr::Column(key)).collect();
    let build = Box::new(Pipeline { filter, ..scan(table, 5, keys.clone()) });
    Step::Join(Join { kind, build, keys, nulls_are_equal: false, condition: None })
}

#[test]
fn keys_of_a_later_join_are_asked_about_first_where_it_drops_more() -> Result<()> {
    let table = table_of_keys();
    let expected = EARLY_ROWS / EARLY_VALUES * 20;
    let hashed = "keys of 100 rows of a join, in a Bloom filter";
    for (key, keys) in [(0, "20 keys of a join, in a bitmap"), (1, hashed), (2, hashed), (3, hashed)] {
        let all = early_join(&table, JoinKind::Semi, &[0], Vec::new());
        let some = early_join(&table, JoinKind::Semi, &[key], vec![is_less(0, 20)]);
        for (steps, is_early) in [(vec![all.clone(), some.clone()], true), (vec![some, all], false)] {
            let (rows, selected, plan) = early(Pipeline { steps, ..scan(&table, 5, vec![Expr::Column(0)]) })?;
            assert_eq!(rows, expected as usize, "{plan}");
            assert_eq!(plan.contains(keys), is_early, "{plan}");
            // A Bloom filter lets a few pass that have no partner; bounds of the keys say nothing of texts.
            assert_eq!(selected < 2 * expected as u64, is_early || key != 3, "{selected} rows selected\n{plan}");
        }
    }
    Ok(())
}

#[test]
fn keys_of_the_first_join_are_asked_about_among_conditions_on_values() -> Result<()> {
    let table = table_of_keys();
    // Passes everything, and is no test of one column with a constant.
    let condition = Expr::Compare(CompareOp::LessOrEqual, Box::new(Expr::Column(0)), Box::new(Expr::Column(1)));
    let rows_of_key = EARLY_ROWS / EARLY_VALUES;
    for (keys, filter, plan_says, expected) in [
        (vec![0], is_less(0, 20), "c0 IN (20 keys of a join, in a bitmap)", 20 * rows_of_key),
        // The first of two is ranked, so that it has a bitmap, whatever the other one is.
        (vec![0, 1], is_less(0, 20), "c0 IN (20 keys of a join, in a bitmap)", 20 * rows_of_key),
        // A third of the rows has no key.
        (vec![0, 4], is_less(0, 18), "c0 IN (18 keys of a join, in a bitmap)", 12 * rows_of_key),
        (vec![4, 3], is_less(0, 18), "c3 IN (keys of 90 rows of a join, in a Bloom filter)", 12 * rows_of_key),
        (vec![4], is_less(4, 2), "c4 IN (2 keys of a join, in a bitmap)", EARLY_ROWS / 20 * 2 * 2 / 3),
    ] {
        let steps = vec![early_join(&table, JoinKind::Semi, &keys, vec![filter])];
        let with_condition =
            Pipeline { steps, filter: vec![condition.clone()], ..scan(&table, 5, vec![Expr::Column(0)]) };
        let without = Pipeline { filter: Vec::new(), ..with_condition.clone() };
        let (rows, _, plan) = early(without)?;
        assert!(!plan.contains(" of a join, in a "), "{plan}");
        let (early_rows, _, plan) = early(with_condition)?;
        assert!(plan.contains(plan_says), "{plan_says} is wanted\n{plan}");
        assert_eq!(early_rows, rows, "{plan}");
        assert!(rows.abs_diff(expected as usize) <= rows_of_key as usize, "{rows} rows, not about {expected}\n{plan}");
    }
    Ok(())
}

#[test]
fn nothing_is_asked_before_a_join_that_asks_who_was_met() -> Result<()> {
    let table = table_of_keys();
    let some = || early_join(&table, JoinKind::Semi, &[0], vec![is_less(0, 20)]);
    for (kind, is_asked) in [
        (JoinKind::Left, true),
        (JoinKind::Semi, true),
        (JoinKind::Mark, true),
        (JoinKind::Right, false),
        (JoinKind::Full, false),
    ] {
        let steps = vec![early_join(&table, kind, &[0], Vec::new()), some()];
        let (_, _, plan) = early(Pipeline { steps, ..scan(&table, 5, vec![Expr::Column(0)]) })?;
        assert_eq!(plan.contains("20 keys of a join, in a bitmap"), is_asked, "{kind:?}\n{plan}");
    }
    // Who is asked may be such a join.
    for kind in [JoinKind::Right, JoinKind::RightSemi, JoinKind::RightAnti, JoinKind::Inner] {
        let steps = vec![
            early_join(&table, JoinKind::Semi, &[0], Vec::new()),
            early_join(&table, kind, &[0], vec![is_less(0, 20)]),
        ];
        let (_, selected, plan) = early(Pipeline { steps, ..scan(&table, 5, Vec::new()) })?;
        assert!(
            plan.contains("IN (20 keys of a join, in a bitmap)") && selected == 100,
            "{kind:?}: {selected} rows selected\n{plan}"
        );
    }
    Ok(())
}
