//! Trees of inner joins, taken apart and put together in a better order.

use super::columns::{conjuncts, with_columns};
use super::expr::Scope;
use super::join_order::{Edge, Relation, Tree, cheapest};
use super::part::{How, Part};
use super::{Ours, is_key, join};
use datafusion::common::{JoinType, NullEquality};
use datafusion::logical_expr::Join as DfJoin;
use sinter_codec::CompareOp;
use sinter_exec::{Expr, JoinKind};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// Inputs beyond which those so far are joined before others come.
const INPUTS_MAX: usize = 40;

/// A semi join that keeps no more than this share of an input's rows comes before other joins.
const WORTH_IT: f64 = 0.6;

/// Inputs of inner joins, with all that is asked of their rows. Their output columns are numbered one input after the
/// other.
#[derive(Clone)]
pub(super) struct Inner {
    parts: Vec<Part>,
    /// Keys that must be equal.
    equal: Vec<[Expr; 2]>,
    /// What else must be true.
    conditions: Vec<Expr>,
    output: Vec<Expr>,
    /// All as one part, once somebody asked.
    ordered: OnceCell<Box<Part>>,
}

/// Whether all pairs of rows come out for which a condition is true, and NULLs equal nothing.
pub(super) fn is_inner(join: &DfJoin) -> bool {
    join.join_type == JoinType::Inner
        && !join.null_aware
        && (join.on.is_empty() || join.null_equality == NullEquality::NullEqualsNothing)
}

impl Inner {
    /// `None` where a join cannot take its rows.
    pub(super) fn of_part(part: Part) -> Option<Inner> {
        let output = (0..part.output.len()).map(Expr::Column).collect();
        let ordered = OnceCell::new();
        part.can_be_joined().then(|| Inner {
            parts: vec![part],
            equal: Vec::new(),
            conditions: Vec::new(),
            output,
            ordered,
        })
    }

    /// Both sides of an inner join; `None` where a key or a condition is not ours.
    pub(super) fn of_join(join: &DfJoin, left: Ours, right: Ours) -> Option<Inner> {
        let (mut inner, mut right) = (left.into_inner()?, right.into_inner()?);
        if inner.parts.len() + right.parts.len() > INPUTS_MAX {
            (inner, right) = (Inner::of_part(inner.into_ordered())?, Inner::of_part(right.into_ordered())?);
        }
        let width: usize = inner.parts.iter().map(|part| part.output.len()).sum();
        let moved = |expr: &Expr| with_columns(expr, &|column| Expr::Column(width + column));
        let right_output: Vec<Expr> = right.output.iter().map(moved).collect();
        let left_scope = Scope::new(join.left.schema(), &inner.output);
        let right_scope = Scope::new(join.right.schema(), &right_output);
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
        inner.ordered = OnceCell::new();
        if let Some(condition) = &join.filter {
            let condition = Scope::new(&join.schema, &inner.output).lower(condition)?;
            inner.add_conditions(condition);
        }
        Some(inner)
    }

    /// A semi or anti join with another part, done where its keys come from, before all others; `None` where they come from
    /// several inputs, or where it would not drop enough to be worth it.
    pub(super) fn reduced(&self, join: &DfJoin, other: &Part) -> Option<Inner> {
        let starts = self.starts();
        let scope = Scope::new(join.left.schema(), &self.output);
        let keys = join.on.iter().map(|(key, _)| scope.lower(key)).collect::<Option<Vec<_>>>()?;
        let input = Inner::input_of(&starts, keys.first()?)?;
        if !keys.iter().all(|key| Inner::input_of(&starts, key) == Some(input)) {
            return None;
        }
        let part = &self.parts[input];
        let keys = keys.iter().map(|key| with_columns(key, &|column| part.output[column - starts[input]].clone()));
        let reduced = join::of_input(join, part.clone(), keys.collect(), other.clone())?;
        let is_worth_it = reduced.rows_estimate() <= part.rows_estimate() * WORTH_IT
            || part.rows_estimate() <= self.ordered().rows_estimate();
        is_worth_it.then(|| {
            let mut inner = self.clone();
            inner.parts[input] = reduced;
            inner.ordered = OnceCell::new();
            inner
        })
    }

    /// What its columns are, by the inputs' columns.
    pub(super) fn output(&self) -> &[Expr] {
        &self.output
    }

    pub(super) fn add_conditions(&mut self, condition: Expr) {
        self.conditions.extend(conjuncts(condition));
        self.ordered = OnceCell::new();
    }

    pub(super) fn set_output(&mut self, output: Vec<Expr>) {
        self.output = output;
        self.ordered = OnceCell::new();
    }

    /// All inputs joined, in the order that seems best.
    pub(super) fn ordered(&self) -> &Part {
        self.ordered.get_or_init(|| Box::new(self.clone().in_order()))
    }

    fn into_ordered(mut self) -> Part {
        match self.ordered.take() {
            Some(part) => *part,
            None => self.in_order(),
        }
    }

    /// Tells inputs that their rows are of no use without a partner.
    fn expect_partners(&mut self, edges: &BTreeMap<[usize; 2], Vec<[Expr; 2]>>, starts: &[usize]) {
        for (&[one, other], keys) in edges {
            let side = |side: usize, input: usize| -> Vec<Expr> {
                let output = &self.parts[input].output;
                keys.iter()
                    .map(|key| with_columns(&key[side], &|column| output[column - starts[input]].clone()))
                    .collect()
            };
            let (ours, theirs) = (side(0, one), side(1, other));
            let [first, second] = [one, other].map(|input| self.parts[input].clone());
            self.parts[one].expect_partners(&ours, &second, &theirs);
            self.parts[other].expect_partners(&theirs, &first, &ours);
        }
    }

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

    fn in_order(mut self) -> Part {
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
        self.expect_partners(&edges, &starts);
        let share = |(inputs, keys): (&[usize; 2], &Vec<[Expr; 2]>)| {
            let distinct = |side: usize| {
                let (part, start) = (&self.parts[inputs[side]], starts[inputs[side]]);
                let keys: Vec<Expr> = keys
                    .iter()
                    .map(|key| with_columns(&key[side], &|column| part.output[column - start].clone()))
                    .collect();
                part.distinct_estimate(&keys)
            };
            let (one, other) = (distinct(0), distinct(1));
            // Several keys together say less than each of them alone: the side that knows fewer lists is right.
            let lists = if keys.len() == 1 { one.max(other) } else { one.min(other) };
            Edge { relations: *inputs, share: 1.0 / lists }
        };
        let costs: Vec<Edge> = edges.iter().map(share).collect();
        // Nobody asks for other columns once the joins are done.
        let mut wanted: BTreeSet<usize> = self.output.iter().flat_map(Expr::columns).collect();
        wanted.extend(self.conditions.iter().flat_map(Expr::columns));
        wanted.extend(edges.values().flatten().flatten().flat_map(Expr::columns));
        let relation = |(input, part): (usize, &Part)| {
            let wanted = wanted.range(starts[input]..starts[input + 1]);
            let unpacked = part.unpacking_cost(wanted.map(|column| &part.output[column - starts[input]]));
            Relation { rows: part.rows_estimate(), unpacked }
        };
        let relations: Vec<Relation> = self.parts.iter().enumerate().map(relation).collect();
        let tree = cheapest(&relations, &costs);
        let mut assembly = Assembly { parts: self.parts, starts, edges, conditions: self.conditions, wanted };
        let Joined { mut part, columns } = assembly.assemble(&tree);
        part.output = self.output.iter().map(|expr| with_columns(expr, &|column| columns[&column].clone())).collect();
        part
    }
}

/// Columns of the inputs, as they stand in a part that was made of some of them.
struct Joined {
    part: Part,
    columns: BTreeMap<usize, Expr>,
}

/// Inputs on their way into one part.
struct Assembly {
    parts: Vec<Part>,
    starts: Vec<usize>,
    edges: BTreeMap<[usize; 2], Vec<[Expr; 2]>>,
    conditions: Vec<Expr>,
    wanted: BTreeSet<usize>,
}

impl Assembly {
    fn assemble(&mut self, tree: &Tree) -> Joined {
        let mut joined = match tree {
            Tree::Relation(input) => {
                let part = self.parts[*input].clone();
                let columns = part.output.iter().enumerate();
                let columns = columns.map(|(column, expr)| (self.starts[*input] + column, expr.clone())).collect();
                return Joined { part, columns };
            }
            Tree::Join { probe, build, rows } => {
                let (probe, build) = (self.assemble(probe), self.assemble(build));
                let mut joined = self.join(probe, build);
                joined.part.expect(*rows);
                joined
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
        joined
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
        probe.part.join(build.part, How::by_keys(JoinKind::Inner, ours, theirs));
        let places =
            columns.into_iter().enumerate().map(|(place, column)| (column, Expr::Column(first_payload + place)));
        probe.columns.extend(places);
        probe
    }
}
