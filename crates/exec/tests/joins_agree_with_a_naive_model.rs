//! Random joins, up to three of them in a row, against pairs of rows found by looking at keys one by one.

mod support;

use arrow::array::{ArrayRef, Int64Array};
use sinter_codec::{Choice, Scalar};
use sinter_exec::{
    Aggregate, AggregateFunction, Batch, Error, Expr, Join, JoinKind, LogicalType, Memory, Output, Pipeline, Result,
    ScanColumn, Step, Unlimited,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::aggregates::holds;
use support::exprs;
use support::random::Random;
use support::table::MemoryTable;
use support::{choice_lists, model, random_table, rows_of};

const KINDS: [JoinKind; 4] = [JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti];

/// So many rows may come out of a query of the model.
const ROWS_MAX: usize = 30_000;

fn scan(table: &Arc<MemoryTable>, columns: usize, output: Vec<Expr>) -> Pipeline {
    Pipeline {
        source: sinter_exec::Source::Table(Arc::clone(table) as _),
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

/// What comes out when `rows` meet others; `None` where that is too much.
fn joined(
    rows: Vec<Vec<Scalar>>,
    keys: &[usize],
    kind: JoinKind,
    nulls_are_equal: bool,
    others: &[(Vec<Scalar>, Vec<Scalar>)],
    payload_count: usize,
) -> Option<Vec<Vec<Scalar>>> {
    let mut by_key: BTreeMap<String, Vec<&Vec<Scalar>>> = BTreeMap::new();
    for (key, payload) in others {
        if let Some(key) = identity(key, nulls_are_equal) {
            by_key.entry(key).or_default().push(payload);
        }
    }
    let mut all = Vec::new();
    for row in rows {
        let key: Vec<Scalar> = keys.iter().map(|&key| row[key].clone()).collect();
        let partners = identity(&key, nulls_are_equal).and_then(|key| by_key.get(&key));
        let partners = partners.map(Vec::as_slice).unwrap_or_default();
        match kind {
            JoinKind::Semi if partners.is_empty() => {}
            JoinKind::Anti if !partners.is_empty() => {}
            JoinKind::Semi | JoinKind::Anti => all.push(row),
            JoinKind::Left | JoinKind::Single if partners.is_empty() => {
                all.push([row, vec![Scalar::Null; payload_count]].concat())
            }
            JoinKind::Inner | JoinKind::Left | JoinKind::Single => {
                all.extend(partners.iter().map(|&payload| [row.clone(), payload.clone()].concat()));
            }
        }
        if all.len() > ROWS_MAX {
            return None;
        }
    }
    Some(all)
}

#[test]
fn all_kinds_all_keys_all_schemes() {
    let (mut compared, mut rows_seen, mut most) = (0, 0, 0);
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
                for _ in 0..1 + random.below(3) {
                    let (table, alive) = &tables[random.below(3)];
                    let kind = *random.pick(&KINDS);
                    let nulls_are_equal = random.chance(15);
                    let (mut keys, mut build_keys) = (Vec::new(), Vec::new());
                    let keys_max = *random.pick(&[1, 1, 3]);
                    for _ in 0..1 + random.below(keys_max) {
                        let key = random.below(types.len());
                        let same: Vec<usize> =
                            (0..scan_types.len()).filter(|&at| scan_types[at] == types[key]).collect();
                        keys.push(key);
                        build_keys.push(*random.pick(&same));
                    }
                    let filter: Vec<Expr> =
                        if random.chance(50) { Vec::new() } else { vec![exprs::simple_condition(&mut random)] };
                    let payload: Vec<usize> = (0..random.below(4)).map(|_| random.below(scan_types.len())).collect();
                    let others: Vec<_> = alive
                        .iter()
                        .filter(|row| filter.iter().all(|part| holds(part, row)))
                        .map(|row| {
                            let pick =
                                |columns: &[usize]| columns.iter().map(|&at| row[at].clone()).collect::<Vec<_>>();
                            (pick(&build_keys), pick(&payload))
                        })
                        .collect();
                    expected =
                        expected.and_then(|rows| joined(rows, &keys, kind, nulls_are_equal, &others, payload.len()));
                    let columns = build_keys.iter().chain(&payload).map(|&column| Expr::Column(column)).collect();
                    let build = Box::new(Pipeline { filter, ..scan(table, scan_types.len(), columns) });
                    let equal = if nulls_are_equal { "=NULL=" } else { "=" };
                    texts.push(format!(
                        "{kind:?} {keys:?} {equal} {build_keys:?} payload {payload:?} {:?}",
                        build.filter
                    ));
                    let keys = keys.into_iter().map(Expr::Column).collect();
                    pipeline.steps.push(Step::Join(Join { kind, build, keys, nulls_are_equal }));
                    if kind.has_payload() {
                        types.extend(payload.iter().map(|&column| scan_types[column].clone()));
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
                let outputs: Vec<usize> = match random.below(3) {
                    0 => (0..types.len()).collect(),
                    _ => (0..random.below(5)).map(|_| random.below(types.len())).collect(),
                };
                pipeline.output = Output::Rows(outputs.iter().map(|&column| Expr::Column(column)).collect());
                let output_types: Vec<LogicalType> = outputs.iter().map(|&column| types[column].clone()).collect();
                let expected: Vec<Vec<Scalar>> = expected
                    .into_iter()
                    .map(|row| outputs.iter().map(|&column| row[column].clone()).collect())
                    .collect();
                let context = || format!("seed {seed}, query {query}, {choices:?}\n{}", texts.join("\n"));
                let found = rows_of(pipeline, &output_types, 1 + random.below(3));
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
        compared > 300 && rows_seen > 100_000 && most > 5000,
        "{compared} queries, {rows_seen} rows, {most} at most"
    );
}

/// `rows` numbers that repeat after `period`.
fn numbers(rows: i64, period: i64) -> Arc<MemoryTable> {
    let numbers: ArrayRef = Arc::new((0..rows).map(|row| row % period).collect::<Int64Array>());
    Arc::new(MemoryTable::new(&[(numbers, LogicalType::Int64)], 5000, &[Choice::Auto]))
}

fn self_join(table: &Arc<MemoryTable>, output: Output) -> Pipeline {
    let build = Box::new(scan(table, 1, vec![Expr::Column(0), Expr::Column(0)]));
    let join = Join { kind: JoinKind::Inner, build, keys: vec![Expr::Column(0)], nulls_are_equal: false };
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

/// Grants so many bytes.
#[derive(Debug)]
struct Few(usize, AtomicUsize);

impl Memory for Few {
    fn grow(&self, bytes: usize) -> Result<()> {
        if self.1.fetch_add(bytes, Ordering::Relaxed) + bytes > self.0 {
            self.1.fetch_sub(bytes, Ordering::Relaxed);
            return Err(Error::OutOfMemory("no more".into()));
        }
        Ok(())
    }

    fn shrink(&self, bytes: usize) {
        self.1.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[test]
fn memory_that_is_not_granted_ends_the_query_and_is_given_back() -> Result<()> {
    let table = numbers(50_000, 50_000);
    for limit in [1000, 200_000, 1_000_000] {
        let memory = Arc::new(Few(limit, AtomicUsize::new(0)));
        let shared: Arc<dyn Memory> = Arc::clone(&memory) as _;
        let run = self_join(&table, Output::Rows(vec![Expr::Column(1)])).start()?;
        let error = run.prepare(2, &shared).expect_err("50,000 keys take more");
        assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
        assert!(matches!(run.prepare(2, &shared), Err(Error::Cancelled)), "the first caller has the error");
        drop(run);
        assert_eq!(memory.1.load(Ordering::Relaxed), 0, "of {limit} bytes");
    }
    Ok(())
}

#[test]
fn models_know_what_they_compare() {
    let rows = vec![vec![Scalar::Int(1)], vec![Scalar::Null], vec![Scalar::Int(2)]];
    let others = [(vec![Scalar::Int(1)], vec![]), (vec![Scalar::Null], vec![]), (vec![Scalar::Int(1)], vec![])];
    let count = |kind, equal| joined(rows.clone(), &[0], kind, equal, &others, 0).map(|rows| rows.len());
    assert_eq!(KINDS.map(|kind| count(kind, false)), [2, 4, 1, 2].map(Some));
    assert_eq!(KINDS.map(|kind| count(kind, true)), [3, 4, 2, 1].map(Some));
    assert!(model::same(&Scalar::Null, &Scalar::Null));
}
