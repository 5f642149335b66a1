//! The keys that key-value trees and stores are filled with.

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::ops::Range;

/// Which numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Distribution {
    /// ClusterData of Anh and Moffat (Index compression using 64-bit words, Software: Practice and Experience 40, 2010), in
    /// a range of nine eighths of their count, as in the Upscaledb paper, section 4.3.
    Cluster,
    /// Anything from 0 to 2^32.
    Uniform,
}

/// So many different keys, in order.
pub fn sorted(distribution: Distribution, count: u64, seed: u64) -> Vec<u64> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut keys = Vec::with_capacity(count as usize);
    match distribution {
        Distribution::Cluster => clustered(&mut keys, count, 0..count * 9 / 8, &mut random),
        Distribution::Uniform => chosen(&mut keys, count, 0..1 << 32, &mut random),
    }
    keys
}

/// One key in so many is not loaded, but inserted later.
const HELD_BACK: usize = 10;

/// So many keys that are loaded, in order, and a ninth as many that lie between them, in none.
pub(crate) fn loaded_and_held_back(distribution: Distribution, count: u64, seed: u64) -> (Vec<u64>, Vec<u64>) {
    let all = sorted(distribution, count + count.div_ceil(HELD_BACK as u64 - 1), seed);
    let (mut loaded, mut held_back) = (Vec::with_capacity(count as usize), Vec::new());
    for (index, key) in all.into_iter().enumerate() {
        let is_held_back = index % HELD_BACK == HELD_BACK / 2 || loaded.len() as u64 == count;
        if is_held_back { held_back.push(key) } else { loaded.push(key) }
    }
    (loaded, shuffled(&held_back, seed + 2))
}

/// The same keys, in no order.
pub fn shuffled(keys: &[u64], seed: u64) -> Vec<u64> {
    let mut keys = keys.to_vec();
    keys.shuffle(&mut SmallRng::seed_from_u64(seed));
    keys
}

/// Halves the keys and cuts the range anywhere that leaves room for both; one half in four is spread evenly, the others
/// are clustered again.
fn clustered(keys: &mut Vec<u64>, count: u64, range: Range<u64>, random: &mut SmallRng) {
    let spare = range.end - range.start - count;
    if spare == 0 {
        return keys.extend(range);
    }
    if count <= 10 {
        return chosen(keys, count, range, random);
    }
    let lower = count / 2;
    let cut = range.start + lower + random.random_range(0..=spare);
    let (is_lower_even, is_upper_even) = match random.random_range(0..4) {
        0 => (true, false),
        1 => (false, true),
        _ => (false, false),
    };
    let part = |is_even| if is_even { chosen } else { clustered };
    part(is_lower_even)(keys, lower, range.start..cut, random);
    part(is_upper_even)(keys, count - lower, cut..range.end, random);
}

/// So many different numbers of a range, each as likely as any other, in order.
fn chosen(keys: &mut Vec<u64>, count: u64, range: Range<u64>, random: &mut SmallRng) {
    let start = keys.len();
    if count < (range.end - range.start) / 16 {
        // Few come twice.
        let mut numbers = Vec::with_capacity(count as usize);
        while numbers.len() < count as usize {
            let missing = count as usize - numbers.len();
            numbers.extend((0..missing).map(|_| random.random_range(range.clone())));
            numbers.sort_unstable();
            numbers.dedup();
        }
        return keys.append(&mut numbers);
    }
    for number in range.clone() {
        let left = count - (keys.len() - start) as u64;
        if random.random_range(0..range.end - number) < left {
            keys.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_loaded_as_wanted() {
        for count in [1, 9, 10, 999, 100_000] {
            let (loaded, held_back) = loaded_and_held_back(Distribution::Cluster, count, count);
            assert_eq!(loaded.len() as u64, count);
            assert_eq!(held_back.len() as u64, count.div_ceil(9));
        }
    }

    #[test]
    fn keys_are_in_order_and_as_many_as_wanted() {
        for distribution in [Distribution::Cluster, Distribution::Uniform] {
            for count in [1, 10, 1000, 100_000] {
                let keys = sorted(distribution, count, count);
                assert_eq!(keys.len() as u64, count);
                assert!(keys.is_sorted_by(|one, other| one < other));
                assert!(distribution == Distribution::Uniform || keys.last() < Some(&(count * 9 / 8).max(1)));
            }
        }
    }
}
