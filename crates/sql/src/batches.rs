//! Results on their way out.

use crate::planner::Planned;
use crate::progress::Notes;
use crate::session::{Awaited, Running};
use crate::{Error, Result};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;
use std::sync::Arc;

/// Batches waiting for a slow reader: enough to keep both sides busy, few enough to stay small.
const BATCHES_AHEAD: usize = 4;

/// What running a statement gave.
#[derive(Debug)]
pub enum Outcome {
    /// A query, planned and ready to run.
    Rows(Query),
    /// A command that ran.
    Done {
        /// What it did, in capitals as PostgreSQL's command tags: `INSERT`, `CREATE TABLE`.
        tag: String,
        /// Rows changed, where the command changes rows.
        rows: Option<u64>,
        /// Things to tell the user, such as rows skipped by `on_error 'skip'`.
        notes: Vec<String>,
    },
}

/// A planned query. Runs when collected or streamed.
pub struct Query {
    schema: SchemaRef,
    source: Source,
    notes: Notes,
}

enum Source {
    Plan { plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>, running: Arc<Running> },
    Ready(Vec<RecordBatch>),
}

impl Query {
    /// # Errors
    /// Those of [`Planned::running`].
    pub(crate) fn planned(planned: Planned) -> Result<Query> {
        let running = planned.running()?;
        let Planned { physical: plan, context, .. } = planned;
        let schema = outer_schema(&plan.schema());
        Ok(Query { schema, source: Source::Plan { plan, context, running }, notes: Notes::default() })
    }

    /// The same with these names, as far as there are some.
    pub(crate) fn with_names(self, names: &[Option<String>]) -> Query {
        Query { schema: named(&self.schema, names), ..self }
    }

    /// The same, handing on what its leaves note while it runs.
    pub(crate) fn with_notes(self, notes: Notes) -> Query {
        Query { notes, ..self }
    }

    /// A result that is there already, such as that of SHOW.
    pub(crate) fn ready(batch: RecordBatch) -> Query {
        Query { schema: batch.schema(), source: Source::Ready(vec![batch]), notes: Notes::default() }
    }

    /// What a command that left `notes` yields where rows are wanted: none, and no columns.
    pub fn empty(notes: Vec<String>) -> Query {
        let all = Notes::default();
        notes.into_iter().for_each(|note| all.add(note));
        Query { schema: Arc::new(Schema::empty()), source: Source::Ready(Vec::new()), notes: all }
    }

    /// Names and types of the result.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Runs it and returns all batches (at least one, possibly empty, so that the schema is known).
    ///
    /// # Errors
    /// [`Error`].
    pub fn collect(self) -> Result<Vec<RecordBatch>> {
        let schema = self.schema();
        let mut batches = self.stream()?.collect::<Result<Vec<_>>>()?;
        if batches.is_empty() {
            batches.push(RecordBatch::new_empty(schema));
        }
        Ok(batches)
    }

    /// Runs it and hands out batches as they come.
    ///
    /// # Errors
    /// [`Error`].
    pub fn stream(self) -> Result<Batches> {
        let (schema, notes) = (self.schema, self.notes);
        let (receiver, running) = match self.source {
            Source::Ready(batches) => {
                let (sender, receiver) = tokio::sync::mpsc::channel(batches.len().max(1));
                for batch in batches {
                    // The channel was made large enough, and its other end is still here.
                    let _ = sender.try_send(Ok(batch));
                }
                (receiver, None)
            }
            Source::Plan { plan, context, running } => {
                let (sender, receiver) = tokio::sync::mpsc::channel(BATCHES_AHEAD);
                let runtime = running.runtime()?;
                let outer = Arc::clone(&schema);
                let awaited = Awaited::new(&running);
                let scans = running.runs(&plan);
                let task = runtime.spawn({
                    let sender = sender.clone();
                    async move {
                        // As long as it runs, it is known how far it is.
                        let _scans = scans;
                        let mut stream = execute_stream(plan, context)?;
                        loop {
                            let next = tokio::select! {
                                biased;
                                () = running.cancelled() => return Err(Error::Cancelled),
                                () = sender.closed() => return Ok(()),
                                next = stream.next() => next,
                            };
                            let Some(batch) = next else { return Ok(()) };
                            let batch = outer_batch(&batch?, &outer)?;
                            tokio::select! {
                                biased;
                                () = running.cancelled() => return Err(Error::Cancelled),
                                sent = sender.send(Ok(batch)) => if sent.is_err() { return Ok(()) },
                            }
                        }
                    }
                });
                runtime.spawn(async move {
                    let end: Result<()> = match task.await {
                        Ok(end) => end,
                        Err(error) => Err(Error::Internal(error.to_string())),
                    };
                    if let Err(error) = end {
                        // Nobody listens any more when this fails.
                        let _ = sender.send(Err(error)).await;
                    }
                });
                (receiver, Some(awaited))
            }
        };
        Ok(Batches { schema, receiver, running, notes })
    }
}

impl std::fmt::Debug for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// Record batches of a running query. Dropping it stops the query.
pub struct Batches {
    schema: SchemaRef,
    receiver: tokio::sync::mpsc::Receiver<Result<RecordBatch>>,
    /// `None` once there is nothing to interrupt.
    running: Option<Awaited>,
    notes: Notes,
}

impl Batches {
    /// Names and types of the result.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Batches {
    /// What was noted so far, such as texts in a file that were read as NULL; complete once all batches are out. A
    /// second call gives only what came since.
    pub fn notes(&self) -> Vec<String> {
        self.notes.take()
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let Some(running) = &self.running else { return pollster::block_on(self.receiver.recv()) };
        let next = pollster::block_on(running.next_of(&mut self.receiver));
        if !matches!(next, Some(Ok(_))) {
            self.running = None;
            self.receiver.close();
        }
        next
    }
}

impl std::fmt::Debug for Batches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// The same schema with other names for its columns, as far as `names` has some.
pub(crate) fn named(schema: &SchemaRef, names: &[Option<String>]) -> SchemaRef {
    if names.len() != schema.fields().len() {
        return Arc::clone(schema);
    }
    let fields = schema.fields().iter().zip(names).map(|(field, name)| match name {
        Some(name) => Arc::new(field.as_ref().clone().with_name(name)),
        None => Arc::clone(field),
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// The schema that applications see: text as `Utf8` and blobs as `Binary`, which every Arrow library reads, and UUIDs
/// marked as Arrow's canonical extension type.
pub(crate) fn outer_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(outer_field);
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

fn outer_field(field: &Arc<Field>) -> Arc<Field> {
    let outer = field.as_ref().clone().with_data_type(outer_type(field.data_type()));
    Arc::new(match outer.data_type() {
        // Nothing else of ours has this type.
        DataType::FixedSizeBinary(16) => {
            let mut metadata = outer.metadata().clone();
            metadata.insert("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned());
            metadata.insert("ARROW:extension:metadata".to_owned(), String::new());
            outer.with_metadata(metadata)
        }
        _ => outer,
    })
}

/// The type in which applications and files see a column of this type.
pub(crate) fn outer_type(ty: &DataType) -> DataType {
    match ty {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(field) => DataType::List(outer_field(field)),
        DataType::LargeList(field) => DataType::LargeList(outer_field(field)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(outer_field).collect()),
        other => other.clone(),
    }
}

/// A batch of that schema's columns, in its types.
pub(crate) fn outer_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(array, field)| {
            if array.data_type() == field.data_type() {
                Ok(Arc::clone(array))
            } else {
                Ok(cast(array, field.data_type())?)
            }
        })
        .collect::<Result<Vec<ArrayRef>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
