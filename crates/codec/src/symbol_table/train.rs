//! Training: which symbols a table should have.
//!
//! FSST's bottom-up construction (Boncz et al., PVLDB 2020, section 4.2): encode a sample with the table so far, count
//! how often each code and each pair of neighbouring codes occurs, and make the next table from the best of the symbols
//! and the joined pairs. Each round can double the length of a symbol.
//!
//! We differ in what counts as best. With 255 symbols it is the bytes covered, as in the paper. With 4096 symbols it is
//! the bare frequency: on TPC-H comments and on URLs that gave 2 to 4 % less than bytes covered, because each
//! occurrence of a pair saves one code however long the pair is (as in byte-pair encoding).

use super::matcher::{Matcher, PADDING};
use super::symbol::Symbol;
use super::{ESCAPE, NARROW_SYMBOLS, WIDE_SYMBOLS, Width, first_free_code};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Rounds of encoding and counting. Eight are within 1 % of ten on the texts of FSST's corpus, six are not.
const ROUNDS: usize = 8;

/// Rounds at the end that see the whole sample; with 12-bit codes the others see one value in [`PART_STEP`]. That halves
/// the time and even gains 1 % on TPC-H comments: what is frequent shows in a part, and grows into long symbols sooner.
const FULL_ROUNDS: usize = 4;
const PART_STEP: usize = 4;

/// Bytes that a symbol costs in the serialised table, about: its two lengths, and what it does not share with the
/// symbol before it.
const SYMBOL_COST_BYTES: f64 = 5.0;

/// The symbols for `sample`, by code. `scale` is how many times as much text the table will be used for.
pub(super) fn train(width: Width, sample: &[&[u8]], scale: f64) -> Vec<Symbol> {
    let padded: Vec<Vec<u8>> = sample.iter().map(|value| [value, &[0; PADDING][..]].concat()).collect();
    let mut symbols = match width {
        Width::Wide => (0..=255).map(Symbol::of_byte).collect(),
        Width::Narrow => Vec::new(),
    };
    for round in 0..ROUNDS {
        let in_part = width == Width::Wide && round < ROUNDS - FULL_ROUNDS;
        let step = if in_part { PART_STEP } else { 1 };
        let part = padded.iter().step_by(step);
        let counts = Counts::of(&Matcher::new(width, &symbols), width, &symbols, part, round + 1 < ROUNDS);
        symbols = best(width, counts.symbols, scale * step as f64);
    }
    symbols
}

/// How often each candidate occurs in the sample.
struct Counts {
    symbols: HashMap<Symbol, u32, BuildHasherDefault<WordHasher>>,
}

impl Counts {
    fn of<'a>(
        matcher: &Matcher,
        width: Width,
        symbols: &[Symbol],
        padded: impl Iterator<Item = &'a Vec<u8>>,
        with_pairs: bool,
    ) -> Counts {
        // A byte that was escaped counts as the symbol it could become: it goes by number 256 + byte past the table.
        let unit_of =
            |code: u16| symbols.get(usize::from(code)).copied().unwrap_or_else(|| Symbol::of_byte(code as u8));
        let mut singles = vec![0u32; WIDE_SYMBOLS];
        let mut pairs: HashMap<u32, u32, BuildHasherDefault<WordHasher>> = HashMap::default();
        let mut codes = Vec::new();
        for value in padded {
            codes.clear();
            matcher.encode(value, &mut codes);
            if width == Width::Narrow {
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
        let mut counts: HashMap<Symbol, u32, _> = HashMap::default();
        for (code, &count) in singles.iter().enumerate().filter(|&(_, &count)| count > 0) {
            *counts.entry(unit_of(code as u16)).or_default() += count;
        }
        for (pair, count) in pairs.into_iter().filter(|&(_, count)| count > 1) {
            if let Some(joined) = unit_of((pair >> 16) as u16).concat(&unit_of(pair as u16)) {
                *counts.entry(joined).or_default() += count;
            }
        }
        Counts { symbols: counts }
    }
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

/// The candidates worth a code, in the order of their codes.
fn best(width: Width, counts: HashMap<Symbol, u32, BuildHasherDefault<WordHasher>>, scale: f64) -> Vec<Symbol> {
    let gain = |symbol: &Symbol, count: u32| match width {
        Width::Wide => u64::from(count),
        Width::Narrow => u64::from(count) * u64::from(symbol.len) * if symbol.len == 1 { NARROW_BYTE_BOOST } else { 1 },
    };
    let code_bytes = width.bits() as f64 / 8.0;
    let pays = |count: u32| f64::from(count) * scale * code_bytes > SYMBOL_COST_BYTES;
    let mut candidates: Vec<(u64, Symbol)> = counts
        .into_iter()
        .filter(|(symbol, count)| pays(*count) && (width == Width::Narrow || symbol.len > 1))
        .map(|(symbol, count)| (gain(&symbol, count), symbol))
        .collect();
    let capacity = match width {
        Width::Wide => WIDE_SYMBOLS - first_free_code(width),
        Width::Narrow => NARROW_SYMBOLS,
    };
    let order = |a: &(u64, Symbol), b: &(u64, Symbol)| b.0.cmp(&a.0).then(a.1.cmp(&b.1));
    if candidates.len() > capacity {
        candidates.select_nth_unstable_by(capacity, order);
        candidates.truncate(capacity);
    }
    let mut symbols: Vec<Symbol> = candidates.into_iter().map(|(_, symbol)| symbol).collect();
    symbols.sort_unstable_by(|a, b| a.as_slice().cmp(b.as_slice()));
    match width {
        Width::Wide => (0..=255).map(Symbol::of_byte).chain(symbols).collect(),
        Width::Narrow => symbols,
    }
}

/// A byte without a symbol costs two codes, so single bytes count for more than the byte they cover. FSST uses 8; on
/// its corpus the exact number matters little.
const NARROW_BYTE_BOOST: u64 = 8;

/// Hashes numbers and symbols by multiplication: the keys are ours, and counting is most of the work.
#[derive(Default)]
struct WordHasher(u64);

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
