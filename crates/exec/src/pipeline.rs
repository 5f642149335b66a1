//! A plan for one pass over a table.

use crate::scan::{vector_count, worker_count_max};
use crate::{Expr, ForeignCall, Join, LogicalType, OnDamage, Order, ScanColumn, TableSource, Window};
use sinter_codec::ROW_GROUP_LEN;
use std::sync::Arc;

/// Scan, filter, then joins and further filters, then rows, aggregates, groups or an order, then limit.
///
/// Expressions refer to columns by number: those of the scan first, then the payload of each join, in the order of the
/// steps. The filter knows the scan's alone, and a step those of the steps before it.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Where rows come from.
    pub source: Source,
    /// The columns of it that the expressions refer to, by position in this list.
    pub columns: Vec<ScanColumn>,
    /// All must hold. Comparisons of a column with constants run on the encoded form.
    pub filter: Vec<Expr>,
    /// What is done with the rows that are left, in this order.
    pub steps: Vec<Step>,
    /// What comes out.
    pub output: Output,
    /// At most so many rows in all (rows only).
    pub limit: Option<usize>,
    /// What becomes of row groups that cannot be read.
    pub on_damage: OnDamage,
}

/// Where a pipeline's rows come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A table.
    Table(Arc<dyn TableSource>),
    /// What another pipeline makes of all its rows, kept in memory or spilled. Of one that has [`Output::Groups`]: keys, then
    /// aggregates, by position; of [`Output::GroupingSets`] the number of the set between them. Of [`Output::Aggregate`] the
    /// one row, of [`Output::Sorted`] and [`Output::Windows`] their rows.
    Gathered(Box<Pipeline>),
    /// The rows of several pipelines, one after the other. All have [`Output::Rows`], with columns of the same types.
    Union(Vec<Pipeline>),
}

impl Source {
    /// The table's column that a column is, however many groups it came through.
    pub(crate) fn origin(&self, column: usize) -> Option<(&dyn TableSource, usize)> {
        match self {
            Source::Table(table) => Some((&**table, column)),
            Source::Gathered(inner) => match &inner.output {
                Output::Groups { keys, .. } => match keys.get(column)? {
                    Expr::Column(column) => inner.origin(*column),
                    _ => None,
                },
                Output::Sorted { rows, .. } | Output::Windows { rows, .. } => match rows.get(column)? {
                    Expr::Column(column) => inner.origin(*column),
                    _ => None,
                },
                Output::Rows(_) | Output::Aggregate(_) | Output::GroupingSets { .. } => None,
            },
            Source::Union(_) => None,
        }
    }

    /// The table, where it is one.
    pub fn table(&self) -> Option<&Arc<dyn TableSource>> {
        match self {
            Source::Table(table) => Some(table),
            Source::Gathered(_) | Source::Union(_) => None,
        }
    }

    /// The types of its columns.
    pub(crate) fn column_types(&self) -> Vec<LogicalType> {
        match self {
            Source::Table(table) => table.column_types().to_vec(),
            Source::Gathered(inner) => inner.output_types(),
            Source::Union(all) => all.first().map(Pipeline::output_types).unwrap_or_default(),
        }
    }

    /// The types of some of its columns; `Boolean` where it has no such column, which starting reports.
    pub fn types_of(&self, columns: &[ScanColumn]) -> Vec<LogicalType> {
        let all = self.column_types();
        let type_of = |column: &ScanColumn| match column {
            ScanColumn::Table(column) => all.get(*column).cloned().unwrap_or(LogicalType::Boolean),
            ScanColumn::Length(_) => LogicalType::Int32,
            ScanColumn::RowId => LogicalType::UInt64,
        };
        columns.iter().map(type_of).collect()
    }
}

/// What a pipeline does with rows between its scan and its output.
#[derive(Clone, Debug)]
pub enum Step {
    /// Drops the rows for which it is not true.
    Filter(Expr),
    /// Brings them together with rows of another pipeline.
    Join(Join),
}

/// What a pipeline hands out.
#[derive(Clone, Debug)]
pub enum Output {
    /// One batch column per expression.
    Rows(Vec<Expr>),
    /// One row over everything; not of [`AggregateFunction::Distinct`] and [`AggregateFunction::Foreign`].
    Aggregate(Vec<Aggregate>),
    /// One row for each different list of keys, in no order: the keys, then the aggregates. NULLs are equal here, and so
    /// are NaNs, and -0.0 is 0.0.
    Groups {
        /// What rows of a group have in common; not nested. Where there is none, all rows are one group, which is there
        /// without any row, too.
        keys: Vec<Expr>,
        /// Over the rows of each group.
        aggregates: Vec<Aggregate>,
    },
    /// The groups of the same rows by each of several sets of keys, one set after the other: the keys, NULL where they are not
    /// of the set, the number of the set, then the aggregates.
    GroupingSets {
        /// Of all sets.
        keys: Vec<Expr>,
        /// By which of them rows are grouped.
        sets: Vec<GroupingSet>,
        /// Of the numbers of sets: an integer.
        number_type: LogicalType,
        /// As for [`Output::Groups`].
        aggregates: Vec<Aggregate>,
    },
    /// Rows in an order, or the first of them.
    Sorted {
        /// One batch column per expression; not nested.
        rows: Vec<Expr>,
        /// Over the same columns.
        order: Order,
    },
    /// Rows, and behind their columns those of window functions, partition by partition in the order of the window.
    Windows {
        /// One batch column per expression; not nested.
        rows: Vec<Expr>,
        /// Over the same columns.
        window: Window,
    },
}

impl Output {
    /// What is computed over rows.
    pub fn aggregates(&self) -> &[Aggregate] {
        match self {
            Output::Rows(_) | Output::Sorted { .. } | Output::Windows { .. } => &[],
            Output::Aggregate(aggregates)
            | Output::Groups { aggregates, .. }
            | Output::GroupingSets { aggregates, .. } => aggregates,
        }
    }
}

/// One of the sets of keys by which rows are grouped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupingSet {
    /// Which keys it has, by position, none twice. With none, all rows are one group, which is there without any row, too.
    pub keys: Vec<usize>,
    /// What tells its groups from those of other sets; of [`Output::GroupingSets`]' type of numbers.
    pub number: i128,
}

/// An aggregate function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AggregateFunction {
    /// Rows.
    CountStar,
    /// Values that are not NULL.
    Count,
    /// Exact for integers and decimals; an error where it does not fit the result type.
    Sum,
    /// Least value; NaN is greatest.
    Min,
    /// Greatest value.
    Max,
    /// Arithmetic mean: `Float64`, or a decimal where the result type is one (further digits are cut).
    Average,
    /// Variance of all values, or of those of whom they are a sample: `Float64`, NULL for too few.
    Variance {
        /// The latter.
        of_sample: bool,
    },
    /// The square root of the variance.
    Deviation {
        /// As for the variance.
        of_sample: bool,
    },
    /// Count, sum or average of the values that are different, as keys of groups are.
    Distinct(Box<AggregateFunction>),
    /// Computed outside, over the call's own arguments.
    Foreign(ForeignCall),
}

impl AggregateFunction {
    /// What becomes of values that count, whichever do.
    pub(crate) fn plain(&self) -> &AggregateFunction {
        match self {
            AggregateFunction::Distinct(function) => function,
            function => function,
        }
    }

    /// Whether only [`Output::Groups`] and [`Output::GroupingSets`] can have it.
    pub fn is_of_groups(&self) -> bool {
        matches!(self, AggregateFunction::Distinct(_) | AggregateFunction::Foreign(_))
    }
}

/// An aggregate over all rows that pass, or all of a group.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// Which.
    pub function: AggregateFunction,
    /// Over what; `None` for [`AggregateFunction::CountStar`] and [`AggregateFunction::Foreign`].
    pub argument: Option<Expr>,
    /// `FILTER (WHERE ...)`.
    pub filter: Option<Expr>,
    /// Type of the result.
    pub ty: LogicalType,
}

impl Pipeline {
    /// All rows of a table, of which all columns are there by their position in it.
    pub(crate) fn of_table(table: Arc<dyn TableSource>, output: Output) -> Pipeline {
        Pipeline::of_source(Source::Table(table), output)
    }

    /// The same of any source.
    pub(crate) fn of_source(source: Source, output: Output) -> Pipeline {
        Pipeline {
            columns: (0..source.column_types().len()).map(ScanColumn::Table).collect(),
            source,
            filter: Vec::new(),
            steps: Vec::new(),
            output,
            limit: None,
            on_damage: OnDamage::Fail,
        }
    }

    /// The type of an expression over this pipeline's columns.
    pub fn type_of(&self, expr: &Expr) -> LogicalType {
        expr.type_over(&self.column_types())
    }

    /// The types of what it hands out.
    pub fn output_types(&self) -> Vec<LogicalType> {
        let types = self.column_types();
        let type_of = |expr: &Expr| expr.type_over(&types);
        let aggregates = self.output.aggregates().iter().map(|aggregate| aggregate.ty.clone());
        match &self.output {
            Output::Rows(exprs) | Output::Sorted { rows: exprs, .. } => exprs.iter().map(type_of).collect(),
            Output::Windows { rows, window } => {
                rows.iter().map(type_of).chain(window.functions.iter().map(|function| function.ty.clone())).collect()
            }
            Output::Aggregate(_) => aggregates.collect(),
            Output::Groups { keys, .. } => keys.iter().map(type_of).chain(aggregates).collect(),
            Output::GroupingSets { keys, number_type, .. } => {
                keys.iter().map(type_of).chain([number_type.clone()]).chain(aggregates).collect()
            }
        }
    }

    /// Hands out these columns instead of all; false, and nothing changes, where it cannot.
    pub fn keep_columns(&mut self, columns: &[usize]) -> bool {
        let is_all = columns.iter().copied().eq(0..self.output_types().len());
        let (Output::Rows(rows) | Output::Sorted { rows, .. }) = &mut self.output else { return is_all };
        let kept: Option<Vec<Expr>> = columns.iter().map(|&column| rows.get(column).cloned()).collect();
        kept.map(|kept| *rows = kept).is_some()
    }

    /// How many workers find something to do; a guess where their source is not there yet. Rows that come in an order are
    /// for one, so that they stay in it.
    pub fn worker_count_max(&self) -> usize {
        match &self.source {
            Source::Table(table) => worker_count_max(self, &**table),
            Source::Gathered(inner) if matches!(inner.output, Output::Sorted { .. }) => 1,
            Source::Gathered(inner) => inner.rows_estimate().div_ceil(ROW_GROUP_LEN).max(1),
            Source::Union(all) => all.iter().map(Pipeline::worker_count_max).sum::<usize>().max(1),
        }
    }

    /// Vectors of the tables that it scans, those of build sides and of what its rows come from included.
    pub fn vectors_to_scan(&self) -> usize {
        let of_source = match &self.source {
            Source::Table(table) => vector_count(&**table),
            Source::Gathered(inner) => inner.vectors_to_scan(),
            Source::Union(all) => all.iter().map(Pipeline::vectors_to_scan).sum(),
        };
        of_source + self.joins().map(|join| join.build.vectors_to_scan()).sum::<usize>()
    }

    /// Whether [`crate::Run::prepare`] has something to do.
    pub fn needs_preparation(&self) -> bool {
        let of_source = match &self.source {
            Source::Table(_) => false,
            Source::Gathered(_) => true,
            Source::Union(all) => all.iter().any(Pipeline::needs_preparation),
        };
        of_source || self.joins().next().is_some()
    }

    /// Whether it has the same rows each time that it runs over the same tables: not where it leaves off at some row, nor
    /// where something depends on which of equal rows comes first. Sums of floats may still differ in their last digits.
    pub fn is_repeatable(&self) -> bool {
        self.has_repeatable_rows() && self.has_repeatable_output()
    }

    /// The same of the rows that come to its output.
    pub fn has_repeatable_rows(&self) -> bool {
        let of_source = match &self.source {
            Source::Table(_) => true,
            Source::Gathered(inner) => inner.is_repeatable(),
            Source::Union(all) => all.iter().all(Pipeline::is_repeatable),
        };
        let of_builds = self.joins().all(|join| join.build.is_repeatable());
        self.limit.is_none() && of_source && of_builds
    }

    /// Whether the same rows have the same output each time.
    fn has_repeatable_output(&self) -> bool {
        match &self.output {
            Output::Rows(_) | Output::Aggregate(_) => true,
            Output::Groups { aggregates, .. } | Output::GroupingSets { aggregates, .. } => {
                aggregates.iter().all(|aggregate| !matches!(aggregate.function, AggregateFunction::Foreign(_)))
            }
            Output::Sorted { order, .. } => order.skip == 0 && order.fetch.is_none(),
            Output::Windows { .. } => false,
        }
    }

    /// Its joins, in order.
    pub(crate) fn joins(&self) -> impl Iterator<Item = &Join> {
        self.steps.iter().filter_map(|step| match step {
            Step::Join(join) => Some(join),
            Step::Filter(_) => None,
        })
    }

    /// Of which join each column beyond those of the scan is, and which of its payload.
    pub(crate) fn payload(&self) -> impl Iterator<Item = (usize, usize)> {
        let joins = self.joins().enumerate();
        joins.flat_map(|(number, join)| (0..join.payload().len()).map(move |column| (number, column)))
    }

    /// The types of all columns.
    pub(crate) fn column_types(&self) -> Vec<LogicalType> {
        let mut types = self.scan_types();
        self.joins().for_each(|join| types.extend(join.payload_types()));
        types
    }

    /// The table's column that a column is, with the pipeline that scans it, however many joins it came through. `None`
    /// for what is computed and for row ids.
    pub(crate) fn origin(&self, column: usize) -> Option<(&dyn TableSource, usize)> {
        let Some(mut payload) = column.checked_sub(self.columns.len()) else {
            return match self.columns[column] {
                ScanColumn::Table(column) => self.source.origin(column),
                ScanColumn::Length(_) | ScanColumn::RowId => None,
            };
        };
        for join in self.joins() {
            match join.payload().get(payload) {
                Some(Expr::Column(column)) => return join.build.origin(*column),
                Some(_) => return None,
                None => payload -= join.payload().len(),
            }
        }
        None
    }

    /// The types of [`Pipeline::columns`].
    pub(crate) fn scan_types(&self) -> Vec<LogicalType> {
        self.source.types_of(&self.columns)
    }
}
