//! Tables of joins, and groups by what they bring, are the same whoever makes them, and with how little memory.

use crate::support::joins::{counted, grouped, grouped_within, scan, unlimited};
use crate::support::memory::{Limited, Refusing};
use crate::support::random::{self, Random};
use crate::support::table::MemoryTable;
use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use sinter_codec::{Choice, Scalar};
use sinter_exec::{
    Aggregate, AggregateFunction, ArithmeticOp, Error, Expr, Join, JoinKind, LogicalType, Memory, Output, Pipeline,
    Result, Step,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[test]
fn rows_of_a_table_too_large_to_remember_them_are_grouped() -> Result<()> {
    // More than a worker remembers the groups of, row by row.
    let rows = (1 << 20) + 5000;
    let numbers: ArrayRef = Arc::new((0..rows).collect::<Int64Array>());
    let texts: ArrayRef = Arc::new((0..rows).map(|row| Some(format!("text {}", row % 7))).collect::<StringArray>());
    let columns = [(numbers, LogicalType::Int64), (texts, LogicalType::Utf8)];
    let table = Arc::new(MemoryTable::new(&columns, 100_000, &[Choice::Auto]));
    let build = Box::new(scan(&table, 2, vec![Expr::Column(0), Expr::Column(1)]));
    let join =
        Join { kind: JoinKind::Inner, build, keys: vec![Expr::Column(0)], nulls_are_equal: false, condition: None };
    let pipeline = Pipeline { steps: vec![Step::Join(join)], ..scan(&table, 2, Vec::new()) };
    let wanted = counted((0..rows).map(|row| vec![Scalar::Bytes(format!("text {}", row % 7).into_bytes())]));
    let types = [LogicalType::Int64, LogicalType::Utf8, LogicalType::Utf8];
    for threads in [1, 2] {
        assert_eq!(grouped(&pipeline, &[2], &types, threads)?, wanted, "{threads} threads");
    }
    Ok(())
}

/// So many that several threads make each a part of them.
#[test]
fn workers_agree_about_many_groups_of_partners() -> Result<()> {
    let (rows, period) = (140_000, 70_000);
    let number = |of: fn(i64, i64) -> i64| -> ArrayRef {
        Arc::new((0..rows).map(|row| of(row, period)).collect::<Int64Array>())
    };
    let texts: ArrayRef =
        Arc::new((0..rows).map(|row| Some(format!("text {}", row % period))).collect::<StringArray>());
    let columns = [
        (number(|row, _| row), LogicalType::Int64),
        (number(|row, period| row % period), LogicalType::Int64),
        (texts, LogicalType::Utf8),
    ];
    let table = Arc::new(MemoryTable::new(&columns, 5000, &vec![Choice::Auto; columns.len()]));
    let build = Box::new(scan(&table, 3, (0..3).map(Expr::Column).collect()));
    let join =
        Join { kind: JoinKind::Inner, build, keys: vec![Expr::Column(0)], nulls_are_equal: false, condition: None };
    let pipeline = Pipeline { steps: vec![Step::Join(join)], ..scan(&table, 3, Vec::new()) };
    let keys = |row: i64| vec![Scalar::Int(row.into()), Scalar::Bytes(format!("text {row}").into_bytes())];
    let wanted = counted((0..rows).map(|row| keys(row % period)));
    let types: Vec<LogicalType> = [&columns, &columns[1..]].concat().into_iter().map(|(_, ty)| ty).collect();
    for threads in [1, 2, 4] {
        assert!(grouped(&pipeline, &[3, 4], &types, threads)? == wanted, "{threads} threads");
    }
    Ok(())
}

const PARTNER_KEYS: i64 = 40_000;
const PARTNER_ROWS: i64 = 2 * PARTNER_KEYS;

/// What a row of a build side has: a float and a text, either of them NULL now and then. Each key is that of two rows; floats
/// that are equal have other bits there.
fn keys_of_partner(row: i64) -> (Option<f64>, Option<String>) {
    let (number, is_second) = (row % PARTNER_KEYS, row >= PARTNER_KEYS);
    let float = match number % 5 {
        0 => Some(if is_second { -0.0 } else { 0.0 }),
        1 => Some(if is_second { -f64::NAN } else { f64::NAN }),
        2 => None,
        _ => Some(number as f64),
    };
    (float, (number % 7 != 3).then(|| format!("text {number}")))
}

/// Whom a row wants to meet, which is nobody where it is NULL or too large.
fn wanted_partner(row: i64) -> Option<i64> {
    (row % 11 > 0).then_some(row % 90_000)
}

/// Rows that meet so many partners, or nobody.
fn left_join(rows: i64, partners: i64) -> Pipeline {
    let ours: ArrayRef = Arc::new((0..rows).map(wanted_partner).collect::<Int64Array>());
    let ours = Arc::new(MemoryTable::new(&[(ours, LogicalType::Int64)], 5000, &[Choice::Auto]));
    let numbers: ArrayRef = Arc::new((0..PARTNER_ROWS).map(|row| row / partners).collect::<Int64Array>());
    let floats: ArrayRef = Arc::new((0..PARTNER_ROWS).map(|row| keys_of_partner(row).0).collect::<Float64Array>());
    let texts: ArrayRef = Arc::new((0..PARTNER_ROWS).map(|row| keys_of_partner(row).1).collect::<StringArray>());
    let columns = [(numbers, LogicalType::Int64), (floats, LogicalType::Float64), (texts, LogicalType::Utf8)];
    let theirs = Arc::new(MemoryTable::new(&columns, 5000, &[Choice::Auto]));
    let build = Box::new(scan(&theirs, 3, (0..3).map(Expr::Column).collect()));
    let (kind, keys) = (JoinKind::Left, vec![Expr::Column(0)]);
    let join = Join { kind, build, keys, nulls_are_equal: false, condition: None };
    Pipeline { steps: vec![Step::Join(join)], ..scan(&ours, 1, Vec::new()) }
}

#[test]
fn groups_of_partners_are_the_same_however_little_memory_there_is() -> Result<()> {
    const ROWS: i64 = 140_000;
    let types = [LogicalType::Int64, LogicalType::Float64, LogicalType::Utf8];
    let (mut enough, mut refused, mut spilled) = (0, 0, 0);
    for partners in [1, 2] {
        let pipeline = left_join(ROWS, partners);
        let keys_of_row = |row: i64| {
            let first = wanted_partner(row).map(|number| number * partners).filter(|first| *first < PARTNER_ROWS);
            let met = first.map_or_else(|| vec![None], |first| (first..first + partners).map(Some).collect());
            let keys = |partner: Option<i64>| {
                let (float, text) = partner.map_or((None, None), keys_of_partner);
                let text = text.map_or(Scalar::Null, |text| Scalar::Bytes(text.into_bytes()));
                vec![float.map_or(Scalar::Null, Scalar::Float), text]
            };
            met.into_iter().map(keys)
        };
        let wanted = counted((0..ROWS).flat_map(keys_of_row));
        assert!(wanted.len() > 30_000 && wanted["Null|Null"] > ROWS as i128 / 11);
        for threads in [1, 4] {
            assert!(grouped(&pipeline, &[1, 2], &types, threads)? == wanted, "{threads} threads, {partners} partners");
            for request in [0, 20, 30, 90] {
                let refusing = Arc::new(Refusing::new(vec![request]));
                let memory = Arc::clone(&refusing) as Arc<dyn Memory>;
                match grouped_within(&pipeline, &[1, 2], &types, threads, &memory) {
                    Ok(found) => assert!(found == wanted, "{threads} threads, {partners} partners, request {request}"),
                    Err(Error::OutOfMemory(_)) => {}
                    Err(other) => return Err(other),
                }
                assert_eq!(refusing.held(), 0, "what was granted is given back");
                spilled += usize::from(refusing.files.load(Ordering::Relaxed) > 0);
            }
            for bytes in (20..=26).rev().map(|bits| 1usize << bits) {
                let limited = Arc::new(Limited::new(bytes));
                let memory = Arc::clone(&limited) as Arc<dyn Memory>;
                let found = grouped_within(&pipeline, &[1, 2], &types, threads, &memory);
                assert_eq!(limited.left(), bytes, "what was granted is given back");
                match found {
                    Ok(found) => assert!(found == wanted, "{threads} threads, {partners} partners, {bytes} bytes"),
                    Err(Error::OutOfMemory(_)) => {
                        refused += 1;
                        break;
                    }
                    Err(other) => return Err(other),
                }
                enough += 1;
            }
        }
    }
    assert!(refused == 4 && enough >= 8, "{enough} times enough, {refused} times refused");
    assert!(spilled >= 4, "{spilled} times spilled");
    Ok(())
}

/// So many rows on the build side that several threads make its index.
#[test]
fn tables_are_the_same_whoever_makes_them() -> Result<()> {
    let (mut random, rows) = (Random(3), 270_000);
    let mut column = |most: i128, null_percent: usize| -> Vec<Scalar> {
        let mut value = || match random.chance(null_percent) {
            true => Scalar::Null,
            false => Scalar::Int(random.between(-7, most)),
        };
        (0..rows).map(|_| value()).collect()
    };
    let of_row = |of: fn(i128) -> i128| -> Vec<Scalar> { (0..rows).map(|row| Scalar::Int(of(row))).collect() };
    // Each once, in no order; some of them several times; far apart; few; and which row it is.
    let columns =
        [of_row(|row| row * 7 % 270_000), column(rows, 2), column(1 << 40, 2), column(40, 2), of_row(|row| row)];
    let arrays: Vec<_> =
        columns.iter().map(|column| (random::array(column, &LogicalType::Int64), LogicalType::Int64)).collect();
    let table = Arc::new(MemoryTable::new(&arrays, 5000, &vec![Choice::Auto; arrays.len()]));
    let (width, of) = (columns.len(), |column: usize| Expr::Column(column));
    let product = |one: Expr, other: Expr| Expr::Arithmetic {
        op: ArithmeticOp::Multiply,
        left: Box::new(one),
        right: Box::new(other),
        ty: LogicalType::Int64,
    };
    for keys in [vec![0], vec![1], vec![2], vec![1, 3], vec![0, 1]] {
        for kind in [JoinKind::Inner, JoinKind::Semi, JoinKind::RightAnti] {
            let theirs = keys.iter().copied().chain([width - 1]).map(of).collect();
            let ours = keys.iter().map(|&key| of(key)).collect();
            let build = Box::new(scan(&table, width, theirs));
            let join = Join { kind, build, keys: ours, nulls_are_equal: false, condition: None };
            let mut sums = vec![of(width - 1)];
            if kind.has_payload() {
                sums.extend([of(width), product(of(width - 1), of(width))]);
            }
            let sum = |argument: Expr| Aggregate {
                function: AggregateFunction::Sum,
                argument: Some(argument),
                filter: None,
                ty: LogicalType::Int64,
            };
            let output = Output::Aggregate(sums.into_iter().map(sum).collect());
            let pipeline = Pipeline { steps: vec![Step::Join(join)], output, ..scan(&table, width, Vec::new()) };
            let made_by = |threads: usize| -> Result<Vec<Scalar>> {
                let run = pipeline.clone().start()?;
                run.prepare(threads, &unlimited())?;
                run.aggregate(threads)
            };
            let wanted = made_by(1)?;
            for threads in [2, 3] {
                assert_eq!(made_by(threads)?, wanted, "{threads} threads, {kind:?} by {keys:?}");
            }
        }
    }
    Ok(())
}
