//! Random aggregates, with and without filters, against sums and extremes taken row by row.

mod support;

use sinter_codec::Scalar;
use sinter_exec::{Aggregate, AggregateFunction, Expr, LogicalType, Output, Pipeline, ScanColumn};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use support::random::Random;
use support::{choice_lists, exprs, model, random_table};

fn result_type(function: AggregateFunction, argument: &LogicalType) -> LogicalType {
    match (function, argument) {
        (AggregateFunction::CountStar | AggregateFunction::Count, _) => LogicalType::Int64,
        (AggregateFunction::Min | AggregateFunction::Max, ty) => ty.clone(),
        (AggregateFunction::Sum, LogicalType::Decimal { precision, scale }) => {
            LogicalType::Decimal { precision: (precision + 10).min(38), scale: *scale }
        }
        (AggregateFunction::Average, LogicalType::Decimal { precision, scale }) => {
            LogicalType::Decimal { precision: (precision + 4).min(38), scale: scale + 4 }
        }
        (AggregateFunction::Sum, LogicalType::UInt8) => LogicalType::UInt64,
        (AggregateFunction::Sum, LogicalType::Int32 | LogicalType::Int64) => LogicalType::Int64,
        _ => LogicalType::Float64,
    }
}

/// The result over the argument's values; floats are summed in order, so they may differ in the last digits.
fn expected(
    aggregate: &Aggregate,
    argument_type: &LogicalType,
    values: &[Scalar],
    rows: usize,
) -> Result<Scalar, String> {
    let present: Vec<&Scalar> = values.iter().filter(|value| !value.is_null()).collect();
    let int = |value: &&Scalar| if let Scalar::Int(value) = value { *value } else { 0 };
    let float = |value: &&Scalar| if let Scalar::Float(value) = value { *value } else { 0.0 };
    let is_float = matches!(argument_type, LogicalType::Float32 | LogicalType::Float64);
    let limit = match &aggregate.ty {
        LogicalType::Decimal { precision, .. } => 10i128.pow((*precision).into()) - 1,
        LogicalType::UInt64 => u64::MAX.into(),
        _ => i64::MAX.into(),
    };
    let fit = |value: i128| {
        if value <= limit && value >= -limit - 1 { Ok(Scalar::Int(value)) } else { Err("sum".to_owned()) }
    };
    Ok(match aggregate.function {
        AggregateFunction::CountStar => Scalar::Int(rows as i128),
        AggregateFunction::Count => Scalar::Int(present.len() as i128),
        _ if present.is_empty() => Scalar::Null,
        AggregateFunction::Sum if is_float => Scalar::Float(present.iter().map(float).sum()),
        AggregateFunction::Sum => fit(present.iter().map(int).sum())?,
        AggregateFunction::Average if is_float => {
            Scalar::Float(present.iter().map(float).sum::<f64>() / present.len() as f64)
        }
        AggregateFunction::Average if aggregate.ty == LogicalType::Float64 => {
            Scalar::Float(present.iter().map(int).sum::<i128>() as f64 / present.len() as f64)
        }
        AggregateFunction::Average => {
            let sum = present.iter().map(int).sum::<i128>().checked_mul(10_000).ok_or("too long")?;
            fit(sum / present.len() as i128)?
        }
        AggregateFunction::Min => (*present.iter().min_by(|a, b| model::order(a, b)).unwrap()).clone(),
        AggregateFunction::Max => (*present.iter().max_by(|a, b| model::order(a, b)).unwrap()).clone(),
    })
}

fn close(found: &Scalar, expected: &Scalar) -> bool {
    match (found, expected) {
        (Scalar::Float(found), Scalar::Float(expected)) if found.is_finite() && expected.is_finite() => {
            (found - expected).abs() <= 1e-9 * (1.0 + expected.abs())
        }
        (found, expected) => model::same(found, expected),
    }
}

#[test]
fn all_functions_all_schemes() {
    use AggregateFunction::*;
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
                let aggregates: Vec<Aggregate> = (0..1 + random.below(4))
                    .map(|_| {
                        let column = random.below(types.len());
                        let summable = ![3, 4, 8, 9].contains(&column);
                        let functions = [CountStar, Count, Min, Max, Sum, Average];
                        let function = *random.pick(if summable { &functions[..] } else { &functions[..4] });
                        let argument = if function != CountStar && random.chance(15) && summable {
                            // Something computed, which cannot fail.
                            let (left, ty) = (Box::new(Expr::Column(column)), types[column].clone());
                            let half = Box::new(Expr::Literal(Scalar::Null, ty.clone()));
                            Expr::Case {
                                branches: vec![(exprs::simple_condition(&mut random), *left)],
                                otherwise: Some(half),
                                ty,
                            }
                        } else {
                            Expr::Column(column)
                        };
                        let ty = result_type(function, &types[column]);
                        let argument = (function != CountStar).then_some(argument);
                        let filter = random.chance(20).then(|| exprs::simple_condition(&mut random));
                        Aggregate { function, argument, filter, ty }
                    })
                    .collect();
                let holds = |part: &Expr, row: &[Scalar]| model::evaluate(part, row, &types) == Ok(Scalar::Int(1));
                let passing: Vec<_> = alive.iter().filter(|row| filter.iter().all(|part| holds(part, row))).collect();
                let expected: Result<Vec<Scalar>, String> = aggregates
                    .iter()
                    .map(|aggregate| {
                        let counted: Vec<_> = passing
                            .iter()
                            .filter(|row| aggregate.filter.as_ref().is_none_or(|filter| holds(filter, row)))
                            .collect();
                        let argument = aggregate.argument.clone().unwrap_or(Expr::Column(0));
                        let values: Vec<Scalar> = counted
                            .iter()
                            .map(|row| model::evaluate(&argument, row, &types).expect("it cannot fail"))
                            .collect();
                        expected(aggregate, &model::type_of(&argument, &types), &values, counted.len())
                    })
                    .collect();
                let pipeline = Pipeline {
                    source: table.clone(),
                    columns: (0..types.len()).map(ScanColumn::Table).collect(),
                    filter: filter.clone(),
                    output: Output::Aggregate(aggregates.clone()),
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
