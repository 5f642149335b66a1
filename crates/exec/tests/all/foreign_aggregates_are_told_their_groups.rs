//! An aggregate that the engine knows nothing of: the numbers of a group in order, as text.

use crate::support::exprs::{boxed, int};
use crate::support::model;
use crate::support::table::MemoryTable;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringArray};
use arrow::datatypes::Int64Type;
use sinter_codec::{Choice, CompareOp, Scalar};
use sinter_exec::{
    Aggregate, AggregateFunction, ArithmeticOp, Batch, Error, Expr, ForeignAggregate, ForeignCall, ForeignStates,
    LogicalType, Memory, Output, Pipeline, Result, ScanColumn, Source, Unlimited, edge,
};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
struct AllNumbers;

#[derive(Debug, Default)]
struct Numbers {
    by_group: Vec<Vec<i64>>,
}

impl ForeignAggregate for AllNumbers {
    fn start(&self, has_keys: bool) -> Result<Box<dyn ForeignStates>> {
        Ok(Box::new(Numbers { by_group: vec![Vec::new(); usize::from(!has_keys)] }))
    }

    fn bytes_estimate(&self, _groups: usize, rows: usize) -> usize {
        rows * 8
    }

    fn text(&self) -> String {
        "all_numbers(number)".to_owned()
    }
}

impl ForeignStates for Numbers {
    fn update(
        &mut self,
        arguments: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: &[u32],
        group_count: usize,
    ) -> Result<()> {
        self.by_group.resize(group_count, Vec::new());
        let numbers = arguments[0].as_primitive::<Int64Type>();
        assert_eq!(numbers.len(), groups.len());
        for (row, &group) in groups.iter().enumerate() {
            if filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row)) && numbers.is_valid(row) {
                if numbers.value(row) == 13 {
                    return Err(Error::Foreign("not that one".into()));
                }
                self.by_group[group as usize].push(numbers.value(row));
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn ForeignStates>, map: &[u32], group_count: usize) -> Result<()> {
        let other: Box<dyn Any> = other;
        let other = other.downcast::<Numbers>().expect("states of the same function");
        self.by_group.resize(group_count, Vec::new());
        other.by_group.into_iter().zip(map).for_each(|(numbers, &group)| self.by_group[group as usize].extend(numbers));
        Ok(())
    }

    fn results(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(self.by_group.iter_mut().map(|numbers| Some(text_of(numbers))).collect::<StringArray>()))
    }

    fn bytes(&self) -> usize {
        self.by_group.iter().map(|numbers| 8 * numbers.capacity()).sum()
    }
}

fn text_of(numbers: &mut [i64]) -> String {
    numbers.sort_unstable();
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
}

/// Numbers from 100 on, each third of which is NULL, in groups of 5000 rows.
fn table(rows: i64) -> Arc<MemoryTable> {
    let keys: ArrayRef = Arc::new((0..rows).collect::<Int64Array>());
    let numbers: ArrayRef = Arc::new((0..rows).map(|row| (row % 3 != 0).then_some(row + 100)).collect::<Int64Array>());
    let columns = [(keys, LogicalType::Int64), (numbers, LogicalType::Int64)];
    Arc::new(MemoryTable::new(&columns, 5000, &[Choice::Auto, Choice::Auto]))
}

fn remainder(divisor: i128) -> Expr {
    let right = boxed(int(divisor, LogicalType::Int64));
    Expr::Arithmetic { op: ArithmeticOp::Modulo, left: boxed(Expr::Column(0)), right, ty: LogicalType::Int64 }
}

fn pipeline(table: Arc<MemoryTable>, keys: Vec<Expr>, argument: Expr, filter: Option<Expr>) -> Pipeline {
    let call = ForeignCall { function: Arc::new(AllNumbers), arguments: vec![argument] };
    let function = AggregateFunction::Foreign(call);
    let all = Aggregate { function, argument: None, filter, ty: LogicalType::Utf8 };
    let count =
        Aggregate { function: AggregateFunction::CountStar, argument: None, filter: None, ty: LogicalType::Int64 };
    Pipeline {
        source: Source::Table(table),
        columns: (0..2).map(ScanColumn::Table).collect(),
        filter: Vec::new(),
        steps: Vec::new(),
        output: Output::Groups { keys, aggregates: vec![all, count] },
        limit: None,
        on_damage: Default::default(),
    }
}

fn found(pipeline: Pipeline, threads: usize) -> Result<Vec<Vec<Scalar>>> {
    let types = pipeline.output_types();
    let memory: Arc<dyn Memory> = Arc::new(Unlimited);
    let groups = pipeline.start()?.groups(threads, &memory)?;
    let (mut rows, mut batch) = (Vec::new(), Batch::default());
    while groups.read(rows.len(), &mut batch)? {
        let columns = batch.columns.iter().zip(&types);
        let columns: Vec<Vec<Scalar>> = columns
            .map(|(column, ty)| Ok(model::scalars(&edge::to_arrow(column, ty, batch.rows)?, ty)))
            .collect::<Result<_>>()?;
        rows.extend((0..batch.rows).map(|row| columns.iter().map(|column| column[row].clone()).collect::<Vec<_>>()));
    }
    Ok(rows)
}

fn text(text: &str) -> Scalar {
    Scalar::Bytes(text.into())
}

#[test]
fn groups_of_all_workers_become_one() {
    for (rows, divisor) in [(60_000, 7), (60_000, 20_011), (3, 2)] {
        let filter = Expr::Compare(CompareOp::NotEqual, boxed(remainder(5)), boxed(int(0, LogicalType::Int64)));
        for (filter, threads) in [(None, 1), (None, 3), (Some(filter.clone()), 1), (Some(filter), 3)] {
            let mut expected: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
            for row in 0..rows {
                let numbers = expected.entry(row % divisor).or_default();
                if row % 3 != 0 && (filter.is_none() || row % 5 != 0) {
                    numbers.push(row + 100);
                }
            }
            let keys = vec![remainder(divisor.into())];
            let found = found(pipeline(table(rows), keys, Expr::Column(1), filter), threads).expect("no error");
            assert_eq!(found.len(), expected.len());
            for row in found {
                let Scalar::Int(key) = row[0] else { panic!("{row:?}") };
                let numbers = expected.get_mut(&(key as i64)).expect("a group that is there");
                assert_eq!(row[1], text(&text_of(numbers)));
            }
        }
    }
}

#[test]
fn without_keys_there_is_one_group_even_of_no_row() {
    for threads in [1, 3] {
        let all = |rows| found(pipeline(table(rows), Vec::new(), Expr::Column(1), None), threads).expect("no error");
        assert_eq!(all(0), [[text(""), Scalar::Int(0)]]);
        assert_eq!(all(6), [[text("101 102 104 105"), Scalar::Int(6)]]);
        let Scalar::Bytes(numbers) = &all(20_000)[0][0] else { panic!("it is text") };
        assert_eq!(numbers.split(|&byte| byte == b' ').count(), 13_333);
    }
    let by_key = found(pipeline(table(0), vec![remainder(2)], Expr::Column(1), None), 2).expect("no error");
    assert!(by_key.is_empty());
}

#[test]
fn its_errors_end_the_query() {
    let error = found(pipeline(table(20_000), vec![remainder(2)], Expr::Column(0), None), 2).expect_err("13 is there");
    assert!(error.to_string().contains("not that one"), "{error}");
}

#[test]
fn one_row_of_aggregates_is_not_for_it() {
    let groups = pipeline(table(10), Vec::new(), Expr::Column(1), None);
    let output = Output::Aggregate(groups.output.aggregates().to_vec());
    assert!(matches!(Pipeline { output, ..groups }.start(), Err(Error::Unsupported(_))));
}

#[derive(Debug)]
struct Most(AtomicUsize, AtomicUsize);

impl Memory for Most {
    fn grow(&self, bytes: usize) -> Result<()> {
        let now = self.0.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.1.fetch_max(now, Ordering::Relaxed);
        Ok(())
    }

    fn shrink(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[test]
fn its_bytes_are_asked_for_and_given_back() {
    let most = Arc::new(Most(AtomicUsize::new(0), AtomicUsize::new(0)));
    let memory = Arc::clone(&most) as Arc<dyn Memory>;
    let run = pipeline(table(60_000), vec![remainder(4)], Expr::Column(1), None).start().expect("ours");
    drop(run.groups(2, &memory).expect("no error"));
    assert!(most.1.load(Ordering::Relaxed) >= 8 * 40_000);
    assert_eq!(most.0.load(Ordering::Relaxed), 0);
}

#[test]
fn plans_name_it() {
    let plan = pipeline(table(10), Vec::new(), Expr::Column(1), Some(Expr::IsNotNull(boxed(Expr::Column(1)))));
    let plan = plan.to_string();
    assert!(plan.contains("aggregate: all_numbers(number) FILTER (WHERE c1 IS NOT NULL), count(*)"), "{plan}");
    assert!(!plan.contains("group by"), "{plan}");
}
