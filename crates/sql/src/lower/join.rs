//! Joins of DataFusion's plans as steps of a pipeline.
//!
//! One side's pipeline goes on, and the other one becomes the build side, whose rows are kept in memory. An inner join
//! may keep either; it keeps the side that seems to have fewer rows. Every other join must stream the side whose rows
//! come out whether they have a partner or not.

use super::expr::Scope;
use super::{Part, is_key};
use datafusion::common::{DFSchemaRef, JoinType, NullEquality};
use datafusion::logical_expr::{Expr as DfExpr, Join as DfJoin};
use sinter_exec::{Expr, Join, JoinKind, Output, Pipeline, ScanColumn, Source, Step};

/// One input of a join.
struct Side<'a> {
    part: Part,
    schema: &'a DFSchemaRef,
    keys: Vec<Expr>,
}

/// The join with both its inputs; `None` where some part of it is not ours.
pub(super) fn part(join: &DfJoin) -> Option<Part> {
    if join.on.is_empty() || join.null_aware {
        return None;
    }
    if super::inner::is_inner(join)
        && let Some(part) = super::inner::part(join)
    {
        return Some(part);
    }
    let (left_keys, right_keys): (Vec<_>, Vec<_>) = join.on.iter().map(|(left, right)| (left, right)).unzip();
    let left = side(super::part_of(&join.left)?, join.left.schema(), &left_keys)?;
    let right = side(super::part_of(&join.right)?, join.right.schema(), &right_keys)?;
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
            let scope = Scope { schema: build.schema, columns: &build.part.output };
            build.part.add_filter(scope.lower(condition)?);
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
    probe.part.join(kind, build.part, (probe.keys, build.keys), nulls_are_equal);
    probe.part.output = output;
    if let Some(condition) = rest {
        // That of a semi join knows one side alone.
        let schema = join.left.schema().join(join.right.schema()).ok()?;
        let scope = Scope { schema: &schema, columns: &probe.part.output };
        let condition = scope.lower(condition)?;
        probe.part.add_filter(condition);
    }
    if let Some(output) = semi_output {
        probe.part.output = output;
    }
    Some(probe.part)
}

fn side<'a>(part: Part, schema: &'a DFSchemaRef, keys: &[&DfExpr]) -> Option<Side<'a>> {
    let scope = Scope { schema, columns: &part.output };
    let plain = part.limit.is_none() && part.output.iter().all(|expr| part.type_of(expr).physical().is_some());
    if !plain || !keys.iter().all(|key| is_key(key, &scope)) {
        return None;
    }
    let keys = keys.iter().map(|key| scope.lower(key)).collect::<Option<Vec<_>>>()?;
    Some(Side { part, schema, keys })
}

/// Whether a condition reads columns of this input, and of no other.
fn concerns_only(condition: &DfExpr, schema: &DFSchemaRef) -> bool {
    condition.column_refs().iter().all(|column| schema.maybe_index_of_column(column).is_some())
}

impl Part {
    /// Adds the join with another part, by these keys of ours and of theirs.
    pub(super) fn join(&mut self, kind: JoinKind, other: Part, keys: (Vec<Expr>, Vec<Expr>), nulls_are_equal: bool) {
        let Part { source, noted, others, columns, filter, steps, output, on_damage, .. } = other;
        self.others.extend(noted.map(|noted| (noted, columns.clone(), filter.clone())));
        self.others.extend(others);
        let (ours, theirs) = keys;
        let output = Output::Rows(theirs.into_iter().chain(output).collect());
        let build = Box::new(Pipeline { source, columns, filter, steps, output, limit: None, on_damage });
        self.steps.push(Step::Join(Join { kind, build, keys: ours, nulls_are_equal }));
    }

    /// Whether no two rows have the same values of these expressions: the rows are groups, and these are their keys.
    fn is_unique_by(&self, exprs: &[Expr]) -> bool {
        let Source::Groups(inner) = &self.source else { return false };
        let Output::Groups { keys, .. } = &inner.output else { return false };
        let has = |key: usize| {
            let is_key = |expr: &Expr| match expr {
                Expr::Column(column) => self.columns.get(*column) == Some(&ScanColumn::Table(key)),
                _ => false,
            };
            exprs.iter().any(is_key)
        };
        let multiplies = |step: &Step| matches!(step, Step::Join(join) if join.kind.has_payload());
        (0..keys.len()).all(has) && !self.steps.iter().any(multiplies)
    }

    /// About how many rows come out. A filter's share is measured; what joins drop is a guess, and what they multiply is
    /// not known.
    pub(super) fn rows_estimate(&self) -> f64 {
        const KEPT_BY_A_STEP: f64 = 0.5;
        let scan = Pipeline { steps: Vec::new(), ..self.as_pipeline(Output::Rows(Vec::new())) };
        let share = match self.filter.is_empty() {
            true => 1.0,
            // What cannot be read now will say so when the query runs, and groups are not there yet.
            false => scan.sample_share().unwrap_or(KEPT_BY_A_STEP),
        };
        let rows = scan.rows_estimate();
        let drops = |step: &&Step| !matches!(step, Step::Join(Join { kind: JoinKind::Left, .. }));
        let steps = self.steps.iter().filter(drops).count();
        rows as f64 * share * KEPT_BY_A_STEP.powi(steps as i32)
    }
}

/// Columns that a join step adds, for numbering those that come after.
pub(super) fn payload_count(steps: &[Step]) -> usize {
    let of_step = |step: &Step| match step {
        Step::Join(Join { kind, build, keys, .. }) if kind.has_payload() => match &build.output {
            Output::Rows(exprs) => exprs.len() - keys.len(),
            Output::Aggregate(_) | Output::Groups { .. } => 0,
        },
        Step::Join(_) | Step::Filter(_) => 0,
    };
    steps.iter().map(of_step).sum()
}
