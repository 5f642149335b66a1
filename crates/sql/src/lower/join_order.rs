//! In which order tables are joined.
//!
//! Dynamic programming over sets of relations: the cheapest tree for a set is the cheapest way to join the cheapest trees
//! of two halves of it, of which one is streamed and the other kept. How many rows a set has does not depend on the
//! order, so costs are compared on equal terms. Where there are too many relations for that, the pair with the fewest
//! rows is joined first, again and again.

/// Relations beyond which sets are too many.
const RELATIONS_MAX: usize = 12;

/// What a row costs that is kept and indexed, in nanoseconds.
pub(super) const KEPT: f64 = 8.0;
/// What a row costs that comes out: whatever is above has to look at it.
const OUT: f64 = 4.0;
/// What a row costs that looks for its partner among few rows, and among so many that they are in no cache.
const LOOKED_UP: f64 = 1.5;
const LOOKED_UP_FAR: f64 = 6.0;
/// Rows whose index fits in a cache.
const NEAR_ROWS: f64 = 100_000.0;

/// What is joined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relation {
    /// How many.
    pub(super) rows: f64,
    /// What it costs to unpack the values of one that are wanted, in nanoseconds. They are unpacked before a row is kept, and
    /// of one that is streamed when it comes out.
    pub(super) unpacked: f64,
}

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
        /// About how many come out.
        rows: f64,
    },
}

impl Tree {
    fn join(probe: Tree, build: Tree, rows: f64) -> Tree {
        Tree::Join { probe: Box::new(probe), build: Box::new(build), rows }
    }
}

/// A set of relations, as bits, joined at the least cost that is known.
#[derive(Clone, Copy, Debug)]
struct Plan {
    set: u64,
    rows: f64,
    /// What it costs to unpack the values of one that are packed still: those of rows that were kept are not.
    unpacked: f64,
    cost: f64,
    /// The sets of which it was joined; `None` for a relation.
    of: Option<[u64; 2]>,
}

/// The tree that seems cheapest for relations: at least one, and 64 at most. Those that have no keys in common with others
/// are joined last, each row with each.
pub(super) fn cheapest(relations: &[Relation], edges: &[Edge]) -> Tree {
    let mut trees: Vec<(Tree, f64)> = components(relations.len(), edges)
        .into_iter()
        .map(|numbers| {
            let relation = |&number: &usize| {
                let Relation { rows, unpacked } = relations[number];
                Plan { set: 1 << number, rows: rows.max(1.0), unpacked, cost: 0.0, of: None }
            };
            let plans: Vec<Plan> = numbers.iter().map(relation).collect();
            if numbers.len() > RELATIONS_MAX { by_pairs(plans, edges) } else { by_sets(&numbers, plans, edges) }
        })
        .collect();
    // The largest is streamed.
    trees.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let joined = trees.into_iter().reduce(|(probe, ours), (build, theirs)| {
        let rows = ours * theirs;
        (Tree::join(probe, build, rows), rows)
    });
    joined.map_or(Tree::Relation(0), |(tree, _)| tree)
}

/// Relations that hang together, each time all of them, ascending.
fn components(count: usize, edges: &[Edge]) -> Vec<Vec<usize>> {
    let mut component: Vec<usize> = (0..count).collect();
    for Edge { relations: [one, other], .. } in edges {
        let (kept, gone) = (component[*one], component[*other]);
        component.iter_mut().filter(|number| **number == gone).for_each(|number| *number = kept);
    }
    let of = |number: usize| (0..count).filter(|&relation| component[relation] == number).collect::<Vec<_>>();
    (0..count).map(of).filter(|relations| !relations.is_empty()).collect()
}

/// Relations of one component, few enough that all their sets can be gone through.
fn by_sets(numbers: &[usize], relations: Vec<Plan>, edges: &[Edge]) -> (Tree, f64) {
    let all = (1usize << numbers.len()) - 1;
    let mut best: Vec<Option<Plan>> = vec![None; all + 1];
    for (place, plan) in relations.iter().enumerate() {
        best[1 << place] = Some(*plan);
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
    let place = |set: u64| numbers.iter().enumerate().map(|(place, &number)| (set >> number & 1) << place).sum::<u64>();
    let plan = |set: u64| best[place(set) as usize];
    let whole = best[all].expect("they hang together");
    (tree(whole, &plan), whole.rows)
}

fn tree(plan: Plan, of: &dyn Fn(u64) -> Option<Plan>) -> Tree {
    match plan.of {
        None => Tree::Relation(plan.set.trailing_zeros() as usize),
        Some(halves) => {
            let [probe, build] = halves.map(|half| tree(of(half).expect("it was joined before"), of));
            Tree::join(probe, build, plan.rows)
        }
    }
}

/// Relations of one component. The pair with the fewest rows is joined first, again and again.
fn by_pairs(plans: Vec<Plan>, edges: &[Edge]) -> (Tree, f64) {
    let mut open: Vec<Plan> = plans.clone();
    let mut made = plans;
    while open.len() > 1 {
        let mut least: Option<(usize, usize, Plan)> = None;
        for (probe, build) in (0..open.len()).flat_map(|one| (0..open.len()).map(move |other| (one, other))) {
            if probe == build || open[probe].rows < open[build].rows {
                continue;
            }
            if let Some(plan) = joined(&open[probe], &open[build], edges)
                && least.is_none_or(|(_, _, known)| plan.rows < known.rows)
            {
                least = Some((probe, build, plan));
            }
        }
        let (probe, build, plan) = least.expect("they hang together");
        open.swap_remove(probe.max(build));
        open.swap_remove(probe.min(build));
        open.push(plan);
        made.push(plan);
    }
    let plan = |set: u64| made.iter().find(|plan| plan.set == set).copied();
    (tree(open[0], &plan), open[0].rows)
}

/// What a row costs that looks for its partner among so many.
pub(super) fn looked_up(rows: f64) -> f64 {
    if rows <= NEAR_ROWS { LOOKED_UP } else { LOOKED_UP_FAR }
}

/// Both together; `None` where they have no keys in common.
fn joined(probe: &Plan, build: &Plan, edges: &[Edge]) -> Option<Plan> {
    let holds = |set: u64, relation: usize| set >> relation & 1 == 1;
    let mut shares = edges.iter().filter(|edge| {
        let [one, other] = edge.relations;
        holds(probe.set, one) && holds(build.set, other) || holds(probe.set, other) && holds(build.set, one)
    });
    let first = shares.next()?;
    let share = shares.fold(first.share, |all, edge| all * edge.share);
    let rows = (probe.rows * build.rows * share).max(1.0);
    // Of those that do not come out, values would stay packed, were they streamed.
    let kept = build.rows * KEPT + (build.rows - rows).max(0.0) * build.unpacked;
    let cost = probe.cost + build.cost + kept + probe.rows * looked_up(build.rows) + rows * OUT;
    let of = Some([probe.set, build.set]);
    Some(Plan { set: probe.set | build.set, rows, unpacked: probe.unpacked, cost, of })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of which nothing is wanted but keys.
    fn of_rows(rows: &[f64]) -> Vec<Relation> {
        rows.iter().map(|&rows| Relation { rows, unpacked: 1.0 }).collect()
    }

    fn edge(one: usize, other: usize, share: f64) -> Edge {
        Edge { relations: [one, other], share }
    }

    /// The tree in brackets, what is streamed first.
    fn text(tree: &Tree) -> String {
        match tree {
            Tree::Relation(number) => number.to_string(),
            Tree::Join { probe, build, .. } => format!("({} {})", text(probe), text(build)),
        }
    }

    /// Each relation once.
    fn relations(tree: &Tree) -> Vec<usize> {
        match tree {
            Tree::Relation(number) => vec![*number],
            Tree::Join { probe, build, .. } => {
                let mut all = [relations(probe), relations(build)].concat();
                all.sort_unstable();
                all
            }
        }
    }

    #[test]
    fn the_larger_side_is_streamed() {
        assert_eq!(text(&cheapest(&of_rows(&[1e6, 100.0]), &[edge(0, 1, 0.01)])), "(0 1)");
        assert_eq!(text(&cheapest(&of_rows(&[100.0, 1e6]), &[edge(0, 1, 0.01)])), "(1 0)");
    }

    #[test]
    fn what_is_costly_to_unpack_is_streamed() {
        let wide = Relation { rows: 50_000.0, unpacked: 100.0 };
        let narrow = Relation { rows: 80_000.0, unpacked: 1.0 };
        let few = [edge(0, 1, 1e-6)];
        assert_eq!(text(&cheapest(&[wide, narrow], &few)), "(0 1)");
        assert_eq!(text(&cheapest(&of_rows(&[50_000.0, 80_000.0]), &few)), "(1 0)");
        // Where all of them come out, they are unpacked in any case.
        assert_eq!(text(&cheapest(&[wide, narrow], &[edge(0, 1, 1.3e-5)])), "(1 0)");
    }

    #[test]
    fn what_drops_most_rows_comes_first() {
        // A table of facts, one table that keeps all its rows, and one that keeps a hundredth.
        let tree = cheapest(&of_rows(&[1e6, 1000.0, 10.0]), &[edge(0, 1, 1e-3), edge(0, 2, 1e-3)]);
        assert_eq!(text(&tree), "((0 2) 1)");
        let Tree::Join { rows, .. } = tree else { panic!("a join") };
        assert!((rows - 1e4).abs() < 1.0, "{rows}");
    }

    #[test]
    fn small_tables_are_joined_before_they_are_kept() {
        // Facts, suppliers, and the few nations that are wanted: suppliers of those nations are looked up once.
        let tree = cheapest(&of_rows(&[1e6, 10_000.0, 1.0]), &[edge(0, 1, 1e-4), edge(1, 2, 0.04)]);
        assert_eq!(text(&tree), "(0 (1 2))");
    }

    #[test]
    fn what_does_not_hang_together_is_joined_last() {
        let tree = cheapest(&of_rows(&[10.0, 30.0, 20.0, 40.0]), &[edge(0, 2, 0.01)]);
        assert_eq!(text(&tree), "((3 1) (2 0))");
        assert_eq!(text(&cheapest(&of_rows(&[7.0]), &[])), "0");
    }

    #[test]
    fn many_relations_are_joined_all_the_same() {
        let rows: Vec<f64> = (0..64).map(|number| 10.0 + f64::from(number)).collect();
        let edges: Vec<Edge> = (1..64).map(|number| edge(number - 1, number, 0.1)).collect();
        assert_eq!(relations(&cheapest(&of_rows(&rows), &edges)), (0..64).collect::<Vec<_>>());
    }
}
