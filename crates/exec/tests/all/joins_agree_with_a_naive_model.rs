//! Random joins, up to three of them in a row, against pairs of rows found by looking at keys one by one.

use crate::support::aggregates::holds;
use crate::support::exprs;
use crate::support::memory::Limited;
use crate::support::random::{self, Random};
use crate::support::table::MemoryTable;
use crate::support::{choice_lists, model, random_table, read_back, rows_of, rows_spilled};
use arrow::array::{ArrayRef, Int64Array, StringArray, UInt64Array};
use sinter_codec::{Choice, CompareOp, Scalar};
use sinter_exec::{
    Aggregate, AggregateFunction, ArithmeticOp, Batch, Error, Expr, Join, JoinKind, LogicalType, Memory, Output,
    Pipeline, Result, ScanColumn, Source, Step, Unlimited,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const KINDS: [JoinKind; 11] = [
    JoinKind::Inner,
    JoinKind::Left,
    JoinKind::Single,
    JoinKind::Semi,
    JoinKind::Anti,
    JoinKind::NotIn,
    JoinKind::Mark,
    JoinKind::Right,
    JoinKind::Full,
    JoinKind::RightSemi,
    JoinKind::RightAnti,
];

/// So many rows may come out of a query of the model.
const ROWS_MAX: usize = 30_000;

fn scan(table: &Arc<MemoryTable>, columns: usize, output: Vec<Expr>) -> Pipeline {
    Pipeline {
        source: Source::Table(Arc::clone(table) as _),
        columns: (0..columns).map(ScanColumn::Table).collect(),
        filter: Vec::new(),
        steps: Vec::new(),
        output: Output::Rows(output),
        limit: None,
        on_damage: Default::default(),
    }
}

/// Something that is equal, as text, where keys are; `None` where a NULL is equal to nothing.
fn identity(keys: &[Scalar], nulls_are_equal: bool) -> Option<String> {
    let canonical = |key: &Scalar| match key {
        Scalar::Null if !nulls_are_equal => None,
        Scalar::Float(value) if value.is_nan() => Some("NaN".to_owned()),
        Scalar::Float(value) => Some(format!("{:?}", value + 0.0)),
        other => Some(format!("{other:?}")),
    };
    Some(keys.iter().map(canonical).collect::<Option<Vec<_>>>()?.join("|"))
}

/// A join as the model does it: who keeps which rows, told row by row.
struct Model<'a> {
    kind: JoinKind,
    keys: &'a [usize],
    nulls_are_equal: bool,
    /// Over columns of these types.
    condition: Option<(&'a Expr, &'a [LogicalType])>,
    /// Keys and payload.
    others: &'a [(Vec<Scalar>, Vec<Scalar>)],
    payload_count: usize,
}

impl Model<'_> {
    /// What comes out when rows of so many columns meet the others; `None` where that is too much, or no answer.
    fn joined(&self, rows: Vec<Vec<Scalar>>, width: usize) -> Option<Vec<Vec<Scalar>>> {
        let mut by_key: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (other, (key, _)) in self.others.iter().enumerate() {
            if let Some(key) = identity(key, self.nulls_are_equal) {
                by_key.entry(key).or_default().push(other);
            }
        }
        if self.kind == JoinKind::Single && by_key.values().any(|others| others.len() > 1) {
            return None;
        }
        let has_null = self.others.iter().any(|(key, _)| key.contains(&Scalar::Null));
        let nulls = |count: usize| vec![Scalar::Null; count];
        let payload = |other: usize| self.others[other].1.clone();
        let mut has_partner = vec![false; self.others.len()];
        let mut all = Vec::new();
        for row in rows {
            let key: Vec<Scalar> = self.keys.iter().map(|&key| row[key].clone()).collect();
            let partners = identity(&key, self.nulls_are_equal).and_then(|key| by_key.get(&key));
            let mut partners = partners.cloned().unwrap_or_default();
            if let Some((condition, types)) = self.condition {
                let is_true = |row: &[Scalar]| model::evaluate(condition, row, types) == Ok(Scalar::Int(1));
                partners.retain(|&other| is_true(&[row.clone(), payload(other)].concat()));
            }
            partners.iter().for_each(|&other| has_partner[other] = true);
            let pairs = partners.iter().map(|&other| [row.clone(), payload(other)].concat());
            match self.kind {
                JoinKind::Inner | JoinKind::Right => all.extend(pairs),
                JoinKind::Left | JoinKind::Full | JoinKind::Single => match partners.is_empty() {
                    true => all.push([row, nulls(self.payload_count)].concat()),
                    false => all.extend(pairs),
                },
                JoinKind::Mark => {
                    // Only of the last column is it known which value it has.
                    let mark = if partners.is_empty() { Scalar::Null } else { Scalar::Int(1) };
                    all.push([row, nulls(self.payload_count.saturating_sub(1)), vec![mark]].concat());
                }
                JoinKind::Semi if partners.is_empty() => {}
                JoinKind::Anti | JoinKind::NotIn if !partners.is_empty() => {}
                JoinKind::NotIn if has_null || (key.contains(&Scalar::Null) && !self.others.is_empty()) => {}
                // Columns that only the condition sees are numbered, too.
                JoinKind::Semi | JoinKind::Anti if self.condition.is_some() => {
                    all.push([row, nulls(self.payload_count)].concat());
                }
                JoinKind::Semi | JoinKind::Anti | JoinKind::NotIn => all.push(row),
                JoinKind::RightSemi | JoinKind::RightAnti => {}
            }
            if all.len() > ROWS_MAX {
                return None;
            }
        }
        let alone = (0..self.others.len()).filter(|&other| match self.kind {
            JoinKind::Right | JoinKind::Full | JoinKind::RightAnti => !has_partner[other],
            JoinKind::RightSemi => has_partner[other],
            _ => false,
        });
        all.extend(alone.map(|other| [nulls(width), payload(other)].concat()));
        Some(all)
    }
}

#[test]
fn all_kinds_all_keys_all_schemes() {
    let (mut compared, mut spilled, mut rows_seen, mut most, mut asked_early) = (0, 0, 0, 0, 0);
    for (index, choices) in choice_lists().iter().enumerate() {
        for seed in 0..5u64 {
            let seed = seed * 100 + index as u64;
            let mut random = Random(seed);
            let row_counts = [*random.pick(&[0, 1, 900, 2600]), *random.pick(&[0, 1, 40, 700]), *random.pick(&[3, 50])];
            let tables: Vec<_> = row_counts
                .iter()
                .map(|&rows| {
                    let (table, alive) = random_table(&mut random, rows, (seed % 3) as usize, choices);
                    (Arc::new(table), alive)
                })
                .collect();
            for query in 0..12 {
                let mut types = exprs::types();
                let scan_types = types.clone();
                let mut pipeline = scan(&tables[0].0, types.len(), Vec::new());
                if random.chance(30) {
                    pipeline.filter.push(exprs::simple_condition(&mut random));
                }
                let passing = tables[0].1.iter().filter(|row| pipeline.filter.iter().all(|part| holds(part, row)));
                let mut expected: Option<Vec<Vec<Scalar>>> = Some(passing.cloned().collect());
                let mut texts = Vec::new();
                // What a semi join's condition saw is not to be asked for afterwards.
                let mut hidden: Vec<usize> = Vec::new();
                // What each join brought.
                let mut joined: Vec<Range<usize>> = Vec::new();
                for _ in 0..1 + random.below(3) {
                    let (table, alive) = &tables[random.below(3)];
                    let kind = *random.pick(&KINDS);
                    let is_not_in = kind == JoinKind::NotIn;
                    let nulls_are_equal = !is_not_in && random.chance(15);
                    let (mut keys, mut build_keys) = (Vec::new(), Vec::new());
                    let keys_max = *random.pick(&[1, 1, 3]);
                    let key_count = match is_not_in {
                        true => 1,
                        // Each with each.
                        false if random.chance(5) => 0,
                        false => 1 + random.below(keys_max),
                    };
                    for _ in 0..key_count {
                        let key = random.below(types.len());
                        if hidden.contains(&key) {
                            continue;
                        }
                        let same: Vec<usize> =
                            (0..scan_types.len()).filter(|&at| scan_types[at] == types[key]).collect();
                        keys.push(key);
                        build_keys.push(*random.pick(&same));
                    }
                    let filter: Vec<Expr> =
                        if random.chance(50) { Vec::new() } else { vec![exprs::simple_condition(&mut random)] };
                    let payload: Vec<usize> = (0..random.below(4)).map(|_| random.below(scan_types.len())).collect();
                    let may_ask = !matches!(kind, JoinKind::Inner | JoinKind::Single | JoinKind::NotIn);
                    // Between a number of ours and one of theirs, where there are two of the same type.
                    let mut pairs_of_columns = Vec::new();
                    for (ours, ty) in types.iter().enumerate().filter(|(ours, _)| !hidden.contains(ours)) {
                        let same = payload.iter().enumerate().filter(|(_, theirs)| scan_types[**theirs] == *ty);
                        pairs_of_columns.extend(same.map(|(place, _)| (ours, types.len() + place)));
                    }
                    let condition = (may_ask && !pairs_of_columns.is_empty() && random.chance(50)).then(|| {
                        let (ours, theirs) = *random.pick(&pairs_of_columns);
                        let op = *random.pick(&[CompareOp::Less, CompareOp::NotEqual, CompareOp::Equal]);
                        Expr::Compare(op, Box::new(Expr::Column(ours)), Box::new(Expr::Column(theirs)))
                    });
                    let others: Vec<_> = alive
                        .iter()
                        .filter(|row| filter.iter().all(|part| holds(part, row)))
                        .map(|row| {
                            let pick =
                                |columns: &[usize]| columns.iter().map(|&at| row[at].clone()).collect::<Vec<_>>();
                            let mark = (kind == JoinKind::Mark).then_some(Scalar::Int(1));
                            (pick(&build_keys), pick(&payload).into_iter().chain(mark).collect())
                        })
                        .collect();
                    if is_not_in && keys.len() != 1 {
                        continue;
                    }
                    let mark = (kind == JoinKind::Mark).then_some(LogicalType::Boolean);
                    let payload_types = payload.iter().map(|&column| scan_types[column].clone()).chain(mark);
                    let payload_types: Vec<LogicalType> = payload_types.collect();
                    let both_types: Vec<LogicalType> = types.iter().chain(&payload_types).cloned().collect();
                    let model = Model {
                        kind,
                        keys: &keys,
                        nulls_are_equal,
                        condition: condition.as_ref().map(|condition| (condition, &both_types[..])),
                        others: &others,
                        payload_count: payload_types.len(),
                    };
                    expected = expected.and_then(|rows| model.joined(rows, types.len()));
                    let mut columns: Vec<Expr> =
                        build_keys.iter().chain(&payload).map(|&column| Expr::Column(column)).collect();
                    if kind == JoinKind::Mark {
                        columns.push(exprs::int(1, LogicalType::Boolean));
                    }
                    let build = Box::new(Pipeline { filter, ..scan(table, scan_types.len(), columns) });
                    let equal = if nulls_are_equal { "=NULL=" } else { "=" };
                    texts.push(format!(
                        "{kind:?} {keys:?} {equal} {build_keys:?} payload {payload:?} {:?}, {condition:?}",
                        build.filter
                    ));
                    let keys = keys.into_iter().map(Expr::Column).collect();
                    let join = Join { kind, build, keys, nulls_are_equal, condition };
                    let adds_columns = join.adds_columns();
                    pipeline.steps.push(Step::Join(join));
                    if adds_columns {
                        if !kind.has_payload() || kind == JoinKind::Mark {
                            hidden.extend(types.len()..types.len() + payload.len());
                        }
                        joined.push(types.len()..types.len() + payload_types.len());
                        types.extend(payload_types);
                    }
                    if random.chance(25) {
                        let condition = exprs::simple_condition(&mut random);
                        expected = expected
                            .map(|rows| rows.into_iter().filter(|row| holds(&condition, row)).collect::<Vec<_>>());
                        texts.push(format!("{condition:?}"));
                        pipeline.steps.push(Step::Filter(condition));
                    }
                }
                let Some(expected) = expected else { continue };
                let mut outputs: Vec<usize> = match random.below(3) {
                    0 => (0..types.len()).collect(),
                    _ => (0..random.below(5)).map(|_| random.below(types.len())).collect(),
                };
                outputs.retain(|column| !hidden.contains(column));
                // Keys that one join brought, as a rule.
                let of_one = joined.get(random.below(joined.len().max(1))).cloned().unwrap_or(0..0);
                let mut keys: Vec<usize> = of_one.filter(|_| random.chance(60)).collect();
                keys.extend((0..types.len()).filter(|_| random.chance(1)));
                keys.retain(|column| !hidden.contains(column));
                let grouped = (!keys.is_empty()).then(|| grouped(&pipeline, &keys, &types, 1 + random.below(3)));
                let wanted = counted(expected.iter().map(|row| keys.iter().map(|&key| row[key].clone()).collect()));
                pipeline.output = Output::Rows(outputs.iter().map(|&column| Expr::Column(column)).collect());
                let output_types: Vec<LogicalType> = outputs.iter().map(|&column| types[column].clone()).collect();
                let expected: Vec<Vec<Scalar>> = expected
                    .into_iter()
                    .map(|row| outputs.iter().map(|&column| row[column].clone()).collect())
                    .collect();
                let context = || format!("seed {seed}, query {query}, {choices:?}\n{}", texts.join("\n"));
                if let Some(found) = grouped {
                    let found = found.unwrap_or_else(|error| panic!("{error}\n{}", context()));
                    assert!(found == wanted, "other groups by {keys:?}: {found:?} {wanted:?}\n{}", context());
                }
                let asked = pipeline.clone().start_measured().expect("ours");
                // One partner at most is wanted of some.
                if asked.prepare(1, &unlimited()).is_ok() {
                    asked_early += usize::from(asked.explain().to_string().contains(" of a join, in a "));
                }
                let (found, was_spilled) = match random.chance(50) {
                    true => rows_spilled(&pipeline, &output_types, 1 + random.below(3), &mut random),
                    false => (rows_of(pipeline, &output_types, 1 + random.below(3)), false),
                };
                spilled += usize::from(was_spilled);
                let found = found.unwrap_or_else(|error| panic!("{error}\n{}", context()));
                assert_eq!(found.len(), expected.len(), "{}", context());
                let sorted = |rows: Vec<Vec<Scalar>>| {
                    let mut texts: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
                    texts.sort_unstable();
                    texts
                };
                rows_seen += found.len();
                most = most.max(found.len());
                compared += 1;
                assert!(sorted(found) == sorted(expected), "other rows\n{}", context());
            }
        }
    }
    assert!(
        compared > 300 && spilled > 80 && rows_seen > 100_000 && most > 5000 && asked_early > 10,
        "{compared} queries, {spilled} of them spilled, {asked_early} asked early, {rows_seen} rows, {most} at most"
    );
}

/// How many rows have which keys.
fn counted(keys: impl Iterator<Item = Vec<Scalar>>) -> BTreeMap<String, i128> {
    let mut counts = BTreeMap::new();
    keys.filter_map(|keys| identity(&keys, true)).for_each(|keys| *counts.entry(keys).or_insert(0) += 1);
    counts
}

/// The same, of the rows that a pipeline makes.
fn grouped(
    pipeline: &Pipeline,
    keys: &[usize],
    types: &[LogicalType],
    threads: usize,
) -> Result<BTreeMap<String, i128>> {
    let count =
        Aggregate { function: AggregateFunction::CountStar, argument: None, filter: None, ty: LogicalType::Int64 };
    let output = Output::Groups { keys: keys.iter().map(|&key| Expr::Column(key)).collect(), aggregates: vec![count] };
    let groups = Pipeline { output, ..pipeline.clone() };
    let types: Vec<LogicalType> = keys.iter().map(|&key| types[key].clone()).chain([LogicalType::Int64]).collect();
    let mut counts = BTreeMap::new();
    for row in rows_of(read_back(groups), &types, threads)? {
        let (count, keys) = row.split_last().expect("there is a count");
        let Scalar::Int(count) = count else { panic!("{count:?} is no count") };
        let twice = counts.insert(identity(keys, true).expect("NULLs are equal"), *count);
        assert!(twice.is_none(), "two groups with {keys:?}");
    }
    Ok(counts)
}

/// `rows` numbers that repeat after `period`.
fn numbers(rows: i64, period: i64) -> Arc<MemoryTable> {
    let numbers: ArrayRef = Arc::new((0..rows).map(|row| row % period).collect::<Int64Array>());
    Arc::new(MemoryTable::new(&[(numbers, LogicalType::Int64)], 5000, &[Choice::Auto]))
}

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

fn self_join(table: &Arc<MemoryTable>, output: Output) -> Pipeline {
    let build = Box::new(scan(table, 1, vec![Expr::Column(0), Expr::Column(0)]));
    let join =
        Join { kind: JoinKind::Inner, build, keys: vec![Expr::Column(0)], nulls_are_equal: false, condition: None };
    Pipeline { steps: vec![Step::Join(join)], output, ..scan(table, 1, Vec::new()) }
}

fn unlimited() -> Arc<dyn Memory> {
    Arc::new(Unlimited)
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

#[test]
fn models_know_what_they_compare() {
    let rows = vec![vec![Scalar::Int(1)], vec![Scalar::Null], vec![Scalar::Int(2)]];
    let others = [(vec![Scalar::Int(1)], vec![]), (vec![Scalar::Null], vec![]), (vec![Scalar::Int(1)], vec![])];
    let count = |kind, nulls_are_equal| {
        let model = Model { kind, keys: &[0], nulls_are_equal, condition: None, others: &others, payload_count: 0 };
        model.joined(rows.clone(), 1).map(|rows| rows.len())
    };
    let counts = |equal| KINDS.map(|kind| count(kind, equal));
    let found = counts(false).map(|count| count.unwrap_or(99));
    assert_eq!(found, [2, 4, 99, 1, 2, 0, 3, 3, 5, 2, 1]);
    let found = counts(true).map(|count| count.unwrap_or(99));
    assert_eq!(found, [3, 4, 99, 2, 1, 0, 3, 3, 4, 3, 0]);
    assert!(model::same(&Scalar::Null, &Scalar::Null));
}

#[test]
fn several_integer_keys() -> Result<()> {
    let types = [
        LogicalType::Int64,
        LogicalType::Int32,
        LogicalType::UInt64,
        LogicalType::Decimal { precision: 38, scale: 0 },
        LogicalType::Int64,
    ];
    // The first is nearly unique; of the third the greatest is beyond 64 bits with a sign; the last says which row it is.
    let table = |random: &mut Random, rows: usize, beyond: i128| {
        let mut columns = vec![Vec::new(); types.len()];
        for row in 0..rows {
            let lead = random.between(0, rows as i128 / 3);
            let wide = if random.chance(5) { beyond } else { random.between(0, 3) };
            let values = [lead, random.between(-4, 4), u64::MAX as i128 - random.between(0, 2), wide - 2, row as i128];
            for (place, (column, value)) in columns.iter_mut().zip(values).enumerate() {
                let is_null = place < 4 && random.chance(4);
                column.push(if is_null { Scalar::Null } else { Scalar::Int(value) });
            }
        }
        let arrays: Vec<_> =
            columns.iter().zip(&types).map(|(column, ty)| (random::array(column, ty), ty.clone())).collect();
        let rows: Vec<Vec<Scalar>> =
            (0..rows).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect();
        (Arc::new(MemoryTable::new(&arrays, 5000, &vec![Choice::Auto; arrays.len()])), rows)
    };
    for seed in 0..20 {
        let mut random = Random(seed);
        let build_rows = *random.pick(&[0, 1, 600, 3000]);
        // Beyond what the other side has, so that a probe must not take it for something else.
        let (build, others) = table(&mut random, build_rows, 1);
        let (probe, rows) = table(&mut random, 2500, 1 << 100);
        for keys in [vec![0, 1], vec![1, 0], vec![0, 2], vec![3, 0, 1], vec![0, 1, 2, 3], vec![1, 2]] {
            for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Anti, JoinKind::RightAnti] {
                for nulls_are_equal in [false, true] {
                    let theirs = keys.iter().copied().chain([4]).map(Expr::Column).collect();
                    let build = Box::new(scan(&build, types.len(), theirs));
                    let ours: Vec<Expr> = keys.iter().map(|&key| Expr::Column(key)).collect();
                    let join = Join { kind, build, keys: ours, nulls_are_equal, condition: None };
                    let width = types.len();
                    let outputs: Vec<usize> = match kind {
                        JoinKind::Anti => vec![4],
                        JoinKind::RightAnti => vec![width],
                        _ => vec![4, width],
                    };
                    let output = Output::Rows(outputs.iter().map(|&column| Expr::Column(column)).collect());
                    let pipeline =
                        Pipeline { steps: vec![Step::Join(join)], output, ..scan(&probe, width, Vec::new()) };
                    let out_types = vec![LogicalType::Int64; outputs.len()];
                    let mut found = rows_of(pipeline, &out_types, 1 + random.below(2))?;
                    let of_others: Vec<_> = others
                        .iter()
                        .map(|row| (keys.iter().map(|&key| row[key].clone()).collect(), vec![row[4].clone()]))
                        .collect();
                    let model = Model {
                        kind,
                        keys: &keys,
                        nulls_are_equal,
                        condition: None,
                        others: &of_others,
                        payload_count: 1,
                    };
                    let Some(wanted) = model.joined(rows.clone(), width) else { continue };
                    let mut wanted: Vec<Vec<Scalar>> =
                        wanted.iter().map(|row| outputs.iter().map(|&column| row[column].clone()).collect()).collect();
                    let text = |row: &Vec<Scalar>| format!("{row:?}");
                    found.sort_by_key(text);
                    wanted.sort_by_key(text);
                    assert!(found == wanted, "seed {seed}, {kind:?} by {keys:?}, {nulls_are_equal}");
                }
            }
        }
    }
    Ok(())
}
