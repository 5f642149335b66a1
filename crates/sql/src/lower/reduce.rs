//! Groups that a join will drop, not made in the first place.
//!
//! Where the rows of a join are groups, and the other side knows few of the keys that they are grouped by, the rows below
//! the grouping are joined with that side, too (a semi-join reduction): few of them are left to be grouped. What is
//! joined twice is cheap: a table with its filter, or one that the other side is joined with itself.

use super::part::Part;
use sinter_exec::{Expr, Join, JoinKind, Output, Pipeline, ScanColumn, Source, Step};

/// Rows are joined twice if no more than this share of the keys stays.
const SHARE_MAX: f64 = 0.25;

/// Rows that have all values of a key among theirs, and about how many there are.
struct Reducer {
    /// Hands out the key alone.
    rows: Pipeline,
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
        let mut best: Option<(f64, Expr, Reducer)> = None;
        for (ours, theirs) in ours.iter().zip(theirs) {
            let Expr::Column(column) = ours else { continue };
            let Some(ScanColumn::Table(place)) = self.columns.get(*column) else { continue };
            let Some(key) = keys.get(*place) else { continue };
            let Some(reducer) = other.reducer(theirs) else { continue };
            let share = reducer.count / self.distinct_estimate([ours]);
            if share <= SHARE_MAX && best.as_ref().is_none_or(|(known, ..)| share < *known) {
                best = Some((share, key.clone(), reducer));
            }
        }
        if let Some((share, key, reducer)) = best {
            let rows = self.rows_estimate() * share;
            let build = Box::new(reducer.rows);
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

    /// The cheapest rows that are known to have all values of this key, if they are cheap.
    fn reducer(&self, key: &Expr) -> Option<Reducer> {
        let Expr::Column(column) = key else { return None };
        let is_table = |pipeline: &Pipeline| pipeline.source.table().is_some() && pipeline.limit.is_none();
        let mut first_payload = self.columns.len();
        let mut best: Option<Reducer> = None;
        let joins = self.steps.iter().filter_map(|step| match step {
            Step::Join(join) => Some(join),
            Step::Filter(_) => None,
        });
        for (join, &count) in joins.zip(&self.build_rows) {
            let Output::Rows(exprs) = &join.build.output else { return None };
            let (theirs, payload) = exprs.split_at(join.keys.len().min(exprs.len()));
            let is_same = |ours: &Expr, theirs: &Expr| match (ours, theirs) {
                (Expr::Column(ours), _) if ours == column => true,
                // What comes out of the join as that key of theirs.
                (_, Expr::Column(theirs)) => column
                    .checked_sub(first_payload)
                    .and_then(|place| payload.get(place))
                    .is_some_and(|expr| matches!(expr, Expr::Column(payload) if payload == theirs)),
                _ => false,
            };
            let drops = matches!(join.kind, JoinKind::Inner | JoinKind::Semi) && !join.nulls_are_equal;
            if drops && is_table(&join.build) && best.as_ref().is_none_or(|known| count < known.count) {
                let found = join.keys.iter().zip(theirs).find(|(ours, theirs)| is_same(ours, theirs));
                if let Some((_, theirs)) = found {
                    let rows = Pipeline { output: Output::Rows(vec![theirs.clone()]), ..(*join.build).clone() };
                    best = Some(Reducer { rows, count });
                }
            }
            if join.adds_columns() {
                first_payload += payload.len();
            }
        }
        if best.is_none() && self.steps.is_empty() && self.source.table().is_some() && self.limit.is_none() {
            let rows = self.as_pipeline(Output::Rows(vec![key.clone()]));
            best = Some(Reducer { rows, count: self.rows_estimate() });
        }
        best
    }
}
