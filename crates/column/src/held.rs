//! Bytes that a table holds in memory, beside the pool, and that its budget knows of.

use sinter_exec::Pinned;
use sinter_storage::{Budget, Reservation, Use};
use std::ops::Deref;
use std::sync::Arc;

/// Bytes in memory. Clones and slices share them and their reservation, which ends with the last of them. A pin may
/// outlast it, by no more than a query.
#[derive(Clone, Debug)]
pub struct Held {
    bytes: Pinned,
    memory: Arc<Reservation>,
}

impl Held {
    /// Takes memory for bytes that are there already: a delta batch that was made, or came from the log.
    pub(crate) fn new(budget: &Arc<Budget>, mut bytes: Vec<u8>) -> Held {
        bytes.shrink_to_fit();
        let memory = Arc::new(budget.take(Use::Table, bytes.len()));
        Held { bytes: Pinned::from_vec(bytes), memory }
    }

    /// A part of them; `None` when `range` reaches past the end.
    pub(crate) fn slice(&self, range: std::ops::Range<usize>) -> Option<Held> {
        Some(Held { bytes: self.bytes.slice(range)?, memory: Arc::clone(&self.memory) })
    }

    /// The bytes, for as long as the pin lives.
    pub fn pin(&self) -> Pinned {
        self.bytes.clone()
    }

    /// What all who share the bytes hold together.
    pub(crate) fn memory(&self) -> &Arc<Reservation> {
        &self.memory
    }
}

impl Deref for Held {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}
