//! What stands between two `%` of a LIKE pattern: texts, and numbers of characters where there are `_`.

use memchr::memmem::Finder;
use sinter_codec::at_memory;

/// One character of a pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Symbol {
    Char(char),
    AnyOne,
}

/// Symbols in a row: `__ab_c` is two characters, `ab`, one character, `c`.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    /// How many characters all symbols stand for.
    char_count: usize,
    /// How many `_` come first.
    lead: usize,
    /// The text after them.
    text: Finder<'static>,
    /// Numbers of `_`, each with the text after it.
    rest: Vec<(usize, Vec<u8>)>,
}

impl Stretch {
    pub(super) fn new(symbols: &[Symbol]) -> Stretch {
        let mut pieces = vec![(0, String::new())];
        for symbol in symbols {
            match (symbol, pieces.last_mut()) {
                (Symbol::Char(char), Some((_, text))) => text.push(*char),
                (Symbol::AnyOne, Some((count, text))) if text.is_empty() => *count += 1,
                _ => pieces.push((1, String::new())),
            }
        }
        let (lead, text) = pieces.remove(0);
        let rest = pieces.into_iter().map(|(count, text)| (count, text.into_bytes())).collect();
        Stretch { char_count: symbols.len(), lead, text: Finder::new(&text).into_owned(), rest }
    }

    /// Where it ends if it begins at `at`.
    pub(super) fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        let at = skip(text, at, self.lead)?;
        let end = text_end(text, at, self.text.needle())?;
        self.rest_end(text, end)
    }

    /// Where its leftmost occurrence from `at` on ends.
    pub(super) fn find(&self, text: &[u8], at: usize) -> Option<usize> {
        let mut at = skip(text, at, self.lead)?;
        loop {
            at += self.text.find(&text[at..])?;
            if let Some(end) = self.rest_end(text, at + self.text.needle().len()) {
                return Some(end);
            }
            at += 1;
        }
    }

    /// Where it has to begin to end with the text, if that is not before `least`.
    pub(super) fn start_at_end(&self, text: &[u8], least: usize) -> Option<usize> {
        let mut start = text.len();
        for _ in 0..self.char_count {
            start = start.checked_sub(1)?;
            while !is_char_start(text[start]) {
                start = start.checked_sub(1)?;
            }
        }
        (start >= least).then_some(start)
    }

    fn rest_end(&self, text: &[u8], at: usize) -> Option<usize> {
        self.rest.iter().try_fold(at, |at, (count, piece)| text_end(text, skip(text, at, *count)?, piece))
    }
}

fn text_end(text: &[u8], at: usize, piece: &[u8]) -> Option<usize> {
    text[at..].starts_with(at_memory(piece)).then_some(at + piece.len())
}

/// Where the characters from `at` on have been passed by `count`.
fn skip(text: &[u8], mut at: usize, count: usize) -> Option<usize> {
    for _ in 0..count {
        // A character has one byte that begins it, and up to three more.
        at += match text.get(at)? {
            0..0x80 => 1,
            0x80..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0.. => 4,
        };
    }
    (at <= text.len()).then_some(at)
}

fn is_char_start(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}
