//! The rows of several pipelines as one source, below filters, joins, groups and orders, against lists put together.

use crate::support::aggregates::{self, holds};
use crate::support::exprs;
use crate::support::random::Random;
use crate::support::table::MemoryTable;
use crate::support::{choice_lists, random_table, rows_of, rows_spilled};
use sinter_codec::{Choice, Scalar};
use sinter_exec::{
    Expr, Join, JoinKind, LogicalType, Memory, Order, Output, Pipeline, Result, ScanColumn, SortKey, Source, Step,
    Unlimited,
};
use std::sync::Arc;

type Table = (Arc<MemoryTable>, Vec<Vec<Scalar>>);

fn of(source: Source, output: Output) -> Pipeline {
    Pipeline {
        source,
        columns: (0..exprs::types().len()).map(ScanColumn::Table).collect(),
        filter: Vec::new(),
        steps: Vec::new(),
        output,
        limit: None,
        on_damage: Default::default(),
    }
}

fn all_columns() -> Vec<Expr> {
    (0..exprs::types().len()).map(Expr::Column).collect()
}

fn scan(table: &Table) -> Pipeline {
    of(Source::Table(Arc::clone(&table.0) as _), Output::Rows(all_columns()))
}

/// A pipeline with columns of [`exprs::types`], and its rows.
fn input(random: &mut Random, tables: &[Table], depth: usize) -> (Pipeline, Vec<Vec<Scalar>>) {
    let table = &tables[random.below(tables.len())];
    let (mut pipeline, mut rows) = match random.below(10) {
        0 | 1 if depth > 0 => union(random, tables, depth - 1),
        2 => {
            // Rows that are kept first.
            let key = SortKey { expr: Expr::Column(1), descending: false, nulls_first: false };
            let order = Order { keys: vec![key], skip: 0, fetch: None };
            let sorted = of(Source::Table(Arc::clone(&table.0) as _), Output::Sorted { rows: all_columns(), order });
            (of(Source::Gathered(Box::new(sorted)), Output::Rows(all_columns())), table.1.clone())
        }
        _ => (scan(table), table.1.clone()),
    };
    if random.chance(40) {
        let condition = exprs::simple_condition(random);
        rows.retain(|row| holds(&condition, row));
        pipeline.filter.push(condition);
    }
    if random.chance(25) {
        // Rows with a partner in a small table, by a step of their own.
        let (small, alive) = (&tables[0], &tables[0].1);
        let build = Box::new(Pipeline { output: Output::Rows(vec![Expr::Column(0)]), ..scan(small) });
        let keys = vec![Expr::Column(0)];
        let kind = if random.chance(50) { JoinKind::Semi } else { JoinKind::Anti };
        let has_partner = |row: &Vec<Scalar>| !row[0].is_null() && alive.iter().any(|other| other[0] == row[0]);
        rows.retain(|row| has_partner(row) == (kind == JoinKind::Semi));
        pipeline.steps.push(Step::Join(Join { kind, build, keys, nulls_are_equal: false, condition: None }));
    }
    (pipeline, rows)
}

fn union(random: &mut Random, tables: &[Table], depth: usize) -> (Pipeline, Vec<Vec<Scalar>>) {
    let inputs: Vec<_> = (0..1 + random.below(4)).map(|_| input(random, tables, depth)).collect();
    let (pipelines, rows): (Vec<Pipeline>, Vec<Vec<Vec<Scalar>>>) = inputs.into_iter().unzip();
    (of(Source::Union(pipelines), Output::Rows(all_columns())), rows.concat())
}

fn texts(rows: &[Vec<Scalar>]) -> Vec<String> {
    let mut texts: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    texts.sort_unstable();
    texts
}

fn tables(random: &mut Random, choices: &[Choice], style: usize) -> Vec<Table> {
    [random.below(30), *random.pick(&[0, 700, 3000]), *random.pick(&[1, 1100, 2048])]
        .map(|rows| {
            let (table, alive) = random_table(random, rows, style, choices);
            (Arc::new(table), alive)
        })
        .into()
}

#[test]
fn rows_of_all_inputs_come_once() {
    let (mut rows_seen, mut spilled) = (0, 0);
    for (index, choices) in choice_lists().iter().enumerate() {
        for seed in 0..4u64 {
            let seed = seed * 100 + index as u64;
            let mut random = Random(seed);
            let tables = tables(&mut random, choices, (seed % 3) as usize);
            for query in 0..10 {
                let (mut pipeline, mut rows) = union(&mut random, &tables, 2);
                if random.chance(50) {
                    let condition = exprs::simple_condition(&mut random);
                    rows.retain(|row| holds(&condition, row));
                    pipeline.filter.push(condition);
                }
                let context = || format!("seed {seed}, query {query}, {choices:?}\n{pipeline}");
                let threads = 1 + random.below(3);
                let (found, was_spilled) = match random.chance(50) {
                    true => rows_spilled(&pipeline, &exprs::types(), threads, &mut random),
                    false => (rows_of(pipeline.clone(), &exprs::types(), threads), false),
                };
                spilled += usize::from(was_spilled);
                let found = found.unwrap_or_else(|error| panic!("{error}\n{}", context()));
                assert!(texts(&found) == texts(&rows), "{} rows, not {}\n{}", found.len(), rows.len(), context());
                rows_seen += found.len();

                // All of them as one row of aggregates.
                let aggregates = aggregates::random_aggregates(&mut random, 3);
                let gathered = Pipeline { output: Output::Aggregate(aggregates.clone()), ..pipeline.clone() };
                let memory: Arc<dyn Memory> = Arc::new(Unlimited);
                let run = gathered.start().expect("ours");
                run.prepare(threads, &memory).expect("memory for all");
                match aggregates::results(&aggregates, &rows.iter().collect::<Vec<_>>()) {
                    Ok(wanted) => {
                        let found = run.aggregate(threads).unwrap_or_else(|error| panic!("{error}\n{}", context()));
                        let same = found.iter().zip(&wanted).all(|(found, wanted)| aggregates::close(found, wanted));
                        assert!(same, "{found:?} instead of {wanted:?}\n{aggregates:?}\n{}", context());
                    }
                    Err(_) => assert!(run.aggregate(threads).is_err(), "{aggregates:?}\n{}", context()),
                }
            }
        }
    }
    assert!(rows_seen > 100_000 && spilled > 20, "{rows_seen} rows, {spilled} times spilled");
}

#[test]
fn rows_that_met_nobody_come_after_the_last_input() -> Result<()> {
    for seed in 0..40u64 {
        let mut random = Random(seed);
        let tables = tables(&mut random, &choice_lists()[1], 0);
        let (mut pipeline, rows) = union(&mut random, &tables, 1);
        let others = &tables[1];
        let key = random.below(2);
        let build = Pipeline { output: Output::Rows(vec![Expr::Column(key), Expr::Column(1)]), ..scan(others) };
        let keys = vec![Expr::Column(key)];
        let join =
            Join { kind: JoinKind::RightAnti, build: Box::new(build), keys, nulls_are_equal: false, condition: None };
        pipeline.steps.push(Step::Join(join));
        pipeline.output = Output::Rows(vec![Expr::Column(exprs::types().len())]);
        let is_alone = |other: &&Vec<Scalar>| other[key].is_null() || !rows.iter().any(|row| row[key] == other[key]);
        let wanted: Vec<Vec<Scalar>> = others.1.iter().filter(is_alone).map(|other| vec![other[1].clone()]).collect();
        let found = rows_of(pipeline, &[LogicalType::Int64], 1 + random.below(3))?;
        assert!(texts(&found) == texts(&wanted), "seed {seed}: {} rows, not {}", found.len(), wanted.len());
    }
    Ok(())
}

#[test]
fn each_input_keeps_to_its_limit() -> Result<()> {
    for seed in 0..40u64 {
        let mut random = Random(seed);
        let tables = tables(&mut random, &choice_lists()[1], 0);
        let limited = |random: &mut Random, table: &Table| {
            let limit = *random.pick(&[0, 1, 500, 1024, 1500, 100_000]);
            (Pipeline { limit: Some(limit), ..scan(table) }, table.1.len().min(limit))
        };
        let inputs: Vec<_> = (0..4).map(|input| limited(&mut random, &tables[input % 3])).collect();
        let most = inputs.iter().map(|(_, rows)| rows).sum::<usize>();
        let pipelines = inputs.into_iter().map(|(pipeline, _)| pipeline).collect();
        let limit = random.chance(50).then(|| random.below(3000));
        let pipeline = Pipeline { limit, ..of(Source::Union(pipelines), Output::Rows(all_columns())) };
        let found = rows_of(pipeline, &exprs::types(), 1 + random.below(3))?;
        assert_eq!(found.len(), limit.map_or(most, |limit| most.min(limit)), "seed {seed}");
    }
    Ok(())
}
