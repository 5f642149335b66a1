//! The dictionary of a column's last block, which the next one may take as it is.
//!
//! Zukowski et al., ICDE 2006, section 3.1, keep a dictionary for many blocks, so that its histogram is made once and its
//! values are stored once. Ours are made once, too, but stored in every block: a block is read, moved and checked by
//! itself, and a page that is damaged costs its own rows only. So values, codes and order are as in a dictionary made for
//! the block alone, but for entries that no row of it has.

use super::table::{BytesTable, ValueTable};
use super::{PLACES_MAX, PLACES_PER_ROW_MAX, Patched};
use crate::fixed::{Fixed, Integer, for_integers};
use crate::kernels::{bounds, greatest, hash};
use crate::sample::sampled_vectors;
use crate::{BytesView, VECTOR_LEN, Values, ValuesBuf};

/// Values of a dictionary and the bytes they were written as.
#[derive(Debug)]
pub(crate) struct Remembered {
    values: ValuesBuf,
    node: Vec<u8>,
    /// Dictionaries before this one that did not suit the block after theirs.
    misses: u32,
}

/// Larger dictionaries are not remembered. There is one for each column that is pressed, and the larger it is, the less of
/// the time goes into making it, compared to looking values up.
const BYTES_MAX: usize = 64 << 10;

/// After so many misses a column's dictionaries are taken for ones that change.
const MISSES_MAX: u32 = 2;

/// Entries that no row has are at most one in so many.
const ENTRIES_PER_UNUSED_MIN: usize = 8;

impl Remembered {
    /// For the block after one with these entries, ascending, written as `node`. `last` is what that one did not take. None
    /// where it is not worth remembering.
    pub(crate) fn new(values: ValuesBuf, node: &[u8], last: Option<&Remembered>) -> Option<Remembered> {
        let value_bytes = match &values {
            ValuesBuf::Bytes(buf) => buf.data.len() + size_of_val(&buf.offsets[..]),
            fixed => fixed.len() * fixed.physical().value_bytes().unwrap_or(0),
        };
        let misses = last.map_or(0, |last| last.misses + 1);
        let is_worth_it = value_bytes + node.len() <= BYTES_MAX && misses < MISSES_MAX;
        is_worth_it.then(|| Remembered { values, node: node.to_vec(), misses })
    }

    /// The node of the entries.
    pub(crate) fn node(&self) -> &[u8] {
        &self.node
    }

    /// The codes of values, where all of them are entries and nearly all entries are among them.
    pub(crate) fn codes(&self, values: Values<'_>) -> Option<Vec<u32>> {
        if values.physical() != self.values.physical() {
            return None;
        }
        let codes = match (values, self.values.as_values()) {
            (Values::Bytes(view), Values::Bytes(entries)) => of_bytes(view, entries),
            (Values::F32(values), Values::F32(entries)) => hashed(values, entries),
            (Values::F64(values), Values::F64(entries)) => hashed(values, entries),
            (values, _) => {
                fn integers<T: Integer>(values: &[T], mut entries: ValuesBuf) -> Option<Vec<u32>> {
                    of_integers(values, T::vec_mut(&mut entries))
                }
                for_integers!(Values, values, values => integers(values, self.values.clone()),
                    _ => unreachable!("all others are above"))
            }
        }?;
        self.suits(&codes).then_some(codes)
    }

    /// Values in codes, with those that are no entries as exceptions, where nearly all entries are among them.
    pub(crate) fn patched(&self, values: Values<'_>) -> Option<Patched> {
        if values.physical() != self.values.physical() {
            return None;
        }
        Some(Patched::of(values, &self.values)).filter(|patched| self.suits(&patched.codes))
    }

    /// Whether nearly all entries have one of these codes, and a dictionary of only those would not need fewer bits. There
    /// are no more entries than rows: readers hold blocks to that.
    fn suits(&self, codes: &[u32]) -> bool {
        let entry_count = self.values.len();
        if entry_count > codes.len() {
            return false;
        }
        let is_enough = |used: usize| {
            (entry_count - used) * ENTRIES_PER_UNUSED_MIN <= entry_count && code_bits(used) == code_bits(entry_count)
        };
        let mut used = vec![false; entry_count];
        for vector in sampled_vectors(codes.len()) {
            codes[vector].iter().for_each(|&code| used[code as usize] = true);
        }
        let count = |used: &[bool]| used.iter().filter(|used| **used).count();
        if is_enough(count(&used)) {
            return true;
        }
        codes.iter().for_each(|&code| used[code as usize] = true);
        is_enough(count(&used))
    }
}

/// Bits of a code among so many entries.
fn code_bits(entry_count: usize) -> u32 {
    usize::BITS - entry_count.saturating_sub(1).leading_zeros()
}

fn of_integers<T: Integer>(values: &[T], entries: &[T]) -> Option<Vec<u32>> {
    let (first, last) = (entries[0], entries[entries.len() - 1]);
    let reach = last.sub(first).bits();
    if reach >= PLACES_MAX || reach > PLACES_PER_ROW_MAX * values.len() as u128 {
        return hashed(values, entries);
    }
    let (least, most) = bounds(values);
    if least < first || most > last {
        return None;
    }
    // A power of two, so that no place needs a check. What is no entry has the code of none.
    let mut places = vec![u32::MAX; (reach as usize + 1).next_power_of_two()];
    let mask = places.len() - 1;
    let place = |value: T| value.sub(first).to_delta() as usize & mask;
    for (code, &entry) in (0..).zip(entries) {
        places[place(entry)] = code;
    }
    let codes: Vec<u32> = values.iter().map(|&value| places[place(value)]).collect();
    (greatest(&codes) < u32::MAX).then_some(codes)
}

fn hashed<T: Fixed>(values: &[T], entries: &[T]) -> Option<Vec<u32>> {
    let table = ValueTable::with(entries);
    let mut codes = vec![0; values.len()];
    let (mut hashes, mut missing) = ([0; VECTOR_LEN], [0; VECTOR_LEN]);
    for (vector, codes) in values.chunks(VECTOR_LEN).zip(codes.chunks_mut(VECTOR_LEN)) {
        let hashes = &mut hashes[..vector.len()];
        hash(vector, hashes);
        let missing_count = table.find_all(vector, hashes, codes, &mut missing);
        for &row in &missing[..missing_count] {
            let row = usize::from(row);
            let (code, is_there) = table.find_code(vector[row], hashes[row]);
            if !is_there {
                return None;
            }
            codes[row] = code;
        }
    }
    Some(codes)
}

fn of_bytes(values: BytesView<'_>, entries: BytesView<'_>) -> Option<Vec<u32>> {
    let table = BytesTable::with(entries);
    values.iter().map(|value| table.find_code(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BytesBuf;
    use crate::dictionary::Dictionary;

    fn remembered(values: Values<'_>) -> Remembered {
        Remembered::new(Dictionary::of(values).values, &[], None).expect("it is small")
    }

    /// What a dictionary of its own gives a block is what the last one's gives it, if the values are the same.
    fn agrees(first: Values<'_>, next: Values<'_>) {
        assert_eq!(remembered(first).codes(next), Some(Dictionary::of(next).codes));
    }

    #[test]
    fn the_next_block_gets_the_codes_that_its_own_dictionary_would_give() {
        let rows: Vec<i64> = (0..40_000).map(|row| row * 7919 % 300).collect();
        let next: Vec<i64> = rows.iter().rev().copied().collect();
        agrees(Values::I64(&rows), Values::I64(&next));
        let far = |rows: &[i64]| rows.iter().map(|row| (row << 40) - 5).collect::<Vec<i64>>();
        agrees(Values::I64(&far(&rows)), Values::I64(&far(&next)));
        let float = |rows: &[i64]| rows.iter().map(|row| 0.1 * *row as f64 - 3.0).collect::<Vec<f64>>();
        agrees(Values::F64(&float(&rows)), Values::F64(&float(&next)));
        let text = |rows: &[i64]| rows.iter().map(|row| row.to_string()).collect::<Vec<String>>();
        let buf = |texts: Vec<String>| texts.iter().map(String::as_bytes).collect::<BytesBuf>();
        let (rows, next) = (buf(text(&rows)), buf(text(&next)));
        agrees(Values::Bytes(rows.view()), Values::Bytes(next.view()));
    }

    #[test]
    fn values_that_are_no_entries_need_another_dictionary() {
        let near = remembered(Values::I16(&[1, 3, 5, 7]));
        assert_eq!(near.codes(Values::I16(&[7, 5, 3, 1, 1])), Some(vec![3, 2, 1, 0, 0]));
        for other in [0, 4, 8] {
            assert_eq!(near.codes(Values::I16(&[7, 5, 3, 1, other])), None, "{other}");
        }
        assert_eq!(near.codes(Values::I32(&[7, 5, 3, 1])), None);
        let far = remembered(Values::U64(&[1 << 20, 1 << 40, 1 << 60]));
        assert_eq!(far.codes(Values::U64(&[1 << 20, 1 << 60, 1 << 40, 1 << 50])), None);
        let zeros = remembered(Values::F32(&[0.0, 1.0]));
        assert_eq!(zeros.codes(Values::F32(&[1.0, -0.0])), None);
    }

    #[test]
    fn entries_that_nobody_has_are_few_and_widen_no_code() {
        let many: Vec<u32> = (0..1000).collect();
        let of_many = remembered(Values::U32(&many));
        assert!(of_many.codes(Values::U32(&many[50..].repeat(2))).is_some());
        assert!(of_many.codes(Values::U32(&many[200..].repeat(2))).is_none());
        // 512 take nine bits, 513 take ten.
        let of_some = remembered(Values::U32(&many[..513]));
        assert!(of_some.codes(Values::U32(&many[..512].repeat(2))).is_none());
        // Rare ones that the sample does not show count all the same.
        let rows: Vec<u32> = (0..100_000).map(|row| if row < 99_000 { 0 } else { row % 500 }).collect();
        let of_rows = remembered(Values::U32(&rows));
        assert!(of_rows.codes(Values::U32(&rows)).is_some());
    }

    #[test]
    fn there_are_no_more_entries_than_rows() {
        let many: Vec<u32> = (0..1000).collect();
        let of_many = remembered(Values::U32(&many));
        assert!(of_many.codes(Values::U32(&many)).is_some());
        assert!(of_many.codes(Values::U32(&many[1..])).is_none());
        assert!(of_many.patched(Values::U32(&many[1..])).is_none());
    }

    #[test]
    fn dictionaries_that_change_are_not_remembered_for_long() {
        let first = remembered(Values::U8(&[1, 2]));
        let second =
            Remembered::new(ValuesBuf::U8(vec![3, 4]), &[], Some(&first)).expect("it may be the last to change");
        assert!(Remembered::new(ValuesBuf::U8(vec![5, 6]), &[], Some(&second)).is_none());
        assert!(Remembered::new(ValuesBuf::I64(vec![0; BYTES_MAX]), &[], None).is_none());
    }
}
