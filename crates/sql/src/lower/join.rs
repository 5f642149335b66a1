//! Joins of DataFusion's plans as steps of a pipeline; those of which the order does not matter are in [`super::inner`].
//!
//! One side's pipeline goes on, and the other one becomes the build side, whose rows are kept in memory. Either side can
//! be kept, whichever of them has rows that come out without a partner; the one is kept that seems to cost less.

use super::expr::Scope;
use super::is_key;
use super::join_order::{KEPT, looked_up};
use super::part::{How, KEPT_BY_A_CONDITION, Part};
use datafusion::common::{DFSchemaRef, JoinType, NullEquality};
use datafusion::logical_expr::{Expr as DfExpr, Join as DfJoin};
use sinter_codec::Scalar;
use sinter_exec::{Expr, JoinKind, LogicalType};

/// What a key costs of which only is asked whether it is there, in nanoseconds.
const KEY_KEPT: f64 = 2.0;

/// One input of a join.
struct Side<'a> {
    part: Part,
    schema: &'a DFSchemaRef,
    keys: Vec<Expr>,
}

/// The join of both parts; `None` where that is more than the engine can do.
pub(super) fn of(join: &DfJoin, left: Part, right: Part) -> Option<Part> {
    let (left_keys, right_keys): (Vec<_>, Vec<_>) = join.on.iter().map(|(left, right)| (left, right)).unzip();
    let left = side(left, join.left.schema(), &left_keys)?;
    let right = side(right, join.right.schema(), &right_keys)?;
    of_sides(join, left, right)
}

/// The semi or anti join of one input of inner joins, by keys that are columns of that input, in place of the same join
/// of all of them; `None` where it is none.
pub(super) fn of_input(join: &DfJoin, input: Part, keys: Vec<Expr>, right: Part) -> Option<Part> {
    let is_reduction = matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti) && !join.null_aware;
    if !is_reduction || join.filter.is_some() {
        return None;
    }
    let right_keys: Vec<_> = join.on.iter().map(|(_, right)| right).collect();
    let right = side(right, join.right.schema(), &right_keys)?;
    of_sides(join, Side { part: input, schema: join.left.schema(), keys }, right)
}

fn of_sides<'a>(join: &'a DfJoin, mut left: Side<'a>, mut right: Side<'a>) -> Option<Part> {
    let same_types =
        left.keys.iter().zip(&right.keys).all(|(ours, other)| left.part.type_of(ours) == right.part.type_of(other));
    if !same_types {
        return None;
    }
    // What is asked of one side alone drops its rows before they are joined, where they come out only with a partner.
    let mut condition = join.filter.as_ref();
    let (asks_left, asks_right) = match join.join_type {
        JoinType::Left | JoinType::LeftAnti => (false, true),
        JoinType::Right | JoinType::RightAnti => (true, false),
        JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi => (true, true),
        JoinType::Full => (false, false),
        // Rows without a partner are marked, too, and it is the other side that is asked for one.
        JoinType::LeftMark => (false, true),
        JoinType::RightMark => (true, false),
    };
    for (side, asks) in [(&mut left, asks_left), (&mut right, asks_right)] {
        if let Some(alone) = condition.filter(|condition| asks && concerns_only(condition, side.schema)) {
            let alone = Scope::new(side.schema, &side.part.output).lower(alone)?;
            side.part.add_filter(alone);
            condition = None;
        }
    }
    // Whether rows of the left side, or of the right side, come out without a partner, or alone.
    let (from_left, from_right) = (JoinKind::Left, JoinKind::Right);
    let (streams_left, streams_right) = match join.join_type {
        JoinType::Inner => (JoinKind::Inner, JoinKind::Inner),
        JoinType::Left => (from_left, from_right),
        JoinType::Right => (from_right, from_left),
        JoinType::Full => (JoinKind::Full, JoinKind::Full),
        JoinType::LeftSemi => (JoinKind::Semi, JoinKind::RightSemi),
        JoinType::RightSemi => (JoinKind::RightSemi, JoinKind::Semi),
        JoinType::LeftAnti if join.null_aware => (JoinKind::NotIn, JoinKind::NotIn),
        JoinType::LeftAnti => (JoinKind::Anti, JoinKind::RightAnti),
        JoinType::RightAnti => (JoinKind::RightAnti, JoinKind::Anti),
        JoinType::LeftMark | JoinType::RightMark => (JoinKind::Mark, JoinKind::Mark),
    };
    if join.null_aware && (join.join_type != JoinType::LeftAnti || join.on.len() != 1 || condition.is_some()) {
        return None;
    }
    let has_condition = condition.is_some();
    let left_is_streamed = match (can_be_streamed(streams_left, &left), can_be_streamed(streams_right, &right)) {
        (false, false) => return None,
        _ if join.join_type == JoinType::RightMark => false,
        _ if join.join_type == JoinType::LeftMark => true,
        (true, true) if !join.null_aware => {
            cost(streams_left, &left, &right, has_condition) <= cost(streams_right, &right, &left, has_condition)
        }
        (left_can_be, _) => left_can_be,
    };
    let (kind, probe, build) = match left_is_streamed {
        true => (streams_left, left, right),
        false => (streams_right, right, left),
    };
    joined(join, kind, probe, build, left_is_streamed, condition)
}

fn joined(
    join: &DfJoin,
    mut kind: JoinKind,
    mut probe: Side<'_>,
    mut build: Side<'_>,
    left_is_streamed: bool,
    condition: Option<&DfExpr>,
) -> Option<Part> {
    expect_partners(join, kind, &mut probe, &mut build);
    let rows = rows_estimate(kind, &probe, &build);
    let comes_alone = kind == JoinKind::Semi;
    // A row that has one partner at most passes with it or not at all.
    if condition.is_some() && comes_alone && build.part.is_unique_by(&build.keys) {
        kind = JoinKind::Inner;
    }
    let first_payload = probe.part.column_count();
    let ours = probe.part.output.clone();
    if kind == JoinKind::Mark {
        // Whoever has a partner gets this from it, behind what only the condition sees.
        build.part.output.push(Expr::Literal(Scalar::Int(1), LogicalType::Boolean));
    }
    let theirs: Vec<Expr> = (0..build.part.output.len()).map(|column| Expr::Column(first_payload + column)).collect();
    let both = match left_is_streamed {
        true => [&ours[..], &theirs].concat(),
        false => [&theirs[..], &ours].concat(),
    };
    let condition = match condition {
        // The schema of a semi join has one side alone.
        Some(condition) => {
            let schema = join.left.schema().join(join.right.schema()).ok()?;
            Some(Scope::new(&schema, &both).lower(condition)?)
        }
        None => None,
    };
    let (condition, filter) = if kind == JoinKind::Inner { (None, condition) } else { (condition, None) };
    let nulls_are_equal = join.null_equality == NullEquality::NullEqualsNull;
    let how = How { kind, ours: probe.keys, theirs: build.keys, nulls_are_equal, condition };
    probe.part.join(build.part, how);
    probe.part.expect(rows);
    if let Some(filter) = filter {
        probe.part.add_filter(filter);
    }
    probe.part.output = match kind {
        _ if comes_alone => ours,
        JoinKind::Anti | JoinKind::NotIn => ours,
        JoinKind::RightSemi | JoinKind::RightAnti => theirs,
        JoinKind::Mark => {
            let mark = theirs.last().cloned()?;
            [ours, vec![Expr::IsNotNull(Box::new(mark))]].concat()
        }
        _ => both,
    };
    Some(probe.part)
}

/// Tells both sides that rows without a partner are of no use, where that is so.
fn expect_partners(join: &DfJoin, kind: JoinKind, probe: &mut Side<'_>, build: &mut Side<'_>) {
    if join.null_equality == NullEquality::NullEqualsNull {
        return;
    }
    if !matches!(
        kind,
        JoinKind::Left | JoinKind::Full | JoinKind::Single | JoinKind::Mark | JoinKind::Anti | JoinKind::NotIn
    ) {
        probe.part.expect_partners(&probe.keys, &build.part, &build.keys);
    }
    // NULLs among theirs matter to NOT IN, and whether there are any rows.
    if matches!(kind, JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Mark | JoinKind::Anti) {
        build.part.expect_partners(&build.keys, &probe.part, &probe.keys);
    }
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

/// Whether rows of the kept side can come out without a row of this one, where this kind of join has such: its values are
/// NULL then, and what is worked out of columns only after the join need not be.
fn can_be_streamed(kind: JoinKind, side: &Side<'_>) -> bool {
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(_));
    !matches!(kind, JoinKind::Right | JoinKind::Full) || side.part.output.iter().all(is_column)
}

/// What it costs to keep one side and to look the other one's rows up, in nanoseconds. What is unpacked of rows that are
/// kept and do not come out would not be, were they streamed.
fn cost(kind: JoinKind, probe: &Side<'_>, build: &Side<'_>, has_condition: bool) -> f64 {
    let kept = build.part.rows_estimate();
    let only_keys = !kind.has_payload() && !has_condition && build.keys.len() == 1;
    let per_row = if only_keys { KEY_KEPT } else { KEPT };
    let unpacked = match kind.has_payload() {
        true => (kept - rows_estimate(kind, probe, build)).max(0.0) * build.part.unpacking_cost(&build.part.output),
        false => 0.0,
    };
    kept * per_row + unpacked + probe.part.rows_estimate() * looked_up(kept)
}

/// About how many rows come out, if all keys of the side that knows fewer are among those of the other one.
fn rows_estimate(kind: JoinKind, probe: &Side<'_>, build: &Side<'_>) -> f64 {
    let ours = probe.part.distinct_estimate(&probe.keys);
    let theirs = build.part.distinct_estimate(&build.keys);
    let (rows, kept) = (probe.part.rows_estimate(), build.part.rows_estimate());
    let pairs = rows * kept / ours.max(theirs);
    let with_partner = |rows: f64, ours: f64, theirs: f64| rows * (theirs / ours).min(1.0);
    let without = |rows: f64, with: f64| (rows - with).max(rows * KEPT_BY_A_CONDITION);
    let (ours_with, theirs_with) = (with_partner(rows, ours, theirs), with_partner(kept, theirs, ours));
    match kind {
        JoinKind::Inner => pairs,
        JoinKind::Left => pairs.max(rows),
        JoinKind::Right => pairs.max(kept),
        JoinKind::Full => pairs.max(rows).max(kept),
        JoinKind::Single | JoinKind::Mark => rows,
        JoinKind::Semi => ours_with,
        JoinKind::Anti | JoinKind::NotIn => without(rows, ours_with),
        JoinKind::RightSemi => theirs_with,
        JoinKind::RightAnti => without(kept, theirs_with),
    }
}
