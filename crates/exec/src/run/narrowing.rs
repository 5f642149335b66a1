//! What the tables of joins tell the scan before them (join filters at run time, or sideways information passing): rows that will
//! meet nobody come to nothing, and are left out at once.
//!
//! A join behind the scan asks about each row that comes to it. To ask earlier pays where the scan knows without looking at
//! rows, by the least and the greatest key, or where other work on the row is saved: that of joins before this one, which drop
//! less, and of conditions on decoded values. Those and the keys of build sides are put in order as they are found to drop
//! rows, and keys are asked about by entry where the column has a dictionary.

use crate::estimate::bounds;
use crate::join::JoinTable;
use crate::{Expr, Join, LogicalType, Pipeline, ScanColumn};
use sinter_codec::{CompareOp, Scalar};
use std::sync::Arc;

/// Which part of its own bounds a key must be within for the bounds of a join's table to be worth a test.
const NARROWER: f64 = 0.75;

/// Which share of the rows that would come to a join may pass a test of its keys for that to be worth it.
const PASSING: f64 = 0.5;

impl Pipeline {
    /// For each key of its `number`-th join, the most different values of which a filter for the scan is worth it; 0 where it is
    /// in no case. `has_conditions`: whether the scan has conditions on decoded values, which a filter could spare rows.
    pub(super) fn filter_keys_max(&self, number: usize, join: &Join, has_conditions: bool) -> Vec<usize> {
        let has_work_before = number > 0 || has_conditions;
        let is_worth_it = has_work_before
            && drops_rows(join)
            && self.source.table().is_some()
            && !self.joins().take(number).any(|before| before.kind.has_rest());
        let keys_max = |key: &Expr| match is_worth_it && self.is_scanned(key) {
            true => (PASSING * self.values_estimate(key) as f64) as usize,
            false => 0,
        };
        join.keys.iter().map(keys_max).collect()
    }

    /// What finds rows of the table that it scans by the keys of its `number`-th join, where these turn out to be few.
    pub(crate) fn found_by_join(&self, number: usize, join: &Join) -> Option<String> {
        let finder = self.source.table()?.finder()?;
        let all_matter = drops_rows(join) && !self.joins().take(number).any(|before| before.kind.has_rest());
        let keys: Vec<Expr> = join.keys.iter().map(|key| is_one_of(key, &[])).collect();
        if all_matter { finder.finds_by(&self.columns, &keys) } else { None }
    }

    /// That keys of its rows are those of the tables of its joins, which have been listed: no other row comes out.
    pub(super) fn lists_of_joins(&self, tables: &[Arc<JoinTable>]) -> Vec<Expr> {
        let mut lists = Vec::new();
        for (join, table) in self.joins().zip(tables) {
            let keys = join.keys.iter().enumerate().filter(|_| drops_rows(join));
            lists.extend(keys.filter_map(|(number, key)| Some(is_one_of(key, table.key_list(number)?))));
            if join.kind.has_rest() {
                break;
            }
        }
        lists
    }

    /// Conditions on the table that it scans without which its rows come to nothing, as the tables of its joins tell: a row
    /// whose key is none of theirs has no partner. Only what drops much is worth a test.
    pub(super) fn conditions_of_joins(&self, tables: &[Arc<JoinTable>]) -> Vec<Expr> {
        let mut conditions = Vec::new();
        if self.source.table().is_none() {
            return conditions;
        }
        // The share of rows that comes to a join, if keys are independent of each other.
        let mut coming = 1.0;
        for (join, table) in self.joins().zip(tables) {
            if join.kind.needs_partner() && table.is_empty() {
                return vec![Expr::Literal(Scalar::Int(0), LogicalType::Boolean)];
            }
            if drops_rows(join) {
                let mut passing: f64 = 1.0;
                for (number, key) in join.keys.iter().enumerate().filter(|(_, key)| self.is_scanned(key)) {
                    conditions.extend(table.key_bounds(number).and_then(|bounds| self.between(key, bounds)));
                    let share = table.key_count(number) as f64 / self.values_estimate(key).max(1) as f64;
                    passing = passing.min(share);
                    if let Some(keys) = table.key_filter(number).filter(|_| share <= PASSING * coming) {
                        conditions.push(Expr::IsKey { expr: Box::new(key.clone()), keys: Arc::clone(keys) });
                    }
                }
                coming *= passing;
            }
            if join.kind.has_rest() {
                // Of whom it meets depends what comes out after all rows.
                break;
            }
        }
        conditions
    }

    /// Whether a key is a column of the table.
    fn is_scanned(&self, key: &Expr) -> bool {
        matches!(key, Expr::Column(column) if matches!(self.columns.get(*column), Some(ScanColumn::Table(_))))
    }

    /// About how many different values a key has, at most.
    fn values_estimate(&self, key: &Expr) -> usize {
        let estimate = match key {
            Expr::Column(column) => self.distinct_estimate(*column),
            _ => None,
        };
        estimate.unwrap_or_else(|| self.source_rows_estimate())
    }

    /// That a key lies between these, where its own bounds are wider.
    fn between(&self, key: &Expr, (low, high): (i128, i128)) -> Option<Expr> {
        let (least, greatest) = bounds(key, self)?;
        let span = |low: i128, high: i128| high as f64 - low as f64 + 1.0;
        if span(low.max(least), high.min(greatest)) > NARROWER * span(least, greatest) {
            return None;
        }
        let ty = key.type_over(&self.scan_types());
        let compare = |op, bound| {
            let bound = Expr::Literal(Scalar::Int(bound), ty.clone());
            Expr::Compare(op, Box::new(key.clone()), Box::new(bound))
        };
        Some(Expr::And(vec![compare(CompareOp::GreaterOrEqual, low), compare(CompareOp::LessOrEqual, high)]))
    }
}

/// That a key is one of these.
fn is_one_of(key: &Expr, list: &[Scalar]) -> Expr {
    Expr::InList { expr: Box::new(key.clone()), list: list.to_vec(), has_null: false, negated: false }
}

/// Whether rows are dropped that have no partner, those with a NULL among their keys too.
fn drops_rows(join: &Join) -> bool {
    join.kind.needs_partner() && !join.nulls_are_equal
}
