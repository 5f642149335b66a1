//! Decoding: 16 bytes are copied per code, whatever the symbol's length; the next copy overwrites what was too much.
//!
//! Codes are decoded as one stream, several at a time, as if there were no strings: a loop that ends with each string
//! is mispredicted once for each. What is noted for each code is where its symbol went; so where a string ends is
//! looked up afterwards. The only thing that one code waits for is the sum of the lengths before it.

use super::codes::{code_at, code_capacity};
use super::{ESCAPE, SYMBOL_BYTES, SymbolTable, Width};
use crate::{BytesBuf, Error, Result};

/// Codes between two checks that the output has room: bounds how far memory may run ahead of what is really decoded.
const BATCH_CODES: usize = 512;

/// 12-bit codes that are decoded at once: 48 bits, from bit 0 or 4 of a word on.
const WIDE_STEP: usize = 4;
const WIDE_STEP_BYTES: usize = WIDE_STEP * 3 / 2;

/// 8-bit codes that are decoded at once.
const NARROW_STEP: usize = 8;

/// Where the symbol of each code of a batch went, counted from where that of the first did, and the end of the last.
type Places = [u16; BATCH_CODES + 1];

/// The place of a byte that an escape announced: no string ends before it.
const WITHIN_ESCAPE: u16 = u16::MAX;

const _: () = assert!(BATCH_CODES * SYMBOL_BYTES < WITHIN_ESCAPE as usize, "places of a batch are told from this one");

impl SymbolTable {
    /// Appends strings to `out` whose codes begin with code `first_code` of `packed`, one string for each entry of
    /// `code_counts`. Returns the index of the code after them.
    ///
    /// # Errors
    /// [`Error::Damaged`] where `packed` holds fewer codes, a code has no symbol, a string ends in an escape, or the
    /// strings pass 4 GiB. What `out` holds then is unspecified.
    pub(crate) fn decode(
        &self,
        packed: &[u8],
        first_code: usize,
        code_counts: &[u32],
        out: &mut BytesBuf,
    ) -> Result<usize> {
        let code_count: u64 = code_counts.iter().map(|&count| u64::from(count)).sum();
        let capacity = code_capacity(self.width, packed.len());
        if (first_code as u64).saturating_add(code_count) > capacity as u64 {
            return Err(damaged(format!("{code_count} codes from code {first_code} on, where there are {capacity}")));
        }
        let end_code = first_code + code_count as usize;
        out.offsets.reserve(code_counts.len());
        let mut text = Text { position: out.data.len(), start: out.data.len(), data: &mut out.data };
        let mut places: Places = [0; BATCH_CODES + 1];
        let mut state = State { is_sound: true, within_escape: false };
        let (mut string, mut string_start, mut next_code) = (0, first_code, first_code);
        while next_code < end_code {
            let count = BATCH_CODES.min(end_code - next_code);
            let room = text.room(count, next_code - first_code, end_code - next_code);
            let used = match self.width {
                Width::Narrow => self.narrow(&packed[next_code..next_code + count], room, &mut places, &mut state),
                Width::Wide => self.wide(packed, next_code, count, room, &mut places, &mut state),
            };
            let Ok(start) = u32::try_from(text.position + used).map(|end| end - used as u32) else {
                return Err(damaged("the strings of a range pass 4 GiB".into()));
            };
            while let Some(&codes) = code_counts.get(string)
                && string_start + codes as usize <= next_code + count
            {
                string_start += codes as usize;
                let place = places[string_start - next_code];
                state.is_sound &= place != WITHIN_ESCAPE;
                out.offsets.push(start + u32::from(place));
                string += 1;
            }
            text.position += used;
            next_code += count;
        }
        let end = text.position;
        out.data.truncate(end);
        if !state.is_sound {
            return Err(damaged("a code that has no symbol, or an escape without its byte".into()));
        }
        // Without codes there was no batch; then these are all of them, and empty.
        out.offsets.resize(out.offsets.len() + code_counts.len() - string, end as u32);
        Ok(next_code)
    }

    /// Decodes a batch of `count` 12-bit codes from `first_code` on and returns the bytes of their symbols.
    fn wide(
        &self,
        packed: &[u8],
        first_code: usize,
        count: usize,
        room: &mut [u8],
        places: &mut Places,
        state: &mut State,
    ) -> usize {
        const CODES: usize = 1 << 12;
        let texts = self.texts.first_chunk::<CODES>().expect("a table has room for all codes of its width");
        let sizes = self.sizes.first_chunk::<CODES>().expect("a table has room for all codes of its width");
        let (mut used, mut least) = (0, usize::MAX);
        let packed_codes = &packed[first_code / 2 * 3 + first_code % 2..];
        let shift = first_code % 2 * 4;
        let mut done = 0;
        let steps = places[..count].as_chunks_mut::<WIDE_STEP>().0;
        for (step, places) in steps.iter_mut().enumerate() {
            // The last codes of all have no whole word.
            let Some(word) = packed_codes[step * WIDE_STEP_BYTES..].first_chunk::<8>() else { break };
            let word = u64::from_le_bytes(*word) >> shift;
            let room = &mut room[used..][..(WIDE_STEP + 1) * SYMBOL_BYTES];
            let mut at = 0;
            for (index, place) in places.iter_mut().enumerate() {
                let code = (word >> (12 * index)) as usize % CODES;
                let size = usize::from(sizes[code]);
                least = least.min(size);
                *place = (used + at) as u16;
                room[at % (WIDE_STEP * SYMBOL_BYTES)..][..SYMBOL_BYTES].copy_from_slice(&texts[code]);
                at += size;
            }
            used += at;
            done = (step + 1) * WIDE_STEP;
        }
        for (place, code) in places[done..count].iter_mut().zip(first_code + done..) {
            let code = usize::from(code_at(Width::Wide, packed, code));
            let size = usize::from(sizes[code]);
            least = least.min(size);
            *place = used as u16;
            room[used..used + SYMBOL_BYTES].copy_from_slice(&texts[code]);
            used += size;
        }
        places[count] = used as u16;
        state.is_sound &= least > 0;
        used
    }

    /// Decodes a batch of 8-bit codes and returns the bytes of their symbols.
    fn narrow(&self, codes: &[u8], room: &mut [u8], places: &mut Places, state: &mut State) -> usize {
        const CODES: usize = 1 << 8;
        let texts = self.texts.first_chunk::<CODES>().expect("a table has room for all codes of its width");
        let sizes = self.sizes.first_chunk::<CODES>().expect("a table has room for all codes of its width");
        let (mut used, mut least) = (0, usize::MAX);
        let (steps, rest) = codes.as_chunks::<NARROW_STEP>();
        let (step_places, rest_places) = places[..codes.len()].as_chunks_mut::<NARROW_STEP>();
        for (codes, places) in steps.iter().zip(step_places) {
            if state.within_escape || has_escape(codes) {
                used += self.escaped(codes, &mut room[used..], used, places, state);
                continue;
            }
            let room = &mut room[used..][..(NARROW_STEP + 1) * SYMBOL_BYTES];
            let mut at = 0;
            for (&code, place) in codes.iter().zip(places) {
                let size = usize::from(sizes[usize::from(code)]);
                least = least.min(size);
                *place = (used + at) as u16;
                let target = &mut room[at % (NARROW_STEP * SYMBOL_BYTES)..][..SYMBOL_BYTES];
                target.copy_from_slice(&texts[usize::from(code)]);
                at += size;
            }
            used += at;
        }
        used += self.escaped(rest, &mut room[used..], used, rest_places, state);
        places[codes.len()] = if state.within_escape { WITHIN_ESCAPE } else { used as u16 };
        state.is_sound &= least > 0;
        used
    }

    /// Decodes codes that may be escapes, one by one; `before` bytes of the batch stand before `room`. Returns the
    /// bytes of their symbols.
    fn escaped(&self, codes: &[u8], room: &mut [u8], before: usize, places: &mut [u16], state: &mut State) -> usize {
        let mut used = 0;
        for (&code, place) in codes.iter().zip(places) {
            *place = (before + used) as u16;
            if state.within_escape {
                *place = WITHIN_ESCAPE;
                room[used] = code;
                used += 1;
                state.within_escape = false;
            } else if u16::from(code) == ESCAPE {
                state.within_escape = true;
            } else {
                let size = self.sizes[usize::from(code)];
                state.is_sound &= size > 0;
                room[used..used + SYMBOL_BYTES].copy_from_slice(&self.texts[usize::from(code)]);
                used += usize::from(size);
            }
        }
        used
    }
}

/// What a batch leaves to the next one.
struct State {
    /// All codes had symbols.
    is_sound: bool,
    /// The last code was an escape, so the next one is a byte.
    within_escape: bool,
}

/// Whether one of these is [`ESCAPE`]: a byte whose bits are all set is one that becomes zero when they are turned
/// round.
#[inline]
fn has_escape(codes: &[u8; NARROW_STEP]) -> bool {
    let turned = !u64::from_le_bytes(*codes);
    turned.wrapping_sub(0x0101_0101_0101_0101) & !turned & 0x8080_8080_8080_8080 != 0
}

/// Output that is written past its end and cut once, when all is there.
struct Text<'a> {
    data: &'a mut Vec<u8>,
    start: usize,
    position: usize,
}

impl Text<'_> {
    /// Zeroed room for the symbols of `count` codes, and one more, from the position on. Grows by what `left` codes
    /// will take if they are like the `done` ones.
    #[inline]
    fn room(&mut self, count: usize, done: usize, left: usize) -> &mut [u8] {
        let need = (count + 1) * SYMBOL_BYTES;
        if self.data.len() - self.position < need {
            let expected = (self.position - self.start) as f64 * left as f64 / done.max(1) as f64;
            self.data.resize(self.position + need + expected as usize, 0);
        }
        &mut self.data[self.position..]
    }
}

pub(super) fn damaged(what: String) -> Error {
    Error::Damaged { place: "fsst".into(), what }
}
