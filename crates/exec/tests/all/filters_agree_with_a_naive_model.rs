//! Random filters over random tables, in every scheme, with deletes, groups and threads, against a model that looks at
//! one row at a time.

use crate::support::random::Random;
use crate::support::{choice_lists, exprs, model, random_table, rows_of};
use sinter_codec::Scalar;
use sinter_exec::{Expr, Output, Pipeline, ScanColumn};
use std::sync::Arc;

fn check(seed: u64, choices: &[sinter_codec::Choice], depth: usize) {
    let mut random = Random(seed);
    let rows = *random.pick(&[0, 1, 900, 2500, 4000]);
    let (table, alive) = random_table(&mut random, rows, (seed % 3) as usize, choices);
    let table = Arc::new(table);
    let types = exprs::types();
    for query in 0..8 {
        let filter: Vec<Expr> = (0..random.below(4)).map(|_| exprs::condition(&mut random, depth)).collect();
        let expected: Result<Vec<_>, String> = alive
            .iter()
            .filter_map(|row| {
                for part in &filter {
                    match model::evaluate(part, row, &types) {
                        Ok(Scalar::Int(1)) => {}
                        Ok(_) => return None,
                        Err(error) => return Some(Err(error)),
                    }
                }
                Some(Ok(row.clone()))
            })
            .collect();
        let pipeline = Pipeline {
            source: sinter_exec::Source::Table(table.clone()),
            columns: (0..types.len()).map(ScanColumn::Table).collect(),
            filter: filter.clone(),
            output: Output::Rows((0..types.len()).map(Expr::Column).collect()),
            steps: Vec::new(),
            limit: None,
            on_damage: Default::default(),
        };
        let threads = 1 + random.below(3);
        let found = rows_of(pipeline, &types, threads);
        let context = || format!("seed {seed}, query {query}, {threads} threads, {choices:?}\n{filter:#?}");
        match (found, expected) {
            (Ok(mut found), Ok(mut expected)) => {
                assert_eq!(found.len(), expected.len(), "{}", context());
                if threads > 1 {
                    found.sort_by_cached_key(|row| format!("{row:?}"));
                    expected.sort_by_cached_key(|row| format!("{row:?}"));
                }
                for (found, expected) in found.iter().zip(&expected) {
                    let same = found.iter().zip(expected).all(|(found, expected)| model::same(found, expected));
                    assert!(same, "{found:?}\n{expected:?}\n{}", context());
                }
            }
            // Parts of a filter are evaluated in another order than the model's, so errors may differ.
            (Err(_), Err(_)) => {}
            (Err(error), Ok(_)) => {
                let may_fail = filter.iter().any(|part| format!("{part:?}").contains("Arithmetic"))
                    || format!("{filter:?}").contains("Cast");
                assert!(may_fail, "{error}\n{}", context());
            }
            (Ok(_), Err(_)) => {}
        }
    }
}

#[test]
fn on_the_encoded_form_in_every_scheme() {
    for (index, choices) in choice_lists().iter().enumerate() {
        for seed in 0..4 {
            check(seed * 100 + index as u64, choices, 0);
        }
    }
}

#[test]
fn of_any_shape() {
    for (index, choices) in choice_lists().iter().enumerate() {
        for seed in 0..3 {
            check(10_000 + seed * 100 + index as u64, choices, 1 + (seed % 3) as usize);
        }
    }
}
