//! The values that codes point to.

use crate::edge::values_to_arrow;
use crate::{LogicalType, Result};
use arrow::array::ArrayRef;
use sinter_codec::{Values, ValuesBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The values that codes point to. The identity lets an operator map each dictionary once.
#[derive(Debug)]
pub struct Dictionary {
    /// Different for different dictionaries, in one process.
    pub id: u64,
    /// The entries.
    pub values: ValuesBuf,
    progression: Option<Progression>,
    arrow: OnceLock<ArrayRef>,
}

/// Integers at equal distances: entry `i` is `first + i * step`. What is known of codes is known of values then, without a
/// look at the entries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Progression {
    pub(crate) first: i64,
    pub(crate) step: i64,
}

impl Progression {
    /// Of entries of which there are at least two, and whose numbers fit 64 bits.
    fn of(entries: Values<'_>) -> Option<Progression> {
        macro_rules! integers {
            ($entries:expr) => {{
                let entry = |index: usize| i64::try_from($entries[index]).ok();
                let (first, second) = (entry(0)?, entry(1)?);
                let step = second.checked_sub(first)?;
                let follows = |pair: &[_]| i128::from(pair[0]) + i128::from(step) == i128::from(pair[1]);
                // The last is an entry, so that none before it overflows.
                $entries.windows(2).all(follows).then_some(Progression { first, step })
            }};
        }
        if entries.len() < 2 {
            return None;
        }
        match entries {
            Values::I32(entries) => integers!(entries),
            Values::I64(entries) => integers!(entries),
            Values::I16(entries) => integers!(entries),
            Values::U32(entries) => integers!(entries),
            _ => None,
        }
    }
}

impl Dictionary {
    /// A dictionary with an identity of its own.
    pub fn new(values: ValuesBuf) -> Dictionary {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let progression = Progression::of(values.as_values());
        Dictionary { id: NEXT_ID.fetch_add(1, Ordering::Relaxed), values, progression, arrow: OnceLock::new() }
    }

    /// The entries as a progression, where they are one.
    pub(crate) fn progression(&self) -> Option<Progression> {
        self.progression
    }

    /// Whether they are an Arrow array already.
    pub(crate) fn has_arrow(&self) -> bool {
        self.arrow.get().is_some()
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
