//! Groups of several workers as one: the same whoever merges them, and how that ends where it cannot be done. Each worker's
//! rows are given, so that it is certain that all of them have groups, and who merges these.

use super::{GroupPlan, GroupSink, Groups};
use crate::flow::{Flow, Layout, Sink, Survivors};
use crate::join::{BuildPlan, BuildSink, JoinTable, WantedTable};
use crate::store::NONE;
use crate::vector::{flatten, push_scalar, scalar_at};
use crate::{
    Aggregate, AggregateFunction, Batch, Error, Expr, Join, JoinKind, LogicalType, Memory, Output, Pipeline, Result,
    Source, Step, Unlimited, Vector,
};
use sinter_codec::{Bitmap, Encoded, Scalar, VECTOR_LEN, ValuesBuf};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Who found groups, and as many threads as may merge them.
const WORKERS: usize = 4;

const WIDE: LogicalType = LogicalType::Decimal { precision: 38, scale: 0 };

/// A row on its way into groups.
#[derive(Clone, Debug)]
struct Row {
    values: Vec<Scalar>,
    /// Which row of the join's table it met, where there is one.
    met: u32,
}

/// By keys, how many rows there are and the sum of their values.
type Results = BTreeMap<String, (i128, i128)>;

/// Something that is equal, as text, where keys are.
fn identity(keys: &[Scalar]) -> String {
    let canonical = |key: &Scalar| match key {
        Scalar::Float(value) => format!("{:?}", value + 0.0),
        other => format!("{other:?}"),
    };
    keys.iter().map(canonical).collect::<Vec<_>>().join("|")
}

fn expected(rows: impl Iterator<Item = (Vec<Scalar>, i128)>) -> Results {
    let mut results = Results::new();
    for (keys, value) in rows {
        let (count, sum) = results.entry(identity(&keys)).or_default();
        (*count, *sum) = (*count + 1, *sum + value);
    }
    results
}

fn vector(values: impl Iterator<Item = Scalar> + Clone, ty: &LogicalType) -> Vector {
    let mut all = ValuesBuf::new(ty.physical().expect("a plain type"));
    for value in values.clone() {
        match value {
            Scalar::Null => all.push_default(1),
            value => assert!(push_scalar(&mut all, &value), "{value:?} is a value of {ty}"),
        }
    }
    let validity = Bitmap::from_bools(values.map(|value| !value.is_null()));
    Vector { values: Encoded::Flat(all), validity: (!validity.all()).then_some(validity), ..Vector::default() }
}

fn batch(rows: &[Row], types: &[LogicalType]) -> Batch {
    let column =
        |(column, ty): (usize, &LogicalType)| vector(rows.iter().map(move |row| row.values[column].clone()), ty);
    Batch { columns: types.iter().enumerate().map(column).collect(), rows: rows.len() }
}

/// Of a vector in whichever form.
fn scalars(vector: &Vector, ty: &LogicalType, rows: usize) -> Vec<Scalar> {
    let mut values = ValuesBuf::new(ty.physical().expect("a plain type"));
    flatten(&vector.values, vector.dictionary.as_deref(), rows, &mut values);
    let is_present = |row: usize| vector.validity.as_ref().is_none_or(|validity| validity.get(row));
    (0..rows).map(|row| if is_present(row) { scalar_at(values.as_values(), row) } else { Scalar::Null }).collect()
}

/// A pipeline over columns of these types, of which nothing else is known.
fn over(types: &[LogicalType], output: Output) -> Pipeline {
    let nulls = types.iter().map(|ty| Expr::Literal(Scalar::Null, ty.clone())).collect();
    let rows = Pipeline::of_source(Source::Union(Vec::new()), Output::Rows(nulls));
    Pipeline::of_source(Source::Union(vec![rows]), output)
}

/// By these columns, how many rows there are, and the sum of another.
fn groups_by(keys: &[usize], value: usize, sum_type: LogicalType) -> Output {
    let aggregate = |function, argument, ty| Aggregate { function, argument, filter: None, ty };
    let aggregates = vec![
        aggregate(AggregateFunction::CountStar, None, LogicalType::Int64),
        aggregate(AggregateFunction::Sum, Some(Expr::Column(value)), sum_type),
    ];
    Output::Groups { keys: keys.iter().map(|&key| Expr::Column(key)).collect(), aggregates }
}

/// A pipeline that ends in groups, with the rows that each worker has of it.
struct Grouping {
    pipeline: Pipeline,
    plan: Arc<GroupPlan>,
    key_count: usize,
    tables: Vec<Arc<JoinTable>>,
    rows: [Vec<Row>; WORKERS],
}

impl Grouping {
    fn new(pipeline: Pipeline, tables: Vec<Arc<JoinTable>>, rows: [Vec<Row>; WORKERS]) -> Grouping {
        let Output::Groups { keys, aggregates } = &pipeline.output else { panic!("rows are grouped") };
        let plan = GroupPlan::new(keys, None, aggregates, &pipeline.column_types(), &pipeline).expect("ours");
        Grouping { plan: Arc::new(plan), key_count: keys.len(), pipeline, tables, rows }
    }

    /// What each worker finds.
    fn groups(&self, memory: &Arc<dyn Memory>) -> Vec<Groups> {
        let (types, payload) = (self.pipeline.scan_types(), self.pipeline.payload().collect::<Vec<_>>());
        let layout = Layout { scan_columns: types.len(), scan_types: &types, payload: &payload, tables: &self.tables };
        let columns: Vec<usize> = (0..types.len()).collect();
        let of_worker = |rows: &Vec<Row>| {
            let mut sink = GroupSink::new(&self.plan, &self.tables, memory).expect("no foreign aggregates");
            let mut survivors = Survivors::default();
            for rows in rows.chunks(VECTOR_LEN) {
                survivors.start_loaded(&mut batch(rows, &types), &columns, layout.columns());
                let mut met: Vec<u32> = rows.iter().map(|row| row.met).collect();
                survivors.meet(0, &mut met);
                let taken = sink.take(&mut Flow::new(&mut survivors, layout, None));
                assert!(taken.expect("memory is granted").is_continue());
            }
            sink.into_groups()
        };
        self.rows.iter().map(of_worker).collect()
    }

    /// All workers' groups, as so many threads make them.
    fn merged(&self, threads: usize) -> Result<Groups> {
        let memory: Arc<dyn Memory> = Arc::new(Unlimited);
        Groups::merged(self.groups(&memory), threads, &AtomicBool::new(false))
    }

    fn results(&self, groups: &Groups) -> Result<Results> {
        let types = self.pipeline.output_types();
        let (mut results, mut batch, mut first) = (Results::new(), Batch::default(), 0);
        while groups.read(first, &mut batch)? {
            first += VECTOR_LEN;
            let columns = batch.columns.iter().zip(&types).map(|(column, ty)| scalars(column, ty, batch.rows));
            let columns: Vec<_> = columns.collect();
            for row in 0..batch.rows {
                let row: Vec<Scalar> = columns.iter().map(|column| column[row].clone()).collect();
                let (keys, numbers) = row.split_at(self.key_count);
                let [Scalar::Int(count), Scalar::Int(sum)] = numbers else { panic!("{numbers:?} are no numbers") };
                assert!(results.insert(identity(keys), (*count, *sum)).is_none(), "two groups with {keys:?}");
            }
        }
        Ok(results)
    }
}

/// Numbers that are met by one worker or two, by keys of 128 bits, that differ in the upper half, or in the lower one, and
/// floats.
fn by_wide_keys(keys: &[usize]) -> Grouping {
    let row = |number: i128| {
        let wide = match number % 1000 {
            7 => Scalar::Null,
            _ => Scalar::Int(((number / 2 - 25_000) << 80) + number % 2),
        };
        let float = match number % 10 {
            3 => Scalar::Null,
            digit => Scalar::Float(digit as f64 / 4.0),
        };
        Row { values: vec![wide, float, Scalar::Int(number)], met: NONE }
    };
    let rows = |worker: i128| (worker * 20_000..worker * 20_000 + 40_000).map(row).collect();
    let types = [WIDE, LogicalType::Float64, LogicalType::Int64];
    Grouping::new(over(&types, groups_by(keys, 2, LogicalType::Int64)), Vec::new(), [0, 1, 2, 3].map(rows))
}

/// How many threads make a part of the groups each; with fewer, they are looked up among one another's.
fn part_count(threads: usize) -> usize {
    if threads >= super::parted::PARTS_MIN { threads } else { 1 }
}

#[test]
fn keys_of_128_bits_are_the_same_in_parts() -> Result<()> {
    // The last of them do not fit one word.
    for keys in [&[0][..], &[0, 1], &[0, 1, 1]] {
        let grouping = by_wide_keys(keys);
        let all = grouping.rows.iter().flatten();
        let wanted = expected(all.map(|row| {
            let Scalar::Int(value) = row.values[2] else { panic!("{row:?} has a number") };
            (keys.iter().map(|&key| row.values[key].clone()).collect(), value)
        }));
        assert!(wanted.len() > 90_000);
        for threads in [1, 3, WORKERS] {
            let merged = grouping.merged(threads)?;
            assert_eq!(merged.sets.len(), part_count(threads));
            assert!(grouping.results(&merged)? == wanted, "{threads} threads by {keys:?}");
        }
    }
    Ok(())
}

const PARTNER_KEYS: i128 = 40_000;
const PARTNER_ROWS: i128 = 2 * PARTNER_KEYS;

/// A float and a text, either of them NULL now and then. Each key is that of two rows; floats that are equal have other bits
/// there.
fn keys_of_partner(row: i128) -> Vec<Scalar> {
    let (number, is_second) = (row % PARTNER_KEYS, row >= PARTNER_KEYS);
    let float = match number % 5 {
        0 => Scalar::Float(if is_second { -0.0 } else { 0.0 }),
        1 => Scalar::Float(if is_second { -f64::NAN } else { f64::NAN }),
        2 => Scalar::Null,
        _ => Scalar::Float(number as f64),
    };
    let text = if number % 7 == 3 { Scalar::Null } else { Scalar::Bytes(format!("text {number}").into()) };
    vec![float, text]
}

/// The build side of a left join, and its table.
fn partners() -> (Pipeline, Arc<JoinTable>) {
    let types = [LogicalType::Int64, LogicalType::Float64, LogicalType::Utf8];
    let build = over(&types, Output::Rows((0..types.len()).map(Expr::Column).collect()));
    let wanted = WantedTable {
        lists_keys: false,
        kind: JoinKind::Left,
        nulls_are_equal: false,
        has_condition: false,
        key_types: vec![LogicalType::Int64],
        is_wanted: vec![true, true],
        filter_keys_max: vec![0],
    };
    let memory: Arc<dyn Memory> = Arc::new(Unlimited);
    let plan = Arc::new(BuildPlan::new(&build, &wanted).expect("ours"));
    let mut sink = BuildSink::new(&plan, &memory).expect("memory is granted");
    let row = |row: i128| Row { values: [vec![Scalar::Int(row)], keys_of_partner(row)].concat(), met: NONE };
    let rows: Vec<Row> = (0..PARTNER_ROWS).map(row).collect();
    let layout = Layout { scan_columns: types.len(), scan_types: &types, payload: &[], tables: &[] };
    let mut survivors = Survivors::default();
    for rows in rows.chunks(VECTOR_LEN) {
        survivors.start_loaded(&mut batch(rows, &types), &[0, 1, 2], layout.columns());
        let taken = sink.take(&mut Flow::new(&mut survivors, layout, None));
        assert!(taken.expect("memory is granted").is_continue());
    }
    let table = plan.finish(vec![sink], 1, &memory, &AtomicBool::new(false)).expect("memory is granted");
    (build, Arc::new(table))
}

/// Rows by the keys of the partners that they met, every tenth of which met nobody.
fn by_partners() -> Grouping {
    let (build, table) = partners();
    let types = [LogicalType::Int64];
    let (kind, keys) = (JoinKind::Left, vec![Expr::Column(0)]);
    let join = Join { kind, build: Box::new(build), keys, nulls_are_equal: false, condition: None };
    let pipeline =
        Pipeline { steps: vec![Step::Join(join)], ..over(&types, groups_by(&[1, 2], 0, LogicalType::Int64)) };
    let row = |number: i128| {
        let met = if number % 10 == 9 { NONE } else { (number % PARTNER_ROWS) as u32 };
        Row { values: vec![Scalar::Int(number)], met }
    };
    let rows = |worker: i128| (worker * 20_000..worker * 20_000 + 35_000).map(row).collect();
    Grouping::new(pipeline, vec![table], [0, 1, 2, 3].map(rows))
}

/// What comes of [`by_partners`].
fn expected_by_partners(grouping: &Grouping) -> Results {
    let all = grouping.rows.iter().flatten();
    expected(all.map(|row| {
        let Scalar::Int(value) = row.values[0] else { panic!("{row:?} has a number") };
        let keys = if row.met == NONE { vec![Scalar::Null; 2] } else { keys_of_partner(row.met.into()) };
        (keys, value)
    }))
}

#[test]
fn keys_of_partners_are_the_same_in_parts() -> Result<()> {
    let grouping = by_partners();
    assert!(grouping.plan.partner_keys.is_some(), "one join brings all keys");
    let wanted = expected_by_partners(&grouping);
    assert!(wanted.contains_key("Null|Null") && wanted.contains_key("NaN|Null") && wanted.contains_key("0.0|Null"));
    for threads in 1..=WORKERS {
        let merged = grouping.merged(threads)?;
        assert_eq!(merged.sets.len(), part_count(threads));
        assert!(grouping.results(&merged)? == wanted, "{threads} threads");
    }
    Ok(())
}

#[test]
fn a_sum_that_overflows_in_one_part_is_an_error() {
    const OVERFLOWING: i128 = 12_345;
    let grouping = |most: i128, ty: &LogicalType| {
        let value = |number: i128| Scalar::Int(if number == OVERFLOWING { most } else { 1 });
        let row = |number: i128| Row { values: vec![Scalar::Int(number), value(number)], met: NONE };
        let rows: Vec<Row> = (0..30_000).map(row).collect();
        let types = [LogicalType::Int64, ty.clone()];
        Grouping::new(over(&types, groups_by(&[0], 1, ty.clone())), Vec::new(), [0; WORKERS].map(|_| rows.clone()))
    };
    let (most, most_of_type) = (10i128.pow(38) - 1, i128::from(i64::MAX));
    // What two workers have is beyond 128 bits; or 128 bits hold it, and its type does not.
    let (too_large, too_large_for_type) = (grouping(most, &WIDE), grouping(most_of_type, &LogicalType::Int64));
    for threads in 1..=WORKERS {
        let merged = too_large.merged(threads).map(|all| all.len());
        assert!(matches!(merged, Err(Error::Overflow { .. })), "{threads} threads: {merged:?}");
        let merged = too_large_for_type.merged(threads).expect("room for the sum");
        assert_eq!(merged.sets.len(), part_count(threads));
        let results = too_large_for_type.results(&merged).map(|all| all.len());
        assert!(matches!(results, Err(Error::Overflow { .. })), "{threads} threads: {results:?}");
    }
    let fitting = grouping(most_of_type, &WIDE);
    let merged = fitting.merged(WORKERS).expect("room for the sum");
    let results = fitting.results(&merged).expect("its type has room, too");
    assert_eq!((results.len(), results[&identity(&[Scalar::Int(OVERFLOWING)])]), (30_000, (4, 4 * most_of_type)));
}

/// Memory that grants everything, but for one request.
#[derive(Debug)]
struct Surprising {
    requests_before: AtomicUsize,
    /// What is set then; that request is refused where there is nothing.
    flag: Option<Arc<AtomicBool>>,
    held: AtomicUsize,
}

impl Surprising {
    fn new(flag: Option<Arc<AtomicBool>>) -> Arc<Surprising> {
        Arc::new(Surprising { requests_before: AtomicUsize::new(usize::MAX), flag, held: AtomicUsize::new(0) })
    }

    /// After so many requests from now on.
    fn surprise_after(&self, requests: usize) {
        self.requests_before.store(requests, Ordering::SeqCst);
    }
}

impl Memory for Surprising {
    fn grow(&self, bytes: usize) -> Result<()> {
        let is_that_one = self.requests_before.fetch_sub(1, Ordering::SeqCst) == 0;
        match &self.flag {
            None if is_that_one => return Err(Error::OutOfMemory("not this time".into())),
            Some(flag) if is_that_one => flag.store(true, Ordering::SeqCst),
            _ => {}
        }
        self.held.fetch_add(bytes, Ordering::SeqCst);
        Ok(())
    }

    fn shrink(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::SeqCst);
    }
}

#[test]
fn merging_ends_once_it_is_cancelled() {
    for grouping in [by_wide_keys(&[0]), by_partners()] {
        // Whoever makes parts of groups asks for memory before it looks at any of them.
        for requests in 0..3 {
            let cancelled = Arc::new(AtomicBool::new(false));
            let surprising = Surprising::new(Some(Arc::clone(&cancelled)));
            let memory: Arc<dyn Memory> = Arc::clone(&surprising) as _;
            let groups = grouping.groups(&memory);
            surprising.surprise_after(requests);
            let merged = Groups::merged(groups, WORKERS, &cancelled).map(|all| all.len());
            assert!(matches!(merged, Err(Error::Cancelled)), "after {requests} requests: {merged:?}");
            assert_eq!(surprising.held.load(Ordering::SeqCst), 0, "what was granted is given back");
        }
        let memory: Arc<dyn Memory> = Arc::new(Unlimited);
        for threads in 1..=WORKERS {
            let merged = Groups::merged(grouping.groups(&memory), threads, &AtomicBool::new(true));
            assert!(matches!(merged, Err(Error::Cancelled)), "{threads} threads");
        }
    }
}

#[test]
fn where_memory_is_refused_groups_are_looked_up_in_turn() -> Result<()> {
    let grouping = by_partners();
    let wanted = expected_by_partners(&grouping);
    let mut in_turn = 0;
    for requests in [0, 1, 2, 3, 5, 8, 13, 21] {
        let surprising = Surprising::new(None);
        let memory: Arc<dyn Memory> = Arc::clone(&surprising) as _;
        let groups = grouping.groups(&memory);
        surprising.surprise_after(requests);
        match Groups::merged(groups, WORKERS, &AtomicBool::new(false)) {
            Ok(merged) => {
                in_turn += usize::from(merged.sets.len() == 1);
                assert!(grouping.results(&merged)? == wanted, "refused after {requests} requests");
            }
            // Nobody can do with less in the end.
            Err(Error::OutOfMemory(_)) => {}
            Err(other) => return Err(other),
        }
        assert_eq!(surprising.held.load(Ordering::SeqCst), 0, "what was granted is given back");
    }
    assert!(in_turn >= 3, "{in_turn} times in turn");
    Ok(())
}
