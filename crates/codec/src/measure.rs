//! One look at all values before they are encoded: block statistics, and the counts that the chooser needs.

use crate::distinct::{distinct_of_bytes, distinct_of_fixed, distinct_of_sampled_bytes, distinct_of_sampled_fixed};
use crate::fixed::{Fixed, Integer, for_fixed, for_integers};
use crate::kernels::{FloatSummary, Summary, count_runs, summarize, summarize_floats};
use crate::sample::sampled_vectors;
use crate::scaled::Float;
use crate::values::BytesView;
use crate::{Bitmap, BlockStats, BytesBuf, Scalar, VECTOR_LEN, Values};
use std::borrow::Cow;
use std::ops::Range;

/// What a sample tells only by how its vectors differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// About how many different values.
    pub(crate) distinct: usize,
    /// About how many maximal stretches of equal values.
    pub(crate) runs: usize,
}

impl Counts {
    /// Of `values`, of which it reads a sample.
    pub(crate) fn of(values: Values<'_>) -> Counts {
        let distinct = for_fixed!(Values, values, values => distinct_of_fixed(values), view => distinct_of_bytes(view));
        Counts::with(distinct, values)
    }

    /// Of so many values, of which these are the sample.
    pub(crate) fn of_sampled(values: Values<'_>, whole_count: usize) -> Counts {
        let distinct = for_fixed!(Values, values, values => distinct_of_sampled_fixed(values, whole_count),
            view => distinct_of_sampled_bytes(view, whole_count));
        let part = runs(values).saturating_sub(1) as f64;
        let scaled = part * whole_count.saturating_sub(1) as f64 / values.len().saturating_sub(1).max(1) as f64;
        Counts { distinct, runs: usize::from(whole_count > 0) + scaled.round() as usize }
    }

    /// The same where one of them is known already.
    pub(crate) fn with(distinct: usize, values: Values<'_>) -> Counts {
        Counts { distinct, runs: runs(values) }
    }
}

/// About how many maximal stretches of equal values there are, judged from a sample.
fn runs(values: Values<'_>) -> usize {
    fn of_bytes(values: BytesView<'_>) -> usize {
        1 + values.iter().zip(values.iter().skip(1)).filter(|(value, next)| value != next).count()
    }
    for_fixed!(Values, values, values => runs_of(values.len(), |vector| count_runs(&values[vector])),
        view => runs_of(view.len(), |vector| of_bytes(view.slice(vector))))
}

/// How many runs there are in so many values, where `runs_in` says it of a range that is not empty.
fn runs_of(value_count: usize, mut runs_in: impl FnMut(Range<usize>) -> usize) -> usize {
    if value_count <= 1 {
        return value_count;
    }
    // From each value to the next there is a change or there is none.
    let (mut changes, mut pairs) = (0, 0);
    for vector in sampled_vectors(value_count) {
        let end = (vector.end + 1).min(value_count);
        pairs += end - vector.start - 1;
        changes += runs_in(vector.start..end) - 1;
    }
    1 + (changes as f64 * (value_count - 1) as f64 / pairs as f64).round() as usize
}

/// The statistics of a block. `values` are as they came; what stands at a NULL does not count.
pub(crate) fn measure(values: Values<'_>, validity: Option<&Bitmap>) -> BlockStats {
    let value_count = values.len();
    let null_count = validity.map_or(0, |validity| value_count - validity.count_ones());
    let mut stats = BlockStats { value_count, null_count, ..BlockStats::default() };
    stats.plain_bytes = match values {
        Values::Bytes(view) => 4 * value_count + view.data_bytes(),
        fixed => value_count * fixed.physical().value_bytes().unwrap_or(0),
    };
    if null_count == value_count {
        stats.sorted = true;
        stats.bounds_exact = true;
        stats.sum = values.physical().is_integer().then_some(0);
        return stats;
    }
    match values {
        Values::F32(values) => measure_floats(&present(values, validity), &mut stats),
        Values::F64(values) => measure_floats(&present(values, validity), &mut stats),
        Values::Bytes(view) => match validity {
            None => measure_bytes(view, &mut stats),
            Some(validity) => {
                let present: BytesBuf = validity.ones().map(|index| view.get(index)).collect();
                measure_bytes(present.view(), &mut stats);
            }
        },
        values => for_integers!(Values, values, values => measure_integers(&present(values, validity), &mut stats),
            _ => unreachable!("floats and bytes are above")),
    }
    stats
}

/// What is not NULL.
fn present<'a, T: Fixed>(values: &'a [T], validity: Option<&Bitmap>) -> Cow<'a, [T]> {
    match validity {
        None => Cow::Borrowed(values),
        Some(validity) => validity.ones().map(|index| values[index]).collect(),
    }
}

fn measure_integers<T: Integer>(values: &[T], stats: &mut BlockStats) {
    let Summary { min, max, sum, is_sorted } = summarize(values);
    stats.min = Scalar::Int(min.wide());
    stats.max = Scalar::Int(max.wide());
    stats.bounds_exact = true;
    stats.sum = sum;
    stats.sorted = is_sorted;
    stats.distinct_estimate = distinct_of_fixed(values);
}

fn measure_floats<F: Float>(values: &[F], stats: &mut BlockStats) {
    let mut summary = FloatSummary::NONE;
    let mut last = i64::MIN;
    let mut orders = [0; VECTOR_LEN];
    stats.sorted = true;
    for vector in values.chunks(VECTOR_LEN) {
        let orders = &mut orders[..vector.len()];
        let of_vector = summarize_floats(vector, orders);
        stats.sorted &= last <= orders[0] && of_vector.is_sorted;
        last = orders[orders.len() - 1];
        summary = summary.and(of_vector);
    }
    stats.has_nan = summary.nans > 0;
    if let Some((min, max)) = summary.bounds() {
        stats.min = Scalar::Float(min);
        stats.max = Scalar::Float(max);
        stats.bounds_exact = true;
    }
    stats.distinct_estimate = distinct_of_fixed(values);
}

fn measure_bytes(values: BytesView<'_>, stats: &mut BlockStats) {
    let (mut min, mut max): (Option<&[u8]>, Option<&[u8]>) = (None, None);
    let mut previous: &[u8] = &[];
    stats.sorted = true;
    for value in values.iter() {
        stats.sorted &= previous <= value;
        previous = value;
        if min.is_none_or(|min| value < min) {
            min = Some(value);
        }
        if max.is_none_or(|max| value > max) {
            max = Some(value);
        }
    }
    let (min, max) = (min.unwrap_or_default(), max.unwrap_or_default());
    stats.bounds_exact = min.len() <= BlockStats::BOUND_BYTES && max.len() <= BlockStats::BOUND_BYTES;
    stats.min = Scalar::Bytes(min[..min.len().min(BlockStats::BOUND_BYTES)].to_vec());
    stats.max = BlockStats::upper_bound(max);
    stats.distinct_estimate = distinct_of_bytes(values);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_upper_bound_is_rounded_up() {
        let mut long = vec![b'a'; 40];
        assert_eq!(BlockStats::upper_bound(&long), Scalar::Bytes([vec![b'a'; 31], vec![b'b']].concat()));
        long[31] = 0xff;
        assert_eq!(BlockStats::upper_bound(&long), Scalar::Bytes([vec![b'a'; 30], vec![b'b']].concat()));
        assert_eq!(BlockStats::upper_bound(&[0xff; 33]), Scalar::Null);
    }

    #[test]
    fn nan_and_minus_zero_stay_out_of_the_bounds() {
        let stats = measure(Values::F64(&[f64::NAN, -0.0, 3.5]), None);
        assert_eq!((stats.min, stats.max, stats.has_nan), (Scalar::Float(0.0), Scalar::Float(3.5), true));
        assert!(!stats.sorted);
    }
}
