//! One look at all values before they are encoded: block statistics, and the counts that the chooser needs.

use crate::condition::float_order;
use crate::fixed::{Fixed, Integer, for_fixed, for_integers};
use crate::{Bitmap, BlockStats, Scalar, Values};
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
    let mut distinct = DistinctCounter::new(values.len());
    let mut runs = 0;
    let mut previous = None;
    for value in values {
        let bits = value.bits();
        if previous != Some(bits) {
            previous = Some(bits);
            runs += 1;
            distinct.add((bits as u64) ^ ((bits >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
    }
    Counts { distinct: distinct.estimate(), runs }
}

fn of_bytes<'a>(values: impl ExactSizeIterator<Item = &'a [u8]>) -> Counts {
    let mut distinct = DistinctCounter::new(values.len());
    let mut runs = 0;
    let mut previous = None;
    for value in values {
        if previous != Some(value) {
            previous = Some(value);
            runs += 1;
            distinct.add(xxh3_64(value));
        }
    }
    Counts { distinct: distinct.estimate(), runs }
}

/// Linear counting (Whang et al., TODS 1990): hash into a bitmap of about as many bits as values; the share of bits
/// still zero tells how many different values there were, within a percent.
#[derive(Debug)]
struct DistinctCounter {
    words: Vec<u64>,
    shift: u32,
    value_count: usize,
}

impl DistinctCounter {
    fn new(value_count: usize) -> DistinctCounter {
        let bits = value_count.next_power_of_two().max(64);
        DistinctCounter { words: vec![0; bits / 64], shift: 64 - bits.trailing_zeros(), value_count }
    }

    #[inline]
    fn add(&mut self, key: u64) {
        let mixed = (key ^ (key >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let bit = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> self.shift;
        self.words[(bit / 64) as usize] |= 1 << (bit % 64);
    }

    fn estimate(&self) -> usize {
        let bits = (self.words.len() * 64) as f64;
        let ones: u32 = self.words.iter().map(|word| word.count_ones()).sum();
        let zeros = bits - f64::from(ones);
        if zeros == 0.0 {
            return self.value_count;
        }
        let estimate = (bits * (bits / zeros).ln()).round() as usize;
        estimate.clamp(usize::from(ones > 0), self.value_count)
    }
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
        Values::F32(values) => measure_floats(values, validity, &mut stats),
        Values::F64(values) => measure_floats(values, validity, &mut stats),
        Values::Bytes(view) => match validity {
            None => measure_bytes(view.iter(), &mut stats),
            Some(validity) => {
                let present: Vec<&[u8]> = validity.ones().map(|index| view.get(index)).collect();
                measure_bytes(present.into_iter(), &mut stats);
            }
        },
        values => for_integers!(Values, values, values => match validity {
            None => measure_integers(values, &mut stats),
            Some(validity) => {
                let present: Vec<_> = validity.ones().map(|index| values[index]).collect();
                measure_integers(&present, &mut stats);
            }
        }, _ => unreachable!("floats and bytes are above")),
    }
    stats
}

fn measure_integers<T: Integer>(values: &[T], stats: &mut BlockStats) {
    let (mut min, mut max, mut sum) = (values[0], values[0], Some(0i128));
    let mut descents = 0;
    for vector in values.chunks(crate::VECTOR_LEN) {
        for &value in vector {
            min = min.min(value);
            max = max.max(value);
        }
        descents += vector.windows(2).filter(|pair| pair[1] < pair[0]).count();
        sum = if T::BYTES == 16 {
            vector.iter().fold(sum, |sum, value| sum?.checked_add(value.wide()))
        } else {
            sum.map(|sum| sum + vector.iter().map(|value| value.wide()).sum::<i128>())
        };
    }
    let seams = values.chunks(crate::VECTOR_LEN).zip(values.chunks(crate::VECTOR_LEN).skip(1));
    descents += seams.filter(|(left, right)| right[0] < left[left.len() - 1]).count();
    stats.min = Scalar::Int(min.wide());
    stats.max = Scalar::Int(max.wide());
    stats.bounds_exact = true;
    stats.sum = sum;
    stats.sorted = descents == 0;
    stats.distinct_estimate = of_fixed(values).distinct;
}

fn measure_floats<T: Fixed + Into<f64>>(values: &[T], validity: Option<&Bitmap>, stats: &mut BlockStats) {
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    let (mut numbers, mut previous) = (0, i64::MIN);
    let mut distinct = DistinctCounter::new(values.len());
    stats.sorted = true;
    for (index, &value) in values.iter().enumerate() {
        if validity.is_some_and(|validity| !validity.get(index)) {
            continue;
        }
        let wide: f64 = value.into();
        let order = float_order(wide);
        stats.sorted &= previous <= order;
        previous = order;
        distinct.add(order as u64);
        if wide.is_nan() {
            stats.has_nan = true;
        } else {
            numbers += 1;
            min = min.min(wide);
            max = max.max(wide);
        }
    }
    if numbers > 0 {
        stats.min = Scalar::Float(min + 0.0);
        stats.max = Scalar::Float(max + 0.0);
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
    fn the_distinct_estimate_is_near_the_truth() {
        for (count, different) in [(1, 1), (100, 7), (131_072, 40), (131_072, 5000), (131_072, 131_072)] {
            let values: Vec<u64> = (0..count).map(|i| i % different).collect();
            let estimate = Counts::of(Values::U64(&values)).distinct as f64;
            assert!((estimate / different as f64 - 1.0).abs() < 0.03, "{estimate} for {different}");
        }
    }

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
