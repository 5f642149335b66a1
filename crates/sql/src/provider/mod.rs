//! What DataFusion sees when it asks for a table.

mod catalog;
mod file;
mod pipeline;
mod statistics;
mod stored;

pub(crate) use catalog::{ROW_ID_SCHEMA, StatementCatalog};
pub(crate) use file::FileTable;
pub(crate) use pipeline::PipelineTable;
pub(crate) use stored::{Noted, ROW_ID, Reading, Stored, StoredProvider};
