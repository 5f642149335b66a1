//! What is ours in DataFusion's physical plans: leaves, and a root that chooses between two plans.

mod files;
mod hopeful;
mod pipeline;
mod scans;

pub(crate) use files::FilesExec;
pub(crate) use hopeful::HopefulExec;
pub(crate) use pipeline::PipelineExec;
pub(crate) use scans::Scans;
