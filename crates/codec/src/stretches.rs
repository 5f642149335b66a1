//! LIKE patterns without `_`, as the texts that stand between their `%`: what plain values are searched for, one after the
//! other.

use crate::needle::Needle;
use crate::{PatternPart, at_memory};

/// What stands before, between and behind the `%` of a pattern.
#[derive(Clone, Debug)]
pub(crate) enum Stretches {
    /// There is no `%`.
    Only(Vec<u8>),
    /// The first and the last may be empty.
    Apart { first: Vec<u8>, middle: Vec<Needle>, last: Vec<u8> },
}

impl Stretches {
    /// Those of a pattern; `None` where some of it is `_`.
    pub(crate) fn of(parts: &[PatternPart]) -> Option<Stretches> {
        let text = |parts: &[PatternPart]| parts.iter().map(|part| part.byte()).collect();
        let texts = parts.split(|part| *part == PatternPart::AnyBytes).map(text);
        let mut texts: Vec<Vec<u8>> = texts.collect::<Option<_>>()?;
        let last = texts.pop()?;
        if texts.is_empty() {
            return Some(Stretches::Only(last));
        }
        let first = texts.remove(0);
        let middle = texts.iter().filter(|text| !text.is_empty()).map(|text| Needle::new(text)).collect();
        Some(Stretches::Apart { first, middle, last })
    }

    /// Whether a text begins with the first, ends with the last, and has the others in order in between.
    pub(crate) fn fit(&self, text: &[u8]) -> bool {
        let (first, middle, last) = match self {
            Stretches::Only(only) => return text == at_memory(only),
            Stretches::Apart { first, middle, last } => (at_memory(first), middle, at_memory(last)),
        };
        let inner = text.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
        let Some(mut rest) = inner else { return false };
        // The leftmost place of each leaves the most room for the next.
        middle.iter().all(|needle| match needle.find(rest) {
            Some(at) => {
                rest = &rest[at + needle.text().len()..];
                true
            }
            None => false,
        })
    }
}

impl PatternPart {
    /// The byte, if it is one.
    fn byte(self) -> Option<u8> {
        match self {
            PatternPart::Byte(byte) => Some(byte),
            PatternPart::AnyChar | PatternPart::AnyBytes => None,
        }
    }
}
