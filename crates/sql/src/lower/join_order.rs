//! In which order tables are joined.
//!
//! Dynamic programming over sets of relations: the cheapest tree for a set is the cheapest way to join the cheapest trees
//! of two halves of it, of which one is streamed and the other kept. How many rows a set has does not depend on the
//! order, so costs are compared on equal terms. Where there are too many relations for that, the pair with the fewest
//! rows is joined first, again and again.

/// Relations beyond which sets are too many.
const RELATIONS_MAX: usize = 10;

/// What a row costs that is kept and indexed, in nanoseconds.
const KEPT: f64 = 8.0;
/// What a row costs that comes out: whatever is above has to look at it.
const OUT: f64 = 4.0;
/// What a row costs that looks for its partner among few rows, and among so many that they are in no cache.
const LOOKED_UP: f64 = 1.5;
const LOOKED_UP_FAR: f64 = 6.0;
/// Rows whose index fits in a cache.
const NEAR_ROWS: f64 = 100_000.0;

/// Keys that two relations have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) relations: [usize; 2],
    /// Which share of all pairs of rows have equal keys.
    pub(super) share: f64,
}

/// How relations are joined.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    /// By its number.
    Relation(usize),
    Join {
        /// Its rows are streamed.
        probe: Box<Tree>,
        /// Its rows are kept.
        build: Box<Tree>,
    },
}

/// A set of relations, as bits, with the cheapest tree that is known.
#[derive(Clone, Debug)]
struct Plan {
    set: usize,
    rows: f64,
    cost: f64,
    tree: Tree,
}

/// The tree that seems cheapest for relations with so many rows each. `None` where they do not hang together.
pub(super) fn cheapest(rows: &[f64], edges: &[Edge]) -> Option<Tree> {
    let relation =
        |number: usize| Plan { set: 1 << number, rows: rows[number].max(1.0), cost: 0.0, tree: Tree::Relation(number) };
    let plans: Vec<Plan> = (0..rows.len()).map(relation).collect();
    if rows.len() > RELATIONS_MAX { by_pairs(plans, edges) } else { by_sets(plans, edges) }
}

fn by_sets(relations: Vec<Plan>, edges: &[Edge]) -> Option<Tree> {
    let all = (1usize << relations.len()) - 1;
    let mut best: Vec<Option<Plan>> = vec![None; all + 1];
    for plan in relations {
        let set = plan.set;
        best[set] = Some(plan);
    }
    for set in 1..=all {
        let mut part = (set - 1) & set;
        while part > 0 {
            if let (Some(probe), Some(build)) = (&best[part], &best[set & !part])
                && let Some(plan) = joined(probe, build, edges)
                && best[set].as_ref().is_none_or(|known| plan.cost < known.cost)
            {
                best[set] = Some(plan);
            }
            part = (part - 1) & set;
        }
    }
    best.pop()?.map(|plan| plan.tree)
}

fn by_pairs(mut plans: Vec<Plan>, edges: &[Edge]) -> Option<Tree> {
    while plans.len() > 1 {
        let mut least: Option<(usize, usize, Plan)> = None;
        for (probe, build) in (0..plans.len()).flat_map(|one| (0..plans.len()).map(move |other| (one, other))) {
            if probe == build || plans[probe].rows < plans[build].rows {
                continue;
            }
            if let Some(plan) = joined(&plans[probe], &plans[build], edges)
                && least.as_ref().is_none_or(|(_, _, known)| plan.rows < known.rows)
            {
                least = Some((probe, build, plan));
            }
        }
        let (probe, build, plan) = least?;
        plans.swap_remove(probe.max(build));
        plans.swap_remove(probe.min(build));
        plans.push(plan);
    }
    plans.pop().map(|plan| plan.tree)
}

/// Both together; `None` where they have no keys in common.
fn joined(probe: &Plan, build: &Plan, edges: &[Edge]) -> Option<Plan> {
    let holds = |set: usize, relation: usize| set >> relation & 1 == 1;
    let mut shares = edges.iter().filter(|edge| {
        let [one, other] = edge.relations;
        holds(probe.set, one) && holds(build.set, other) || holds(probe.set, other) && holds(build.set, one)
    });
    let first = shares.next()?;
    let share = shares.fold(first.share, |all, edge| all * edge.share);
    let rows = (probe.rows * build.rows * share).max(1.0);
    let looked_up = if build.rows <= NEAR_ROWS { LOOKED_UP } else { LOOKED_UP_FAR };
    let cost = probe.cost + build.cost + build.rows * KEPT + probe.rows * looked_up + rows * OUT;
    let tree = Tree::Join { probe: Box::new(probe.tree.clone()), build: Box::new(build.tree.clone()) };
    Some(Plan { set: probe.set | build.set, rows, cost, tree })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(one: usize, other: usize, share: f64) -> Edge {
        Edge { relations: [one, other], share }
    }

    fn join(probe: Tree, build: Tree) -> Tree {
        Tree::Join { probe: Box::new(probe), build: Box::new(build) }
    }

    /// Each relation once.
    fn relations(tree: &Tree) -> Vec<usize> {
        match tree {
            Tree::Relation(number) => vec![*number],
            Tree::Join { probe, build } => {
                let mut all = [relations(probe), relations(build)].concat();
                all.sort_unstable();
                all
            }
        }
    }

    #[test]
    fn the_larger_side_is_streamed() {
        let tree = cheapest(&[1e6, 100.0], &[edge(0, 1, 0.01)]);
        assert_eq!(tree, Some(join(Tree::Relation(0), Tree::Relation(1))));
        let tree = cheapest(&[100.0, 1e6], &[edge(0, 1, 0.01)]);
        assert_eq!(tree, Some(join(Tree::Relation(1), Tree::Relation(0))));
    }

    #[test]
    fn what_drops_most_rows_comes_first() {
        // A table of facts, one table that keeps all its rows, and one that keeps a hundredth.
        let tree = cheapest(&[1e6, 1000.0, 10.0], &[edge(0, 1, 1e-3), edge(0, 2, 1e-3)]);
        let few = join(Tree::Relation(0), Tree::Relation(2));
        assert_eq!(tree, Some(join(few, Tree::Relation(1))));
    }

    #[test]
    fn small_tables_are_joined_before_they_are_kept() {
        // Facts, suppliers, and the few nations that are wanted: suppliers of those nations are looked up once.
        let tree = cheapest(&[1e6, 10_000.0, 1.0], &[edge(0, 1, 1e-4), edge(1, 2, 0.04)]);
        let wanted = join(Tree::Relation(1), Tree::Relation(2));
        assert_eq!(tree, Some(join(Tree::Relation(0), wanted)));
    }

    #[test]
    fn what_does_not_hang_together_is_not_joined() {
        assert_eq!(cheapest(&[10.0, 10.0, 10.0], &[edge(0, 1, 0.1)]), None);
    }

    #[test]
    fn many_relations_are_joined_all_the_same() {
        let rows: Vec<f64> = (0..40).map(|number| 10.0 + f64::from(number)).collect();
        let edges: Vec<Edge> = (1..40).map(|number| edge(number - 1, number, 0.1)).collect();
        let tree = cheapest(&rows, &edges).expect("a chain hangs together");
        assert_eq!(relations(&tree), (0..40).collect::<Vec<_>>());
    }
}
