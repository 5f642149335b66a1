//! What is ours in DataFusion's physical plans: leaves, a root that chooses between two plans, and what lies around
//! aggregates of several sets and within joins that take long.

mod any_order;
mod files;
mod hopeful;
mod interruptible;
mod pipeline;
mod scans;

pub(crate) use any_order::SetsHaveNoOrder;
pub(crate) use files::FilesExec;
pub(crate) use hopeful::HopefulExec;
pub(crate) use interruptible::interruptible;
pub(crate) use pipeline::PipelineExec;
pub(crate) use scans::Scans;
