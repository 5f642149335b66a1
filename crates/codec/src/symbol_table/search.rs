//! Searching: whether an encoded string is as a pattern says, without decoding it.
//!
//! The [pattern's automaton](crate::pattern) reads a symbol at once: the state after each symbol, from each state on, is
//! worked out beforehand.

use super::codes::{code_at, code_capacity};
use super::{ESCAPE, SymbolTable, Width};
use crate::pattern::{Automaton, Pattern, START};
use std::sync::Arc;

/// Finds one pattern in the strings of one table.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    width: Width,
    automaton: Arc<Automaton>,
    /// By the state, of those not decided, and the code: the state after its symbol.
    by_code: Vec<u8>,
}

impl SymbolTable {
    /// What finds strings that are as `pattern` says.
    pub(crate) fn search(&self, pattern: &Pattern) -> Search {
        let automaton = Arc::clone(pattern.automaton());
        let mut by_code = Vec::with_capacity(usize::from(automaton.state_count()) << self.width.bits());
        for state in 0..automaton.state_count() {
            by_code.extend(self.texts.iter().zip(&self.sizes).map(|(text, &size)| {
                text[..usize::from(size)].iter().fold(state, |state, &byte| automaton.after(state, byte))
            }));
        }
        Search { width: self.width, automaton, by_code }
    }
}

impl Search {
    /// Whether the string of `code_count` codes from `first_code` on is as the pattern says. Codes without a meaning are
    /// passed over, those that are not there end the string.
    pub(crate) fn is_in(&self, packed: &[u8], first_code: usize, code_count: usize) -> bool {
        let end_code = first_code.saturating_add(code_count).min(code_capacity(self.width, packed.len()));
        let (mut state, mut is_escaped) = (START, false);
        for index in first_code..end_code {
            if self.automaton.is_decided(state) {
                break;
            }
            let code = usize::from(code_at(self.width, packed, index));
            state = if is_escaped {
                is_escaped = false;
                self.automaton.after(state, code as u8)
            } else if self.width == Width::Narrow && code == usize::from(ESCAPE) {
                is_escaped = true;
                continue;
            } else {
                self.by_code[(usize::from(state) << self.width.bits()) + code]
            };
        }
        self.automaton.accepts(state)
    }
}
