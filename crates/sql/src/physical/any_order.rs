//! Grouping sets of DataFusion's without what it believes to know of their rows.
//!
//! Its aggregates say of their rows what is known of their input's: that they are in some order, or that a key is always 5.
//! In the rows of a set that leaves the key out it is NULL, so a sort by it is not there although it has to be. They also say
//! that each combination of keys is there once, though two sets may each have one with a NULL.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Aggregate;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use std::fmt;
use std::sync::Arc;

/// The rule: [`AnyOrderExec`] below and above aggregates of several sets.
#[derive(Debug)]
pub(crate) struct SetsHaveNoOrder;

impl PhysicalOptimizerRule for SetsHaveNoOrder {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(plan.transform_up(without_order)?.data)
    }

    fn name(&self) -> &str {
        "sinter_sets_have_no_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn without_order(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(aggregate) = (plan.as_ref() as &dyn std::any::Any).downcast_ref::<AggregateExec>() else {
        return Ok(Transformed::no(plan));
    };
    let groups = aggregate.group_expr();
    let has_set_number = || groups.expr().iter().any(|(_, name)| name == Aggregate::INTERNAL_GROUPING_ID);
    if groups.is_single() && !has_set_number() {
        return Ok(Transformed::no(plan));
    }
    let (takes_rows, makes_results) = match aggregate.mode() {
        AggregateMode::Partial => (true, false),
        AggregateMode::PartialReduce => (false, false),
        AggregateMode::Final | AggregateMode::FinalPartitioned => (false, true),
        AggregateMode::Single | AggregateMode::SinglePartitioned => (true, true),
    };
    let mut plan = Arc::clone(&plan);
    if takes_rows {
        let input = AnyOrderExec::of(Arc::clone(aggregate.input()));
        plan = plan.replace_children(vec![input], ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))?;
    }
    Ok(Transformed::yes(if makes_results { AnyOrderExec::of(plan) } else { plan }))
}

/// The rows of its input, in an order of which nothing is known.
#[derive(Debug)]
struct AnyOrderExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl AnyOrderExec {
    fn of(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Arc::new(AnyOrderExec { input, properties: Arc::new(properties) })
    }
}

impl DisplayAs for AnyOrderExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyOrderExec")
    }
}

impl ExecutionPlan for AnyOrderExec {
    fn name(&self) -> &str {
        "AnyOrderExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(children.into_iter().next().map_or(self as Arc<dyn ExecutionPlan>, AnyOrderExec::of))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
