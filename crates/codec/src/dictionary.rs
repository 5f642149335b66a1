//! Builds a dictionary: the different values of a column in order, and for each value its position among them.
//!
//! In order, because then a range of values is a range of codes, and the dictionary itself compresses as a sorted column.
//! Floats are told apart by their bits, so that -0.0 and NaN come back as they were.

use crate::condition::float_order;
use crate::fixed::Fixed;
use crate::values_mut::Native;
use crate::{BytesView, Values, ValuesBuf};
use std::cmp::Ordering;
use xxhash_rust::xxh3::xxh3_64;

/// Different values, ascending, and a code per row.
#[derive(Debug)]
pub(crate) struct Dictionary {
    pub(crate) values: ValuesBuf,
    pub(crate) codes: Vec<u32>,
}

impl Dictionary {
    /// Of these values; `distinct` is about how many differ.
    pub(crate) fn of(values: Values<'_>, distinct: usize) -> Dictionary {
        macro_rules! per_type {
            ($($variant:ident),*) => {
                match values {
                    $(Values::$variant(values) => of_fixed(values, distinct, |a, b| a.cmp(b)),)*
                    Values::F32(values) => of_fixed(values, distinct, |a, b| compare_floats(f64::from(*a), f64::from(*b), a.bits(), b.bits())),
                    Values::F64(values) => of_fixed(values, distinct, |a, b| compare_floats(*a, *b, a.bits(), b.bits())),
                    Values::Bytes(view) => of_bytes(view, distinct),
                }
            };
        }
        per_type!(I8, I16, I32, I64, I128, U8, U16, U32, U64)
    }
}

fn compare_floats(a: f64, b: f64, a_bits: u128, b_bits: u128) -> Ordering {
    float_order(a).cmp(&float_order(b)).then(a_bits.cmp(&b_bits))
}

fn of_fixed<T: Native>(values: &[T], distinct: usize, order: impl Fn(&T, &T) -> Ordering) -> Dictionary {
    let mut table = CodeTable::new(distinct);
    let mut firsts: Vec<T> = Vec::with_capacity(distinct);
    let mut codes: Vec<u32> = Vec::with_capacity(values.len());
    for &value in values {
        let bits = value.bits();
        let folded = bits as u64 ^ ((bits >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let code = table.code(mix(folded), |code| firsts[code as usize].bits() == bits);
        if code as usize == firsts.len() {
            firsts.push(value);
        }
        codes.push(code);
    }
    let (sorted, places) = in_order(firsts.len(), |a, b| order(&firsts[a], &firsts[b]));
    codes.iter_mut().for_each(|code| *code = places[*code as usize]);
    let sorted: Vec<T> = sorted.iter().map(|&code| firsts[code as usize]).collect();
    Dictionary { values: T::values(&sorted).to_buf(), codes }
}

fn of_bytes(view: BytesView<'_>, distinct: usize) -> Dictionary {
    let mut table = CodeTable::new(distinct);
    let mut firsts: Vec<&[u8]> = Vec::with_capacity(distinct);
    let mut codes: Vec<u32> = Vec::with_capacity(view.len());
    for value in view.iter() {
        let code = table.code(xxh3_64(value), |code| firsts[code as usize] == value);
        if code as usize == firsts.len() {
            firsts.push(value);
        }
        codes.push(code);
    }
    let (sorted, places) = in_order(firsts.len(), |a, b| firsts[a].cmp(firsts[b]));
    codes.iter_mut().for_each(|code| *code = places[*code as usize]);
    Dictionary { values: ValuesBuf::Bytes(sorted.iter().map(|&code| firsts[code as usize]).collect()), codes }
}

/// The codes `0..count` in order, and the place of each code in it.
fn in_order(count: usize, order: impl Fn(usize, usize) -> Ordering) -> (Vec<u32>, Vec<u32>) {
    let mut sorted: Vec<u32> = (0..count as u32).collect();
    sorted.sort_unstable_by(|a, b| order(*a as usize, *b as usize));
    let mut places = vec![0; count];
    for (place, &code) in sorted.iter().enumerate() {
        places[code as usize] = place as u32;
    }
    (sorted, places)
}

fn mix(key: u64) -> u64 {
    let mixed = (key ^ (key >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Hashes to codes, given in order of appearance. Open addressing; the caller keeps the values.
#[derive(Debug)]
struct CodeTable {
    /// Code plus one; zero is free.
    slots: Vec<u32>,
    hashes: Vec<u64>,
}

impl CodeTable {
    fn new(expected: usize) -> CodeTable {
        CodeTable { slots: vec![0; (expected * 2).next_power_of_two().max(16)], hashes: Vec::with_capacity(expected) }
    }

    /// The code of the value with this hash; the next free one if no `equal` code is there.
    #[inline]
    fn code(&mut self, hash: u64, equal: impl Fn(u32) -> bool) -> u32 {
        if self.hashes.len() * 2 > self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut slot = (hash >> 20) as usize & mask;
        while self.slots[slot] != 0 {
            let code = self.slots[slot] - 1;
            if self.hashes[code as usize] == hash && equal(code) {
                return code;
            }
            slot = (slot + 1) & mask;
        }
        self.hashes.push(hash);
        self.slots[slot] = self.hashes.len() as u32;
        self.hashes.len() as u32 - 1
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 2];
        let mask = self.slots.len() - 1;
        for (code, hash) in self.hashes.iter().enumerate() {
            let mut slot = (hash >> 20) as usize & mask;
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = code as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_in_order_and_codes_point_to_them() {
        let dictionary = Dictionary::of(Values::I32(&[7, -1, 7, 3]), 1);
        assert_eq!(dictionary.values, ValuesBuf::I32(vec![-1, 3, 7]));
        assert_eq!(dictionary.codes, [2, 0, 2, 1]);
    }

    #[test]
    fn floats_are_told_apart_by_their_bits() {
        let dictionary = Dictionary::of(Values::F64(&[f64::NAN, 0.0, -0.0, -1.0]), 4);
        assert_eq!(dictionary.codes, [3, 1, 2, 0]);
    }
}
