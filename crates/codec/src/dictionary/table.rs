//! Hash tables from values to codes, with open addressing. Codes count up in the order in which values first appear.
//!
//! A value of fixed width stands in its slot beside its code, so that most look-ups read one place and compare once.
//! There is no mark for a free slot: it holds the first value of all, with that one's code 0, which is right for
//! whoever looks for it and wrong for nobody else.

use crate::fixed::Fixed;
use crate::kernels::hash;
use crate::{BytesView, VECTOR_LEN};
use xxhash_rust::xxh3::xxh3_64;

/// Slots a value has while the table has less than [`ROOMY_BYTES_MAX`]: few values are then not where they belong, and
/// those that are not are what the CPU predicts wrongly.
const ROOMY_SLOTS_PER_VALUE: usize = 8;

/// What a table may take with so many slots: a part of the L2 cache.
const ROOMY_BYTES_MAX: usize = 256 << 10;

/// Slots that a value has at least.
const SLOTS_PER_VALUE_MIN: usize = 2;

/// Slots of an empty table.
const SLOTS_MIN: usize = 256;

/// Codes of values of fixed width, told apart by their bits.
#[derive(Debug)]
pub(super) struct ValueTable<T> {
    /// A power of two of values with their codes.
    slots: Vec<(T, u32)>,
    /// A hash without so many of its lower bits is a slot.
    shift: u32,
    /// By code; the first is what free slots hold.
    values: Vec<T>,
    /// Values from which on there have to be more slots.
    value_count_max: usize,
}

impl<T: Fixed> ValueTable<T> {
    /// With one value, whose code is 0.
    pub(super) fn new(first: T) -> ValueTable<T> {
        let mut table = ValueTable { slots: Vec::new(), shift: 0, values: vec![first], value_count_max: 0 };
        table.resize(SLOTS_MIN);
        table
    }

    /// With these values, all different, by their codes: at least one.
    pub(super) fn with(values: &[T]) -> ValueTable<T> {
        let mut table = ValueTable::new(values[0]);
        let mut hashes = vec![0; values.len()];
        hash(values, &mut hashes);
        for (&value, &hash) in values.iter().zip(&hashes) {
            table.code(value, hash);
        }
        table
    }

    /// The values by their codes.
    pub(super) fn values(&self) -> &[T] {
        &self.values
    }

    /// The code of a value with this [`hash`]; the next free one if it was not there.
    #[inline]
    pub(super) fn code(&mut self, value: T, hash: u32) -> u32 {
        let (slot, found) = self.find(value, hash);
        if found.0.bits() == value.bits() { found.1 } else { self.insert(slot, value) }
    }

    /// Writes the codes of values, a vector at most, with these hashes, and the rows of those that are not where they are
    /// looked for first to the front of `missing`; returns how many those are. Two slots are read for each value, and the
    /// row is written for each and kept by moving on or not, so that there is nothing to predict.
    pub(super) fn find_all(
        &self,
        values: &[T],
        hashes: &[u32],
        codes: &mut [u32],
        missing: &mut [u16; VECTOR_LEN],
    ) -> usize {
        let (slots, shift) = (&self.slots[..], self.shift);
        let mask = slots.len() - 1;
        let mut missing_count = 0;
        for (row, ((value, hash), code)) in values.iter().zip(hashes).zip(codes).enumerate() {
            let slot = (hash >> shift) as usize;
            let (first, second) = (slots[slot & mask], slots[(slot + 1) & mask]);
            let (is_first, is_second) = (first.0.bits() == value.bits(), second.0.bits() == value.bits());
            *code = if is_first { first.1 } else { second.1 };
            missing[missing_count % VECTOR_LEN] = row as u16;
            missing_count += usize::from(!(is_first | is_second));
        }
        missing_count
    }

    /// The code of a value with this [`hash`], and whether it is there; 0 where it is not.
    #[inline]
    pub(super) fn find_code(&self, value: T, hash: u32) -> (u32, bool) {
        let (_, found) = self.find(value, hash);
        (found.1, found.0.bits() == value.bits())
    }

    /// The slot that holds the value, or the free one where it would stand, and what is there.
    #[inline]
    fn find(&self, value: T, hash: u32) -> (usize, (T, u32)) {
        let free = self.values[0].bits();
        let mask = self.slots.len() - 1;
        let mut slot = (hash >> self.shift) as usize;
        loop {
            let found = self.slots[slot & mask];
            if found.0.bits() == value.bits() || found.0.bits() == free {
                return (slot & mask, found);
            }
            slot += 1;
        }
    }

    #[cold]
    fn insert(&mut self, slot: usize, value: T) -> u32 {
        let code = self.values.len() as u32;
        self.values.push(value);
        self.slots[slot] = (value, code);
        if self.values.len() > self.value_count_max {
            self.resize(2 * self.slots.len());
        }
        code
    }

    /// Enters all values anew into so many slots.
    fn resize(&mut self, slot_count: usize) {
        self.slots.clear();
        self.slots.resize(slot_count, (self.values[0], 0));
        self.shift = u32::BITS - slot_count.trailing_zeros();
        let is_roomy = 2 * slot_count * size_of::<(T, u32)>() <= ROOMY_BYTES_MAX;
        self.value_count_max = slot_count / if is_roomy { ROOMY_SLOTS_PER_VALUE } else { SLOTS_PER_VALUE_MIN };
        let mut hashes = [0; VECTOR_LEN];
        let mut code = 0;
        for start in (0..self.values.len()).step_by(VECTOR_LEN) {
            let end = self.values.len().min(start + VECTOR_LEN);
            hash(&self.values[start..end], &mut hashes[..end - start]);
            for (index, &hash) in (start..end).zip(&hashes) {
                let value = self.values[index];
                if code > 0 {
                    let (slot, _) = self.find(value, hash);
                    self.slots[slot] = (value, code);
                }
                code += 1;
            }
        }
    }
}

/// Codes of byte strings.
#[derive(Debug, Default)]
pub(super) struct BytesTable<'a> {
    /// The upper half of a hash and a code plus one; zero is free. None before the first value.
    slots: Vec<(u32, u32)>,
    values: Vec<&'a [u8]>,
    hashes: Vec<u64>,
}

impl<'a> BytesTable<'a> {
    /// With these values, all different, by their codes.
    pub(super) fn with(values: BytesView<'a>) -> BytesTable<'a> {
        let mut table = BytesTable::default();
        values.iter().for_each(|value| {
            table.code(value);
        });
        table
    }

    /// The values by their codes.
    pub(super) fn values(&self) -> &[&'a [u8]] {
        &self.values
    }

    /// The code of a value; the next free one if it was not there.
    #[inline]
    pub(super) fn code(&mut self, value: &'a [u8]) -> u32 {
        self.code_by(value, xxh3_64(value))
    }

    /// The same by a hash. Values with the same are told apart by their bytes.
    #[inline]
    fn code_by(&mut self, value: &'a [u8], hash: u64) -> u32 {
        if self.values.len() * 2 * SLOTS_PER_VALUE_MIN >= self.slots.len() {
            self.grow();
        }
        let (slot, code) = self.find(value, hash);
        code.unwrap_or_else(|| {
            self.values.push(value);
            self.hashes.push(hash);
            self.slots[slot] = ((hash >> 32) as u32, self.values.len() as u32);
            self.values.len() as u32 - 1
        })
    }

    /// The code of a value that is there.
    #[inline]
    pub(super) fn find_code(&self, value: &[u8]) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.find(value, xxh3_64(value)).1
    }

    /// The slot that holds the value, or the free one where it would stand, and its code.
    #[inline]
    fn find(&self, value: &[u8], hash: u64) -> (usize, Option<u32>) {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let (upper, code) = self.slots[slot];
            if code == 0 {
                return (slot, None);
            }
            if upper == (hash >> 32) as u32 && self.values[code as usize - 1] == value {
                return (slot, Some(code - 1));
            }
            slot = (slot + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.slots = vec![(0, 0); (4 * self.slots.len()).max(SLOTS_MIN)];
        let mask = self.slots.len() - 1;
        for (code, hash) in self.hashes.iter().enumerate() {
            let mut slot = *hash as usize & mask;
            while self.slots[slot].1 != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = ((hash >> 32) as u32, code as u32 + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(value: u64) -> u32 {
        let mut hashes = [0];
        hash(&[value], &mut hashes);
        hashes[0]
    }

    #[test]
    fn the_first_value_is_found_behind_others() {
        // As if all had the same hash: each stands behind the one before.
        let mut table = ValueTable::new(7u64);
        for value in [9, 7, 11, 9, 7, 13] {
            let expected = [7, 9, 11, 13].iter().position(|first| *first == value).unwrap();
            assert_eq!(table.code(value, u32::MAX), expected as u32);
        }
        // Two of them are where they are looked for first: in the last slot and the one after it.
        let (mut codes, mut missing) = ([0; 5], [0; VECTOR_LEN]);
        assert_eq!(table.find_all(&[9, 7, 11, 13, 14], &[u32::MAX; 5], &mut codes, &mut missing), 3);
        assert_eq!((&codes[..1], codes[2], &missing[..3]), (&[1][..], 2, &[1, 3, 4][..]));
        assert_eq!(table.find_code(13, u32::MAX), (3, true));
        assert_eq!(table.find_code(14, u32::MAX), (0, false));
        assert_eq!(table.find_code(7, 5), (0, true));
    }

    #[test]
    fn strings_with_one_hash_are_told_apart() {
        let texts: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        for hash in [0, u64::MAX, 0xdead_beef_0000_0001] {
            let mut table = BytesTable::default();
            for _ in 0..2 {
                for (code, text) in texts.iter().enumerate() {
                    assert_eq!(table.code_by(text.as_bytes(), hash), code as u32, "{text}");
                }
            }
            assert_eq!(table.find(b"1000", hash).1, None);
        }
    }

    #[test]
    fn tables_grow_and_keep_their_codes() {
        let mut table = ValueTable::new(0u64);
        let mut strings = BytesTable::default();
        let values: Vec<u64> = (0..40_000u64).map(|value| value << 33).collect();
        let texts: Vec<String> = values.iter().map(u64::to_string).collect();
        for (code, (value, text)) in values.iter().zip(&texts).enumerate() {
            assert_eq!(table.code(*value, hash_of(*value)), code as u32);
            assert_eq!(strings.code(text.as_bytes()), code as u32);
        }
        for (code, (value, text)) in values.iter().zip(&texts).enumerate() {
            assert_eq!(table.find_code(*value, hash_of(*value)), (code as u32, true));
            assert_eq!(strings.find_code(text.as_bytes()), Some(code as u32));
            assert_eq!(table.find_code(*value + 1, hash_of(*value + 1)), (0, false));
        }
        assert_eq!(strings.find_code(b"x"), None);
    }
}
