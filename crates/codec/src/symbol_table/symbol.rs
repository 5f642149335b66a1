//! One symbol: up to 16 bytes that a single code stands for.

use super::SYMBOL_BYTES;

/// A run of 1 to [`SYMBOL_BYTES`] bytes, padded with zeros so that it can be copied and compared as one word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Symbol {
    /// The bytes, zero from `len` on.
    pub(super) bytes: [u8; SYMBOL_BYTES],
    /// How many of them count; 0 only for the empty symbol that stands at codes without a meaning.
    pub(super) len: u8,
}

impl Symbol {
    /// The symbol of a code that no encoder writes.
    pub(super) const NONE: Symbol = Symbol { bytes: [0; SYMBOL_BYTES], len: 0 };

    /// The symbol of one byte.
    pub(super) fn of_byte(byte: u8) -> Symbol {
        let mut symbol = Symbol::NONE;
        symbol.bytes[0] = byte;
        symbol.len = 1;
        symbol
    }

    /// The bytes that count.
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// `self` followed by `next`, or `None` where that is longer than a symbol can be.
    pub(super) fn concat(&self, next: &Symbol) -> Option<Symbol> {
        let len = usize::from(self.len) + usize::from(next.len);
        if len > SYMBOL_BYTES {
            return None;
        }
        let mut joined = *self;
        joined.bytes[usize::from(self.len)..len].copy_from_slice(next.as_slice());
        joined.len = len as u8;
        Some(joined)
    }

    /// The bytes as one number, first byte lowest.
    pub(super) fn word(&self) -> u128 {
        u128::from_le_bytes(self.bytes)
    }
}
