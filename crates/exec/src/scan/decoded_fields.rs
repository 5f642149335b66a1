//! Which fields the scans of a plan have decoded, so that what two of them both decode is counted.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// A vector of a column: of which row group ([`TableSource::group_id`](crate::TableSource::group_id)), which column, and from
/// which row on.
type Field = ((u64, u64), usize, usize);

/// Of measured runs: who measures waits for a lock at each vector.
#[derive(Debug, Default)]
pub(crate) struct DecodedFields(Mutex<HashSet<Field>>);

impl DecodedFields {
    /// Notes a field; true where it was decoded before.
    pub(super) fn note(&self, group: (u64, u64), column: usize, first_row: usize) -> bool {
        !self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((group, column, first_row))
    }
}
