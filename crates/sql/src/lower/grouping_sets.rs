//! GROUPING SETS, ROLLUP and CUBE: the groups of each set, one set after the other.
//!
//! What is below is computed once for each set, so it has to be the same rows each time, and not too many scans.

use super::expr::Scope;
use super::part::Part;
use super::{aggregate, group_key};
use arrow::datatypes::Fields;
use datafusion::logical_expr::{Expr as DfExpr, GroupingSet};
use sinter_codec::Scalar;
use sinter_exec::{Aggregate, Expr, Output, edge};
use std::collections::BTreeMap;

/// With more sets than these, one pass that keeps all groups is better.
const SETS_MAX: usize = 16;

/// With more scans than these in all sets, too: sets within sets multiply.
const SCANS_MAX: usize = 64;

/// The rows that all sets make of a part: the keys, NULL where they are not of the set, the number that DataFusion gives
/// the set, and the aggregates. `None` where it is not ours.
pub(super) fn lower(
    part: &Part,
    sets: &GroupingSet,
    aggregates: &[Aggregate],
    fields: &Fields,
    scope: &Scope<'_>,
) -> Option<Part> {
    let keys = sets.distinct_expr();
    let lists = lists(sets)?;
    let is_cheap = lists.len() * part.scan_count() <= SCANS_MAX;
    if !is_cheap || !part.as_pipeline(Output::Rows(Vec::new())).is_repeatable() {
        return None;
    }
    let number_type = edge::logical_type(fields.get(keys.len())?.data_type())?;
    let key_types = keys.iter().map(|key| scope.type_of(key)).collect::<Option<Vec<_>>>()?;
    // A set that is there more than once is told apart by the bits beyond those of the keys.
    let mut times: BTreeMap<Vec<bool>, u32> = BTreeMap::new();
    let mut parts = Vec::with_capacity(lists.len());
    for list in lists {
        let is_in: Vec<bool> = keys.iter().map(|key| list.contains(key)).collect();
        let time = times.entry(is_in.clone()).or_default();
        let absent = is_in.iter().fold(0, |bits, is_in| bits << 1 | i128::from(!is_in));
        let number = absent | i128::from(*time) << keys.len();
        *time += 1;
        let present = keys.iter().zip(&is_in).filter(|(_, is_in)| **is_in);
        let present = present.map(|(key, _)| group_key(key, scope)).collect::<Option<Vec<_>>>()?;
        let present_count = present.len();
        let aggregates = aggregates.to_vec();
        let mut groups = Part::of_gathered(part.clone(), aggregate::output(present, aggregates));
        let mut columns = (0..present_count).map(Expr::Column);
        let key = |(is_in, ty): (&bool, &_)| match is_in {
            true => columns.next(),
            false => Some(Expr::Literal(Scalar::Null, Clone::clone(ty))),
        };
        let mut output: Vec<Expr> = is_in.iter().zip(&key_types).map(key).collect::<Option<_>>()?;
        output.push(Expr::Literal(Scalar::Int(number), number_type.clone()));
        output.extend((present_count..groups.column_count()).map(Expr::Column));
        groups.output = output;
        parts.push(groups);
    }
    Part::of_union(parts)
}

/// The keys of each set; `None` for too many.
fn lists(sets: &GroupingSet) -> Option<Vec<Vec<&DfExpr>>> {
    Some(match sets {
        GroupingSet::Rollup(keys) if keys.len() < SETS_MAX => {
            (0..=keys.len()).rev().map(|count| keys[..count].iter().collect()).collect()
        }
        GroupingSet::Cube(keys) if keys.len() <= SETS_MAX.ilog2() as usize => {
            let of_bits = |bits: usize| keys.iter().enumerate().filter(move |(key, _)| bits >> key & 1 == 1);
            (0..1 << keys.len()).map(|bits| of_bits(bits).map(|(_, key)| key).collect()).collect()
        }
        GroupingSet::GroupingSets(sets) if sets.len() <= SETS_MAX => {
            sets.iter().map(|keys| keys.iter().collect()).collect()
        }
        _ => return None,
    })
}
