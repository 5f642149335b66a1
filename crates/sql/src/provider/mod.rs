//! What DataFusion sees when it asks for a table.

mod catalog;
mod column;
mod file;
mod pipeline;
mod statistics;

pub(crate) use catalog::{ROW_ID_SCHEMA, StatementCatalog};
pub(crate) use column::{ColumnTableProvider, Noted, ROW_ID, Reading};
pub(crate) use file::FileTable;
pub(crate) use pipeline::PipelineTable;
