//! Random aggregates, with and without filters, against sums and extremes taken row by row.

use crate::support::aggregates::{close, holds, random_aggregates, results};
use crate::support::random::Random;
use crate::support::{choice_lists, exprs, random_table};
use sinter_exec::{Expr, Output, Pipeline, ScanColumn};
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[test]
fn all_functions_all_schemes() {
    let mut answered = 0;
    for (index, choices) in choice_lists().iter().enumerate() {
        for seed in 0..6u64 {
            let seed = seed * 100 + index as u64;
            let mut random = Random(seed);
            let rows = *random.pick(&[0, 1, 700, 2500, 9000]);
            let (table, alive) = random_table(&mut random, rows, (seed % 3) as usize, choices);
            let table = Arc::new(table);
            let types = exprs::types();
            for query in 0..16 {
                let filter: Vec<Expr> = match random.below(3) {
                    0 => Vec::new(),
                    _ => (0..1 + random.below(2)).map(|_| exprs::simple_condition(&mut random)).collect(),
                };
                let count = 1 + random.below(4);
                let aggregates = random_aggregates(&mut random, count);
                let passing = alive.iter().filter(|row| filter.iter().all(|part| holds(part, row)));
                let expected = results(&aggregates, &passing.collect::<Vec<_>>());
                let pipeline = Pipeline {
                    source: sinter_exec::Source::Table(table.clone()),
                    columns: (0..types.len()).map(ScanColumn::Table).collect(),
                    filter: filter.clone(),
                    output: Output::Aggregate(aggregates.clone()),
                    steps: Vec::new(),
                    limit: None,
                    on_damage: Default::default(),
                };
                let run = pipeline.start().expect("all of it is ours");
                let found = run.aggregate(1 + random.below(3));
                answered += run.counters.groups_answered.load(Ordering::Relaxed);
                let context = || format!("seed {seed}, query {query}, {choices:?}\n{filter:?}\n{aggregates:#?}");
                match (found, expected) {
                    (Ok(found), Ok(expected)) => {
                        let same = found.iter().zip(&expected).all(|(found, expected)| close(found, expected));
                        assert!(same, "{found:?}\n{expected:?}\n{}", context());
                    }
                    (Err(_), Err(_)) => {}
                    (found, expected) => panic!("{found:?}\n{expected:?}\n{}", context()),
                }
            }
        }
    }
    assert!(answered > 100, "only {answered} groups were answered by their statistics");
}
