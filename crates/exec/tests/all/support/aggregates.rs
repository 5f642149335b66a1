//! Random aggregates, and what a naive model makes of them.

use super::exprs;
use super::model;
use super::random::Random;
use sinter_codec::Scalar;
use sinter_exec::{Aggregate, AggregateFunction, Expr, LogicalType};

fn result_type(function: &AggregateFunction, argument: &LogicalType) -> LogicalType {
    match (function, argument) {
        (AggregateFunction::CountStar | AggregateFunction::Count, _) => LogicalType::Int64,
        (AggregateFunction::Min | AggregateFunction::Max, ty) => ty.clone(),
        (AggregateFunction::Distinct(function), ty) => result_type(function, ty),
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
    let is_float = argument_type.is_float();
    let limit = match &aggregate.ty {
        LogicalType::Decimal { precision, .. } => 10i128.pow((*precision).into()) - 1,
        LogicalType::UInt64 => u64::MAX.into(),
        _ => i64::MAX.into(),
    };
    let fit = |value: i128| {
        if value <= limit && value >= -limit - 1 { Ok(Scalar::Int(value)) } else { Err("sum".to_owned()) }
    };
    Ok(match &aggregate.function {
        AggregateFunction::Distinct(function) => {
            let mut different: Vec<Scalar> = present.into_iter().cloned().collect();
            different.sort_by(model::order);
            different.dedup_by(|a, b| model::order(a, b).is_eq());
            let aggregate = Aggregate { function: (**function).clone(), ..aggregate.clone() };
            expected(&aggregate, argument_type, &different, different.len())?
        }
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
        AggregateFunction::Variance { of_sample } | AggregateFunction::Deviation { of_sample } => {
            let unit = match argument_type {
                LogicalType::Decimal { scale, .. } => 10f64.powi((*scale).into()),
                _ => 1.0,
            };
            let absolute = |value: &&Scalar| if is_float { float(value) } else { int(value) as f64 / unit };
            // By its distance from the first: of large values that are nearly the same, squares would lose the difference.
            let first = absolute(&present[0]);
            let number = |value: &&Scalar| absolute(value) - first;
            let mean = present.iter().map(number).sum::<f64>() / present.len() as f64;
            let squares: f64 = present.iter().map(|value| (number(value) - mean).powi(2)).sum();
            let divisor = present.len() - usize::from(*of_sample);
            let variance = squares / divisor as f64;
            match aggregate.function {
                _ if divisor == 0 => Scalar::Null,
                AggregateFunction::Deviation { .. } => Scalar::Float(variance.sqrt()),
                _ => Scalar::Float(variance),
            }
        }
        AggregateFunction::Foreign(_) => return Err("foreign".to_owned()),
        AggregateFunction::Min => (*present.iter().min_by(|a, b| model::order(a, b)).unwrap()).clone(),
        AggregateFunction::Max => (*present.iter().max_by(|a, b| model::order(a, b)).unwrap()).clone(),
    })
}

pub(crate) fn close(found: &Scalar, expected: &Scalar) -> bool {
    match (found, expected) {
        (Scalar::Float(found), Scalar::Float(expected)) if found.is_finite() && expected.is_finite() => {
            (found - expected).abs() <= 1e-9 * (1.0 + expected.abs())
        }
        (found, expected) => model::same(found, expected),
    }
}

/// So many aggregates over [`exprs::types`], none of which can fail but by its result's size.
pub(crate) fn random_aggregates(random: &mut Random, count: usize) -> Vec<Aggregate> {
    (0..count).map(|_| aggregate(random)).collect()
}

/// The same, some of them of different values.
pub(crate) fn random_aggregates_of_groups(random: &mut Random, count: usize) -> Vec<Aggregate> {
    let mut aggregates = random_aggregates(random, count);
    for aggregate in &mut aggregates {
        let function = aggregate.function.clone();
        if matches!(function, AggregateFunction::Count | AggregateFunction::Sum | AggregateFunction::Average)
            && random.chance(40)
        {
            aggregate.function = AggregateFunction::Distinct(Box::new(function));
        }
    }
    aggregates
}

fn aggregate(random: &mut Random) -> Aggregate {
    use AggregateFunction::{Average, Count, CountStar, Deviation, Max, Min, Sum, Variance};
    let types = exprs::types();
    let column = random.below(types.len());
    let summable = ![3, 4, 8, 9].contains(&column);
    let of_sample = random.chance(50);
    let functions = [CountStar, Count, Min, Max, Sum, Average, Variance { of_sample }, Deviation { of_sample }];
    let function = random.pick(if summable { &functions[..] } else { &functions[..4] }).clone();
    let argument = if function != CountStar && random.chance(15) && summable {
        // Something computed, which cannot fail.
        let (left, ty) = (Expr::Column(column), types[column].clone());
        let nothing = Box::new(Expr::Literal(Scalar::Null, ty.clone()));
        Expr::Case { branches: vec![(exprs::simple_condition(random), left)], otherwise: Some(nothing), ty }
    } else {
        Expr::Column(column)
    };
    let ty = result_type(&function, &types[column]);
    let argument = (function != CountStar).then_some(argument);
    let filter = random.chance(20).then(|| exprs::simple_condition(random));
    Aggregate { function, argument, filter, ty }
}

/// The results over these rows, in order.
pub(crate) fn results(aggregates: &[Aggregate], rows: &[&Vec<Scalar>]) -> Result<Vec<Scalar>, String> {
    let types = exprs::types();
    let result = |aggregate: &Aggregate| {
        let filter = aggregate.filter.as_ref();
        let counts = |row: &&&Vec<Scalar>| filter.is_none_or(|filter| holds(filter, row));
        let counted: Vec<_> = rows.iter().filter(counts).collect();
        let argument = aggregate.argument.clone().unwrap_or(Expr::Column(0));
        let value = |row: &&&Vec<Scalar>| model::evaluate(&argument, row, &types).expect("it cannot fail");
        let values: Vec<Scalar> = counted.iter().map(value).collect();
        expected(aggregate, &model::type_of(&argument, &types), &values, counted.len())
    };
    aggregates.iter().map(result).collect()
}

/// Whether a condition is true of a row.
pub(crate) fn holds(condition: &Expr, row: &[Scalar]) -> bool {
    model::evaluate(condition, row, &exprs::types()) == Ok(Scalar::Int(1))
}
