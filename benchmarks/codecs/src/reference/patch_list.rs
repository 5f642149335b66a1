//! PFOR and PDICT with a linked patch list, as Zukowski, Héman, Nes and Boncz have them (ICDE 2006, section 3).
//!
//! A value that has no code of `bit_width` bits is an exception, kept apart as it is. Its code says how far it is to
//! the next exception, less one; where that is too far for a code, a value in between is made an exception, too, a
//! compulsory one. Each 128 values begin a new list, whose start is their entry point. NAIVE has no list: the greatest
//! code says that a value is an exception, and each code is compared with it.
//!
//! We differ from the paper in the entry point: it has 8 bits for the start of the list, so that 128 says that there is
//! none, and 24 for the number of exceptions before. Codes are packed by crate bitpacking, 128 at once. The paper gives the
//! second cursor for PFOR; PDICT is encoded by it, too.

use bitpacking::{BitPacker, BitPacker4x};
use std::collections::HashMap;

/// Values of a list.
pub const LIST_LEN: usize = 128;

/// Values that are encoded and decoded together.
pub const VECTOR_LEN: usize = 1024;

/// How a value becomes a code, and back.
#[derive(Clone, Debug)]
pub enum Coding {
    /// PFOR: the distance from a base.
    Base(u64),
    /// PDICT: the place among these values.
    Dictionary(Vec<u64>, HashMap<u64, u32>),
}

impl Coding {
    /// PDICT with these values.
    pub fn dictionary(values: Vec<u64>) -> Coding {
        let codes = values.iter().zip(0..).map(|(&value, code)| (value, code)).collect();
        Coding::Dictionary(values, codes)
    }
}

/// How exceptions are found while encoding, and patched in while decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One comparison and jump for each value, both ways.
    Naive,
    /// Exceptions listed by adding what the comparison gives to the length of the list (PRED).
    Predicated,
    /// The same from the start and from the middle of a vector at once (DC).
    DoubleCursor,
}

/// A segment of encoded values.
#[derive(Debug)]
pub struct Segment {
    form: Form,
    bit_width: u32,
    coding: Coding,
    /// For each list its start (8 bits), then the number of exceptions before it.
    entry_points: Vec<u32>,
    codes: Vec<u8>,
    exceptions: Vec<u64>,
    value_count: usize,
}

/// Codes and places of a vector on their way.
struct Work {
    codes: [u32; VECTOR_LEN],
    misses: [u32; VECTOR_LEN + 1],
}

impl Segment {
    /// An empty one.
    ///
    /// # Panics
    /// For a width that is not 1 to 24.
    pub fn new(form: Form, bit_width: u32, coding: Coding) -> Segment {
        assert!((1..=24).contains(&bit_width), "codes of {bit_width} bits");
        let (entry_points, codes, exceptions) = (Vec::new(), Vec::new(), Vec::new());
        Segment { form, bit_width, coding, entry_points, codes, exceptions, value_count: 0 }
    }

    /// Replaces the content by `values`.
    ///
    /// # Panics
    /// For less than full vectors.
    pub fn encode(&mut self, values: &[u64]) {
        let (vectors, rest) = values.as_chunks::<VECTOR_LEN>();
        assert!(rest.is_empty(), "full vectors only");
        self.entry_points.clear();
        self.codes.clear();
        self.exceptions.clear();
        self.value_count = values.len();
        let mut work = Work { codes: [0; VECTOR_LEN], misses: [0; VECTOR_LEN + 1] };
        let packer = BitPacker4x::new();
        for vector in vectors {
            match self.form {
                Form::Naive => self.encode_naive(vector, &mut work),
                Form::Predicated | Form::DoubleCursor => {
                    let count = self.find_exceptions(vector, &mut work);
                    self.link(vector, &mut work, count);
                }
            }
            for codes in work.codes.chunks_exact(LIST_LEN) {
                let start = self.codes.len();
                self.codes.resize(start + LIST_LEN / 8 * self.bit_width as usize, 0);
                packer.compress(codes, &mut self.codes[start..], self.bit_width as u8);
            }
        }
    }

    /// The greatest code of a value.
    fn code_max(&self) -> u64 {
        (1 << self.bit_width) - 1 - u64::from(self.form == Form::Naive)
    }

    fn enter(&mut self, start: usize) {
        self.entry_points.push((start as u32) << 24 | self.exceptions.len() as u32);
    }

    fn encode_naive(&mut self, vector: &[u64; VECTOR_LEN], work: &mut Work) {
        let max = self.code_max();
        for (values, codes) in vector.chunks_exact(LIST_LEN).zip(work.codes.chunks_exact_mut(LIST_LEN)) {
            self.enter(0);
            for (&value, code) in values.iter().zip(codes) {
                let number = match &self.coding {
                    Coding::Base(base) => value.wrapping_sub(*base),
                    Coding::Dictionary(_, codes) => codes.get(&value).map_or(u64::MAX, |&code| code.into()),
                };
                if number <= max {
                    *code = number as u32;
                } else {
                    *code = max as u32 + 1;
                    self.exceptions.push(value);
                }
            }
        }
    }

    /// LOOP1 of the paper: codes of all values, and the places of those that have none. Returns how many those are.
    fn find_exceptions(&self, vector: &[u64; VECTOR_LEN], work: &mut Work) -> usize {
        match &self.coding {
            Coding::Base(base) => self.find_codes(vector, work, |value| value.wrapping_sub(*base)),
            Coding::Dictionary(_, codes) => {
                self.find_codes(vector, work, |value| codes.get(&value).map_or(u64::MAX, |&code| code.into()))
            }
        }
    }

    /// [`Segment::find_exceptions`] by what gives a value its code.
    fn find_codes(&self, vector: &[u64; VECTOR_LEN], work: &mut Work, code: impl Fn(u64) -> u64) -> usize {
        let max = self.code_max();
        if self.form == Form::Predicated {
            let mut count = 0;
            for (place, &value) in vector.iter().enumerate() {
                let code = code(value);
                work.codes[place] = code as u32;
                work.misses[count] = place as u32;
                count += usize::from(code > max);
            }
            return count;
        }
        const MIDDLE: usize = VECTOR_LEN / 2;
        let mut later = [0u32; MIDDLE + 1];
        let (mut count, mut later_count) = (0, 0);
        for place in 0..MIDDLE {
            let (code, later_code) = (code(vector[place]), code(vector[place + MIDDLE]));
            work.codes[place] = code as u32;
            work.codes[place + MIDDLE] = later_code as u32;
            work.misses[count] = place as u32;
            later[later_count] = (place + MIDDLE) as u32;
            count += usize::from(code > max);
            later_count += usize::from(later_code > max);
        }
        work.misses[count..count + later_count].copy_from_slice(&later[..later_count]);
        count + later_count
    }

    /// LOOP2 of the paper: lists of exceptions, one for each 128 values, with compulsory ones where the way is too far.
    fn link(&mut self, vector: &[u64; VECTOR_LEN], work: &mut Work, count: usize) {
        let farthest = 1usize << self.bit_width;
        let mut misses = work.misses[..count].iter().map(|&place| place as usize).peekable();
        for list in 0..VECTOR_LEN / LIST_LEN {
            let end = (list + 1) * LIST_LEN;
            let Some(mut before) = misses.next_if(|&place| place < end) else {
                self.enter(LIST_LEN);
                continue;
            };
            self.enter(before - list * LIST_LEN);
            self.exceptions.push(vector[before]);
            while let Some(place) = misses.next_if(|&place| place < end) {
                while place - before > farthest {
                    work.codes[before] = farthest as u32 - 1;
                    before += farthest;
                    self.exceptions.push(vector[before]);
                }
                work.codes[before] = (place - before) as u32 - 1;
                self.exceptions.push(vector[place]);
                before = place;
            }
            work.codes[before] = 0;
        }
    }

    /// Writes vector `index` to `out`.
    pub fn decode(&self, index: usize, out: &mut [u64; VECTOR_LEN]) {
        let mut codes = [0; VECTOR_LEN];
        let packer = BitPacker4x::new();
        let list_bytes = LIST_LEN / 8 * self.bit_width as usize;
        let packed = &self.codes[index * VECTOR_LEN / LIST_LEN * list_bytes..];
        for (list, codes) in packed.chunks_exact(list_bytes).zip(codes.chunks_exact_mut(LIST_LEN)) {
            packer.decompress(list, codes, self.bit_width as u8);
        }
        let first_list = index * (VECTOR_LEN / LIST_LEN);
        if self.form == Form::Naive {
            let exceptions = &self.exceptions[self.exceptions_before(first_list)..];
            return match &self.coding {
                Coding::Base(base) => decode_naive(&codes, self.code_max(), exceptions, out, |code| base + code),
                Coding::Dictionary(values, _) => {
                    decode_naive(&codes, self.code_max(), exceptions, out, |code| values[code as usize]);
                }
            };
        }
        match &self.coding {
            Coding::Base(base) => {
                out.iter_mut().zip(&codes).for_each(|(value, &code)| *value = base.wrapping_add(code.into()));
            }
            Coding::Dictionary(values, _) => {
                // Codes of exceptions may stand for no value.
                let last = values.len() - 1;
                out.iter_mut().zip(&codes).for_each(|(value, &code)| *value = values[last.min(code as usize)]);
            }
        }
        for (list, (out, codes)) in out.chunks_exact_mut(LIST_LEN).zip(codes.chunks_exact(LIST_LEN)).enumerate() {
            let mut place = (self.entry_points[first_list + list] >> 24) as usize;
            let of_list = self.exceptions_before(first_list + list)..self.exceptions_before(first_list + list + 1);
            for &exception in &self.exceptions[of_list] {
                out[place] = exception;
                place += codes[place] as usize + 1;
            }
        }
    }

    fn exceptions_before(&self, list: usize) -> usize {
        self.entry_points.get(list).map_or(self.exceptions.len(), |entry| (entry & 0xff_ffff) as usize)
    }

    /// The value at `row`: walks the list up to there.
    pub fn single(&self, row: usize) -> u64 {
        let (list, place) = (row / LIST_LEN, row % LIST_LEN);
        let list_bytes = LIST_LEN / 8 * self.bit_width as usize;
        let packed = &self.codes[list * list_bytes..(list + 1) * list_bytes];
        let mut at = (self.entry_points[list] >> 24) as usize;
        let mut exception = self.exceptions_before(list);
        let last = self.exceptions_before(list + 1);
        while at < place && exception < last {
            at += self.code(packed, at) as usize + 1;
            exception += 1;
        }
        if at == place && exception < last {
            return self.exceptions[exception];
        }
        let code = self.code(packed, place);
        match &self.coding {
            Coding::Base(base) => base + u64::from(code),
            Coding::Dictionary(values, _) => values[code as usize],
        }
    }

    /// One code of a packed list: four lanes of 32-bit words, the codes dealt to them in turns.
    fn code(&self, packed: &[u8], place: usize) -> u32 {
        let (lane, bit) = (place % 4, place / 4 * self.bit_width as usize);
        let word = |index: usize| {
            let at = 16 * index + 4 * lane;
            packed.get(at..at + 4).map_or(0, |bytes| u64::from(u32::from_le_bytes(bytes.try_into().expect("four"))))
        };
        let both = word(bit / 32) | word(bit / 32 + 1) << 32;
        (both >> (bit % 32)) as u32 & ((1 << self.bit_width) - 1)
    }

    /// Bytes of the segment.
    pub fn bytes(&self) -> usize {
        4 * self.entry_points.len() + self.codes.len() + 8 * self.exceptions.len()
    }

    /// Exceptions, compulsory ones included, as part of all values.
    pub fn exception_share(&self) -> f64 {
        self.exceptions.len() as f64 / self.value_count as f64
    }
}

fn decode_naive(
    codes: &[u32; VECTOR_LEN],
    max: u64,
    exceptions: &[u64],
    out: &mut [u64; VECTOR_LEN],
    value: impl Fn(u64) -> u64,
) {
    let mut next = 0;
    for (out, &code) in out.iter_mut().zip(codes) {
        if u64::from(code) <= max {
            *out = value(code.into());
        } else {
            *out = exceptions[next];
            next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn all_forms_give_back_every_value() {
        for (bit_width, share) in [(1, 0.02), (2, 0.0), (3, 0.1), (8, 0.0), (8, 0.3), (8, 1.0), (17, 0.05)] {
            let mut random = Random::new(bit_width);
            let base = 1 << 40;
            let dictionary: Vec<u64> = (0..1 << bit_width).map(|code| code * 1_000_003 + 7).collect();
            let codes: Vec<Option<u64>> = (0..4 * VECTOR_LEN)
                .map(|_| (!random.happens(share)).then(|| random.below((1 << bit_width) - 1)))
                .collect();
            let of =
                |value: &dyn Fn(u64) -> u64| -> Vec<u64> { codes.iter().map(|code| code.map_or(3, value)).collect() };
            let cases = [
                (Coding::Base(base), of(&|code| base + code)),
                (Coding::dictionary(dictionary.clone()), of(&|code| dictionary[code as usize])),
            ];
            for (coding, values) in cases {
                for form in [Form::Naive, Form::Predicated, Form::DoubleCursor] {
                    let mut segment = Segment::new(form, bit_width as u32, coding.clone());
                    segment.encode(&values);
                    let mut out = [0; VECTOR_LEN];
                    for (index, vector) in values.as_chunks::<VECTOR_LEN>().0.iter().enumerate() {
                        segment.decode(index, &mut out);
                        assert_eq!(out, *vector, "{form:?} of {bit_width} bits, {share}");
                    }
                    if form != Form::Naive {
                        (0..values.len()).for_each(|row| assert_eq!(segment.single(row), values[row]));
                    }
                }
            }
        }
    }
}
