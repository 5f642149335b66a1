//! Longest match: which symbol of a table covers the most bytes of what comes next.
//!
//! Two lookups decide. Symbols of three bytes and more stand in one hash table under all their bytes; a second, smaller
//! table says by the next three bytes which lengths are worth trying there, longest first. Symbols of one and two bytes
//! stand in a table indexed by the next two bytes. So a match costs a handful of probes however many symbols share a
//! prefix, which a bucket per prefix (FSST, section 5.2) would not give for 4096 symbols of 16 bytes.

use super::symbol::Symbol;
use super::{ESCAPE, SYMBOL_BYTES, Width};

/// Zero bytes that must follow the text, so that the last position can be read like any other.
pub(super) const PADDING: usize = SYMBOL_BYTES;

const PREFIX_BITS: u32 = 14;
/// At most a quarter full with 4096 symbols, so a probe for an absent symbol ends soon.
const SLOT_BITS: u32 = 14;
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// An entry of `pairs`: the code in the low 12 bits, its symbol's length (0 where only an escape fits) above.
const PAIR_CODE_BITS: u32 = 12;

/// Finds longest matches in one table's symbols. Built once per table; shared freely, it never changes.
pub(super) struct Matcher {
    width: Width,
    /// By the next two bytes (first byte lowest): the longest symbol of at most two.
    pairs: Vec<u16>,
    /// By a hash of the next three bytes: bit `n - 1` is set where some symbol of `n` bytes, 3 to 16, begins so.
    lengths: Vec<u16>,
    /// Open addressing over symbols of three bytes and more: code + 1, or 0.
    slots: Vec<u16>,
    /// By code.
    words: Vec<u128>,
    sizes: Vec<u8>,
}

impl Matcher {
    /// A matcher for `symbols`, where the position is the code. Codes without a meaning hold [`Symbol::NONE`].
    pub(super) fn new(width: Width, symbols: &[Symbol]) -> Matcher {
        let mut matcher = Matcher {
            width,
            pairs: vec![0; 1 << 16],
            lengths: vec![0; 1 << PREFIX_BITS],
            slots: vec![0; 1 << SLOT_BITS],
            words: symbols.iter().map(Symbol::word).collect(),
            sizes: symbols.iter().map(|symbol| symbol.len).collect(),
        };
        let entry = |code: usize, len: u16| code as u16 | len << PAIR_CODE_BITS;
        for (code, symbol) in symbols.iter().enumerate().filter(|(_, symbol)| symbol.len == 1) {
            for next in 0..=255 {
                matcher.pairs[usize::from(u16::from_le_bytes([symbol.bytes[0], next]))] = entry(code, 1);
            }
        }
        for (code, symbol) in symbols.iter().enumerate() {
            match symbol.len {
                0 | 1 => {}
                2 => {
                    matcher.pairs[usize::from(u16::from_le_bytes([symbol.bytes[0], symbol.bytes[1]]))] = entry(code, 2)
                }
                len => matcher.insert_long(code, symbol.word(), u32::from(len)),
            }
        }
        matcher
    }

    /// How wide its codes are.
    pub(super) fn width(&self) -> Width {
        self.width
    }

    fn insert_long(&mut self, code: usize, word: u128, len: u32) {
        self.lengths[prefix_slot(word)] |= 1 << (len - 1);
        let mut slot = symbol_slot(word, len);
        while self.slots[slot] != 0 {
            slot = (slot + 1) % self.slots.len();
        }
        self.slots[slot] = code as u16 + 1;
    }

    /// Appends the codes of `padded` without its last [`PADDING`] bytes, which must be zero.
    pub(super) fn encode(&self, padded: &[u8], codes: &mut Vec<u16>) {
        let end = padded.len() - PADDING;
        let mut position = 0;
        while position < end {
            let mut next = [0; SYMBOL_BYTES];
            next.copy_from_slice(&padded[position..position + SYMBOL_BYTES]);
            let (code, len) = self.longest(u128::from_le_bytes(next), end - position);
            if len == 0 {
                codes.push(ESCAPE);
                codes.push(u16::from(next[0]));
                position += 1;
            } else {
                codes.push(code);
                position += len;
            }
        }
    }

    /// Code and length of the longest symbol at the start of `next`, of which `available` bytes count; length 0 where
    /// none fits.
    #[inline]
    fn longest(&self, next: u128, available: usize) -> (u16, usize) {
        let within = u32::MAX >> (32 - available.min(SYMBOL_BYTES) as u32);
        let mut lengths = u32::from(self.lengths[prefix_slot(next)]) & within;
        while lengths != 0 {
            let len = u32::BITS - lengths.leading_zeros();
            let word = next & (u128::MAX >> (128 - 8 * len));
            let mut slot = symbol_slot(word, len);
            while self.slots[slot] != 0 {
                let code = self.slots[slot] - 1;
                if self.words[usize::from(code)] == word && u32::from(self.sizes[usize::from(code)]) == len {
                    return (code, len as usize);
                }
                slot = (slot + 1) % (1 << SLOT_BITS);
            }
            lengths ^= 1 << (len - 1);
        }
        let entry = self.pairs[next as u16 as usize];
        let (code, len) = (entry & ((1 << PAIR_CODE_BITS) - 1), usize::from(entry >> PAIR_CODE_BITS));
        if len <= available { (code, len) } else { self.single(next as u8) }
    }

    /// The one-byte symbol for the last byte of a value, whose two-byte entry reaches past the end.
    #[cold]
    fn single(&self, byte: u8) -> (u16, usize) {
        match self.width {
            Width::Wide => (u16::from(byte), 1),
            Width::Narrow => {
                let found =
                    (0..self.words.len()).find(|&code| self.sizes[code] == 1 && self.words[code] == u128::from(byte));
                found.map_or((0, 0), |code| (code as u16, 1))
            }
        }
    }
}

#[inline]
fn prefix_slot(word: u128) -> usize {
    let three = (word as u64) << 40;
    (three.wrapping_mul(MULTIPLIER) >> (64 - PREFIX_BITS)) as usize
}

#[inline]
fn symbol_slot(word: u128, len: u32) -> usize {
    let (low, high) = (word as u64, (word >> 64) as u64);
    let mixed = (low ^ u64::from(len)).wrapping_mul(MULTIPLIER) ^ high.wrapping_mul(MULTIPLIER).rotate_left(29);
    ((mixed ^ mixed >> 32).wrapping_mul(MULTIPLIER) >> (64 - SLOT_BITS)) as usize
}
