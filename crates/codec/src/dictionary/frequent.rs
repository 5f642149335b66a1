//! A dictionary of the frequent values only: which they are, and which rows have others.
//!
//! Zukowski et al., ICDE 2006, section 3.1: a sorted sample gives a histogram; its most frequent 2^b values are in the
//! dictionary, for the b that makes codes and exceptions smallest together. The paper looks values up by a perfect hash
//! function made for them; ours are in a table that also holds the values, so that a row of another value is never
//! taken for one of theirs.

use super::table::{BytesTable, ValueTable};
use crate::fixed::{Integer, for_integers};
use crate::kernels::{bounds, hash};
use crate::values_mut::Native;
use crate::{BytesBuf, BytesView, VECTOR_LEN, Values, ValuesBuf};

/// Bits of a code at most.
const CODE_BITS_MAX: u32 = 16;

/// Bits that the place of an exception takes, about.
const PLACE_BITS: f64 = 8.0;

/// Frequent values, ascending.
#[derive(Debug)]
pub(crate) struct Frequent {
    pub(crate) values: ValuesBuf,
    /// Rows of the sample that have one of the values.
    pub(crate) covered: usize,
    /// What `row_count` rows take, judged by formula.
    pub(crate) bits: f64,
    /// What an exception's value takes, judged by formula.
    pub(crate) value_bits: f64,
}

/// Rows as codes of frequent values, and the rest.
#[derive(Debug)]
pub(crate) struct Patched {
    /// One per row; where there is an exception, the one before.
    pub(crate) codes: Vec<u32>,
    /// Rows of exceptions, ascending.
    pub(crate) positions: Vec<u32>,
    /// Their values.
    pub(crate) exceptions: ValuesBuf,
}

impl Frequent {
    /// Those of a column of `row_count` rows of which `sample` is a part: integers or bytes, at least one. There is at
    /// least one value, even where none is frequent.
    pub(crate) fn of(sample: Values<'_>, row_count: usize) -> Frequent {
        fn integers<T: Integer>(sample: &[T], row_count: usize) -> Frequent {
            let (least, greatest) = bounds(sample);
            let value_bits = f64::from((u128::BITS - greatest.sub(least).bits().leading_zeros()).max(1));
            let (values, frequent) = choose(sample.to_vec(), row_count, value_bits);
            Frequent { values: T::values(&values).to_buf(), ..frequent }
        }
        match sample {
            Values::Bytes(view) => {
                let value_bits = 8.0 * (1.0 + view.data_bytes() as f64 / view.len().max(1) as f64);
                let (values, frequent) = choose(view.iter().collect(), row_count, value_bits);
                Frequent { values: ValuesBuf::Bytes(values.into_iter().collect()), ..frequent }
            }
            sample => for_integers!(Values, sample, sample => integers(sample, row_count),
                other => unreachable!("{} values are not looked up", other.physical().name())),
        }
    }
}

impl Patched {
    /// Rows of these values, in codes of frequent ones of the same type.
    pub(crate) fn of(values: Values<'_>, frequent: &ValuesBuf) -> Patched {
        fn integers<T: Integer>(values: &[T], frequent: &[T]) -> Patched {
            let (codes, positions) = look_up(values, &ValueTable::with(frequent));
            let exceptions: Vec<T> = positions.iter().map(|&position| values[position as usize]).collect();
            Patched { codes, positions, exceptions: T::values(&exceptions).to_buf() }
        }
        match (values, frequent) {
            (Values::Bytes(view), ValuesBuf::Bytes(frequent)) => {
                let (codes, positions) = look_up_bytes(view, frequent.view());
                let exceptions: BytesBuf = positions.iter().map(|&position| view.get(position as usize)).collect();
                Patched { codes, positions, exceptions: ValuesBuf::Bytes(exceptions) }
            }
            (values, frequent) => {
                let mut frequent = frequent.clone();
                for_integers!(Values, values, values => integers(values, Native::vec_mut(&mut frequent)),
                    other => unreachable!("{} values are not looked up", other.physical().name()))
            }
        }
    }
}

/// The frequent ones of `keys`, ascending; what is returned beside them lacks them.
fn choose<K: Ord + Copy>(mut keys: Vec<K>, row_count: usize, value_bits: f64) -> (Vec<K>, Frequent) {
    keys.sort_unstable();
    let mut histogram: Vec<(u32, K)> =
        keys.chunk_by(|a, b| a == b).map(|equal| (equal.len() as u32, equal[0])).collect();
    histogram.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    // In a part of the rows, what occurs once says nothing.
    let count_min = if row_count > keys.len() { 2 } else { 1 };
    let frequent_count = histogram.partition_point(|(count, _)| *count >= count_min).max(1);
    let (mut covered, mut taken) = (0, 0);
    let mut best: Option<(f64, usize, usize)> = None;
    for code_bits in 0..=CODE_BITS_MAX {
        let value_count = frequent_count.min(1 << code_bits);
        covered += histogram[taken..value_count].iter().map(|(count, _)| *count as usize).sum::<usize>();
        taken = value_count;
        let exceptions = row_count as f64 * (1.0 - covered as f64 / keys.len() as f64);
        let bits = row_count as f64 * f64::from(code_bits)
            + exceptions * (value_bits + PLACE_BITS)
            + value_count as f64 * value_bits;
        if best.is_none_or(|(least, ..)| bits < least) {
            best = Some((bits, value_count, covered));
        }
        if value_count == frequent_count {
            break;
        }
    }
    let (bits, value_count, covered) = best.unwrap_or((f64::MAX, 1, 0));
    let mut values: Vec<K> = histogram[..value_count].iter().map(|(_, key)| *key).collect();
    values.sort_unstable();
    let none = ValuesBuf::Bytes(BytesBuf::default());
    (values, Frequent { values: none, covered, bits, value_bits })
}

/// Codes of values, and the rows of those that have none.
fn look_up<T: Integer>(values: &[T], table: &ValueTable<T>) -> (Vec<u32>, Vec<u32>) {
    let mut codes = vec![0; values.len()];
    let mut positions = Vec::new();
    let (mut hashes, mut missing) = ([0; VECTOR_LEN], [0; VECTOR_LEN]);
    let mut last = 0;
    for (index, (vector, codes)) in values.chunks(VECTOR_LEN).zip(codes.chunks_mut(VECTOR_LEN)).enumerate() {
        let hashes = &mut hashes[..vector.len()];
        hash(vector, hashes);
        let missing_count = table.find_all(vector, hashes, codes, &mut missing);
        for &row in &missing[..missing_count] {
            let row = usize::from(row);
            let (code, is_there) = table.find_code(vector[row], hashes[row]);
            codes[row] = match row {
                _ if is_there => code,
                0 => last,
                row => codes[row - 1],
            };
            if !is_there {
                positions.push((index * VECTOR_LEN + row) as u32);
            }
        }
        last = codes[codes.len() - 1];
    }
    (codes, positions)
}

/// [`look_up`] for bytes.
fn look_up_bytes(view: BytesView<'_>, frequent: BytesView<'_>) -> (Vec<u32>, Vec<u32>) {
    let table = BytesTable::with(frequent);
    let (mut codes, mut positions) = (vec![0; view.len()], vec![0; view.len()]);
    let (mut last, mut missing_count) = (0, 0);
    for (row, (value, code)) in view.iter().zip(&mut codes).enumerate() {
        let found = table.find_code(value);
        last = found.unwrap_or(last);
        *code = last;
        positions[missing_count] = row as u32;
        missing_count += usize::from(found.is_none());
    }
    positions.truncate(missing_count);
    (codes, positions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_cover_most_rows_and_the_tail_is_left_out() {
        let values: Vec<i64> =
            (0..10_000).map(|row| if row % 20 == 7 { row << 30 } else { row % 4 * 1_000_003 }).collect();
        let frequent = Frequent::of(Values::I64(&values), values.len());
        assert_eq!(frequent.values, ValuesBuf::I64(vec![0, 1_000_003, 2_000_006, 3_000_009]));
        assert_eq!(frequent.covered, 9500);
        let Patched { codes, positions, exceptions } = Patched::of(Values::I64(&values), &frequent.values);
        assert_eq!((positions.len(), exceptions.len()), (500, 500));
        let expected: Vec<u32> = (0..10_000).filter(|row| row % 20 == 7).collect();
        assert_eq!(positions, expected);
        assert!(codes.iter().enumerate().all(|(row, code)| row % 20 == 7 || *code == row as u32 % 4));
        assert_eq!(codes[27], codes[26]);
    }

    #[test]
    fn values_of_every_width_and_strings_are_told_apart() {
        let strings: Vec<String> =
            (0..500).map(|row| if row % 9 == 4 { row.to_string() } else { "x".into() }).collect();
        let strings: BytesBuf = strings.iter().map(String::as_bytes).collect();
        let frequent = Frequent::of(Values::Bytes(strings.view()), 500);
        let patched = Patched::of(Values::Bytes(strings.view()), &frequent.values);
        assert_eq!((frequent.values.len(), patched.positions.len()), (1, 56));
        let same = Patched::of(Values::U8(&[3, 5, 3]), &Frequent::of(Values::U8(&[3]), 1).values);
        assert_eq!((same.codes, same.positions, same.exceptions), (vec![0; 3], vec![1], ValuesBuf::U8(vec![5])));
    }
}
