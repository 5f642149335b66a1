//! Training: which symbols a table should have.
//!
//! FSST's bottom-up construction (Boncz et al., PVLDB 2020, section 4.2): encode a sample with the table so far, count
//! how often each code and each pair of neighbouring codes occurs, and make the next table from the best of the symbols
//! and the joined pairs. Each round can double the length of a symbol.
//!
//! We differ in what counts as best. With 255 symbols it is the bytes covered, as in the paper. With 4096 symbols it is
//! the bare frequency: on TPC-H comments and on URLs that gave 2 to 4 % less than bytes covered, because each
//! occurrence of a pair saves one code however long the pair is (as in byte-pair encoding).

use super::count::{Counts, count};
use super::matcher::Matcher;
use super::symbol::Symbol;
use super::{NARROW_SYMBOLS, WIDE_SYMBOLS, Width, first_free_code};
use crate::{BytesBuf, BytesView};

/// Rounds of encoding and counting. Eight are within 1 % of ten on the texts of FSST's corpus, six are not.
const ROUNDS: usize = 8;

/// Rounds at the end that see the whole sample; with 12-bit codes the others see one value in [`PART_STEP`]. That halves
/// the time and even gains 1 % on TPC-H comments: what is frequent shows in a part, and grows into long symbols sooner.
const FULL_ROUNDS: usize = 4;
const PART_STEP: usize = 4;

/// Bytes that a symbol costs in the serialised table, about: its two lengths, and what it does not share with the
/// symbol before it.
const SYMBOL_COST_BYTES: f64 = 5.0;

/// A byte without a symbol costs two codes, so single bytes count for more than the byte they cover. FSST's 8 is up to
/// 1 % worse with our longer symbols, and so is 1.
const NARROW_BYTE_BOOST: u64 = 4;

/// The symbols for `sample`, by code. `scale` is how many times as much text the table will be used for.
pub(super) fn train(width: Width, sample: BytesView<'_>, scale: f64) -> Vec<Symbol> {
    let mut symbols = match width {
        Width::Wide => (0..=255).map(Symbol::of_byte).collect(),
        Width::Narrow => Vec::new(),
    };
    let part: BytesBuf = match width {
        Width::Wide => sample.iter().step_by(PART_STEP).collect(),
        Width::Narrow => BytesBuf::default(),
    };
    for round in 0..ROUNDS {
        let in_part = width == Width::Wide && round < ROUNDS - FULL_ROUNDS;
        let (values, step) = if in_part { (part.view(), PART_STEP) } else { (sample, 1) };
        let matcher = Matcher::new(width, &symbols);
        symbols = best(width, count(matcher, &symbols, values, round + 1 < ROUNDS), scale * step as f64);
    }
    symbols
}

/// The candidates worth a code, in the order of their codes.
fn best(width: Width, counts: Counts, scale: f64) -> Vec<Symbol> {
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
