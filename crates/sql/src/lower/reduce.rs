//! Groups that a join will drop, not made in the first place.
//!
//! Where the rows of a join are groups, and the other side knows few of the keys that they are grouped by, the rows below
//! the grouping are joined with that side, too (a semi-join reduction): few of them are left to be grouped. What is
//! joined twice is cheap: a table with its filter, or with what it is joined with. It is looked for however deep it is in the
//! other side. As it is scanned twice, its compressed size and what it takes to unpack it are weighed against the rows that
//! are not grouped (Westmann et al., section 4.2).

use super::join_order::{KEPT, looked_up};
use super::part::{KEPT_BY_A_CONDITION, Part};
use sinter_exec::{Expr, Join, JoinKind, Output, Pipeline, ScanColumn, Source, Step};
use std::collections::BTreeSet;

/// Rows are joined twice if no more than this share of the keys stays.
const SHARE_MAX: f64 = 0.25;

/// Rows that have all values of a key among theirs.
#[derive(Clone, Copy)]
struct Reducer<'a> {
    rows: &'a Pipeline,
    key: &'a Expr,
    /// About how many there are.
    count: f64,
}

impl Part {
    /// Notes that no row comes out of a join unless one of the other's rows has equal keys, NULLs left out.
    pub(super) fn expect_partners(&mut self, ours: &[Expr], other: &Part, theirs: &[Expr]) {
        if self.has_rest() {
            return;
        }
        let Source::Gathered(inner) = &self.source else { return };
        let Output::Groups { keys, .. } = &inner.output else { return };
        let inner_rows = inner.source_rows_estimate() as f64;
        let whole = other.as_pipeline(Output::Rows(Vec::new()));
        // In nanoseconds: a row that is grouped costs as much as one that is kept for a join. Rows that filters drop before are
        // counted all the same; what need not be unpacked of the others is not.
        let mut least_cost = inner_rows * KEPT;
        let mut best: Option<(f64, Expr, Pipeline)> = None;
        for (ours, theirs) in ours.iter().zip(theirs) {
            let Expr::Column(column) = ours else { continue };
            let Some(ScanColumn::Table(place)) = self.columns.get(*column) else { continue };
            let Some(key) = keys.get(*place) else { continue };
            let distinct = self.distinct_estimate([ours]);
            for reducer in reducers(&whole, theirs, other) {
                let share = reducer.count / distinct;
                let grouped = inner_rows * (looked_up(reducer.count) + share * KEPT);
                let cost = scanning_cost(reducer.rows, reducer.key.columns()) + grouped;
                if share <= SHARE_MAX && cost < least_cost {
                    least_cost = cost;
                    let output = Output::Rows(vec![reducer.key.clone()]);
                    best = Some((share, key.clone(), Pipeline { output, ..reducer.rows.clone() }));
                }
            }
        }
        if let Some((share, key, build)) = best {
            let rows = self.rows_estimate() * share;
            let build = Box::new(build);
            let join = Join { kind: JoinKind::Semi, build, keys: vec![key], nulls_are_equal: false, condition: None };
            if let Source::Gathered(inner) = &mut self.source {
                // It drops more than what is joined there already, but those joins may hand out rows of their own, or the key.
                let has_rest = inner.steps.iter().any(|step| matches!(step, Step::Join(join) if join.kind.has_rest()));
                let is_scanned = join.keys[0].columns().iter().all(|&column| column < inner.columns.len());
                let place = if is_scanned && !has_rest { 0 } else { inner.steps.len() };
                inner.steps.insert(place, Step::Join(join));
            }
            self.expect(rows);
        }
    }
}

/// All that has the values of a key of `part`; `whole` is its pipeline.
fn reducers<'a>(whole: &'a Pipeline, key: &'a Expr, part: &Part) -> Vec<Reducer<'a>> {
    let mut all = Vec::new();
    match key {
        _ if whole.steps.is_empty() && is_table(whole) => {
            all.push(Reducer { rows: whole, key, count: part.rows_estimate() });
        }
        Expr::Column(column) => add_joined(whole, &part.build_rows, *column, &mut all),
        _ => {}
    }
    all
}

/// Adds what has the values of a column of a pipeline among what is joined there: what the column is looked up in, and
/// what it comes from, together with what is joined within these. `counts` says how many rows the build sides have, where
/// that is known.
fn add_joined<'a>(pipeline: &'a Pipeline, counts: &[f64], column: usize, all: &mut Vec<Reducer<'a>>) {
    let mut first_payload = pipeline.columns.len();
    let joins = pipeline.steps.iter().filter_map(|step| match step {
        Step::Join(join) => Some(join),
        Step::Filter(_) => None,
    });
    for (number, join) in joins.enumerate() {
        let Output::Rows(exprs) = &join.build.output else { return };
        let (theirs, payload) = exprs.split_at(join.keys.len().min(exprs.len()));
        let count = counts.get(number).copied();
        if matches!(join.kind, JoinKind::Inner | JoinKind::Semi) && !join.nulls_are_equal {
            let looked_up = |(ours, _): &(&Expr, &Expr)| matches!(ours, Expr::Column(ours) if *ours == column);
            for (_, key) in join.keys.iter().zip(theirs).filter(looked_up) {
                add_build(&join.build, count, key, all);
            }
        }
        if join.kind == JoinKind::Inner
            && let Some(key) = column.checked_sub(first_payload).and_then(|place| payload.get(place))
        {
            add_build(&join.build, count, key, all);
        }
        if join.adds_columns() {
            first_payload += payload.len();
        }
    }
}

fn add_build<'a>(build: &'a Pipeline, count: Option<f64>, key: &'a Expr, all: &mut Vec<Reducer<'a>>) {
    if is_table(build) {
        let count = count.unwrap_or_else(|| match build.filter.is_empty() {
            true => build.rows_estimate() as f64,
            // What it is joined with is taken to drop nothing.
            false => build.rows_estimate() as f64 * build.sample_share().unwrap_or(KEPT_BY_A_CONDITION),
        });
        all.push(Reducer { rows: build, key, count });
    }
    if let Expr::Column(column) = key {
        add_joined(build, &[], *column, all);
    }
}

/// Whether rows are those of a table, filtered and joined, each time the same.
fn is_table(pipeline: &Pipeline) -> bool {
    pipeline.source.table().is_some() && pipeline.is_repeatable()
}

/// About how long it takes to read these columns of a pipeline, and what it is joined with, in nanoseconds.
fn scanning_cost(pipeline: &Pipeline, mut read: BTreeSet<usize>) -> f64 {
    read.extend(pipeline.filter.iter().flat_map(Expr::columns));
    let mut joined = 0.0;
    for step in &pipeline.steps {
        match step {
            Step::Filter(condition) => read.extend(condition.columns()),
            Step::Join(join) => {
                read.extend(join.keys.iter().chain(&join.condition).flat_map(Expr::columns));
                joined += scanning_cost(&join.build, join.build_exprs().iter().flat_map(Expr::columns).collect());
            }
        }
    }
    let gathered = |inner: &Pipeline| {
        scanning_cost(inner, (0..inner.columns.len()).collect()) + inner.source_rows_estimate() as f64 * KEPT
    };
    let scanned = match &pipeline.source {
        Source::Table(_) => pipeline.scanning_cost(&read),
        Source::Gathered(inner) => gathered(inner),
        Source::Union(all) => all.iter().map(gathered).sum(),
    };
    scanned + joined
}
