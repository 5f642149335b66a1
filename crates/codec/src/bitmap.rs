//! One bit per row: validity, selections, delete marks.

use crate::isa::each_isa;

/// Packed bits, 64 to a word, lowest first. Bits past `len` are always zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// `len` equal bits.
    pub fn new(len: usize, value: bool) -> Bitmap {
        let mut bitmap = Bitmap::default();
        bitmap.reset(len, value);
        bitmap
    }

    /// One bit per element.
    pub fn from_bools(bits: impl IntoIterator<Item = bool>) -> Bitmap {
        let mut bitmap = Bitmap::default();
        for bit in bits {
            bitmap.push(bit);
        }
        bitmap
    }

    /// Takes over packed words; bits past `len` are cleared.
    ///
    /// # Panics
    /// When `words` is shorter than `len` bits.
    pub fn from_words(mut words: Vec<u64>, len: usize) -> Bitmap {
        assert!(words.len() >= len.div_ceil(64), "{} words hold fewer than {len} bits", words.len());
        words.truncate(len.div_ceil(64));
        let mut bitmap = Bitmap { words, len };
        bitmap.clear_tail();
        bitmap
    }

    /// Makes it `len` equal bits again, keeping its memory.
    pub fn reset(&mut self, len: usize, value: bool) {
        self.words.clear();
        self.words.resize(len.div_ceil(64), if value { u64::MAX } else { 0 });
        self.len = len;
        self.clear_tail();
    }

    fn clear_tail(&mut self) {
        if !self.len.is_multiple_of(64) {
            let last = self.words.len() - 1;
            self.words[last] &= (1u64 << (self.len % 64)) - 1;
        }
    }

    /// How many bits.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there are no bits at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The packed words, lowest bit first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The packed words; the caller keeps bits past `len` zero.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// The bit at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> bool {
        debug_assert!(index < self.len);
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    /// Sets the bit at `index`.
    #[inline]
    pub fn set(&mut self, index: usize, value: bool) {
        debug_assert!(index < self.len);
        let mask = 1u64 << (index % 64);
        if value {
            self.words[index / 64] |= mask;
        } else {
            self.words[index / 64] &= !mask;
        }
    }

    /// Appends one bit.
    #[inline]
    pub fn push(&mut self, value: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        self.len += 1;
        self.set(self.len - 1, value);
    }

    /// Appends the lowest `count` bits of `word` (at most 64); the others are zero.
    #[inline]
    pub fn push_word(&mut self, word: u64, count: usize) {
        debug_assert!(count == 64 || word >> count == 0);
        let shift = self.len % 64;
        self.len += count;
        if shift == 0 {
            if count > 0 {
                self.words.push(word);
            }
            return;
        }
        if let Some(last) = self.words.last_mut() {
            *last |= word << shift;
        }
        if shift + count > 64 {
            self.words.push(word >> (64 - shift));
        }
    }

    /// Appends `count` words of 64 bits each, all zero, to be written over. Before it, all words are full.
    pub(crate) fn push_words(&mut self, count: usize) -> &mut [u64] {
        debug_assert!(self.len.is_multiple_of(64));
        let before = self.words.len();
        self.len += 64 * count;
        self.words.resize(before + count, 0);
        &mut self.words[before..]
    }

    /// Appends `count` equal bits.
    pub fn extend_with(&mut self, count: usize, value: bool) {
        let old_len = self.len;
        if value && !old_len.is_multiple_of(64) {
            let last = self.words.len() - 1;
            self.words[last] |= u64::MAX << (old_len % 64);
        }
        self.len += count;
        self.words.resize(self.len.div_ceil(64), if value { u64::MAX } else { 0 });
        self.clear_tail();
    }

    /// Appends runs of equal bits: how many, and which.
    pub(crate) fn extend_with_runs(&mut self, runs: impl Iterator<Item = (usize, bool)>) {
        let mut used = self.len % 64;
        let mut word = if used == 0 { 0 } else { self.words.pop().unwrap_or(0) };
        for (count, value) in runs {
            let fill = 0u64.wrapping_sub(value.into());
            // Bits from `used` on are left over from the run before.
            word = word & ((1 << used) - 1) | fill << used;
            self.len += count;
            used += count;
            while used >= 64 {
                self.words.push(word);
                (word, used) = (fill, used - 64);
            }
        }
        if used > 0 {
            self.words.push(word & ((1 << used) - 1));
        }
    }

    /// Appends the bits of `other`.
    pub fn extend(&mut self, other: &Bitmap) {
        let shift = self.len % 64;
        if shift == 0 {
            self.words.extend_from_slice(&other.words);
            self.len += other.len;
            return;
        }
        self.len += other.len;
        for &word in &other.words {
            let last = self.words.len() - 1;
            self.words[last] |= word << shift;
            self.words.push(word >> (64 - shift));
        }
        self.words.truncate(self.len.div_ceil(64));
    }

    /// The bits of `range` as a bitmap of their own, written over `out`.
    ///
    /// # Panics
    /// When the range reaches past the end.
    pub fn slice_into(&self, range: std::ops::Range<usize>, out: &mut Bitmap) {
        assert!(range.end <= self.len, "range {range:?} of {} bits", self.len);
        let len = range.len();
        out.words.clear();
        let (first, shift) = (range.start / 64, range.start % 64);
        for i in 0..len.div_ceil(64) {
            let low = self.words[first + i] >> shift;
            let high = match self.words.get(first + i + 1) {
                Some(next) if shift > 0 => next << (64 - shift),
                _ => 0,
            };
            out.words.push(low | high);
        }
        out.len = len;
        out.clear_tail();
    }

    /// Writes the bits of `range` over as many words as hold them; bits past its end are zero.
    ///
    /// # Panics
    /// When the range reaches past the end, or `words` are fewer.
    pub(crate) fn copy_words(&self, range: std::ops::Range<usize>, words: &mut [u64]) {
        assert!(range.end <= self.len, "range {range:?} of {} bits", self.len);
        let len = range.len();
        let (first, shift) = (range.start / 64, range.start % 64);
        let words = &mut words[..len.div_ceil(64)];
        for (index, word) in words.iter_mut().enumerate() {
            let low = self.words[first + index] >> shift;
            let high = match self.words.get(first + index + 1) {
                Some(next) if shift > 0 => next << (64 - shift),
                _ => 0,
            };
            *word = low | high;
        }
        if let Some(last) = words.last_mut()
            && !len.is_multiple_of(64)
        {
            *last &= (1 << (len % 64)) - 1;
        }
    }

    /// How many bits of `range` are set.
    ///
    /// # Panics
    /// When the range reaches past the end.
    pub fn count_ones_in(&self, range: std::ops::Range<usize>) -> usize {
        assert!(range.start <= range.end && range.end <= self.len, "range {range:?} of {} bits", self.len);
        if range.is_empty() {
            return 0;
        }
        let (first, last) = (range.start / 64, (range.end - 1) / 64);
        let from = u64::MAX << (range.start % 64);
        let until = u64::MAX >> (63 - (range.end - 1) % 64);
        if first == last {
            return (self.words[first] & from & until).count_ones() as usize;
        }
        let between: u32 = self.words[first + 1..last].iter().map(|word| word.count_ones()).sum();
        ((self.words[first] & from).count_ones() + between + (self.words[last] & until).count_ones()) as usize
    }

    /// The bits of `range` as a bitmap of their own.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Bitmap {
        let mut out = Bitmap::default();
        self.slice_into(range, &mut out);
        out
    }

    /// How many bits are set.
    pub fn count_ones(&self) -> usize {
        count_ones(&self.words)
    }

    /// True when some bit is set.
    pub fn any(&self) -> bool {
        self.words.iter().any(|&word| word != 0)
    }

    /// True when every bit is set.
    pub fn all(&self) -> bool {
        self.count_ones() == self.len
    }

    /// Keeps the bits that `other` has too. Lengths must agree.
    pub fn and(&mut self, other: &Bitmap) {
        debug_assert_eq!(self.len, other.len);
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a &= b;
        }
    }

    /// Keeps the bits that `other` lacks. Lengths must agree.
    pub fn and_not(&mut self, other: &Bitmap) {
        debug_assert_eq!(self.len, other.len);
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a &= !b;
        }
    }

    /// Adds the bits of `other`. Lengths must agree.
    pub fn or(&mut self, other: &Bitmap) {
        debug_assert_eq!(self.len, other.len);
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a |= b;
        }
    }

    /// Turns every bit round.
    pub fn invert(&mut self) {
        for word in &mut self.words {
            *word = !*word;
        }
        if self.len > 0 {
            self.clear_tail();
        }
    }

    /// Positions of the set bits, ascending.
    pub fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                Some(index * 64 + bit)
            })
        })
    }

    /// Positions of the set bits as 16-bit numbers, written over `out`. For bitmaps of at most 65,536 bits.
    pub fn positions_into(&self, out: &mut Vec<u16>) {
        out.clear();
        out.extend(self.ones().map(|position| position as u16));
    }
}

each_isa! {
    fn count_ones(words: &[u64]) -> usize = count_ones_body;
}

#[inline(always)]
fn count_ones_body(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_and_extensions_agree_with_bools() {
        let bools: Vec<bool> = (0..1000).map(|i| i % 3 == 0 || i % 7 == 2).collect();
        let bitmap = Bitmap::from_bools(bools.iter().copied());
        for range in [0..1000, 1..64, 63..65, 64..128, 130..999, 5..5, 1000..1000] {
            let expected = Bitmap::from_bools(bools[range.clone()].iter().copied());
            assert_eq!(bitmap.slice(range.clone()), expected, "{range:?}");
            assert_eq!(bitmap.count_ones_in(range.clone()), expected.count_ones(), "{range:?}");
            let mut words = [u64::MAX; 17];
            bitmap.copy_words(range.clone(), &mut words);
            assert_eq!(&words[..range.len().div_ceil(64)], expected.words(), "{range:?}");
            let mut joined = bitmap.slice(0..range.start);
            joined.extend(&expected);
            joined.extend(&bitmap.slice(range.end..1000));
            assert_eq!(joined, bitmap);
        }
        let mut grown = Bitmap::new(3, true);
        grown.extend_with(70, false);
        grown.extend_with(130, true);
        assert_eq!(grown.count_ones(), 133);
        grown.invert();
        assert_eq!(grown.ones().collect::<Vec<_>>(), (3..73).collect::<Vec<_>>());
    }

    #[test]
    fn runs_are_appended_as_if_one_after_the_other() {
        let lengths = [1, 2, 63, 64, 65, 127, 128, 129, 3, 5, 200, 0, 7];
        for start in [0, 1, 31, 63, 64, 65, 128] {
            for first in [false, true] {
                let runs = || lengths.into_iter().enumerate().map(|(run, length)| (length, first ^ (run % 3 == 1)));
                let (mut one_by_one, mut at_once) = (Bitmap::new(start, true), Bitmap::new(start, true));
                runs().for_each(|(count, value)| one_by_one.extend_with(count, value));
                at_once.extend_with_runs(runs());
                assert_eq!(at_once, one_by_one, "from {start}");
                at_once.extend_with_runs(std::iter::empty());
                assert_eq!(at_once, one_by_one, "from {start}");
            }
        }
    }
}
