//! Random ORDER BY, of all rows and of the first few, against rows that are sorted one by one.

use crate::support;
use crate::support::aggregates::holds;
use crate::support::exprs::{self, boxed, int};
use crate::support::memory::{Limited, Refusing};
use crate::support::random::Random;
use crate::support::table::MemoryTable;
use crate::support::{choice_lists, model, random_table, read_back};
use arrow::array::{ArrayRef, Decimal128Array, Int64Array, StringArray};
use sinter_codec::{Choice, CompareOp, Scalar};
use sinter_exec::{
    Error, Expr, LogicalType, Memory, Order, Output, Pipeline, Result, ScanColumn, SortKey, Sorted, Source, Unlimited,
};
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::Ordering as AtomicOrdering;

fn pipeline(table: &Arc<MemoryTable>, columns: usize, rows: &[usize], order: Order) -> Pipeline {
    Pipeline {
        source: Source::Table(Arc::clone(table) as _),
        columns: (0..columns).map(ScanColumn::Table).collect(),
        filter: Vec::new(),
        output: Output::Sorted { rows: rows.iter().map(|&column| Expr::Column(column)).collect(), order },
        steps: Vec::new(),
        limit: None,
        on_damage: Default::default(),
    }
}

fn ascending(expr: Expr) -> SortKey {
    SortKey { expr, descending: false, nulls_first: false }
}

fn all_by(keys: Vec<SortKey>) -> Order {
    Order { keys, skip: 0, fetch: None }
}

fn sorted(pipeline: Pipeline, threads: usize) -> Result<Sorted> {
    let memory: Arc<dyn Memory> = Arc::new(Unlimited);
    pipeline.start()?.sorted(threads, &memory)
}

/// The rows as whoever scans them sees them, one thread after the other.
fn found(pipeline: Pipeline, threads: usize) -> Result<Vec<Vec<Scalar>>> {
    found_within(pipeline, threads, &(Arc::new(Unlimited) as _))
}

/// The same with no more than this memory.
fn found_within(pipeline: Pipeline, threads: usize, memory: &Arc<dyn Memory>) -> Result<Vec<Vec<Scalar>>> {
    let types = pipeline.output_types();
    let outer = read_back(pipeline);
    assert_eq!(outer.worker_count_max(), 1, "rows stay in order");
    let run = outer.start()?;
    run.prepare(threads, memory)?;
    support::rows_of_run(&run, &types, 1)
}

fn compare(order: &Order, one: &[Scalar], other: &[Scalar]) -> Ordering {
    let types = exprs::types();
    let by = |key: &SortKey| {
        let of = |row: &[Scalar]| model::evaluate(&key.expr, row, &types).expect("it cannot fail");
        match (of(one), of(other)) {
            (Scalar::Null, Scalar::Null) => Ordering::Equal,
            (Scalar::Null, _) => {
                if key.nulls_first {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (_, Scalar::Null) => {
                if key.nulls_first {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            (one, other) if key.descending => model::order(&other, &one),
            (one, other) => model::order(&one, &other),
        }
    };
    order.keys.iter().map(by).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

#[test]
fn all_keys_all_directions_all_schemes() {
    let mut spilled = 0;
    for (index, choices) in choice_lists().iter().enumerate() {
        for seed in 0..4u64 {
            let seed = seed * 100 + index as u64;
            let mut random = Random(seed);
            let rows = *random.pick(&[0, 1, 700, 2500, 30_000]);
            let (table, alive) = random_table(&mut random, rows, (seed % 3) as usize, choices);
            let table = Arc::new(table);
            let types = exprs::types();
            for query in 0..10 {
                let mut keys = Vec::new();
                for _ in 0..1 + random.below(3) {
                    let column = Expr::Column(random.below(types.len()));
                    let expr = if random.chance(15) { exprs::simple_condition(&mut random) } else { column };
                    let (descending, nulls_first) = (random.chance(50), random.chance(50));
                    keys.push(SortKey { expr, descending, nulls_first });
                }
                let fetch = *random.pick(&[None, None, Some(0), Some(1), Some(10), Some(1500), Some(12_000)]);
                let skip = *random.pick(&[0, 0, 3, 2000]);
                let order = Order { keys, skip, fetch };
                let filter: Vec<Expr> =
                    if random.chance(60) { Vec::new() } else { vec![exprs::simple_condition(&mut random)] };
                let mut wanted: Vec<&Vec<Scalar>> =
                    alive.iter().filter(|row| filter.iter().all(|part| holds(part, row))).collect();
                wanted.sort_by(|one, other| compare(&order, one, other));
                let count = wanted.len().saturating_sub(skip).min(fetch.unwrap_or(usize::MAX));
                // All columns, so that a row is known again; in another order.
                let columns: Vec<usize> = (0..types.len()).rev().collect();
                let pipeline =
                    Pipeline { filter: filter.clone(), ..pipeline(&table, types.len(), &columns, order.clone()) };
                let refusing = Arc::new(Refusing::at_random(&mut random));
                let memory: Arc<dyn Memory> =
                    if random.chance(50) { Arc::new(Unlimited) } else { Arc::clone(&refusing) as _ };
                let mut found = match found_within(pipeline.clone(), 1 + random.below(3), &memory) {
                    // While more were there than are wanted.
                    Err(Error::OutOfMemory(_)) if fetch.is_some() => found(pipeline, 2).expect("nothing fails"),
                    found => found.expect("nothing fails"),
                };
                spilled += usize::from(refusing.files.load(AtomicOrdering::Relaxed) > 0);
                found.iter_mut().for_each(|row| row.reverse());
                let context = || format!("seed {seed}, query {query}, {choices:?}\n{filter:?}\n{order:?}");
                assert_eq!(found.len(), count, "{}", context());
                for (row, wanted) in found.iter().zip(&wanted[skip.min(wanted.len())..]) {
                    let is_equal = compare(&order, row, wanted).is_eq();
                    assert!(is_equal, "{row:?} instead of {wanted:?}\n{}", context());
                }
                // None is there more often than it was.
                let text = |row: &[Scalar]| format!("{row:?}");
                let mut left: Vec<String> = wanted.iter().map(|row| text(row)).collect();
                left.sort_unstable();
                let mut texts: Vec<String> = found.iter().map(|row| text(row)).collect();
                texts.sort_unstable();
                let mut left = left.into_iter();
                assert!(texts.iter().all(|row| left.any(|other| other == *row)), "{}", context());
            }
        }
    }
    assert!(spilled > 100, "{spilled} times spilled");
}

/// Columns of a table in groups of 5000 rows.
fn table(columns: &[(ArrayRef, LogicalType)]) -> Arc<MemoryTable> {
    let choices = vec![Choice::Auto; columns.len()];
    Arc::new(MemoryTable::new(columns, 5000, &choices))
}

fn texts(rows: &[Vec<Scalar>], column: usize) -> Vec<String> {
    let text = |row: &Vec<Scalar>| match &row[column] {
        Scalar::Bytes(text) => String::from_utf8(text.clone()).expect("text"),
        other => panic!("{other:?} is no text"),
    };
    rows.iter().map(text).collect()
}

#[test]
fn long_texts_that_begin_alike() {
    let mut all: Vec<String> =
        (0..12_000).map(|number| format!("a long beginning {:05}", number * 7919 % 12_000)).collect();
    all.extend(["", "a", "a long beginning", "a long beginnin\u{10ffff}", "a long beginning \0"].map(str::to_owned));
    let number: ArrayRef = Arc::new((0..all.len() as i64).map(|number| number % 3).collect::<Int64Array>());
    let column: ArrayRef = Arc::new(StringArray::from_iter_values(&all));
    let table = table(&[(column, LogicalType::Utf8), (number, LogicalType::Int64)]);
    all.sort_unstable();
    for fetch in [None, Some(20)] {
        let order = Order { fetch, ..all_by(vec![ascending(Expr::Column(0))]) };
        let found = found(pipeline(&table, 2, &[0], order), 2).expect("ours");
        let wanted = &all[..fetch.unwrap_or(all.len())];
        assert!(texts(&found, 0) == wanted);
    }
    let keys = vec![ascending(Expr::Column(1)), SortKey { descending: true, ..ascending(Expr::Column(0)) }];
    let found = found(pipeline(&table, 2, &[1, 0], all_by(keys)), 2).expect("ours");
    assert!(found.is_sorted_by(|one, other| {
        model::order(&one[0], &other[0]).then_with(|| model::order(&other[1], &one[1])).is_le()
    }));
}

#[test]
fn numbers_that_no_head_holds() {
    let number = |row: i128| (row * 7919 % 10_007 - 5000) * 10_i128.pow(33) + row % 2;
    let all: Vec<i128> = (0..20_000).map(number).collect();
    let column =
        Decimal128Array::from_iter_values(all.iter().copied()).with_precision_and_scale(38, 0).expect("38 digits");
    let ty = LogicalType::Decimal { precision: 38, scale: 0 };
    let table = table(&[(Arc::new(column), ty)]);
    // A sum is not known to be between bounds.
    let key = Expr::Arithmetic {
        op: sinter_exec::ArithmeticOp::Add,
        left: boxed(Expr::Column(0)),
        right: boxed(int(0, LogicalType::Decimal { precision: 38, scale: 0 })),
        ty: LogicalType::Decimal { precision: 38, scale: 0 },
    };
    let mut wanted = all;
    wanted.sort_unstable();
    for fetch in [None, Some(3), Some(10_000)] {
        let order = Order { fetch, ..all_by(vec![ascending(key.clone())]) };
        let found = found(pipeline(&table, 1, &[0], order), 2).expect("ours");
        let found: Vec<i128> =
            found.iter().map(|row| if let Scalar::Int(value) = row[0] { value } else { 0 }).collect();
        assert!(found == wanted[..fetch.unwrap_or(wanted.len())]);
    }
}

#[test]
fn of_the_first_few_rows_only_keys_are_decoded() {
    let numbers: ArrayRef =
        Arc::new((0..100_000_i64).rev().map(|number| number * 7919 % 100_003).collect::<Int64Array>());
    let names: ArrayRef = Arc::new((0..100_000).map(|number| Some(number.to_string())).collect::<StringArray>());
    let table = table(&[(numbers, LogicalType::Int64), (names, LogicalType::Utf8)]);
    let order = Order { keys: vec![ascending(Expr::Column(0))], skip: 0, fetch: Some(10) };
    let memory: Arc<dyn Memory> = Arc::new(Unlimited);
    let run = pipeline(&table, 2, &[1], order).start().expect("ours");
    assert_eq!(run.sorted(1, &memory).expect("ours").len(), 10);
    let decoded = run.counters.vectors_decoded.load(AtomicOrdering::Relaxed);
    let vectors = run.counters.vectors_total.load(AtomicOrdering::Relaxed);
    assert!(decoded < vectors + vectors / 2, "{decoded} columns of {vectors} vectors");
}

#[test]
fn blocks_are_asked_for_the_first_few_rows() {
    // Groups of 5000 rows have a few hundred names, so that there are dictionaries, and all the same ones, so that zone maps
    // say nothing. The first and the last one come once.
    let name = |row: i64| match row % 5000 {
        100 => "a".to_owned(),
        3000 => "z".to_owned(),
        other => format!("n{}", other % 300),
    };
    let names: ArrayRef = Arc::new((0..100_000).map(|row| Some(name(row))).collect::<StringArray>());
    let numbers: ArrayRef = Arc::new((0..100_000).collect::<Int64Array>());
    let table = table(&[(names, LogicalType::Utf8), (numbers, LogicalType::Int64)]);
    let memory: Arc<dyn Memory> = Arc::new(Unlimited);
    let counts = |key: usize, descending: bool| {
        let key = SortKey { descending, ..ascending(Expr::Column(key)) };
        let order = Order { keys: vec![key], skip: 0, fetch: Some(3) };
        let run = pipeline(&table, 2, &[0], order).start().expect("ours");
        assert_eq!(run.sorted(1, &memory).expect("ours").len(), 3);
        let counters = [&run.counters.vectors_decoded, &run.counters.vectors_total, &run.counters.groups_pruned];
        counters.map(|counter| counter.load(AtomicOrdering::Relaxed))
    };
    for descending in [false, true] {
        let [decoded, vectors, _] = counts(0, descending);
        assert!(decoded < vectors / 2, "{decoded} columns of {vectors} vectors");
    }
    let [_, vectors, pruned] = counts(1, false);
    assert!(pruned > 0 && vectors < 100_000 / 1024, "{pruned} groups pruned, {vectors} vectors taken");
}

#[test]
fn nulls_that_come_first_rule_out_what_comes_behind_them() {
    const ROWS: i64 = 100_000;
    let memory: Arc<dyn Memory> = Arc::new(Unlimited);
    let counts = |is_null: fn(i64) -> bool, fetch: usize| {
        let number = |row: i64| (!is_null(row)).then_some(row * row % 99_991 * 7919 % ROWS);
        let numbers = (0..ROWS).map(number).collect::<Int64Array>();
        let mut expected: Vec<Option<i64>> = (0..ROWS).map(number).collect();
        expected.sort_unstable();
        let expected =
            expected.into_iter().map(|number| number.map_or(Scalar::Null, |number| Scalar::Int(number.into())));
        let table = table(&[(Arc::new(numbers) as ArrayRef, LogicalType::Int64)]);
        let key = SortKey { nulls_first: true, ..ascending(Expr::Column(0)) };
        let order = Order { keys: vec![key], skip: 0, fetch: Some(fetch) };
        let sorted = found(pipeline(&table, 1, &[0], order.clone()), 1).expect("ours");
        assert_eq!(sorted.concat(), expected.take(fetch).collect::<Vec<_>>());
        let run = pipeline(&table, 1, &[0], order).start().expect("ours");
        assert_eq!(run.sorted(1, &memory).expect("ours").len(), fetch);
        let counters = [&run.counters.groups_total, &run.counters.groups_pruned, &run.counters.rows_selected];
        counters.map(|counter| counter.load(AtomicOrdering::Relaxed))
    };
    // Enough of them in the first group: no other one is opened.
    let [groups, pruned, _] = counts(|row| row % 10 == 3 && row < 1000, 50);
    assert_eq!(pruned, groups - 1);
    // A few in each group: of all groups but the first, nothing else is wanted.
    let [_, pruned, rows] = counts(|row| row % 5000 == 3, 100);
    assert!(pruned == 0 && rows < 10_000, "{pruned} groups pruned, {rows} rows taken");
}

/// What is known of the last wanted row grows within a group: from stretch to stretch, and by several workers.
#[test]
fn the_first_few_rows_of_one_large_group() -> Result<()> {
    const ROWS: i64 = 40_000;
    let number = |row: i64| row * 7919 % ROWS;
    let name = |row: i64| (row % 97 != 0).then(|| format!("n{:03}", number(row) / 50));
    let numbers: ArrayRef = Arc::new((0..ROWS).map(number).collect::<Int64Array>());
    let names: ArrayRef = Arc::new((0..ROWS).map(name).collect::<StringArray>());
    let ascending_rows: ArrayRef = Arc::new((0..ROWS).collect::<Int64Array>());
    let columns = [(numbers, LogicalType::Int64), (names, LogicalType::Utf8), (ascending_rows, LogicalType::Int64)];
    let mut table = MemoryTable::new(&columns, ROWS as usize, &[Choice::Auto, Choice::Auto, Choice::Auto]);
    table.delete(|row| row % 11 == 0);
    let table = Arc::new(table);
    for (column, descending) in [(0, false), (0, true), (1, false), (1, true), (2, false), (2, true)] {
        for (nulls_first, fetch) in [(false, 1), (true, 7), (false, 500)] {
            let first = SortKey { expr: Expr::Column(column), descending, nulls_first };
            let order = |fetch| Order { keys: vec![first.clone(), ascending(Expr::Column(2))], skip: 0, fetch };
            let mut all = found(pipeline(&table, 3, &[2], order(None)), 1)?;
            all.truncate(fetch);
            for threads in [1, 3] {
                let few = found(pipeline(&table, 3, &[2], order(Some(fetch))), threads)?;
                assert_eq!(few, all, "column {column}, {descending}, {nulls_first}, {fetch} by {threads}");
            }
        }
    }
    Ok(())
}

#[test]
fn memory_that_is_not_granted_ends_the_query_and_is_given_back() {
    const BYTES: usize = 1 << 20;
    let limited = Arc::new(Limited::new(BYTES));
    let memory = Arc::clone(&limited) as Arc<dyn Memory>;
    let numbers: ArrayRef = Arc::new((0..100_000).collect::<Int64Array>());
    let table = table(&[(numbers, LogicalType::Int64)]);
    let by_number = |fetch: Option<usize>, filter: Vec<Expr>| {
        let order = Order { fetch, ..all_by(vec![ascending(Expr::Column(0))]) };
        Pipeline { filter, ..pipeline(&table, 1, &[0], order) }
    };
    let refused = by_number(None, Vec::new()).start().expect("ours").sorted(2, &memory);
    assert!(matches!(refused, Err(Error::OutOfMemory(_))), "{refused:?}");
    assert_eq!(limited.left(), BYTES);
    let few = by_number(Some(10), Vec::new()).start().expect("ours").sorted(2, &memory).expect("ten are kept");
    assert_eq!(few.len(), 10);
    drop(few);
    let less = Expr::Compare(CompareOp::Less, boxed(Expr::Column(0)), boxed(int(100, LogicalType::Int64)));
    let few = by_number(None, vec![less]).start().expect("ours").sorted(2, &memory).expect("a hundred are kept");
    assert!(limited.left() < BYTES, "rows that are there are held");
    drop(few);
    assert_eq!(limited.left(), BYTES);
    let empty = by_number(Some(0), Vec::new());
    assert!(sorted(empty, 2).expect("ours").is_empty());
}

#[test]
fn runs_of_many_rows_are_merged_by_several_threads() -> Result<()> {
    const ROWS: i64 = 150_000;
    let key = |row: i64| row * 7919 % ROWS % 700;
    let keys: ArrayRef = Arc::new((0..ROWS).map(key).collect::<Int64Array>());
    let numbers: ArrayRef = Arc::new((0..ROWS).collect::<Int64Array>());
    let table = table(&[(keys, LogicalType::Int64), (numbers, LogicalType::Int64)]);
    let mut wanted: Vec<i64> = (0..ROWS).map(key).collect();
    wanted.sort_unstable();
    let memory: Arc<dyn Memory> = Arc::new(Unlimited);
    for threads in 1..5 {
        for (skip, fetch) in [(0, None), (40_000, Some(70_000)), (0, Some(40_000))] {
            let order = Order { keys: vec![ascending(Expr::Column(0))], skip, fetch };
            let pipeline = read_back(pipeline(&table, 2, &[0, 1], order));
            let types = pipeline.output_types();
            let run = pipeline.start()?;
            run.prepare(threads, &memory)?;
            let rows = support::rows_of_run(&run, &types, 1)?;
            let rows: Vec<(i64, i64)> = rows
                .iter()
                .map(|row| match row[..] {
                    [Scalar::Int(key), Scalar::Int(number)] => (key as i64, number as i64),
                    _ => panic!("{row:?}"),
                })
                .collect();
            let end = fetch.map_or(ROWS as usize, |fetch| skip + fetch);
            assert!(
                rows.iter().map(|row| row.0).eq(wanted[skip..end].iter().copied()),
                "{threads} threads, from {skip}"
            );
            assert!(rows.iter().all(|&(found, number)| found == key(number)), "{threads} threads, from {skip}");
            let mut numbers: Vec<i64> = rows.iter().map(|row| row.1).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), rows.len(), "a row is there twice: {threads} threads, from {skip}");
        }
    }
    Ok(())
}
