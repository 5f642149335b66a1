//! Hashes of numbers, for counting: by their bits, not the same from version to version.

use crate::fixed::Fixed;
use crate::isa::each_isa;

each_isa! {
    /// Writes the hash of each value; there are as many.
    pub(crate) fn hash<T: Fixed>(values: &[T], hashes: &mut [u32]) = hash_body;

    /// Maximal stretches of equal values.
    pub(crate) fn count_runs<T: Fixed>(values: &[T]) -> usize = count_runs_body;
}

#[inline(always)]
fn hash_body<T: Fixed>(values: &[T], hashes: &mut [u32]) {
    for (hash, value) in hashes.iter_mut().zip(values) {
        let bits = value.bits();
        let mut mixed = mix(bits as u32);
        // In words, as multiplications of 32 bits are what every set has.
        for word in 1..T::BYTES.div_ceil(4) {
            mixed = mix(mixed ^ (bits >> (32 * word)) as u32);
        }
        *hash = mixed;
    }
}

/// Two rounds of shift and multiply, with constants of low bias (Wellons, "Prospecting for hash functions", 2018).
#[inline(always)]
fn mix(key: u32) -> u32 {
    let key = (key ^ (key >> 16)).wrapping_mul(0x7feb_352d);
    let key = (key ^ (key >> 15)).wrapping_mul(0x846c_a68b);
    key ^ (key >> 16)
}

#[inline(always)]
fn count_runs_body<T: Fixed>(values: &[T]) -> usize {
    // In counters as wide as values mostly are: wider ones take a multiple of the time.
    let changes = values.iter().zip(values.iter().skip(1)).map(|(value, next)| u32::from(value.bits() != next.bits()));
    changes.sum::<u32>() as usize + usize::from(!values.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;

    #[test]
    fn every_set_hashes_and_counts_alike() {
        let values: Vec<u64> = (0..1000u64).map(|i| (i / 3).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let mut of_scalar = Vec::new();
        forms(|isa| {
            let mut hashes = vec![0; values.len()];
            hash(&values, &mut hashes);
            if of_scalar.is_empty() {
                of_scalar.clone_from(&hashes);
            }
            assert_eq!(hashes, of_scalar, "{isa}");
            assert_eq!((count_runs(&values), count_runs(&values[..1]), count_runs(&values[..0])), (334, 1, 0), "{isa}");
        });
    }
}
