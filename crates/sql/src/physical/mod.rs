//! What is ours in DataFusion's physical plans: leaves, and a root that chooses between two plans.

mod files;
mod hopeful;
mod pipeline;

pub(crate) use files::FilesExec;
pub(crate) use hopeful::HopefulExec;
pub(crate) use pipeline::PipelineExec;

use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// How many vectors of tables a plan has scanned, and how many it will; `None` where it scans none.
pub(crate) fn scanned(plan: &Arc<dyn ExecutionPlan>) -> Option<(usize, usize)> {
    if let Some(pipeline) = (plan.as_ref() as &dyn std::any::Any).downcast_ref::<PipelineExec>() {
        return Some(pipeline.scanned());
    }
    let below = plan.children().into_iter().filter_map(scanned);
    below.reduce(|(done, total), (more_done, more)| (done + more_done, total + more))
}
