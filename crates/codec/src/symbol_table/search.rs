//! Searching: whether an encoded string holds a needle, without decoding it.
//!
//! The needle's automaton (Knuth, Morris and Pratt, SIAM Journal on Computing, 1977, as a table) knows how many bytes
//! of the needle the text so far ends with. It reads a symbol at once: what is matched after each symbol, from each
//! number of bytes on, is worked out beforehand.

use super::codes::{code_at, code_capacity};
use super::{ESCAPE, SymbolTable, Width};

/// Longer needles are searched in decoded strings: the table for these takes 128 KB with 12-bit codes.
const NEEDLE_BYTES_MAX: usize = 32;

/// Values of a byte.
const BYTES: usize = 256;

/// Finds one needle in the strings of one table.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    width: Width,
    /// Bytes of the needle: the number that is matched where it was found.
    needle_bytes: u8,
    /// By the bytes matched and the code: the bytes matched after its symbol.
    by_code: Vec<u8>,
    /// The same for bytes behind an escape.
    by_byte: Vec<u8>,
}

impl SymbolTable {
    /// What finds `needle`, which is not empty; `None` where it is too long.
    pub(crate) fn search(&self, needle: &[u8]) -> Option<Search> {
        if needle.len() > NEEDLE_BYTES_MAX {
            return None;
        }
        let by_byte = after_bytes(needle);
        let found = needle.len() as u8;
        let mut by_code = Vec::with_capacity(needle.len() << self.width.bits());
        for matched in 0..found {
            by_code.extend(self.texts.iter().zip(&self.sizes).map(|(text, &size)| {
                text[..usize::from(size)].iter().fold(matched, |matched, &byte| match matched == found {
                    true => found,
                    false => by_byte[usize::from(matched) * BYTES + usize::from(byte)],
                })
            }));
        }
        Some(Search { width: self.width, needle_bytes: found, by_code, by_byte })
    }
}

/// By the bytes of `needle` that are matched and the next byte: the bytes that are matched then.
fn after_bytes(needle: &[u8]) -> Vec<u8> {
    let mut after = vec![0; needle.len() * BYTES];
    // What would be matched if the text had begun one byte later: where a byte does not go on, that is where to look.
    let mut shorter = 0;
    for (matched, &byte) in needle.iter().enumerate() {
        after.copy_within(shorter * BYTES..(shorter + 1) * BYTES, matched * BYTES);
        let next_shorter = if matched == 0 { 0 } else { usize::from(after[shorter * BYTES + usize::from(byte)]) };
        after[matched * BYTES + usize::from(byte)] = matched as u8 + 1;
        shorter = next_shorter;
    }
    after
}

impl Search {
    /// Whether the string of `code_count` codes from `first_code` on holds the needle. Codes without a meaning are
    /// passed over, those that are not there end the string.
    pub(crate) fn is_in(&self, packed: &[u8], first_code: usize, code_count: usize) -> bool {
        let end_code = first_code.saturating_add(code_count).min(code_capacity(self.width, packed.len()));
        let (mut matched, mut is_escaped) = (0, false);
        for index in first_code..end_code {
            let code = usize::from(code_at(self.width, packed, index));
            matched = if is_escaped {
                is_escaped = false;
                self.by_byte[usize::from(matched) * BYTES + code]
            } else if self.width == Width::Narrow && code == usize::from(ESCAPE) {
                is_escaped = true;
                continue;
            } else {
                self.by_code[(usize::from(matched) << self.width.bits()) + code]
            };
            if matched == self.needle_bytes {
                return true;
            }
        }
        false
    }
}
