//! Functions of texts, which count in characters.

use super::machine::reset;
use super::slot::{Input, Slot};
use crate::{Error, LogicalType, Result};
use sinter_codec::{BytesBuf, BytesView, Values, ValuesBuf};

/// A function of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextFunction {
    /// How many characters it has: `Int32`.
    Length,
    /// What is left of it without its first `skipped` characters, `taken` of them at most: `Utf8`.
    Substring {
        /// Characters at its beginning that are left out.
        skipped: u32,
        /// Characters of the result, where there are so many; `u32::MAX` for all.
        taken: u32,
    },
}

impl TextFunction {
    /// The type of the result.
    pub fn ty(self) -> LogicalType {
        match self {
            TextFunction::Length => LogicalType::Int32,
            TextFunction::Substring { .. } => LogicalType::Utf8,
        }
    }
}

/// Applies the function to all rows.
pub(super) fn text(function: TextFunction, input: Input<'_>, rows: usize, out: &mut Slot) -> Result<()> {
    out.set_strict(&[input], rows);
    reset(&mut out.values, &function.ty());
    if out.all_null() {
        out.values.push_default(rows);
        return Ok(());
    }
    let Values::Bytes(texts) = input.values else {
        return Err(Error::Unsupported("a text function of something other than text".into()));
    };
    let text = |row: usize| texts.get(if input.constant { 0 } else { row });
    match (function, &mut out.values) {
        (TextFunction::Length, ValuesBuf::I32(out)) => {
            lengths(texts, out);
            out.resize(rows, out.first().copied().unwrap_or(0));
        }
        (TextFunction::Substring { skipped, taken }, ValuesBuf::Bytes(out)) => {
            let (skipped, taken) = (skipped as usize, taken as usize);
            match is_ascii(texts) {
                true => substrings(text, rows, out, |text| {
                    let first = skipped.min(text.len());
                    first..text.len().min(first.saturating_add(taken))
                }),
                false => substrings(text, rows, out, |text| {
                    let first = after(text, skipped);
                    first..first + after(&text[first..], taken)
                }),
            }
        }
        _ => return Err(Error::Unsupported(format!("{function:?} into values of another type"))),
    }
    Ok(())
}

/// Appends how many characters each text has.
pub(crate) fn lengths(texts: BytesView<'_>, out: &mut Vec<i32>) {
    match is_ascii(texts) {
        true => {
            let ends = &texts.offsets[1..];
            out.extend(ends.iter().zip(texts.offsets).map(|(end, start)| (end - start) as i32));
        }
        false => out.extend(texts.iter().map(|text| characters(text) as i32)),
    }
}

/// Whether each byte of all texts is a character.
fn is_ascii(texts: BytesView<'_>) -> bool {
    texts.data[texts.offsets[0] as usize..][..texts.data_bytes()].is_ascii()
}

fn substrings<'a>(
    text: impl Fn(usize) -> &'a [u8],
    rows: usize,
    out: &mut BytesBuf,
    range: impl Fn(&[u8]) -> std::ops::Range<usize>,
) {
    out.offsets.reserve(rows);
    for row in 0..rows {
        let text = text(row);
        out.push(&text[range(text)]);
    }
}

/// Whether a character begins with this byte.
fn begins(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

fn characters(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| begins(byte)).count()
}

/// How many bytes the first `count` characters have.
fn after(text: &[u8], count: usize) -> usize {
    let mut beginnings = text.iter().enumerate().filter(|(_, byte)| begins(**byte));
    beginnings.nth(count).map_or(text.len(), |(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_wherever_they_are_cut() {
        let texts = ["", "a", "abc", "é", "aé", "日本語", "a日b本c語d", "🎈🎈", "e\u{301}"];
        for text in texts {
            assert_eq!(characters(text.as_bytes()), text.chars().count());
            for count in 0..12 {
                let bytes: usize = text.chars().take(count).map(char::len_utf8).sum();
                assert_eq!(after(text.as_bytes(), count), bytes, "{count} of {text}");
            }
        }
    }
}
