//! Symbol tables: strings compressed one by one, so that any of them can be read alone.
//!
//! A table maps short codes to symbols of 1 to 16 bytes that are frequent in a column. A string becomes the codes of
//! the symbols that cover it, always taking the longest that fits; so, with one table, two strings are equal exactly
//! when their codes are. Decoding copies 16 bytes per code and moves on by the symbol's length.
//!
//! The idea is FSST's (Boncz, Neumann, Leis: Fast Static Symbol Table compression, PVLDB 2020). We deviate in three
//! points. Symbols may have 16 bytes, not 8: a copy costs the same on today's machines. Besides 8-bit codes with an
//! escape there are 12-bit codes for 4096 symbols, of which the first 256 are the single bytes, so that nothing needs
//! an escape; on TPC-H comments they save a quarter of the bytes. And the table is written in lexicographic order, each
//! symbol without the prefix it shares with the one before, which halves it.
//!
//! Use: [`sample`] a column, [`SymbolTable::train`], and encode it as [`EncodedTexts`]; the bytes of the table come from
//! [`SymbolTable::write`] and go through [`SymbolTable::read`]; [`SymbolTable::decode`] is the way back.
//! The bytes are described in docs/format/codecs/fsst.md.

mod characters;
mod codes;
mod compare;
mod count;
mod decode;
mod encoder;
mod lanes;
mod matcher;
mod sample;
mod search;
mod steps;
mod symbol;
mod texts;
mod train;
mod wire;

pub(crate) use characters::CharacterCounts;
pub(crate) use codes::{code_capacity, packed_bytes};
pub(crate) use compare::sort_needles;
pub(crate) use encoder::StringEncoder;
pub(crate) use sample::sample;
pub(crate) use search::Search;
pub(crate) use texts::EncodedTexts;

use codes::{code_at, pack};
use matcher::Matcher;
use symbol::Symbol;

use crate::{BytesBuf, BytesView};

/// The longest symbol.
pub(crate) const SYMBOL_BYTES: usize = 16;

/// Symbols of 8-bit codes; the code that is left over is [`ESCAPE`].
const NARROW_SYMBOLS: usize = 255;

/// Symbols of 12-bit codes, single bytes included.
const WIDE_SYMBOLS: usize = 4096;

/// With 8-bit codes: the next code is not one, but a byte that stands for itself.
const ESCAPE: u16 = 255;

/// How wide the codes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// 8 bits: up to 255 symbols, everything else escaped. For small blocks.
    Narrow,
    /// 12 bits: the 256 single bytes and up to 3840 longer symbols.
    Wide,
}

impl Width {
    /// Bits of one code.
    pub(crate) fn bits(self) -> usize {
        match self {
            Width::Narrow => 8,
            Width::Wide => 12,
        }
    }
}

/// The first code whose symbol the table can choose; those below are the single bytes.
fn first_free_code(width: Width) -> usize {
    match width {
        Width::Narrow => 0,
        Width::Wide => 256,
    }
}

/// Symbols by code. Immutable; any number of threads may decode with it. Takes 70 KB with 12-bit codes, 5 KB with 8.
///
/// Invariant: no two codes have the same symbol, and symbols ascend from [`first_free_code`] on.
pub(crate) struct SymbolTable {
    width: Width,
    /// Codes in use.
    code_count: usize,
    /// What decoding copies, by code; the length is 0 at codes without a symbol.
    texts: Box<[[u8; SYMBOL_BYTES]]>,
    sizes: Box<[u8]>,
}

impl SymbolTable {
    /// The table for a column of `text_bytes` bytes of which `sample` is a part: the one of both widths that makes
    /// table and codes smaller together.
    pub(crate) fn train(sample: BytesView<'_>, text_bytes: usize) -> SymbolTable {
        let sample_bytes = sample.data_bytes();
        let scale = (text_bytes as f64 / sample_bytes.max(1) as f64).max(1.0);
        let part: BytesBuf = sample.iter().step_by(sample_bytes.div_ceil(NARROW_SAMPLE_BYTES).max(1)).collect();
        let part = part.view();
        let part_scale = scale * sample_bytes.max(1) as f64 / part.data_bytes().max(1) as f64;
        let narrow = || SymbolTable::train_width(Width::Narrow, part, part_scale);
        if text_bytes < WIDE_TEXT_BYTES_MIN {
            return narrow();
        }
        let wide = SymbolTable::train_width(Width::Wide, sample, scale);
        let cost = |table: &SymbolTable| table.serialized_bytes() as f64 + table.codes_bytes(part) as f64 * part_scale;
        let wide_cost = cost(&wide);
        let rough: BytesBuf = part.iter().step_by(ROUGH_STEP).collect();
        let rough = SymbolTable::train_width(Width::Narrow, rough.view(), ROUGH_STEP as f64 * part_scale);
        if wide_cost * ROUGH_LOSS_MAX < cost(&rough) {
            return wide;
        }
        let narrow = narrow();
        if wide_cost < cost(&narrow) { wide } else { narrow }
    }

    /// The table with codes of this width, used for `scale` times as much text as the sample has.
    pub(crate) fn train_width(width: Width, sample: BytesView<'_>, scale: f64) -> SymbolTable {
        let mut table = SymbolTable::empty(width);
        for symbol in train::train(width, sample, scale).iter().skip(first_free_code(width)) {
            table.push(symbol);
        }
        table
    }

    /// Without a symbol of its choice.
    fn empty(width: Width) -> SymbolTable {
        let texts = vec![[0; SYMBOL_BYTES]; 1 << width.bits()].into_boxed_slice();
        let sizes = vec![0; 1 << width.bits()].into_boxed_slice();
        let mut table = SymbolTable { width, code_count: 0, texts, sizes };
        for byte in (0..=255).take(first_free_code(width)) {
            table.push(&Symbol::of_byte(byte));
        }
        table
    }

    /// Gives the next code to `symbol`.
    fn push(&mut self, symbol: &Symbol) {
        self.texts[self.code_count] = symbol.bytes;
        self.sizes[self.code_count] = symbol.len;
        self.code_count += 1;
    }

    /// All symbols, by code.
    fn symbols(&self) -> impl Iterator<Item = Symbol> {
        let texts = self.texts.iter().zip(&self.sizes).take(self.code_count);
        texts.map(|(&bytes, &len)| Symbol { bytes, len })
    }

    /// The symbols that the table chose, ascending.
    fn chosen(&self) -> impl Iterator<Item = Symbol> {
        self.symbols().skip(first_free_code(self.width))
    }

    /// How wide its codes are.
    pub(crate) fn width(&self) -> Width {
        self.width
    }

    /// How many symbols it chose.
    pub(crate) fn symbol_count(&self) -> usize {
        self.code_count - first_free_code(self.width)
    }

    /// What encodes with this table.
    pub(crate) fn encoder(&self) -> StringEncoder {
        StringEncoder::new(Matcher::new(self.width, &self.symbols().collect::<Vec<_>>()))
    }

    /// Bytes of the packed codes of `values`.
    fn codes_bytes(&self, values: BytesView<'_>) -> usize {
        let (mut codes, mut counts) = (Vec::new(), Vec::new());
        self.encoder().encode(values, &mut codes, &mut counts);
        packed_bytes(self.width, codes.len())
    }
}

/// What 255 symbols are trained on, and both widths compared on; more changes them little.
const NARROW_SAMPLE_BYTES: usize = 64 << 10;

/// Of that, one value in so many makes a rough 8-bit table. Where text and table take so many times what they take with
/// 12 bits, the real one is not made: on the corpus of FSST and on TPC-H a rough one took at most 1.12 times what the
/// real one did. An even step would see every other number of a series: with four it was 2.1 times on suppliers' names.
const ROUGH_STEP: usize = 3;
const ROUGH_LOSS_MAX: f64 = 1.15;

/// Below this much text a 12-bit table gained at most 1 % on the corpus of FSST; not trying saves most of the training.
const WIDE_TEXT_BYTES_MIN: usize = 64 << 10;

impl std::fmt::Debug for SymbolTable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SymbolTable({} bits, {} symbols)", self.width.bits(), self.symbol_count())
    }
}

#[cfg(test)]
mod tests;
