//! Transactions that commit could have run one after the other.
//!
//! Several run at once, in an order of statements that comes from a seed. What they read and wrote is recorded, and
//! held against two things: a run one by one, in the order of the commits, over a map; and the graph of who depends on
//! whom, which may have no cycle. Transactions that only read see one state, whatever happens beside them.

mod cases;
mod schedules;
mod steps;
mod threads;

use std::collections::BTreeSet;

/// Panics where the edges, those of a node to itself apart, lead from a node back to it.
fn check_acyclic(nodes: usize, edges: &mut BTreeSet<(usize, usize)>, context: &str) {
    fn visit(node: usize, edges: &BTreeSet<(usize, usize)>, state: &mut [u8]) -> bool {
        state[node] = 1;
        for (_, next) in edges.range((node, 0)..(node + 1, 0)) {
            if state[*next] == 1 || (state[*next] == 0 && visit(*next, edges, state)) {
                return true;
            }
        }
        state[node] = 2;
        false
    }
    edges.retain(|(from, to)| from != to);
    let mut state = vec![0u8; nodes];
    for node in 0..nodes {
        assert!(state[node] != 0 || !visit(node, edges, &mut state), "{context}: the dependencies have a cycle");
    }
}
