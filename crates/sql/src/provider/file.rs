//! `FROM 'file.csv'`: files as tables.

use crate::physical::FilesExec;
use crate::progress::Notes;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use sinter_files::Files;
use std::sync::Arc;

/// Files that were sniffed; read when scanned.
pub(crate) struct FileTable {
    files: Files,
    name: String,
    notes: Notes,
}

impl std::fmt::Debug for FileTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileTable").field("name", &self.name).finish_non_exhaustive()
    }
}

impl FileTable {
    /// `name` is what the user wrote; what the reading notices goes to `notes`.
    pub(crate) fn new(files: Files, name: String, notes: Notes) -> FileTable {
        FileTable { files, name, notes }
    }
}

#[async_trait]
impl TableProvider for FileTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.files.schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(projection) => Arc::new(self.files.schema().project(projection)?),
            None => Arc::clone(self.files.schema()),
        };
        Ok(Arc::new(FilesExec::new(
            self.files.clone(),
            self.name.clone(),
            projection.cloned(),
            schema,
            self.notes.clone(),
        )))
    }
}
