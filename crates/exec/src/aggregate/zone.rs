//! Aggregates of a whole row group from its statistics.

use super::accumulator::Accumulator;
use super::plan::{AggregatePlan, Part};
use crate::{AggregateFunction, TableSource};
use sinter_codec::{BlockStats, Scalar};

/// Adds a group of which every row passes, if statistics can answer for all aggregates; false, with nothing added,
/// where they cannot.
pub(super) fn add_group(
    plan: &AggregatePlan,
    source: &dyn TableSource,
    group: usize,
    rows: usize,
    accumulators: &mut [Accumulator],
) -> bool {
    if !answers_group(plan, source, group) {
        return false;
    }
    let mut looked_into: Vec<(usize, BlockStats)> = Vec::new();
    let mut added = accumulators.to_vec();
    for (part, accumulator) in plan.parts.iter().zip(&mut added) {
        let column = part.table_column(plan);
        let known = column.and_then(|column| source.zone(group, column)).filter(|stats| answers(part, stats));
        let stats = match (column, known) {
            (Some(column), None) if !part.is_row_count() => {
                if !looked_into.iter().any(|(known, _)| *known == column) {
                    let Some(stats) = source.look_into(group, column) else { return false };
                    looked_into.push((column, stats));
                }
                looked_into.iter().find(|(known, _)| *known == column).map(|(_, stats)| stats)
            }
            _ => known,
        };
        match (accumulator, stats) {
            (Accumulator::Count(count), None) => *count += rows as u64,
            (Accumulator::Count(count), Some(stats)) => *count += present(stats),
            (Accumulator::Sum(sum), Some(stats)) if answers(part, stats) => {
                if sum.add_known(stats.sum.unwrap_or(0), present(stats)).is_err() {
                    return false;
                }
            }
            (Accumulator::Extreme(extreme), Some(stats)) if answers(part, stats) => {
                extreme.offer(extreme_of(part, stats));
            }
            _ => return false,
        }
    }
    accumulators.clone_from_slice(&added);
    true
}

/// Whether statistics of a group can answer for all aggregates, but for sums that may overflow.
pub(super) fn answers_group(plan: &AggregatePlan, source: &dyn TableSource, group: usize) -> bool {
    let answers = |part: &Part| {
        part.is_row_count()
            || part.table_column(plan).is_some_and(|column| {
                source.zone(group, column).is_some_and(|stats| answers(part, stats))
                    || (is_answerable(part) && source.looks_into(column).is_some())
            })
    };
    plan.parts.iter().all(answers)
}

/// Whether there are statistics that would answer.
fn is_answerable(part: &Part) -> bool {
    match part.function {
        AggregateFunction::CountStar | AggregateFunction::Count => !part.counts_true,
        AggregateFunction::Sum | AggregateFunction::Average => crate::expr::digits(&part.argument_type).is_some(),
        AggregateFunction::Min | AggregateFunction::Max => true,
        _ => false,
    }
}

fn present(stats: &BlockStats) -> u64 {
    (stats.value_count - stats.null_count) as u64
}

fn answers(part: &Part, stats: &BlockStats) -> bool {
    let empty = stats.null_count == stats.value_count;
    is_answerable(part)
        && match part.function {
            AggregateFunction::Sum | AggregateFunction::Average => empty || stats.sum.is_some(),
            AggregateFunction::Min | AggregateFunction::Max => {
                empty || (stats.bounds_exact && !extreme_of(part, stats).is_null())
            }
            _ => true,
        }
}

/// NaN is greater than all that `max` knows of.
fn extreme_of(part: &Part, stats: &BlockStats) -> Scalar {
    match part.function {
        AggregateFunction::Max if stats.has_nan => Scalar::Float(f64::NAN),
        AggregateFunction::Max => stats.max.clone(),
        _ if stats.min.is_null() && stats.has_nan => Scalar::Float(f64::NAN),
        _ => stats.min.clone(),
    }
}
