//! How many characters strings have, by their codes alone.
//!
//! A character of UTF-8 is as many bytes as it takes, of which only the first is none of 0x80 to 0xBF. So strings have as many
//! as their symbols have such first bytes, wherever symbols are cut.

use super::codes::code_at;
use super::decode::damaged;
use super::{ESCAPE, SymbolTable, Width};
use crate::Result;

/// Of a code without a symbol.
const NO_SYMBOL: u8 = u8::MAX;

/// For each code, how many characters begin in its symbol.
#[derive(Debug)]
pub(crate) struct CharacterCounts(Box<[u8]>);

/// Whether a character begins with this byte.
fn begins(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

impl SymbolTable {
    /// What [`SymbolTable::characters`] looks at.
    pub(crate) fn character_counts(&self) -> CharacterCounts {
        let count = |(text, &size): (&[u8; super::SYMBOL_BYTES], &u8)| match size {
            0 => NO_SYMBOL,
            size => text[..usize::from(size)].iter().filter(|byte| begins(**byte)).count() as u8,
        };
        CharacterCounts(self.texts.iter().zip(&self.sizes).map(count).collect())
    }

    /// How many characters the string has whose `code_count` codes begin with code `first_code` of `packed`, which has them.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) where a code has no symbol, the string ends in an escape, or it has 2³¹ characters.
    pub(crate) fn characters(
        &self,
        counts: &CharacterCounts,
        packed: &[u8],
        first_code: usize,
        code_count: usize,
    ) -> Result<i32> {
        let counts = &counts.0;
        let codes = first_code..first_code + code_count;
        let (mut characters, mut greatest, mut within_escape) = (0u64, 0, false);
        match self.width {
            Width::Wide => codes.for_each(|code| {
                let count = counts[usize::from(code_at(Width::Wide, packed, code))];
                greatest = greatest.max(count);
                characters += u64::from(count);
            }),
            Width::Narrow => packed[codes].iter().for_each(|&code| {
                let is_escape = !within_escape && u16::from(code) == ESCAPE;
                let count = match within_escape {
                    true => u8::from(begins(code)),
                    false if is_escape => 0,
                    false => counts[usize::from(code)],
                };
                within_escape = is_escape;
                greatest = greatest.max(count);
                characters += u64::from(count);
            }),
        }
        if greatest == NO_SYMBOL || within_escape {
            return Err(damaged("a code that has no symbol, or an escape without its byte".into()));
        }
        i32::try_from(characters).map_err(|_| damaged(format!("a string of {characters} characters")))
    }
}
