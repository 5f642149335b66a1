//! Random expressions over random tables against a model that looks at one row at a time. Where the model fails on a row
//! that passes, the engine must fail, and only there.

use crate::support::random::Random;
use crate::support::{choice_lists, exprs, model, random_table, rows_of};
use sinter_codec::Scalar;
use sinter_exec::{Expr, LogicalType, Output, Pipeline, ScanColumn};
use std::sync::Arc;

#[test]
fn all_types_all_schemes() {
    let (mut computed, mut failed) = (0, 0);
    for (index, choices) in choice_lists().iter().enumerate() {
        for seed in 0..8u64 {
            let seed = seed * 100 + index as u64;
            let mut random = Random(seed);
            let rows = *random.pick(&[1, 300, 2500]);
            let style = usize::from(random.chance(30)) * 2;
            let (table, alive) = random_table(&mut random, rows, style, choices);
            let table = Arc::new(table);
            let types = exprs::types();
            for query in 0..12 {
                let filter = if random.chance(40) { vec![exprs::simple_condition(&mut random)] } else { Vec::new() };
                let passes = |row: &&Vec<Scalar>| {
                    filter.iter().all(|part| model::evaluate(part, row, &types) == Ok(Scalar::Int(1)))
                };
                let outputs: Vec<Expr> = (0..1 + random.below(3))
                    .map(|_| {
                        let ty = random.pick(&types).clone();
                        exprs::value(&mut random, &ty, 3)
                    })
                    .collect();
                let expected: Result<Vec<Vec<Scalar>>, String> = alive
                    .iter()
                    .filter(passes)
                    .map(|row| outputs.iter().map(|output| model::evaluate(output, row, &types)).collect())
                    .collect();
                let output_types: Vec<LogicalType> =
                    outputs.iter().map(|output| model::type_of(output, &types)).collect();
                let pipeline = Pipeline {
                    source: sinter_exec::Source::Table(table.clone()),
                    columns: (0..types.len()).map(ScanColumn::Table).collect(),
                    filter: filter.clone(),
                    output: Output::Rows(outputs.clone()),
                    steps: Vec::new(),
                    limit: None,
                    on_damage: Default::default(),
                };
                assert_eq!(outputs.iter().map(|output| pipeline.type_of(output)).collect::<Vec<_>>(), output_types);
                let found = rows_of(pipeline, &output_types, 1);
                let context = || format!("seed {seed}, query {query}, {choices:?}\n{outputs:#?}");
                match (found, expected) {
                    (Ok(found), Ok(expected)) => {
                        computed += 1;
                        assert_eq!(found.len(), expected.len(), "{}", context());
                        for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
                            let same = found.iter().zip(expected).all(|(found, expected)| model::same(found, expected));
                            assert!(same, "row {number}\n{found:?}\n{expected:?}\n{}", context());
                        }
                    }
                    (Err(_), Err(_)) => failed += 1,
                    (Ok(_), Err(error)) => panic!("the engine did not notice: {error}\n{}", context()),
                    (Err(error), Ok(_)) => panic!("the engine failed: {error}\n{}", context()),
                }
            }
        }
    }
    println!("{computed} queries agreed, {failed} failed as they should");
    assert!(computed > 3 * failed && failed > 20, "{computed} computed, {failed} failed: the mix is wrong");
}
