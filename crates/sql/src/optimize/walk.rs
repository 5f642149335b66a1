//! A rule on each node of a plan, in its place.
//!
//! DataFusion's own walk over owned plans takes each node out of its pointer and puts it into a new one, changed or not.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion::logical_expr::{Aggregate, Limit, Window};
use datafusion::logical_expr::{Distinct, Filter, Join, LogicalPlan, Projection, Sort, SubqueryAlias, Union};
use datafusion::optimizer::ApplyOrder;
use std::sync::Arc;

/// What is done with a node; it says whether that changed something.
pub(super) type Step<'a> = dyn FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>> + 'a;

/// Takes a step at each node of a plan without subqueries in expressions. Where an input's columns change, so do those of
/// the node above.
pub(super) fn everywhere(plan: &mut LogicalPlan, order: ApplyOrder, step: &mut Step<'_>) -> Result<bool> {
    let mut changed = false;
    if order == ApplyOrder::TopDown {
        let (here, recursion) = take(plan, step)?;
        changed |= here;
        if recursion == TreeNodeRecursion::Stop {
            return Ok(changed);
        }
    }
    let mut columns_changed = false;
    changed |= each_input(plan, &mut |input| {
        let before = Arc::clone(input.schema());
        let changed = everywhere(input, order, step)?;
        columns_changed |= changed && before.as_ref() != input.schema().as_ref();
        Ok(changed)
    })?;
    if columns_changed {
        recompute(plan)?;
    }
    if order == ApplyOrder::BottomUp {
        changed |= take(plan, step)?.0;
    }
    Ok(changed)
}

/// The same where there are subqueries in expressions: they are walked through, too.
pub(super) fn with_subqueries(
    plan: LogicalPlan,
    order: ApplyOrder,
    step: &mut Step<'_>,
) -> Result<Transformed<LogicalPlan>> {
    struct Rewriter<'a, 'b> {
        order: ApplyOrder,
        step: &'a mut Step<'b>,
    }
    impl TreeNodeRewriter for Rewriter<'_, '_> {
        type Node = LogicalPlan;

        fn f_down(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
            if self.order == ApplyOrder::TopDown { (self.step)(node) } else { Ok(Transformed::no(node)) }
        }

        fn f_up(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
            if self.order == ApplyOrder::BottomUp { (self.step)(node) } else { Ok(Transformed::no(node)) }
        }
    }
    plan.rewrite_with_subqueries(&mut Rewriter { order, step })
}

/// Apart, for plans are large values, and a walk goes as deep as a plan: its own frames are to be small.
#[inline(never)]
fn recompute(plan: &mut LogicalPlan) -> Result<()> {
    *plan = std::mem::take(plan).recompute_schema()?;
    Ok(())
}

/// Takes a step at one node; says whether it changed something, and where to go from here.
#[inline(never)]
fn take(plan: &mut LogicalPlan, step: &mut Step<'_>) -> Result<(bool, TreeNodeRecursion)> {
    let done = step(std::mem::take(plan))?;
    *plan = done.data;
    Ok((done.transformed, done.tnr))
}

/// Calls `change` for each input of a node; true where one of them changed.
fn each_input(node: &mut LogicalPlan, change: &mut dyn FnMut(&mut LogicalPlan) -> Result<bool>) -> Result<bool> {
    match node {
        LogicalPlan::Projection(Projection { input, .. })
        | LogicalPlan::Filter(Filter { input, .. })
        | LogicalPlan::Window(Window { input, .. })
        | LogicalPlan::Aggregate(Aggregate { input, .. })
        | LogicalPlan::Sort(Sort { input, .. })
        | LogicalPlan::Limit(Limit { input, .. })
        | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
        | LogicalPlan::Distinct(Distinct::All(input)) => change(Arc::make_mut(input)),
        LogicalPlan::Join(Join { left, right, .. }) => {
            let changed = change(Arc::make_mut(left))?;
            Ok(change(Arc::make_mut(right))? || changed)
        }
        LogicalPlan::Union(Union { inputs, .. }) => {
            let mut changed = false;
            for input in inputs {
                changed |= change(Arc::make_mut(input))?;
            }
            Ok(changed)
        }
        LogicalPlan::TableScan(_) | LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_) => Ok(false),
        rare => {
            let done = std::mem::take(rare).map_children(|mut input| {
                let changed = change(&mut input)?;
                Ok(Transformed::new_transformed(input, changed))
            })?;
            *rare = done.data;
            Ok(done.transformed)
        }
    }
}
