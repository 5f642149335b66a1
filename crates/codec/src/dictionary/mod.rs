//! Builds dictionaries: different values in order, and for each row the position of its value among them.
//!
//! In order, because then a range of values is a range of codes, and the dictionary itself compresses as a sorted
//! column. Floats are told apart by their bits, so that -0.0 and NaN come back as they were.
//!
//! Integers that lie near to each other are looked up in an array with a place for each number between the least and
//! the greatest, all other values in a hash table ([`table`]). A dictionary of frequent values only is in [`frequent`],
//! that of a column's last block in [`remembered`].

mod frequent;
mod remembered;
mod table;

pub(crate) use frequent::{Frequent, Patched};
pub(crate) use remembered::Remembered;

use crate::condition::float_order;
use crate::fixed::{Fixed, Integer, for_integers};
use crate::kernels::{bounds, hash};
use crate::values_mut::Native;
use crate::{BytesView, VECTOR_LEN, Values, ValuesBuf};
use std::cmp::Ordering;
use table::{BytesTable, ValueTable};

/// Different values, ascending, and a code per row.
#[derive(Debug)]
pub(crate) struct Dictionary {
    pub(crate) values: ValuesBuf,
    pub(crate) codes: Vec<u32>,
}

impl Dictionary {
    /// Of these values, of which there is at least one.
    pub(crate) fn of(values: Values<'_>) -> Dictionary {
        match values {
            Values::F32(values) => {
                hashed(values, |a, b| compare_floats(f64::from(*a), f64::from(*b), a.bits(), b.bits()))
            }
            Values::F64(values) => hashed(values, |a, b| compare_floats(*a, *b, a.bits(), b.bits())),
            Values::Bytes(view) => of_bytes(view),
            values => {
                for_integers!(Values, values, values => of_integers(values), _ => unreachable!("all others are above"))
            }
        }
    }
}

fn compare_floats(a: f64, b: f64, a_bits: u128, b_bits: u128) -> Ordering {
    float_order(a).cmp(&float_order(b)).then(a_bits.cmp(&b_bits))
}

/// Integers have a place each in an array where the least and the greatest are so near to each other: it is then as
/// large as the L1 cache at most,
const PLACES_MAX: u128 = 1 << 14;

/// and no larger than so many times the rows.
const PLACES_PER_ROW_MAX: u128 = 2;

fn of_integers<T: Integer>(values: &[T]) -> Dictionary {
    let (least, greatest) = bounds(values);
    let reach = greatest.sub(least).bits();
    if reach >= PLACES_MAX || reach > PLACES_PER_ROW_MAX * values.len() as u128 {
        return hashed(values, T::cmp);
    }
    // A power of two, so that no place needs a check.
    let mut places = vec![0u32; (reach as usize + 1).next_power_of_two()];
    let mask = places.len() - 1;
    let place = |value: T| value.sub(least).to_delta() as usize & mask;
    values.iter().for_each(|&value| places[place(value)] = 1);
    let mut different = Vec::new();
    for (distance, place) in places.iter_mut().enumerate().filter(|(_, place)| **place == 1) {
        *place = different.len() as u32;
        different.push(least.add(T::from_delta(distance as u64)));
    }
    let codes = values.iter().map(|&value| places[place(value)]).collect();
    Dictionary { values: T::values(&different).to_buf(), codes }
}

fn hashed<T: Native>(values: &[T], order: impl Fn(&T, &T) -> Ordering) -> Dictionary {
    let mut table = ValueTable::new(values[0]);
    let mut codes = vec![0; values.len()];
    let (mut hashes, mut missing) = ([0; VECTOR_LEN], [0; VECTOR_LEN]);
    for (vector, codes) in values.chunks(VECTOR_LEN).zip(codes.chunks_mut(VECTOR_LEN)) {
        let hashes = &mut hashes[..vector.len()];
        hash(vector, hashes);
        let missing_count = table.find_all(vector, hashes, codes, &mut missing);
        for &row in &missing[..missing_count] {
            let row = usize::from(row);
            codes[row] = table.code(vector[row], hashes[row]);
        }
    }
    let (sorted, places) = in_order(table.values(), order);
    renumber(&mut codes, &places);
    Dictionary { values: T::values(&sorted).to_buf(), codes }
}

fn of_bytes(view: BytesView<'_>) -> Dictionary {
    let mut table = BytesTable::default();
    let mut codes: Vec<u32> = view.iter().map(|value| table.code(value)).collect();
    let (sorted, places) = in_order(table.values(), |a, b| a.cmp(b));
    renumber(&mut codes, &places);
    Dictionary { values: ValuesBuf::Bytes(sorted.into_iter().collect()), codes }
}

/// The values in order, and by code the place of each among them, with zeros after that up to a power of two.
fn in_order<K: Copy>(values: &[K], order: impl Fn(&K, &K) -> Ordering) -> (Vec<K>, Vec<u32>) {
    let mut sorted: Vec<(K, u32)> = values.iter().copied().zip(0..).collect();
    sorted.sort_unstable_by(|a, b| order(&a.0, &b.0));
    let mut places = vec![0; values.len().next_power_of_two()];
    for (place, (_, code)) in sorted.iter().enumerate() {
        places[*code as usize] = place as u32;
    }
    (sorted.into_iter().map(|(value, _)| value).collect(), places)
}

/// Puts the place of each code where the code was; there is a power of two of places.
fn renumber(codes: &mut [u32], places: &[u32]) {
    let mask = places.len() - 1;
    codes.iter_mut().for_each(|code| *code = places[*code as usize & mask]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_in_order_and_codes_point_to_them() {
        let dictionary = Dictionary::of(Values::I32(&[7, -1, 7, 3]));
        assert_eq!(dictionary.values, ValuesBuf::I32(vec![-1, 3, 7]));
        assert_eq!(dictionary.codes, [2, 0, 2, 1]);
    }

    #[test]
    fn floats_are_told_apart_by_their_bits() {
        let dictionary = Dictionary::of(Values::F64(&[f64::NAN, 0.0, -0.0, -1.0]));
        assert_eq!(dictionary.codes, [3, 1, 2, 0]);
    }

    #[test]
    fn near_and_far_integers_and_strings_have_equal_codes() {
        for (different, rows) in [(1u64, 5), (100, 1000), (5000, 4000), (9000, 30_000), (70_000, 100_000)] {
            let near: Vec<u64> = (0..rows).map(|row| row * 7919 % different).collect();
            let far: Vec<u64> = near.iter().map(|value| value << 40 | value << 3).collect();
            let strings: Vec<String> = near.iter().map(|value| format!("{value:07}")).collect();
            let strings: crate::BytesBuf = strings.iter().map(String::as_bytes).collect();
            let near = Dictionary::of(Values::U64(&near));
            for other in [Dictionary::of(Values::U64(&far)), Dictionary::of(Values::Bytes(strings.view()))] {
                assert_eq!(near.codes, other.codes, "{different} of {rows}");
                assert_eq!(near.values.len(), other.values.len());
            }
        }
    }
}
