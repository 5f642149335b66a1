//! DataFusion's optimised logical plans as pipelines of our engine.
//!
//! [`lower`] walks a plan once, from its leaves up. What is [`Ours`] grows from a scan with each node that can be put on
//! top of it; where a node cannot, what is below it becomes a scan of a [`PipelineTable`], and the node stays
//! DataFusion's. A node is looked at once: what is not ours is not tried again from further above.
//!
//! A [`Part`] is a pipeline in the making. Inner joins stay apart as a list of parts ([`Inner`]) until something other
//! than a filter or a projection comes on top of them, and only then get their order.

mod aggregate;
mod columns;
mod expr;
mod grouping_sets;
mod inner;
mod join;
mod join_order;
mod part;
mod reduce;
mod scalar;
mod subquery;
mod window;

pub(crate) use columns::lower_filters;
pub(crate) use expr::{argument_type, can_run_anywhere};
pub(crate) use part::NotedScan;
pub(crate) use scalar::{from_datafusion, to_datafusion};

use crate::dependent_join::has_one_row_at_most;
use crate::provider::PipelineTable;
use columns::lower_all;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchemaRef, Result, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Aggregate, Expr as DfExpr, LogicalPlan, Sort, TableScan};
use expr::Scope;
use inner::Inner;
use part::Part;
use sinter_exec::{Expr, LogicalType, Order, Output};
use std::cell::Cell;
use std::sync::Arc;

/// A plan with everything that the engine can run as pipelines.
pub(crate) struct Lowered {
    pub(crate) plan: LogicalPlan,
    /// Something is left to DataFusion because it might take too much memory.
    pub(crate) is_large: bool,
}

/// Lowers a plan. DataFusion keeps what might take more than `bytes_max`, since it can spill.
///
/// # Errors
/// None of its own; DataFusion's tree walk wants to be able to fail.
pub(crate) fn lower(plan: &LogicalPlan, bytes_max: usize) -> Result<Lowered> {
    let (scans, is_large) = (Cell::new(0), Cell::new(false));
    let walk = Walk { bytes_max, joins: true, sorts: true, scans: &scans, is_large: &is_large };
    let plan = match walk.through(plan)? {
        Walked::Ours(ours) => match walk.part(&ours).cloned() {
            // Nothing stands above that could bring rows into an order, so they keep the order of the table.
            Some(part) => walk.scan_of(part, true, plan.schema()),
            None => walk.without_joins(plan),
        },
        Walked::Theirs(plan) => Ok(plan),
    };
    Ok(Lowered { plan: plan?, is_large: is_large.get() })
}

/// What is ours of a plan, on its way to a pipeline.
#[derive(Clone)]
enum Ours {
    Part(Part),
    Inner(Inner),
}

impl Ours {
    /// As one part, however much memory it takes.
    fn as_part(&self) -> &Part {
        match self {
            Ours::Part(part) => part,
            Ours::Inner(inner) => inner.ordered(),
        }
    }

    /// As inputs of inner joins; `None` where a join cannot take it.
    fn into_inner(self) -> Option<Inner> {
        match self {
            Ours::Part(part) => Inner::of_part(part),
            Ours::Inner(inner) => Some(inner),
        }
    }

    /// What its columns are.
    fn output(&self) -> &[Expr] {
        match self {
            Ours::Part(part) => &part.output,
            Ours::Inner(inner) => inner.output(),
        }
    }

    fn with_output(&self, output: Vec<Expr>) -> Ours {
        let mut ours = self.clone();
        match &mut ours {
            Ours::Part(part) => part.output = output,
            Ours::Inner(inner) => inner.set_output(output),
        }
        ours
    }

    /// The rows for which a condition over the columns is true; `None` where these rows are limited in number.
    fn filtered(&self, condition: Expr) -> Option<Ours> {
        let mut ours = self.clone();
        match &mut ours {
            Ours::Part(part) if part.limit.is_some() => return None,
            Ours::Part(part) => part.add_filter(condition),
            Ours::Inner(inner) => inner.add_conditions(condition),
        }
        Some(ours)
    }
}

/// What has become of a plan.
enum Walked {
    Ours(Ours),
    /// With scans of pipelines where something below is ours.
    Theirs(LogicalPlan),
}

/// A walk through a plan.
struct Walk<'a> {
    /// What a part may keep in memory.
    bytes_max: usize,
    /// Whether joins are taken.
    joins: bool,
    /// Whether orders are.
    sorts: bool,
    /// How many scans of pipelines there are.
    scans: &'a Cell<usize>,
    /// Whether something would take more.
    is_large: &'a Cell<bool>,
}

impl Walk<'_> {
    fn through(&self, plan: &LogicalPlan) -> Result<Walked> {
        let inputs = plan.inputs();
        let below = inputs.iter().map(|input| self.through(input)).collect::<Result<Vec<_>>>()?;
        let ours = below.iter().map(|walked| match walked {
            Walked::Ours(ours) => Some(ours),
            Walked::Theirs(_) => None,
        });
        if let Some(ours) = ours.collect::<Option<Vec<_>>>().and_then(|ours| self.on_top(plan, &ours)) {
            return Ok(Walked::Ours(ours));
        }
        let mut below = below.into_iter().zip(inputs).map(|(walked, input)| match walked {
            // A bare scan gains nothing: the provider makes a pipeline of it anyway.
            Walked::Ours(_) if matches!(input, LogicalPlan::TableScan(_)) => Ok(input.clone()),
            Walked::Ours(ours) => match self.part(&ours) {
                // DataFusion does not know of the order, and might lose it.
                Some(part) if part.is_sorted() => Walk { sorts: false, ..*self }.plan(input),
                Some(part) => self.scan_of(part.clone(), false, input.schema()),
                None => self.without_joins(input),
            },
            Walked::Theirs(plan) => Ok(plan),
        });
        let plan = plan.clone().map_children(|input| match below.next() {
            Some(walked) => walked.map(Transformed::yes),
            None => Ok(Transformed::no(input)),
        })?;
        let plan = plan.data.map_subqueries(|subquery| match self.through(&subquery)? {
            Walked::Theirs(subquery) => Ok(Transformed::yes(subquery)),
            Walked::Ours(_) => Ok(Transformed::no(subquery)),
        })?;
        Ok(Walked::Theirs(plan.data))
    }

    /// The plan of a tree of joins that would take too much memory.
    fn without_joins(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        match (Walk { joins: false, ..*self }).through(plan)? {
            Walked::Theirs(plan) => Ok(plan),
            Walked::Ours(_) => Ok(plan.clone()),
        }
    }

    /// A plan with scans of pipelines, or as one.
    fn plan(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        match self.through(plan)? {
            Walked::Theirs(plan) => Ok(plan),
            Walked::Ours(ours) => match self.part(&ours) {
                Some(part) => self.scan_of(part.clone(), false, plan.schema()),
                None => self.without_joins(plan),
            },
        }
    }

    /// A node on top of what is ours; `None` where that is more than the engine can do.
    fn on_top(&self, plan: &LogicalPlan, inputs: &[&Ours]) -> Option<Ours> {
        match (plan, inputs) {
            (LogicalPlan::TableScan(scan), []) => Part::of_scan(scan).map(Ours::Part),
            (LogicalPlan::SubqueryAlias(_), [input]) => Some((*input).clone()),
            (LogicalPlan::Filter(filter), [input]) => {
                self.with_subqueries(input, &[&filter.predicate], filter.input.schema(), |input, scope| {
                    input.filtered(scope.lower(&filter.predicate)?)
                })
            }
            (LogicalPlan::Projection(projection), [input]) => {
                let exprs: Vec<&DfExpr> = projection.expr.iter().collect();
                self.with_subqueries(input, &exprs, projection.input.schema(), |input, scope| {
                    Some(input.with_output(lower_all(exprs.iter().copied(), scope)?))
                })
            }
            (LogicalPlan::Limit(limit), [input]) => {
                let number = |expr: &Option<Box<DfExpr>>| expr.as_deref().map(row_number);
                let (skip, fetch) = (number(&limit.skip), number(&limit.fetch));
                let skip = skip.map_or(Some(0), |skip| skip)?;
                let fetch = fetch.map_or(Some(None), |fetch| fetch.map(Some))?;
                if skip == 0 && fetch != Some(0) && has_one_row_at_most(&limit.input).unwrap_or(false) {
                    return Some((*input).clone());
                }
                Some(Ours::Part(self.part(input)?.clone().limited(skip, fetch)?))
            }
            (LogicalPlan::Sort(sort), [input])
                if sort.fetch != Some(0) && has_one_row_at_most(&sort.input).unwrap_or(false) =>
            {
                Some((*input).clone())
            }
            (LogicalPlan::Sort(sort), [input]) if self.sorts => self.if_it_fits(sorted(sort, self.part(input)?)?),
            (LogicalPlan::Join(join), [left, right]) if self.joins => {
                if inner::is_inner(join) {
                    return Inner::of_join(join, (*left).clone(), (*right).clone()).map(Ours::Inner);
                }
                let right = self.part(right)?;
                if let Ours::Inner(inner) = left
                    && let Some(reduced) = inner.reduced(join, right)
                {
                    return Some(Ours::Inner(reduced));
                }
                let left = self.part(left)?;
                self.if_it_fits(join::of(join, left.clone(), right.clone())?)
            }
            (LogicalPlan::Window(node), [input]) => self.if_it_fits(window::lower(node, self.part(input)?)?),
            (LogicalPlan::Union(_), inputs) => {
                let parts = inputs.iter().map(|input| self.part(input).cloned()).collect::<Option<_>>()?;
                self.if_it_fits(Part::of_union(parts)?)
            }
            (LogicalPlan::Aggregate(aggregate), [input]) => self.if_it_fits(grouped(aggregate, self.part(input)?)?),
            _ => None,
        }
    }

    /// A scan that runs a part and has the schema of the plan it replaces. No two have the same name: DataFusion takes
    /// subqueries for equal when their tables have equal names.
    fn scan_of(&self, part: Part, is_whole: bool, schema: &DFSchemaRef) -> Result<LogicalPlan> {
        let (pipeline, noted) = part.into_pipeline();
        let in_table_order = is_whole && !pipeline.needs_preparation();
        let table = PipelineTable::new(pipeline, in_table_order, Arc::new(schema.as_arrow().clone()), noted);
        let number = self.scans.replace(self.scans.get() + 1);
        Ok(LogicalPlan::TableScan(TableScan {
            table_name: TableReference::bare(format!("pipeline {number}")),
            source: provider_as_source(Arc::new(table)),
            projection: None,
            projected_schema: Arc::clone(schema),
            filters: Vec::new(),
            fetch: None,
            statistics_requests: Default::default(),
        }))
    }

    /// As one part; `None` where it might take too much memory.
    fn part<'o>(&self, ours: &'o Ours) -> Option<&'o Part> {
        let part = ours.as_part();
        self.fits(part).then_some(part)
    }

    fn if_it_fits(&self, part: Part) -> Option<Ours> {
        self.fits(&part).then_some(Ours::Part(part))
    }

    fn fits(&self, part: &Part) -> bool {
        let fits = part.kept_bytes() <= self.bytes_max;
        self.is_large.set(self.is_large.get() || !fits);
        fits
    }
}

/// The groups of rows, or the one row that all of them make.
fn grouped(aggregate: &Aggregate, part: &Part) -> Option<Part> {
    if part.limit.is_some() {
        return None;
    }
    let scope = Scope::new(aggregate.input.schema(), &part.output);
    let aggregates: Vec<_> =
        aggregate.aggr_expr.iter().map(|expr| aggregate::lower(expr, &scope)).collect::<Option<_>>()?;
    if let [DfExpr::GroupingSet(sets)] = &aggregate.group_expr[..] {
        return grouping_sets::lower(part, sets, aggregates, aggregate.schema.fields(), &scope);
    }
    let keys = aggregate.group_expr.iter().map(|key| group_key(key, &scope)).collect::<Option<Vec<_>>>()?;
    Some(Part::of_gathered(part.clone(), aggregate::output(keys, aggregates)))
}

/// The rows in an order.
fn sorted(sort: &Sort, part: &Part) -> Option<Part> {
    if !part.can_be_joined() {
        return None;
    }
    let scope = Scope::new(sort.input.schema(), &part.output);
    let keys = window::sort_keys(&sort.expr, &scope)?;
    let order = Order { keys, skip: 0, fetch: sort.fetch };
    Some(Part::of_gathered(part.clone(), Output::Sorted { rows: part.output.clone(), order }))
}

/// What rows are grouped or sorted by; `None` for lists, structs and intervals, and where it is not ours.
fn group_key(expr: &DfExpr, scope: &Scope<'_>) -> Option<Expr> {
    if is_key(expr, scope) { scope.lower(expr) } else { None }
}

/// Whether rows can be grouped and joined by values of an expression's type.
fn is_key(expr: &DfExpr, scope: &Scope<'_>) -> bool {
    scope.type_of(expr).is_some_and(|ty| ty.physical().is_some() && ty != LogicalType::Interval)
}

/// A number of rows.
fn row_number(expr: &DfExpr) -> Option<usize> {
    match expr {
        DfExpr::Literal(value, _) => match from_datafusion(value)?.0 {
            sinter_codec::Scalar::Int(number) => usize::try_from(number).ok(),
            _ => None,
        },
        _ => None,
    }
}
