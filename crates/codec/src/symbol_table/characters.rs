//! How many characters strings have, by their codes alone.
//!
//! A character of UTF-8 is as many bytes as it takes, of which only the first is none of 0x80 to 0xBF. So strings have as many
//! as their symbols have such first bytes, wherever symbols are cut. As in decoding, codes are one stream: of each it is noted
//! how many characters come before it, and what a string has is looked up at its ends.

use super::codes::code_at;
use super::decode::damaged;
use super::{ESCAPE, SYMBOL_BYTES, SymbolTable, Width};
use crate::Result;

/// Of a code without a symbol.
const NO_SYMBOL: u8 = u8::MAX;

/// Codes that are noted at a time.
const BATCH_CODES: usize = 512;

/// 12-bit codes that are read at once: 48 bits, from bit 0 or 4 of a word on.
const WIDE_STEP: usize = 4;
const WIDE_STEP_BYTES: usize = WIDE_STEP * 3 / 2;

/// Before the byte that an escape announced: no string ends there.
const WITHIN_ESCAPE: u64 = u64::MAX;

/// For each code, how many characters begin in its symbol.
#[derive(Debug)]
pub(crate) struct CharacterCounts(Box<[u8]>);

/// What a batch leaves to the next one.
#[derive(Default)]
struct State {
    /// Characters so far.
    sum: u64,
    /// The greatest count of all codes.
    greatest: u8,
    /// The last code was an escape, so the next one is a byte.
    within_escape: bool,
}

/// Whether a character begins with this byte.
fn begins(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

impl SymbolTable {
    /// What [`SymbolTable::characters`] looks at.
    pub(crate) fn character_counts(&self) -> CharacterCounts {
        let count = |(text, &size): (&[u8; SYMBOL_BYTES], &u8)| match size {
            0 => NO_SYMBOL,
            size => text[..usize::from(size)].iter().filter(|byte| begins(**byte)).count() as u8,
        };
        CharacterCounts(self.texts.iter().zip(&self.sizes).map(count).collect())
    }

    /// Appends how many characters strings have whose codes begin with code `first_code` of `packed`, which has all of them:
    /// one string for each entry of `code_counts`.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) where a code has no symbol, a string ends in an escape, or has 2³¹ characters.
    /// What `out` holds then is unspecified.
    pub(crate) fn characters(
        &self,
        counts: &CharacterCounts,
        packed: &[u8],
        first_code: usize,
        code_counts: &[u32],
        out: &mut Vec<i32>,
    ) -> Result<()> {
        let end_code = first_code + code_counts.iter().map(|&count| count as usize).sum::<usize>();
        let mut sums = [0; BATCH_CODES + 1];
        let (mut state, mut is_sound) = (State::default(), true);
        let (mut string, mut string_end, mut before) = (0, first_code, 0);
        for batch in (first_code..end_code).step_by(BATCH_CODES) {
            let batch_end = end_code.min(batch + BATCH_CODES);
            let sums = &mut sums[..=batch_end - batch];
            match self.width {
                Width::Wide => counts.wide(packed, batch, sums, &mut state),
                Width::Narrow => counts.narrow(&packed[batch..batch_end], sums, &mut state),
            }
            while let Some(&codes) = code_counts.get(string)
                && string_end + codes as usize <= batch_end
            {
                string_end += codes as usize;
                let sum = sums[string_end - batch];
                let characters = sum.wrapping_sub(before);
                is_sound &= characters <= i32::MAX as u64;
                out.push(characters as i32);
                (before, string) = (sum, string + 1);
            }
        }
        if !is_sound || state.greatest == NO_SYMBOL {
            let what = "a code that has no symbol, an escape without its byte, or a string of 2³¹ characters";
            return Err(damaged(what.into()));
        }
        // Without codes there was no batch; then these are all of them, and empty.
        out.resize(out.len() + code_counts.len() - string, 0);
        Ok(())
    }
}

impl CharacterCounts {
    /// Notes of 12-bit codes, from one on, how many characters come before each, and at last behind all.
    fn wide(&self, packed: &[u8], first_code: usize, sums: &mut [u64], state: &mut State) {
        const CODES: usize = 1 << 12;
        let counts = self.0.first_chunk::<CODES>().expect("there is a count for all codes of this width");
        let (mut sum, mut greatest, mut done) = (state.sum, state.greatest, 0);
        let packed_codes = &packed[first_code / 2 * 3 + first_code % 2..];
        let shift = first_code % 2 * 4;
        let (last, sums) = sums.split_last_mut().expect("there is one behind all codes");
        let mut note = |code: usize, place: &mut u64| {
            let count = counts[code % CODES];
            greatest = greatest.max(count);
            *place = sum;
            sum += u64::from(count);
        };
        for (step, places) in sums.as_chunks_mut::<WIDE_STEP>().0.iter_mut().enumerate() {
            // The last codes of all have no whole word.
            let Some(word) = packed_codes[step * WIDE_STEP_BYTES..].first_chunk::<8>() else { break };
            let word = u64::from_le_bytes(*word) >> shift;
            places.iter_mut().enumerate().for_each(|(index, place)| note((word >> (12 * index)) as usize, place));
            done = (step + 1) * WIDE_STEP;
        }
        for (place, code) in sums[done..].iter_mut().zip(first_code + done..) {
            note(code_at(Width::Wide, packed, code).into(), place);
        }
        *last = sum;
        (state.sum, state.greatest) = (sum, greatest);
    }

    /// The same of 8-bit codes.
    fn narrow(&self, codes: &[u8], sums: &mut [u64], state: &mut State) {
        let (last, sums) = sums.split_last_mut().expect("there is one behind all codes");
        for (&code, place) in codes.iter().zip(sums) {
            let is_escape = !state.within_escape && u16::from(code) == ESCAPE;
            *place = if state.within_escape { WITHIN_ESCAPE } else { state.sum };
            let count = match state.within_escape {
                true => begins(code).into(),
                false if is_escape => 0,
                false => self.0[usize::from(code)],
            };
            state.within_escape = is_escape;
            state.greatest = state.greatest.max(count);
            state.sum += u64::from(count);
        }
        *last = if state.within_escape { WITHIN_ESCAPE } else { state.sum };
    }
}
