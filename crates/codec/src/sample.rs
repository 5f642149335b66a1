//! What the chooser looks at: some vectors of a column, and a few counts of all of it.
//!
//! Whole vectors, spread evenly, so that runs, deltas and the range inside a vector look as they do in the column. A
//! scattered sample would suit a dictionary but hide all three; the counts that need the whole column come from a pass
//! over it.

use crate::measure::Counts;
use crate::{VECTOR_LEN, Values, ValuesBuf};

/// Vectors in a sample of a longer column.
const SAMPLE_VECTORS: usize = 16;

/// Part of a column.
#[derive(Debug)]
pub(crate) struct Sample<'a> {
    whole: Values<'a>,
    part: Option<ValuesBuf>,
    /// Of the whole.
    pub(crate) counts: Counts,
}

impl<'a> Sample<'a> {
    /// A sample of `values`: all of them where they are few.
    pub(crate) fn new(values: Values<'a>, counts: Counts) -> Sample<'a> {
        let vectors = values.len() / VECTOR_LEN;
        if vectors <= SAMPLE_VECTORS {
            return Sample { whole: values, part: None, counts };
        }
        let mut part = ValuesBuf::new(values.physical());
        for index in 0..SAMPLE_VECTORS {
            let start = index * (vectors - 1) / (SAMPLE_VECTORS - 1) * VECTOR_LEN;
            part.extend(values.slice(start..start + VECTOR_LEN));
        }
        Sample { whole: values, part: Some(part), counts }
    }

    /// The sampled values.
    pub(crate) fn values(&self) -> Values<'_> {
        match &self.part {
            Some(part) => part.as_values(),
            None => self.whole,
        }
    }

    /// The column.
    pub(crate) fn whole(&self) -> Values<'_> {
        self.whole
    }

    /// Values in the column.
    pub(crate) fn whole_count(&self) -> usize {
        self.whole.len()
    }

    /// What `sample_bytes` for the sample come to for the column.
    pub(crate) fn scale(&self, sample_bytes: usize) -> usize {
        (sample_bytes as f64 * self.whole_count() as f64 / self.values().len().max(1) as f64) as usize
    }
}
