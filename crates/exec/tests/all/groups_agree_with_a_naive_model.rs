//! Random GROUP BY, with and without filters, against groups made row by row.

use crate::support;
use crate::support::aggregates::{close, holds, random_aggregates_of_groups, results};
use crate::support::exprs::{self, boxed, int};
use crate::support::memory::Limited;
use crate::support::random::Random;
use crate::support::table::MemoryTable;
use crate::support::{choice_lists, model, random_table};
use arrow::array::{ArrayRef, Int64Array, StringArray};
use sinter_codec::{Choice, CompareOp, Scalar, VECTOR_LEN};
use sinter_exec::{
    Aggregate, AggregateFunction, Batch, Error, Expr, GroupingSet, Groups, LogicalType, Memory, Output, Pipeline,
    Result, ScanColumn, Source, Unlimited, edge,
};
use std::collections::BTreeMap;
use std::sync::Arc;

fn pipeline(table: &Arc<MemoryTable>, columns: usize, keys: &[Expr], aggregates: &[Aggregate]) -> Pipeline {
    Pipeline {
        source: Source::Table(Arc::clone(table) as _),
        columns: (0..columns).map(ScanColumn::Table).collect(),
        filter: Vec::new(),
        output: Output::Groups { keys: keys.to_vec(), aggregates: aggregates.to_vec() },
        steps: Vec::new(),
        limit: None,
        on_damage: Default::default(),
    }
}

/// The rows of all groups.
fn rows_of(groups: &Groups, types: &[LogicalType]) -> Result<Vec<Vec<Scalar>>> {
    let (mut rows, mut batch, mut first) = (Vec::new(), Batch::default(), 0);
    while groups.read(first, &mut batch)? {
        first += VECTOR_LEN;
        let mut columns = Vec::new();
        for (column, ty) in batch.columns.iter().zip(types) {
            columns.push(model::scalars(&edge::to_arrow(column, ty, batch.rows)?, ty));
        }
        rows.extend((0..batch.rows).map(|row| columns.iter().map(|column| column[row].clone()).collect::<Vec<_>>()));
    }
    assert_eq!(rows.len(), groups.len());
    Ok(rows)
}

fn found(pipeline: Pipeline, types: &[LogicalType], threads: usize) -> Result<Vec<Vec<Scalar>>> {
    let memory: Arc<dyn Memory> = Arc::new(Unlimited);
    rows_of(&pipeline.start()?.groups(threads, &memory)?, types)
}

/// The same, as rows of another pipeline, each column of which comes twice, with and without NULLs in the first; and in how
/// many of the two cases some were spilled.
fn found_again(
    inner: Pipeline,
    types: &[LogicalType],
    threads: usize,
    random: &mut Random,
) -> Result<(Vec<Vec<Scalar>>, usize)> {
    let columns = (0..types.len()).chain(0..types.len()).map(ScanColumn::Table).collect();
    let outer = Pipeline {
        source: Source::Gathered(Box::new(inner)),
        columns,
        filter: Vec::new(),
        steps: Vec::new(),
        output: Output::Rows((types.len()..2 * types.len()).map(Expr::Column).collect()),
        limit: None,
        on_damage: Default::default(),
    };
    assert_eq!(outer.output_types(), types);
    let first = || Box::new(Expr::Column(0));
    let nulls = Pipeline { filter: vec![Expr::IsNull(first())], ..outer.clone() };
    let others = Pipeline { filter: vec![Expr::IsNotNull(first())], ..outer };
    let (rows, are_spilled) = support::rows_spilled(&nulls, types, threads, random);
    let (other_rows, others_are) = support::rows_spilled(&others, types, threads, random);
    let (rows, other_rows) = (rows?, other_rows?);
    assert!(rows.iter().all(|row| row[0].is_null()));
    Ok(([rows, other_rows].concat(), usize::from(are_spilled) + usize::from(others_are)))
}

/// Something that is equal, as text, where keys are.
pub(crate) fn identity(keys: &[Scalar]) -> String {
    let canonical = |key: &Scalar| match key {
        Scalar::Float(value) if value.is_nan() => "NaN".to_owned(),
        Scalar::Float(value) => format!("{:?}", value + 0.0),
        other => format!("{other:?}"),
    };
    keys.iter().map(canonical).collect::<Vec<_>>().join("|")
}

#[test]
fn all_functions_all_keys_all_schemes() {
    let (mut most, mut spilled) = (0, 0);
    for (index, choices) in choice_lists().iter().enumerate() {
        for seed in 0..6u64 {
            let seed = seed * 100 + index as u64;
            let mut random = Random(seed);
            let rows = *random.pick(&[0, 1, 700, 2500, 9000]);
            let (table, alive) = random_table(&mut random, rows, (seed % 3) as usize, choices);
            let table = Arc::new(table);
            let types = exprs::types();
            for query in 0..12 {
                let filter: Vec<Expr> =
                    if random.chance(50) { Vec::new() } else { vec![exprs::simple_condition(&mut random)] };
                let mut keys: Vec<Expr> = Vec::new();
                let keys_max = *random.pick(&[1, 2, 6]);
                for _ in 0..usize::from(!random.chance(8)) * (1 + random.below(keys_max)) {
                    let column = random.below(types.len());
                    keys.push(match random.below(8) {
                        0 => exprs::simple_condition(&mut random),
                        1 => Expr::Case {
                            branches: vec![(exprs::simple_condition(&mut random), Expr::Column(column))],
                            otherwise: None,
                            ty: types[column].clone(),
                        },
                        2 => Expr::Literal(Scalar::Null, types[column].clone()),
                        _ => Expr::Column(column),
                    });
                }
                let count = random.below(4).max(usize::from(keys.is_empty()));
                let aggregates = random_aggregates_of_groups(&mut random, count);
                let mut groups: BTreeMap<String, (Vec<Scalar>, Vec<&Vec<Scalar>>)> = BTreeMap::new();
                for row in alive.iter().filter(|row| filter.iter().all(|part| holds(part, row))) {
                    let key = |key| model::evaluate(key, row, &types).expect("it cannot fail");
                    let values: Vec<Scalar> = keys.iter().map(key).collect();
                    groups.entry(identity(&values)).or_insert_with(|| (values, Vec::new())).1.push(row);
                }
                if keys.is_empty() {
                    // All rows are one group, and so are none.
                    groups.entry(String::new()).or_default();
                }
                most = most.max(groups.len());
                let expected = groups.into_iter().map(|(name, (mut row, rows))| {
                    row.extend(results(&aggregates, &rows)?);
                    Ok((name, row))
                });
                let expected: std::result::Result<BTreeMap<_, _>, String> = expected.collect();
                let result_types: Vec<LogicalType> = keys.iter().map(|key| model::type_of(key, &types)).collect();
                let result_types = [result_types, aggregates.iter().map(|part| part.ty.clone()).collect()].concat();
                let pipeline = Pipeline { filter: filter.clone(), ..pipeline(&table, types.len(), &keys, &aggregates) };
                let threads = 1 + random.below(3);
                let found = match random.below(3) {
                    0 => found_again(pipeline, &result_types, threads, &mut random).map(|(rows, more)| {
                        spilled += more;
                        rows
                    }),
                    _ => found(pipeline, &result_types, threads),
                };
                let context =
                    || format!("seed {seed}, query {query}, {choices:?}\n{filter:?}\n{keys:?}\n{aggregates:#?}");
                match (found, expected) {
                    (Ok(found), Ok(expected)) => {
                        assert_eq!(found.len(), expected.len(), "{}", context());
                        for row in found {
                            let Some(wanted) = expected.get(&identity(&row[..keys.len()])) else {
                                panic!("nobody wants {row:?}\n{}", context());
                            };
                            let same = row.iter().zip(wanted).all(|(found, wanted)| close(found, wanted));
                            assert!(same, "{row:?}\n{wanted:?}\n{}", context());
                        }
                    }
                    (Err(_), Err(_)) => {}
                    (found, expected) => panic!("{found:?}\n{expected:?}\n{}", context()),
                }
            }
        }
    }
    assert!(most > 5000 && spilled > 50, "{most} groups at most, {spilled} times spilled");
}

fn count_star() -> Aggregate {
    Aggregate { function: AggregateFunction::CountStar, argument: None, filter: None, ty: LogicalType::Int64 }
}

/// Some of them have room in a word, others have not.
fn text(number: i64) -> String {
    if number % 5 == 0 { format!("{number} in more words") } else { number.to_string() }
}

/// Numbers up to `rows`, each with its text, in groups of 5000 rows.
fn numbers(rows: i64) -> Arc<MemoryTable> {
    let numbers: ArrayRef = Arc::new((0..rows).collect::<Int64Array>());
    let texts: ArrayRef = Arc::new((0..rows).map(|number| Some(text(number))).collect::<StringArray>());
    let columns = [(numbers, LogicalType::Int64), (texts, LogicalType::Utf8)];
    Arc::new(MemoryTable::new(&columns, 5000, &[Choice::Auto, Choice::Auto]))
}

#[test]
fn workers_agree_about_many_groups() {
    let table = numbers(60_000);
    let remainder = Expr::Arithmetic {
        op: sinter_exec::ArithmeticOp::Modulo,
        left: boxed(Expr::Column(0)),
        right: boxed(int(30_000, LogicalType::Int64)),
        ty: LogicalType::Int64,
    };
    let least = Aggregate {
        function: AggregateFunction::Min,
        argument: Some(Expr::Column(1)),
        filter: None,
        ty: LogicalType::Utf8,
    };
    let sum = Aggregate {
        function: AggregateFunction::Sum,
        argument: Some(Expr::Column(0)),
        filter: None,
        ty: LogicalType::Int64,
    };
    for threads in 1..4 {
        let pipeline =
            pipeline(&table, 2, std::slice::from_ref(&remainder), &[count_star(), least.clone(), sum.clone()]);
        let types = [LogicalType::Int64, LogicalType::Int64, LogicalType::Utf8, LogicalType::Int64];
        let mut rows = found(pipeline, &types, threads).expect("no error");
        rows.sort_by(|a, b| model::order(&a[0], &b[0]));
        for (number, row) in (0..).zip(&rows) {
            let least = text(number).min(text(number + 30_000));
            let sum = Scalar::Int((2 * number + 30_000).into());
            assert_eq!(row[..], [Scalar::Int(number.into()), Scalar::Int(2), Scalar::Bytes(least.into()), sum]);
        }
        assert_eq!(rows.len(), 30_000);
    }
}

fn remainder(of: i128) -> Expr {
    Expr::Arithmetic {
        op: sinter_exec::ArithmeticOp::Modulo,
        left: boxed(Expr::Column(0)),
        right: boxed(int(of, LogicalType::Int64)),
        ty: LogicalType::Int64,
    }
}

/// The expression where the number's last digit is low, and NULL elsewhere.
fn some(expr: Expr) -> Expr {
    let is_low = Expr::Compare(CompareOp::Less, boxed(remainder(10)), boxed(int(7, LogicalType::Int64)));
    let ty = model::type_of(&expr, &[LogicalType::Int64, LogicalType::Utf8]);
    Expr::Case { branches: vec![(is_low, expr)], otherwise: None, ty }
}

/// So many that workers look up each other's together.
#[test]
fn workers_agree_about_many_groups_of_several_keys() {
    let table = numbers(150_000);
    let some_text = some(Expr::Column(1));
    let float = |expr: Expr| Expr::Cast { expr: boxed(expr), ty: LogicalType::Float64 };
    let aggregate = |function, argument: Expr, ty| Aggregate { function, argument: Some(argument), filter: None, ty };
    // Sums beyond 64 bits, and values that most workers have none of.
    let decimal = LogicalType::Decimal { precision: 38, scale: 0 };
    let wide = Expr::Arithmetic {
        op: sinter_exec::ArithmeticOp::Multiply,
        left: boxed(Expr::Cast { expr: boxed(Expr::Column(0)), ty: decimal.clone() }),
        right: boxed(int(1 << 60, decimal.clone())),
        ty: decimal.clone(),
    };
    let is_early = Expr::Compare(CompareOp::Less, boxed(Expr::Column(0)), boxed(int(3000, LogicalType::Int64)));
    let early = Expr::Case { branches: vec![(is_early, Expr::Column(0))], otherwise: None, ty: LogicalType::Int64 };
    let aggregates = [
        count_star(),
        aggregate(AggregateFunction::Sum, Expr::Column(0), LogicalType::Int64),
        aggregate(AggregateFunction::Count, some_text.clone(), LogicalType::Int64),
        aggregate(AggregateFunction::Max, float(Expr::Column(0)), LogicalType::Float64),
        aggregate(AggregateFunction::Min, some_text.clone(), LogicalType::Utf8),
        aggregate(AggregateFunction::Variance { of_sample: false }, Expr::Column(0), LogicalType::Float64),
        aggregate(AggregateFunction::Sum, wide.clone(), decimal.clone()),
        aggregate(AggregateFunction::Max, early, LogicalType::Int64),
    ];
    for keys in [
        vec![remainder(40_000), remainder(3)],
        vec![some_text.clone(), remainder(40_000)],
        vec![remainder(90_000), some_text.clone(), remainder(2)],
        vec![some_text],
        vec![float(Expr::Column(0))],
        vec![float(remainder(30_000)), some(float(Expr::Column(0)))],
        vec![float(remainder(30_000)), float(Expr::Column(0)), some(float(Expr::Column(0)))],
        vec![wide.clone()],
        vec![some(wide), remainder(40_000)],
    ] {
        let types: Vec<LogicalType> =
            keys.iter().map(|key| model::type_of(key, &[LogicalType::Int64, LogicalType::Utf8])).collect();
        let types = [types, aggregates.iter().map(|aggregate| aggregate.ty.clone()).collect()].concat();
        let rows = |threads: usize| {
            let pipeline = pipeline(&table, 2, &keys, &aggregates);
            let mut rows: Vec<String> =
                found(pipeline, &types, threads).expect("no error").iter().map(|row| format!("{row:?}")).collect();
            rows.sort_unstable();
            rows
        };
        let wanted = rows(1);
        assert!(wanted.len() > 80_000, "{} groups", wanted.len());
        for threads in 2..5 {
            assert!(rows(threads) == wanted, "{threads} threads by {keys:?}");
        }
    }
}

#[test]
fn a_sum_that_overflows_in_one_of_many_groups_is_an_error() {
    let (table, decimal) = (numbers(150_000), LogicalType::Decimal { precision: 38, scale: 0 });
    let is_that_one = Expr::Compare(CompareOp::Equal, boxed(remainder(75_000)), boxed(int(12_345, LogicalType::Int64)));
    // Two rows of that group are beyond 128 bits, whoever has them.
    let most = int(10i128.pow(38) - 1, decimal.clone());
    let otherwise = Some(boxed(int(1, decimal.clone())));
    let value = Expr::Case { branches: vec![(is_that_one, most)], otherwise, ty: decimal.clone() };
    let sum = Aggregate { function: AggregateFunction::Sum, argument: Some(value), filter: None, ty: decimal.clone() };
    let types = [LogicalType::Int64, decimal];
    for threads in 1..5 {
        let found = found(pipeline(&table, 2, &[remainder(75_000)], std::slice::from_ref(&sum)), &types, threads);
        assert!(matches!(found, Err(Error::Overflow { .. })), "{threads} threads: {:?}", found.map(|rows| rows.len()));
    }
}

#[test]
fn workers_agree_about_sets_of_keys_with_many_groups_and_with_one() {
    let table = numbers(150_000);
    let set = |(keys, number): (Vec<usize>, i128)| GroupingSet { keys, number };
    let output = Output::GroupingSets {
        keys: vec![remainder(90_000), remainder(3)],
        sets: [vec![0, 1], vec![1], vec![0], vec![]].into_iter().zip(0..).map(set).collect(),
        number_type: LogicalType::UInt8,
        aggregates: vec![count_star()],
    };
    let types = [LogicalType::Int64, LogicalType::Int64, LogicalType::UInt8, LogicalType::Int64];
    let rows = |threads: usize| {
        let pipeline = Pipeline { output: output.clone(), ..pipeline(&table, 2, &[], &[]) };
        let rows = found(pipeline, &types, threads).expect("no error");
        let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        rows.sort_unstable();
        rows
    };
    let wanted = rows(1);
    assert_eq!(wanted.len(), 90_000 + 3 + 90_000 + 1);
    for threads in 2..5 {
        assert!(rows(threads) == wanted, "{threads} threads");
    }
}

#[test]
fn workers_agree_however_little_memory_there_is_for_their_groups() {
    let table = numbers(150_000);
    let keys = [remainder(70_000), Expr::Column(1)];
    let types = [LogicalType::Int64, LogicalType::Utf8, LogicalType::Int64];
    let (mut enough, mut refused, mut bytes) = (0, 0, 120 << 20);
    while refused < 3 {
        let limited = Arc::new(Limited::new(bytes));
        let memory = Arc::clone(&limited) as Arc<dyn Memory>;
        match pipeline(&table, 2, &keys, &[count_star()]).start().expect("ours").groups(4, &memory) {
            Ok(groups) => {
                let mut rows = rows_of(&groups, &types).expect("no error");
                rows.sort_by(|a, b| model::order(&a[1], &b[1]));
                rows.dedup();
                assert_eq!(rows.len(), 150_000, "{bytes} bytes");
                enough += 1;
            }
            Err(Error::OutOfMemory(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        assert_eq!(limited.left(), bytes, "what was granted is given back");
        bytes = bytes / 10 * 9;
    }
    assert!(enough > 3, "{enough} times enough");
}

#[test]
fn workers_agree_about_many_different_values() {
    let table = numbers(150_000);
    let distinct = |function, argument: Expr| Aggregate {
        function: AggregateFunction::Distinct(Box::new(function)),
        argument: Some(argument),
        filter: None,
        ty: LogicalType::Int64,
    };
    let aggregates = [
        distinct(AggregateFunction::Count, some(Expr::Column(1))),
        distinct(AggregateFunction::Sum, some(remainder(70_000))),
        distinct(AggregateFunction::Count, Expr::Column(0)),
    ];
    let types = [LogicalType::Int64, LogicalType::Int64, LogicalType::Int64];
    for threads in 1..5 {
        let found_by = |keys: &[Expr]| {
            let types = [vec![LogicalType::Int64; keys.len()], types.to_vec()].concat();
            found(pipeline(&table, 2, keys, &aggregates), &types, threads).expect("no error")
        };
        let sum: i128 = (0..70_000).filter(|number| number % 10 < 7).sum();
        assert_eq!(found_by(&[]), [[105_000, sum, 150_000].map(Scalar::Int)], "{threads} threads");
        let mut by_digit = found_by(&[remainder(10)]);
        by_digit.sort_by(|a, b| model::order(&a[0], &b[0]));
        for (digit, row) in (0..).zip(&by_digit) {
            let (texts, sum) = match digit < 7 {
                true => (15_000, Scalar::Int((digit..70_000).step_by(10).sum())),
                false => (0, Scalar::Null),
            };
            let wanted = [Scalar::Int(digit), Scalar::Int(texts), sum, Scalar::Int(15_000)];
            assert_eq!(row[..], wanted, "{threads} threads");
        }
        assert_eq!(by_digit.len(), 10);
    }
}

#[test]
fn memory_that_is_not_granted_ends_the_query_and_is_given_back() {
    const BYTES: usize = 1 << 20;
    let limited = Arc::new(Limited::new(BYTES));
    let memory = Arc::clone(&limited) as Arc<dyn Memory>;
    let texts = |filter: Vec<Expr>| Pipeline { filter, ..pipeline(&numbers(60_000), 2, &[Expr::Column(1)], &[]) };
    let refused = texts(Vec::new()).start().expect("ours").groups(2, &memory);
    assert!(matches!(refused, Err(Error::OutOfMemory(_))), "{refused:?}");
    let few = Expr::Compare(CompareOp::Less, boxed(Expr::Column(0)), boxed(int(1000, LogicalType::Int64)));
    let groups = texts(vec![few]).start().expect("ours").groups(2, &memory).expect("room for a thousand");
    assert_eq!(groups.len(), 1000);
    assert!(limited.left() < BYTES, "groups that are there are held");
    drop(groups);
    assert_eq!(limited.left(), BYTES);
}

#[test]
fn estimates_know_small_domains() {
    let table = numbers(60_000);
    let of = |keys: &[Expr]| pipeline(&table, 2, keys, &[count_star()]);
    let high = Expr::Compare(CompareOp::Less, boxed(Expr::Column(0)), boxed(int(5, LogicalType::Int64)));
    let estimate = of(&[high]).rows_estimate();
    assert!((50_000..=60_000).contains(&estimate), "{estimate}, as of a comparison only its column is known");
    assert_eq!(of(&[Expr::Column(0), Expr::Column(1)]).rows_estimate(), 60_000);
    assert!(of(&[Expr::Column(0)]).gathered_bytes_estimate() > 50_000 * 16);
    let same: ArrayRef = Arc::new(Int64Array::from(vec![7; 60_000]));
    let table = Arc::new(MemoryTable::new(&[(same, LogicalType::Int64)], 5000, &[Choice::Auto]));
    assert_eq!(pipeline(&table, 1, &[Expr::Column(0)], &[]).rows_estimate(), 2, "one value, and perhaps NULL");
}
