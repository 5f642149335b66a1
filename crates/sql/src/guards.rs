//! Keeps rules of DataFusion's from plans that they get wrong.

use crate::exists_as_value::{DECORRELATE, ExistsAsValue};
use crate::simplify::{SIMPLIFY, Simplify};
use crate::walk::WalkPlan;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinType, NullEquality, Result, tree_node::Transformed};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Whether a rule may have a plan, or the node that it is shown.
type Suits = fn(&LogicalPlan) -> Result<bool>;

/// The rules that are kept from something.
const GUARDS: [(&str, Suits); 4] = [
    ("eliminate_cross_join", takes_null_for_nothing),
    ("extract_equijoin_predicate", takes_null_for_nothing_here),
    ("push_down_filter", does_not_ask_the_row_of_no_rows),
    ("eliminate_duplicated_expr", is_no_order),
];

/// The rules, with those guarded, and those for EXISTS and for expressions as [`ExistsAsValue`] and [`Simplify`].
pub(crate) fn guarded(rules: &[Rule]) -> Vec<Rule> {
    let guard = |rule: &Rule| match GUARDS.iter().find(|(name, _)| *name == rule.name()) {
        Some(&(_, suits)) => Arc::new(Guarded { rule: Arc::clone(rule), suits }) as Rule,
        None if rule.name() == SIMPLIFY => Arc::new(Simplify { of_aggregates: Arc::clone(rule) }),
        None if rule.name() == DECORRELATE => Arc::new(ExistsAsValue { of_conditions: Arc::clone(rule) }),
        None => Arc::clone(rule),
    };
    rules.iter().map(guard).collect()
}

/// A rule for what suits it.
#[derive(Debug)]
struct Guarded {
    rule: Rule,
    suits: Suits,
}

impl OptimizerRule for Guarded {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if (self.suits)(&plan)? { self.rule.rewrite(plan, config) } else { Ok(Transformed::no(plan)) }
    }
}

/// `EliminateCrossJoin` takes trees of inner joins apart and makes all joins of them, and of the conditions on top, as their
/// topmost one was: beside `c IS NOT DISTINCT FROM d`, `a = b` would find NULLs. Plans in which an inner join does go by
/// without it.
fn takes_null_for_nothing(plan: &LogicalPlan) -> Result<bool> {
    let mut finds_null = false;
    plan.visit_nodes_with_subqueries(&mut |plan| {
        finds_null |= finds_nulls(plan);
        Ok(if finds_null { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(!finds_null)
}

fn finds_nulls(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Join(join) = plan else { return false };
    join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNull
}

/// `ExtractEquijoinPredicate` adds `a = b` of a condition to keys of which NULLs may be equal.
fn takes_null_for_nothing_here(plan: &LogicalPlan) -> Result<bool> {
    let LogicalPlan::Join(join) = plan else { return Ok(true) };
    Ok(join.on.is_empty() || join.null_equality == NullEquality::NullEqualsNothing)
}

/// `PushDownFilter` asks what names nothing but keys of a GROUP BY of the rows that are grouped, and what names no column at
/// all, such as `(SELECT min(a) FROM t) = 3`, names nothing but keys. Without keys the aggregate would then have its row
/// although the condition is not true. There the rule is left out, since it could move nothing else.
fn does_not_ask_the_row_of_no_rows(plan: &LogicalPlan) -> Result<bool> {
    Ok(!matches!(plan, LogicalPlan::Filter(filter) if makes_one_row(&filter.input)))
}

/// Whether a plan is an aggregate that may make a row of none; the rule makes one filter of several before it goes on.
fn makes_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Filter(filter) => makes_one_row(&filter.input),
        // One of the sets may be the empty one; what names their keys is not moved anyway.
        LogicalPlan::Aggregate(aggregate) => {
            aggregate.group_expr.iter().all(|expr| matches!(expr, Expr::GroupingSet(_)))
        }
        _ => false,
    }
}

/// `EliminateDuplicatedExpr` drops sort keys that others determine, and believes that a key of one side of a join tells
/// which row of the other side it is: of `ORDER BY a.k, b.d` above a join only `a.k` would be left. Keys of GROUP BY that
/// are there twice it finds as it should, and later rules want them gone.
fn is_no_order(plan: &LogicalPlan) -> Result<bool> {
    Ok(!matches!(plan, LogicalPlan::Sort(_)))
}
