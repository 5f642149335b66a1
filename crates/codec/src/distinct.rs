//! About how many different values there are.

use crate::VECTOR_LEN;
use crate::fixed::Fixed;
use crate::kernels::hash;
use std::cell::Cell;

/// Linear counting (Whang et al., TODS 1990): hash into a table of about as many slots as values; the share of slots that
/// nothing came to tells how many different values there were, within a percent.
///
/// A slot is a byte, not a bit: setting it waits for no other value.
#[derive(Debug)]
pub(crate) struct DistinctCounter {
    slots: Vec<u8>,
    /// What is left of a hash is a slot.
    shift: u32,
    value_count: usize,
}

thread_local! {
    /// The slots of the counter before: a row group wants 128 KiB.
    static SLOTS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Slots that a thread keeps.
const SLOTS_KEPT_MAX: usize = 1 << 18;

impl DistinctCounter {
    /// For so many values.
    pub(crate) fn new(value_count: usize) -> DistinctCounter {
        let slot_count = value_count.next_power_of_two().max(64);
        let mut slots = SLOTS.take();
        slots.clear();
        slots.resize(slot_count, 0);
        DistinctCounter { slots, shift: u32::BITS - slot_count.trailing_zeros().min(u32::BITS), value_count }
    }

    /// The estimate for values of fixed width, told apart by their bits.
    pub(crate) fn of_fixed<T: Fixed>(values: &[T]) -> usize {
        let mut counter = DistinctCounter::new(values.len());
        counter.add_all(values);
        counter.estimate()
    }

    /// Counts values of fixed width.
    pub(crate) fn add_all<T: Fixed>(&mut self, values: &[T]) {
        let mut hashes = [0; VECTOR_LEN];
        for vector in values.chunks(VECTOR_LEN) {
            let hashes = &mut hashes[..vector.len()];
            hash(vector, hashes);
            hashes.iter().for_each(|hash| self.add(*hash));
        }
    }

    /// Counts a value by its hash.
    #[inline]
    pub(crate) fn add(&mut self, hash: u32) {
        let slot = (hash >> self.shift) as usize;
        self.slots[slot] = 1;
    }

    /// How many different values there were.
    pub(crate) fn estimate(self) -> usize {
        let slot_count = self.slots.len() as f64;
        let zeros = self.slots.iter().filter(|slot| **slot == 0).count();
        let value_count = self.value_count;
        let some = zeros < self.slots.len();
        if self.slots.len() <= SLOTS_KEPT_MAX {
            SLOTS.set(self.slots);
        }
        if zeros == 0 {
            return value_count;
        }
        let estimate = (slot_count * (slot_count / zeros as f64).ln()).round() as usize;
        estimate.clamp(usize::from(some), value_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_near_the_truth() {
        for (count, different) in [(1, 1), (100, 7), (131_072, 40), (131_072, 5000), (131_072, 131_072)] {
            for spread in [1, 86_400, 1 << 32, 1 << 40] {
                let values: Vec<u64> = (0..count).map(|i| i % different * spread).collect();
                let estimate = DistinctCounter::of_fixed(&values) as f64;
                assert!((estimate / different as f64 - 1.0).abs() < 0.03, "{estimate} for {different} times {spread}");
            }
        }
    }
}
