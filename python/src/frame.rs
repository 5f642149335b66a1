//! Arrow data held in memory.

use crate::capsule;
use crate::run::{detached, run};
use crate::to_python;
use crate::type_name::type_name;
use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Record batches of one schema. Immutable; any consumer of `__arrow_c_stream__` can read it, as often as it likes.
#[pyclass(frozen, module = "sinterdb._sinterdb")]
pub(crate) struct Frame {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

/// Name, type in SQL, and whether it may be NULL, of each column.
pub(crate) fn columns(schema: &SchemaRef) -> Vec<(String, String, bool)> {
    let fields = schema.fields().iter();
    fields.map(|field| (field.name().clone(), type_name(field.data_type()), field.is_nullable())).collect()
}

#[pymethods]
impl Frame {
    /// Reads all of an object that has `__arrow_c_stream__`.
    #[staticmethod]
    fn read(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Frame> {
        let reader = capsule::import(source)?;
        let schema = reader.schema();
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let read = move || {
            let mut batches = Vec::new();
            for batch in reader {
                if stopped.load(Ordering::Relaxed) {
                    return Err(sinterdb::Error::Cancelled);
                }
                batches.push(batch.map_err(|error| sinterdb::Error::Data(error.to_string()))?);
            }
            Ok(batches)
        };
        Ok(Frame { schema, batches: run(py, || stop.store(true, Ordering::Relaxed), read)? })
    }

    #[getter]
    fn columns(&self) -> Vec<(String, String, bool)> {
        columns(&self.schema)
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// All rows as tuples of Python objects.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for batch in &self.batches {
            for row in to_python::rows(py, batch)? {
                rows.append(row)?;
            }
        }
        Ok(rows)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A request is a wish that the interface lets us pass over.
        let _ = requested_schema;
        let batches = self.batches.clone();
        capsule::export(py, self.schema.clone(), Box::new(batches.into_iter().map(Ok)))
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let batches = std::mem::take(&mut self.batches);
        detached(move || drop(batches));
    }
}
