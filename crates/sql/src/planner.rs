//! From a logical plan to a physical one that is ready to run: our lowering first, then DataFusion's planner.

use crate::batches::named;
use crate::checked::checked_plan;
use crate::lower::lower;
use crate::one_zero::with_one_zero;
use crate::optimize::optimized;
use crate::physical::{HopefulExec, interruptible};
use crate::provider::PipelineTable;
use crate::session::Running;
use crate::walk::WalkPlan;
use crate::{Error, Result};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session as DataFusionSession;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use sinter_column::TableSchema;
use std::sync::Arc;

/// A physical plan, ready to run.
pub(crate) struct Planned {
    pub(crate) physical: Arc<dyn ExecutionPlan>,
    /// What the statement calls its columns, as far as it does.
    pub(crate) names: Vec<Option<String>>,
    pub(crate) context: Arc<TaskContext>,
}

/// What a plan needs when it runs: settings and memory. Names of functions were looked up when it was made; copying all of
/// them would take longer than many a statement.
fn context_of(state: &SessionState) -> Arc<TaskContext> {
    let (id, config) = (state.session_id().to_owned(), state.config().clone());
    let (scalars, higher, aggregates, windows) = Default::default();
    let runtime = Arc::clone(state.runtime_env());
    Arc::new(TaskContext::new(None, id, config, scalars, higher, aggregates, windows, runtime))
}

/// Whether what a plan reads may be the names of functions, which `information_schema` asks for as it runs.
fn may_list_functions(plan: &LogicalPlan) -> Result<bool> {
    let is_listing = |node: &LogicalPlan| match node {
        LogicalPlan::TableScan(scan) => scan.table_name.schema() == Some(INFORMATION_SCHEMA),
        _ => false,
    };
    let mut found = false;
    plan.visit_nodes_with_subqueries(&mut |node| {
        found |= is_listing(node);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

impl Planned {
    /// The plan of a statement whose columns have these names.
    ///
    /// # Errors
    /// Those of planning.
    pub(crate) async fn of(state: &SessionState, logical: LogicalPlan, names: Vec<Option<String>>) -> Result<Planned> {
        let context = if may_list_functions(&logical)? { state.task_ctx() } else { context_of(state) };
        let logical = optimized(state, logical)?;
        let physical = state.query_planner().create_physical_plan(&logical, state).await?;
        Ok(Planned { physical, names, context })
    }

    /// A plan of ours.
    pub(crate) fn new(physical: Arc<dyn ExecutionPlan>, state: &SessionState) -> Planned {
        Planned { physical, names: Vec::new(), context: context_of(state) }
    }

    /// What its operators ask whether they should go on.
    ///
    /// # Errors
    /// [`Error::Internal`] where no session made the plan's state.
    pub(crate) fn running(&self) -> Result<Arc<Running>> {
        let running = self.context.session_config().get_extension::<Running>();
        running.ok_or_else(|| Error::Internal("a plan of no session".to_owned()))
    }

    /// The columns, as the statement calls them.
    pub(crate) fn schema(&self) -> SchemaRef {
        named(&self.physical.schema(), &self.names)
    }

    /// The same rows in the order that a table wants them to be loaded in, `WITH (order_by = 'a, b')`. `sources` says
    /// where the table's columns are.
    ///
    /// # Errors
    /// None of ours.
    pub(crate) fn sorted_for(self, table: &TableSchema, sources: &[Option<usize>]) -> Result<Planned> {
        let schema = self.physical.schema();
        let wanted = table.order_by().into_iter().filter_map(|column| sources[column]);
        let by = wanted.map(|source| {
            let column = Column::new(schema.field(source).name(), source);
            PhysicalSortExpr::new_default(Arc::new(column))
        });
        let Some(ordering) = LexOrdering::new(by.collect::<Vec<_>>()) else { return Ok(self) };
        let rows = Arc::new(CoalescePartitionsExec::new(self.physical));
        Ok(Planned { physical: Arc::new(SortExec::new(ordering, rows)), ..self })
    }
}

/// The state with which a query is planned whose rows are put into a table or a file: what makes them in an order, as
/// generate_series does, is not dealt out to threads, for zone maps prune by the order. What presses them has threads.
pub(crate) fn keeping_order(mut state: SessionState) -> SessionState {
    state.config_mut().options_mut().optimizer.enable_round_robin_repartition = false;
    state
}

/// Joins turn few rows into very many before they ask for more, and only leaves let go of their thread now and then: an
/// interrupt would go unheard. Those with conditions do not even come back while they find nothing.
fn hears_interrupts(
    plan: Arc<dyn ExecutionPlan>,
    running: Option<&Arc<Running>>,
) -> datafusion::common::Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let makes_rows = ["NestedLoopJoinExec", "CrossJoinExec", "HashJoinExec", "SortMergeJoinExec", "UnnestExec"];
    if !makes_rows.contains(&plan.name()) {
        return Ok(Transformed::no(plan));
    }
    let plan = running.map_or_else(|| Ok(Arc::clone(&plan)), |running| interruptible(&plan, running))?;
    Ok(Transformed::yes(Arc::new(CooperativeExec::new(plan))))
}

/// DataFusion's planner with our lowering before it.
#[derive(Debug)]
pub(crate) struct Planner {
    pub(crate) lowers: bool,
}

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        logical: &LogicalPlan,
        session: &dyn DataFusionSession,
    ) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
        let group_bytes_max = match session.runtime_env().memory_pool.memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / 2,
            MemoryLimit::Infinite | MemoryLimit::Unknown => usize::MAX,
        };
        if !self.lowers {
            return physical(logical, session).await;
        }
        let careful = lower(logical, group_bytes_max)?;
        match session.as_any().downcast_ref::<SessionState>() {
            Some(state) if careful.is_large => {
                let mut state = state.clone();
                // A build side for each partition would be made when another one has handed out rows.
                state.config_mut().options_mut().optimizer.repartition_joins = false;
                let hopeful = physical(&lower(logical, usize::MAX)?.plan, &state).await;
                // DataFusion's hash joins cannot spill, its joins of sorted rows can.
                let optimizer = &mut state.config_mut().options_mut().optimizer;
                (optimizer.repartition_joins, optimizer.prefer_hash_join) = (true, false);
                let careful = physical(&careful.plan, &state).await?;
                Ok(hopeful.map_or(Arc::clone(&careful), |hopeful| HopefulExec::of(hopeful, careful)))
            }
            _ => physical(&careful.plan, session).await,
        }
    }
}

/// The physical plan of a logical one, as it is.
async fn physical(
    logical: &LogicalPlan,
    session: &dyn DataFusionSession,
) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
    if let Some(whole) = PipelineTable::of(logical) {
        // There is nothing around it that could be planned.
        return whole.scan(session, None, &[], None).await;
    }
    let logical = with_one_zero(checked_plan(logical.clone())?)?;
    let physical = DefaultPhysicalPlanner::default().create_physical_plan(&logical, session).await?;
    let running = session.config().get_extension::<Running>();
    Ok(physical.transform_up(|plan| hears_interrupts(plan, running.as_ref()))?.data)
}
