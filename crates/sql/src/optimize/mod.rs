//! DataFusion's analyzer and optimizer, with those rules left out that have nothing to do.
//!
//! Its own loop runs each of its rules over the whole plan, two or three times. Most are about nodes that a plan does not
//! have, and a second round finds little: what the first one brought together. Here a rule is asked only where the plan
//! has something for it ([`Contents`]), expressions are simplified once ([`Settled`]), and a round follows only if the one
//! before it did what other rules look at. The rules themselves, and their order, are DataFusion's.

mod contents;
mod settled;
mod walk;

pub(crate) use contents::Contents;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{InvariantLevel, LogicalPlan, assert_expected_schema};
use datafusion::optimizer::OptimizerRule;
use settled::{Settled, are_different};
use std::sync::Arc;

/// A plan with the same rows, as fit to be run as DataFusion's rules make it.
///
/// # Errors
/// Those of the rules: types that do not fit, subqueries that cannot be planned.
pub(crate) fn optimized(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    let schema = Arc::clone(plan.schema());
    let mut rounds = Rounds { state, contents: Contents::of(&plan)?, settled: Settled::default(), plan };
    for round in 0..state.config_options().optimizer.max_passes {
        if !rounds.run(round)? {
            break;
        }
    }
    let plan = rounds.plan;
    assert_expected_schema(&schema, &plan)?;
    plan.check_invariants(InvariantLevel::Executable)?;
    Ok(plan)
}

/// A plan on its way.
struct Rounds<'a> {
    state: &'a SessionState,
    plan: LogicalPlan,
    contents: Contents,
    settled: Settled,
}

impl Rounds<'_> {
    /// Runs all rules that may have something to do, and says whether another round may, too.
    fn run(&mut self, round: usize) -> Result<bool> {
        let (mut again, mut changed) = (false, round == 0);
        for rule in self.state.optimizers() {
            // The last rule of a round finds what it left behind in the round before, unless others changed it since.
            let is_settled = rule.name() == "optimize_projections" && !changed;
            if is_settled || !self.has_work_for(rule.name(), round) {
                continue;
            }
            let context = |error: datafusion::error::DataFusionError| {
                error.context(format!("Optimizer rule '{}' failed", rule.name()))
            };
            if !self.apply(rule.as_ref()).map_err(context)? {
                continue;
            }
            changed = true;
            self.contents = Contents::of(&self.plan)?;
            again |= match rule.name() {
                // These say so whether they changed something or not. Joins may have lost columns that kept them.
                "optimize_projections" | "eliminate_cross_join" => round == 0 && self.contents.joins,
                _ => true,
            };
        }
        Ok(again)
    }

    /// Whether there is something in the plan that a rule is about. Rules that are not known here are always asked.
    fn has_work_for(&self, rule: &str, round: usize) -> bool {
        let contents = &self.contents;
        match rule {
            "rewrite_set_comparison" => contents.set_comparisons,
            "optimize_unions" => contents.unions,
            "unions_to_filter" | "replace_distinct_aggregate" => contents.distincts,
            "decorrelate_predicate_subquery" | "scalar_subquery_to_join" => contents.subqueries,
            "decorrelate_lateral_join" => contents.laterals,
            "eliminate_join" | "extract_equijoin_predicate" | "filter_null_join_keys" => contents.joins,
            "eliminate_cross_join" => contents.cross_joins,
            "eliminate_outer_join" => contents.outer_joins && contents.filters,
            "eliminate_duplicated_expr" => contents.aggregates,
            "eliminate_filter" => contents.filters,
            "eliminate_limit" | "push_down_limit" => contents.limits,
            "propagate_empty_relation" => contents.empties,
            "push_down_filter" => contents.filters || contents.joins,
            "single_distinct_aggregation_to_group_by" | "eliminate_group_by_constant" => contents.aggregates,
            // Nothing brings equal expressions together after the first round.
            "common_sub_expression_eliminate" => round == 0 && !contents.window_twins,
            "extract_leaf_expressions" | "push_down_leaf_projections" => contents.parts_of_values,
            _ => true,
        }
    }

    /// Runs a rule, which says whether it changed something.
    fn apply(&mut self, rule: &dyn OptimizerRule) -> Result<bool> {
        let Some(order) = rule.apply_order() else {
            let done = rule.rewrite(std::mem::take(&mut self.plan), self.state)?;
            self.plan = done.data;
            return Ok(done.transformed);
        };
        let (state, settled) = (self.state, &mut self.settled);
        let mut step = |node: LogicalPlan| match (rule.name(), &node) {
            ("simplify_expressions", known) if settled.holds(known)? => Ok(Transformed::no(node)),
            ("simplify_expressions", _) => {
                let done = rule.rewrite(node, state)?;
                settled.add(&done.data)?;
                Ok(done)
            }
            // Making it anew is all that would come of it.
            ("eliminate_duplicated_expr", LogicalPlan::Aggregate(aggregate))
                if are_different(&aggregate.group_expr) =>
            {
                Ok(Transformed::no(node))
            }
            _ => rule.rewrite(node, state),
        };
        if self.contents.subqueries {
            let done = walk::with_subqueries(std::mem::take(&mut self.plan), order, &mut step)?;
            self.plan = done.data;
            return Ok(done.transformed);
        }
        walk::everywhere(&mut self.plan, order, &mut step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Kind, parse};
    use crate::progress::Notes;
    use crate::{Database, DatabaseOptions, OnCorruption, Session, Synchronous};
    use sinter_storage::RealFileSystem;

    const TPCH: &str = include_str!("../../../../tpch/schema.sql");

    fn session() -> Session {
        let options = DatabaseOptions {
            memory_limit_bytes: 1 << 30,
            threads: 2,
            synchronous: Synchronous::Full,
            read_only: false,
            create: true,
            on_corruption: OnCorruption::Error,
            background: false,
            file_system: Arc::new(RealFileSystem),
        };
        let session = Database::open(None, options).unwrap().session();
        for statement in parse(TPCH).unwrap() {
            session.run(&statement, &[]).unwrap();
        }
        session
    }

    /// The plan of a query, and what DataFusion's own loop makes of it.
    fn both(session: &Session, sql: &str) -> [String; 2] {
        [true, false].map(|ours| {
            let state = session.statement_state(session.readable().unwrap(), Notes::default());
            let Kind::Sql(statement) = parse(sql).unwrap().pop().unwrap().kind else { panic!("a query") };
            let statement = datafusion::sql::parser::Statement::Statement(statement);
            let plan = pollster::block_on(state.statement_to_plan(statement)).unwrap();
            let plan = if ours { optimized(&state, plan) } else { state.optimize(&plan) };
            plan.unwrap().display_indent().to_string()
        })
    }

    #[test]
    fn plans_are_those_of_all_rules_in_all_rounds() {
        let session = session();
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tpch/queries");
        let tpch = (1..=22).map(|number| std::fs::read_to_string(folder.join(format!("q{number:02}.sql"))).unwrap());
        let others = [
            "SELECT 1 + 1 AS two WHERE false",
            "SELECT DISTINCT o_orderstatus FROM orders ORDER BY 1 LIMIT 0",
            "SELECT n_name FROM nation UNION SELECT r_name FROM region UNION ALL SELECT 'none' WHERE 1 = 2",
            "SELECT count(DISTINCT c_nationkey), 5 FROM customer GROUP BY c_mktsegment, c_mktsegment, 1 = 1",
            "SELECT n_name FROM nation LEFT JOIN region ON n_regionkey = r_regionkey WHERE r_name = 'ASIA'",
            "SELECT n_name FROM nation LEFT JOIN region ON n_regionkey = r_regionkey",
            "SELECT r_name, k FROM region, LATERAL (SELECT n_nationkey k FROM nation WHERE n_regionkey = r_regionkey)",
            "SELECT r_name FROM region WHERE r_regionkey > ALL (SELECT n_regionkey FROM nation WHERE n_nationkey < 3)",
            "SELECT struct(n_nationkey, n_name)['c0'] AS key FROM nation WHERE struct(n_nationkey, n_name)['c0'] > 3",
            "SELECT sum(n_nationkey) OVER (PARTITION BY n_regionkey) FROM (SELECT * FROM nation LIMIT 9) WHERE n_regionkey = 1",
            "SELECT a.n_name FROM nation a, nation b, nation c WHERE a.n_nationkey = b.n_regionkey AND a.n_name > c.n_name",
            "SELECT r_name FROM region WHERE r_regionkey IN (SELECT n_regionkey FROM nation WHERE EXISTS (
               SELECT 1 FROM customer WHERE c_nationkey = n_nationkey AND c_acctbal > 0))",
        ];
        for sql in tpch.chain(others.map(str::to_owned)) {
            let [ours, theirs] = both(&session, &sql);
            assert_eq!(ours, theirs, "{sql}");
        }
    }
}
