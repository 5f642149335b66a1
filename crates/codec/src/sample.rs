//! What the chooser looks at: some vectors of a column, and what they say about all of it.
//!
//! Whole vectors, spread evenly, so that runs, deltas and the range inside a vector look as they do in the column. A
//! scattered sample would suit a dictionary but hide all three.

use crate::measure::Counts;
use crate::{VECTOR_LEN, Values, ValuesBuf};
use std::ops::Range;

/// Vectors in a sample of a longer column.
pub(crate) const SAMPLE_VECTORS: usize = 16;

/// The vectors of a sample of so many values: all, the last one shorter, or [`SAMPLE_VECTORS`] whole ones, evenly spread.
pub(crate) fn sampled_vectors(value_count: usize) -> impl Iterator<Item = Range<usize>> {
    let whole = value_count / VECTOR_LEN;
    let is_all = value_count <= SAMPLE_VECTORS * VECTOR_LEN;
    let sampled = if is_all { value_count.div_ceil(VECTOR_LEN) } else { SAMPLE_VECTORS };
    (0..sampled).map(move |index| {
        let vector = if is_all { index } else { index * (whole - 1) / (SAMPLE_VECTORS - 1) };
        vector * VECTOR_LEN..((vector + 1) * VECTOR_LEN).min(value_count)
    })
}

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
        if values.len() <= SAMPLE_VECTORS * VECTOR_LEN {
            return Sample { whole: values, part: None, counts };
        }
        let mut part = ValuesBuf::new(values.physical());
        sampled_vectors(values.len()).for_each(|vector| part.extend(values.slice(vector)));
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
