//! Decoding: 16 bytes are copied per code, whatever the symbol's length; the next copy overwrites what was too much.

use super::codes::code_capacity;
use super::{ESCAPE, SYMBOL_BYTES, SymbolTable, Width};
use crate::{BytesBuf, Error, Result};

/// Codes between two checks that the output has room: bounds how far memory may run ahead of what is really decoded.
const CODES_PER_CHECK: usize = 64;

/// 12-bit codes that one read of 64 bits surely holds: 60 bits from bit 0 or 4 on.
const CODES_PER_WORD: usize = 5;

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
        let mut text = Text { position: out.data.len(), data: &mut out.data };
        let mut next_code = first_code;
        let mut sound = true;
        for &count in code_counts {
            let end_code = next_code + count as usize;
            sound &= match self.width {
                Width::Narrow => self.decode_narrow(&packed[next_code..end_code], &mut text),
                Width::Wide => self.decode_wide(packed, next_code, end_code, &mut text),
            };
            next_code = end_code;
            let Ok(end) = u32::try_from(text.position) else {
                return Err(damaged("the strings of a range pass 4 GiB".into()));
            };
            out.offsets.push(end);
        }
        let end = text.position;
        out.data.truncate(end);
        if !sound {
            return Err(damaged("a code that has no symbol, or an escape without its byte".into()));
        }
        Ok(next_code)
    }

    /// Decodes one string; true when all codes had symbols and all escapes their bytes.
    #[inline]
    fn decode_narrow(&self, codes: &[u8], text: &mut Text<'_>) -> bool {
        let mut sound = true;
        let mut next_code = 0;
        while next_code < codes.len() {
            let stop = codes.len().min(next_code + CODES_PER_CHECK);
            let room = text.room(stop - next_code);
            let mut used = 0;
            while next_code < stop {
                let code = codes[next_code];
                next_code += 1;
                if u16::from(code) != ESCAPE {
                    let size = self.sizes[usize::from(code)];
                    sound &= size != 0;
                    room[used..used + SYMBOL_BYTES].copy_from_slice(&self.texts[usize::from(code)]);
                    used += usize::from(size);
                } else if let Some(&byte) = codes.get(next_code) {
                    room[used] = byte;
                    used += 1;
                    next_code += 1;
                } else {
                    sound = false;
                }
            }
            text.position += used;
        }
        sound
    }

    /// Decodes one string; true when all codes had symbols.
    #[inline]
    fn decode_wide(&self, packed: &[u8], first_code: usize, end_code: usize, text: &mut Text<'_>) -> bool {
        let mut sound = true;
        let mut next_code = first_code;
        while next_code < end_code {
            let stop = end_code.min(next_code + CODES_PER_CHECK);
            let room = text.room(stop - next_code);
            let mut used = 0;
            while next_code < stop {
                let mut word = word_at(packed, next_code);
                for _ in 0..CODES_PER_WORD.min(stop - next_code) {
                    let code = word as usize & 0xFFF;
                    word >>= 12;
                    let size = self.sizes[code];
                    sound &= size != 0;
                    room[used..used + SYMBOL_BYTES].copy_from_slice(&self.texts[code]);
                    used += usize::from(size);
                }
                next_code += CODES_PER_WORD.min(stop - next_code);
            }
            text.position += used;
        }
        sound
    }
}

/// At least [`CODES_PER_WORD`] 12-bit codes from `code` on, or what there is of them, the first lowest.
#[inline]
fn word_at(packed: &[u8], code: usize) -> u64 {
    let byte = code / 2 * 3 + code % 2;
    let mut bytes = [0; 8];
    match packed.get(byte..byte + 8) {
        Some(eight) => bytes.copy_from_slice(eight),
        None => {
            let last = &packed[byte..];
            bytes[..last.len()].copy_from_slice(last);
        }
    }
    u64::from_le_bytes(bytes) >> (code % 2 * 4)
}

/// Output that is written past its end and cut once, when all is there.
struct Text<'a> {
    data: &'a mut Vec<u8>,
    position: usize,
}

impl Text<'_> {
    /// Zeroed room for `code_count` symbols from the position on. Grows by half, so that it is rarely asked for more.
    #[inline]
    fn room(&mut self, code_count: usize) -> &mut [u8] {
        let need = code_count * SYMBOL_BYTES;
        if self.data.len() - self.position < need {
            self.data.resize(self.position + need + self.position / 2, 0);
        }
        &mut self.data[self.position..]
    }
}

fn damaged(what: String) -> Error {
    Error::Damaged { place: "fsst".into(), what }
}
