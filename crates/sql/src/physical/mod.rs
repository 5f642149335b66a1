//! Our leaves in DataFusion's physical plans.

mod files;
mod pipeline;

pub(crate) use files::FilesExec;
pub(crate) use pipeline::PipelineExec;
