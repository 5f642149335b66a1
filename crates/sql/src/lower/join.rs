//! Joins of DataFusion's plans as steps of a pipeline; those of which the order does not matter are in [`super::inner`].
//!
//! One side's pipeline goes on, and the other one becomes the build side, whose rows are kept in memory.

use super::expr::Scope;
use super::is_key;
use super::part::{KEPT_BY_A_CONDITION, Part};
use datafusion::common::{DFSchemaRef, JoinType, NullEquality};
use datafusion::logical_expr::{Expr as DfExpr, Join as DfJoin};
use sinter_exec::{Expr, JoinKind};

/// One input of a join.
struct Side<'a> {
    part: Part,
    schema: &'a DFSchemaRef,
    keys: Vec<Expr>,
}

/// The join of both parts; `None` where that is more than the engine can do.
pub(super) fn of(join: &DfJoin, left: Part, right: Part) -> Option<Part> {
    if join.on.is_empty() || join.null_aware {
        return None;
    }
    let (left_keys, right_keys): (Vec<_>, Vec<_>) = join.on.iter().map(|(left, right)| (left, right)).unzip();
    let left = side(left, join.left.schema(), &left_keys)?;
    let right = side(right, join.right.schema(), &right_keys)?;
    let same_types =
        left.keys.iter().zip(&right.keys).all(|(ours, other)| left.part.type_of(ours) == right.part.type_of(other));
    if !same_types {
        return None;
    }
    let (mut kind, mut probe, mut build, build_is_left) = match join.join_type {
        JoinType::Inner if left.part.rows_estimate() < right.part.rows_estimate() => {
            (JoinKind::Inner, right, left, true)
        }
        JoinType::Inner => (JoinKind::Inner, left, right, false),
        JoinType::Left => (JoinKind::Left, left, right, false),
        JoinType::Right => (JoinKind::Left, right, left, true),
        JoinType::LeftSemi => (JoinKind::Semi, left, right, false),
        JoinType::RightSemi => (JoinKind::Semi, right, left, true),
        JoinType::LeftAnti => (JoinKind::Anti, left, right, false),
        JoinType::RightAnti => (JoinKind::Anti, right, left, true),
        JoinType::Full | JoinType::LeftMark | JoinType::RightMark => return None,
    };
    // What is asked of the build side alone drops its rows before they are kept. For a left join, too: such a row is
    // nobody's partner.
    let rest = join.filter.as_ref();
    let rest = match rest {
        Some(condition) if concerns_only(condition, build.schema) => {
            let condition = Scope::new(build.schema, &build.part.output).lower(condition)?;
            build.part.add_filter(condition);
            None
        }
        // A row that has one partner at most passes with it or not at all.
        Some(_) if kind == JoinKind::Semi && build.part.is_unique_by(&build.keys) => {
            kind = JoinKind::Inner;
            rest
        }
        Some(_) if kind != JoinKind::Inner => return None,
        rest => rest,
    };
    let semi_output =
        matches!(join.join_type, JoinType::LeftSemi | JoinType::RightSemi).then(|| probe.part.output.clone());
    let first_payload = probe.part.column_count();
    let payload: Vec<Expr> = (0..build.part.output.len()).map(|column| Expr::Column(first_payload + column)).collect();
    let output = match (kind.has_payload(), build_is_left) {
        (false, _) => probe.part.output.clone(),
        (true, false) => [&probe.part.output[..], &payload].concat(),
        (true, true) => [&payload[..], &probe.part.output].concat(),
    };
    let nulls_are_equal = join.null_equality == NullEquality::NullEqualsNull;
    let rows = rows_estimate(kind, &probe, &build);
    probe.part.join(kind, build.part, (probe.keys, build.keys), nulls_are_equal);
    probe.part.expect(rows);
    probe.part.output = output;
    if let Some(condition) = rest {
        // That of a semi join knows one side alone.
        let schema = join.left.schema().join(join.right.schema()).ok()?;
        let condition = Scope::new(&schema, &probe.part.output).lower(condition)?;
        probe.part.add_filter(condition);
    }
    if let Some(output) = semi_output {
        probe.part.output = output;
    }
    Some(probe.part)
}

fn side<'a>(part: Part, schema: &'a DFSchemaRef, keys: &[&DfExpr]) -> Option<Side<'a>> {
    let scope = Scope::new(schema, &part.output);
    if !part.can_be_joined() || !keys.iter().all(|key| is_key(key, &scope)) {
        return None;
    }
    let keys = keys.iter().map(|key| scope.lower(key)).collect::<Option<Vec<_>>>()?;
    Some(Side { part, schema, keys })
}

/// Whether a condition reads columns of this input, and of no other.
fn concerns_only(condition: &DfExpr, schema: &DFSchemaRef) -> bool {
    condition.column_refs().iter().all(|column| schema.maybe_index_of_column(column).is_some())
}

/// About how many rows come out, if all keys of the side that knows fewer are among those of the other one.
fn rows_estimate(kind: JoinKind, probe: &Side<'_>, build: &Side<'_>) -> f64 {
    let ours = probe.part.distinct_estimate(&probe.keys);
    let theirs = build.part.distinct_estimate(&build.keys);
    let rows = probe.part.rows_estimate();
    let pairs = rows * build.part.rows_estimate() / ours.max(theirs);
    let with_partner = rows * (theirs / ours).min(1.0);
    match kind {
        JoinKind::Inner => pairs,
        JoinKind::Left => pairs.max(rows),
        JoinKind::Single => rows,
        JoinKind::Semi => with_partner,
        JoinKind::Anti => (rows - with_partner).max(rows * KEPT_BY_A_CONDITION),
    }
}
