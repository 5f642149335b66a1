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
        let chosen = self.symbols[first_free_code(self.width)..].iter().map(|symbol| {
            let shared = shared_prefix(&previous, symbol);
            previous = *symbol;
            1 + usize::from(symbol.len) - shared
        });
        HEADER_BYTES + chosen.sum::<usize>()
    }

    /// Appends the table.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.width.bits() as u8);
        out.extend_from_slice(&(self.symbol_count() as u16).to_le_bytes());
        let mut previous = Symbol::NONE;
        for symbol in &self.symbols[first_free_code(self.width)..] {
            let shared = shared_prefix(&previous, symbol);
            let suffix = &symbol.as_slice()[shared..];
            out.push(shared as u8 | (suffix.len() as u8 - 1) << 4);
            out.extend_from_slice(suffix);
            previous = *symbol;
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
        let mut symbols: Vec<Symbol> = (0..=255).map(Symbol::of_byte).take(first_free_code(width)).collect();
        let mut previous = Symbol::NONE;
        for index in 0..symbol_count {
            let symbol = read_symbol(&previous, &mut rest, index)?;
            if width == Width::Wide && symbol.len == 1 {
                return Err(damaged(format!("symbol {index} is a single byte, which 12-bit codes imply")));
            }
            if symbol.as_slice() <= previous.as_slice() {
                return Err(damaged(format!("symbol {index} does not order after the one before it")));
            }
            symbols.push(symbol);
            previous = symbol;
        }
        Ok((SymbolTable::from_symbols(width, symbols), bytes.len() - rest.len()))
    }
}

fn read_symbol(previous: &Symbol, rest: &mut &[u8], index: usize) -> Result<Symbol> {
    let truncated = || damaged(format!("the bytes end within symbol {index}"));
    let (&head, after) = rest.split_first().ok_or_else(truncated)?;
    let shared = usize::from(head & 15);
    let len = shared + usize::from(head >> 4) + 1;
    if shared > usize::from(previous.len) {
        return Err(damaged(format!("symbol {index} shares {shared} bytes with one of {}", previous.len)));
    }
    if len > SYMBOL_BYTES {
        return Err(damaged(format!("symbol {index} has {len} bytes, more than {SYMBOL_BYTES}")));
    }
    let (suffix, after) = after.split_at_checked(len - shared).ok_or_else(truncated)?;
    let mut symbol = Symbol::NONE;
    symbol.bytes[..shared].copy_from_slice(&previous.bytes[..shared]);
    symbol.bytes[shared..len].copy_from_slice(suffix);
    symbol.len = len as u8;
    *rest = after;
    Ok(symbol)
}

/// Bytes that `symbol` and the one before have in common at the start; at most 15, so that a suffix remains.
fn shared_prefix(previous: &Symbol, symbol: &Symbol) -> usize {
    let pairs = previous.as_slice().iter().zip(symbol.as_slice());
    pairs.take_while(|(a, b)| a == b).count().min(usize::from(symbol.len) - 1)
}

fn damaged(what: String) -> Error {
    Error::Damaged { place: "fsst, symbol table".into(), what }
}
