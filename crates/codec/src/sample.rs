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
    values: Sampled<'a>,
    whole_count: usize,
    /// Of the whole.
    pub(crate) counts: Counts,
}

#[derive(Debug)]
enum Sampled<'a> {
    Borrowed(Values<'a>),
    Gathered(ValuesBuf),
}

impl<'a> Sample<'a> {
    /// A sample of `values`: all of them where they are few.
    pub(crate) fn new(values: Values<'a>, counts: Counts) -> Sample<'a> {
        let whole_count = values.len();
        if whole_count <= SAMPLE_VECTORS * VECTOR_LEN {
            return Sample { values: Sampled::Borrowed(values), whole_count, counts };
        }
        let mut part = ValuesBuf::new(values.physical());
        sampled_vectors(whole_count).for_each(|vector| part.extend(values.slice(vector)));
        Sample { values: Sampled::Gathered(part), whole_count, counts }
    }

    /// What the values of a sample became, one by one: it stands for as many.
    pub(crate) fn of_sampled(values: Values<'a>, whole_count: usize) -> Sample<'a> {
        Sample { values: Sampled::Borrowed(values), whole_count, counts: Counts::of_sampled(values, whole_count) }
    }

    /// The sampled values.
    pub(crate) fn values(&self) -> Values<'_> {
        match &self.values {
            Sampled::Borrowed(values) => *values,
            Sampled::Gathered(part) => part.as_values(),
        }
    }

    /// Values in the column.
    pub(crate) fn whole_count(&self) -> usize {
        self.whole_count
    }

    /// What `sample_bytes` for the sample come to for the column.
    pub(crate) fn scale(&self, sample_bytes: usize) -> usize {
        (sample_bytes as f64 * self.whole_count() as f64 / self.values().len().max(1) as f64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_16_vectors_at_most_from_the_first_to_the_last() {
        let vectors = |count: usize| sampled_vectors(count * VECTOR_LEN).collect::<Vec<_>>();
        for count in (0..200).chain([1024, 2048, 4096]) {
            let sampled = vectors(count);
            assert_eq!(sampled.len(), count.min(SAMPLE_VECTORS), "of {count} vectors");
            assert!(sampled.iter().all(|vector| vector.len() == VECTOR_LEN && vector.end <= count * VECTOR_LEN));
            assert!(sampled.windows(2).all(|pair| pair[0].end <= pair[1].start), "of {count} vectors, one twice");
            assert_eq!(sampled.last().map_or(0, |last| last.end), count * VECTOR_LEN, "the last of {count} is in it");
        }
        let values: Vec<u32> = (0..2_000_000).collect();
        let sample = Sample::new(Values::U32(&values), Counts::of(Values::U32(&values)));
        assert!(sample.values().len() * 100 <= values.len(), "{} of {}", sample.values().len(), values.len());
    }
}
