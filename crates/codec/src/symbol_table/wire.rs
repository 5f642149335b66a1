//! The table in bytes (docs/format/codecs/fsst.md): symbols in order, each without the prefix it shares with the last.

use super::symbol::Symbol;
use super::{NARROW_SYMBOLS, SYMBOL_BYTES, SymbolTable, WIDE_SYMBOLS, Width, first_free_code};
use crate::{Error, Result};

/// Code width in bits, then the number of symbols.
const HEADER_BYTES: usize = 3;

impl SymbolTable {
    /// Bytes that [`SymbolTable::write`] appends.
    pub(crate) fn serialized_bytes(&self) -> usize {
        let mut previous = Symbol::NONE;
        let chosen = self.chosen().map(|symbol| {
            let shared = shared_prefix(&previous, &symbol);
            previous = symbol;
            1 + usize::from(symbol.len) - shared
        });
        HEADER_BYTES + chosen.sum::<usize>()
    }

    /// Appends the table.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.width.bits() as u8);
        out.extend_from_slice(&(self.symbol_count() as u16).to_le_bytes());
        let mut previous = Symbol::NONE;
        for symbol in self.chosen() {
            let shared = shared_prefix(&previous, &symbol);
            let suffix = &symbol.as_slice()[shared..];
            out.push(shared as u8 | (suffix.len() as u8 - 1) << 4);
            out.extend_from_slice(suffix);
            previous = symbol;
        }
    }

    /// The table at the start of `bytes`, and how many bytes it takes.
    ///
    /// # Errors
    /// [`Error::Damaged`] for anything that [`SymbolTable::write`] would not write.
    pub(crate) fn read(bytes: &[u8]) -> Result<(SymbolTable, usize)> {
        let Some((&[bits, count_low, count_high], mut rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(damaged(format!("{} bytes where the header has {HEADER_BYTES}", bytes.len())));
        };
        let (width, symbol_limit) = match bits {
            8 => (Width::Narrow, NARROW_SYMBOLS),
            12 => (Width::Wide, WIDE_SYMBOLS - first_free_code(Width::Wide)),
            _ => return Err(damaged(format!("codes of {bits} bits, not 8 or 12"))),
        };
        let symbol_count = usize::from(u16::from_le_bytes([count_low, count_high]));
        if symbol_count > symbol_limit {
            return Err(damaged(format!("{symbol_count} symbols where {bits}-bit codes have {symbol_limit}")));
        }
        let mut table = SymbolTable::empty(width);
        let mut previous = Symbol::NONE;
        for index in 0..symbol_count {
            previous = read_symbol(&previous, &mut rest, index)?;
            if width == Width::Wide && previous.len == 1 {
                return Err(damaged(format!("symbol {index} is a single byte, which 12-bit codes imply")));
            }
            table.push(&previous);
        }
        Ok((table, bytes.len() - rest.len()))
    }
}

/// Reads the symbol after `previous`. As a symbol is written without all that it shares with the one before, its first
/// byte of its own tells that it orders after.
#[inline]
fn read_symbol(previous: &Symbol, rest: &mut &[u8], index: usize) -> Result<Symbol> {
    let Some((&head, after)) = rest.split_first() else { return Err(truncated(index)) };
    let shared = usize::from(head & 15);
    let len = shared + usize::from(head >> 4) + 1;
    if shared > usize::from(previous.len) {
        return Err(damaged(format!("symbol {index} shares {shared} bytes with one of {}", previous.len)));
    }
    if len > SYMBOL_BYTES {
        return Err(damaged(format!("symbol {index} has {len} bytes, more than {SYMBOL_BYTES}")));
    }
    let Some((suffix, after)) = after.split_at_checked(len - shared) else { return Err(truncated(index)) };
    if shared < usize::from(previous.len) && suffix[0] <= previous.bytes[shared] {
        return Err(damaged(format!("symbol {index} does not order after the one before it")));
    }
    let suffix_word = match rest[1..].first_chunk::<SYMBOL_BYTES>() {
        Some(bytes) => u128::from_le_bytes(*bytes) & low_bytes(len - shared),
        None => suffix.iter().rev().fold(0, |word, &byte| word << 8 | u128::from(byte)),
    };
    // `shared` is at most 15, as a byte follows it.
    let word = previous.word() & !(u128::MAX << (8 * shared)) | suffix_word << (8 * shared);
    *rest = after;
    Ok(Symbol { bytes: word.to_le_bytes(), len: len as u8 })
}

/// The lowest 1 to 16 bytes of a word.
fn low_bytes(count: usize) -> u128 {
    u128::MAX >> (8 * (SYMBOL_BYTES - count))
}

/// Bytes that `symbol` and the one before have in common at the start; at most 15, so that a suffix remains.
fn shared_prefix(previous: &Symbol, symbol: &Symbol) -> usize {
    let pairs = previous.as_slice().iter().zip(symbol.as_slice());
    pairs.take_while(|(a, b)| a == b).count().min(usize::from(symbol.len) - 1)
}

#[cold]
fn damaged(what: String) -> Error {
    Error::Damaged { place: "fsst, symbol table".into(), what }
}

#[cold]
fn truncated(index: usize) -> Error {
    damaged(format!("the bytes end within symbol {index}"))
}
