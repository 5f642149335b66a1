//! Encoding: strings in, codes out.

use super::matcher::{Matcher, PADDING};

/// Encodes with one table. Holds scratch memory, so one per thread.
pub(crate) struct StringEncoder {
    matcher: Matcher,
    padded: Vec<u8>,
}

impl StringEncoder {
    pub(super) fn new(matcher: Matcher) -> StringEncoder {
        StringEncoder { matcher, padded: Vec::new() }
    }

    /// Appends the codes of `value` to `codes` and returns how many they are.
    pub(crate) fn encode(&mut self, value: &[u8], codes: &mut Vec<u16>) -> usize {
        let before = codes.len();
        self.padded.clear();
        self.padded.extend_from_slice(value);
        self.padded.extend_from_slice(&[0; PADDING]);
        self.matcher.encode(&self.padded, codes);
        codes.len() - before
    }
}
