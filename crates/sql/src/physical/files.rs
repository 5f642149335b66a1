//! Reading files as a leaf of a physical plan.

use crate::progress::Notes;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use sinter_files::{Files, Reader};
use std::fmt;
use std::sync::Arc;

/// Reads sniffed files, one after the other.
pub(crate) struct FilesExec {
    files: Files,
    name: String,
    projection: Option<Vec<usize>>,
    notes: Notes,
    properties: Arc<PlanProperties>,
}

impl std::fmt::Debug for FilesExec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilesExec").field("name", &self.name).finish_non_exhaustive()
    }
}

impl FilesExec {
    pub(crate) fn new(
        files: Files,
        name: String,
        projection: Option<Vec<usize>>,
        schema: SchemaRef,
        notes: Notes,
    ) -> FilesExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        FilesExec { files, name, projection, notes, properties: Arc::new(properties) }
    }
}

impl DisplayAs for FilesExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilesExec: {}", self.name)?;
        if let Some(projection) = &self.projection {
            let names: Vec<&str> =
                projection.iter().map(|&index| self.files.schema().field(index).name().as_str()).collect();
            write!(f, ", columns=[{}]", names.join(", "))?;
        }
        Ok(())
    }
}

impl ExecutionPlan for FilesExec {
    fn name(&self) -> &str {
        "FilesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let reader = self.files.read(self.projection.as_deref()).map_err(crate::Error::from)?;
        let state = (Some(reader), self.notes.clone());
        let stream = futures::stream::unfold(state, |(reader, notes)| async move {
            let mut reader = reader?;
            match reader.next() {
                Some(Ok(batch)) => Some((Ok(batch), (Some(reader), notes))),
                Some(Err(error)) => Some((Err(crate::Error::from(error).into()), (None, notes))),
                None => {
                    report(&reader, &notes);
                    None
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(self.properties.eq_properties.schema()), stream)))
    }
}

fn report(reader: &Reader, notes: &Notes) {
    for note in reader.notes() {
        notes.add(note.clone());
    }
    let skipped = reader.skipped();
    if skipped.row_count() > 0 {
        let first: Vec<String> = skipped.messages().iter().take(5).map(ToString::to_string).collect();
        notes.add(format!("{} malformed rows were skipped; the first: {}", skipped.row_count(), first.join("; ")));
    }
}
