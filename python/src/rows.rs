//! The result of one query: planned at first, running from the first fetch on.

use crate::capsule;
use crate::error::{ProgrammingError, Warning};
use crate::frame::{Frame, columns};
use crate::run::{detached, run};
use crate::to_python;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use sinterdb::{Batches, Interrupt, Query};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Can be read once, as rows or as batches. Several threads may hold it; one reads at a time.
#[pyclass(frozen, module = "sinterdb._sinterdb")]
pub(crate) struct Rows {
    schema: SchemaRef,
    interrupt: Interrupt,
    reading: Mutex<Reading>,
}

struct Reading {
    state: State,
    /// Rows of the batch read last that nobody has fetched yet.
    waiting: VecDeque<Py<PyTuple>>,
}

enum State {
    Planned(Query),
    Running(Batches),
    Finished,
}

impl State {
    /// The next batch. Starts the query where it is not running; an error finishes it. What the query noted on the way,
    /// such as rows that it left out, is added to `notes` at its end.
    fn next(&mut self, notes: &mut Vec<String>) -> sinterdb::Result<Option<RecordBatch>> {
        let mut batches = match std::mem::replace(self, State::Finished) {
            State::Planned(query) => query.stream()?,
            State::Running(batches) => batches,
            State::Finished => return Ok(None),
        };
        let next = batches.next().transpose()?;
        match next.is_some() {
            true => *self = State::Running(batches),
            false => notes.extend(batches.notes()),
        }
        Ok(next)
    }
}

fn warn(py: Python<'_>, notes: &[String]) -> PyResult<()> {
    let category = py.get_type::<Warning>();
    notes.iter().try_for_each(|note| {
        let note = std::ffi::CString::new(note.replace('\0', " ")).unwrap_or_default();
        PyErr::warn(py, &category, &note, 1)
    })
}

impl Rows {
    pub(crate) fn new(query: Query, interrupt: Interrupt) -> Rows {
        let schema = query.schema();
        let reading = Mutex::new(Reading { state: State::Planned(query), waiting: VecDeque::new() });
        Rows { schema, interrupt, reading }
    }

    fn read<T>(&self, py: Python<'_>, work: impl FnOnce(&mut Reading) -> PyResult<T>) -> PyResult<T> {
        work(&mut self.reading.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner))
    }

    fn next_batch(&self, py: Python<'_>, state: &mut State) -> PyResult<Option<RecordBatch>> {
        if matches!(state, State::Finished) {
            return Ok(None);
        }
        let mut taken = std::mem::replace(state, State::Finished);
        let mut notes = Vec::new();
        let (next, left, notes) =
            run(py, || self.interrupt.interrupt(), move || Ok((taken.next(&mut notes)?, taken, notes)))?;
        *state = left;
        warn(py, &notes)?;
        Ok(next)
    }

    /// What has not been read yet, for a reader of batches.
    fn take(&self, py: Python<'_>) -> PyResult<State> {
        self.read(py, |reading| {
            if !reading.waiting.is_empty() {
                return Err(ProgrammingError::new_err(
                    "part of a batch was fetched as rows; fetch the rest as rows too",
                ));
            }
            Ok(std::mem::replace(&mut reading.state, State::Finished))
        })
    }
}

#[pymethods]
impl Rows {
    #[getter]
    fn columns(&self) -> Vec<(String, String, bool)> {
        columns(&self.schema)
    }

    /// Up to `limit` further rows as tuples; all of them without a limit. Fewer than asked for: there are no more.
    #[pyo3(signature = (limit=None))]
    fn fetch<'py>(&self, py: Python<'py>, limit: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        let limit = limit.unwrap_or(usize::MAX);
        self.read(py, |reading| {
            let rows = PyList::empty(py);
            while rows.len() < limit {
                if let Some(row) = reading.waiting.pop_front() {
                    rows.append(row)?;
                } else if let Some(batch) = self.next_batch(py, &mut reading.state)? {
                    reading.waiting.extend(to_python::rows(py, &batch)?.into_iter().map(Bound::unbind));
                } else {
                    break;
                }
            }
            Ok(rows)
        })
    }

    /// The next batch with rows in it; None after the last.
    fn next_frame(&self, py: Python<'_>) -> PyResult<Option<Frame>> {
        self.read(py, |reading| {
            while let Some(batch) = self.next_batch(py, &mut reading.state)? {
                if batch.num_rows() > 0 {
                    return Ok(Some(Frame { schema: batch.schema(), batches: vec![batch] }));
                }
            }
            Ok(None)
        })
    }

    /// All that is left, in memory.
    fn collect(&self, py: Python<'_>) -> PyResult<Frame> {
        let mut state = self.take(py)?;
        let collect = move || {
            let (mut batches, mut notes) = (Vec::new(), Vec::new());
            while let Some(batch) = state.next(&mut notes)? {
                batches.push(batch);
            }
            Ok((batches, notes))
        };
        let (batches, notes) = run(py, || self.interrupt.interrupt(), collect)?;
        warn(py, &notes)?;
        let schema = batches.first().map_or_else(|| self.schema.clone(), RecordBatch::schema);
        Ok(Frame { schema, batches })
    }

    /// Stops the query and gives back what it holds.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let state = self.read(py, |reading| {
            reading.waiting.clear();
            Ok(std::mem::replace(&mut reading.state, State::Finished))
        })?;
        py.detach(|| drop(state));
        Ok(())
    }

    /// Hands what is left to a consumer, batch by batch as the query yields them.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let mut state = self.take(py)?;
        let batches = std::iter::from_fn(move || state.next(&mut Vec::new()).transpose());
        capsule::export(py, self.schema.clone(), Box::new(batches))
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        let reading = self.reading.get_mut().unwrap_or_else(PoisonError::into_inner);
        let state = std::mem::replace(&mut reading.state, State::Finished);
        detached(move || drop(state));
    }
}
