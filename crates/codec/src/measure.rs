//! One look at all values before they are encoded: block statistics, and the counts that the chooser needs.

use crate::distinct::DistinctCounter;
use crate::fixed::{Fixed, Integer, for_fixed, for_integers};
use crate::kernels::{FloatSummary, Summary, count_runs, summarize, summarize_floats};
use crate::scaled::Float;
use crate::{Bitmap, BlockStats, Scalar, VECTOR_LEN, Values};
use std::borrow::Cow;
use xxhash_rust::xxh3::xxh3_64;

/// What a sample cannot tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// About how many different values.
    pub(crate) distinct: usize,
    /// Maximal stretches of equal values.
    pub(crate) runs: usize,
}

impl Counts {
    /// One pass over `values`.
    pub(crate) fn of(values: Values<'_>) -> Counts {
        for_fixed!(Values, values, values => of_fixed(values), view => of_bytes(view.iter()))
    }
}

fn of_fixed<T: Fixed>(values: &[T]) -> Counts {
    Counts { distinct: DistinctCounter::of_fixed(values), runs: count_runs(values) }
}

fn of_bytes<'a>(values: impl ExactSizeIterator<Item = &'a [u8]>) -> Counts {
    let mut distinct = DistinctCounter::new(values.len());
    let mut runs = 0;
    let mut previous = None;
    for value in values {
        if previous != Some(value) {
            previous = Some(value);
            runs += 1;
            distinct.add(xxh3_64(value) as u32);
        }
    }
    Counts { distinct: distinct.estimate(), runs }
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
            None => measure_bytes(view.iter(), &mut stats),
            Some(validity) => {
                let present: Vec<&[u8]> = validity.ones().map(|index| view.get(index)).collect();
                measure_bytes(present.into_iter(), &mut stats);
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
    let Summary { min, max, sum, descents } = summarize(values);
    stats.min = Scalar::Int(min.wide());
    stats.max = Scalar::Int(max.wide());
    stats.bounds_exact = true;
    stats.sum = sum;
    stats.sorted = descents == 0;
    stats.distinct_estimate = DistinctCounter::of_fixed(values);
}

fn measure_floats<F: Float>(values: &[F], stats: &mut BlockStats) {
    let mut summary = FloatSummary::NONE;
    let mut distinct = DistinctCounter::new(values.len());
    let mut last = i64::MIN;
    let mut orders = [0; VECTOR_LEN];
    stats.sorted = true;
    for vector in values.chunks(VECTOR_LEN) {
        let orders = &mut orders[..vector.len()];
        let of_vector = summarize_floats(vector, orders);
        stats.sorted &= last <= orders[0] && of_vector.descents == 0;
        last = orders[orders.len() - 1];
        summary = summary.and(of_vector);
        distinct.add_all(orders);
    }
    stats.has_nan = summary.nans > 0;
    if let Some((min, max)) = summary.bounds() {
        stats.min = Scalar::Float(min);
        stats.max = Scalar::Float(max);
        stats.bounds_exact = true;
    }
    stats.distinct_estimate = distinct.estimate();
}

fn measure_bytes<'a>(values: impl ExactSizeIterator<Item = &'a [u8]> + Clone, stats: &mut BlockStats) {
    let (mut min, mut max): (Option<&[u8]>, Option<&[u8]>) = (None, None);
    let mut previous: &[u8] = &[];
    stats.sorted = true;
    for value in values.clone() {
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
    stats.max = upper_bound(max);
    stats.distinct_estimate = of_bytes(values).distinct;
}

/// The least string of at most [`BlockStats::BOUND_BYTES`] that is not below `value`, or `Null` when there is none.
fn upper_bound(value: &[u8]) -> Scalar {
    if value.len() <= BlockStats::BOUND_BYTES {
        return Scalar::Bytes(value.to_vec());
    }
    let cut = &value[..BlockStats::BOUND_BYTES];
    match cut.iter().rposition(|&byte| byte < u8::MAX) {
        None => Scalar::Null,
        Some(last) => {
            let mut bound = cut[..=last].to_vec();
            bound[last] += 1;
            Scalar::Bytes(bound)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_upper_bound_is_rounded_up() {
        let mut long = vec![b'a'; 40];
        assert_eq!(upper_bound(&long), Scalar::Bytes([vec![b'a'; 31], vec![b'b']].concat()));
        long[31] = 0xff;
        assert_eq!(upper_bound(&long), Scalar::Bytes([vec![b'a'; 30], vec![b'b']].concat()));
        assert_eq!(upper_bound(&[0xff; 33]), Scalar::Null);
    }

    #[test]
    fn nan_and_minus_zero_stay_out_of_the_bounds() {
        let stats = measure(Values::F64(&[f64::NAN, -0.0, 3.5]), None);
        assert_eq!((stats.min, stats.max, stats.has_nan), (Scalar::Float(0.0), Scalar::Float(3.5), true));
        assert!(!stats.sorted);
    }
}
