//! What running one statement gave.

use crate::rows::Rows;
use pyo3::prelude::*;

/// Rows to fetch, or what a command did.
#[pyclass(frozen, module = "sinterdb._sinterdb")]
pub(crate) struct Outcome {
    /// The result of a query, not yet run; None for a command.
    #[pyo3(get)]
    pub(crate) rows: Option<Py<Rows>>,
    /// What the command did, such as INSERT; SELECT for a query.
    #[pyo3(get)]
    pub(crate) tag: String,
    /// Rows that the command changed; None where it changes none.
    #[pyo3(get)]
    pub(crate) changed: Option<u64>,
    /// Things to tell the user, such as rows skipped.
    #[pyo3(get)]
    pub(crate) notes: Vec<String>,
}
