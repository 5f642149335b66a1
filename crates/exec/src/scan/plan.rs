//! A filter, split and put in order.

use super::test::{Named, Test};
use crate::expr::{Program, compile_condition};
use crate::{Error, Expr, LogicalType, Pipeline, Result, ScanColumn};

/// What a scan does, compiled once and shared by its workers.
#[derive(Debug)]
pub(crate) struct ScanPlan {
    pub(super) columns: Vec<ScanColumn>,
    pub(super) types: Vec<LogicalType>,
    /// Answered on the encoded form; those that should be cheapest first.
    pub(super) tests: Vec<PlannedTest>,
    /// Leaves of all tests.
    pub(super) leaf_count: usize,
    /// Which column of its source each column is, where that is no table.
    pub(super) source_columns: Vec<usize>,
    /// Evaluated on decoded survivors, in this order but for those in front that cannot fail.
    pub(super) programs: Vec<Program>,
    pub(super) infallible_programs: usize,
    decoded: Vec<Expr>,
}

/// A test, and what else a scan may do for it.
#[derive(Debug)]
pub(super) struct PlannedTest {
    pub(super) test: Test,
    /// Leaves of the tests before it, so that every leaf has a number.
    pub(super) first_leaf: usize,
    /// The same on decoded values, for blocks that would have to decode for the test.
    pub(super) by_value: Program,
}

impl ScanPlan {
    /// Splits a pipeline's filter.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for columns that do not exist and expressions that are none of ours.
    pub(crate) fn new(pipeline: &Pipeline) -> Result<ScanPlan> {
        ScanPlan::narrowed(pipeline, &[])
    }

    /// The same, of which only rows are wanted that also pass these conditions.
    ///
    /// # Errors
    /// As [`ScanPlan::new`].
    pub(crate) fn narrowed(pipeline: &Pipeline, conditions: &[Expr]) -> Result<ScanPlan> {
        let table = pipeline.source.column_types();
        let is_table = pipeline.source.table().is_some();
        let mut source_columns = Vec::new();
        for column in &pipeline.columns {
            match *column {
                ScanColumn::Table(column) if column >= table.len() => {
                    return Err(Error::Unsupported(format!("column {column} of a source that has {}", table.len())));
                }
                ScanColumn::Length(column) if table.get(column) != Some(&LogicalType::Utf8) => {
                    return Err(Error::Unsupported(format!("the length of column {column}, which is no text")));
                }
                _ if is_table => {}
                ScanColumn::Table(column) => source_columns.push(column),
                ScanColumn::Length(_) => return Err(Error::Unsupported("stored lengths of what is no table".into())),
                ScanColumn::RowId => return Err(Error::Unsupported("row ids of what is no table".into())),
            }
        }
        let types = pipeline.scan_types();
        let mut conjuncts = Vec::new();
        pipeline.filter.iter().chain(conditions).for_each(|filter| flatten(filter, &mut conjuncts));
        let (mut tests, mut decoded) = (Vec::<(Test, Expr)>::new(), Vec::new());
        for conjunct in conjuncts {
            // Groups are not encoded, and have no statistics.
            let test = pipeline.source.table().and_then(|_| Test::new(&conjunct, &pipeline.columns, &types));
            match test {
                Some(Test::All(parts)) if parts.is_empty() => {}
                Some(test) => add(test, conjunct, &mut tests),
                None => decoded.push(conjunct),
            }
        }
        tests.sort_by_key(|(test, _)| test.cost(&types));
        // What may fail comes last, after whatever else may have dropped the row, in the order in which it is written.
        decoded.sort_by_cached_key(|expr| if expr.may_fail(&types) { u32::MAX } else { cost(expr) });
        let infallible_programs = decoded.partition_point(|expr| !expr.may_fail(&types));
        let programs = decoded.iter().map(|expr| compile_condition(expr, &types)).collect::<Result<Vec<_>>>()?;
        let (mut planned, mut leaf_count) = (Vec::new(), 0);
        for (test, expr) in tests {
            let by_value = compile_condition(&expr, &types)?;
            let (first_leaf, mut leaves) = (leaf_count, Vec::new());
            test.leaves(&mut leaves);
            leaf_count += leaves.len();
            planned.push(PlannedTest { test, first_leaf, by_value });
        }
        let tests = planned;
        let columns = pipeline.columns.clone();
        Ok(ScanPlan { columns, types, tests, leaf_count, source_columns, programs, infallible_programs, decoded })
    }

    /// The types of the columns.
    pub(crate) fn types(&self) -> &[LogicalType] {
        &self.types
    }

    /// The tests on the encoded form, for plans.
    pub(crate) fn encoded_text(&self, name: &dyn Fn(usize) -> (String, LogicalType)) -> Vec<String> {
        self.tests.iter().map(|planned| Named(&planned.test, name).to_string()).collect()
    }

    /// Whether decoded values are asked for conditions.
    pub(crate) fn has_conditions_on_values(&self) -> bool {
        !self.decoded.is_empty()
    }

    /// The conditions on decoded values.
    pub(crate) fn decoded(&self) -> &[Expr] {
        &self.decoded
    }
}

fn flatten(expr: &Expr, out: &mut Vec<Expr>) {
    match expr {
        Expr::And(parts) => parts.iter().for_each(|part| flatten(part, out)),
        Expr::Not(inner) => match &**inner {
            Expr::Or(parts) => parts.iter().for_each(|part| flatten(&Expr::Not(Box::new(part.clone())), out)),
            _ => out.push(expr.clone()),
        },
        other => out.push(other.clone()),
    }
}

/// Adds a test of an expression, as part of one that bounds the same column where there is one.
fn add(test: Test, expr: Expr, tests: &mut Vec<(Test, Expr)>) {
    for (known, known_expr) in tests.iter_mut() {
        if let Some(both) = known.merge(&test) {
            (*known, *known_expr) = (both, Expr::And(vec![known_expr.clone(), expr]));
            return;
        }
    }
    tests.push((test, expr));
}

/// About how much a row costs.
fn cost(expr: &Expr) -> u32 {
    own_cost(expr) + expr.children().into_iter().map(cost).sum::<u32>()
}

/// The same without its operands.
fn own_cost(expr: &Expr) -> u32 {
    match expr {
        Expr::Column(_) | Expr::Literal(..) => 0,
        Expr::Compare(..) | Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::Not(_) | Expr::And(_) | Expr::Or(_) => 1,
        Expr::InList { .. } | Expr::IsKey { .. } => 3,
        Expr::Like { .. } | Expr::Text { .. } => 10,
        Expr::Arithmetic { .. } | Expr::Case { .. } | Expr::Cast { .. } => 20,
        Expr::Foreign { .. } => 100,
    }
}
