//! How far the scans of a running plan are.

use super::{HopefulExec, PipelineExec};
use datafusion::physical_plan::ExecutionPlan;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The scans of a plan. It holds none of the other operators: they would keep their rows as long.
#[derive(Debug)]
pub(crate) enum Scans {
    One(Arc<dyn ExecutionPlan>),
    All(Vec<Scans>),
    /// Those of the first plan, until that gives up.
    Hopeful(Box<[Scans; 2]>, Arc<AtomicBool>),
}

impl Scans {
    pub(crate) fn of(plan: &Arc<dyn ExecutionPlan>) -> Scans {
        let any = plan.as_ref() as &dyn Any;
        if any.is::<PipelineExec>() {
            return Scans::One(Arc::clone(plan));
        }
        match any.downcast_ref::<HopefulExec>() {
            Some(exec) => Scans::Hopeful(Box::new(exec.both().map(Scans::of)), exec.gave_up()),
            None => Scans::All(plan.children().into_iter().map(Scans::of).collect()),
        }
    }

    /// How many vectors of tables are scanned, and how many will be.
    pub(crate) fn vectors(&self) -> (usize, usize) {
        match self {
            Scans::One(plan) => {
                let exec = (plan.as_ref() as &dyn Any).downcast_ref::<PipelineExec>();
                exec.map_or((0, 0), PipelineExec::scanned)
            }
            Scans::All(all) => {
                let each = all.iter().map(Scans::vectors);
                each.fold((0, 0), |(done, total), (more_done, more)| (done + more_done, total + more))
            }
            Scans::Hopeful(both, gave_up) => both[usize::from(gave_up.load(Ordering::Relaxed))].vectors(),
        }
    }
}
