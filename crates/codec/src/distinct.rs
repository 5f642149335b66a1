//! About how many different values there are, from a sample of vectors.

use crate::VECTOR_LEN;
use crate::fixed::Fixed;
use crate::kernels::hash;
use crate::sample::{SAMPLE_VECTORS, sampled_vectors};
use crate::values::BytesView;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Linear counting (Whang et al., TODS 1990): hash into a table of about as many slots as values; the share of slots that
/// nothing came to tells how many different values there were, within a percent.
///
/// Of more values than a sample holds, the sample's vectors are counted in two halves, taken in turn. How many values are in
/// both tells how many there are to draw from, as animals that are caught twice do (Lincoln's index): no new ones in the
/// second half mean that there are no others, none in both that a value does not come back.
#[derive(Debug)]
struct DistinctCounter {
    /// A slot has a bit for each half, and a byte for itself: setting it waits for no other value.
    slots: [u8; SLOTS_MAX],
    slot_bits: u32,
}

/// As many as values in a sample.
const SLOTS_MAX: usize = SAMPLE_VECTORS * VECTOR_LEN;

/// The bits of the halves.
const HALVES: [u8; 2] = [1, 2];

/// Of fewer than this part of a half, counting cannot tell whether they are in the other half, too.
const CAUGHT_TWICE_DIVISOR: f64 = 40.0;

/// The estimate for values of fixed width, told apart by their bits. Reads [`SAMPLE_VECTORS`] of them.
pub(crate) fn distinct_of_fixed<T: Fixed>(values: &[T]) -> usize {
    estimate(values.len(), |vector, hashes| hash(&values[vector], hashes))
}

/// The estimate for strings of bytes. Reads [`SAMPLE_VECTORS`] vectors of them.
pub(crate) fn distinct_of_bytes(values: BytesView<'_>) -> usize {
    estimate(values.len(), |vector, hashes| hash_bytes(values, vector, hashes))
}

/// The estimate for so many values of fixed width, of which these are the sample.
pub(crate) fn distinct_of_sampled_fixed<T: Fixed>(values: &[T], value_count: usize) -> usize {
    let mut next = 0;
    estimate(value_count, |vector, hashes| hash(&values[advance(&mut next, vector)], hashes))
}

/// The same for strings.
pub(crate) fn distinct_of_sampled_bytes(values: BytesView<'_>, value_count: usize) -> usize {
    let mut next = 0;
    estimate(value_count, |vector, hashes| hash_bytes(values, advance(&mut next, vector), hashes))
}

/// Where the next vector of a sample is in it.
fn advance(next: &mut usize, vector: Range<usize>) -> Range<usize> {
    let start = *next;
    *next += vector.len();
    start..*next
}

fn hash_bytes(values: BytesView<'_>, range: Range<usize>, hashes: &mut [u32]) {
    // The high half, as that of a number is what was mixed best.
    hashes.iter_mut().zip(range).for_each(|(hash, index)| *hash = (xxh3_64(values.get(index)) >> 32) as u32);
}

/// The estimate for so many values, where `hash` writes the hashes of a range.
fn estimate(value_count: usize, mut hash: impl FnMut(Range<usize>, &mut [u32])) -> usize {
    let sampled_count = value_count.min(SLOTS_MAX);
    let mut counter = DistinctCounter::new(sampled_count);
    let mut hashes = [0; VECTOR_LEN];
    for (index, vector) in sampled_vectors(value_count).enumerate() {
        let hashes = &mut hashes[..vector.len()];
        hash(vector, hashes);
        counter.add(hashes, HALVES[index % 2]);
    }
    let some = usize::from(value_count > 0);
    let both = counter.estimate(HALVES[0] | HALVES[1]);
    if sampled_count == value_count {
        return (both.round() as usize).clamp(some, value_count);
    }
    let [first, second] = HALVES.map(|half| counter.estimate(half));
    let caught_twice = first + second - both;
    let most = both * value_count as f64 / sampled_count as f64;
    let all = if caught_twice * CAUGHT_TWICE_DIVISOR > first {
        // So many draws do not get to all.
        let population = first * second / caught_twice;
        let drawn = population * (1.0 - (-(value_count as f64) / population).exp());
        drawn.clamp(both, most)
    } else {
        most
    };
    (all.round() as usize).clamp(some, value_count)
}

impl DistinctCounter {
    /// For so many values.
    fn new(value_count: usize) -> DistinctCounter {
        let slot_count = value_count.next_power_of_two().clamp(64, SLOTS_MAX);
        DistinctCounter { slots: [0; SLOTS_MAX], slot_bits: slot_count.ilog2() }
    }

    /// Counts values of a half by their hashes.
    fn add(&mut self, hashes: &[u32], half: u8) {
        // What is left of a hash is a slot.
        let shift = u32::BITS - self.slot_bits;
        for hash in hashes {
            self.slots[(hash >> shift) as usize % SLOTS_MAX] |= half;
        }
    }

    /// How many different values there were in these halves.
    fn estimate(&self, halves: u8) -> f64 {
        let slots = &self.slots[..1 << self.slot_bits];
        // In sums of bytes, which compilers make of vectors.
        let zeros_of = |slots: &[u8]| slots.iter().map(|slot| u8::from(slot & halves == 0)).sum::<u8>();
        let zeros: usize = slots.chunks(128).map(|slots| usize::from(zeros_of(slots))).sum();
        let slot_count = slots.len() as f64;
        slot_count * (slot_count / zeros.max(1) as f64).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    fn is_near(values: &[u64], different: u64, within: f64) {
        let estimate = distinct_of_fixed(values) as f64;
        assert!((estimate / different as f64 - 1.0).abs() < within, "{estimate} for {different}");
    }

    #[test]
    fn the_estimate_is_near_the_truth() {
        for (count, different) in [(1, 1), (100, 7), (9000, 9000), (131_072, 40), (131_072, 5000), (131_072, 131_072)] {
            for spread in [1, 86_400, 1 << 32, 1 << 40] {
                let values: Vec<u64> = (0..count).map(|i| i % different * spread).collect();
                is_near(&values, different, 0.03);
            }
        }
    }

    #[test]
    fn values_that_come_again_at_random_or_one_after_the_other_are_told_apart() {
        let mut random = SmallRng::seed_from_u64(3);
        for different in [1000, 20_000, 60_000] {
            let values: Vec<u64> = (0..131_072).map(|_| random.random_range(0..different)).collect();
            let found = values.iter().collect::<std::collections::HashSet<_>>().len() as u64;
            is_near(&values, found, 0.15);
        }
        for times in [4, 100] {
            let values: Vec<u64> = (0..131_072).map(|i| i / times).collect();
            is_near(&values, 131_072 / times, 0.15);
        }
    }
}
