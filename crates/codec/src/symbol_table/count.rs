//! Counting: how often each candidate for the next table occurs in a sample.

use super::matcher::Matcher;
use super::symbol::Symbol;
use super::{ESCAPE, WIDE_SYMBOLS, Width};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Occurrences of candidates.
pub(super) type Counts = HashMap<Symbol, u32, BuildHasherDefault<WordHasher>>;

/// Occurrences of `symbols` and, `with_pairs`, of two of them joined, in what `matcher` makes of `padded`. A byte that it
/// had to escape counts as the symbol that it could become.
pub(super) fn count<'a>(
    matcher: &Matcher,
    symbols: &[Symbol],
    padded: impl Iterator<Item = &'a Vec<u8>>,
    with_pairs: bool,
) -> Counts {
    // An escaped byte goes by the number 256 + byte, past the last of the at most 255 symbols.
    let symbol_of =
        |number: u16| symbols.get(usize::from(number)).copied().unwrap_or_else(|| Symbol::of_byte(number as u8));
    let mut singles = vec![0u32; WIDE_SYMBOLS];
    let mut pairs: HashMap<u32, u32, BuildHasherDefault<WordHasher>> = HashMap::default();
    let mut codes = Vec::new();
    for value in padded {
        codes.clear();
        matcher.encode(value, &mut codes);
        if matcher.width() == Width::Narrow {
            unescape(&mut codes);
        }
        for &code in &codes {
            singles[usize::from(code)] += 1;
        }
        if with_pairs {
            for pair in codes.windows(2) {
                *pairs.entry(u32::from(pair[0]) << 16 | u32::from(pair[1])).or_default() += 1;
            }
        }
    }
    let mut counts = Counts::default();
    for (code, &count) in singles.iter().enumerate().filter(|&(_, &count)| count > 0) {
        *counts.entry(symbol_of(code as u16)).or_default() += count;
    }
    for (pair, count) in pairs.into_iter().filter(|&(_, count)| count > 1) {
        if let Some(joined) = symbol_of((pair >> 16) as u16).concat(&symbol_of(pair as u16)) {
            *counts.entry(joined).or_default() += count;
        }
    }
    counts
}

/// Turns escapes into one number each, so that they can be counted and joined like codes.
fn unescape(codes: &mut Vec<u16>) {
    let mut kept = 0;
    let mut position = 0;
    while position < codes.len() {
        if codes[position] == ESCAPE {
            position += 1;
            codes[kept] = 256 + codes[position];
        } else {
            codes[kept] = codes[position];
        }
        kept += 1;
        position += 1;
    }
    codes.truncate(kept);
}

/// Hashes numbers and symbols by multiplication: the keys are ours, and counting is most of the work.
#[derive(Default)]
pub(super) struct WordHasher(u64);

impl WordHasher {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(u64::from(word));
    }

    fn write_u8(&mut self, word: u8) {
        self.mix(u64::from(word));
    }

    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
