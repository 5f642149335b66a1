//! Trees of inner joins, taken apart and put together in a better order.

use super::expr::Scope;
use super::join_order::{Edge, Tree, cheapest};
use super::{Part, conjuncts, is_key, part_of, with_columns};
use datafusion::common::{JoinType, NullEquality};
use datafusion::logical_expr::{Join as DfJoin, LogicalPlan};
use sinter_codec::CompareOp;
use sinter_exec::{Expr, JoinKind, Output};
use std::collections::{BTreeMap, BTreeSet};

/// Inputs of inner joins, with all that is asked of their rows. Their output columns are numbered one input after the
/// other.
struct Inner {
    parts: Vec<Part>,
    /// Keys that must be equal.
    equal: Vec<[Expr; 2]>,
    /// What else must be true.
    conditions: Vec<Expr>,
    output: Vec<Expr>,
}

/// Whether a plan is an inner join, under whatever only renames, computes or filters.
pub(super) fn is_inner(join: &DfJoin) -> bool {
    join.join_type == JoinType::Inner && !join.on.is_empty() && join.null_equality == NullEquality::NullEqualsNothing
}

/// A tree of inner joins as one part; `None` where some of it is not ours, or where an order cannot be told.
pub(super) fn part(join: &DfJoin) -> Option<Part> {
    of_join(join)?.ordered()
}

fn is_tree(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(join) => is_inner(join),
        LogicalPlan::SubqueryAlias(alias) => is_tree(&alias.input),
        LogicalPlan::Projection(projection) => is_tree(&projection.input),
        LogicalPlan::Filter(filter) => is_tree(&filter.input),
        _ => false,
    }
}

fn of_plan(plan: &LogicalPlan) -> Option<Inner> {
    match plan {
        LogicalPlan::SubqueryAlias(alias) if is_tree(plan) => of_plan(&alias.input),
        LogicalPlan::Projection(projection) if is_tree(plan) => {
            let inner = of_plan(&projection.input)?;
            let scope = Scope { schema: projection.input.schema(), columns: &inner.output };
            let output = projection.expr.iter().map(|expr| scope.lower(expr)).collect::<Option<Vec<_>>>()?;
            Some(Inner { output, ..inner })
        }
        LogicalPlan::Filter(filter) if is_tree(plan) => {
            let mut inner = of_plan(&filter.input)?;
            let scope = Scope { schema: filter.input.schema(), columns: &inner.output };
            let condition = scope.lower(&filter.predicate)?;
            inner.conditions.extend(conjuncts(condition));
            Some(inner)
        }
        LogicalPlan::Join(join) if is_inner(join) => of_join(join),
        _ => {
            let part = part_of(plan)?;
            let plain = part.output.iter().all(|expr| part.type_of(expr).physical().is_some());
            let output = (0..part.output.len()).map(Expr::Column).collect();
            (plain && part.limit.is_none()).then(|| Inner {
                parts: vec![part],
                equal: Vec::new(),
                conditions: Vec::new(),
                output,
            })
        }
    }
}

fn of_join(join: &DfJoin) -> Option<Inner> {
    let (mut inner, right) = (of_plan(&join.left)?, of_plan(&join.right)?);
    let width: usize = inner.parts.iter().map(|part| part.output.len()).sum();
    let moved = |expr: &Expr| with_columns(expr, &|column| Expr::Column(width + column));
    let right_output: Vec<Expr> = right.output.iter().map(moved).collect();
    let left_scope = Scope { schema: join.left.schema(), columns: &inner.output };
    let right_scope = Scope { schema: join.right.schema(), columns: &right_output };
    let mut equal = Vec::new();
    for (left, right) in &join.on {
        let same_type = left_scope.type_of(left) == right_scope.type_of(right);
        if !same_type || !is_key(left, &left_scope) {
            return None;
        }
        equal.push([left_scope.lower(left)?, right_scope.lower(right)?]);
    }
    inner.equal.extend(equal);
    inner.equal.extend(right.equal.iter().map(|[one, other]| [moved(one), moved(other)]));
    inner.conditions.extend(right.conditions.iter().map(moved));
    inner.parts.extend(right.parts);
    inner.output.extend(right_output);
    if let Some(condition) = &join.filter {
        let scope = Scope { schema: &join.schema, columns: &inner.output };
        let condition = scope.lower(condition)?;
        inner.conditions.extend(conjuncts(condition));
    }
    Some(inner)
}

/// Columns of the inputs, as they stand in a part that was made of some of them.
struct Joined {
    part: Part,
    columns: BTreeMap<usize, Expr>,
}

impl Inner {
    /// The first column of each input, and the number of all columns.
    fn starts(&self) -> Vec<usize> {
        let mut starts = vec![0];
        for part in &self.parts {
            starts.push(starts[starts.len() - 1] + part.output.len());
        }
        starts
    }

    /// The one input whose columns an expression reads; `None` where it reads those of several, or none.
    fn input_of(starts: &[usize], expr: &Expr) -> Option<usize> {
        let columns = expr.columns();
        let (first, last) = (columns.first()?, columns.last()?);
        let input = starts.iter().rposition(|start| start <= first)?;
        (*last < starts[input + 1]).then_some(input)
    }

    fn ordered(mut self) -> Option<Part> {
        let starts = self.starts();
        // What concerns one input is asked before anything is joined.
        for condition in std::mem::take(&mut self.conditions) {
            match Inner::input_of(&starts, &condition) {
                Some(input) => {
                    let part = &mut self.parts[input];
                    let condition = with_columns(&condition, &|column| part.output[column - starts[input]].clone());
                    part.add_filter(condition);
                }
                None => self.conditions.push(condition),
            }
        }
        let mut edges: BTreeMap<[usize; 2], Vec<[Expr; 2]>> = BTreeMap::new();
        for [one, other] in std::mem::take(&mut self.equal) {
            match (Inner::input_of(&starts, &one), Inner::input_of(&starts, &other)) {
                (Some(a), Some(b)) if a < b => edges.entry([a, b]).or_default().push([one, other]),
                (Some(a), Some(b)) if a > b => edges.entry([b, a]).or_default().push([other, one]),
                _ => self.conditions.push(Expr::Compare(CompareOp::Equal, Box::new(one), Box::new(other))),
            }
        }
        let relations: Vec<Relation> = self.parts.iter().map(Relation::new).collect();
        let share = |(inputs, keys): (&[usize; 2], &Vec<[Expr; 2]>)| {
            let distinct = |side: usize| {
                let input = inputs[side];
                relations[input].distinct(&self.parts[input], keys.iter().map(|key| &key[side]), starts[input])
            };
            let (one, other) = (distinct(0), distinct(1));
            // Several keys together say less than each of them alone: the side that knows fewer lists is right.
            let lists = if keys.len() == 1 { one.max(other) } else { one.min(other) };
            Edge { relations: *inputs, share: 1.0 / lists.max(1.0) }
        };
        let costs: Vec<Edge> = edges.iter().map(share).collect();
        let rows: Vec<f64> = relations.iter().map(|relation| relation.rows).collect();
        let tree = cheapest(&rows, &costs)?;
        // Nobody asks for other columns once the joins are done.
        let mut wanted: BTreeSet<usize> = self.output.iter().flat_map(Expr::columns).collect();
        wanted.extend(self.conditions.iter().flat_map(Expr::columns));
        wanted.extend(edges.values().flatten().flatten().flat_map(Expr::columns));
        let mut assembly = Assembly {
            parts: self.parts.into_iter().map(Some).collect(),
            starts,
            edges,
            conditions: self.conditions,
            wanted,
        };
        let Joined { mut part, columns } = assembly.assemble(&tree)?;
        part.output = self.output.iter().map(|expr| with_columns(expr, &|column| columns[&column].clone())).collect();
        Some(part)
    }
}

/// What is known of an input before it is joined.
struct Relation {
    rows: f64,
}

impl Relation {
    fn new(part: &Part) -> Relation {
        Relation { rows: part.rows_estimate() }
    }

    /// About how many different lists of keys it has.
    fn distinct<'a>(&self, part: &Part, keys: impl Iterator<Item = &'a Expr>, start: usize) -> f64 {
        let pipeline = part.as_pipeline(Output::Rows(Vec::new()));
        let of_key = |key: &Expr| match key {
            Expr::Column(column) => match part.output[column - start] {
                Expr::Column(column) => pipeline.distinct_estimate(column).map(|count| count as f64),
                _ => None,
            },
            _ => None,
        };
        let lists: f64 = keys.map(|key| of_key(key).unwrap_or(f64::INFINITY)).product();
        lists.min(self.rows)
    }
}

/// Inputs on their way into one part.
struct Assembly {
    parts: Vec<Option<Part>>,
    starts: Vec<usize>,
    edges: BTreeMap<[usize; 2], Vec<[Expr; 2]>>,
    conditions: Vec<Expr>,
    wanted: BTreeSet<usize>,
}

impl Assembly {
    fn assemble(&mut self, tree: &Tree) -> Option<Joined> {
        let mut joined = match tree {
            Tree::Relation(input) => {
                let part = self.parts[*input].take()?;
                let columns = part.output.iter().enumerate();
                let columns = columns.map(|(column, expr)| (self.starts[*input] + column, expr.clone())).collect();
                return Some(Joined { part, columns });
            }
            Tree::Join { probe, build } => {
                let (probe, build) = (self.assemble(probe)?, self.assemble(build)?);
                self.join(probe, build)
            }
        };
        let is_there = |column: &usize| joined.columns.contains_key(column);
        let (ready, rest) =
            std::mem::take(&mut self.conditions).into_iter().partition(|part| part.columns().iter().all(is_there));
        self.conditions = rest;
        for condition in Vec::from_iter::<Vec<Expr>>(ready) {
            let condition = with_columns(&condition, &|column| joined.columns[&column].clone());
            joined.part.add_filter(condition);
        }
        Some(joined)
    }

    fn join(&mut self, mut probe: Joined, mut build: Joined) -> Joined {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let is_in = |side: &Joined, key: &Expr| key.columns().iter().all(|column| side.columns.contains_key(column));
        let moved = |side: &Joined, key: &Expr| with_columns(key, &|column| side.columns[&column].clone());
        self.edges.retain(|_, keys| {
            keys.retain(|[one, other]| {
                let (one, other) = match (is_in(&probe, one), is_in(&build, other)) {
                    (true, true) => (one, other),
                    _ if is_in(&probe, other) && is_in(&build, one) => (other, one),
                    _ => return true,
                };
                ours.push(moved(&probe, one));
                theirs.push(moved(&build, other));
                false
            });
            !keys.is_empty()
        });
        let first_payload = probe.part.column_count();
        let payload = build.columns.iter().filter(|(column, _)| self.wanted.contains(column));
        let (columns, output): (Vec<usize>, Vec<Expr>) = payload.map(|(&column, expr)| (column, expr.clone())).unzip();
        build.part.output = output;
        probe.part.join(JoinKind::Inner, build.part, (ours, theirs), false);
        let places =
            columns.into_iter().enumerate().map(|(place, column)| (column, Expr::Column(first_payload + place)));
        probe.columns.extend(places);
        probe
    }
}
