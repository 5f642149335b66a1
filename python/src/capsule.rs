//! Arrow data over the border without a copy: the Arrow PyCapsule interface.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>: an object with `__arrow_c_stream__`
//! hands out a capsule named `arrow_array_stream` around an `ArrowArrayStream` of the C stream interface. pyarrow,
//! pandas, Polars, DuckDB, DataFusion and we speak it both ways.

#![allow(unsafe_code, reason = "taking a stream out of a capsule that another library made")]

use crate::error::{DataError, NotSupportedError};
use crate::run::{detached, guard};
use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::CStr;

const STREAM: &CStr = c"arrow_array_stream";

/// Batches on their way out of here, from a running query or from memory.
pub(crate) type BatchIterator = Box<dyn Iterator<Item = sinterdb::Result<RecordBatch>> + Send>;

/// Opens the stream of an object that has `__arrow_c_stream__`. Reading it may run Python code of its producer: read it
/// with the interpreter free.
///
/// # Errors
/// NotSupportedError for an object without that method, DataError for types that Arrow here does not have, and what the
/// method itself raises.
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let Some(method) = object.getattr_opt("__arrow_c_stream__")? else {
        let class = object.get_type().qualname()?;
        return Err(NotSupportedError::new_err(format!("a {class} has no __arrow_c_stream__, so it cannot be read")));
    };
    let answer = method.call0()?;
    let capsule = answer.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a valid, aligned `ArrowArrayStream`, by the interface's definition, and is
    // alive here. The interpreter is held, so nobody else takes the stream at the same time. `from_raw` moves it out
    // and leaves a released one behind, which the capsule's destructor passes over.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
    ArrowArrayStreamReader::try_new(stream).map_err(|error| DataError::new_err(error.to_string()))
}

/// A capsule from which a consumer pulls `batches`. No Python code runs while it does.
///
/// # Errors
/// Where Python cannot make the capsule.
pub(crate) fn export<'py>(
    py: Python<'py>,
    schema: SchemaRef,
    batches: BatchIterator,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(Reader { schema, batches })), STREAM)
}

/// What the C side calls. It may neither unwind nor see an error message with a zero byte in it.
struct Reader {
    schema: SchemaRef,
    batches: BatchIterator,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = detached(|| guard(|| self.batches.next().transpose()));
        next.map_err(|error| ArrowError::ExternalError(error.to_string().replace('\0', "\\0").into())).transpose()
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
