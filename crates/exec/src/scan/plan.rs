//! A filter, split and put in order.

use super::test::{Named, Test};
use crate::expr::{Program, compile_condition};
use crate::{Error, Expr, LogicalType, Pipeline, Result, ScanColumn};

/// What a scan does, compiled once and shared by its workers.
#[derive(Debug)]
pub(crate) struct ScanPlan {
    pub(super) columns: Vec<ScanColumn>,
    pub(super) types: Vec<LogicalType>,
    /// Answered on the encoded form, cheapest first.
    pub(super) tests: Vec<Test>,
    /// Leaves of the tests before each of them, so that every leaf has a number.
    pub(super) first_leaf: Vec<usize>,
    pub(super) leaf_count: usize,
    /// Which column of its source each column is, where that is no table.
    pub(super) source_columns: Vec<usize>,
    /// Evaluated on decoded survivors, in this order.
    pub(super) programs: Vec<Program>,
    decoded: Vec<Expr>,
}

impl ScanPlan {
    /// Splits a pipeline's filter.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for columns that do not exist and expressions that are none of ours.
    pub(crate) fn new(pipeline: &Pipeline) -> Result<ScanPlan> {
        let table = pipeline.source.column_types();
        let is_table = pipeline.source.table().is_some();
        let mut source_columns = Vec::new();
        for column in &pipeline.columns {
            match *column {
                ScanColumn::Table(column) if column >= table.len() => {
                    return Err(Error::Unsupported(format!("column {column} of a source that has {}", table.len())));
                }
                ScanColumn::Table(_) | ScanColumn::RowId if is_table => {}
                ScanColumn::Table(column) => source_columns.push(column),
                ScanColumn::RowId => return Err(Error::Unsupported("row ids of what is no table".into())),
            }
        }
        let types = pipeline.scan_types();
        let mut conjuncts = Vec::new();
        pipeline.filter.iter().for_each(|filter| flatten(filter, &mut conjuncts));
        let (mut tests, mut decoded) = (Vec::<Test>::new(), Vec::new());
        for conjunct in conjuncts {
            // Groups are not encoded, and have no statistics.
            let test = pipeline.source.table().and_then(|_| Test::new(conjunct, &pipeline.columns, &types));
            match test {
                Some(Test::All(parts)) => parts.into_iter().for_each(|part| add(part, &mut tests)),
                Some(test) => add(test, &mut tests),
                None => decoded.push(conjunct.clone()),
            }
        }
        tests.sort_by_key(|test| test.cost(&types));
        decoded.sort_by_key(cost);
        let programs = decoded.iter().map(|expr| compile_condition(expr, &types)).collect::<Result<Vec<_>>>()?;
        let (mut first_leaf, mut leaf_count) = (Vec::new(), 0);
        for test in &tests {
            first_leaf.push(leaf_count);
            let mut leaves = Vec::new();
            test.leaves(&mut leaves);
            leaf_count += leaves.len();
        }
        let columns = pipeline.columns.clone();
        Ok(ScanPlan { columns, types, tests, first_leaf, leaf_count, source_columns, programs, decoded })
    }

    /// The types of the columns.
    pub(crate) fn types(&self) -> &[LogicalType] {
        &self.types
    }

    /// The tests on the encoded form, for plans.
    pub(crate) fn encoded_text(&self, name: &dyn Fn(usize) -> (String, LogicalType)) -> Vec<String> {
        self.tests.iter().map(|test| Named(test, name).to_string()).collect()
    }

    /// The conditions on decoded values.
    pub(crate) fn decoded(&self) -> &[Expr] {
        &self.decoded
    }
}

fn flatten<'a>(expr: &'a Expr, out: &mut Vec<&'a Expr>) {
    match expr {
        Expr::And(parts) => parts.iter().for_each(|part| flatten(part, out)),
        other => out.push(other),
    }
}

/// Adds a test, as part of one that bounds the same column where there is one.
fn add(test: Test, tests: &mut Vec<Test>) {
    for known in tests.iter_mut() {
        if let Some(both) = known.merge(&test) {
            *known = both;
            return;
        }
    }
    tests.push(test);
}

/// About how much a row costs. What can fail comes last, after whatever else may have dropped the row.
fn cost(expr: &Expr) -> u32 {
    let own = match expr {
        Expr::Column(_) | Expr::Literal(..) => 0,
        Expr::Compare(..) | Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::Not(_) | Expr::And(_) | Expr::Or(_) => 1,
        Expr::InList { .. } => 3,
        Expr::Like { .. } => 10,
        Expr::Arithmetic { .. } => 20,
        Expr::Case { .. } | Expr::Cast { .. } => 20,
        Expr::Foreign { .. } => 100,
    };
    own + expr.children().into_iter().map(cost).sum::<u32>()
}
