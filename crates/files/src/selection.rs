//! Which columns of a file that has columns of its own (Parquet, Arrow) are read, and where they go.

use super::sniff::Wanted;
use super::{FileError, Result, normalise};
use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::{FieldRef, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use std::path::Path;
use std::sync::Arc;

/// The columns of one file for one scan.
pub(crate) struct Selection {
    /// The columns to read, by place in the file, in its order.
    pub(crate) read: Vec<usize>,
    /// For each column of the batches, its place among those that are read.
    outputs: Vec<(FieldRef, Option<usize>)>,
}

impl Selection {
    pub(crate) fn new(columns: &[Wanted], projection: &[usize]) -> Self {
        let wanted = || projection.iter().map(|&index| &columns[index]);
        let mut read: Vec<usize> = wanted().filter_map(|column| column.source).collect();
        read.sort_unstable();
        read.dedup();
        let place = |column: &Wanted| column.source.and_then(|source| read.binary_search(&source).ok());
        let outputs = wanted().map(|column| (Arc::clone(&column.field), place(column))).collect();
        Self { read, outputs }
    }

    /// The columns of the batches from a batch of those that were read, in the types that are wanted.
    pub(crate) fn apply(&self, path: &Path, batch: &RecordBatch) -> Result<RecordBatch> {
        let array = |(field, place): &(FieldRef, Option<usize>)| match place {
            Some(place) => normalise::array(path, field.name(), batch.column(*place), field.data_type()),
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        };
        let arrays = self.outputs.iter().map(array).collect::<Result<Vec<ArrayRef>>>()?;
        let schema = Schema::new(self.outputs.iter().map(|(field, _)| Arc::clone(field)).collect::<Vec<_>>());
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options)
            .map_err(|error| FileError::damaged(path, error))
    }
}
