//! Runs of equal values among a vector's rows, whatever its form: what sorted and slowly changing columns are made of.

use crate::Vector;
use crate::dispatch::{each_narrow, each_type};
use sinter_codec::{Bitmap, BytesBuf, Encoded, ValuesBuf};

/// A function is computed by run where runs have so many rows on average, at least: what is saved must pay for two passes over
/// the rows also where the function is as cheap as a look into a list.
const ROWS_PER_RUN: usize = 8;

/// After a vector without such runs, so many are not looked at, which makes looking cost next to nothing where there are none.
const PATIENCE: u32 = 15;

/// The runs of one vector.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// The first row of each.
    heads: Vec<u32>,
    /// Of each row, the number of its run.
    numbers: Vec<u16>,
    /// Vectors that are not looked at.
    skipped: u32,
}

impl Runs {
    /// Finds the runs of a vector's rows; false where they are short, or where those of the last vectors were.
    pub(super) fn find(&mut self, vector: &Vector, rows: usize) -> bool {
        if self.skipped > 0 {
            self.skipped -= 1;
            return false;
        }
        if rows == 0 || u16::try_from(rows).is_err() {
            return false;
        }
        let found = self.find_in(vector, rows);
        if !found {
            self.skipped = PATIENCE;
        }
        found
    }

    /// The first row of each run.
    pub(super) fn heads(&self) -> &[u32] {
        &self.heads
    }

    /// Of each row, the number of its run.
    pub(super) fn numbers(&self) -> &[u16] {
        &self.numbers
    }

    fn find_in(&mut self, vector: &Vector, rows: usize) -> bool {
        let validity = vector.validity.as_ref();
        match &vector.values {
            Encoded::Constant(_) => self.fill(rows, validity, |_| false),
            Encoded::BaseDelta { deltas: numbers, .. } | Encoded::Codes(numbers) => {
                each_narrow!(numbers, numbers => self.find_numbers(&numbers[..rows], validity))
            }
            Encoded::Flat(values) => each_type!(ValuesBuf, values,
                numbers => self.find_numbers(&numbers[..rows], validity),
                bytes => self.find_texts(bytes, rows, validity)),
        }
    }

    fn find_numbers<T: Bits>(&mut self, numbers: &[T], validity: Option<&Bitmap>) -> bool {
        // Counted first, many at a time: most vectors have none.
        let changes = numbers.windows(2).filter(|pair| pair[0].bits() != pair[1].bits()).count();
        (changes + 1) * ROWS_PER_RUN <= numbers.len().max(ROWS_PER_RUN)
            && self.fill(numbers.len(), validity, |row| numbers[row - 1].bits() != numbers[row].bits())
    }

    fn find_texts(&mut self, texts: &BytesBuf, rows: usize, validity: Option<&Bitmap>) -> bool {
        let view = texts.view();
        self.fill(rows, validity, |row| view.get(row - 1) != view.get(row))
    }

    /// Writes the runs down, of rows of which it is known whether they differ from the one before; false, and nothing of
    /// use, where they are too many.
    fn fill(&mut self, rows: usize, validity: Option<&Bitmap>, differs: impl Fn(usize) -> bool) -> bool {
        self.heads.clear();
        self.heads.push(0);
        self.numbers.clear();
        self.numbers.push(0);
        let differs = |row: usize| differs(row) || validity.is_some_and(|bits| bits.get(row - 1) != bits.get(row));
        let runs_max = rows.div_ceil(ROWS_PER_RUN);
        for row in 1..rows {
            if differs(row) {
                if self.heads.len() == runs_max {
                    return false;
                }
                self.heads.push(row as u32);
            }
            self.numbers.push((self.heads.len() - 1) as u16);
        }
        true
    }
}

/// What makes two numbers the same, bit by bit.
trait Bits: Copy {
    type Bits: PartialEq;
    fn bits(self) -> Self::Bits;
}

macro_rules! bits {
    ($($native:ty),*) => {
        $(impl Bits for $native {
            type Bits = $native;
            #[inline(always)]
            fn bits(self) -> $native {
                self
            }
        })*
    };
}

bits!(i8, i16, i32, i64, i128, u8, u16, u32, u64);

impl Bits for f32 {
    type Bits = u32;
    #[inline(always)]
    fn bits(self) -> u32 {
        self.to_bits()
    }
}

impl Bits for f64 {
    type Bits = u64;
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(values: ValuesBuf, validity: Option<Bitmap>) -> Vector {
        Vector { values: Encoded::Flat(values), validity, ..Vector::default() }
    }

    fn runs_of(vector: &Vector, rows: usize) -> Option<(Vec<u32>, Vec<u16>)> {
        let mut runs = Runs::default();
        let found = runs.find(vector, rows);
        found.then_some((runs.heads, runs.numbers))
    }

    #[test]
    fn equal_neighbours_are_one_run() {
        let numbers = vector(ValuesBuf::I64([vec![7; 12], vec![8; 6], vec![7; 6]].concat()), None);
        let expected = Some((vec![0, 12, 18], [vec![0; 12], vec![1; 6], vec![2; 6]].concat()));
        assert_eq!(runs_of(&numbers, 24), expected);
        let texts: BytesBuf = ["a"; 12].iter().chain(&["b"; 6]).chain(&["a"; 6]).map(|text| text.as_bytes()).collect();
        assert_eq!(runs_of(&vector(ValuesBuf::Bytes(texts), None), 24), expected);
        let one = Vector { values: Encoded::Constant(ValuesBuf::U8(vec![1])), ..Vector::default() };
        assert_eq!(runs_of(&one, 3), Some((vec![0], vec![0; 3])));
    }

    #[test]
    fn a_null_is_no_part_of_a_run_of_values() {
        let mut validity = Bitmap::new(24, true);
        validity.set(5, false);
        let numbers = vector(ValuesBuf::I32(vec![3; 24]), Some(validity));
        assert_eq!(runs_of(&numbers, 24).map(|(heads, _)| heads), Some(vec![0, 5, 6]));
    }

    #[test]
    fn floats_are_the_same_where_their_bits_are() {
        let floats = vector(ValuesBuf::F64([vec![f64::NAN; 8], vec![0.0; 8], vec![-0.0; 8]].concat()), None);
        assert_eq!(runs_of(&floats, 24).map(|(heads, _)| heads), Some(vec![0, 8, 16]));
    }

    #[test]
    fn short_runs_are_none_and_are_not_looked_for_at_once_again() {
        let short = vector(ValuesBuf::I16((0..99).map(|row| row / 3).collect()), None);
        assert_eq!(runs_of(&short, 99), None);
        let texts: BytesBuf = (0..99).map(|row| if row % 3 == 0 { &b"a"[..] } else { b"b" }).collect();
        assert_eq!(runs_of(&vector(ValuesBuf::Bytes(texts), None), 99), None);
        let (mut runs, long) = (Runs::default(), vector(ValuesBuf::I16(vec![1; 99]), None));
        assert!(!runs.find(&short, 99));
        let waited = (0..).take_while(|_| !runs.find(&long, 99)).count();
        assert_eq!(waited, PATIENCE as usize);
        assert!(!runs.find(&long, 0) && runs.find(&long, 99), "no rows say nothing");
    }
}
