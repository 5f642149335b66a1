//! A pipeline in the making.

use super::columns::conjuncts;
use crate::provider::{Noted, StoredProvider};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::TableScan;
use sinter_exec::{Expr, Join, JoinKind, LogicalType, OnDamage, Output, Pipeline, ScanColumn, Source, Step};
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// A scan, for the transaction that wants to know what is read.
pub(crate) type NotedScan = (Noted, Vec<ScanColumn>, Vec<Expr>);

/// What a condition is taken to keep where nothing measures it.
pub(super) const KEPT_BY_A_CONDITION: f64 = 0.5;

/// Bytes of a text that is kept, and of what says where it is, where nothing is known of its length.
const TEXT_BYTES: usize = 56;

/// Bytes of a row in the index of a join, while it is made.
const INDEX_BYTES: usize = 12;

/// A plan on its way to a pipeline: what each of its output columns is, over the scanned columns and those of joins.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) source: Source,
    /// Of the table, where the source is one.
    noted: Option<Noted>,
    /// The scans of build sides and of what is grouped.
    others: Vec<NotedScan>,
    pub(super) columns: Vec<ScanColumn>,
    filter: Vec<Expr>,
    pub(super) steps: Vec<Step>,
    /// About how many rows the build side of each join has.
    pub(super) build_rows: Vec<f64>,
    pub(super) output: Vec<Expr>,
    pub(super) limit: Option<usize>,
    on_damage: OnDamage,
    /// Of all columns.
    types: Vec<LogicalType>,
    /// About how many rows come out, once somebody asked.
    rows: OnceCell<f64>,
    /// About how many bytes groups and build sides take at most.
    kept_bytes: usize,
}

/// How a part is joined with another one.
pub(super) struct How {
    pub(super) kind: JoinKind,
    /// Keys of ours.
    pub(super) ours: Vec<Expr>,
    /// The others', of the same types.
    pub(super) theirs: Vec<Expr>,
    pub(super) nulls_are_equal: bool,
    /// What else partners must fulfil; over our columns, then the others' output.
    pub(super) condition: Option<Expr>,
}

impl How {
    /// By keys alone, of which NULLs have no partner.
    pub(super) fn by_keys(kind: JoinKind, ours: Vec<Expr>, theirs: Vec<Expr>) -> How {
        How { kind, ours, theirs, nulls_are_equal: false, condition: None }
    }
}

impl Part {
    /// The scan of a table; `None` where the table is not ours, or cannot be read: DataFusion's scan then tells why.
    pub(super) fn of_scan(scan: &TableScan) -> Option<Part> {
        let provider = source_as_provider(&scan.source).ok()?;
        let table = (provider.as_ref() as &dyn std::any::Any).downcast_ref::<StoredProvider>()?;
        let projection: Vec<usize> = match &scan.projection {
            Some(projection) => projection.clone(),
            None => (0..table.column_count()).collect(),
        };
        let mut columns: Vec<ScanColumn> = projection.iter().map(|&index| table.scan_column(index)).collect();
        let output = (0..columns.len()).map(Expr::Column).collect();
        let filter = table.lower_filters(&scan.filters, &mut columns)?;
        let (source, noted) = table.source(&columns, &filter).ok()?;
        let source = Source::Table(source);
        Some(Part {
            types: source.types_of(&columns),
            source,
            noted: Some(noted),
            others: Vec::new(),
            columns,
            filter,
            steps: Vec::new(),
            build_rows: Vec::new(),
            output,
            limit: scan.fetch,
            on_damage: table.on_damage(),
            rows: OnceCell::new(),
            kept_bytes: 0,
        })
    }

    /// All rows of a source that is no table, with columns of these types.
    fn of_source(source: Source, types: Vec<LogicalType>, others: Vec<NotedScan>) -> Part {
        Part {
            source,
            noted: None,
            others,
            columns: (0..types.len()).map(ScanColumn::Table).collect(),
            filter: Vec::new(),
            steps: Vec::new(),
            build_rows: Vec::new(),
            output: (0..types.len()).map(Expr::Column).collect(),
            limit: None,
            on_damage: OnDamage::Fail,
            types,
            rows: OnceCell::new(),
            kept_bytes: 0,
        }
    }

    /// What is made of all rows of another part: groups of them, an order, windows.
    pub(super) fn of_gathered(part: Part, output: Output) -> Part {
        let kept_bytes = part.kept_bytes;
        let (pipeline, others) = part.pipeline_with(output);
        let types = pipeline.output_types();
        let kept_bytes = kept_bytes.saturating_add(pipeline.gathered_bytes_estimate());
        Part { kept_bytes, ..Part::of_source(Source::Gathered(Box::new(pipeline)), types, others) }
    }

    /// The rows of several parts, one after the other; `None` where their columns are of different types.
    pub(super) fn of_union(parts: Vec<Part>) -> Option<Part> {
        let types_of = |part: &Part| part.output.iter().map(|expr| part.type_of(expr)).collect::<Vec<_>>();
        let types = types_of(parts.first()?);
        if parts.iter().any(|part| types_of(part) != types) {
            return None;
        }
        let rows = parts.iter().map(Part::rows_estimate).sum::<f64>();
        let kept_bytes = parts.iter().map(|part| part.kept_bytes).fold(0, usize::saturating_add);
        let (mut all, mut others) = (Vec::with_capacity(parts.len()), Vec::new());
        for part in parts {
            let output = Output::Rows(part.output.clone());
            let (pipeline, noted) = part.pipeline_with(output);
            all.push(pipeline);
            others.extend(noted);
        }
        Some(Part { rows: OnceCell::from(rows), kept_bytes, ..Part::of_source(Source::Union(all), types, others) })
    }

    /// How many columns expressions can refer to.
    pub(super) fn column_count(&self) -> usize {
        self.types.len()
    }

    /// The type of an expression over the columns.
    pub(super) fn type_of(&self, expr: &Expr) -> LogicalType {
        expr.type_over(&self.types)
    }

    /// Whether a join can take its rows, and keep them.
    pub(super) fn can_be_joined(&self) -> bool {
        self.limit.is_none() && self.output.iter().all(|expr| self.type_of(expr).physical().is_some())
    }

    /// Keeps the rows for which a condition over the columns is true.
    pub(super) fn add_filter(&mut self, condition: Expr) {
        for condition in conjuncts(condition) {
            // Whatever joins do, they do it to each row of the scan alone, unless rows of theirs come out without any.
            if !self.has_rest() && condition.columns().iter().all(|&column| column < self.columns.len()) {
                self.filter.push(condition);
            } else {
                self.steps.push(Step::Filter(condition));
            }
            match self.steps.is_empty() {
                true => self.rows = OnceCell::new(),
                false => self.expect(self.rows_estimate() * KEPT_BY_A_CONDITION),
            }
        }
    }

    /// Whether some rows come out that no row of the scan stands before.
    pub(super) fn has_rest(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Join(join) if join.kind.has_rest()))
    }

    /// Adds the join with another part. Its output are the columns that ours gets.
    pub(super) fn join(&mut self, other: Part, how: How) {
        let How { kind, ours, theirs, nulls_are_equal, condition } = how;
        let width = |expr: &Expr| other.type_of(expr).physical().and_then(|physical| physical.value_bytes());
        let row: usize = theirs.iter().map(|key| width(key).unwrap_or(2 * TEXT_BYTES)).sum::<usize>()
            + other.output.iter().map(|expr| width(expr).unwrap_or(TEXT_BYTES)).sum::<usize>()
            + INDEX_BYTES;
        self.kept_bytes = self
            .kept_bytes
            .saturating_add(other.kept_bytes)
            .saturating_add(other.rows_estimate_max().saturating_mul(row));
        let types: Vec<LogicalType> = other.output.iter().map(|expr| other.type_of(expr)).collect();
        let output = Output::Rows(theirs.into_iter().chain(other.output.iter().cloned()).collect());
        self.build_rows.push(other.rows_estimate());
        let (build, noted) = other.pipeline_with(output);
        self.others.extend(noted);
        let join = Join { kind, build: Box::new(build), keys: ours, nulls_are_equal, condition };
        if join.adds_columns() {
            self.types.extend(types);
        }
        self.steps.push(Step::Join(join));
    }

    /// Whether no two rows have the same values of these expressions: the rows are groups, and these are their keys.
    pub(super) fn is_unique_by(&self, exprs: &[Expr]) -> bool {
        let Source::Gathered(inner) = &self.source else { return false };
        let keys = match &inner.output {
            Output::Groups { keys, .. } => keys.len(),
            Output::Aggregate(_) => 0,
            Output::Rows(_) | Output::GroupingSets { .. } | Output::Sorted { .. } | Output::Windows { .. } => {
                return false;
            }
        };
        let has = |key: usize| {
            let is_key = |expr: &Expr| match expr {
                Expr::Column(column) => self.columns.get(*column) == Some(&ScanColumn::Table(key)),
                _ => false,
            };
            exprs.iter().any(is_key)
        };
        let multiplies = |step: &Step| matches!(step, Step::Join(join) if join.kind.has_payload());
        (0..keys).all(has) && !self.steps.iter().any(multiplies)
    }

    /// About how many rows come out. Before anything is joined, the share that a filter keeps is measured.
    pub(super) fn rows_estimate(&self) -> f64 {
        *self.rows.get_or_init(|| {
            let scan = self.as_scan();
            let share = match self.filter.is_empty() {
                true => 1.0,
                // What cannot be read now will say so when the query runs, and groups are not there yet.
                false => scan.sample_share().unwrap_or(KEPT_BY_A_CONDITION),
            };
            scan.rows_estimate() as f64 * share
        })
    }

    /// Says how many rows come out.
    pub(super) fn expect(&mut self, rows: f64) {
        self.rows = OnceCell::from(rows);
    }

    /// No less than that, unless its joins multiply more than they seem to.
    fn rows_estimate_max(&self) -> usize {
        let joined = if self.steps.is_empty() { 0.0 } else { self.rows_estimate() };
        self.as_scan().rows_estimate().max(joined as usize)
    }

    /// About how many different lists of values these expressions have.
    pub(super) fn distinct_estimate<'a>(&self, exprs: impl IntoIterator<Item = &'a Expr>) -> f64 {
        let pipeline = self.as_pipeline(Output::Rows(Vec::new()));
        let of_expr = |expr: &Expr| match expr {
            Expr::Column(column) => pipeline.distinct_estimate(*column).map(|count| count as f64),
            _ => None,
        };
        let lists: f64 = exprs.into_iter().map(|expr| of_expr(expr).unwrap_or(f64::INFINITY)).product();
        lists.min(self.rows_estimate()).max(1.0)
    }

    /// About how long it takes to unpack what these expressions read, in nanoseconds a row.
    pub(super) fn unpacking_cost<'a>(&self, exprs: impl IntoIterator<Item = &'a Expr>) -> f64 {
        let columns: BTreeSet<usize> = exprs.into_iter().flat_map(Expr::columns).collect();
        self.as_scan().unpacking_cost(columns)
    }

    /// About how many bytes groups and build sides take at most.
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// Nothing is done with the rows of the source but that some of its columns may come out.
    fn is_bare(&self) -> bool {
        self.filter.is_empty() && self.steps.is_empty() && self.limit.is_none()
    }

    /// Whether its rows come in the order of an ORDER BY.
    pub(super) fn is_sorted(&self) -> bool {
        let is_sorted = |inner: &Pipeline| matches!(inner.output, Output::Sorted { .. });
        matches!(&self.source, Source::Gathered(inner) if is_sorted(inner)) && self.steps.is_empty()
    }

    /// Leaves out the first `skip` rows, and those after `fetch` more; `None` where it cannot.
    pub(super) fn limited(mut self, skip: usize, fetch: Option<usize>) -> Option<Part> {
        let is_bare = self.is_bare();
        if let Source::Gathered(inner) = &mut self.source
            && let Output::Sorted { order, .. } = &mut inner.output
            && is_bare
        {
            let left = order.fetch.map(|left| left.saturating_sub(skip));
            order.fetch = left.into_iter().chain(fetch).min();
            order.skip = order.skip.saturating_add(skip);
            self.rows = OnceCell::new();
            return Some(self);
        }
        self.limit = self.limit.into_iter().chain(fetch).min();
        (skip == 0).then_some(self)
    }

    /// The pipeline that hands out its rows, and all scans within it.
    pub(super) fn into_pipeline(mut self) -> (Pipeline, Vec<NotedScan>) {
        let is_bare = self.is_bare();
        let column = |expr: &Expr| if let Expr::Column(column) = expr { Some(*column) } else { None };
        let columns: Option<Vec<usize>> = self.output.iter().map(column).collect();
        // What was gathered needs nobody who scans it if it can come out as it is.
        match (self.source, columns) {
            (Source::Gathered(mut inner), Some(columns)) if is_bare => {
                if inner.keep_columns(&columns) {
                    return (*inner, self.others);
                }
                self.source = Source::Gathered(inner);
            }
            (source, _) => self.source = source,
        }
        let output = Output::Rows(self.output.clone());
        self.pipeline_with(output)
    }

    fn pipeline_with(self, output: Output) -> (Pipeline, Vec<NotedScan>) {
        let mut pipeline = self.as_pipeline(output).narrowed();
        let has_joins = pipeline.steps.iter().any(|step| matches!(step, Step::Join(_)));
        if let (Source::Table(table), false) = (&mut pipeline.source, has_joins)
            && let Some(without) = table.without_finder()
        {
            // It holds a state of indexes and trees.
            *table = without;
        }
        let own = self.noted.map(|noted| (noted, self.columns, self.filter));
        (pipeline, own.into_iter().chain(self.others).collect())
    }

    pub(super) fn as_pipeline(&self, output: Output) -> Pipeline {
        Pipeline { steps: self.steps.clone(), output, limit: self.limit, ..self.as_scan() }
    }

    /// The scan and its filter alone.
    fn as_scan(&self) -> Pipeline {
        Pipeline {
            source: self.source.clone(),
            columns: self.columns.clone(),
            filter: self.filter.clone(),
            steps: Vec::new(),
            output: Output::Rows(Vec::new()),
            limit: None,
            on_damage: self.on_damage.clone(),
        }
    }
}
