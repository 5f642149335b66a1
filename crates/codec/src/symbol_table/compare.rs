//! Tests of encoded strings: equality by codes, prefixes by decoding no further than they reach.

use super::codes::code_capacity;
use super::{ESCAPE, StringEncoder, SymbolTable, Width, code_at};
use std::cmp::Ordering;

impl StringEncoder {
    /// The codes of `value`, two bytes each, low byte first: what [`SymbolTable::is_equal`] compares with.
    pub(crate) fn needle(&mut self, value: &[u8]) -> Vec<u8> {
        self.encode_one(value).into_iter().flat_map(u16::to_le_bytes).collect()
    }
}

/// Brings needles into the order in which [`SymbolTable::is_one_of`] searches them: the shortest first.
pub(crate) fn sort_needles(needles: &mut [Vec<u8>]) {
    needles.sort_unstable_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
}

impl SymbolTable {
    /// Whether the string of `code_count` codes from `first_code` on is the one of `needle`: its codes are the same. A
    /// string has one encoding only, because the longest symbol is always taken.
    #[inline]
    pub(crate) fn is_equal(&self, packed: &[u8], first_code: usize, code_count: usize, needle: &[u8]) -> bool {
        let codes = needle.as_chunks::<2>().0;
        code_count == codes.len()
            && first_code + code_count <= code_capacity(self.width, packed.len())
            && codes
                .iter()
                .enumerate()
                .all(|(index, &code)| code_at(self.width, packed, first_code + index) == u16::from_le_bytes(code))
    }

    /// Whether the string of `code_count` codes from `first_code` on is that of one of these needles, which
    /// [`sort_needles`] ordered.
    pub(crate) fn is_one_of(&self, packed: &[u8], first_code: usize, code_count: usize, needles: &[Vec<u8>]) -> bool {
        let order = |needle: &Vec<u8>| {
            let codes = needle.as_chunks::<2>().0;
            let differing = || {
                let found = (first_code..).map(|index| code_at(self.width, packed, index).to_le_bytes());
                codes.iter().zip(found).map(|(code, found)| code.cmp(&found)).find(|order| order.is_ne())
            };
            codes.len().cmp(&code_count).then_with(|| differing().unwrap_or(Ordering::Equal))
        };
        first_code + code_count <= code_capacity(self.width, packed.len()) && needles.binary_search_by(order).is_ok()
    }

    /// Whether the string of `code_count` codes from `first_code` on begins with `prefix`. Codes without a meaning count
    /// as the end of the string.
    pub(crate) fn begins_with(&self, packed: &[u8], first_code: usize, code_count: usize, prefix: &[u8]) -> bool {
        let end_code = first_code.saturating_add(code_count).min(code_capacity(self.width, packed.len()));
        let mut codes = (first_code..end_code).map(|index| code_at(self.width, packed, index));
        let mut wanted = prefix;
        while let Some((&next, _)) = wanted.split_first() {
            let Some(code) = codes.next() else { return false };
            if self.width == Width::Narrow && code == ESCAPE {
                if codes.next() != Some(u16::from(next)) {
                    return false;
                }
                wanted = &wanted[1..];
                continue;
            }
            let symbol = &self.texts[usize::from(code)][..usize::from(self.sizes[usize::from(code)])];
            let compared = symbol.len().min(wanted.len());
            if compared == 0 || symbol[..compared] != wanted[..compared] {
                return false;
            }
            wanted = &wanted[compared..];
        }
        true
    }
}
