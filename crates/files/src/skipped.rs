//! Rows that do not fit: fail at the first, or skip and count them.

use super::error::RowError;

/// What a malformed row does to the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// The first malformed row fails the statement.
    #[default]
    Fail,
    /// Malformed rows are left out, counted and reported.
    Skip,
}

/// The messages kept of skipped rows.
const MESSAGES_KEPT: usize = 10;

/// The rows left out under [`OnError::Skip`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skipped {
    row_count: u64,
    messages: Vec<RowError>,
}

impl Skipped {
    /// How many rows were left out.
    pub fn row_count(&self) -> u64 {
        self.row_count
    }

    /// Why the first few of them were left out.
    pub fn messages(&self) -> &[RowError] {
        &self.messages
    }

    /// Counts one more row.
    pub(crate) fn add(&mut self, error: RowError) {
        self.row_count += 1;
        if self.messages.len() < MESSAGES_KEPT {
            // The remedy is for a statement that failed.
            self.messages.push(RowError { remedy: None, ..error });
        }
    }
}
