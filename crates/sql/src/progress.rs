//! What a running statement tells while it runs: how far it is, and what the user should know.

use std::sync::{Arc, Mutex, PoisonError};

/// How far the running statement is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// What is going on, such as `pressing lineitem`.
    pub label: String,
    /// Units done: rows, or row groups.
    pub done: u64,
    /// Units in all, where known.
    pub total: Option<u64>,
}

/// Remarks gathered on the way, such as rows that were skipped. Clones share one list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn add(&self, note: String) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Everything noted since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
