//! DataFusion's optimised logical plans as pipelines of our engine.
//!
//! [`lower`] walks a plan from the top and replaces the largest parts that the engine can run by scans of a
//! [`PipelineTable`]; what is left around them stays DataFusion's. A part that can be lowered is a table scan, or joins
//! of such parts, under any number of filters, projections and aliases, topped by at most one aggregate or limit.

mod aggregate;
mod expr;
mod inner;
mod join;
mod join_order;
mod scalar;

pub(crate) use expr::{argument_type, can_run_anywhere};
pub(crate) use scalar::{from_datafusion, to_datafusion};

use crate::foreign::ScalarFunction;
use crate::provider::{ColumnTableProvider, Noted, PipelineTable};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, Result, TableReference};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::{Expr as DfExpr, Limit, LogicalPlan, TableScan};
use expr::Scope;
use sinter_exec::{Expr, LogicalType, OnDamage, Output, Pipeline, ScanColumn, Source, Step};
use std::sync::Arc;

/// Projections one above the other become one; beyond so many parts of expressions DataFusion runs them one by one.
const OUTPUT_NODES_MAX: usize = 4096;

/// `plan` with everything that the engine can run as pipelines. DataFusion keeps GROUP BY and joins that might take more
/// than `bytes_max`, since it can spill.
///
/// # Errors
/// None of its own; DataFusion's tree walk wants to be able to fail.
pub(crate) fn lower(plan: LogicalPlan, bytes_max: usize) -> Result<LogicalPlan> {
    let fits = |lowered: &Lowered| lowered.pipeline.kept_bytes_estimate() <= bytes_max;
    if let Some(lowered) = pipeline_of(&plan).filter(fits) {
        // Nothing stands above that could bring rows into an order, so they keep the order of the table.
        let in_table_order = !lowered.pipeline.needs_preparation();
        return scan_of(lowered, in_table_order, plan.schema());
    }
    let plan = plan.transform_down(|plan| {
        // A bare scan gains nothing: the provider makes a pipeline of it anyway.
        if matches!(plan, LogicalPlan::TableScan(_)) {
            return Ok(Transformed::no(plan));
        }
        match pipeline_of(&plan).filter(fits) {
            Some(lowered) => {
                let scan = scan_of(lowered, false, plan.schema())?;
                Ok(Transformed::new(scan, true, TreeNodeRecursion::Jump))
            }
            None => Ok(Transformed::no(plan)),
        }
    })?;
    Ok(plan.data)
}

/// A pipeline, and for aggregates what is computed from their rows.
struct Lowered {
    pipeline: Pipeline,
    finish: Option<Vec<ScalarFunction>>,
    noted: Vec<NotedScan>,
}

/// A scan, for the transaction that wants to know what is read.
pub(crate) type NotedScan = (Noted, Vec<ScanColumn>, Vec<Expr>);

/// A scan that runs `pipeline` and has the schema of the plan it replaces.
fn scan_of(lowered: Lowered, in_table_order: bool, schema: &DFSchemaRef) -> Result<LogicalPlan> {
    let Lowered { pipeline, finish, noted } = lowered;
    let table = PipelineTable::new(pipeline, finish, in_table_order, Arc::new(schema.as_arrow().clone()), noted);
    Ok(LogicalPlan::TableScan(TableScan {
        table_name: TableReference::bare("pipeline"),
        source: provider_as_source(Arc::new(table)),
        projection: None,
        projected_schema: Arc::clone(schema),
        filters: Vec::new(),
        fetch: None,
        statistics_requests: Default::default(),
    }))
}

/// A plan on its way to a pipeline: what each of its output columns is, over the scanned columns.
struct Part {
    source: Source,
    /// Of the table, where the source is one.
    noted: Option<Noted>,
    /// The scans of build sides and of what is grouped.
    others: Vec<NotedScan>,
    columns: Vec<ScanColumn>,
    filter: Vec<Expr>,
    steps: Vec<Step>,
    output: Vec<Expr>,
    limit: Option<usize>,
    on_damage: OnDamage,
}

impl Part {
    /// How many columns expressions can refer to.
    fn column_count(&self) -> usize {
        self.columns.len() + join::payload_count(&self.steps)
    }

    /// The type of an expression over the columns.
    fn type_of(&self, expr: &Expr) -> LogicalType {
        self.as_pipeline(Output::Rows(Vec::new())).type_of(expr)
    }

    /// Keeps the rows for which a condition over the columns is true.
    fn add_filter(&mut self, condition: Expr) {
        for condition in conjuncts(condition) {
            match condition.columns().iter().all(|&column| column < self.columns.len()) {
                // Whatever joins do, they do it to each row of the scan alone.
                true => self.filter.push(condition),
                false => self.steps.push(Step::Filter(condition)),
            }
        }
    }

    fn as_pipeline(&self, output: Output) -> Pipeline {
        Pipeline {
            source: self.source.clone(),
            columns: self.columns.clone(),
            filter: self.filter.clone(),
            steps: self.steps.clone(),
            output,
            limit: self.limit,
            on_damage: self.on_damage.clone(),
        }
    }

    /// The pipeline that hands out `output`.
    fn lowered(self, output: Output) -> Lowered {
        let pipeline = self.as_pipeline(output);
        let own = self.noted.map(|noted| (noted, self.columns, self.filter));
        let noted = own.into_iter().chain(self.others).collect();
        Lowered { pipeline, finish: None, noted }
    }
}

/// The whole plan as one pipeline; `None` where some part of it is not ours.
fn pipeline_of(plan: &LogicalPlan) -> Option<Lowered> {
    if let Some(lowered) = aggregate_of(plan) {
        return Some(lowered);
    }
    let part = part_of(plan)?;
    let output = Output::Rows(part.output.clone());
    Some(part.lowered(output))
}

/// An aggregate, with whatever is computed from its rows.
fn aggregate_of(plan: &LogicalPlan) -> Option<Lowered> {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => aggregate_of(&alias.input),
        LogicalPlan::Projection(projection) => {
            let inner = aggregate_of(&projection.input)?;
            if inner.finish.is_some() || !projection.expr.iter().all(can_run_anywhere) {
                return None;
            }
            let schema = projection.input.schema();
            let names = schema.columns();
            let finish = projection.expr.iter().map(|expr| ScalarFunction::new(expr, schema, &names));
            Some(Lowered { finish: Some(finish.collect::<Option<Vec<_>>>()?), ..inner })
        }
        LogicalPlan::Aggregate(aggregate) => {
            let part = part_of(&aggregate.input)?;
            if part.limit.is_some() {
                return None;
            }
            let scope = Scope { schema: aggregate.input.schema(), columns: &part.output };
            let aggregates =
                aggregate.aggr_expr.iter().map(|expr| aggregate::lower(expr, &scope)).collect::<Option<Vec<_>>>()?;
            let keys = aggregate.group_expr.iter().map(|key| group_key(key, &scope)).collect::<Option<Vec<_>>>()?;
            let output = match keys.is_empty() {
                true => Output::Aggregate(aggregates),
                false => Output::Groups { keys, aggregates },
            };
            Some(part.lowered(output))
        }
        _ => None,
    }
}

/// What rows are grouped by; `None` for lists, structs and intervals, and where it is not ours.
fn group_key(expr: &DfExpr, scope: &Scope<'_>) -> Option<Expr> {
    if is_key(expr, scope) { scope.lower(expr) } else { None }
}

/// Whether rows can be grouped and joined by values of an expression's type.
fn is_key(expr: &DfExpr, scope: &Scope<'_>) -> bool {
    scope.type_of(expr).is_some_and(|ty| ty.physical().is_some() && ty != LogicalType::Interval)
}

fn part_of(plan: &LogicalPlan) -> Option<Part> {
    match plan {
        LogicalPlan::TableScan(scan) => scan_part(scan),
        LogicalPlan::SubqueryAlias(alias) => part_of(&alias.input),
        LogicalPlan::Filter(filter) => {
            let mut part = part_of(&filter.input)?;
            if part.limit.is_some() {
                return None;
            }
            let scope = Scope { schema: filter.input.schema(), columns: &part.output };
            let condition = scope.lower(&filter.predicate)?;
            part.add_filter(condition);
            Some(part)
        }
        LogicalPlan::Projection(projection) => {
            let part = part_of(&projection.input)?;
            let scope = Scope { schema: projection.input.schema(), columns: &part.output };
            let output = projection.expr.iter().map(|expr| scope.lower(expr)).collect::<Option<Vec<_>>>()?;
            // A column that is used twice above is computed twice here, and so on for every projection in the chain.
            let mut nodes = 0;
            output.iter().for_each(|expr| count_nodes(expr, &mut nodes));
            (nodes <= OUTPUT_NODES_MAX).then_some(Part { output, ..part })
        }
        LogicalPlan::Join(join) => join::part(join),
        LogicalPlan::Aggregate(_) => aggregate_of(plan).and_then(groups_part),
        LogicalPlan::Limit(limit) => {
            let mut part = part_of(&limit.input)?;
            let rows = fetch_without_skip(limit)?;
            part.limit = Some(part.limit.map_or(rows, |inner| inner.min(rows)));
            Some(part)
        }
        _ => None,
    }
}

/// Groups as the source of what is above them.
fn groups_part(lowered: Lowered) -> Option<Part> {
    let Lowered { pipeline, finish: None, noted } = lowered else { return None };
    let Output::Groups { .. } = &pipeline.output else { return None };
    let width = pipeline.output_types().len();
    Some(Part {
        source: Source::Groups(Box::new(pipeline)),
        noted: None,
        others: noted,
        columns: (0..width).map(ScanColumn::Table).collect(),
        filter: Vec::new(),
        steps: Vec::new(),
        output: (0..width).map(Expr::Column).collect(),
        limit: None,
        on_damage: OnDamage::Fail,
    })
}

fn scan_part(scan: &TableScan) -> Option<Part> {
    let provider = source_as_provider(&scan.source).ok()?;
    let table = (provider.as_ref() as &dyn std::any::Any).downcast_ref::<ColumnTableProvider>()?;
    let projection: Vec<usize> = match &scan.projection {
        Some(projection) => projection.clone(),
        None => (0..table.column_count()).collect(),
    };
    let mut columns: Vec<ScanColumn> = projection.iter().map(|&index| table.scan_column(index)).collect();
    let output: Vec<Expr> = (0..columns.len()).map(Expr::Column).collect();
    let filter = table.lower_filters(&scan.filters, &mut columns)?;
    let (source, noted, on_damage) = (table.source(), table.noted(), table.on_damage());
    let (others, steps) = (Vec::new(), Vec::new());
    let (source, noted) = (Source::Table(source), Some(noted));
    Some(Part { source, noted, others, columns, filter, steps, output, limit: scan.fetch, on_damage })
}

/// A condition as the list of what must hold.
pub(crate) fn conjuncts(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::And(parts) => parts.into_iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

/// Filters over a table's own schema, whose columns are appended to `columns` where the scan has them not yet.
pub(crate) fn lower_filters(
    filters: &[DfExpr],
    schema: &datafusion::common::DFSchema,
    scan_column: &dyn Fn(usize) -> ScanColumn,
    columns: &mut Vec<ScanColumn>,
) -> Option<Vec<Expr>> {
    let all: Vec<Expr> = (0..schema.fields().len())
        .map(|index| {
            let wanted = scan_column(index);
            let position = columns.iter().position(|column| *column == wanted).unwrap_or(usize::MAX - index);
            Expr::Column(position)
        })
        .collect();
    let scope = Scope { schema, columns: &all };
    let mut lowered = Vec::new();
    for filter in filters {
        lowered.extend(conjuncts(scope.lower(&unqualified(filter))?));
    }
    for expr in &mut lowered {
        visit_columns(expr, &mut |position| {
            if *position > usize::MAX / 2 {
                let wanted = scan_column(usize::MAX - *position);
                *position = columns.iter().position(|column| *column == wanted).unwrap_or_else(|| {
                    columns.push(wanted);
                    columns.len() - 1
                });
            }
        });
    }
    Some(lowered)
}

fn unqualified(expr: &DfExpr) -> DfExpr {
    let stripped = expr.clone().transform(|expr| {
        Ok(match expr {
            DfExpr::Column(column) if column.relation.is_some() => {
                Transformed::yes(DfExpr::Column(datafusion::common::Column::from_name(column.name)))
            }
            other => Transformed::no(other),
        })
    });
    stripped.map(|stripped| stripped.data).unwrap_or_else(|_| expr.clone())
}

fn count_nodes(expr: &Expr, nodes: &mut usize) {
    *nodes += 1;
    expr.children().into_iter().for_each(|child| count_nodes(child, nodes));
}

/// Calls `visit` for the position of each column in an expression.
fn visit_columns(expr: &mut Expr, visit: &mut dyn FnMut(&mut usize)) {
    match expr {
        Expr::Column(position) => visit(position),
        Expr::Literal(..) => {}
        Expr::Compare(_, left, right) | Expr::Arithmetic { left, right, .. } => {
            visit_columns(left, visit);
            visit_columns(right, visit);
        }
        Expr::And(parts) | Expr::Or(parts) => parts.iter_mut().for_each(|part| visit_columns(part, visit)),
        Expr::Not(inner) | Expr::IsNull(inner) | Expr::IsNotNull(inner) => visit_columns(inner, visit),
        Expr::InList { expr, .. } | Expr::Like { expr, .. } | Expr::Cast { expr, .. } => visit_columns(expr, visit),
        Expr::Case { branches, otherwise, .. } => {
            for (condition, result) in branches {
                visit_columns(condition, visit);
                visit_columns(result, visit);
            }
            if let Some(otherwise) = otherwise {
                visit_columns(otherwise, visit);
            }
        }
        Expr::Foreign { arguments, .. } => arguments.iter_mut().for_each(|part| visit_columns(part, visit)),
    }
}

/// The same expression over other columns.
fn with_columns(expr: &Expr, column: &dyn Fn(usize) -> Expr) -> Expr {
    let with = |expr: &Expr| with_columns(expr, column);
    let boxed = |expr: &Expr| Box::new(with_columns(expr, column));
    let all = |parts: &[Expr]| parts.iter().map(with).collect::<Vec<_>>();
    match expr {
        Expr::Column(position) => column(*position),
        Expr::Literal(..) => expr.clone(),
        Expr::Compare(op, left, right) => Expr::Compare(*op, boxed(left), boxed(right)),
        Expr::Arithmetic { op, left, right, ty } => {
            Expr::Arithmetic { op: *op, left: boxed(left), right: boxed(right), ty: ty.clone() }
        }
        Expr::And(parts) => Expr::And(all(parts)),
        Expr::Or(parts) => Expr::Or(all(parts)),
        Expr::Not(inner) => Expr::Not(boxed(inner)),
        Expr::IsNull(inner) => Expr::IsNull(boxed(inner)),
        Expr::IsNotNull(inner) => Expr::IsNotNull(boxed(inner)),
        Expr::InList { expr, list, has_null, negated } => {
            Expr::InList { expr: boxed(expr), list: list.clone(), has_null: *has_null, negated: *negated }
        }
        Expr::Like { expr, pattern, negated, case_insensitive } => Expr::Like {
            expr: boxed(expr),
            pattern: pattern.clone(),
            negated: *negated,
            case_insensitive: *case_insensitive,
        },
        Expr::Cast { expr, ty } => Expr::Cast { expr: boxed(expr), ty: ty.clone() },
        Expr::Case { branches, otherwise, ty } => Expr::Case {
            branches: branches.iter().map(|(condition, result)| (with(condition), with(result))).collect(),
            otherwise: otherwise.as_deref().map(boxed),
            ty: ty.clone(),
        },
        Expr::Foreign { function, arguments, ty } => {
            Expr::Foreign { function: Arc::clone(function), arguments: all(arguments), ty: ty.clone() }
        }
    }
}

fn fetch_without_skip(limit: &Limit) -> Option<usize> {
    let number = |expr: &DfExpr| match expr {
        DfExpr::Literal(value, _) => match from_datafusion(value)?.0 {
            sinter_codec::Scalar::Int(number) => usize::try_from(number).ok(),
            _ => None,
        },
        _ => None,
    };
    match &limit.skip {
        Some(skip) if number(skip)? != 0 => return None,
        _ => {}
    }
    number(limit.fetch.as_deref()?)
}
