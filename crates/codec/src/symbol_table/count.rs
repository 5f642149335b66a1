//! Counting: how often each candidate for the next table occurs in a sample.

use super::StringEncoder;
use super::matcher::Matcher;
use super::symbol::Symbol;
use super::{ESCAPE, WIDE_SYMBOLS, Width};
use crate::BytesView;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Occurrences of candidates.
pub(super) type Counts = HashMap<Symbol, u32, BuildHasherDefault<WordHasher>>;

/// There are about so many codes for each candidate: room for all, made at once.
const CODES_PER_CANDIDATE: usize = 6;

/// Occurrences of `symbols` and, `with_pairs`, of two of them joined, in what `matcher` makes of `values`. A byte that
/// it had to escape counts as the symbol that it could become.
pub(super) fn count(matcher: Matcher, symbols: &[Symbol], values: BytesView<'_>, with_pairs: bool) -> Counts {
    // An escaped byte goes by the number 256 + byte, past the last of the at most 255 symbols.
    let symbol_of =
        |number: u16| symbols.get(usize::from(number)).copied().unwrap_or_else(|| Symbol::of_byte(number as u8));
    let width = matcher.width();
    let (mut codes, mut code_counts) = (Vec::new(), Vec::new());
    StringEncoder::new(matcher).encode(values, &mut codes, &mut code_counts);
    if width == Width::Narrow {
        unescape(&mut codes, &mut code_counts);
    }
    let mut singles = [0u32; WIDE_SYMBOLS];
    for &code in &codes {
        singles[usize::from(code) % WIDE_SYMBOLS] += 1;
    }
    let mut counts = Counts::with_capacity_and_hasher(codes.len() / CODES_PER_CANDIDATE, Default::default());
    for (code, &count) in singles.iter().enumerate().filter(|&(_, &count)| count > 0) {
        *counts.entry(symbol_of(code as u16)).or_default() += count;
    }
    if with_pairs {
        Followers::new(&codes, &code_counts, &singles).for_pairs(&singles, |first, second, count| {
            if let Some(joined) = symbol_of(first).concat(&symbol_of(second)) {
                *counts.entry(joined).or_default() += count;
            }
        });
    }
    counts
}

/// By code, the codes that follow it: a hash table of pairs missed the cache for most of them.
struct Followers {
    /// Where those of each code end.
    ends: Vec<u32>,
    codes: Vec<u16>,
}

impl Followers {
    /// Those of strings of so many codes each; there are `singles` of each code.
    fn new(codes: &[u16], code_counts: &[u32], singles: &[u32; WIDE_SYMBOLS]) -> Followers {
        let starts = singles.iter().scan(0, |end, &count| Some(std::mem::replace(end, *end + count)));
        let mut ends: Vec<u32> = starts.collect();
        let mut followers = vec![0; codes.len()];
        let mut rest = codes;
        for &count in code_counts {
            let (string, after) = rest.split_at(count as usize);
            for pair in string.windows(2) {
                let end = &mut ends[usize::from(pair[0])];
                followers[*end as usize] = pair[1];
                *end += 1;
            }
            rest = after;
        }
        // The last code of a string has none, so there is a gap behind the end.
        Followers { ends, codes: followers }
    }

    /// Calls `visit` with both codes and the count of each pair that occurs more than once.
    fn for_pairs(&self, singles: &[u32; WIDE_SYMBOLS], mut visit: impl FnMut(u16, u16, u32)) {
        let mut seen = [0u32; WIDE_SYMBOLS];
        let mut start = 0;
        for (first, (&end, &count)) in self.ends.iter().zip(singles).enumerate() {
            let followers = &self.codes[start as usize..end as usize];
            for &second in followers {
                seen[usize::from(second) % WIDE_SYMBOLS] += 1;
            }
            for &second in followers {
                let count = std::mem::take(&mut seen[usize::from(second) % WIDE_SYMBOLS]);
                if count > 1 {
                    visit(first as u16, second, count);
                }
            }
            start += count;
        }
    }
}

/// Turns escapes into one number each, so that they can be counted and joined like codes.
fn unescape(codes: &mut Vec<u16>, code_counts: &mut [u32]) {
    let (mut kept, mut position) = (0, 0);
    for code_count in code_counts {
        let (end, first) = (position + *code_count as usize, kept);
        while position < end {
            if codes[position] == ESCAPE {
                position += 1;
                codes[kept] = 256 + codes[position];
            } else {
                codes[kept] = codes[position];
            }
            kept += 1;
            position += 1;
        }
        *code_count = (kept - first) as u32;
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
