//! The values that codes point to.

use crate::edge::values_to_arrow;
use crate::{LogicalType, Result};
use arrow::array::ArrayRef;
use sinter_codec::ValuesBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The values that codes point to. The identity lets an operator map each dictionary once.
#[derive(Debug)]
pub struct Dictionary {
    /// Different for different dictionaries, in one process.
    pub id: u64,
    /// The entries.
    pub values: ValuesBuf,
    arrow: OnceLock<ArrayRef>,
}

impl Dictionary {
    /// A dictionary with an identity of its own.
    pub fn new(values: ValuesBuf) -> Dictionary {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        Dictionary { id: NEXT_ID.fetch_add(1, Ordering::Relaxed), values, arrow: OnceLock::new() }
    }

    /// The entries as an Arrow array, made at the first call: a dictionary belongs to one column, hence to one type.
    pub(crate) fn as_arrow(&self, ty: &LogicalType) -> Result<ArrayRef> {
        if let Some(array) = self.arrow.get() {
            return Ok(array.clone());
        }
        let array = values_to_arrow(self.values.as_values(), None, ty)?;
        Ok(self.arrow.get_or_init(|| array).clone())
    }
}
