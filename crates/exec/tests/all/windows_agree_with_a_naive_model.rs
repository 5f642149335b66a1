//! Random window functions, against what a model finds by looking at all rows of each frame.
//!
//! Rows that are equal by the order may stand in any order, so the model asks about the rows as they came out, once it
//! has seen that they are all there and in an order that was asked for.

use crate::support;
use crate::support::aggregates::{self, close, holds};
use crate::support::exprs;
use crate::support::memory::{Limited, Refusing};
use crate::support::random::{self, Random};
use crate::support::table::MemoryTable;
use crate::support::{choice_lists, model, random_table, read_back};
use arrow::array::{ArrayRef, Int64Array};
use sinter_codec::{Choice, Scalar};
use sinter_exec::{
    Aggregate, AggregateFunction, Bound, Distance, Error, Expr, Frame, FrameUnit, LogicalType, Memory, Output,
    Pipeline, Result, ScanColumn, SortKey, Source, Unlimited, Window, WindowFunction, WindowKind,
};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A scan with these columns that hands out all of them, and what the window says.
fn pipeline(table: &Arc<MemoryTable>, columns: usize, filter: Vec<Expr>, window: Window) -> Pipeline {
    Pipeline {
        source: Source::Table(Arc::clone(table) as _),
        columns: (0..columns).map(ScanColumn::Table).collect(),
        filter,
        output: Output::Windows { rows: (0..columns).map(Expr::Column).collect(), window },
        steps: Vec::new(),
        limit: None,
        on_damage: Default::default(),
    }
}

/// The rows in the order of the window.
fn found(pipeline: Pipeline, threads: usize, memory: &Arc<dyn Memory>) -> Result<Vec<Vec<Scalar>>> {
    let types = pipeline.output_types();
    let outer = read_back(pipeline);
    let run = outer.start()?;
    run.prepare(threads, memory)?;
    support::rows_of_run(&run, &types, 1)
}

fn unlimited() -> Arc<dyn Memory> {
    Arc::new(Unlimited)
}

/// A random function over a column, with the type that SQL gives it.
fn function(random: &mut Random, order: &[SortKey]) -> WindowFunction {
    let types = exprs::types();
    let column = random.below(types.len());
    let ty = types[column].clone();
    let frame = frame(random, order);
    let of =
        |kind: WindowKind, ty: LogicalType| WindowFunction { kind, argument: Some(Expr::Column(column)), frame, ty };
    let number = |kind: WindowKind, ty: LogicalType| WindowFunction { kind, argument: None, frame, ty };
    match random.below(12) {
        0 => number(WindowKind::RowNumber, LogicalType::UInt64),
        1 => number(WindowKind::Rank, LogicalType::UInt64),
        2 => number(WindowKind::DenseRank, LogicalType::Int64),
        3 => number(WindowKind::PercentRank, LogicalType::Float64),
        4 => number(WindowKind::CumeDist, LogicalType::Float64),
        5 => number(WindowKind::Ntile(1 + random.next() % 9), LogicalType::UInt64),
        6 => {
            let default = if random.chance(50) { Scalar::Null } else { random::value(random, &ty, 1) };
            of(WindowKind::Shift(*random.pick(&[-1, 1, 0, 3, -200, i64::MAX, i64::MIN + 1]), default), ty)
        }
        7 => of(if random.chance(50) { WindowKind::First } else { WindowKind::Last }, ty),
        8 => of(WindowKind::Nth(1 + random.next() % 4), ty),
        _ => {
            let Aggregate { function, argument, ty, .. } = aggregate(random);
            WindowFunction { kind: WindowKind::Aggregate(function), argument, frame, ty }
        }
    }
}

/// A random aggregate of those that frames have.
fn aggregate(random: &mut Random) -> Aggregate {
    use AggregateFunction::{Average, Count, CountStar, Max, Min, Sum};
    loop {
        let aggregate = aggregates::random_aggregates(random, 1).remove(0);
        if matches!(aggregate.function, CountStar | Count | Sum | Average | Min | Max) {
            return aggregate;
        }
    }
}

/// A random frame of rows in this order.
fn frame(random: &mut Random, order: &[SortKey]) -> Frame {
    let unit = *random.pick(&[FrameUnit::Rows, FrameUnit::Rows, FrameUnit::Range, FrameUnit::Groups]);
    let types = exprs::types();
    let is_float = |key: &SortKey| key.expr.type_over(&types).is_float();
    let is_text = |key: &SortKey| key.expr.type_over(&types) == LogicalType::Utf8;
    let mut bound = |unbounded: usize| match (random.below(100), unit, order) {
        (percent, ..) if percent < unbounded => Bound::Unbounded,
        (percent, ..) if percent < unbounded + 30 => Bound::Current,
        (_, FrameUnit::Rows | FrameUnit::Groups, _) => {
            Bound::Offset(*random.pick(&[-3, -1, 0, 1, 2, 40, -40, i64::MAX, i64::MIN]))
        }
        (_, FrameUnit::Range, [key]) if is_float(key) => {
            Bound::Distance(Distance::Float(*random.pick(&[-2.0, -0.25, 0.0, 0.3, 1.75, f64::INFINITY])))
        }
        (_, FrameUnit::Range, [key]) if !is_text(key) => {
            Bound::Distance(Distance::Int(*random.pick(&[-300, -5, -1, 0, 2, 7, i128::MAX, i128::MIN])))
        }
        _ => Bound::Current,
    };
    Frame { unit, start: bound(40), end: bound(20) }
}

fn compare(keys: &[SortKey], one: &[Scalar], other: &[Scalar]) -> Ordering {
    let types = exprs::types();
    let by = |key: &SortKey| {
        let of = |row: &[Scalar]| model::evaluate(&key.expr, row, &types).expect("it cannot fail");
        let nulls = if key.nulls_first { Ordering::Less } else { Ordering::Greater };
        match (of(one), of(other)) {
            (Scalar::Null, Scalar::Null) => Ordering::Equal,
            (Scalar::Null, _) => nulls,
            (_, Scalar::Null) => nulls.reverse(),
            (one, other) if key.descending => model::order(&other, &one),
            (one, other) => model::order(&one, &other),
        }
    };
    keys.iter().map(by).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Stretches of rows that are equal by the keys to the one before.
fn stretches(rows: &[Vec<Scalar>], range: Range<usize>, keys: &[SortKey]) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for row in range {
        match all.last_mut() {
            Some(last) if compare(keys, &rows[last.start], &rows[row]).is_eq() => last.end = row + 1,
            _ => all.push(row..row + 1),
        }
    }
    all
}

/// What a function says of a row of a partition whose peers these are.
fn expected(
    function: &WindowFunction,
    rows: &[Vec<Scalar>],
    order: &[SortKey],
    (partition, peers): (&Range<usize>, &[Range<usize>]),
    row: usize,
) -> Scalar {
    let types = exprs::types();
    let count = partition.len();
    let group = peers.iter().position(|group| group.contains(&row)).expect("every row has peers");
    let mine = &peers[group];
    let value = |row: usize| {
        let argument = function.argument.as_ref().expect("the kind has one");
        model::evaluate(argument, &rows[row], &types).expect("it cannot fail")
    };
    let at = |offset: i64| row as i128 + i128::from(offset);
    let (first, last) = (partition.start as i128, partition.end as i128 - 1);
    let key = |row: usize| model::evaluate(&order[0].expr, &rows[row], &types).expect("it cannot fail");
    // Whether a row is in reach of an end: not before the start, or not behind the end.
    let reaches = |bound: Bound, other: usize, is_start: bool| {
        let Bound::Distance(distance) = bound else { return true };
        let sign = if order[0].descending { -1 } else { 1 };
        let target = match (key(row), distance) {
            // As near as its peers.
            (Scalar::Null, _) => return if is_start { other >= mine.start } else { other < mine.end },
            _ if key(other).is_null() => {
                // They stand before all others, or behind.
                return order[0].nulls_first != is_start;
            }
            (Scalar::Int(own), Distance::Int(by)) if sign < 0 => Scalar::Int(own.saturating_sub(by)),
            (Scalar::Int(own), Distance::Int(by)) => Scalar::Int(own.saturating_add(by)),
            (Scalar::Float(own), Distance::Float(by)) => Scalar::Float(own + f64::from(sign) * by),
            (own, by) => panic!("{by:?} from {own:?}"),
        };
        let order = model::order(&key(other), &target);
        let order = if sign < 0 { order.reverse() } else { order };
        if is_start { order.is_ge() } else { order.is_le() }
    };
    let group_at = |offset: i64| group as i128 + i128::from(offset);
    let start = match (function.frame.start, function.frame.unit) {
        (Bound::Unbounded | Bound::Distance(_), _) => first,
        (Bound::Current, FrameUnit::Rows) => row as i128,
        (Bound::Current, _) => mine.start as i128,
        (Bound::Offset(offset), FrameUnit::Groups) => match group_at(offset) {
            other if other < 0 => first,
            other => peers.get(other.min(1 << 40) as usize).map_or(last + 1, |group| group.start as i128),
        },
        (Bound::Offset(offset), _) => at(offset),
    };
    let end = match (function.frame.end, function.frame.unit) {
        (Bound::Unbounded | Bound::Distance(_), _) => last,
        (Bound::Current, FrameUnit::Rows) => row as i128,
        (Bound::Current, _) => mine.end as i128 - 1,
        (Bound::Offset(offset), FrameUnit::Groups) => match group_at(offset) {
            other if other < 0 => first - 1,
            other => peers.get(other.min(1 << 40) as usize).map_or(last, |group| group.end as i128 - 1),
        },
        (Bound::Offset(offset), _) => at(offset),
    };
    let frame: Vec<usize> = (start.max(first)..=end.min(last))
        .map(|row| row as usize)
        .filter(|&other| reaches(function.frame.start, other, true) && reaches(function.frame.end, other, false))
        .collect();
    let int = |value: usize| Scalar::Int(value as i128);
    let share = |part: usize, all: usize| Scalar::Float(if all == 0 { 0.0 } else { part as f64 / all as f64 });
    match &function.kind {
        WindowKind::RowNumber => int(row - partition.start + 1),
        WindowKind::Rank => int(mine.start - partition.start + 1),
        WindowKind::DenseRank => int(group + 1),
        WindowKind::PercentRank => share(mine.start - partition.start, count - 1),
        WindowKind::CumeDist => share(mine.end - partition.start, count),
        WindowKind::Ntile(buckets) => {
            let sizes = (0..*buckets as usize)
                .map(|bucket| count / *buckets as usize + usize::from(bucket < count % *buckets as usize));
            let mut left = row - partition.start;
            for (bucket, size) in (1..).zip(sizes) {
                if left < size {
                    return int(bucket);
                }
                left -= size;
            }
            unreachable!("buckets hold all rows")
        }
        WindowKind::Shift(offset, default) => match at(*offset) {
            other if (first..=last).contains(&other) => value(other as usize),
            _ => default.clone(),
        },
        WindowKind::First => frame.first().map_or(Scalar::Null, |&row| value(row)),
        WindowKind::Last => frame.last().map_or(Scalar::Null, |&row| value(row)),
        WindowKind::Nth(number) => frame.get(*number as usize - 1).map_or(Scalar::Null, |&row| value(row)),
        WindowKind::Aggregate(aggregate) => {
            let (argument, ty) = (function.argument.clone(), function.ty.clone());
            let aggregate = Aggregate { function: aggregate.clone(), argument, filter: None, ty };
            let rows: Vec<&Vec<Scalar>> = frame.iter().map(|&row| &rows[row]).collect();
            aggregates::results(&[aggregate], &rows).expect("the engine found that it fits").remove(0)
        }
    }
}

#[test]
fn all_functions_all_frames_all_schemes() {
    let (mut rows_seen, mut refused, mut spilled) = (0, 0, 0);
    for (index, choices) in choice_lists().iter().enumerate() {
        for seed in 0..4u64 {
            let seed = seed * 100 + index as u64;
            let mut random = Random(seed);
            let rows = *random.pick(&[0, 1, 60, 700, 1300]);
            let style = (seed % 3) as usize;
            let (table, alive) = random_table(&mut random, rows, style, choices);
            let (table, types) = (Arc::new(table), exprs::types());
            for query in 0..8 {
                let column = |random: &mut Random| Expr::Column(random.below(exprs::types().len()));
                let partition: Vec<Expr> = (0..random.below(3)).map(|_| column(&mut random)).collect();
                let key = |random: &mut Random| SortKey {
                    expr: if random.chance(15) { exprs::simple_condition(random) } else { column(random) },
                    descending: random.chance(50),
                    nulls_first: random.chance(50),
                };
                let order: Vec<SortKey> = (0..random.below(3)).map(|_| key(&mut random)).collect();
                let functions: Vec<WindowFunction> =
                    (0..1 + random.below(4)).map(|_| function(&mut random, &order)).collect();
                let filter = if random.chance(60) { Vec::new() } else { vec![exprs::simple_condition(&mut random)] };
                let window = Window { partition: partition.clone(), order: order.clone(), functions };
                let context = || format!("seed {seed}, query {query}, {choices:?}\n{filter:?}\n{window:?}");
                let pipeline = pipeline(&table, types.len(), filter.clone(), window.clone());
                let refusing = Arc::new(Refusing::at_random(&mut random));
                let memory = if random.chance(50) { unlimited() } else { Arc::clone(&refusing) as _ };
                let found = match found(pipeline.clone(), 1 + random.below(3), &memory) {
                    // All rows are one partition, or are those of one.
                    Err(Error::OutOfMemory(_)) => found(pipeline, 2, &unlimited()),
                    found => found,
                };
                let mut found = match found {
                    Ok(found) => found,
                    Err(Error::Overflow { .. }) if style == 2 => {
                        refused += 1;
                        continue;
                    }
                    Err(error) => panic!("{error}\n{}", context()),
                };
                let text = |row: &[Scalar]| format!("{:?}", &row[..types.len()]);
                let mut wanted: Vec<String> = alive
                    .iter()
                    .filter(|row| filter.iter().all(|part| holds(part, row)))
                    .map(|row| text(row))
                    .collect();
                let mut texts: Vec<String> = found.iter().map(|row| text(row)).collect();
                wanted.sort_unstable();
                texts.sort_unstable();
                assert!(texts == wanted, "other rows\n{}", context());
                let ascending = |expr: &Expr| SortKey { expr: expr.clone(), descending: false, nulls_first: false };
                let by_partition: Vec<SortKey> = partition.iter().map(ascending).collect();
                if refusing.files.load(Relaxed) > 0 {
                    // Only the rows of a partition are in order.
                    spilled += 1;
                    found.sort_by(|one, other| compare(&by_partition, one, other));
                }
                let all_keys = [by_partition.clone(), order.clone()].concat();
                assert!(
                    found.is_sorted_by(|one, other| compare(&all_keys, one, other).is_le()),
                    "another order\n{}",
                    context()
                );
                for partition in stretches(&found, 0..found.len(), &by_partition) {
                    let peers = stretches(&found, partition.clone(), &order);
                    for row in partition.clone() {
                        for (number, function) in window.functions.iter().enumerate() {
                            let wanted = expected(function, &found, &order, (&partition, &peers), row);
                            let found = &found[row][types.len() + number];
                            assert!(
                                close(found, &wanted),
                                "{found:?} instead of {wanted:?} by {function:?} in row {row} of {partition:?}\n{}",
                                context()
                            );
                        }
                    }
                }
                rows_seen += found.len();
            }
        }
    }
    assert!(rows_seen > 100_000 && spilled > 50, "{rows_seen} rows, {spilled} spilled, {refused} sums did not fit");
}

#[test]
fn memory_that_is_not_granted_ends_the_query_and_is_given_back() {
    let numbers: ArrayRef = Arc::new((0..100_000).collect::<Int64Array>());
    let table = Arc::new(MemoryTable::new(&[(numbers, LogicalType::Int64)], 5000, &[Choice::Auto]));
    let running = WindowFunction {
        kind: WindowKind::Aggregate(AggregateFunction::Sum),
        argument: Some(Expr::Column(0)),
        frame: Frame { unit: FrameUnit::Rows, start: Bound::Unbounded, end: Bound::Current },
        ty: LogicalType::Int64,
    };
    let order = vec![SortKey { expr: Expr::Column(0), descending: false, nulls_first: false }];
    let window = Window { partition: Vec::new(), order, functions: vec![running] };
    let all = pipeline(&table, 1, Vec::new(), window);
    for bytes in (0..14_000_000).step_by(500_000) {
        let limited = Arc::new(Limited::new(bytes));
        let memory = Arc::clone(&limited) as Arc<dyn Memory>;
        match found(all.clone(), 2, &memory) {
            Ok(rows) => {
                assert!(bytes > 1_600_000, "rows and sums are held");
                assert_eq!(rows[99_999][1], Scalar::Int(100_000 * 99_999 / 2));
            }
            Err(Error::OutOfMemory(_)) => {}
            Err(error) => panic!("{error}"),
        }
        drop(memory);
        assert_eq!(limited.left(), bytes);
    }
    assert!(found(all, 2, &unlimited()).is_ok());
}

#[test]
fn partitions_of_many_rows_are_looked_at_by_several_threads() {
    const ROWS: i64 = 150_000;
    const PARTITIONS: i64 = 9;
    let partitions: ArrayRef = Arc::new((0..ROWS).map(|row| row % PARTITIONS).collect::<Int64Array>());
    let numbers: ArrayRef = Arc::new((0..ROWS).collect::<Int64Array>());
    let columns = [(partitions, LogicalType::Int64), (numbers, LogicalType::Int64)];
    let table = Arc::new(MemoryTable::new(&columns, 5000, &[Choice::Auto, Choice::Auto]));
    let function = |kind: WindowKind, argument: Option<Expr>| WindowFunction {
        kind,
        argument,
        frame: Frame { unit: FrameUnit::Rows, start: Bound::Unbounded, end: Bound::Current },
        ty: LogicalType::Int64,
    };
    let order = vec![SortKey { expr: Expr::Column(1), descending: false, nulls_first: false }];
    for partition in [Vec::new(), vec![Expr::Column(0)]] {
        let step = if partition.is_empty() { 1 } else { PARTITIONS };
        let functions = vec![
            function(WindowKind::RowNumber, None),
            function(WindowKind::Shift(-1, Scalar::Int(-5)), Some(Expr::Column(1))),
            function(WindowKind::Shift(1, Scalar::Null), Some(Expr::Column(1))),
            function(WindowKind::Aggregate(AggregateFunction::Sum), Some(Expr::Column(1))),
        ];
        let window = Window { partition, order: order.clone(), functions };
        for threads in 1..5 {
            let rows = found(pipeline(&table, 2, Vec::new(), window.clone()), threads, &unlimited()).expect("no error");
            assert_eq!(rows.len(), ROWS as usize);
            for row in rows {
                let Scalar::Int(number) = row[1] else { panic!("{row:?}") };
                let (rank, step) = (number / i128::from(step), i128::from(step));
                let before = if rank == 0 { -5 } else { number - step };
                let after = if number + step < ROWS.into() { Scalar::Int(number + step) } else { Scalar::Null };
                // Of all in the partition up to here.
                let sum = (rank + 1) * (number % step) + step * rank * (rank + 1) / 2;
                let wanted = [Scalar::Int(rank + 1), Scalar::Int(before), after, Scalar::Int(sum)];
                assert_eq!(row[2..], wanted, "{threads} threads, steps of {step}: {row:?}");
            }
        }
    }
}
