//! GROUPING SETS, ROLLUP and CUBE: the groups of all sets in one pass over the rows.

use super::expr::Scope;
use super::group_key;
use super::part::Part;
use arrow::datatypes::Fields;
use datafusion::logical_expr::{Expr as DfExpr, GroupingSet as DfGroupingSet};
use sinter_exec::{Aggregate, GroupingSet, Output, edge};
use std::collections::BTreeMap;

/// With more sets than these, each row is looked up too often.
const SETS_MAX: usize = 128;

/// With more keys, DataFusion has no number for a set of them.
const KEYS_MAX: usize = 64;

/// The rows that all sets make of a part: the keys, NULL where they are not of the set, the number that DataFusion gives
/// the set, and the aggregates. `None` where it is not ours.
///
/// What is below has to be the same rows each time, though one pass is enough: sets that do not fit the memory together
/// take more.
pub(super) fn lower(
    part: &Part,
    sets: &DfGroupingSet,
    aggregates: Vec<Aggregate>,
    fields: &Fields,
    scope: &Scope<'_>,
) -> Option<Part> {
    let keys = sets.distinct_expr();
    let lists = lists(sets, &keys)?;
    if keys.len() > KEYS_MAX || !part.as_pipeline(Output::Rows(Vec::new())).has_repeatable_rows() {
        return None;
    }
    let number_type = edge::logical_type(fields.get(keys.len())?.data_type())?;
    let number_bits = 8 * number_type.physical()?.value_bytes()? as u32;
    // A set that is there more than once is told apart by the bits beyond those of the keys.
    let mut times: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
    let set = |own: Vec<usize>| {
        let time = times.entry(own.clone()).or_default();
        let absent = (0..keys.len()).fold(0, |bits, key| bits << 1 | i128::from(!own.contains(&key)));
        let number = absent | i128::from(*time) << keys.len();
        *time += 1;
        (number < 1 << number_bits).then_some(GroupingSet { keys: own, number })
    };
    let sets = lists.into_iter().map(set).collect::<Option<Vec<_>>>()?;
    let keys = keys.iter().map(|key| group_key(key, scope)).collect::<Option<Vec<_>>>()?;
    Some(Part::of_gathered(part.clone(), Output::GroupingSets { keys, sets, number_type, aggregates }))
}

/// Which keys each set has, ascending; `None` for too many sets.
fn lists(sets: &DfGroupingSet, keys: &[&DfExpr]) -> Option<Vec<Vec<usize>>> {
    let count = keys.len();
    Some(match sets {
        DfGroupingSet::Rollup(_) if count < SETS_MAX => (0..=count).rev().map(|len| (0..len).collect()).collect(),
        DfGroupingSet::Cube(_) if count <= SETS_MAX.ilog2() as usize => {
            (0..1usize << count).map(|bits| (0..count).filter(|key| bits >> key & 1 == 1).collect()).collect()
        }
        DfGroupingSet::GroupingSets(sets) if sets.len() <= SETS_MAX => {
            let of_list = |list: &Vec<DfExpr>| (0..count).filter(|&key| list.contains(keys[key])).collect();
            sets.iter().map(of_list).collect()
        }
        _ => return None,
    })
}
