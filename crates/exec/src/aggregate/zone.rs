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
    let stats = |part: &Part| part.table_column(plan).and_then(|column| source.zone(group, column));
    let answers = |part: &Part| part.is_row_count() || stats(part).is_some_and(|stats| answers(part, stats));
    if !plan.parts.iter().all(answers) {
        return false;
    }
    let mut added = accumulators.to_vec();
    for (part, accumulator) in plan.parts.iter().zip(&mut added) {
        match (accumulator, stats(part)) {
            (Accumulator::Count(count), None) => *count += rows as u64,
            (Accumulator::Count(count), Some(stats)) => *count += present(stats),
            (Accumulator::Sum(sum), Some(stats)) => {
                if sum.add_known(stats.sum.unwrap_or(0), present(stats)).is_err() {
                    return false;
                }
            }
            (Accumulator::Extreme(extreme), Some(stats)) => extreme.offer(extreme_of(part, stats)),
            _ => return false,
        }
    }
    accumulators.clone_from_slice(&added);
    true
}

fn present(stats: &BlockStats) -> u64 {
    (stats.value_count - stats.null_count) as u64
}

fn answers(part: &Part, stats: &BlockStats) -> bool {
    let empty = stats.null_count == stats.value_count;
    match part.function {
        AggregateFunction::CountStar | AggregateFunction::Count => !part.counts_true,
        AggregateFunction::Sum | AggregateFunction::Average => {
            let exact = crate::expr::digits(&part.argument_type).is_some();
            exact && (empty || stats.sum.is_some())
        }
        AggregateFunction::Min | AggregateFunction::Max => {
            empty || (stats.bounds_exact && !extreme_of(part, stats).is_null())
        }
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
